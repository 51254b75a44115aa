package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/refresh"
)

// syncLog records what is synced, relative to a directory, and does it. It stands where (*os.File).Sync stands.
type syncLog struct {
	root string
	mu   sync.Mutex
	done []string
	// failAt is the entry whose sync fails with the error.
	failAt string
	err    error
}

func (s *syncLog) sync(f *os.File) error {
	rel, err := filepath.Rel(s.root, f.Name())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.done = append(s.done, rel)
	s.mu.Unlock()
	if rel == s.failAt {
		return s.err
	}
	return f.Sync()
}

// sealed checks a log of syncs: every file once, then every folder above the files, the data folder included, and no folder
// before a file that it leads to.
func sealed(log, files []string) error {
	at := func(name string) (int, error) {
		i := slices.Index(log, name)
		if i < 0 {
			return 0, fmt.Errorf("%s was not synced", name)
		}
		return i, nil
	}
	for _, file := range files {
		i, err := at(file)
		if err != nil {
			return err
		}
		for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
			j, err := at(dir)
			if err != nil {
				return err
			}
			if j < i {
				return fmt.Errorf("the folder %s was synced before its file %s", dir, file)
			}
			if dir == "." {
				break
			}
		}
	}
	return nil
}

// Proves: sealing syncs every file and then every folder above it, before it returns; and that the check of this test sees each
// way to do it wrong.
func TestSealOrder(t *testing.T) {
	l := prepare(t)
	files := []string{"w/t1/a.parquet", "w/t1/b.parquet", "w/t2/p=1/c.parquet", "d.parquet"}
	for i, f := range files {
		write(t, filepath.Join(l.DataDir, f), strings.Repeat("x", i+1))
	}
	log := &syncLog{root: l.DataDir}
	d := NewDataFiles(l, log.sync)
	got, err := d.Seal(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	if err := sealed(log.done, files); err != nil {
		t.Errorf("%v: %v", err, log.done)
	}
	if want := len(files) + 6; len(log.done) != want {
		t.Errorf("%d syncs, want each file and folder, and the catalog's folder, once, %d: %v", len(log.done), want, log.done)
	}
	for i, f := range got {
		if f.Path != files[i] || f.Size != int64(i+1) {
			t.Errorf("file %d is %v", i, f)
		}
	}

	right := log.done
	for what, planted := range map[string][]string{
		"nothing synced":       nil,
		"files only":           files,
		"folders first":        append(slices.Clone(right[len(files):]), right[:len(files)]...),
		"one file left out":    slices.DeleteFunc(slices.Clone(right), func(s string) bool { return s == files[2] }),
		"data folder left out": slices.DeleteFunc(slices.Clone(right), func(s string) bool { return s == "." }),
		"one file too late":    append(slices.DeleteFunc(slices.Clone(right), func(s string) bool { return s == files[0] }), files[0]),
	} {
		if sealed(planted, files) == nil {
			t.Errorf("the check does not see: %s", what)
		}
	}
}

// Proves: a file or folder that the disk does not take fails the sealing with a kind that says whether the process can go on.
func TestSealSyncFails(t *testing.T) {
	l := prepare(t)
	write(t, filepath.Join(l.DataDir, "w", "a.parquet"), "x")
	for _, at := range []string{"w/a.parquet", "w", ".", "../ducklake"} {
		for errno, want := range map[syscall.Errno]fail.Kind{syscall.EIO: fail.Fatal, syscall.ENOSPC: fail.Limit} {
			log := &syncLog{root: l.DataDir, failAt: at, err: errno}
			_, err := NewDataFiles(l, log.sync).Seal(t.Context(), []string{"w/a.parquet"})
			if fail.KindOf(err) != want {
				t.Errorf("%v at %s gives %v, want %s", errno, at, err, want)
			}
		}
	}
}

// Proves: a data path cannot lead out of the data folder, by its spelling or through a link, to the catalog for one.
func TestSealEscape(t *testing.T) {
	l := prepare(t)
	write(t, l.Catalog, "the catalog")
	link(t, filepath.Dir(l.Catalog), filepath.Join(l.DataDir, "away"))
	link(t, l.Catalog, filepath.Join(l.DataDir, "file"))
	d := NewDataFiles(l, (*os.File).Sync)
	for _, p := range []string{"away/catalog.duckdb", "file"} {
		if _, err := d.Seal(t.Context(), []string{p}); err == nil {
			t.Errorf("%s is sealed through a link", p)
		}
		if err := d.Prove(t.Context(), []refresh.File{{Path: p, Size: 11}}); err == nil {
			t.Errorf("%s is proved through a link", p)
		}
	}
	if err := os.Mkdir(filepath.Join(l.DataDir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := d.Seal(t.Context(), []string{"folder"})
	refused(t, err, "data_file_irregular", "folder")
	if err := syscall.Mkfifo(filepath.Join(l.DataDir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = d.Seal(t.Context(), []string{"pipe"})
	refused(t, err, "data_file_irregular", "pipe")
}

// Proves: bundles and the watermark sync the new file under its temporary name, then the folder under its final one, and when
// either fails the old content stays and nothing unfinished is left.
func TestWriteDurably(t *testing.T) {
	l := prepare(t)
	log := &syncLog{root: l.Root}
	w := &Watermark{path: l.Fence, sync: log.sync}
	if err := w.Raise(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	b := &Bundles{dir: l.Artifacts, sync: log.sync}
	id, err := b.Put(t.Context(), []byte("bundle"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"fence.new", ".", "artifacts/" + string(id) + ".tar.new", "artifacts"}; !slices.Equal(log.done, want) {
		t.Errorf("synced %v, want %v", log.done, want)
	}
	log.failAt, log.err = "fence.new", syscall.EIO
	err = w.Raise(t.Context(), 8)
	refused(t, err, "sync_failed", l.Fence)
	if got, err := w.Highest(t.Context()); got != 7 || err != nil {
		t.Errorf("after a failed raise the fence is %d, %v", got, err)
	}
	if slices.Contains(names(t, l.Root), "fence.new") {
		t.Error("an unfinished file is left")
	}
	// A crash between the rename and the folder's sync: the fence can be read, so raising it again must still sync the folder.
	log.failAt = "."
	if err := w.Raise(t.Context(), 9); fail.KindOf(err) != fail.Fatal {
		t.Errorf("got %v", err)
	}
	log.failAt, log.done = "", nil
	if err := w.Raise(t.Context(), 9); err != nil || !slices.Contains(log.done, ".") {
		t.Errorf("raising again: %v, synced %v", err, log.done)
	}
}

// Proves: any content of the fence file but a whole number and a line feed is corrupt, so that a damaged one is never read as a
// lower fence, and it is not overwritten.
func TestWatermarkCorrupt(t *testing.T) {
	for _, content := range []string{"", "\n", "12", "012\n", "+12\n", "-1\n", "0\n", "12\n\n", "12 \n", "1e3\n", "99999999999999999999\n", "x\n", strings.Repeat("1", 100)} {
		l := prepare(t)
		write(t, l.Fence, content)
		w := NewWatermark(l)
		_, err := w.Highest(t.Context())
		refused(t, err, "fence_corrupt", l.Fence)
		refused(t, w.Raise(t.Context(), 1<<40), "fence_corrupt")
		if b, err := os.ReadFile(l.Fence); err != nil || string(b) != content {
			t.Errorf("the corrupt fence was changed to %q, %v", b, err)
		}
	}
}

// TestOwnFilesAreNobodysFault proves that what is wrong with the node's own files is never told as if the caller had named a missing or
// forbidden thing, and that what the caller names still is.
func TestOwnFilesAreNobodysFault(t *testing.T) {
	for cause, want := range map[error][2]fail.Kind{
		syscall.ENOENT: {fail.Missing, fail.Corrupt}, syscall.ENOTDIR: {fail.Missing, fail.Corrupt}, syscall.EACCES: {fail.Denied, fail.Unavailable},
		syscall.EROFS: {fail.Denied, fail.Unavailable}, syscall.ELOOP: {fail.Invalid, fail.Corrupt}, syscall.ENOSPC: {fail.Limit, fail.Limit}, syscall.EMFILE: {fail.Limit, fail.Limit},
	} {
		err := &os.PathError{Op: "open", Path: "x", Err: cause}
		if theirs, own := namedError(err, "open x"), storeError(err, "open x"); theirs.Kind != want[0] || own.Kind != want[1] || own.Fix == "" && own.Kind != fail.Internal {
			t.Errorf("%v: %s when a caller names it, %s (fix %q) when it is ours; want %v", cause, theirs.Kind, own.Kind, own.Fix, want)
		}
	}
	l, err := Prepare(filepath.Join(t.TempDir(), "node"))
	if err != nil {
		t.Fatal(err)
	}
	// The folder that bundles are kept in goes away under the running node.
	if err := os.RemoveAll(l.Artifacts); err != nil {
		t.Fatal(err)
	}
	if _, err := NewBundles(l).Put(t.Context(), []byte("x")); fail.KindOf(err) != fail.Corrupt {
		t.Errorf("a bundle that cannot be put: %s: %v", fail.KindOf(err), err)
	}
	if err := NewWatermark(Layout{Fence: filepath.Join(l.Artifacts, "fence")}).Raise(t.Context(), 1); fail.KindOf(err) != fail.Corrupt {
		t.Errorf("a fence that cannot be kept: %s: %v", fail.KindOf(err), err)
	}
}
