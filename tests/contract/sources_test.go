package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leapview/adapters/fs"
	"leapview/adapters/mem"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// sourcesUnderTest is a sources adapter with the files of its root.
type sourcesUnderTest struct {
	ports.Sources
	root string
	disk diskUnderTest
	// read gives a staged copy; ok is false when it is not there.
	read func(a ports.Artifact) (content string, ok bool)
	// written is when the file was written.
	written func(name string) time.Time
}

// TestSourcesMem proves the contract of ports.Sources for the twin, in memory only and with its copies on disk.
func TestSourcesMem(t *testing.T) {
	for name, dir := range map[string]bool{"in memory": false, "with a folder": true} {
		t.Run(name, func(t *testing.T) {
			sourcesSuite(t, func(t *testing.T, files int, bytes int64) sourcesUnderTest {
				s := &mem.Sources{Files: map[string][]byte{}, MaxFiles: files, MaxBytes: bytes, Modified: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
				if dir {
					s.Dir = t.TempDir()
				}
				return sourcesUnderTest{Sources: s, root: "/anywhere", written: func(string) time.Time { return s.Modified },
					disk: diskUnderTest{
						write:  func(_ *testing.T, path, content string) { s.Files[path] = []byte(content) },
						remove: func(_ *testing.T, path string) { delete(s.Files, path) },
					},
					read: func(a ports.Artifact) (string, bool) {
						content, err := s.Content(a)
						if dir {
							onDisk, missing := os.ReadFile(a.Path)
							if string(onDisk) != string(content) || (missing == nil) != (err == nil) {
								t.Errorf("%s on disk: %q, %v; in memory: %q, %v", a.Path, onDisk, missing, content, err)
							}
						}
						return string(content), err == nil
					}}
			})
		})
	}
}

// TestSourcesFS proves the contract of ports.Sources for the real disk.
func TestSourcesFS(t *testing.T) {
	sourcesSuite(t, func(t *testing.T, files int, bytes int64) sourcesUnderTest {
		l, _ := realDisk(t)
		root := t.TempDir()
		return sourcesUnderTest{Sources: fs.NewSources(l, fs.SourcesOptions{MaxFiles: files, MaxBytes: bytes}), root: root, disk: folderUnderTest(root),
			written: func(name string) time.Time {
				info, err := os.Stat(filepath.Join(root, name))
				if err != nil {
					t.Fatal(err)
				}
				return info.ModTime()
			},
			read: func(a ports.Artifact) (string, bool) {
				if !strings.HasPrefix(a.Path, l.Staged+"/") {
					t.Errorf("%s is not below %s", a.Path, l.Staged)
				}
				content, err := os.ReadFile(a.Path)
				return string(content), err == nil
			}}
	})
}

// sourcesSuite is the contract of ports.Sources. open takes the bounds on a source's files and bytes.
func sourcesSuite(t *testing.T, open func(t *testing.T, files int, bytes int64) sourcesUnderTest) {
	at := func(location string) project.Source {
		return project.Source{Name: "flights", Location: location, At: project.Position{File: "sources/flights.yaml", Line: 1, Column: 1}}
	}
	fill := func(t *testing.T, s sourcesUnderTest, names ...string) {
		t.Helper()
		for _, n := range names {
			s.disk.write(t, n, "content of "+n)
		}
	}
	acquire := func(t *testing.T, s sourcesUnderTest, location string) []ports.Artifact {
		t.Helper()
		got, err := s.Acquire(t.Context(), "run1", s.root, at(location))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("what is written of our own is staged like a file, replaces what was staged, and goes with the run", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "h.csv")
		old := acquire(t, s, "h.csv")[0]
		a, err := s.Write(t.Context(), "run1", at("h.csv"), "rows of x.json", []byte("[]"))
		if err != nil {
			t.Fatal(err)
		}
		if content, ok := s.read(a); !ok || content != "[]" || a.Name != "rows of x.json" || a.Size != 2 || a.SHA256 != project.DigestOf([]byte("[]")) {
			t.Errorf("the written artifact is %+v, holding %q", a, content)
		}
		if _, ok := s.read(old); ok {
			t.Error("what was acquired before is still there")
		}
		if _, err := s.Write(t.Context(), "../run", at("h.csv"), "x", nil); err == nil {
			t.Error("a run that leaves the folder was taken")
		}
		if err := s.Release(t.Context(), "run1"); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.read(a); ok {
			t.Error("the written artifact outlived its run")
		}
	})
	t.Run("a location gives exactly its files, sorted, each copied with its size and digest", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "f/2013-02.csv.gz", "f/2013-01.csv.gz", "f/2014-01.csv.gz", "f/x/2013-03.csv.gz", "f/.2013-09.csv.gz", "g/a.csv", "g/b.csv", "h.csv", ".hidden/h.csv", "odd [1].csv")
		for location, want := range map[string]string{
			"h.csv":               "h.csv",
			"./f//2013-01.csv.gz": "f/2013-01.csv.gz",
			"f/2013-*.csv.gz":     "f/2013-01.csv.gz f/2013-02.csv.gz",
			"f/*":                 "f/2013-01.csv.gz f/2013-02.csv.gz f/2014-01.csv.gz",
			"f/.2013*":            "f/.2013-09.csv.gz",
			"f/201[34]-01*":       "f/2013-01.csv.gz f/2014-01.csv.gz",
			"f/201?-01.csv.gz":    "f/2013-01.csv.gz f/2014-01.csv.gz",
			"f/*/*":               "f/x/2013-03.csv.gz",
			"*/*.csv":             "g/a.csv g/b.csv",
			".hidden/*":           ".hidden/h.csv",
			"g/[^a].csv":          "g/b.csv",
			`odd \[1].csv`:        "odd [1].csv",
			"*.csv":               "h.csv|odd [1].csv",
		} {
			separator := " "
			if strings.ContainsAny(want, "|[") {
				separator = "|"
			}
			var names []string
			for _, a := range acquire(t, s, location) {
				names = append(names, a.Name)
				content := "content of " + a.Name
				if got, ok := s.read(a); !ok || got != content {
					t.Errorf("the copy of %s holds %q, %v", a.Name, got, ok)
				}
				if a.Size != int64(len(content)) || a.SHA256 != project.DigestOf([]byte(content)) {
					t.Errorf("%s has size %d and digest %s", a.Name, a.Size, a.SHA256)
				}
				if !filepath.IsAbs(a.Path) || strings.ContainsAny(filepath.Base(a.Path), "*?[ ") || filepath.Ext(a.Path) != filepath.Ext(a.Name) {
					t.Errorf("%s is staged as %s", a.Name, a.Path)
				}
			}
			if got := strings.Join(names, separator); got != want {
				t.Errorf("%s matches %s, want %s", location, got, want)
			}
		}
	})
	t.Run("an empty file is a file", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		s.disk.write(t, "e.csv", "")
		if got := acquire(t, s, "e.csv"); len(got) != 1 || got[0].Size != 0 || got[0].SHA256 != project.DigestOf(nil) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("acquiring again replaces what was staged", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "a.csv", "b.csv")
		before := acquire(t, s, "*.csv")
		s.disk.write(t, "a.csv", "new")
		s.disk.remove(t, "b.csv")
		after := acquire(t, s, "*.csv")
		if content, ok := s.read(after[0]); len(after) != 1 || content != "new" || !ok {
			t.Errorf("got %v, %q", after, content)
		}
		if _, ok := s.read(before[1]); ok {
			t.Error("the copy of a file that is gone is still there")
		}
	})
	t.Run("a location that matches nothing is missing and named with the root", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "f/a.csv")
		for _, location := range []string{"b.csv", "f/b*.csv", "f/a.csv/x", "*/a/*", "a.csv"} {
			_, err := s.Acquire(t.Context(), "run1", s.root, at(location))
			fileRefused(t, err, fail.Missing, "source_missing", `source "flights"`, location)
		}
		_, err := s.Acquire(t.Context(), "run1", s.root, at("f"))
		fileRefused(t, err, fail.Invalid, "not_a_file", `source "flights"`)
	})
	t.Run("a location that leaves the root, or is no path, is refused", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "f/a.csv", "a.csv")
		for _, location := range []string{"..", "../a.csv", "f/../a.csv", "f/../../a.csv", "*/../a.csv", "f/.."} {
			_, err := s.Acquire(t.Context(), "run1", s.root, at(location))
			fileRefused(t, err, fail.Denied, "outside_source_root", location)
		}
		for _, location := range []string{"", ".", "/etc/passwd", "/", "**", "**/a.csv", "f/**", "f/[a", "g/[!a].csv", "a\x00.csv", `f/a\`} {
			_, err := s.Acquire(t.Context(), "run1", s.root, at(location))
			fileRefused(t, err, fail.Invalid, "bad_location")
		}
		_, err := s.Acquire(t.Context(), "run1", "relative", at("a.csv"))
		fileRefused(t, err, fail.Invalid, "bad_source_root")
	})
	t.Run("an id that could leave the staging folder is refused", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "a.csv")
		kept := acquire(t, s, "a.csv")[0]
		for _, id := range []string{"", ".", "..", "../run1", "run1/flights", "a b", "*"} {
			_, err := s.Acquire(t.Context(), refresh.RunID(id), s.root, at("a.csv"))
			fileRefused(t, err, fail.Invalid, "bad_segment")
			fileRefused(t, s.Release(t.Context(), refresh.RunID(id)), fail.Invalid, "bad_segment")
			source := at("a.csv")
			source.Name = id
			_, err = s.Acquire(t.Context(), "run1", s.root, source)
			fileRefused(t, err, fail.Invalid, "bad_segment")
		}
		if _, ok := s.read(kept); !ok {
			t.Error("a refused release removed a staged file")
		}
	})
	t.Run("the bounds on files and bytes name limit and value, and nothing stays staged", func(t *testing.T) {
		s := open(t, 2, 10)
		for _, n := range []string{"a.csv", "b.csv", "c.csv"} {
			s.disk.write(t, n, "12345")
		}
		kept := acquire(t, s, "[ab].csv")
		_, err := s.Acquire(t.Context(), "run1", s.root, at("*.csv"))
		fileRefused(t, err, fail.Limit, "source_files", `source "flights"`, "limit source_files = 2")
		s.disk.write(t, "b.csv", "123456")
		_, err = s.Acquire(t.Context(), "run1", s.root, at("[ab].csv"))
		fileRefused(t, err, fail.Limit, "source_bytes", `source "flights"`, "b.csv", "limit source_bytes = 10")
		for _, a := range kept {
			if _, ok := s.read(a); ok {
				t.Errorf("%s stays staged", a.Name)
			}
		}
	})
	t.Run("a source's own bounds are named too, and each copy tells when its file was written", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		for _, n := range []string{"a.csv", "b.csv"} {
			s.disk.write(t, n, "12345")
		}
		source := at("*.csv")
		source.Bounds = project.Bounds{MaxFiles: 2, MaxBytes: 10}
		got, err := s.Acquire(t.Context(), "run1", s.root, source)
		if err != nil || len(got) != 2 {
			t.Fatalf("%v, %v", got, err)
		}
		for _, a := range got {
			if want := s.written(a.Name); want.IsZero() || !a.Modified.Equal(want) {
				t.Errorf("%s was written at %s, want %s", a.Name, a.Modified, want)
			}
		}
		source.Bounds.MaxBytes = 9
		_, err = s.Acquire(t.Context(), "run1", s.root, source)
		fileRefused(t, err, fail.Limit, "source_bytes", `source "flights"`, "b.csv", "10 bytes", "limit bounds.max_bytes = 9")
		if _, ok := s.read(got[0]); ok {
			t.Error("what was copied before stays staged")
		}
		source.Bounds.MaxFiles = 1
		_, err = s.Acquire(t.Context(), "run1", s.root, source)
		fileRefused(t, err, fail.Limit, "source_files", `source "flights"`, "2 files", "limit bounds.max_files = 1")
	})
	t.Run("releasing a run removes its files only, twice is once, under an ended context too", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "a.csv")
		mine := acquire(t, s, "a.csv")[0]
		others, err := s.Acquire(t.Context(), "run10", s.root, at("a.csv"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Release(ended(), "run1"); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := s.read(mine); ok {
			t.Error("a released copy is still there")
		}
		if _, ok := s.read(others[0]); !ok {
			t.Error("another run's copy went too")
		}
	})
	t.Run("an ended context stages nothing", func(t *testing.T) {
		s := open(t, 100, 1<<20)
		fill(t, s, "a.csv")
		_, err := s.Acquire(ended(), "run1", s.root, at("a.csv"))
		fileRefused(t, err, fail.Canceled, "canceled")
	})
}
