package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// Copy is a data file that a new project takes along: From is its absolute path, To its place below the project's folder, or "" when it
// lies there already.
type Copy struct{ From, To string }

// Place says where a new project in dir finds a data file: where it is when that is below dir, else a copy in data/. root is the absolute
// directory that holds it now, and name its path below that.
func Place(dir, file string) (root, name, location string, c Copy, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", "", c, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", "", "", c, err
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, iofs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", "", "", c, fail.New(fail.Missing, "file_missing", "%s is not there", file).WithFix("name a file that exists")
	case err != nil:
		return "", "", "", c, namedError(err, "look at %s", file)
	case !info.Mode().IsRegular():
		return "", "", "", c, fail.New(fail.Invalid, "not_a_file", "%s is not a regular file", file).WithFix("name a file")
	}
	base := filepath.Base(file)
	if strings.ContainsAny(base, "*?[]\\") || strings.ContainsFunc(base, func(r rune) bool { return r < ' ' }) {
		return "", "", "", c, fail.New(fail.Invalid, "file_name", "the name of %q would be read as a pattern", file).WithFix("rename the file")
	}
	c.From = file
	if below, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(below) && !strings.ContainsAny(below, "*?[]\\") {
		return dir, filepath.ToSlash(below), filepath.ToSlash(below), c, nil
	}
	c.To = path.Join("data", base)
	return filepath.Dir(file), base, c.To, c, nil
}

// Fresh refuses a folder that holds a project already, or any file that would be written.
func Fresh(dir string, names []string) error {
	for _, name := range append([]string{projectFile}, names...) {
		_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			return fail.New(fail.Conflict, "file_exists", "%s exists already, and nothing of yours is overwritten", filepath.Join(dir, name)).WithFix("name another folder")
		}
		if !errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return namedError(err, "look at %s", filepath.Join(dir, name))
		}
	}
	return nil
}

// WriteProject writes the files of a new project and copies its data; nothing that exists is overwritten. The file that makes the folder a
// project comes last, so that half of one is none.
func WriteProject(ctx context.Context, dir string, files []project.File, copies []Copy) error {
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	for _, c := range copies {
		if c.To != "" {
			names = append(names, c.To)
		}
	}
	if err := Fresh(dir, names); err != nil {
		return err
	}
	for _, c := range copies {
		if c.To == "" {
			continue
		}
		if err := copyFile(ctx, c.From, filepath.Join(dir, filepath.FromSlash(c.To))); err != nil {
			return err
		}
	}
	var last *project.File
	for i, f := range files {
		if f.Path == projectFile {
			last = &files[i]
			continue
		}
		if err := writeNew(dir, f); err != nil {
			return err
		}
	}
	if last != nil {
		return writeNew(dir, *last)
	}
	return nil
}

func writeNew(dir string, f project.File) error {
	to := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return namedError(err, "create the folder of %s", to)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return namedError(err, "create %s", to)
	}
	_, err = out.Write(f.Content)
	if err := errors.Join(err, out.Close()); err != nil {
		return namedError(err, "write %s", to)
	}
	return nil
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return namedError(err, "open %s", from)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return namedError(err, "create the folder of %s", to)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return namedError(err, "create %s", to)
	}
	_, err = pour(ctx, out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil && !errors.Is(err, io.EOF) {
		_ = os.Remove(to)
		return unlessClassified(err, namedError, "copy %s", from)
	}
	return nil
}
