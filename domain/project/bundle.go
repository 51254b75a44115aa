package project

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"leapview/domain/fail"
)

// The bounds of a project bundle. They hold when it is packed and again when it is unpacked, because it may come from anywhere.
const (
	MaxFiles       = 1_000
	MaxFileBytes   = 1 << 20
	MaxBundleBytes = 64 << 20
	MaxPathBytes   = 255
)

// MaxArchiveBytes is the longest archive that Pack can write, and so the longest that anybody reads: the content, and for each file at most
// a header, a long path (itself a header and a block) and the padding of its last block, then the end of the archive.
const MaxArchiveBytes = MaxBundleBytes + MaxFiles*4*tarBlock + 2*tarBlock

const tarBlock = 512

// File is one project file. Its path is relative to the project's folder and slash-separated.
type File struct {
	Path    string
	Content []byte
}

// Pack writes the files as a project bundle: a tar archive that holds their sorted paths and their bytes and nothing else, neither
// times nor owners nor the modes they had. The same files give the same bytes on every machine, whatever their order.
func Pack(files []File) ([]byte, error) {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if err := checkFiles(sorted); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range sorted {
		// The format is fixed because the library would choose by content: a plain header, with an extended one before it for
		// paths that are longer than 100 bytes.
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Size: int64(len(f.Content)), Mode: 0o600, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack project bundle: %w", err)
	}
	return b.Bytes(), nil
}

// Unpack reads what Pack wrote, and refuses whatever Pack would not write byte for byte: a project has one bundle, so its digest
// identifies it.
func Unpack(b []byte) ([]File, error) {
	if len(b) > MaxArchiveBytes {
		return nil, ArchiveTooLarge()
	}
	var files []File
	total := 0
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, notBundle("it is not a complete tar archive").Because(err)
		}
		if h.Typeflag != tar.TypeReg {
			return nil, notBundle("%q is not a regular file", h.Name)
		}
		// The bounds come before the bytes: a header may claim more than the archive holds.
		if len(files) == MaxFiles {
			return nil, tooManyFiles(MaxFiles + 1)
		}
		if err := checkSize(h.Name, h.Size); err != nil {
			return nil, err
		}
		content := make([]byte, h.Size)
		if _, err := io.ReadFull(r, content); err != nil {
			return nil, notBundle("%q is cut short", h.Name).Because(err)
		}
		if total += len(content); total > MaxBundleBytes {
			return nil, ContentTooLarge()
		}
		files = append(files, File{Path: h.Name, Content: content})
	}
	if err := checkFiles(files); err != nil {
		return nil, err
	}
	again, err := Pack(files)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(again, b):
		return files, nil
	case bytes.HasPrefix(b, again):
		return nil, notBundle("%d bytes follow the end of the archive", len(b)-len(again))
	}
	return nil, notBundle("packing its files gives other bytes")
}

// checkFiles proves that the files, in this order, can be a bundle.
func checkFiles(files []File) error {
	if len(files) > MaxFiles {
		return tooManyFiles(len(files))
	}
	total := 0
	folded := make(map[string]string, len(files))
	for i, f := range files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		if err := checkSize(f.Path, int64(len(f.Content))); err != nil {
			return err
		}
		if total += len(f.Content); total > MaxBundleBytes {
			return ContentTooLarge()
		}
		if i > 0 && files[i-1].Path > f.Path {
			return notBundle("%q comes after %q", f.Path, files[i-1].Path)
		}
		// Paths that differ only in case are one file on some machines and two on others.
		fold := strings.ToLower(f.Path)
		if other, ok := folded[fold]; ok {
			return fail.New(fail.Invalid, "bundle_path_clash", "project files %q and %q have the same name on a disk that ignores case", other, f.Path).
				WithFix("rename one of them")
		}
		folded[fold] = f.Path
	}
	return nil
}

// checkPath refuses a path that means something else on another machine, or leaves the project's folder.
func checkPath(p string) error {
	if len(p) > MaxPathBytes {
		return fail.New(fail.Limit, "bundle_path_too_long", "project file path %.40q… has %d bytes (limit path_bytes = %d)", p, len(p), MaxPathBytes).
			WithFix("shorten it")
	}
	why := ""
	switch {
	case p == "":
		why = "it is empty"
	case strings.Trim(p, printable) != "":
		why = "only printable ASCII characters mean the same on every machine"
	case strings.ContainsAny(p, `\:*?"<>|`):
		why = `the characters \ : * ? " < > | cannot be in a file's name everywhere`
	case p[0] == '/':
		why = "it is absolute"
	case path.Clean(p) != p || p == ".":
		why = "it is not in its shortest form"
	case p == ".." || strings.HasPrefix(p, "../"):
		why = "it leaves the project's folder"
	}
	if why != "" {
		return fail.New(fail.Invalid, "bad_bundle_path", "project file path %q is refused: %s", p, why).
			WithFix("use a relative path with / between folders, such as models/flights.sql")
	}
	return nil
}

// printable is every ASCII character from the space to the tilde.
var printable = func() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}()

func checkSize(path string, size int64) error {
	if size < 0 || size > MaxFileBytes {
		return fail.New(fail.Limit, "bundle_file_too_large", "project file %q has %d bytes (limit file_bytes = %d)", path, size, MaxFileBytes).
			WithFix("keep data out of the project's folder: sources are read from the source root")
	}
	return nil
}

func tooManyFiles(n int) error {
	return fail.New(fail.Limit, "bundle_too_many_files", "the project has %d files or more (limit files = %d)", n, MaxFiles).
		WithFix("split it into several workspaces")
}

// ArchiveTooLarge refuses a bundle that is longer than MaxArchiveBytes.
func ArchiveTooLarge() error {
	return fail.New(fail.Limit, "bundle_too_large", "the project bundle is longer than %d bytes (limit archive_bytes = %d)", MaxArchiveBytes, MaxArchiveBytes).
		WithFix("keep data out of the project's folder: sources are read from the source root")
}

// ContentTooLarge refuses files that have more than MaxBundleBytes together.
func ContentTooLarge() error {
	return fail.New(fail.Limit, "bundle_too_large", "the project's files have more than %d bytes together (limit bundle_bytes = %d)", MaxBundleBytes, MaxBundleBytes).
		WithFix("keep data out of the project's folder: sources are read from the source root")
}

func notBundle(format string, args ...any) *fail.Error {
	return fail.New(fail.Invalid, "bad_bundle", "this is not a project bundle: "+format, args...).
		WithFix("pack the project with leapview, which writes every bundle the same way")
}
