package contract

import (
	"os"
	"path/filepath"
	"testing"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/lake"
	"leapview/adapters/duckdb/query"
	"leapview/domain/project"
	"leapview/ports"
)

func TestLakeDuckDB(t *testing.T)     { lakeSuite(t, duckdbStore) }
func TestCompilerDuckDB(t *testing.T) { compilerSuite(t, duckdbStore) }
func TestReaderDuckDB(t *testing.T)   { readerSuite(t, duckdbStore) }
func TestCheckerDuckDB(t *testing.T)  { checkerSuite(t, duckdbStore) }

// duckdbStore is a new lake in an engine of its own.
func duckdbStore(t *testing.T) store {
	t.Helper()
	e, o := enginetest.Open(t)
	l := lake.New(e, lake.Options{DataDir: o.DataDir})
	mustLake(t, l.Init(t.Context(), lineage))
	return overEngine(e, o)
}

// overEngine is the store over an engine whose lake exists.
func overEngine(e *engine.Engine, o engine.Options) store {
	reader := query.NewReader(e)
	return store{lake: lake.New(e, lake.Options{DataDir: o.DataDir}), reader: reader, compiler: query.NewCompiler(e), checker: query.NewChecker(reader),
		lineage: lineage, connections: o.Connections,
		stage: func(t *testing.T, name string, content []byte) ports.Artifact {
			t.Helper()
			path := filepath.Join(o.StagedDir, "run", string(project.DigestOf(content)), filepath.Base(name))
			mustLake(t, os.MkdirAll(filepath.Dir(path), 0o700))
			mustLake(t, os.WriteFile(path, content, 0o600))
			return ports.Artifact{Name: name, Path: path, Size: int64(len(content)), SHA256: project.DigestOf(content)}
		},
		holds: func(path string) bool {
			info, err := os.Stat(filepath.Join(o.DataDir, filepath.FromSlash(path)))
			return err == nil && info.Size() > 0
		},
		reopen: func(t *testing.T) store {
			t.Helper()
			mustLake(t, e.Close())
			o.Create = false
			next, err := engine.Open(t.Context(), o)
			mustLake(t, err)
			t.Cleanup(func() { mustLake(t, next.Close()) })
			return overEngine(next, o)
		},
	}
}
