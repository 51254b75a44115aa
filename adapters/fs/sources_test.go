package fs

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"leapview/domain/project"
)

func source(location string) project.Source {
	return project.Source{Name: "flights", Location: location, At: project.Position{File: "sources/flights.yaml", Line: 1, Column: 1}}
}

// Proves: a link that leaves the root is refused wherever it stands in the location, matched by name or by pattern, and one that
// stays below the root is followed.
func TestSourcesLinks(t *testing.T) {
	l := prepare(t)
	root, secret := t.TempDir(), t.TempDir()
	write(t, filepath.Join(secret, "s.csv"), "secret")
	write(t, filepath.Join(root, "real", "a.csv"), "a")
	link(t, filepath.Join(secret, "s.csv"), filepath.Join(root, "file.csv"))
	link(t, secret, filepath.Join(root, "dir"))
	link(t, "../"+filepath.Base(filepath.Dir(secret)), filepath.Join(root, "up"))
	link(t, "real", filepath.Join(root, "inside"))
	s := NewSources(l, roomy)
	for _, location := range []string{"file.csv", "f*.csv", "dir/s.csv", "d*/s.csv", "dir/*", "d*/*", "up/s.csv"} {
		_, err := s.Acquire(t.Context(), "run", root, source(location))
		refused(t, err, "outside_source_root", `source "flights"`, root)
	}
	got, err := s.Acquire(t.Context(), "run", root, source("inside/*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Name != "inside/a.csv" {
		t.Errorf("got %v", got)
	}
	link(t, "nowhere", filepath.Join(root, "real", "b.csv"))
	_, err = s.Acquire(t.Context(), "run", root, source("real/*.csv"))
	refused(t, err, "source_changed", "real/b.csv", "link to nothing")
	link(t, "loop", filepath.Join(root, "loop"))
	if _, err = s.Acquire(t.Context(), "run", root, source("loop")); err == nil {
		t.Error("a link to itself is accepted")
	}
}

// Proves: only regular files are staged; a pipe neither passes nor blocks, and a pattern leaves folders out.
func TestSourcesIrregular(t *testing.T) {
	l := prepare(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "a", "x.csv"), "x")
	write(t, filepath.Join(root, "b.csv"), "b")
	s := NewSources(l, roomy)
	_, err := s.Acquire(t.Context(), "run", root, source("a"))
	refused(t, err, "not_a_file", "a is not a regular file")
	got, err := s.Acquire(t.Context(), "run", root, source("*"))
	if err != nil || len(got) != 1 || got[0].Name != "b.csv" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "p.csv"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"p.csv", "*.csv"} {
		_, err = s.Acquire(t.Context(), "run", root, source(location))
		refused(t, err, "not_a_file", "p.csv")
	}
	_, err = s.Acquire(t.Context(), "run", root, source("b.csv/x"))
	refused(t, err, "source_missing", root)
	_, err = s.Acquire(t.Context(), "run", filepath.Join(root, "nowhere"), source("b.csv"))
	refused(t, err, "source_root_missing", filepath.Join(root, "nowhere"))
	_, err = s.Acquire(t.Context(), "run", filepath.Join(root, "b.csv"), source("b.csv"))
	refused(t, err, "source_root_missing")
}

// meddler is a context that does something to the disk at one of the adapter's looks at it.
type meddler struct {
	context.Context
	when func() bool
	do   func()
	done bool
}

func (m *meddler) Err() error {
	if !m.done && m.when() {
		m.done = true
		m.do()
	}
	return m.Context.Err()
}

// Proves: a file that is written, cut, replaced or removed while it is copied is refused by name, and nothing of the source stays
// staged.
func TestSourceChanges(t *testing.T) {
	for what, change := range map[string]func(path string) error{
		"was written": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("y"), 0); err != nil {
				return err
			}
			// The kernel's clock for files may stand still for some milliseconds.
			return os.Chtimes(path, time.Time{}, time.Now().Add(time.Second))
		},
		"was written (grown)": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err = f.Write(bytes.Repeat([]byte("y"), 3*chunk)); err != nil {
				return err
			}
			return os.Chtimes(path, time.Time{}, start)
		},
		"was written (cut)": func(path string) error {
			if err := os.Truncate(path, chunk); err != nil {
				return err
			}
			return os.Chtimes(path, time.Time{}, start)
		},
		"was replaced": func(path string) error {
			if err := os.WriteFile(path+".tmp", bytes.Repeat([]byte("x"), 3*chunk), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".tmp", path)
		},
		"went away": os.Remove,
	} {
		t.Run(what, func(t *testing.T) {
			l := prepare(t)
			root := t.TempDir()
			path := filepath.Join(root, "b.csv")
			write(t, filepath.Join(root, "a.csv"), "a")
			write(t, path, strings.Repeat("x", 3*chunk))
			// A change that keeps the time, as some copying tools do, must show by the size alone.
			if err := os.Chtimes(path, time.Time{}, start); err != nil {
				t.Fatal(err)
			}
			copying := filepath.Join(l.Staged, "run", "flights", "0001-b.csv")
			ctx := &meddler{Context: t.Context(), when: func() bool {
				info, err := os.Stat(copying)
				return err == nil && info.Size() >= chunk
			}, do: func() {
				if err := change(path); err != nil {
					t.Error(err)
				}
			}}
			_, err := NewSources(l, roomy).Acquire(ctx, "run", root, source("*.csv"))
			said, _, _ := strings.Cut(what, " (")
			refused(t, err, "source_changed", "b.csv "+said, "rename them when they are complete")
			if got := names(t, filepath.Join(l.Staged, "run")); len(got) != 0 {
				t.Errorf("the failure leaves %v", got)
			}
		})
	}
}

// Proves: a file that goes away between being found and being copied is refused as changed, not as a defect.
func TestSourceVanishes(t *testing.T) {
	l := prepare(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "a.csv"), "a")
	ctx := &meddler{Context: t.Context(), when: func() bool {
		_, err := os.Stat(filepath.Join(l.Staged, "run", "flights"))
		return err == nil
	}, do: func() {
		if err := os.Remove(filepath.Join(root, "a.csv")); err != nil {
			t.Error(err)
		}
	}}
	_, err := NewSources(l, roomy).Acquire(ctx, "run", root, source("a.csv"))
	refused(t, err, "source_changed", "a.csv went away")
}

// Proves: a context that ends in the middle of a file ends the copy, and nothing stays staged.
func TestSourceCanceledMidway(t *testing.T) {
	l := prepare(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "a.csv"), strings.Repeat("x", 5*chunk))
	inner, cancel := context.WithCancel(t.Context())
	ctx := &meddler{Context: inner, when: func() bool {
		info, err := os.Stat(filepath.Join(l.Staged, "run", "flights", "0000-a.csv"))
		return err == nil && info.Size() >= chunk
	}, do: cancel}
	_, err := NewSources(l, roomy).Acquire(ctx, "run", root, source("a.csv"))
	refused(t, err, "canceled")
	if got := names(t, filepath.Join(l.Staged, "run")); len(got) != 0 {
		t.Errorf("the failure leaves %v", got)
	}
}

// Proves: the staged name keeps the extension and holds nothing that an engine would read as a pattern.
func TestStagedName(t *testing.T) {
	for name, want := range map[string]string{"a/b.csv.gz": "b.csv.gz", "x [1]*?.csv": "x__1___.csv", "é'.json": "___.json", strings.Repeat("n", 200) + ".csv.gz": strings.Repeat("n", 93) + ".csv.gz"} {
		if got := stagedName(name); got != want {
			t.Errorf("%q is staged as %q, want %q", name, got, want)
		}
	}
}
