package lake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/ports"
)

// build is one turn at the lake. Its staged tables live in its connection and end with it.
type build struct {
	lake   *Lake
	conn   *engine.Conn
	schema string
	// staged are the sources' parts by the sources' names.
	staged map[string][]staged
	// closers remove what the staged relations need as long as the build is open.
	closers []func()
	closed  bool
}

// Create is ports.Build's.
func (b *build) Create(ctx context.Context, models []plan.Model, keep []string) error {
	tables := make([]table, len(models))
	for i, m := range models {
		tables[i] = table{m.Table, m.Columns}
		keep = append(slices.Clip(keep), m.Table)
	}
	there, err := b.lake.catalog.files(ctx, b.conn, b.schema, newest)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if slices.Contains(keep, name) {
			continue
		}
		if err := b.conn.Exec(ctx, "DROP TABLE "+tableOf(b.schema, name)); err != nil {
			return err
		}
	}
	return b.lake.createBeside(ctx, b.conn, b.schema, there, tables)
}

// columns are what a relation has.
func (b *build) columns(ctx context.Context, relation string) (_ []project.Column, err error) {
	rows, err := b.conn.Rows(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+relation+")")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var columns []project.Column
	for rows.Next() {
		var c project.Column
		if err := rows.Scan(&c.Name, &c.Type); err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

// fill is the statement that fills a model's table, and where its parts are.
type fill struct {
	sql   string
	model plan.Model
	text  gate.Text
	// casts are the offsets at which the casts of the columns begin, and from is where the author's statement does.
	casts []int
	from  int
}

// fillOf casts the statement's columns, by their names, to what the table has. They were compared when the release was compiled.
func fillOf(into string, m plan.Model, text gate.Text) fill {
	f := fill{model: m, text: text}
	var b strings.Builder
	b.WriteString("INSERT INTO " + into + " SELECT ")
	for i, c := range m.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		f.casts = append(f.casts, b.Len())
		b.WriteString("CAST(" + engine.Identifier(c.Name) + " AS " + string(c.Type) + ")")
	}
	b.WriteString(" FROM (")
	f.from = b.Len()
	b.WriteString(text.SQL + ")")
	f.sql = b.String()
	return f
}

// blame gives an error about the author's statement, or about the values that it met, its place; other errors stay as they are.
func (f fill) blame(err error) error {
	e, ok := engine.AsSQLError(err)
	if !ok || !stopped(err) {
		return err
	}
	switch e.Type {
	case "Conversion", "Out of Range", "Invalid Input", "Divide by Zero", "Mismatch Type", "Binder", "Catalog", "Constraint", "Not implemented":
	default:
		return err
	}
	message, _, _ := strings.Cut(e.Message, "\n")
	message = strings.ToValidUTF8(message[:min(len(message), 300)], "")
	refused := gate.Error{Message: fmt.Sprintf("model %q failed on the rows it met: %s", f.model.Name, message), Fix: "correct the model's SQL or its declared types"}
	switch {
	case e.Position >= f.from && e.Position <= f.from+len(f.text.SQL):
		refused.Offset = f.text.Origin(e.Position - f.from)
	case len(f.casts) > 0 && e.Position >= f.casts[0] && e.Position < f.from:
		// The cast that begins last at or before the position is the one that failed.
		i, found := slices.BinarySearch(f.casts, e.Position)
		if !found {
			i--
		}
		c := f.model.Columns[i]
		refused.Message = fmt.Sprintf("column %q of model %q cannot hold a row that it met as %s: %s", c.Name, f.model.Name, c.Type, message)
	}
	return project.Problems{refused.Problem(f.model.Statement)}
}

// gated gives what the gate refuses its place; other errors stay as they are.
func gated(err error, m plan.Model) error {
	var refused *gate.Error
	if errors.As(err, &refused) {
		return project.Problems{refused.Problem(m.Statement)}
	}
	return err
}

// Close is ports.Build's. The connection is discarded, and with it everything staged.
func (b *build) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.conn.Discard()
	err := b.conn.Close()
	for _, c := range b.closers {
		c()
	}
	b.lake.writer <- struct{}{}
	return err
}

var _ ports.Build = (*build)(nil)
