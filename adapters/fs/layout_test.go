package fs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Proves: a new data directory is made with all of its folders, every one 0700, and preparing it twice is once.
func TestPrepareMakesFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "lv")
	for range 2 {
		l, err := Prepare(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range append(l.folders(), l.Root) {
			info, err := os.Lstat(folder)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("%s has mode %v", folder, info.Mode())
			}
		}
		if at, err := At(l.Root); err != nil || at != l {
			t.Errorf("At gives %v, %v; Prepare gave %v", at, err, l)
		}
	}
}

// Proves: what cannot be a data directory is refused by a reason of its own and stays as it was.
func TestPrepareRefuses(t *testing.T) {
	_, err := Prepare("")
	refused(t, err, "no_data_directory")

	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	_, err = Prepare(file)
	refused(t, err, "not_a_directory", file)
	_, err = Prepare(filepath.Join(file, "below"))
	refused(t, err, "file_missing", file)

	l := prepare(t)
	if err := os.Remove(l.DataDir); err != nil {
		t.Fatal(err)
	}
	write(t, l.DataDir, "x")
	_, err = Prepare(l.Root)
	refused(t, err, "not_a_directory", l.DataDir)

	l = prepare(t)
	if err := os.Mkdir(l.Fence, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Prepare(l.Root)
	refused(t, err, "not_a_file", l.Fence)
}

// Proves: the directory itself may be a link, and nothing inside it may.
func TestPrepareLinks(t *testing.T) {
	l := prepare(t)
	other := t.TempDir()
	alias := filepath.Join(other, "alias")
	link(t, l.Root, alias)
	got, err := Prepare(alias)
	if err != nil {
		t.Fatal(err)
	}
	if got != l {
		t.Errorf("through a link the layout is %v, want %v", got, l)
	}
	if err := os.Remove(l.DataDir); err != nil {
		t.Fatal(err)
	}
	link(t, other, l.DataDir)
	_, err = Prepare(l.Root)
	refused(t, err, "link_refused", l.DataDir)

	l = prepare(t)
	link(t, filepath.Join(other, "elsewhere.db"), l.ControlDB)
	_, err = Prepare(l.Root)
	refused(t, err, "link_refused", l.ControlDB)
}

// Proves: an open directory is closed when it is empty or already ours, and somebody's other directory is refused untouched.
func TestPrepareOpenDirectory(t *testing.T) {
	mode := func(dir string) fs.FileMode {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	open := func(dir string) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	empty := filepath.Join(t.TempDir(), "lv")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	open(empty)
	if _, err := Prepare(empty); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(empty, "leapview.lock"), "")
	open(empty)
	open(filepath.Join(empty, "data"))
	if _, err := Prepare(empty); err != nil {
		t.Fatal(err)
	}
	if mode(empty) != 0o700 || mode(filepath.Join(empty, "data")) != 0o700 {
		t.Errorf("the data directory stays open")
	}
	home := t.TempDir()
	write(t, filepath.Join(home, "letter.txt"), "x")
	open(home)
	_, err := Prepare(home)
	refused(t, err, "open_directory", home, "0755")
	if got := names(t, home); len(got) != 1 || mode(home) != 0o755 {
		t.Errorf("the refused directory was changed: %v, mode %v", got, mode(home))
	}
}

// Proves: a directory, or a file in it, that belongs to another user is refused by both uids and a way out. As root it is given
// away; otherwise the root directory of the machine is somebody else's already.
func TestPrepareOtherOwner(t *testing.T) {
	uid := os.Geteuid()
	if uid != 0 {
		_, err := Prepare("/")
		refused(t, err, "owner_mismatch", "uid 0", fmt.Sprintf("uid %d", uid), "chown -R")
		return
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	_, err := Prepare(dir)
	refused(t, err, "owner_mismatch", dir, "uid 65534", "uid 0", "chown -R 0 "+dir)
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("the refused directory was changed: %v", got)
	}
	l := prepare(t)
	write(t, l.ControlDB, "x")
	if err := os.Chown(l.ControlDB, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	_, err = Prepare(l.Root)
	refused(t, err, "owner_mismatch", l.ControlDB)
}

// Proves: a directory of our own that does not let us write is refused by name. Root may write anywhere, so as root a process of
// another user is asked, and it is refused the directory that root owns, too.
func TestPrepareNotWritable(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "lv")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		_, err := Prepare(dir)
		refused(t, err, "not_writable", dir)
		return
	}
	const nobody = 65534
	for _, d := range []string{parent, filepath.Dir(parent)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := startProcess(t, "prepare", dir, nobody)
	if want := fmt.Sprintf("owner_mismatch: %s belongs to uid 0, but this process runs as uid %d", dir, nobody); len(h.outcome) < len(want) || h.outcome[:len(want)] != want {
		t.Errorf("root's directory: got %q, want %q", h.outcome, want)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	h = startProcess(t, "prepare", dir, nobody)
	if want := "not_writable: the data directory " + dir; len(h.outcome) < len(want) || h.outcome[:len(want)] != want {
		t.Errorf("read-only directory: got %q, want %q", h.outcome, want)
	}
	h = startProcess(t, "prepare", filepath.Join(parent, "new"), nobody)
	if want := "file_denied: create the data directory"; len(h.outcome) < len(want) || h.outcome[:len(want)] != want {
		t.Errorf("read-only parent: got %q, want %q", h.outcome, want)
	}
}

// Proves: what is made is closed to others whatever the umask says.
func TestUmask(t *testing.T) {
	for _, mask := range []int{0, 0o077} {
		old := syscall.Umask(mask)
		l, err := Prepare(filepath.Join(t.TempDir(), "lv"))
		var k *Lock
		if err == nil {
			if k, err = Acquire(l, "boot", start); err == nil {
				if err = k.Sweep(); err == nil {
					_, err = NewBundles(l).Put(t.Context(), []byte("x"))
				}
			}
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(l.Root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = 0o700
			}
			if info.Mode().Perm() != want {
				t.Errorf("umask %04o: %s has mode %04o", mask, path, info.Mode().Perm())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
