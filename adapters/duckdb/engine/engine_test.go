// These tests prove, on the real engine, that a start refuses what it must before it touches a lake, that every connection is
// sealed and alike however late it is opened, that a connection never carries an error over, and that closing leaves nothing.
package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"go.uber.org/goleak"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/domain/fail"
)

// A process that only holds a catalog open, so that another one finds it locked. Otherwise no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ENGINE_TEST_OPENS"); dir != "" {
		os.Exit(openOnce(dir))
	}
	goleak.VerifyTestMain(m)
}

func openOnce(dir string) int {
	t := &reporter{}
	o := enginetest.Options(t, dir)
	o.TempDir = filepath.Join(dir, "tmp", "duckdb", "other")
	e, err := engine.Open(context.Background(), o)
	if err != nil {
		fmt.Printf("kind=%s code=%s\n", fail.KindOf(err), fail.CodeOf(err))
		return 0
	}
	fmt.Println("opened")
	if err := e.Close(); err != nil {
		return 1
	}
	return 0
}

// reporter is a testing.TB outside any test.
type reporter struct{ testing.TB }

func (*reporter) Helper()           {}
func (*reporter) Fatal(args ...any) { fmt.Println(args...); os.Exit(2) }

func TestSealedOnEveryConnection(t *testing.T) {
	e, o := enginetest.Open(t)
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(o.DataDir, "link")
	if err := os.Symlink(filepath.Dir(outside), link); err != nil {
		t.Fatal(err)
	}
	sibling := o.DataDir + "_evil"
	if err := os.MkdirAll(sibling, 0o700); err != nil {
		t.Fatal(err)
	}
	// Loading what is loaded already does nothing; a file of another name is another extension.
	other := filepath.Join(t.TempDir(), "other.duckdb_extension")
	if err := os.Link(filepath.Join(o.ExtensionsDir, "ducklake.duckdb_extension"), other); err != nil {
		b, err := os.ReadFile(filepath.Join(o.ExtensionsDir, "ducklake.duckdb_extension"))
		must(t, err)
		must(t, os.WriteFile(other, b, 0o600))
	}
	q := engine.Literal
	refused := []struct{ sql, why string }{
		{"FROM read_text(" + q(outside) + ")", "Permission"},
		{"FROM read_blob('/etc/passwd')", "Permission"},
		{"FROM read_csv('/etc/passwd')", "Permission"},
		{"FROM glob('/**')", "Permission"},
		{"FROM read_text(" + q(filepath.Join(link, "secret.txt")) + ")", "Permission"},
		{"FROM read_text(" + q(o.DataDir+"/../../secret.txt") + ")", "Permission"},
		{"FROM read_text('http://127.0.0.1:1/x')", ""},
		{"COPY (SELECT 1) TO " + q(filepath.Join(sibling, "x.csv")), "Permission"},
		{"COPY (SELECT 1) TO " + q(outside+".csv"), "Permission"},
		{"EXPORT DATABASE " + q(filepath.Join(sibling, "x")), "Permission"},
		{"ATTACH " + q(outside+".db"), "Permission"},
		{"LOAD " + q(other), "Permission"},
		{"LOAD httpfs", ""},
		{"INSTALL httpfs", "Permission"},
		{"SET memory_limit='8GB'", "locked"},
		{"SET threads=64", "locked"},
		{"SET TimeZone='America/New_York'", "locked"},
		{"SET GLOBAL enable_external_access=true", "locked"},
		{"SET allowed_directories=['/']", "locked"},
		{"RESET lock_configuration", "locked"},
		{"SET temp_directory='/tmp'", "locked"},
		{"SET allow_unsigned_extensions=true", ""},
	}
	settings := map[string]string{
		"TimeZone": "UTC", "enable_external_access": "false", "lock_configuration": "true", "max_expression_depth": "150",
		"autoload_known_extensions": "false", "autoinstall_known_extensions": "false", "allow_unsigned_extensions": "false",
		"allow_community_extensions": "false", "allow_persistent_secrets": "false", "allow_unredacted_secrets": "false",
		"threads": "2", "memory_limit": "256.0 MiB", "max_temp_directory_size": "64.0 MiB", "temp_directory": o.TempDir,
		"arrow_lossless_conversion": "true", "errors_as_json": "true",
	}
	check := func(t *testing.T, c *engine.Conn) {
		for name, want := range settings {
			var got string
			if err := c.Scan(t.Context(), "SELECT value FROM duckdb_settings() WHERE name = ?", []any{name}, &got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		for _, r := range refused {
			if err := c.Exec(t.Context(), r.sql); err == nil {
				t.Errorf("%s was allowed", r.sql)
			} else if !strings.Contains(err.Error(), r.why) {
				t.Errorf("%s was refused with %v", r.sql, err)
			}
		}
	}
	// Every connection at once, and again after all of these were discarded for the errors they met.
	for _, round := range []string{"first connections", "connections opened after a discard"} {
		t.Run(round, func(t *testing.T) {
			for range o.Connections {
				c := enginetest.Conn(t, e)
				check(t, c)
			}
		})
	}
}

func TestPoolIsBoundedAndLoud(t *testing.T) {
	e, o := enginetest.Open(t, func(o *engine.Options) { o.Connections = 2 })
	a := enginetest.Conn(t, e)
	enginetest.Conn(t, e)
	if _, err := e.Conn(t.Context()); fail.KindOf(err) != fail.Internal || fail.CodeOf(err) != "pool_exhausted" {
		t.Fatalf("the third of %d connections: %v", o.Connections, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal("second close: ", err)
	}
	enginetest.Conn(t, e)
	if _, err := e.Conn(t.Context()); fail.CodeOf(err) != "pool_exhausted" {
		t.Fatal("a connection closed twice counted twice: ", err)
	}
}

func TestConnectionCarriesNothingOver(t *testing.T) {
	e, _ := enginetest.Open(t, func(o *engine.Options) { o.Connections = 1 })
	for _, tc := range []struct {
		name string
		do   func(c *engine.Conn)
		kept bool
	}{
		{"clean", func(c *engine.Conn) { must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1")) }, true},
		{"open transaction", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			must(t, c.Exec(t.Context(), "BEGIN"))
		}, false},
		{"error", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			if c.Exec(t.Context(), "SELECT 'x'::INTEGER") == nil {
				t.Fatal("no error")
			}
		}, false},
		{"rows that met their context's end", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			ctx, cancel := context.WithCancel(t.Context())
			rows, err := c.Rows(ctx, "SELECT range FROM range(1000000)")
			must(t, err)
			cancel()
			for rows.Next() {
			}
			must(t, rows.Close())
		}, false},
		{"a row that was not scanned", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			rows, err := c.Rows(t.Context(), "SELECT 'x'")
			must(t, err)
			var n int
			if !rows.Next() || rows.Scan(&n) == nil {
				t.Fatal("a text was scanned into a number")
			}
			must(t, rows.Close())
		}, false},
		{"batches that met their context's end", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			ctx, cancel := context.WithCancel(t.Context())
			r, err := c.Arrow(ctx, "SELECT range FROM range(10000)")
			must(t, err)
			cancel()
			if r.Next() {
				t.Fatal("a batch after the context's end")
			}
			r.Release()
		}, false},
		{"rows that were read", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			rows, err := c.Rows(t.Context(), "SELECT range FROM range(3)")
			must(t, err)
			for rows.Next() {
			}
			must(t, rows.Close())
		}, true},
		{"batches that were read", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			r, err := c.Arrow(t.Context(), "SELECT range FROM range(3)")
			must(t, err)
			for r.Next() {
			}
			r.Release()
		}, true},
		{"discarded", func(c *engine.Conn) {
			must(t, c.Exec(t.Context(), "SET VARIABLE mine = 1"))
			must(t, c.Exec(t.Context(), "CREATE TEMP TABLE staged (a INTEGER)"))
			c.Discard()
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first, err := e.Conn(t.Context())
			must(t, err)
			must(t, first.Exec(t.Context(), "RESET VARIABLE mine"))
			tc.do(first)
			must(t, first.Close())
			second, err := e.Conn(t.Context())
			must(t, err)
			defer second.Close()
			var kept bool
			var tables int
			must(t, second.Scan(t.Context(), "SELECT getvariable('mine') IS NOT NULL, (SELECT count(*) FROM duckdb_tables() WHERE temporary)", nil, &kept, &tables))
			if kept != tc.kept || tables != 0 {
				t.Fatalf("variable kept: %t, temporary tables: %d", kept, tables)
			}
		})
	}
}

func TestErrorsAreClassified(t *testing.T) {
	e, _ := enginetest.Open(t, func(o *engine.Options) { o.MemoryBytes, o.TempBytes = 64<<20, 16<<20 })
	run := func(ctx context.Context, sql string) error {
		c, err := e.Conn(t.Context())
		must(t, err)
		defer c.Close()
		return c.Exec(ctx, sql)
	}
	big := "CREATE TEMP TABLE t AS SELECT hash(a) AS h, repeat('x', 100) || a AS s FROM range(1500000) r(a) ORDER BY h"
	if err := run(t.Context(), big); fail.KindOf(err) != fail.Limit || !strings.HasSuffix(fail.CodeOf(err), "_limit") {
		t.Fatalf("a sort beyond memory and spill space: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := run(ctx, "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"); fail.KindOf(err) != fail.Canceled {
		t.Fatalf("a statement beyond its deadline: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Fatalf("a deadline of 100ms took %s", took)
	}
	err := run(t.Context(), "SELECT 1,\n  nope FROM range(3)")
	if s, ok := engine.AsSQLError(err); !ok || s.Type != "Binder" || s.Position != 12 || !strings.Contains(s.Message, `"nope" not found`) {
		t.Fatalf("a wrong column: %#v", err)
	}
	err = run(t.Context(), "SELEC 1")
	if s, ok := engine.AsSQLError(err); !ok || s.Type != "Parser" {
		t.Fatalf("a wrong word: %#v", err)
	}
	if err := run(t.Context(), "SELECT 1"); err != nil || e.Fatal() != nil {
		t.Fatalf("the engine did not live on: %v, %v", err, e.Fatal())
	}
}

// A quoted text comes back as it was, as a value and as a name.
func TestQuoting(t *testing.T) {
	e, _ := enginetest.Open(t)
	c := enginetest.Conn(t, e)
	for _, s := range []string{`a"b`, `""`, "a'b", "''", `\'`, "E'x'", "$$", "-- x", "/* x", "a\nb", "a.b", "select", "é 漢", " ", "%"} {
		var value, name string
		must(t, c.Scan(t.Context(), "SELECT "+engine.Literal(s), nil, &value))
		must(t, c.Scan(t.Context(), "SELECT column_name FROM (DESCRIBE SELECT 1 AS "+engine.Identifier(s)+")", nil, &name))
		if value != s || name != s {
			t.Errorf("%q came back as the value %q and the name %q", s, value, name)
		}
	}
}

// The operating system's answer decides, and neither the words of a value nor those of a name do. What cannot be provoked here is
// told as the engine tells it.
func TestMachineErrorsAreClassified(t *testing.T) {
	told := func(errno, text string) error {
		return &duckdb.Error{Msg: fmt.Sprintf(`{"exception_type":"IO","exception_message":"Could not read from file \"/d/x\": %s","errno":"%s"}`, text, errno)}
	}
	for _, tc := range []struct {
		err  error
		kind fail.Kind
		code string
	}{
		{told("28", "No space left on device"), fail.Limit, "disk_full"},
		{told("122", "Disk quota exceeded"), fail.Limit, "disk_full"},
		{told("23", "Too many open files in system"), fail.Limit, "open_files"},
		{told("24", "Too many open files"), fail.Limit, "open_files"},
		{told("13", "Permission denied"), fail.Unavailable, "file_denied"},
		{told("30", "Read-only file system"), fail.Unavailable, "file_denied"},
		{told("5", "Input/output error"), fail.Unavailable, "disk_error"},
		{&duckdb.Error{Msg: `TransactionContext Error: Failed to commit: Could not write file "/d/x": No space left on device`}, fail.Limit, "disk_full"},
		{&duckdb.Error{Msg: `FATAL Error: the database has been invalidated`}, fail.Fatal, "engine_fatal"},
	} {
		if err := engine.Translate(tc.err); fail.KindOf(err) != tc.kind || fail.CodeOf(err) != tc.code {
			t.Errorf("%v became %s: %v", tc.err, fail.CodeOf(err), err)
		}
	}
	if s, ok := engine.AsSQLError(engine.Translate(told("2", "No such file or directory"))); !ok || s.Type != "IO" {
		t.Error("that a file is not there was classified without knowing which file")
	}
	e, _ := enginetest.Open(t)
	for _, text := range []string{"No space left on device", "Too many open files", "Permission denied", "database has been invalidated", "Could not set lock on file"} {
		c, err := e.Conn(t.Context())
		must(t, err)
		err = c.Exec(t.Context(), "SELECT CAST("+engine.Literal(text)+" AS INTEGER)")
		must(t, c.Close())
		if s, ok := engine.AsSQLError(err); !ok || s.Type != "Conversion" || e.Fatal() != nil {
			t.Errorf("a value %q: %v", text, err)
		}
	}
}

// What does not fit in memory goes to disk up to the bound, and the statement that needs more is told which bound it met.
func TestSpillIsBounded(t *testing.T) {
	e, _ := enginetest.Open(t, func(o *engine.Options) { o.MemoryBytes, o.TempBytes = 64<<20, 16<<20 })
	err := enginetest.Conn(t, e).Exec(t.Context(), "CREATE TEMP TABLE t AS SELECT repeat('x', 100) || a AS s FROM range(1500000) r(a)")
	if fail.CodeOf(err) != "spill_limit" {
		t.Fatalf("a table of 160 MB in 80: %v", err)
	}
}

func TestArrowAndRows(t *testing.T) {
	e, _ := enginetest.Open(t)
	c := enginetest.Conn(t, e)
	r, err := c.Arrow(t.Context(), "SELECT range AS n FROM range(?) WHERE range <> ?", int64(5000), int64(7))
	must(t, err)
	n := int64(0)
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	must(t, r.Err())
	r.Release()
	if n != 4999 {
		t.Fatalf("%d rows", n)
	}
	rows, err := c.Rows(t.Context(), "SELECT range FROM range(3)")
	must(t, err)
	defer rows.Close()
	for n = 0; rows.Next(); n++ {
	}
	if n != 3 || rows.Err() != nil {
		t.Fatalf("%d rows, %v", n, rows.Err())
	}
	// What ends the rows early is classified like any other error.
	ctx, cancel := context.WithCancel(t.Context())
	cut, err := enginetest.Conn(t, e).Rows(ctx, "SELECT range FROM range(1000000)")
	must(t, err)
	defer cut.Close()
	cancel()
	for n = 0; cut.Next(); n++ {
	}
	if n == 1000000 || fail.KindOf(cut.Err()) != fail.Canceled {
		t.Fatalf("%d rows, %v", n, cut.Err())
	}
}

func TestStartRefusesExtensions(t *testing.T) {
	good := enginetest.Options(t, t.TempDir())
	file, err := os.ReadFile(filepath.Join(good.ExtensionsDir, "ducklake.duckdb_extension"))
	must(t, err)
	altered := t.TempDir()
	file[len(file)/2] ^= 1
	must(t, os.WriteFile(filepath.Join(altered, "ducklake.duckdb_extension"), file, 0o600))
	here := runtime.GOOS + "_" + runtime.GOARCH
	for _, tc := range []struct {
		name, code, text string
		change           func(o *engine.Options)
	}{
		{"missing", "extension_missing", "make extensions", func(o *engine.Options) { o.ExtensionsDir = t.TempDir() }},
		{"altered", "extension_altered", "make extensions", func(o *engine.Options) { o.ExtensionsDir = altered }},
		{"other engine", "engine_version", "9.9.9", func(o *engine.Options) { o.ExtensionsLock = strings.ReplaceAll(o.ExtensionsLock, "1.5.5", "9.9.9") }},
		{"other platform", "extension_platform", here, func(o *engine.Options) { o.ExtensionsLock = strings.ReplaceAll(o.ExtensionsLock, here, "plan9_mips") }},
		{"no lock", "bad_extensions_lock", "line 1", func(o *engine.Options) { o.ExtensionsLock = "ducklake" }},
		{"no bounds", "engine_options", "MemoryBytes", func(o *engine.Options) { o.MemoryBytes = 0 }},
		{"relative path", "engine_options", "DataDir", func(o *engine.Options) { o.DataDir = "data" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := enginetest.Options(t, t.TempDir())
			tc.change(&o)
			e, err := engine.Open(t.Context(), o)
			if e != nil || fail.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("%v (code %s)", err, fail.CodeOf(err))
			}
			gone(t, o.Catalog, o.TempDir)
		})
	}
}

func TestStartRefusesCatalogs(t *testing.T) {
	o := enginetest.Options(t, t.TempDir())
	o.Create = false
	if _, err := engine.Open(t.Context(), o); fail.KindOf(err) != fail.Missing {
		t.Fatalf("no catalog: %v", err)
	}
	gone(t, o.Catalog, o.TempDir)
	// A database that is no lake is refused, and stays as it was.
	must(t, os.WriteFile(o.Catalog, []byte("this is no database"), 0o600))
	if _, err := engine.Open(t.Context(), o); fail.KindOf(err) != fail.Corrupt {
		t.Fatalf("a foreign file: %v", err)
	}
	if b, err := os.ReadFile(o.Catalog); err != nil || string(b) != "this is no database" {
		t.Fatalf("the foreign file became %q, %v", b, err)
	}
	gone(t, o.TempDir)
	// The failed starts released everything: the same folder opens once the file is away.
	must(t, os.Remove(o.Catalog))
	o.Create = true
	e, err := engine.Open(t.Context(), o)
	must(t, err)
	must(t, e.Close())
}

func TestOneConstructionOneHandleOneProcess(t *testing.T) {
	before := engine.Constructions()
	dir := t.TempDir()
	o := enginetest.Options(t, dir)
	e, err := engine.Open(t.Context(), o)
	must(t, err)
	defer e.Close()
	var wg sync.WaitGroup
	for range o.Connections {
		wg.Go(func() {
			for range 5 {
				c, err := e.Conn(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := c.Exec(t.Context(), "SELECT 'x'::INTEGER"); err == nil {
					t.Error("no error")
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := engine.Constructions() - before; n != 1 {
		t.Fatalf("DuckDB was constructed %d times", n)
	}
	if runtime.GOOS == "linux" {
		fds, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		n := 0
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == o.Catalog {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("the catalog is open %d times", n)
		}
	}
	// Another process finds the lock and says so; this one goes on.
	self, err := os.Executable()
	must(t, err)
	other := exec.Command(self)
	other.Env = append(os.Environ(), "ENGINE_TEST_OPENS="+dir)
	out, err := other.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kind=conflict code=catalog_locked") {
		t.Fatalf("a second process: %s, %v", out, err)
	}
	must(t, enginetest.Conn(t, e).Exec(t.Context(), "SELECT 1"))
}

func TestCloseReleasesAll(t *testing.T) {
	dir := t.TempDir()
	o := enginetest.Options(t, dir)
	e, err := engine.Open(t.Context(), o)
	must(t, err)
	c, err := e.Conn(t.Context())
	must(t, err)
	must(t, c.Exec(t.Context(), "CREATE TABLE lake.main.t (a INTEGER)"))
	must(t, c.Exec(t.Context(), "INSERT INTO lake.main.t VALUES (42)"))
	must(t, c.Close())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := e.Conn(t.Context()); fail.KindOf(err) != fail.Unavailable {
		t.Fatalf("a connection of a closed engine: %v", err)
	}
	gone(t, o.TempDir, o.Catalog+".wal")
	// The whole directory may move: files are recorded relative to it.
	moved := filepath.Join(t.TempDir(), "moved")
	must(t, os.Rename(dir, moved))
	o = enginetest.Options(t, moved)
	o.Create = false
	e, err = engine.Open(t.Context(), o)
	must(t, err)
	c, err = e.Conn(t.Context())
	must(t, err)
	var a int
	must(t, c.Scan(t.Context(), "SELECT a FROM lake.main.t", nil, &a))
	// A connection that is still out is reported, and the rest is closed nevertheless.
	if err := e.Close(); fail.CodeOf(err) != "connections_borrowed" {
		t.Fatalf("closing under a borrowed connection: %v", err)
	}
	must(t, c.Close())
	gone(t, o.TempDir)
	if a != 42 {
		t.Fatalf("read %d from the moved lake", a)
	}
}

func TestTwoEnginesDoNotShareASpillFolder(t *testing.T) {
	_, o := enginetest.Open(t)
	p := enginetest.Options(t, t.TempDir())
	p.TempDir = o.TempDir
	if _, err := engine.Open(t.Context(), p); fail.CodeOf(err) != "spill_folder" {
		t.Fatal(err)
	}
	if _, err := os.Stat(o.TempDir); err != nil {
		t.Fatal("the refused start removed the first one's spill folder: ", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", p, err)
		}
	}
}
