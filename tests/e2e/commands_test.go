package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leapview/tests/nodetest"
)

// TestCommands runs what the commands do beside a node or without one, as scripts.
func TestCommands(t *testing.T) {
	extensions := nodetest.Extensions(t)
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "leapview")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "commands"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("EXTENSIONS", extensions)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// exits runs a command line that must end with the code.
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec("sh", append([]string{"-c", `code=$1; shift; leapview "$@"; got=$?; [ $got -eq $code ] || { echo "exit $got, not $code" >&2; exit 1; }`, "sh"}, args...)...)
				if err != nil {
					ts.Fatalf("%v", err)
				}
			},
		},
	})
}
