package fs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
)

// useStore does once whatever opens or makes something in the data directory, and gives each error.
func useStore(l Layout) map[string]error {
	ctx := context.Background()
	out := map[string]error{}
	bundles, mark, data := NewBundles(l), NewWatermark(l), NewDataFiles(l, (*os.File).Sync)
	_, out["lock"] = Acquire(l, "boot", start)
	held := &Lock{layout: l, boot: "boot", file: os.Stdin}
	out["sweep"] = held.Sweep()
	_, out["listen"] = held.Listen()
	_, out["put"] = bundles.Put(ctx, []byte("x"))
	_, out["get"] = bundles.Get(ctx, project.DigestOf([]byte("x")))
	out["raise"] = mark.Raise(ctx, 1)
	_, out["highest"] = mark.Highest(ctx)
	_, out["seal"] = data.Seal(ctx, []string{"a.parquet"})
	out["prove"] = data.Prove(ctx, []refresh.File{{Path: "a.parquet", Size: 1}})
	root, err := os.MkdirTemp("", "leapview-fs")
	if err != nil {
		return map[string]error{"setup": err}
	}
	defer os.RemoveAll(root)
	if err := os.WriteFile(filepath.Join(root, "a.csv"), []byte("x"), 0o600); err != nil {
		return map[string]error{"setup": err}
	}
	_, out["stage"] = NewSources(l, roomy).Acquire(ctx, "run", root, project.Source{Name: "s", Location: "a.csv"})
	return out
}

// kinds tells the kind of each error, in one line.
func kinds(errs map[string]error) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(errs)) {
		kind := "none"
		if errs[what] != nil {
			kind = fail.KindOf(errs[what]).String()
		}
		parts = append(parts, what+" "+kind)
	}
	return strings.Join(parts, ", ")
}

func allOf(kind fail.Kind) string {
	return fmt.Sprintf("get %[1]s, highest %[1]s, listen %[1]s, lock %[1]s, prove %[1]s, put %[1]s, raise %[1]s, seal %[1]s, stage %[1]s, sweep %[1]s", kind)
}

// Proves: what the machine refuses inside the data directory is never told as the caller's fault, whoever met it. A folder that may not
// be entered makes the node unavailable; one that was taken away is damage.
func TestOwnFilesAreNotTheCallers(t *testing.T) {
	l := prepare(t)
	uid := -1
	if os.Geteuid() == 0 {
		uid = 65534
	} else {
		if err := os.Chmod(l.Root, 0); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.Chmod(l.Root, 0o700); err != nil {
				t.Error(err)
			}
		}()
	}
	if got, want := startProcess(t, "use", l.Root, uid).outcome, allOf(fail.Unavailable); got != want {
		t.Errorf("closed: got  %s\nwant %s", got, want)
	}

	// A file in the place of the whole directory: whatever is looked for below is gone.
	gone := filepath.Join(t.TempDir(), "gone")
	write(t, gone, "x")
	l, err := At(gone)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kinds(useStore(l)), allOf(fail.Corrupt); got != want {
		t.Errorf("gone: got  %s\nwant %s", got, want)
	}
	refused(t, useStore(l)["get"], "file_missing", "put them back from a backup")
}

// Proves: what the caller named keeps the caller's kinds: a source file or folder, a project's folder, the data directory itself.
func TestNamedFilesAreTheCallers(t *testing.T) {
	l, dir := prepare(t), t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	_, err := NewSources(l, roomy).Acquire(t.Context(), "run", filepath.Join(dir, "nowhere"), project.Source{Name: "s", Location: "a.csv"})
	if fail.KindOf(err) != fail.Missing {
		t.Errorf("source root: %s: %v", fail.KindOf(err), err)
	}
	if _, err = ReadProject(filepath.Join(dir, "nowhere")); fail.KindOf(err) != fail.Missing {
		t.Errorf("project: %s: %v", fail.KindOf(err), err)
	}
	if _, err = Prepare(filepath.Join(dir, "file", "below")); fail.KindOf(err) != fail.Missing {
		t.Errorf("data directory: %s: %v", fail.KindOf(err), err)
	}
	if err := namedError(os.ErrPermission, "open the source"); err.Kind != fail.Denied {
		t.Errorf("permission: %s", err.Kind)
	}
}
