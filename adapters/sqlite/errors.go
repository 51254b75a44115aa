package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/mattn/go-sqlite3"

	"leapview/domain/fail"
)

// classify translates an error that the store met while it was doing something; nil stays nil.
func (s *Store) classify(ctx context.Context, doing string, err error) error {
	if err != nil && s.closed.Load() {
		return fail.New(fail.Unavailable, "control_closed", "%s: the control plane was closed", doing).Because(err)
	}
	err = translate(ctx, s.path, doing, err)
	var f *fail.Error
	if fail.KindOf(err) == fail.Fatal && errors.As(err, &f) {
		s.fatal.CompareAndSwap(nil, f)
	}
	return err
}

// Fatal is why the control plane can be trusted no more, or nil. Once set it stays: after a failed sync the system may call the next one a
// success although the pages are lost, so only another process, which reads what is really there, may go on.
func (s *Store) Fatal() error {
	if f := s.fatal.Load(); f != nil {
		return f
	}
	return nil
}

// translate is the one place where errors of the driver become ours. An error that has a kind already keeps it.
func translate(ctx context.Context, path, doing string, err error) error {
	if err == nil {
		return nil
	}
	var ours fail.Classified
	if errors.As(err, &ours) {
		return err
	}
	if e := fileError(path, doing, err); e != nil {
		return e
	}
	// The migrator wraps the driver's error without unwrapping, around the whole text of the step.
	var step *database.Error
	if errors.As(err, &step) && step.OrigErr != nil {
		err = step.OrigErr
	}
	var lite sqlite3.Error
	if !errors.As(err, &lite) || lite.Code == sqlite3.ErrInterrupt {
		// A transaction whose context ended is rolled back behind its user's back, so the context is asked, not the error.
		if ctx.Err() != nil {
			return canceled(doing, ctx.Err())
		}
		return fmt.Errorf("%s: %s: %w", path, doing, err)
	}
	switch lite.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		if ctx.Err() != nil {
			return canceled(doing, ctx.Err())
		}
		return fail.New(fail.Busy, "control_busy", "%s: %s: another process kept %s locked for %s ms", path, doing, filepath.Base(path), busyMillis).
			WithFix("end that process, or try again").Because(err)
	case sqlite3.ErrFull:
		return fail.New(fail.Limit, "disk_full", "%s: %s: the disk is full, nothing was written", path, doing).
			WithFix("free space on the volume of %s", filepath.Dir(path)).Because(err)
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB, sqlite3.ErrFormat:
		return fail.New(fail.Corrupt, "control_corrupt", "%s: %s: the file is damaged or no SQLite database", path, doing).
			WithFix("restore the data directory from a backup").Because(err)
	case sqlite3.ErrIoErr:
		return fail.New(fail.Fatal, "control_io", "%s: %s: the disk failed", path, doing).
			WithFix("check the volume of %s, then start again", filepath.Dir(path)).Because(err)
	case sqlite3.ErrReadonly, sqlite3.ErrCantOpen, sqlite3.ErrPerm, sqlite3.ErrAuth:
		return fail.New(fail.Fatal, "control_not_writable", "%s: %s: the file cannot be written", path, doing).
			WithFix("make %s and its files writable for the user of this process (uid %d)", filepath.Dir(path), os.Geteuid()).Because(err)
	case sqlite3.ErrConstraint:
		if lite.ExtendedCode == sqlite3.ErrConstraintUnique || lite.ExtendedCode == sqlite3.ErrConstraintPrimaryKey {
			return fail.New(fail.Conflict, "already_stored", "%s: it is stored already", doing).Because(err)
		}
		return fail.New(fail.Internal, "impossible_write", "%s: it does not fit what is stored", doing).Because(err)
	}
	return fmt.Errorf("%s: %s: %w", path, doing, err)
}

// fileError classifies what the operating system refused while the store handled its files itself; nil for any other error. The
// files are the node's own, so a refusal is the machine's, and what is gone was taken.
func fileError(path, doing string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fail.New(fail.Unavailable, "not_writable", "%s: %s: uid %d may not", path, doing, os.Geteuid()).
			WithFix("make %s and its files writable for the user of this process", dir).Because(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fail.New(fail.Limit, "disk_full", "%s: %s: the disk is full", path, doing).WithFix("free space on the volume of %s", dir).Because(err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fail.New(fail.Corrupt, "control_missing", "%s: %s: a file of it went away", path, doing).
			WithFix("restore the data directory from a backup").Because(err)
	}
	return nil
}

// commitError classifies what a COMMIT returned. Only for the errors named here is it sure that nothing was written, or that this process
// ends: another one may have met the log after the commit's last frame was in it.
func (s *Store) commitError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var lite sqlite3.Error
	if !errors.As(err, &lite) {
		// database/sql refuses to commit when the context has ended; the driver was not asked.
		return s.classify(ctx, "commit", err)
	}
	switch lite.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrConstraint, sqlite3.ErrIoErr:
		return s.classify(ctx, "commit", err)
	}
	return fail.New(fail.UnknownOutcome, "commit_unknown", "%s: the commit failed in a way that may have written it", s.path).
		WithFix("check the volume of %s, then start again: what was written shows then", filepath.Dir(s.path)).Because(err)
}

func canceled(doing string, cause error) error {
	return fail.New(fail.Canceled, "canceled", "%s: given up, nothing was written", doing).Because(cause)
}

// checkAccess refuses early, and with owner and mode, what SQLite would only call "unable to open database file".
func checkAccess(path string) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fail.New(fail.Corrupt, "no_data_directory", "%s does not exist", dir).WithFix("create it, or name another data directory")
	case err != nil:
		return notWritable(dir, nil, err)
	case !info.IsDir():
		return fail.New(fail.Invalid, "no_data_directory", "%s is not a directory", dir).WithFix("name another data directory")
	}
	const read, write, search = 4, 2, 1
	if err := syscall.Access(dir, read|write|search); err != nil {
		return notWritable(dir, info, err)
	}
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Lstat(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return notWritable(file, nil, err)
		}
		if !info.Mode().IsRegular() {
			return fail.New(fail.Invalid, "not_a_file", "%s is not a regular file (%s)", file, info.Mode()).WithFix("move it away")
		}
		if err := syscall.Access(file, read|write); err != nil {
			return notWritable(file, info, err)
		}
	}
	return nil
}

func notWritable(what string, info os.FileInfo, cause error) error {
	why := "this process may not read and write it"
	if info != nil {
		why = fmt.Sprintf("its mode is %s", info.Mode())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			why = fmt.Sprintf("it belongs to uid %d with mode %s", st.Uid, info.Mode())
		}
	}
	return fail.New(fail.Unavailable, "not_writable", "%s cannot be used by uid %d: %s", what, os.Geteuid(), why).
		WithFix("run as its owner, or give it to this user: chown -R %d %s and chmod u+rwX %s", os.Geteuid(), what, what).Because(cause)
}
