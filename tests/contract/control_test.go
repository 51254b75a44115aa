package contract

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"leapview/adapters/mem"
	"leapview/adapters/sqlite"
	"leapview/domain/fail"
	"leapview/domain/refresh"
)

// Proves the contract of ports.Control for the twin.
func TestControlMem(t *testing.T) { controlSuite(t, openMemControl) }

// Proves the contract of ports.Control for the real control plane.
func TestControlSQLite(t *testing.T) { controlSuite(t, openSQLiteControl) }

// Proves the contract of ports.Keys for the twin.
func TestKeysMem(t *testing.T) { keysSuite(t, openMemControl) }

// Proves the contract of ports.Keys for the real control plane.
func TestKeysSQLite(t *testing.T) { keysSuite(t, openSQLiteControl) }

// Proves the contract of ports.Registry for the twin.
func TestRegistryMem(t *testing.T) { registrySuite(t, openMemControl) }

// Proves the contract of ports.Registry for the real control plane.
func TestRegistrySQLite(t *testing.T) { registrySuite(t, openSQLiteControl) }

func openMemControl(*testing.T) controlPlane { return memControl(mem.NewControl()) }

func openSQLiteControl(t *testing.T) controlPlane {
	return sqliteControl(t, filepath.Join(t.TempDir(), "leapview.db"))
}

func memControl(c *mem.Control) controlPlane {
	return controlPlane{
		Control: c, Registry: c, Keys: c,
		reopen: func(t *testing.T) controlPlane {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			return memControl(c.Reopen())
		},
		audit: func(*testing.T) []string {
			var rows []string
			for _, r := range c.Audit() {
				rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Principal, r.Action, r.Target, r.Outcome, r.Request)))
			}
			return rows
		},
		protections: func(*testing.T) []string {
			var rows []string
			for _, p := range c.Protections() {
				rows = append(rows, fmt.Sprintf("%s %s %d", p.Workspace, p.Kind, p.Snapshot))
			}
			return rows
		},
		sources: func(_ *testing.T, fence refresh.Fence) []string {
			var rows []string
			for _, f := range c.SourceFiles(fence) {
				rows = append(rows, fmt.Sprintf("%s %s %d %s", f.Source, f.Name, f.Size, f.SHA256))
			}
			return rows
		},
		failCommits: func(*testing.T) func() {
			c.FailCommit = func() error { return fail.New(fail.Limit, "disk_full", "the disk is full") }
			return func() { c.FailCommit = nil }
		},
	}
}

func sqliteControl(t *testing.T, path string) controlPlane {
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return controlPlane{
		Control: s, Registry: s, Keys: s,
		reopen: func(t *testing.T) controlPlane {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return sqliteControl(t, path)
		},
		audit: func(t *testing.T) []string {
			return besideSQLite(t, path, `SELECT principal || ' ' || action || ' ' || target || ' ' || outcome || coalesce(' ' || request, '') FROM audit_events ORDER BY id`)
		},
		protections: func(t *testing.T) []string {
			return besideSQLite(t, path, `SELECT workspace || ' ' || kind || ' ' || coalesce(snapshot, 0) FROM protections ORDER BY workspace, kind, snapshot`)
		},
		sources: func(t *testing.T, fence refresh.Fence) []string {
			return besideSQLite(t, path, fmt.Sprintf(`SELECT source || ' ' || name || ' ' || size || ' ' || sha256 FROM source_files WHERE fence = %d ORDER BY source, name`, fence))
		},
		// A constraint that is checked only by COMMIT makes the commit itself fail, after every statement went well.
		failCommits: func(t *testing.T) func() {
			besideSQLite(t, path, `CREATE TABLE sabotage (nobody INTEGER REFERENCES lake (one) DEFERRABLE INITIALLY DEFERRED) STRICT`)
			besideSQLite(t, path, `CREATE TRIGGER sabotage AFTER INSERT ON audit_events BEGIN INSERT INTO sabotage VALUES (2); END`)
			return func() { besideSQLite(t, path, `DROP TABLE sabotage`); besideSQLite(t, path, `DROP TRIGGER sabotage`) }
		},
	}
}

// besideSQLite runs a statement on a connection of its own and gives its rows.
func besideSQLite(t *testing.T, path, statement string) (rows []string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	r, err := db.Query(statement)
	if err != nil {
		t.Fatal(errors.Join(err, db.Close()))
	}
	for r.Next() {
		var row string
		err = errors.Join(err, r.Scan(&row))
		rows = append(rows, row)
	}
	if err := errors.Join(err, r.Err(), r.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}
