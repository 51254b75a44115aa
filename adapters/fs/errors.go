package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"syscall"

	"leapview/domain/fail"
)

// namedError classifies what the operating system refused about a path that the caller named: a source file, a project's folder, the
// data directory itself. The message says what was attempted, and on which path.
func namedError(err error, format string, args ...any) *fail.Error {
	kind, code, fix := fail.Internal, "disk_error", ""
	switch {
	case errors.Is(err, iofs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		kind, code = fail.Missing, "file_missing"
	case errors.Is(err, iofs.ErrPermission):
		kind, code, fix = fail.Denied, "file_denied", "give this process's user access to it"
	case errors.Is(err, syscall.EROFS):
		kind, code, fix = fail.Denied, "read_only_disk", "mount it for writing"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind, code, fix = fail.Limit, "disk_full", "free space on that disk, then try again"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		kind, code, fix = fail.Limit, "open_files", "raise the process's limit of open files (ulimit -n)"
	case errors.Is(err, syscall.ELOOP):
		kind, code, fix = fail.Invalid, "link_loop", "remove the link that leads back to itself"
	}
	e := fail.New(kind, code, format, args...).Because(err)
	if fix != "" {
		e = e.WithFix("%s", fix)
	}
	return e
}

// storeError is namedError for what is inside the data directory. No caller named that: a refusal there is the machine's, and what
// should be there and is not, or is something else, was taken from us.
func storeError(err error, format string, args ...any) *fail.Error {
	e := namedError(err, format, args...)
	switch e.Kind {
	case fail.Denied:
		e.Kind = fail.Unavailable
	case fail.Missing, fail.Invalid:
		e.Kind = fail.Corrupt
		e = e.WithFix("something else removes or replaces the node's own files: put them back from a backup, then start the node again")
	}
	return e
}

// syncError classifies a failed sync. After EIO the kernel may have dropped the pages and call the next sync a success, so the
// process must not go on as if a second try could prove anything.
func syncError(err error, path string) *fail.Error {
	if errors.Is(err, syscall.EIO) {
		return fail.New(fail.Fatal, "sync_failed", "the disk did not take %s: what was written there may be lost", path).
			WithFix("check the disk, then restart the node").Because(err)
	}
	return storeError(err, "sync %s", path)
}

// alive is the canceled error of a context that has ended, or nil.
func alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fail.New(fail.Canceled, "canceled", "the work on files was given up").Because(err)
	}
	return nil
}

// segment refuses an id that cannot be the name of one folder: such a name could reach outside the folder it is meant for.
func segment(what, s string) error {
	ok := s != "" && len(s) <= 100 && s[0] != '.'
	for i := 0; ok && i < len(s); i++ {
		ok = plain(s[i])
	}
	if !ok {
		return fail.New(fail.Invalid, "bad_segment", "%s %q cannot name a folder: letters, digits, '.', '_' and '-' can", what, s)
	}
	return nil
}

// plain tells whether b means nothing special to a shell, a glob or the engine.
func plain(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '.' || b == '_' || b == '-'
}
