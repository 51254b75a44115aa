package fs

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"leapview/domain/fail"
)

// Holder is what the lock file says of the process that holds the data directory. It is for people: the kernel's lock decides,
// so what a dead process left in the file means nothing.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
	// Boot is the process's own random id; its spill folder is named by it.
	Boot string `json:"boot"`
}

// Lock is the exclusive hold of a data directory. It ends with Release, or with the process, however that ends.
type Lock struct {
	layout Layout
	boot   string

	mu sync.Mutex
	// file carries the kernel's lock; nil once released. Guarded by mu.
	file *os.File
}

// Acquire takes the data directory for this process, without waiting. When another process holds it, the conflict names that
// process. boot is this process's random id and started when it began.
func Acquire(l Layout, boot string, started time.Time) (*Lock, error) {
	if err := segment("boot id", boot); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, storeError(err, "find this host's name")
	}
	// The file is never removed: a second process could then lock a new file while the first still holds the old one.
	f, err := os.OpenFile(l.LockFile, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, storeError(err, "open the lock %s", l.LockFile)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = locked(l, f)
	} else if err != nil {
		err = storeError(err, "lock %s", l.LockFile)
	} else {
		err = announce(f, Holder{PID: os.Getpid(), Host: host, Started: started.UTC(), Boot: boot})
	}
	if err != nil {
		// Closing ends the kernel's lock too, if we have it.
		_ = f.Close()
		return nil, err
	}
	return &Lock{layout: l, boot: boot, file: f}, nil
}

// locked says who holds the directory.
func locked(l Layout, f *os.File) error {
	const fix = "stop that process first, or name another data directory"
	var h Holder
	// The holder writes its name after it has the lock, so for a moment there may be none, or a dead process's.
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID == 0 {
		return fail.New(fail.Conflict, "locked", "the data directory %s is held by another process", l.Root).WithFix(fix)
	}
	return fail.New(fail.Conflict, "locked", "the data directory %s is held by process %d on %s, started %s", l.Root, h.PID, h.Host, h.Started.UTC().Format(time.RFC3339)).WithFix(fix)
}

// announce writes the holder into the lock file.
func announce(f *os.File, h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return fail.New(fail.Internal, "bad_holder", "the lock's holder cannot be written down").Because(err)
	}
	if err := f.Truncate(0); err != nil {
		return storeError(err, "empty the lock %s", f.Name())
	}
	if _, err := f.WriteAt(append(b, '\n'), 0); err != nil {
		return storeError(err, "write the lock %s", f.Name())
	}
	return nil
}

// Temp is this process's own spill folder. Sweep makes it and Release removes it.
func (k *Lock) Temp() string { return k.layout.Temp(k.boot) }

// Sweep removes what earlier processes left: everything in runtime/ and tmp/duckdb/, and files in artifacts/ that were never
// finished. Then it makes this process's folders. It belongs at the start, before anything is staged or spilled.
func (k *Lock) Sweep() error {
	l := k.layout
	for _, folder := range []string{l.Runtime, l.TempRoot} {
		if err := empty(folder, func(string) bool { return true }); err != nil {
			return err
		}
	}
	if err := empty(l.Artifacts, func(name string) bool { return strings.HasSuffix(name, unfinished) }); err != nil {
		return err
	}
	for _, folder := range []string{l.Staged, l.Exports, k.Temp()} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return storeError(err, "create the folder %s", folder)
		}
	}
	return nil
}

// empty removes from a folder what is named so.
func empty(folder string, named func(string) bool) error {
	d, err := os.Open(folder)
	if err != nil {
		return storeError(err, "open the folder %s", folder)
	}
	defer d.Close()
	// The names are read once, so that the folder is not changed under its own listing.
	names, err := d.Readdirnames(-1)
	if err != nil {
		return storeError(err, "list the folder %s", folder)
	}
	for _, name := range names {
		if !named(name) {
			continue
		}
		path := filepath.Join(folder, name)
		if err := os.RemoveAll(path); err != nil {
			return storeError(err, "remove %s, which an earlier process left", path)
		}
	}
	return nil
}

// Release removes this process's spill folder and gives the data directory free. Twice is once. Close the listener and the
// engine first.
func (k *Lock) Release() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return nil
	}
	f := k.file
	k.file = nil
	removed := os.RemoveAll(k.Temp())
	if err := f.Close(); err != nil {
		return storeError(err, "close the lock %s", f.Name())
	}
	if removed != nil {
		return storeError(removed, "remove the spill folder %s", k.Temp())
	}
	return nil
}
