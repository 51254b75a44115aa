// Package engine owns the process's one DuckDB instance: how it is constructed, which extensions it loads, how the lake is
// attached, how it is sealed, and the bounded set of connections that everything else borrows.
//
// Invariants: DuckDB is constructed once a process, in construct; every setting is made before the first connection is handed
// out and none can be made after it, so all connections are alike, also those opened later; a connection that met an error or
// was left inside a transaction is rolled back and discarded, never handed out again; no bound is ever the engine's own
// default. The catalog file is opened by the engine alone: this process never opens it otherwise, since closing any
// descriptor of it would drop the engine's lock.
//
// The package does not know tables, models, snapshots or whose SQL it runs. It hands out no permission: whoever asks for a
// connection has been admitted before.
package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"leapview/domain/fail"
)

// Lake is the name under which the lake is attached.
const Lake = "lake"

// Metadata is the name under which ducklake attaches the lake's catalog file.
const Metadata = "__ducklake_metadata_" + Lake

// closeTimeout bounds what Close asks of the engine: a checkpoint of a catalog is some ten milliseconds.
const closeTimeout = 30 * time.Second

// Options says where the engine works and within which bounds. All of it is required.
type Options struct {
	// Catalog is the absolute path of the lake's catalog file.
	Catalog string
	// DataDir, StagedDir and ExportsDir are absolute; sealed, the engine reads and writes only below them.
	DataDir, StagedDir, ExportsDir string
	// TempDir is this process's own spill folder. It must not exist: Open creates it and Close removes it.
	TempDir string
	// ExtensionsDir holds the extension files.
	ExtensionsDir string
	// ExtensionsLock is the text of extensions.lock.
	ExtensionsLock string
	// MemoryBytes, Threads and TempBytes bound the engine as a whole.
	MemoryBytes int64
	Threads     int
	TempBytes   int64
	// Connections is how many may be borrowed at once. Asking for one more is a defect and fails at once.
	Connections int
	// Create makes a lake when the catalog is missing. It is set only while a node is initialised.
	Create bool
}

// Engine is the running instance.
type Engine struct {
	o  Options
	db *sql.DB

	fatal atomic.Pointer[fail.Error]

	mu       sync.Mutex
	borrowed int
	closed   bool
	closeErr error
}

var constructions atomic.Int64

// Constructions is how many times this process constructed DuckDB.
func Constructions() int64 { return constructions.Load() }

// Open starts the engine, attaches the lake and seals it. What is wrong with the options, the extension files or the catalog
// is found before the lake is touched, and a failed Open leaves nothing open behind.
func Open(ctx context.Context, o Options) (_ *Engine, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	extensions, err := lockedExtensions(o.ExtensionsLock, platform())
	if err != nil {
		return nil, err
	}
	for _, x := range extensions {
		if err := x.verify(o.ExtensionsDir); err != nil {
			return nil, err
		}
	}
	// The engine would leave an empty file where it found no catalog.
	if _, err := os.Stat(o.Catalog); err != nil && (!o.Create || !errors.Is(err, os.ErrNotExist)) {
		return nil, fail.New(fail.Missing, "lake_missing", "the lake's catalog %s cannot be found", o.Catalog).Because(err).
			WithFix("restore ducklake/ and leapview.db together from one copy of the data directory, or start with an empty directory")
	}
	if err := os.MkdirAll(filepath.Dir(o.TempDir), 0o700); err != nil {
		return nil, fail.New(fail.Unavailable, "spill_folder", "the spill folder cannot be created").Because(err)
	}
	if err := os.Mkdir(o.TempDir, 0o700); err != nil {
		return nil, fail.New(fail.Unavailable, "spill_folder", "the spill folder cannot be created; each process needs one of its own").Because(err)
	}
	e := &Engine{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.release())
		}
	}()
	if e.db, err = construct(o); err != nil {
		return nil, err
	}
	// Every connection stays open until it is discarded: opening one costs more than keeping it.
	e.db.SetMaxOpenConns(o.Connections)
	e.db.SetMaxIdleConns(o.Connections)
	if err := e.start(ctx, extensions); err != nil {
		return nil, err
	}
	return e, nil
}

// validate names every option that is missing.
func (o Options) validate() error {
	var bad []string
	for _, p := range []struct{ name, path string }{
		{"Catalog", o.Catalog}, {"DataDir", o.DataDir}, {"StagedDir", o.StagedDir}, {"ExportsDir", o.ExportsDir},
		{"TempDir", o.TempDir}, {"ExtensionsDir", o.ExtensionsDir},
	} {
		if !filepath.IsAbs(p.path) || strings.ContainsRune(p.path, 0) {
			bad = append(bad, fmt.Sprintf("%s must be an absolute path, not %q", p.name, p.path))
		}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"MemoryBytes", o.MemoryBytes}, {"Threads", int64(o.Threads)}, {"TempBytes", o.TempBytes}, {"Connections", int64(o.Connections)},
	} {
		if n.value <= 0 {
			bad = append(bad, fmt.Sprintf("%s must be at least 1, not %d", n.name, n.value))
		}
	}
	if len(bad) > 0 {
		return fail.New(fail.Invalid, "engine_options", "the engine cannot start: %s", strings.Join(bad, "; "))
	}
	return nil
}

// construct is the only place that makes a DuckDB instance. What construction heeds is set there, so that no statement ever runs
// without it.
func construct(o Options) (*sql.DB, error) {
	settings := url.Values{}
	for name, value := range map[string]string{
		"autoinstall_known_extensions": "false",
		"autoload_known_extensions":    "false",
		"allow_community_extensions":   "false",
		"allow_unsigned_extensions":    "false",
		"allow_persistent_secrets":     "false",
		"allow_unredacted_secrets":     "false",
		"memory_limit":                 strconv.FormatInt(o.MemoryBytes, 10) + "B",
		"threads":                      strconv.Itoa(o.Threads),
		"temp_directory":               o.TempDir,
	} {
		settings.Set(name, value)
	}
	constructions.Add(1)
	connector, err := duckdb.NewConnector(":memory:?"+settings.Encode(), nil)
	if err != nil {
		return nil, fail.New(fail.Internal, "engine_construction", "DuckDB did not start").Because(Translate(err))
	}
	return sql.OpenDB(connector), nil
}

// start prepares and seals the instance over its first connection. The order matters: extensions load and the lake is attached
// while external access is still allowed, and after lock_configuration no setting changes any more, so whatever must hold on
// each connection is set globally before.
func (e *Engine) start(ctx context.Context, extensions []extension) error {
	c, err := e.Conn(ctx)
	if err != nil {
		return err
	}
	err = e.prepare(ctx, c, extensions)
	return errors.Join(err, c.Close())
}

func (e *Engine) prepare(ctx context.Context, c *Conn, extensions []extension) error {
	// 1. The engine and the extensions must be of one version: another one is never let near a catalog.
	var version string
	if err := c.Scan(ctx, "SELECT version()", nil, &version); err != nil {
		return err
	}
	for _, x := range extensions {
		if version != "v"+x.engine {
			return fail.New(fail.Invalid, "engine_version", "this binary holds DuckDB %s, but extensions.lock names extension %s for v%s", version, x.name, x.engine).
				WithFix("use the binary and the extensions of one release")
		}
	}
	// 2. What all connections share.
	for _, s := range []string{
		// Days and hours are the same on every host.
		"SET GLOBAL TimeZone='UTC'",
		// A few kilobytes of nested expressions would keep the planner busy for a minute.
		"SET GLOBAL max_expression_depth=150",
		// Errors carry the byte position in the statement, which Translate reads.
		"SET GLOBAL errors_as_json=true",
		// Given at construction, this bound would be shown and not kept.
		fmt.Sprintf("SET GLOBAL max_temp_directory_size='%dB'", e.o.TempBytes),
		// Types without an equal in Arrow keep all their bits.
		"SET GLOBAL arrow_lossless_conversion=true",
	} {
		if err := c.Exec(ctx, s); err != nil {
			return err
		}
	}
	// 3. Extensions, by absolute path; the engine checks each one's signature besides our digest.
	for _, x := range extensions {
		if err := c.Exec(ctx, "LOAD "+Literal(x.path(e.o.ExtensionsDir))); err != nil {
			return fail.New(fail.Invalid, "extension_refused", "the engine refused extension %s", x.name).Because(err).WithFix(extensionFix)
		}
	}
	// 4. The lake. Inlining is off because inlined rows bloat the catalog; the data path is the one we are given, so that a moved
	// directory still opens, and files are recorded relative to it.
	attach := fmt.Sprintf("ATTACH %s AS %s (DATA_PATH %s, OVERRIDE_DATA_PATH true, DATA_INLINING_ROW_LIMIT 0, CREATE_IF_NOT_EXISTS %t, AUTOMATIC_MIGRATION false, WRITE_DELETION_VECTORS false)",
		Literal("ducklake:"+e.o.Catalog), Lake, Literal(folder(e.o.DataDir)), e.o.Create)
	if err := c.Exec(ctx, attach); err != nil {
		if fail.KindOf(err) != fail.Internal {
			return err
		}
		return fail.New(fail.Corrupt, "lake_refused", "the lake's catalog %s cannot be attached", e.o.Catalog).Because(err).
			WithFix("restore the lake from a backup, or point to the directory that holds it")
	}
	// 5. The seal.
	for _, s := range []string{
		fmt.Sprintf("SET GLOBAL allowed_directories=[%s, %s, %s]", Literal(folder(e.o.DataDir)), Literal(folder(e.o.StagedDir)), Literal(folder(e.o.ExportsDir))),
		"SET GLOBAL enable_external_access=false",
		"SET GLOBAL lock_configuration=true",
	} {
		if err := c.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// folder is the path with one slash at its end, so that no sibling with a longer name is meant too.
func folder(path string) string { return strings.TrimRight(path, "/") + "/" }

// Literal is s as an SQL string. No character in it means anything else.
func Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Identifier is s as a quoted SQL name, whatever characters and keywords it holds. A dot in it separates nothing.
func Identifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// Fatal is why the engine can do nothing any more, or nil. Once set it stays: the process has to end.
func (e *Engine) Fatal() error {
	if f := e.fatal.Load(); f != nil {
		return f
	}
	return nil
}

// note keeps the first fatal error.
func (e *Engine) note(err error) {
	var f *fail.Error
	if errors.As(err, &f) && f.Kind == fail.Fatal {
		e.fatal.CompareAndSwap(nil, f)
	}
}

// Close checkpoints the catalog, detaches the lake, closes the instance and removes the spill folder. Every part is tried; what
// failed is joined. Connections that are still borrowed are reported, and close when they are given back. Twice is once: the
// second call gives what the first gave.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.closeErr
	}
	e.closed = true
	var errs []error
	if e.borrowed > 0 {
		errs = append(errs, fail.New(fail.Internal, "connections_borrowed", "the engine is closing while %d connections are still borrowed", e.borrowed))
	}
	// An invalidated instance answers nothing; its catalog recovers from its own log.
	if e.Fatal() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		// Borrowed connections must not keep the engine from closing the lake.
		e.db.SetMaxOpenConns(0)
		for _, s := range []string{"CHECKPOINT " + Metadata, "DETACH " + Lake} {
			if _, err := e.db.ExecContext(ctx, s); err != nil {
				errs = append(errs, fmt.Errorf("close the lake: %w", Translate(err)))
			}
		}
	}
	errs = append(errs, e.release())
	e.closeErr = errors.Join(errs...)
	return e.closeErr
}

// release gives back what the process holds.
func (e *Engine) release() error {
	var errs []error
	if e.db != nil {
		if err := e.db.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close DuckDB: %w", Translate(err)))
		}
	}
	if err := os.RemoveAll(e.o.TempDir); err != nil {
		errs = append(errs, fmt.Errorf("remove the spill folder: %w", err))
	}
	return errors.Join(errs...)
}
