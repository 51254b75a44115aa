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
	"slices"
	"strings"
	"time"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
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
	catalog catalog
	// writer holds the one token of the lake's single writer.
	writer chan struct{}
}

var _ ports.Lake = (*Lake)(nil)

// New is the lake that e has attached.
func New(e *engine.Engine, o Options) *Lake {
	l := &Lake{engine: e, catalog: fileCatalog{dataDir: o.DataDir}, writer: make(chan struct{}, 1)}
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
		if err := l.create(ctx, c, own, marksTable, marksColumns); err != nil {
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
const (
	marksTable   = "marks"
	marksColumns = "(mark VARCHAR)"
	marks        = engine.Lake + "." + own + "." + marksTable
)

// create makes an empty table unless there is one whose newest rows can be read. A power cut after a commit that was never made
// durable can leave the head naming files that are gone or cut short, and the engine cannot even empty such a table: it is dropped and
// made anew. Nothing is lost that could be read; older snapshots keep the dropped one.
func (l *Lake) create(ctx context.Context, c *engine.Conn, schema, table, columns string) error {
	name := tableOf(schema, table)
	if err := c.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+name+" "+columns); err != nil {
		return err
	}
	whole, err := l.catalog.whole(ctx, c, schema, table)
	if err != nil || whole {
		return err
	}
	if err := c.Exec(ctx, "DROP TABLE "+name); err != nil {
		return err
	}
	return c.Exec(ctx, "CREATE TABLE "+name+" "+columns)
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
	b := &build{lake: l, conn: c, schema: string(workspace)}
	if err := c.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+engine.Lake+"."+quote(b.schema)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := l.create(ctx, c, own, marksTable, marksColumns); err != nil {
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
		for _, table := range scope.Tables {
			some, err := l.catalog.files(ctx, c, string(scope.Workspace), table, int64(scope.Snapshot))
			if err != nil {
				return err
			}
			files = append(files, some...)
		}
		return nil
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

// quote writes a name so that the engine reads it as one.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal writes a text so that the engine reads it as one.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

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
	return fmt.Sprintf("%s.%s.%s", engine.Lake, quote(schema), quote(table))
}
