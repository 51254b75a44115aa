package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// build is one turn at the lake. Its staged tables live in its connection and end with it.
type build struct {
	lake   *Lake
	conn   *engine.Conn
	schema string
	// staged maps each source to the temporary table that holds it.
	staged map[string]gate.Target
	closed bool
}

// Create is ports.Build's.
func (b *build) Create(ctx context.Context, model plan.Model) error {
	table := tableOf(b.schema, model.Table)
	columns := join(model.Columns, ", ", func(c project.Column) string { return quote(c.Name) + " " + string(c.Type) })
	if err := b.conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+table+" ("+columns+")"); err != nil {
		return err
	}
	got, err := b.columns(ctx, table)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(got, model.Columns, func(a, w project.Column) bool { return a.Name == w.Name && a.Type == w.Type }) {
		return fail.New(fail.Corrupt, "columns_differ", "the table %s exists with columns %v, but model %q needs %v", table, got, model.Name, model.Columns)
	}
	return nil
}

// columns are what a table has.
func (b *build) columns(ctx context.Context, table string) (_ []project.Column, err error) {
	rows, err := b.conn.Rows(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+table+")")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var columns []project.Column
	for rows.Next() {
		var c project.Column
		if err := rows.Scan(&c.Name, &c.Type); err != nil {
			return nil, engine.Translate(err)
		}
		columns = append(columns, c)
	}
	return columns, engine.Translate(rows.Err())
}

// Commit is ports.Build's.
func (b *build) Commit(ctx context.Context, models []plan.Model, mark refresh.Mark, progress func(plan.Progress)) error {
	// Rewriting is done before the transaction, so that the lake is locked for no parsing.
	statements := make([]string, len(models))
	targets := map[string]gate.Target{}
	for name, t := range b.staged {
		targets[name] = t
	}
	for _, m := range models {
		targets[m.Name] = gate.Target{Catalog: engine.Lake, Schema: b.schema, Table: m.Table}
	}
	for i, m := range models {
		text, err := gate.Rewrite(ctx, b.conn, m.Statement.SQL, targets)
		if err != nil {
			return atModel(err, m)
		}
		// Positions would hide a column that moved; names are compared when the release is compiled, and once more by the
		// candidate's own check of its columns.
		statements[i] = "INSERT INTO " + tableOf(b.schema, m.Table) + " SELECT " +
			join(m.Columns, ", ", func(c project.Column) string { return "CAST(" + quote(c.Name) + " AS " + string(c.Type) + ")" }) +
			" FROM (" + text + ")"
	}
	if err := b.conn.Exec(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	for i, m := range models {
		progress(plan.Progress{Phase: plan.PhaseBuild, Subject: m.Name})
		if err := b.conn.Exec(ctx, "TRUNCATE "+tableOf(b.schema, m.Table)); err != nil {
			return err
		}
		var rows int64
		if err := b.conn.Scan(ctx, statements[i], nil, &rows); err != nil {
			return atModel(err, m)
		}
		progress(plan.Progress{Phase: plan.PhaseBuild, Subject: m.Name, Done: true, Rows: rows})
	}
	if err := sign(ctx, b.conn, mark); err != nil {
		return err
	}
	return b.conn.Exec(ctx, "COMMIT")
}

// atModel gives what the gate or the engine says about a model's statement its place; other errors stay as they are.
func atModel(err error, m plan.Model) error {
	var refused *gate.Error
	if errors.As(err, &refused) {
		return project.Problems{refused.Problem(m.Statement)}
	}
	e, ok := engine.AsSQLError(err)
	var classified *fail.Error
	if !ok || errors.As(err, &classified) {
		return err
	}
	switch e.Type {
	case "Conversion", "Out of Range", "Invalid Input", "Binder", "Catalog", "Constraint", "Mismatch Type", "Not implemented":
		message, _, _ := strings.Cut(e.Message, "\n")
		return project.Problems{{At: m.Statement.At, Message: fmt.Sprintf("model %q failed on the rows it met: %s", m.Name, message),
			Fix: "correct the model's SQL or the declared types"}}
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
	b.lake.writer <- struct{}{}
	return err
}

var _ ports.Build = (*build)(nil)
