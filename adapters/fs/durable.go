package fs

import (
	"os"
	"path/filepath"
)

// unfinished ends the name of a file that is still being written. A crash may leave one; Sweep removes it.
const unfinished = ".new"

// writeDurably makes path hold content, all of it or what it held before, and returns when a power cut can no longer change
// that. The caller lets one writer at a time into the directory. sync is (*os.File).Sync but in tests.
func writeDurably(path string, content []byte, sync func(*os.File) error) error {
	temp := path + unfinished
	if err := writeFile(temp, content, sync); err != nil {
		// The failed write is the error to report; a leftover is removed at the next start if it cannot be now.
		_ = os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return storeError(err, "put %s in place", path)
	}
	return syncDir(filepath.Dir(path), sync)
}

// writeFile writes a file and syncs it, but not the folder that names it.
func writeFile(path string, content []byte, sync func(*os.File) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return storeError(err, "create %s", path)
	}
	defer func() {
		if e := f.Close(); e != nil && err == nil {
			err = storeError(e, "close %s", path)
		}
	}()
	if _, err := f.Write(content); err != nil {
		return storeError(err, "write %s", path)
	}
	if err := sync(f); err != nil {
		return syncError(err, path)
	}
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(path string, sync func(*os.File) error) error {
	d, err := os.Open(path)
	if err != nil {
		return storeError(err, "open the folder %s", path)
	}
	defer d.Close()
	if err := sync(d); err != nil {
		return syncError(err, path)
	}
	return nil
}
