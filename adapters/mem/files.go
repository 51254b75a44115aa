package mem

import (
	"bytes"
	"context"
	"io/fs"
	"sync"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
)

// Disk is what the twins keep files on: it lives as long as the test and so outlives any adapter opened over it. Paths are
// relative and slash-separated. Its zero value is an empty disk.
type Disk struct {
	mu sync.Mutex
	// files is guarded by mu.
	files map[string]diskFile
}

type diskFile struct {
	content []byte
	synced  bool
}

// Write puts a file there, whole. It is not durable until it is synced.
func (d *Disk) Write(path string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write(path, content, false)
}

// write needs mu.
func (d *Disk) write(path string, content []byte, synced bool) {
	if d.files == nil {
		d.files = map[string]diskFile{}
	}
	d.files[path] = diskFile{bytes.Clone(content), synced}
}

// Read gives a file's content.
func (d *Disk) Read(path string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[path]
	return bytes.Clone(f.content), ok
}

// Remove takes a file away; one that is not there stays so.
func (d *Disk) Remove(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, path)
}

// Synced tells whether the file is there and durable.
func (d *Disk) Synced(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[path].synced
}

// DataFiles seals and proves the files of a Disk, where the lake's twin puts them.
type DataFiles struct {
	Disk *Disk
}

// Seal marks each file as synced and gives its size and digest.
func (f DataFiles) Seal(ctx context.Context, paths []string) ([]refresh.File, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	f.Disk.mu.Lock()
	defer f.Disk.mu.Unlock()
	files := make([]refresh.File, len(paths))
	for i, p := range paths {
		file, err := f.file(p)
		if err != nil {
			return nil, err
		}
		if len(file.content) == 0 {
			return nil, fail.New(fail.Corrupt, "data_file_empty", "data file %s is empty, so its writing did not end", p)
		}
		files[i] = refresh.File{Path: p, Size: int64(len(file.content)), SHA256: project.DigestOf(file.content)}
	}
	for _, p := range paths {
		f.Disk.files[p] = diskFile{f.Disk.files[p].content, true}
	}
	return files, nil
}

// Prove checks that each file is there with its recorded size.
func (f DataFiles) Prove(ctx context.Context, files []refresh.File) error {
	if err := ended(ctx); err != nil {
		return err
	}
	f.Disk.mu.Lock()
	defer f.Disk.mu.Unlock()
	for _, want := range files {
		file, err := f.file(want.Path)
		if err != nil {
			return err
		}
		if int64(len(file.content)) != want.Size {
			return fail.New(fail.Corrupt, "data_file_size", "data file %s has %d bytes, but %d were recorded when it was committed", want.Path, len(file.content), want.Size)
		}
	}
	return nil
}

// file needs the disk's mu.
func (f DataFiles) file(path string) (diskFile, error) {
	if !fs.ValidPath(path) || path == "." {
		return diskFile{}, fail.New(fail.Corrupt, "bad_data_path", "%q is not the path of a file in the data folder", path)
	}
	file, ok := f.Disk.files[path]
	if !ok {
		return diskFile{}, fail.New(fail.Corrupt, "data_file_missing", "data file %s is not there, although the lake needs it", path)
	}
	return file, nil
}
