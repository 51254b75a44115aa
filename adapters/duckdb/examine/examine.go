// Package examine looks at whole source files for the drafting of projects.
//
// Invariants: it reads staged copies only, and writes nothing; text formats are read by the domain's own readers, so that what is drafted
// does not depend on what an engine would guess; of Parquet files the engine tells the types and the values. The package chooses no
// type and writes no project.
package examine

import (
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/draft"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// Examiner is the engine's ports.Examiner.
type Examiner struct{ engine *engine.Engine }

var _ ports.Examiner = (*Examiner)(nil)

// New makes an examiner over the engine.
func New(e *engine.Engine) *Examiner { return &Examiner{e} }

// Examine is ports.Examiner's.
func (x *Examiner) Examine(ctx context.Context, format project.Format, a ports.Artifact) (draft.Table, error) {
	if format == project.Parquet {
		return x.parquet(ctx, a)
	}
	f, err := os.Open(a.Path)
	if err != nil {
		return draft.Table{}, fail.New(fail.Internal, "staged_file_gone", "the staged copy of %s cannot be opened", a.Name).Because(err)
	}
	defer f.Close()
	in := io.Reader(patient{ctx, f})
	if strings.HasSuffix(a.Name, ".gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			return draft.Table{}, damaged(ctx, a, err)
		}
		in = z
	}
	read := draft.ReadCSV
	if format == project.JSON {
		read = draft.ReadJSON
	}
	t, err := read(a.Name, in)
	var classified fail.Classified
	if err != nil && !errors.As(err, &classified) {
		return t, damaged(ctx, a, err)
	}
	return t, err
}

func damaged(ctx context.Context, a ports.Artifact, err error) error {
	if ctx.Err() != nil {
		return fail.New(fail.Canceled, "canceled", "looking at %s was given up", a.Name).Because(err)
	}
	return fail.New(fail.Invalid, "damaged_file", "%s is damaged or cut short", a.Name).Because(err).WithFix("give the whole file")
}

// patient reads until the context ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// parquet asks the engine for the file's types and values.
func (x *Examiner) parquet(ctx context.Context, a ports.Artifact) (t draft.Table, err error) {
	t = draft.Table{Name: a.Name, Format: project.Parquet}
	c, err := x.engine.Conn(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	from := "read_parquet(" + engine.Literal(a.Path) + ", hive_partitioning = false)"
	rows, err := c.Rows(ctx, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM "+from+")")
	if err != nil {
		return t, unreadable(a, err)
	}
	var texts []string
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return t, errors.Join(engine.Translate(err), rows.Close())
		}
		// What no source declares, and another type holds exactly.
		if wider, ok := map[string]string{"FLOAT": "DOUBLE", "TIMESTAMP_NS": "TIMESTAMP"}[kind]; ok {
			kind = wider
		}
		declared, err := project.ParseType(kind)
		if err != nil {
			return t, errors.Join(fail.New(fail.Invalid, "column_type", "%s: column %q has type %s, which no source can declare", a.Name, name, kind).Because(err).
				WithFix("write the file without it, or with a type that a source has"), rows.Close())
		}
		t.Columns = append(t.Columns, draft.NewColumn(name, declared))
		texts = append(texts, "CAST("+engine.Identifier(name)+" AS VARCHAR)")
	}
	if err := errors.Join(engine.Translate(rows.Err()), rows.Close()); err != nil {
		return t, err
	}
	if len(texts) == 0 {
		return t, fail.New(fail.Invalid, "empty_file", "%s has no columns", a.Name)
	}
	if rows, err = c.Rows(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM "+from); err != nil {
		return t, unreadable(a, err)
	}
	values := make([]sql.NullString, len(texts))
	into := make([]any, len(texts))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return t, errors.Join(engine.Translate(err), rows.Close())
		}
		for i, v := range values {
			t.Columns[i].Add(draft.Field{Text: v.String, Null: !v.Valid, Quoted: true})
		}
		t.Rows++
	}
	if err := errors.Join(engine.Translate(rows.Err()), rows.Close()); err != nil {
		return t, unreadable(a, err)
	}
	return t, nil
}

// unreadable names the file that the engine cannot read; bounds and cancellation stay as they are.
func unreadable(a ports.Artifact, err error) error {
	var classified *fail.Error
	if e, ok := engine.AsSQLError(err); ok && !errors.As(err, &classified) {
		return fail.New(fail.Invalid, "damaged_file", "%s cannot be read as Parquet: %s", a.Name, strings.ReplaceAll(e.Message, a.Path, a.Name)).WithFix("give a whole Parquet file")
	}
	return fmt.Errorf("look at %s: %w", a.Name, err)
}
