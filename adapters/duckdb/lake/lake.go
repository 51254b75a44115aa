// Package lake owns the write side of the analytical store: staging declared sources, creating physical tables, the one commit of a
// refresh, and what the catalog says of commits, snapshots and files.
//
// Invariants: one build writes at a time; a schema change is always one autocommit statement and never part of a data transaction,
// since the engine's memory is not safe beside readers otherwise; every data transaction truncates and fills tables that exist,
// changes a row of the marks table, and carries the attempt's mark; a build's connection is never used again after it.
//
// The package does not know runs, fences or pointers, and believes no commit: whether one happened is read from the catalog by
// whoever asks Find.
package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// own is the schema of our own tables. No workspace can have its name.
const own = "_leapview"

// Options says where the lake's files are.
type Options struct {
	// DataDir is the absolute directory below which the engine writes Parquet files.
	DataDir string
}

// Lake is the attached lake.
type Lake struct {
	engine  *engine.Engine
	dataDir string
	catalog catalog
	// writer holds the one token of the lake's single writer.
	writer chan struct{}
}

var _ ports.Lake = (*Lake)(nil)

// New is the lake that e has attached.
func New(e *engine.Engine, o Options) *Lake {
	l := &Lake{engine: e, dataDir: o.DataDir, catalog: fileCatalog{dataDir: o.DataDir}, writer: make(chan struct{}, 1)}
	l.writer <- struct{}{}
	return l
}

// Init completes the creation of a lake: our own schema, the marks table, and the commit that carries the lineage. Twice is once;
// another lineage than the one that is there is refused.
func (l *Lake) Init(ctx context.Context, lineage string) error {
	survey, err := l.Survey(ctx)
	if err != nil {
		return err
	}
	if survey.Lineage == lineage {
		return nil
	}
	if survey.Lineage != "" {
		return fail.New(fail.Corrupt, "lineage_mismatch", "the lake has lineage %q already, not %q", survey.Lineage, lineage)
	}
	return l.with(ctx, func(c *engine.Conn) error {
		if err := c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+engine.Lake+"."+own); err != nil {
			return err
		}
		if err := l.create(ctx, c, own, marksTable); err != nil {
			return err
		}
		if err := c.Exec(ctx, "BEGIN TRANSACTION"); err != nil {
			return err
		}
		if err := sign(ctx, c, refresh.Mark{Kind: refresh.MarkInit, Lineage: lineage}); err != nil {
			return err
		}
		return c.Exec(ctx, "COMMIT")
	})
}

// The marks table holds one row, replaced by every commit of ours, so that each of them changes something.
const marks = engine.Lake + "." + own + ".marks"

var marksTable = table{name: "marks", columns: []project.Column{{Name: "mark", Type: "VARCHAR"}}}

// table is a physical table that is to exist.
type table struct {
	name    string
	columns []project.Column
}

// create makes those of the tables, empty, that are not there with their newest rows readable. A power cut after a commit that was never
// made durable can leave the head naming files that are gone or cut short, and the engine cannot even empty such a table: it is dropped
// and made anew. Nothing is lost that could be read; older snapshots keep the dropped one.
func (l *Lake) create(ctx context.Context, c *engine.Conn, schema string, tables ...table) error {
	files, err := l.catalog.files(ctx, c, schema, newest)
	if err != nil {
		return err
	}
	return l.createBeside(ctx, c, schema, files, tables)
}

// createBeside is create for whoever knows the tables that are there, with their newest files.
func (l *Lake) createBeside(ctx context.Context, c *engine.Conn, schema string, files map[string][]dataFile, tables []table) error {
	for _, t := range tables {
		name := tableOf(schema, t.name)
		some, exists := files[t.name]
		if exists {
			whole, err := l.whole(some)
			if err != nil {
				return err
			}
			if whole {
				continue
			}
		}
		if exists {
			if err := c.Exec(ctx, "DROP TABLE "+name); err != nil {
				return err
			}
		}
		columns := join(t.columns, ", ", func(c project.Column) string { return engine.Identifier(c.Name) + " " + string(c.Type) })
		if err := c.Exec(ctx, "CREATE TABLE "+name+" ("+columns+")"); err != nil {
			return err
		}
	}
	got, err := columnsOf(ctx, c, schema)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if !slices.EqualFunc(got[t.name], t.columns, func(a, w project.Column) bool { return a.Name == w.Name && a.Type == w.Type }) {
			return fail.New(fail.Corrupt, "columns_differ", "the table %s exists with columns %v, and not with %v", tableOf(schema, t.name), named(got[t.name]), named(t.columns))
		}
	}
	return nil
}

// whole tells whether every one of the files is there with its size, and begins and ends as Parquet does: of a file that was never synced a
// power cut may leave the size and zeros. A file that cannot be looked at is not lost.
func (l *Lake) whole(files []dataFile) (bool, error) {
	for _, f := range files {
		sound, err := looksWhole(filepath.Join(l.dataDir, filepath.FromSlash(f.path)), f.size)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return false, fail.New(fail.Unavailable, "data_file_unseen", "the data file %s cannot be looked at", f.path).Because(err).WithFix("check the disk, and that this process may read it")
		case err != nil || !sound:
			return false, nil
		}
	}
	return true, nil
}

// looksWhole looks at a Parquet file's size and at the four bytes at either end.
func looksWhole(path string, size int64) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != size || size < 8 {
		return false, err
	}
	var ends [8]byte
	for i, at := range []int64{0, size - 4} {
		if _, err := f.ReadAt(ends[4*i:4*i+4], at); err != nil {
			return false, err
		}
	}
	return string(ends[:]) == "PAR1PAR1", nil
}

// columnsOf are what the tables of the schema have.
func columnsOf(ctx context.Context, c *engine.Conn, schema string) (_ map[string][]project.Column, err error) {
	rows, err := c.Rows(ctx, "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? ORDER BY table_name, column_index", engine.Lake, schema)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns := map[string][]project.Column{}
	for rows.Next() {
		var table string
		var x project.Column
		if err := rows.Scan(&table, &x.Name, &x.Type); err != nil {
			return nil, err
		}
		columns[table] = append(columns[table], x)
	}
	return columns, rows.Err()
}

// named are the columns as a declaration writes them.
func named(columns []project.Column) string {
	return "(" + join(columns, ", ", func(c project.Column) string { return c.Name + " " + string(c.Type) }) + ")"
}

// sign makes the open transaction carry the mark.
func sign(ctx context.Context, c *engine.Conn, mark refresh.Mark) error {
	text := mark.Encode()
	if err := c.Exec(ctx, "TRUNCATE "+marks); err != nil {
		return err
	}
	if err := c.Exec(ctx, "INSERT INTO "+marks+" VALUES (?)", text); err != nil {
		return err
	}
	return c.Exec(ctx, "CALL "+engine.Lake+".set_commit_message('leapview', ?, extra_info => ?)", string(mark.Kind), text)
}

// with runs f with a connection of its own.
func (l *Lake) with(ctx context.Context, f func(c *engine.Conn) error) error {
	c, err := l.engine.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// Begin is ports.Lake's.
func (l *Lake) Begin(ctx context.Context, workspace serving.Workspace) (ports.Build, error) {
	select {
	case <-l.writer:
	default:
		select {
		case <-l.writer:
		case <-ctx.Done():
			return nil, fail.New(fail.Canceled, "canceled_waiting", "the build was given up while another one had the lake").Because(ctx.Err())
		}
	}
	c, err := l.engine.Conn(ctx)
	if err != nil {
		l.writer <- struct{}{}
		return nil, err
	}
	b := &build{lake: l, conn: c, schema: string(workspace), staged: map[string][]staged{}}
	if err := c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+engine.Lake+"."+engine.Identifier(b.schema)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := l.create(ctx, c, own, marksTable); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Find is ports.Lake's.
func (l *Lake) Find(ctx context.Context, mark refresh.Mark) (at serving.Snapshot, committedAt time.Time, found bool, err error) {
	err = l.with(ctx, func(c *engine.Conn) error {
		at, committedAt, found, err = l.catalog.find(ctx, c, mark.Encode())
		return err
	})
	return at, committedAt, found, err
}

// Files is ports.Lake's.
func (l *Lake) Files(ctx context.Context, scope serving.Scope) (files []string, err error) {
	err = l.with(ctx, func(c *engine.Conn) error {
		all, err := l.catalog.files(ctx, c, string(scope.Workspace), int64(scope.Snapshot))
		if err != nil {
			return err
		}
		for _, table := range scope.Tables {
			some, exists := all[table]
			if !exists {
				return fail.New(fail.Corrupt, "table_gone", "snapshot %d of the lake has no table %s", scope.Snapshot, tableOf(string(scope.Workspace), table))
			}
			for _, f := range some {
				files = append(files, f.path)
			}
		}
		// Each commit of ours writes the marks too.
		ours, err := l.catalog.files(ctx, c, own, int64(scope.Snapshot))
		for _, f := range ours[marksTable.name] {
			files = append(files, f.path)
		}
		return err
	})
	slices.Sort(files)
	return files, err
}

// Survey is ports.Lake's.
func (l *Lake) Survey(ctx context.Context) (survey ports.LakeSurvey, err error) {
	err = l.with(ctx, func(c *engine.Conn) error {
		survey, err = l.catalog.survey(ctx, c)
		return err
	})
	return survey, err
}

// join writes each of the items and puts a separator between them.
func join[T any](items []T, separator string, write func(T) string) string {
	texts := make([]string, len(items))
	for i, x := range items {
		texts[i] = write(x)
	}
	return strings.Join(texts, separator)
}

// tableOf is a workspace's physical table as the engine names it.
func tableOf(schema, table string) string {
	return fmt.Sprintf("%s.%s.%s", engine.Lake, engine.Identifier(schema), engine.Identifier(table))
}
