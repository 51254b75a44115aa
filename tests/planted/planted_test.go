//go:build planted

package planted

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leapview/tests/nodetest"
)

// edit replaces one text of a file, which must be there exactly once.
type edit struct{ file, old, new string }

// bug is a planted bug and the test that must fail under it.
type bug struct {
	name  string
	edits []edit
	pkg   string
	test  string
	// says is what the failing test prints, so that a broken build or another failure is not taken for the catch.
	says string
}

// TestPlanted proves that each acceptance test, and each order that a test claims to hold, notices the bug that it exists for.
func TestPlanted(t *testing.T) {
	root := nodetest.Root(t)
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			dir := t.TempDir()
			replaced := map[string]string{}
			for i, e := range b.edits {
				source := filepath.Join(root, e.file)
				path, again := replaced[source]
				if !again {
					path = filepath.Join(dir, string(rune('a'+i))+".go")
					text, err := os.ReadFile(source)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, text, 0o600); err != nil {
						t.Fatal(err)
					}
					replaced[source] = path
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(text), e.old); n != 1 {
					t.Fatalf("the text to replace stands %d times in %s: the bug must be planted anew\n%s", n, e.file, e.old)
				}
				if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			overlay, err := json.Marshal(map[string]any{"Replace": replaced})
			if err != nil {
				t.Fatal(err)
			}
			overlayFile := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			run := exec.Command("go", "test", "-tags", "duckdb_arrow", "-count=1", "-vet=off", "-timeout=5m", "-overlay", overlayFile, "-run", "^"+b.test+"$", b.pkg)
			run.Dir = root
			out, err := run.CombinedOutput()
			if err == nil {
				t.Fatalf("%s passes although the bug is there", b.test)
			}
			if !strings.Contains(string(out), "--- FAIL: "+b.test) || !strings.Contains(string(out), b.says) {
				t.Fatalf("%s did not fail for the bug, that is by saying %q:\n%s", b.test, b.says, out)
			}
		})
	}
}
