package contract

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"leapview/adapters/fs"
	"leapview/adapters/mem"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// diskUnderTest is a data directory, real or not, with what the tests must do behind the ports' backs. Paths are relative to it.
type diskUnderTest struct {
	write  func(t *testing.T, path, content string)
	remove func(t *testing.T, path string)
}

// realDisk is a data directory on disk.
func realDisk(t *testing.T) (fs.Layout, diskUnderTest) {
	t.Helper()
	l, err := fs.Prepare(filepath.Join(t.TempDir(), "lv"))
	if err != nil {
		t.Fatal(err)
	}
	return l, folderUnderTest(l.Root)
}

// folderUnderTest writes and removes files of a folder.
func folderUnderTest(dir string) diskUnderTest {
	return diskUnderTest{
		write: func(t *testing.T, path, content string) {
			t.Helper()
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		remove: func(t *testing.T, path string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, path)); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// memDisk writes and removes files of the twins' disk.
func memDisk(d *mem.Disk) diskUnderTest {
	return diskUnderTest{
		write:  func(_ *testing.T, path, content string) { d.Write(path, []byte(content)) },
		remove: func(_ *testing.T, path string) { d.Remove(path) },
	}
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// fileRefused checks a refusal by its kind, its code and the words that it must say.
func fileRefused(t *testing.T, err error, kind fail.Kind, code string, words ...string) {
	t.Helper()
	if err == nil || fail.KindOf(err) != kind || fail.CodeOf(err) != code {
		t.Fatalf("got %v (%s, %s), want %s, %s", err, fail.KindOf(err), fail.CodeOf(err), kind, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

// TestDataFilesMem proves the contract of ports.DataFiles for the twin.
func TestDataFilesMem(t *testing.T) {
	dataFilesSuite(t, func(*testing.T) (ports.DataFiles, diskUnderTest) {
		d := &mem.Disk{}
		return mem.DataFiles{Disk: d}, memDisk(d)
	})
}

// TestDataFilesFS proves the contract of ports.DataFiles for the real disk.
func TestDataFilesFS(t *testing.T) {
	dataFilesSuite(t, func(t *testing.T) (ports.DataFiles, diskUnderTest) {
		l, _ := realDisk(t)
		return fs.NewDataFiles(l, (*os.File).Sync), folderUnderTest(l.DataDir)
	})
}

// dataFilesSuite is the contract of ports.DataFiles.
func dataFilesSuite(t *testing.T, open func(*testing.T) (ports.DataFiles, diskUnderTest)) {
	badPaths := []string{"", ".", "..", "../fence", "w/../../fence", "/etc/passwd", "w/t/../a.parquet", "w//a.parquet", "./w/a.parquet", "w/"}
	t.Run("sealing gives each file's size and digest, in order, and can be repeated", func(t *testing.T) {
		d, disk := open(t)
		disk.write(t, "w/t/a.parquet", "aa")
		disk.write(t, "w/b.parquet", "b")
		want := []refresh.File{{Path: "w/t/a.parquet", Size: 2, SHA256: project.DigestOf([]byte("aa"))}, {Path: "w/b.parquet", Size: 1, SHA256: project.DigestOf([]byte("b"))}}
		for range 2 {
			got, err := d.Seal(t.Context(), []string{"w/t/a.parquet", "w/b.parquet"})
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v, %v, want %v", got, err, want)
			}
		}
		if err := d.Prove(t.Context(), want); err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing to seal or prove is fine", func(t *testing.T) {
		d, _ := open(t)
		if got, err := d.Seal(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
		if err := d.Prove(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("a file that is missing, empty or of another size is corrupt and named", func(t *testing.T) {
		d, disk := open(t)
		disk.write(t, "w/a.parquet", "aa")
		disk.write(t, "w/empty.parquet", "")
		_, err := d.Seal(t.Context(), []string{"w/a.parquet", "w/gone.parquet"})
		fileRefused(t, err, fail.Corrupt, "data_file_missing", "w/gone.parquet")
		_, err = d.Seal(t.Context(), []string{"w/a.parquet", "w/empty.parquet"})
		fileRefused(t, err, fail.Corrupt, "data_file_empty", "w/empty.parquet")
		sealed, err := d.Seal(t.Context(), []string{"w/a.parquet"})
		if err != nil {
			t.Fatal(err)
		}
		disk.write(t, "w/a.parquet", "aaa")
		fileRefused(t, d.Prove(t.Context(), sealed), fail.Corrupt, "data_file_size", "w/a.parquet", "3", "2")
		disk.remove(t, "w/a.parquet")
		fileRefused(t, d.Prove(t.Context(), sealed), fail.Corrupt, "data_file_missing", "w/a.parquet")
	})
	t.Run("a path that does not stay in the data folder is refused", func(t *testing.T) {
		d, disk := open(t)
		disk.write(t, "w/a.parquet", "aa")
		for _, p := range badPaths {
			_, err := d.Seal(t.Context(), []string{"w/a.parquet", p})
			fileRefused(t, err, fail.Corrupt, "bad_data_path")
			fileRefused(t, d.Prove(t.Context(), []refresh.File{{Path: p, Size: 2}}), fail.Corrupt, "bad_data_path")
		}
	})
	t.Run("an ended context ends the work", func(t *testing.T) {
		d, disk := open(t)
		disk.write(t, "w/a.parquet", "aa")
		_, err := d.Seal(ended(), []string{"w/a.parquet"})
		fileRefused(t, err, fail.Canceled, "canceled")
		fileRefused(t, d.Prove(ended(), nil), fail.Canceled, "canceled")
	})
}

// TestBundlesMem proves the contract of ports.Bundles for the twin.
func TestBundlesMem(t *testing.T) {
	bundlesSuite(t, func(*testing.T) (func() ports.Bundles, diskUnderTest) {
		d := &mem.Disk{}
		return func() ports.Bundles { return mem.Bundles{Disk: d} }, memDisk(d)
	})
}

// TestBundlesFS proves the contract of ports.Bundles for the real disk.
func TestBundlesFS(t *testing.T) {
	bundlesSuite(t, func(t *testing.T) (func() ports.Bundles, diskUnderTest) {
		l, disk := realDisk(t)
		return func() ports.Bundles { return fs.NewBundles(l) }, disk
	})
}

// bundlesSuite is the contract of ports.Bundles. What open gives opens the same store again.
func bundlesSuite(t *testing.T, open func(*testing.T) (func() ports.Bundles, diskUnderTest)) {
	put := func(t *testing.T, b ports.Bundles, content string) project.Digest {
		t.Helper()
		id, err := b.Put(t.Context(), []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	path := func(id project.Digest) string { return "artifacts/" + string(id) + ".tar" }
	t.Run("a bundle is kept under its digest, twice is once, and it outlives a reopen", func(t *testing.T) {
		reopen, _ := open(t)
		for range 2 {
			if id := put(t, reopen(), "bundle"); id != project.DigestOf([]byte("bundle")) {
				t.Fatalf("got %s", id)
			}
		}
		put(t, reopen(), "other")
		got, err := reopen().Get(t.Context(), project.DigestOf([]byte("bundle")))
		if err != nil || string(got) != "bundle" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("what is given out and taken in is not shared", func(t *testing.T) {
		reopen, _ := open(t)
		b, content := reopen(), []byte("bundle")
		id, err := b.Put(t.Context(), content)
		if err != nil {
			t.Fatal(err)
		}
		content[0] = 'x'
		for range 2 {
			got, err := b.Get(t.Context(), id)
			if err != nil || string(got) != "bundle" {
				t.Fatalf("got %q, %v", got, err)
			}
			got[0] = 'x'
		}
	})
	t.Run("an unknown digest is missing, and what is no digest is refused", func(t *testing.T) {
		reopen, _ := open(t)
		_, err := reopen().Get(t.Context(), project.DigestOf([]byte("unknown")))
		fileRefused(t, err, fail.Corrupt, "bundle_missing", project.DigestOf([]byte("unknown")).Short())
		for _, id := range []project.Digest{"", "../leapview", project.Digest(strings.Repeat("A", 64)), project.Digest("../" + strings.Repeat("a", 61))} {
			_, err := reopen().Get(t.Context(), id)
			fileRefused(t, err, fail.Invalid, "bad_digest")
		}
	})
	t.Run("damage is corrupt, and putting the bundle again heals it", func(t *testing.T) {
		reopen, disk := open(t)
		id := put(t, reopen(), "bundle")
		for _, damage := range []string{"", "bundlf", "bundle "} {
			disk.write(t, path(id), damage)
			_, err := reopen().Get(t.Context(), id)
			fileRefused(t, err, fail.Corrupt, "bundle_corrupt", string(id.Short()))
			put(t, reopen(), "bundle")
			if got, err := reopen().Get(t.Context(), id); err != nil || string(got) != "bundle" {
				t.Errorf("got %q, %v", got, err)
			}
		}
		disk.remove(t, path(id))
		_, err := reopen().Get(t.Context(), id)
		fileRefused(t, err, fail.Corrupt, "bundle_missing")
	})
	t.Run("a bundle above the bound is refused by limit and value", func(t *testing.T) {
		reopen, _ := open(t)
		_, err := reopen().Put(t.Context(), make([]byte, project.MaxArchiveBytes+1))
		fileRefused(t, err, fail.Limit, "bundle_too_large", fmt.Sprintf("archive_bytes = %d", project.MaxArchiveBytes))
	})
	t.Run("an ended context stores nothing", func(t *testing.T) {
		reopen, _ := open(t)
		_, err := reopen().Put(ended(), []byte("bundle"))
		fileRefused(t, err, fail.Canceled, "canceled")
		_, err = reopen().Get(t.Context(), project.DigestOf([]byte("bundle")))
		fileRefused(t, err, fail.Corrupt, "bundle_missing")
		_, err = reopen().Get(ended(), project.DigestOf([]byte("bundle")))
		fileRefused(t, err, fail.Canceled, "canceled")
	})
}

// TestWatermarkMem proves the contract of ports.Watermark for the twin.
func TestWatermarkMem(t *testing.T) {
	watermarkSuite(t, func(*testing.T) (func() ports.Watermark, diskUnderTest) {
		d := &mem.Disk{}
		return func() ports.Watermark { return mem.Watermark{Disk: d} }, memDisk(d)
	})
}

// TestWatermarkFS proves the contract of ports.Watermark for the real disk.
func TestWatermarkFS(t *testing.T) {
	watermarkSuite(t, func(t *testing.T) (func() ports.Watermark, diskUnderTest) {
		l, disk := realDisk(t)
		return func() ports.Watermark { return fs.NewWatermark(l) }, disk
	})
}

// watermarkSuite is the contract of ports.Watermark. What open gives opens the same store again.
func watermarkSuite(t *testing.T, open func(*testing.T) (func() ports.Watermark, diskUnderTest)) {
	highest := func(t *testing.T, w ports.Watermark, want refresh.Fence) {
		t.Helper()
		if got, err := w.Highest(t.Context()); err != nil || got != want {
			t.Fatalf("highest is %d, %v, want %d", got, err, want)
		}
	}
	t.Run("it rises, never falls, and outlives a reopen", func(t *testing.T) {
		reopen, _ := open(t)
		highest(t, reopen(), 0)
		want := refresh.Fence(0)
		for _, f := range []refresh.Fence{3, 3, 1, 4, 2, 1<<62 + 1, 10} {
			if err := reopen().Raise(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			want = max(want, f)
			highest(t, reopen(), want)
		}
	})
	t.Run("raising from several goroutines keeps the highest", func(t *testing.T) {
		reopen, _ := open(t)
		w := reopen()
		done := make(chan error)
		for f := refresh.Fence(1); f <= 8; f++ {
			go func() { done <- w.Raise(t.Context(), f) }()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		highest(t, w, 8)
	})
	t.Run("a fence below 1 is refused", func(t *testing.T) {
		reopen, _ := open(t)
		for _, f := range []refresh.Fence{0, -1} {
			fileRefused(t, reopen().Raise(t.Context(), f), fail.Invalid, "bad_fence")
		}
		highest(t, reopen(), 0)
	})
	t.Run("damage is corrupt and is not overwritten", func(t *testing.T) {
		reopen, disk := open(t)
		for _, damage := range []string{"", "12", "0\n", "x\n"} {
			disk.write(t, "fence", damage)
			_, err := reopen().Highest(t.Context())
			fileRefused(t, err, fail.Corrupt, "fence_corrupt")
			fileRefused(t, reopen().Raise(t.Context(), 99), fail.Corrupt, "fence_corrupt")
		}
	})
	t.Run("an ended context stores nothing", func(t *testing.T) {
		reopen, _ := open(t)
		fileRefused(t, reopen().Raise(ended(), 5), fail.Canceled, "canceled")
		_, err := reopen().Highest(ended())
		fileRefused(t, err, fail.Canceled, "canceled")
		highest(t, reopen(), 0)
	})
}

// Proves that the twins' disk tells what was made durable from what was only written.
func TestDiskSynced(t *testing.T) {
	d := &mem.Disk{}
	d.Write("a", []byte("1"))
	d.Write("b", []byte("1"))
	if _, err := (mem.DataFiles{Disk: d}).Seal(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	synced := func() (s []string) {
		for _, p := range []string{"a", "b", "c"} {
			if d.Synced(p) {
				s = append(s, p)
			}
		}
		return s
	}
	if got := synced(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("synced are %v", got)
	}
	d.Write("a", []byte("2"))
	if got := synced(); len(got) != 0 {
		t.Errorf("after writing again synced are %v", got)
	}
}
