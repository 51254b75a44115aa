package fs

import (
	"context"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"leapview/domain/fail"
)

// The rhythm of watching: a change is told once nothing changed any more for one look, so that an editor's several steps of saving are one.
const watchInterval = 150 * time.Millisecond

// maxWatched bounds the files of a watched folder.
const maxWatched = 20_000

// Watch calls changed whenever a file below dir was added, removed or written, until ctx ends. Hidden files and folders, and what is below
// skip, do not count. It looks again and again instead of asking the system to be told: that works on every disk, and is cheap for a
// folder that people edit.
func Watch(ctx context.Context, dir, skip string, changed func()) error {
	last, err := fingerprint(dir, skip)
	if err != nil {
		return err
	}
	told := last
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := fingerprint(dir, skip)
		if err != nil {
			return err
		}
		if now == last && now != told {
			told = now
			changed()
		}
		last = now
	}
}

// fingerprint is a hash over the names, sizes and times of what is below dir.
func fingerprint(dir, skip string) (uint64, error) {
	h := fnv.New64a()
	n := 0
	var b [16]byte
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			// What goes away while it is looked at has changed.
			return nil
		}
		if path != dir && strings.HasPrefix(e.Name(), ".") || path == skip {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if n++; n > maxWatched {
			return fail.New(fail.Limit, "watched_files", "%s holds more than %d files (limit watched_files)", dir, maxWatched).WithFix("keep the project in a folder of its own")
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return nil
		}
		_, _ = h.Write([]byte(path))
		for i, x := range []int64{info.Size(), info.ModTime().UnixNano()} {
			for j := range 8 {
				b[8*i+j] = byte(x >> (8 * j))
			}
		}
		_, _ = h.Write(b[:])
		return nil
	})
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return 0, unlessClassified(err, namedError, "watch the folder %s", dir)
	}
	return h.Sum64(), nil
}
