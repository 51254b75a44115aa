package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"leapview/tests/nodetest"
)

// TestNewcomer runs what somebody does on the first day, as a script.
func TestNewcomer(t *testing.T) {
	extensions, data := nodetest.Extensions(t), filepath.Join(nodetest.Root(t), "examples", "flights", "data")
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "leapview")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var dev *exec.Cmd
	// until tries for a minute.
	until := func(ts *testscript.TestScript, what string, done func() bool) {
		for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				ts.Fatalf("%s: not within a minute", what)
			}
		}
	}
	said := func(ts *testscript.TestScript) string {
		b, _ := os.ReadFile(ts.MkAbs("dev.log"))
		return string(b)
	}
	pattern := func(ts *testscript.TestScript, s string) *regexp.Regexp {
		re, err := regexp.Compile("(?m)" + s)
		ts.Check(err)
		return re
	}
	address := regexp.MustCompile(`READY (http://\S+)`)
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "newcomer.txtar")},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("DATA", data)
			e.Setenv("LEAPVIEW_EXTENSIONS", extensions)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// dev runs the loop in the background, and waits until it answers.
			"dev": func(ts *testscript.TestScript, _ bool, args []string) {
				log, err := os.Create(ts.MkAbs("dev.log"))
				ts.Check(err)
				dev = exec.Command(binary, "dev", ts.MkAbs(args[0]), "--listen", "127.0.0.1:0", "--data-dir", ts.MkAbs("data"), "--extensions", extensions)
				dev.Stdout, dev.Stderr = log, log
				ts.Check(dev.Start())
				ts.Defer(func() { _ = dev.Process.Kill(); _ = dev.Wait(); _ = log.Close() })
				until(ts, "READY", func() bool { return address.MatchString(said(ts)) })
			},
			// stop ends the loop as a user does, and tells how long it all took.
			"stop": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(dev.Process.Signal(os.Interrupt))
				ts.Check(dev.Wait())
				ts.Logf("a newcomer's first run took %s", time.Since(began).Round(time.Millisecond))
			},
			// await waits until what runs in the background has said the pattern.
			"await": func(ts *testscript.TestScript, _ bool, args []string) {
				re := pattern(ts, args[0])
				until(ts, args[0], func() bool { return re.MatchString(said(ts)) })
			},
			// get asks until the answer has the pattern.
			"get": func(ts *testscript.TestScript, _ bool, args []string) {
				re, url := pattern(ts, args[1]), address.FindStringSubmatch(said(ts))[1]+args[0]
				until(ts, args[0], func() bool {
					res, err := http.Get(url)
					ts.Check(err)
					defer res.Body.Close()
					b, err := io.ReadAll(res.Body)
					ts.Check(err)
					return re.Match(b)
				})
			},
			// edit replaces a pattern in a file, once.
			"edit": func(ts *testscript.TestScript, _ bool, args []string) {
				file := ts.MkAbs(args[0])
				re, b := pattern(ts, args[1]), ts.ReadFile(file)
				at := re.FindStringIndex(b)
				if at == nil {
					ts.Fatalf("%s does not hold %s", args[0], args[1])
				}
				ts.Check(os.WriteFile(file, []byte(b[:at[0]]+args[2]+b[at[1]:]), 0o600))
			},
		},
	})
}
