package fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// openToRead does not wait for a pipe's other end, should a file become one between looking and opening.
const openToRead = os.O_RDONLY | syscall.O_NONBLOCK

// SourcesOptions bound what one source may bring in.
type SourcesOptions struct {
	MaxFiles int
	MaxBytes int64
}

// Sources copies declared source files into runtime/staged/RUN/SOURCE/, where the engine may read them.
//
// A location is matched segment by segment: `*`, `?` and `[…]` never match a slash, and match a hidden file only when the
// segment begins with a dot. A match that is a folder is not a file and is left out; any other match that is not a regular file
// is refused, and so is one that leaves the root through a link. Links that stay below the root are followed.
type Sources struct {
	staged string
	bounds SourcesOptions
}

// NewSources stages into the layout's folder.
func NewSources(l Layout, o SourcesOptions) *Sources {
	return &Sources{staged: l.Staged, bounds: o}
}

// Acquire copies every file that the location matches. What the run staged for the same source before is replaced, and a
// failure leaves nothing of it.
func (s *Sources) Acquire(ctx context.Context, run refresh.RunID, root string, source project.Source) ([]ports.Artifact, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(segment("run id", string(run)), segment("source", source.Name)); err != nil {
		return nil, err
	}
	segments, err := splitLocation(source)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(root) {
		return nil, fail.New(fail.Invalid, "bad_source_root", "the source root %q is not an absolute path", root).WithFix("deploy with an absolute source root")
	}
	dir, err := openRoot(root)
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fail.New(fail.Missing, "source_root_missing", "source %q: the source root %s is not a directory", source.Name, root).
			WithFix("create it, or deploy with another source root").Because(err)
	}
	if err != nil {
		return nil, namedError(err, "source %q: open the source root %s", source.Name, root)
	}
	defer dir.Close()
	m := matcher{ctx: ctx, root: dir, source: source, max: s.bounds.MaxFiles}
	names, err := m.match(segments)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fail.New(fail.Missing, "source_missing", "source %q: no file matches %q below the source root %s", source.Name, source.Location, root).
			WithFix("put the file there, or correct the location in %s", source.At.File)
	}
	if err := source.AcceptCount(len(names)); err != nil {
		return nil, err
	}
	target := filepath.Join(s.staged, string(run), source.Name)
	if err := os.RemoveAll(target); err != nil {
		return nil, storeError(err, "remove what was staged in %s", target)
	}
	if err := os.MkdirAll(target, 0o700); err != nil {
		return nil, storeError(err, "create the staging folder %s", target)
	}
	var artifacts []ports.Artifact
	left := s.bounds.MaxBytes
	for i, name := range names {
		a, err := s.stage(ctx, dir, source, name, filepath.Join(target, fmt.Sprintf("%04d-%s", i, stagedName(name))), left)
		if err != nil {
			// The failure is what the caller must hear of; Release removes what stays.
			_ = os.RemoveAll(target)
			return nil, err
		}
		left -= a.Size
		artifacts = append(artifacts, a)
	}
	return artifacts, nil
}

// Write is ports.Sources'.
func (s *Sources) Write(ctx context.Context, run refresh.RunID, source project.Source, name string, content []byte) (ports.Artifact, error) {
	if err := alive(ctx); err != nil {
		return ports.Artifact{}, err
	}
	if err := errors.Join(segment("run id", string(run)), segment("source", source.Name)); err != nil {
		return ports.Artifact{}, err
	}
	dir := filepath.Join(s.staged, string(run), source.Name)
	if err := os.RemoveAll(dir); err != nil {
		return ports.Artifact{}, storeError(err, "remove what was staged in %s", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ports.Artifact{}, storeError(err, "create the staging folder %s", dir)
	}
	target := filepath.Join(dir, stagedName(name))
	if err := os.WriteFile(target, content, 0o600); err != nil {
		return ports.Artifact{}, storeError(err, "write the staged file %s", target)
	}
	return ports.Artifact{Name: name, Path: target, Size: int64(len(content)), SHA256: project.DigestOf(content)}, nil
}

// Release removes what was staged for the run. It does so under an ended context too: leaving the files would only fill the disk.
func (s *Sources) Release(_ context.Context, run refresh.RunID) error {
	if err := segment("run id", string(run)); err != nil {
		return err
	}
	target := filepath.Join(s.staged, string(run))
	if err := os.RemoveAll(target); err != nil {
		return storeError(err, "remove the staging folder %s", target)
	}
	return nil
}

// stage copies one file and proves that it stayed the same meanwhile. left is what the node's bound on the source still allows.
func (s *Sources) stage(ctx context.Context, root *os.Root, of project.Source, name, target string, left int64) (ports.Artifact, error) {
	source := of.Name
	changed := func(how string) error {
		return fail.New(fail.Conflict, "source_changed", "source %q: %s %s while it was copied, so it is not finalized", source, name, how).
			WithFix("write source files under another name and rename them when they are complete, then refresh again")
	}
	if err := alive(ctx); err != nil {
		return ports.Artifact{}, err
	}
	in, err := root.OpenFile(filepath.FromSlash(name), openToRead, 0)
	if errors.Is(err, iofs.ErrNotExist) {
		return ports.Artifact{}, changed("went away")
	}
	if err != nil {
		return ports.Artifact{}, namedError(err, "source %q: open %s", source, name)
	}
	defer in.Close()
	before, err := in.Stat()
	if err != nil {
		return ports.Artifact{}, namedError(err, "source %q: look at %s", source, name)
	}
	if !before.Mode().IsRegular() {
		return ports.Artifact{}, irregular(source, name)
	}
	if before.Size() > left {
		return ports.Artifact{}, fail.New(fail.Limit, "source_bytes", "source %q: its files have more than %d bytes together, reached at %s (limit source_bytes = %d)", source, s.bounds.MaxBytes, name, s.bounds.MaxBytes).
			WithFix("narrow its location, split it into several sources, or raise --source-bytes of what refreshes")
	}
	if err := of.AcceptBytes(s.bounds.MaxBytes-left+before.Size(), name); err != nil {
		return ports.Artifact{}, err
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ports.Artifact{}, storeError(err, "create the staged copy %s", target)
	}
	hash := sha256.New()
	// One byte more than expected is enough to see that the file grew.
	size, err := pour(ctx, io.MultiWriter(hash, copyWriter{out}), io.LimitReader(in, before.Size()+1))
	if e := out.Close(); err == nil && e != nil {
		err = storeError(e, "close the staged copy %s", target)
	}
	if err != nil {
		return ports.Artifact{}, unlessClassified(err, namedError, "source %q: read %s", source, name)
	}
	after, err := in.Stat()
	if err != nil {
		return ports.Artifact{}, namedError(err, "source %q: look at %s again", source, name)
	}
	named, err := root.Stat(filepath.FromSlash(name))
	if errors.Is(err, iofs.ErrNotExist) {
		return ports.Artifact{}, changed("went away")
	}
	if err != nil {
		return ports.Artifact{}, namedError(err, "source %q: look at %s again", source, name)
	}
	if !os.SameFile(before, named) {
		return ports.Artifact{}, changed("was replaced")
	}
	if size != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return ports.Artifact{}, changed("was written")
	}
	return ports.Artifact{Name: name, Path: target, Size: size, SHA256: project.Digest(hex.EncodeToString(hash.Sum(nil))), Modified: before.ModTime()}, nil
}

// copyWriter writes a staged copy. Its errors are classified here, where they can be told from those of reading the source.
type copyWriter struct{ file *os.File }

func (w copyWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	if err != nil {
		return n, storeError(err, "write the staged copy %s", w.file.Name())
	}
	return n, nil
}

// stagedName keeps the end of a file's name, with its extension, and replaces what the engine would read as a pattern.
func stagedName(name string) string {
	b := []byte(path.Base(name))
	if len(b) > 100 {
		b = b[len(b)-100:]
	}
	for i := range b {
		if !plain(b[i]) {
			b[i] = '_'
		}
	}
	return string(b)
}

// openRoot opens a directory to look below it only. What is there and no directory is syscall.ENOTDIR, which the library does not
// tell.
func openRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &iofs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	return os.OpenRoot(dir)
}

// splitLocation gives the segments of a source's location, or refuses it.
func splitLocation(source project.Source) ([]string, error) {
	bad := func(why string) error {
		return fail.New(fail.Invalid, "bad_location", "source %q: location %q %s", source.Name, source.Location, why).
			WithFix("write a path below the source root in %s, for example flights/flights-*.csv.gz", source.At)
	}
	if source.Location == "" {
		return nil, bad("is empty")
	}
	if path.IsAbs(source.Location) {
		return nil, bad("is absolute")
	}
	if strings.ContainsRune(source.Location, 0) {
		return nil, bad("holds a NUL byte")
	}
	var segments []string
	for _, seg := range strings.Split(source.Location, "/") {
		if seg == ".." {
			return nil, fail.New(fail.Denied, "outside_source_root", "source %q: location %q leaves the source root", source.Name, source.Location).
				WithFix("deploy with a source root that holds the file")
		}
		if strings.Contains(seg, "**") {
			return nil, bad("uses **, which is not supported: name each folder level by *")
		}
		if strings.Contains(seg, "[!") {
			return nil, bad("uses [!…], which is not supported: write [^…] for any other character")
		}
		if _, err := path.Match(seg, ""); err != nil {
			return nil, bad("holds a pattern that does not end")
		}
		if seg != "" && seg != "." {
			segments = append(segments, seg)
		}
	}
	if len(segments) == 0 {
		return nil, bad("names no file")
	}
	return segments, nil
}

// matcher finds the files of one source.
type matcher struct {
	ctx    context.Context
	root   *os.Root
	source project.Source
	max    int
}

// match gives the regular files that the segments match, sorted.
func (m matcher) match(segments []string) ([]string, error) {
	names := []string{"."}
	for i, seg := range segments {
		var next []string
		for _, dir := range names {
			found, err := m.level(dir, seg, i == len(segments)-1, m.max-len(next))
			if err != nil {
				return nil, err
			}
			next = append(next, found...)
		}
		names = next
	}
	sort.Strings(names)
	return names, nil
}

// level gives what one segment matches in one folder: files when it is the last segment, folders otherwise; at most max.
func (m matcher) level(dir, seg string, last bool, max int) ([]string, error) {
	if !strings.ContainsAny(seg, `*?[\`) {
		name := path.Join(dir, seg)
		wanted, err := m.wanted(name, last, false)
		if err != nil || !wanted {
			return nil, err
		}
		return m.bounded([]string{name}, max)
	}
	d, err := m.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil, m.refused(dir, err)
	}
	defer d.Close()
	var found []string
	for {
		if err := alive(m.ctx); err != nil {
			return nil, err
		}
		// A folder may hold millions of names that do not match, so it is read piece by piece.
		entries, err := d.ReadDir(256)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, namedError(err, "source %q: list the folder %s", m.source.Name, dir)
		}
		for _, e := range entries {
			// The pattern was proved well formed.
			if ok, _ := path.Match(seg, e.Name()); !ok || e.Name()[0] == '.' && seg[0] != '.' {
				continue
			}
			name := path.Join(dir, e.Name())
			wanted, err := m.wanted(name, last, true)
			if err != nil {
				return nil, err
			}
			if !wanted {
				continue
			}
			if found, err = m.bounded(append(found, name), max); err != nil {
				return nil, err
			}
		}
	}
}

// wanted tells whether name is a regular file, or a folder when more segments follow. listed says that a folder named it.
func (m matcher) wanted(name string, last, listed bool) (bool, error) {
	info, err := m.root.Stat(filepath.FromSlash(name))
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if listed {
			return false, fail.New(fail.Conflict, "source_changed", "source %q: %s is a link to nothing, or went away while it was looked for", m.source.Name, name).
				WithFix("remove the link, or refresh again")
		}
		return false, nil
	}
	if err != nil {
		return false, m.refused(name, err)
	}
	if !last {
		return info.IsDir(), nil
	}
	if info.Mode().IsRegular() {
		return true, nil
	}
	if info.IsDir() && listed {
		return false, nil
	}
	return false, irregular(m.source.Name, name)
}

// bounded refuses more names than max.
func (m matcher) bounded(names []string, max int) ([]string, error) {
	if len(names) > max {
		return nil, fail.New(fail.Limit, "source_files", "source %q: location %q matches more than %d files or folders (limit source_files = %d)", m.source.Name, m.source.Location, m.max, m.max).
			WithFix("narrow its location, split it into several sources, or raise --source-files of what refreshes")
	}
	return names, nil
}

// refused classifies a name that the root did not open.
func (m matcher) refused(name string, err error) error {
	// The library keeps its error for an escape to itself, but gives it for the parent of any root.
	var escape, got *iofs.PathError
	if _, parent := m.root.Lstat(".."); errors.As(parent, &escape) && errors.As(err, &got) && got.Err == escape.Err {
		return fail.New(fail.Denied, "outside_source_root", "source %q: %s leads out of the source root %s through a link", m.source.Name, name, m.root.Name()).
			WithFix("copy the file below the source root, or deploy with a source root that holds it")
	}
	return namedError(err, "source %q: look at %s", m.source.Name, name)
}

func irregular(source, name string) error {
	return fail.New(fail.Invalid, "not_a_file", "source %q: %s is not a regular file", source, name).WithFix("name files only")
}
