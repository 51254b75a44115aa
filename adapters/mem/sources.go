package mem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// Sources stages files that are held in memory. There are no links in it, and every root holds the same files.
type Sources struct {
	// Files by name relative to the source root. They may be changed between calls, not during one.
	Files map[string][]byte
	// Modified is when the files were written.
	Modified time.Time
	// Dir, when set, is a folder that the staged copies are written to as well: a real engine reads files and not this process's
	// memory. It must exist and belong to the test.
	Dir string
	// MaxFiles and MaxBytes bound one source; 0 means the defaults of the real adapter.
	MaxFiles int
	MaxBytes int64

	mu sync.Mutex
	// staged holds the copies by path. Guarded by mu.
	staged map[string][]byte
}

// Content gives a staged copy's bytes.
func (s *Sources) Content(a ports.Artifact) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.staged[a.Path]
	if !ok {
		return nil, fail.New(fail.Missing, "not_staged", "%s is not staged as %s", a.Name, a.Path)
	}
	return content, nil
}

// Acquire stages every file that the location matches.
func (s *Sources) Acquire(ctx context.Context, run refresh.RunID, root string, source project.Source) ([]ports.Artifact, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(folderName("run id", string(run)), folderName("source", source.Name)); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(root) {
		return nil, fail.New(fail.Invalid, "bad_source_root", "the source root %q is not an absolute path", root)
	}
	names, err := s.match(source)
	if err != nil {
		return nil, err
	}
	if err := source.AcceptCount(len(names)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := path.Join(s.folder(run), source.Name)
	if err := s.remove(folder); err != nil {
		return nil, err
	}
	maxBytes := s.MaxBytes
	if maxBytes == 0 {
		maxBytes = 16 << 30
	}
	var artifacts []ports.Artifact
	var total int64
	for i, name := range names {
		content := s.Files[name]
		if total += int64(len(content)); total > maxBytes {
			return nil, errors.Join(fail.New(fail.Limit, "source_bytes", "source %q: its files have more than %d bytes together, reached at %s (limit source_bytes = %d)", source.Name, maxBytes, name, maxBytes), s.remove(folder))
		}
		if err := source.AcceptBytes(total, name); err != nil {
			return nil, errors.Join(err, s.remove(folder))
		}
		a := ports.Artifact{Name: name, Path: path.Join(folder, fmt.Sprintf("%04d-%s", i, stagedName(name))), Size: int64(len(content)), SHA256: project.DigestOf(content), Modified: s.Modified}
		if err := s.put(a.Path, content); err != nil {
			return nil, errors.Join(err, s.remove(folder))
		}
		artifacts = append(artifacts, a)
	}
	return artifacts, nil
}

// Write is ports.Sources'.
func (s *Sources) Write(ctx context.Context, run refresh.RunID, source project.Source, name string, content []byte) (ports.Artifact, error) {
	if err := ended(ctx); err != nil {
		return ports.Artifact{}, err
	}
	if err := errors.Join(folderName("run id", string(run)), folderName("source", source.Name)); err != nil {
		return ports.Artifact{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := path.Join(s.folder(run), source.Name)
	if err := s.remove(folder); err != nil {
		return ports.Artifact{}, err
	}
	a := ports.Artifact{Name: name, Path: path.Join(folder, stagedName(name)), Size: int64(len(content)), SHA256: project.DigestOf(content)}
	return a, s.put(a.Path, content)
}

// Release forgets what was staged for the run.
func (s *Sources) Release(_ context.Context, run refresh.RunID) error {
	if err := folderName("run id", string(run)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(s.folder(run))
}

// folder is where a run's copies are: in Dir, or below a root that no disk has.
func (s *Sources) folder(run refresh.RunID) string {
	if s.Dir == "" {
		return path.Join("/in-memory", string(run))
	}
	return path.Join(filepath.ToSlash(s.Dir), string(run))
}

// put needs mu.
func (s *Sources) put(to string, content []byte) error {
	if s.staged == nil {
		s.staged = map[string][]byte{}
	}
	s.staged[to] = append([]byte(nil), content...)
	if s.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(path.Dir(to), 0o700); err != nil {
		return fail.New(fail.Internal, "disk_error", "create the staging folder of %s", to).Because(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		return fail.New(fail.Internal, "disk_error", "write the staged copy %s", to).Because(err)
	}
	return nil
}

// remove forgets everything below a folder. It needs mu.
func (s *Sources) remove(folder string) error {
	for p := range s.staged {
		if strings.HasPrefix(p, folder+"/") {
			delete(s.staged, p)
		}
	}
	if s.Dir == "" {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return fail.New(fail.Internal, "disk_error", "remove the staging folder %s", folder).Because(err)
	}
	return nil
}

// match gives the names that the source's location matches, sorted.
func (s *Sources) match(source project.Source) ([]string, error) {
	segments, err := locationSegments(source)
	if err != nil {
		return nil, err
	}
	max := s.MaxFiles
	if max == 0 {
		max = 1000
	}
	location := strings.Join(segments, "/")
	var names []string
	for name := range s.Files {
		if strings.HasPrefix(name, location+"/") {
			return nil, fail.New(fail.Invalid, "not_a_file", "source %q: %s is not a regular file", source.Name, location)
		}
		if matches(segments, strings.Split(name, "/")) {
			names = append(names, name)
		}
	}
	if len(names) > max {
		return nil, fail.New(fail.Limit, "source_files", "source %q: location %q matches more than %d files or folders (limit source_files = %d)", source.Name, source.Location, max, max)
	}
	if len(names) == 0 {
		return nil, fail.New(fail.Missing, "source_missing", "source %q: no file matches %q", source.Name, source.Location)
	}
	sort.Strings(names)
	return names, nil
}

// matches compares segment by segment; a hidden file or folder is matched only by a segment that begins with a dot.
func matches(pattern, name []string) bool {
	if len(pattern) != len(name) {
		return false
	}
	for i := range pattern {
		// The pattern was proved well formed.
		if ok, _ := path.Match(pattern[i], name[i]); !ok || strings.HasPrefix(name[i], ".") && !strings.HasPrefix(pattern[i], ".") {
			return false
		}
	}
	return true
}

// locationSegments gives the segments of a source's location, or refuses it.
func locationSegments(source project.Source) ([]string, error) {
	bad := func(why string) error {
		return fail.New(fail.Invalid, "bad_location", "source %q: location %q %s", source.Name, source.Location, why)
	}
	if source.Location == "" || path.IsAbs(source.Location) || strings.ContainsRune(source.Location, 0) {
		return nil, bad("is no path below the source root")
	}
	var segments []string
	for _, seg := range strings.Split(source.Location, "/") {
		if seg == ".." {
			return nil, fail.New(fail.Denied, "outside_source_root", "source %q: location %q leaves the source root", source.Name, source.Location)
		}
		if _, err := path.Match(seg, ""); err != nil || strings.Contains(seg, "**") || strings.Contains(seg, "[!") {
			return nil, bad("holds a pattern that is not supported")
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

// folderName refuses an id that cannot be the name of one folder.
func folderName(what, s string) error {
	if s == "" || len(s) > 100 || s[0] == '.' || strings.TrimFunc(s, plainRune) != "" {
		return fail.New(fail.Invalid, "bad_segment", "%s %q cannot name a folder", what, s)
	}
	return nil
}

// stagedName keeps a file's name and replaces what an engine would read as a pattern.
func stagedName(name string) string {
	name = path.Base(name)
	return strings.Map(func(r rune) rune {
		if plainRune(r) {
			return r
		}
		return '_'
	}, name[max(0, len(name)-100):])
}

// plainRune tells whether r means nothing special to a glob or an engine.
func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}
