package fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
)

// sealers is how many files are hashed and synced at a time: one waits for the disk while the other computes.
const sealers = 2

// chunk is how much is read between two looks at the context.
const chunk = 1 << 20

// DataFiles makes the lake's Parquet files durable and proves that they are there. It opens nothing outside the data folder.
type DataFiles struct {
	dir string
	// catalogDir is the folder of the lake's catalog: its write-ahead log is a new file after each checkpoint.
	catalogDir string
	sync       func(*os.File) error
}

// NewDataFiles looks after the layout's data folder. sync makes one opened file or folder durable: (*os.File).Sync, or a test's layer
// over it that remembers the order.
func NewDataFiles(l Layout, sync func(*os.File) error) *DataFiles {
	return &DataFiles{dir: l.DataDir, catalogDir: filepath.Dir(l.Catalog), sync: sync}
}

// Seal hashes and syncs each file, then syncs each folder above the files once, up to and including the data folder: the
// engine's commit has done neither. The files' sizes and digests come in the order of paths.
func (d *DataFiles) Seal(ctx context.Context, paths []string) ([]refresh.File, error) {
	root, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := make([]refresh.File, len(paths))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(sealers)
	for i, p := range paths {
		group.Go(func() error {
			f, err := d.seal(groupCtx, root, p)
			files[i] = f
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, folder := range foldersOf(paths) {
		if err := alive(ctx); err != nil {
			return nil, err
		}
		if err := d.sealFolder(root, folder); err != nil {
			return nil, err
		}
	}
	// Without the catalog's own entry the commit that names these files would be lost with it.
	return files, syncDir(d.catalogDir, d.sync)
}

// Prove checks that each file is there with its recorded size.
func (d *DataFiles) Prove(ctx context.Context, files []refresh.File) error {
	root, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := alive(ctx); err != nil {
			return err
		}
		if err := local(f.Path); err != nil {
			return err
		}
		info, err := root.Lstat(filepath.FromSlash(f.Path))
		if err != nil {
			return d.lost(f.Path, err)
		}
		if !info.Mode().IsRegular() {
			return d.irregular(f.Path)
		}
		if info.Size() != f.Size {
			return fail.New(fail.Corrupt, "data_file_size", "data file %s has %d bytes, but %d were recorded when it was committed", f.Path, info.Size(), f.Size).
				WithFix("restore the data directory from a copy, or the file alone if it is the same file")
		}
	}
	return nil
}

func (d *DataFiles) open(ctx context.Context) (*os.Root, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, storeError(err, "open the data folder %s", d.dir)
	}
	return root, nil
}

// seal hashes and syncs one file.
func (d *DataFiles) seal(ctx context.Context, root *os.Root, name string) (refresh.File, error) {
	if err := local(name); err != nil {
		return refresh.File{}, err
	}
	f, err := root.OpenFile(filepath.FromSlash(name), openToRead, 0)
	if err != nil {
		return refresh.File{}, d.lost(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return refresh.File{}, storeError(err, "look at the data file %s", name)
	}
	if !info.Mode().IsRegular() {
		return refresh.File{}, d.irregular(name)
	}
	hash := sha256.New()
	size, err := pour(ctx, hash, f)
	if err != nil {
		return refresh.File{}, unlessClassified(err, storeError, "read the data file %s", name)
	}
	if size == 0 {
		return refresh.File{}, fail.New(fail.Corrupt, "data_file_empty", "data file %s is empty, so its writing did not end", name).
			WithFix("check that the disk is not full, then refresh again")
	}
	if err := d.sync(f); err != nil {
		return refresh.File{}, syncError(err, name)
	}
	return refresh.File{Path: name, Size: size, SHA256: project.Digest(hex.EncodeToString(hash.Sum(nil)))}, nil
}

func (d *DataFiles) sealFolder(root *os.Root, folder string) error {
	f, err := root.Open(filepath.FromSlash(folder))
	if err != nil {
		return storeError(err, "open the folder %s of the data folder", folder)
	}
	defer f.Close()
	if err := d.sync(f); err != nil {
		return syncError(err, f.Name())
	}
	return nil
}

// lost classifies a data file that cannot be opened.
func (d *DataFiles) lost(name string, err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return fail.New(fail.Corrupt, "data_file_missing", "data file %s is not in %s, although the lake needs it", name, d.dir).
			WithFix("restore the data directory from a copy, or the file alone if it is the same file").Because(err)
	}
	return storeError(err, "open the data file %s", name)
}

func (d *DataFiles) irregular(name string) error {
	return fail.New(fail.Corrupt, "data_file_irregular", "data file %s in %s is not a regular file, so the engine did not write it", name, d.dir).
		WithFix("move it away and restore the file from a backup")
}

// local refuses a path that does not stay in the data folder. Paths come from the lake's catalog, so a bad one is damage.
func local(name string) error {
	if !iofs.ValidPath(name) || name == "." {
		return fail.New(fail.Corrupt, "bad_data_path", "%q is not the path of a file in the data folder", name)
	}
	return nil
}

// foldersOf lists every folder above the files, the deepest first and the data folder last.
func foldersOf(paths []string) []string {
	seen := map[string]bool{".": true}
	for _, p := range paths {
		for dir := path.Dir(p); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	var folders []string
	for dir := range seen {
		if dir != "." {
			folders = append(folders, dir)
		}
	}
	sort.Slice(folders, func(i, j int) bool {
		if a, b := strings.Count(folders[i], "/"), strings.Count(folders[j], "/"); a != b {
			return a > b
		}
		return folders[i] < folders[j]
	})
	return append(folders, ".")
}

// pour copies until the end, looking at the context after each chunk.
func pour(ctx context.Context, to io.Writer, from io.Reader) (int64, error) {
	buf := make([]byte, chunk)
	var total int64
	for {
		if err := alive(ctx); err != nil {
			return total, err
		}
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// unlessClassified classifies err, unless it already is.
func unlessClassified(err error, classify func(error, string, ...any) *fail.Error, format string, args ...any) error {
	var c fail.Classified
	if errors.As(err, &c) {
		return err
	}
	return classify(err, format, args...)
}
