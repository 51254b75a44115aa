// Package enginetest starts engines for tests: small bounds, everything below a test's own temporary folder. It is imported by
// tests only and knows nothing of what they test.
package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	"leapview"
	"leapview/adapters/duckdb/engine"
)

// Root is the repository's root: the nearest folder upward that holds go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// Options are those of an engine that creates its lake in dir, whose folders exist afterwards.
func Options(t testing.TB, dir string) engine.Options {
	t.Helper()
	o := engine.Options{
		Catalog: filepath.Join(dir, "ducklake", "catalog.duckdb"),
		DataDir: filepath.Join(dir, "data"), StagedDir: filepath.Join(dir, "runtime", "staged"), ExportsDir: filepath.Join(dir, "runtime", "exports"),
		TempDir:       filepath.Join(dir, "tmp", "duckdb", "1"),
		ExtensionsDir: filepath.Join(Root(t), ".extensions"), ExtensionsLock: leapview.ExtensionsLock,
		MemoryBytes: 256 << 20, Threads: 2, TempBytes: 64 << 20, Connections: 4, Create: true,
	}
	for _, d := range []string{filepath.Dir(o.Catalog), o.DataDir, o.StagedDir, o.ExportsDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(o.ExtensionsDir, "ducklake.duckdb_extension")); err != nil {
		t.Fatal("run make extensions: ", err)
	}
	return o
}

// Open starts an engine with a lake of its own and closes it when the test ends.
func Open(t testing.TB, change ...func(*engine.Options)) (*engine.Engine, engine.Options) {
	t.Helper()
	o := Options(t, t.TempDir())
	for _, c := range change {
		c(&o)
	}
	e, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, o
}

// Conn borrows a connection until the test ends.
func Conn(t testing.TB, e *engine.Engine) *engine.Conn {
	t.Helper()
	c, err := e.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
