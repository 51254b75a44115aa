package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"leapview/domain/fail"
)

// Layout is where everything in a data directory is. All paths are absolute.
type Layout struct {
	// Root is the data directory itself.
	Root string
	// ControlDB is the control plane's SQLite file, and Catalog the lake's catalog. This package never opens them.
	ControlDB string
	Catalog   string
	// DataDir holds the lake's Parquet files and nothing else.
	DataDir string
	// Artifacts holds project bundles by digest.
	Artifacts string
	// Runtime is emptied at start; Staged and Exports are in it.
	Runtime string
	Staged  string
	Exports string
	// TempRoot holds one spill folder per process.
	TempRoot string
	// Fence is the watermark's file, LockFile the node's lock, Socket the running node's control socket.
	Fence    string
	LockFile string
	Socket   string
}

// At is the layout of a data directory, without touching the disk.
func At(dir string) (Layout, error) {
	if dir == "" {
		return Layout{}, fail.New(fail.Invalid, "no_data_directory", "the data directory's path is empty").WithFix("name a directory")
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, namedError(err, "find the data directory %s", dir)
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	return Layout{Root: root, ControlDB: in("leapview.db"), Catalog: in("ducklake", "catalog.duckdb"), DataDir: in("data"),
		Artifacts: in("artifacts"), Runtime: in("runtime"), Staged: in("runtime", "staged"), Exports: in("runtime", "exports"),
		TempRoot: in("tmp", "duckdb"), Fence: in("fence"), LockFile: in("leapview.lock"), Socket: in("leapview.sock")}, nil
}

// folders are the directories below the root that stay, parents first. Those that a start empties are made by Sweep, under the lock: made
// here, they would come and go under another process's start.
func (l Layout) folders() []string {
	return []string{filepath.Dir(l.Catalog), l.DataDir, l.Artifacts, l.Runtime, filepath.Dir(l.TempRoot), l.TempRoot}
}

// Temp is the spill folder of the process with this boot id.
func (l Layout) Temp(boot string) string { return filepath.Join(l.TempRoot, boot) }

// HasCatalog tells whether a lake was begun here.
func (l Layout) HasCatalog() (bool, error) {
	_, err := os.Lstat(l.Catalog)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, storeError(err, "look for the catalog %s", l.Catalog)
	}
	return true, nil
}

// Prepare makes the data directory and the folders in it that stay, 0700 each, and gives the layout. Twice is once, also at the same time.
//
// The directory itself may be a link, which is resolved once, here; inside it, links are refused. A directory that others can
// read is tightened when it is empty or already a data directory, and refused otherwise: it may be somebody's home. Whatever
// belongs to another user is refused, even when we are root, because files that root leaves behind lock the owner out.
func Prepare(dir string) (Layout, error) {
	l, err := At(dir)
	if err != nil {
		return Layout{}, err
	}
	_, err = os.Stat(l.Root)
	created := errors.Is(err, iofs.ErrNotExist)
	if created {
		if err := os.MkdirAll(l.Root, 0o700); err != nil {
			return Layout{}, namedError(err, "create the data directory %s", l.Root)
		}
	} else if err != nil {
		return Layout{}, namedError(err, "look at the data directory %s", l.Root)
	}
	real, err := filepath.EvalSymlinks(l.Root)
	if err != nil {
		return Layout{}, namedError(err, "resolve the data directory %s", l.Root)
	}
	if l, err = At(real); err != nil {
		return Layout{}, err
	}
	if err := l.claimRoot(); err != nil {
		return Layout{}, err
	}
	for _, folder := range l.folders() {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, iofs.ErrExist) {
			return Layout{}, storeError(err, "create the folder %s", folder)
		}
		info, err := os.Lstat(folder)
		if err != nil {
			return Layout{}, storeError(err, "look at the folder %s", folder)
		}
		if err := ours(folder, info, fail.Unavailable); err != nil {
			return Layout{}, err
		}
		if !info.IsDir() {
			return Layout{}, notADirectory(folder)
		}
		if err := tighten(folder, info); err != nil {
			return Layout{}, err
		}
	}
	// A file that another user left, for example root in one careless start, is named here rather than by a driver's riddle.
	for _, file := range []string{l.ControlDB, l.ControlDB + "-wal", l.ControlDB + "-shm", l.Catalog, l.Catalog + ".wal", l.Fence, l.LockFile} {
		info, err := os.Lstat(file)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Layout{}, storeError(err, "look at the file %s", file)
		}
		if err := ours(file, info, fail.Unavailable); err != nil {
			return Layout{}, err
		}
		if !info.Mode().IsRegular() {
			return Layout{}, fail.New(fail.Invalid, "not_a_file", "%s is not a regular file, so it is not ours", file).WithFix("move it away")
		}
	}
	if err := syncDir(l.Root, (*os.File).Sync); err != nil {
		return Layout{}, err
	}
	if created {
		if err := syncDir(filepath.Dir(l.Root), (*os.File).Sync); err != nil {
			return Layout{}, err
		}
	}
	return l, nil
}

// claimRoot proves that the existing root can be our data directory.
func (l Layout) claimRoot() error {
	info, err := os.Lstat(l.Root)
	if err != nil {
		return namedError(err, "look at the data directory %s", l.Root)
	}
	if !info.IsDir() {
		return notADirectory(l.Root)
	}
	if err := ours(l.Root, info, fail.Denied); err != nil {
		return err
	}
	if err := unix.Access(l.Root, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return fail.New(fail.Denied, "not_writable", "the data directory %s cannot be read and written by uid %d", l.Root, os.Geteuid()).
			WithFix("chmod 0700 %s, and mount its disk for writing", l.Root).Because(err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(l.Root)
	if err != nil {
		return namedError(err, "list the data directory %s", l.Root)
	}
	known := len(entries) == 0
	for _, e := range entries {
		known = known || e.Name() == filepath.Base(l.LockFile)
	}
	if !known {
		return fail.New(fail.Invalid, "open_directory", "%s is open to other users (mode %04o) and holds files that are not a data directory's", l.Root, info.Mode().Perm()).
			WithFix("name an empty directory, or chmod 0700 %s if it is meant", l.Root)
	}
	return tighten(l.Root, info)
}

// ours refuses what is a link or belongs to another user. foreign is the kind of the latter: the data directory itself was named by
// whoever starts the process, what is inside it was not.
func ours(path string, info os.FileInfo, foreign fail.Kind) error {
	if info.Mode()&os.ModeSymlink != 0 {
		return fail.New(fail.Invalid, "link_refused", "%s is a link; inside the data directory links are not followed", path).
			WithFix("replace it by what it points to, or mount the other disk there")
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fail.New(fail.Internal, "no_owner", "the system does not tell who owns %s", path)
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return fail.New(foreign, "owner_mismatch", "%s belongs to uid %d, but this process runs as uid %d", path, st.Uid, uid).
			WithFix("run it as uid %d, or give the files to this one: chown -R %d %s", st.Uid, uid, path)
	}
	return nil
}

// tighten closes a directory of ours to other users.
func tighten(path string, info os.FileInfo) error {
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return storeError(err, "close %s to other users", path)
	}
	return nil
}

func notADirectory(path string) error {
	return fail.New(fail.Invalid, "not_a_directory", "%s is not a directory", path).WithFix("name another path, or move the file away")
}
