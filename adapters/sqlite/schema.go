package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/sqlite3"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"leapview/domain/fail"
)

// schema brings the file at path to the newest schema that steps know. No other connection of this process has the file open
// meanwhile: the steps of healing replace the file itself, and closing any descriptor of an open database drops SQLite's locks.
type schema struct {
	path  string
	steps fs.FS
}

// condition is what the file says of its own schema. The zero value is a new file.
type condition struct {
	version uint
	// dirty: the process that was bringing the file to version died, or its step failed. What the step did may be there in part.
	dirty bool
}

// prepare creates the file when there is none, undoes an interrupted upgrade, and upgrades.
func (s schema) prepare(ctx context.Context) error {
	first, latest, err := s.known()
	if err != nil {
		return err
	}
	if err := s.create(); err != nil {
		return err
	}
	now, err := s.inspect(ctx)
	if err != nil {
		return err
	}
	if now.version > latest {
		return fail.New(fail.Conflict, "newer_schema", "%s has schema version %d, but this binary knows versions up to %d", s.path, now.version, latest).
			WithFix("use the newer binary; or, to go back and lose what was written since, put the copy kept beside it (%s) in its place",
				filepath.Base(s.copyName(now.version)))
	}
	if now.dirty {
		if err := s.heal(now, first); err != nil {
			return err
		}
		if now, err = s.inspect(ctx); err != nil {
			return err
		}
	}
	if now.version == latest {
		return nil
	}
	if now.version > 0 {
		if err := s.keepCopy(ctx, latest); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx, now.version, latest); err != nil {
		// A step that fails stays half done until it is undone; an older binary must not meet it.
		after, inspectErr := s.inspect(context.WithoutCancel(ctx))
		if inspectErr == nil && after.dirty {
			inspectErr = s.heal(after, first)
		}
		return errors.Join(err, inspectErr)
	}
	return nil
}

// known is the first and the latest version of the steps.
func (s schema) known() (first, latest uint, err error) {
	source, err := iofs.New(s.steps, ".")
	if err != nil {
		return 0, 0, fmt.Errorf("read the schema's steps: %w", err)
	}
	if first, err = source.First(); err != nil {
		return 0, 0, errors.Join(fmt.Errorf("read the schema's first step: %w", err), source.Close())
	}
	for latest = first; err == nil; {
		var next uint
		if next, err = source.Next(latest); err == nil {
			latest = next
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, errors.Join(fmt.Errorf("read the schema's step after %d: %w", latest, err), source.Close())
	}
	return first, latest, source.Close()
}

// create makes an empty file that only its owner can read, or takes other readers' rights from the one that is there. SQLite
// gives its log the mode of the file.
func (s schema) create() error {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		if err := os.Chmod(s.path, 0o600); err != nil {
			return fmt.Errorf("keep the control plane private: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the control plane: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("create the control plane: %w", err)
	}
	return syncDir(filepath.Dir(s.path))
}

// inspect reads the file's condition and closes it again. When the file is dirty, all that its log held is in the file itself
// afterwards.
func (s schema) inspect(ctx context.Context) (c condition, err error) {
	db, err := openWriter(ctx, s.path)
	if err != nil {
		return condition{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const doing = "read the schema version"
	var versioned, tables int
	err = db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE name = 'schema_migrations'), count(*) FROM sqlite_schema
		WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`).Scan(&versioned, &tables)
	if err != nil {
		return condition{}, translate(ctx, s.path, doing, err)
	}
	if versioned == 1 {
		err = db.QueryRowContext(ctx, `SELECT version, dirty FROM schema_migrations`).Scan(&c.version, &c.dirty)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return condition{}, translate(ctx, s.path, doing, err)
		}
	}
	if c.version == 0 && tables > versioned {
		return condition{}, fail.New(fail.Conflict, "foreign_database", "%s is the SQLite database of something else: it has tables, but no schema version of ours", s.path).
			WithFix("move it away, or name another data directory")
	}
	if !c.dirty {
		return c, nil
	}
	var blocked, pages, moved int
	if err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&blocked, &pages, &moved); err != nil {
		return condition{}, translate(ctx, s.path, "empty the log", err)
	}
	if blocked != 0 {
		return condition{}, fail.New(fail.Busy, "control_busy", "%s: another process is using it", s.path).WithFix("end that process, or try again")
	}
	return c, nil
}

// copyName is where the copy from before the upgrade to version is kept.
func (s schema) copyName(version uint) string { return fmt.Sprintf("%s.before-v%04d", s.path, version) }

// keepCopy keeps the file as it is before the upgrade to version. Only this newest copy is kept: it is what undoes the last
// upgrade, and an older one could be mistaken for it.
func (s schema) keepCopy(ctx context.Context, version uint) error {
	name := s.copyName(version)
	temp := s.path + ".copying"
	if err := removeAll(temp); err != nil {
		return err
	}
	// SQLite writes into an empty file, so the copy is private from its first byte.
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("keep a copy before the upgrade: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("keep a copy before the upgrade: %w", err)
	}
	db, err := openWriter(ctx, s.path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, temp)
	if err := errors.Join(err, db.Close()); err != nil {
		return errors.Join(translate(ctx, s.path, "keep a copy before the upgrade", err), removeAll(temp))
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, name); err != nil {
		return fmt.Errorf("keep a copy before the upgrade: %w", err)
	}
	copies, err := filepath.Glob(escapeGlob(s.path) + ".before-v*")
	if err != nil {
		return err
	}
	for _, c := range copies {
		if c != name {
			if err := removeAll(c); err != nil {
				return err
			}
		}
	}
	return syncDir(filepath.Dir(s.path))
}

// heal undoes an upgrade that did not come to its end: from the copy kept before it, or, when it was the very first, by
// starting anew. inspect has emptied the log before, so the file alone says that it is dirty until the moment it is replaced;
// a death in between leaves it dirty and is healed the same way.
func (s schema) heal(now condition, first uint) error {
	// The log goes first: one that outlives its file would be replayed into the next file of that name.
	log := []string{s.path + "-wal", s.path + "-shm"}
	if now.version == first {
		// Nothing was stored before the first step; a copy that lies there is of another control plane.
		if err := removeAll(append(log, s.path)...); err != nil {
			return err
		}
		return s.create()
	}
	kept, err := s.copyFor(now.version)
	if err != nil {
		return err
	}
	if kept == "" {
		return fail.New(fail.Corrupt, "half_upgraded", "%s: its upgrade to schema version %d was interrupted, and the copy from before is not beside it", s.path, now.version).
			WithFix("put the copy back as %s, or restore the data directory from a backup", filepath.Base(s.copyName(now.version)))
	}
	temp := s.path + ".restoring"
	if err := copyFile(kept, temp); err != nil {
		return fmt.Errorf("undo the interrupted upgrade of %s: %w", s.path, err)
	}
	if err := removeAll(log...); err != nil {
		return err
	}
	if err := os.Rename(temp, s.path); err != nil {
		return fmt.Errorf("undo the interrupted upgrade of %s: %w", s.path, err)
	}
	return syncDir(filepath.Dir(s.path))
}

// copyFor is the copy kept before the upgrade that was on its way through version, or "" when there is none. The upgrade may
// have been by a binary that knew other versions than this one.
func (s schema) copyFor(version uint) (string, error) {
	copies, err := filepath.Glob(escapeGlob(s.path) + ".before-v*")
	if err != nil {
		return "", err
	}
	best, bestTarget := "", uint(0)
	for _, c := range copies {
		var target uint
		if _, err := fmt.Sscanf(c[len(s.path):], ".before-v%d", &target); err != nil || target < version {
			continue
		}
		if best == "" || target < bestTarget {
			best, bestTarget = c, target
		}
	}
	return best, nil
}

// migrate runs the steps after from, one at a time, so that a step that fails leaves none read ahead.
func (s schema) migrate(ctx context.Context, from, latest uint) (err error) {
	source, err := iofs.New(s.steps, ".")
	if err != nil {
		return fmt.Errorf("read the schema's steps: %w", err)
	}
	db, err := openWriter(ctx, s.path)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	target, err := sqlite3.WithInstance(db, &sqlite3.Config{})
	if err != nil {
		return errors.Join(translate(ctx, s.path, "prepare the schema upgrade", err), db.Close(), source.Close())
	}
	m, err := migrate.NewWithInstance("iofs", source, "sqlite3", target)
	if err != nil {
		return errors.Join(err, db.Close(), source.Close())
	}
	defer func() {
		sourceErr, dbErr := m.Close()
		err = errors.Join(err, sourceErr, dbErr)
	}()
	for version := from; version < latest; {
		if ctx.Err() != nil {
			return canceled("upgrade the schema", ctx.Err())
		}
		if err := m.Steps(1); err != nil {
			return translate(ctx, s.path, fmt.Sprintf("upgrade the schema beyond version %d", version), err)
		}
		if version, _, err = m.Version(); err != nil {
			return translate(ctx, s.path, "read the schema version", err)
		}
	}
	return nil
}

// copyFile writes a private, durable copy of from, replacing to.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// removeAll removes the files that exist, in this order.
func removeAll(paths ...string) error {
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncFile makes the content of a file durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// escapeGlob makes every character of a path stand for itself in a pattern.
func escapeGlob(path string) string {
	var out []rune
	for _, r := range path {
		switch r {
		case '*', '?', '[', '\\':
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}
