// Package sqlite owns leapview.db, the control plane: its file, its schema and the rows in it.
//
// Invariants: one connection writes, in immediate transactions that are on disk when they return; the readers cannot write; an
// older fence changes nothing, because the conditions are in the statements themselves; rows come back only through the
// domain's own doors, which refuse what cannot be. The package decides nothing: it loads a state, lets the domain decide, and
// writes the events. It knows nothing of the lake, and it relies on its caller to be the only process in the data directory.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync/atomic"

	_ "github.com/mattn/go-sqlite3" // registers the driver "sqlite3"

	"leapview/domain/fail"
	"leapview/migrations"
	"leapview/ports"
)

// readers is how many connections read beside the writing one.
const readers = 4

// busyMillis is how long a statement waits for a lock that another process holds. An ended context does not shorten the wait.
const busyMillis = "2000"

// Options say where the control plane is.
type Options struct {
	// Path of the database file. The copy kept before a schema upgrade lies beside it.
	Path string
	// steps replaces the schema's steps in tests; nil means the binary's own.
	steps fs.FS
}

// Store is the open control plane. It implements ports.Control, ports.Registry and ports.Keys.
type Store struct {
	path   string
	write  *sql.DB
	read   *sql.DB
	closed atomic.Bool
	// fatal is set by the first error after which nothing can be believed.
	fatal atomic.Pointer[fail.Error]
}

var (
	_ ports.Control  = (*Store)(nil)
	_ ports.Registry = (*Store)(nil)
	_ ports.Keys     = (*Store)(nil)
)

// Open opens the control plane, and creates it when there is none. An older schema is upgraded after a copy of the file was
// kept beside it; an upgrade that was interrupted is undone from that copy and done again; a newer schema is refused.
func Open(ctx context.Context, o Options) (*Store, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	if err := checkAccess(path); err != nil {
		return nil, err
	}
	steps := o.steps
	if steps == nil {
		steps = migrations.Files
	}
	if err := (schema{path: path, steps: steps}).prepare(ctx); err != nil {
		return nil, translate(ctx, path, "prepare the schema", err)
	}
	s := &Store{path: path}
	if s.write, err = openWriter(ctx, path); err != nil {
		return nil, err
	}
	if s.read, err = openPool(ctx, path, readers, url.Values{"mode": {"ro"}, "_query_only": {"true"}, "_foreign_keys": {"true"}}); err != nil {
		_ = s.write.Close()
		return nil, err
	}
	return s, nil
}

// openWriter opens the one connection that writes to an existing file.
func openWriter(ctx context.Context, path string) (*sql.DB, error) {
	return openPool(ctx, path, 1, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_foreign_keys": {"true"}})
}

// openPool opens a pool of at most size connections, each kept once it was made, and proves that one can be made.
func openPool(ctx context.Context, path string, size int, settings url.Values) (*sql.DB, error) {
	settings.Set("_busy_timeout", busyMillis)
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(translate(ctx, path, "open", err), db.Close())
	}
	return db, nil
}

// Close ends the use of the control plane. Twice is once.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	// The writer goes last: it empties the write-ahead log when no reader is left.
	return errors.Join(s.read.Close(), s.write.Close())
}
