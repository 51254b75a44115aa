// Package query owns what a statement of a project means to the engine: it compiles projects against declared columns, and
// prepares and answers their questions at one snapshot.
//
// Invariants: no statement reaches the engine that the gate did not let through, and none answers that was not proved on its
// bound plan; an answer's columns and types are those that its query was prepared with; compiling reads no row and changes
// nothing that outlives its connection.
//
// The package does not know who asks, which snapshot is the right one, how long a query is kept, or how an answer travels.
package query

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/adapters/duckdb/query/encode"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// engineTypes are what parameters are cast to. A decimal's digits are those that its values are checked for, so that none is
// rounded.
var engineTypes = map[project.ParamType]string{
	project.ParamString:    "VARCHAR",
	project.ParamInteger:   "BIGINT",
	project.ParamDecimal:   "DECIMAL(38,9)",
	project.ParamBoolean:   "BOOLEAN",
	project.ParamDate:      "DATE",
	project.ParamTimestamp: "TIMESTAMP",
}

// paramTypes are the engine types of an endpoint's parameters by name.
func paramTypes(params []project.Param) map[string]string {
	types := make(map[string]string, len(params))
	for _, p := range params {
		types[p.Name] = engineTypes[p.Type]
		if p.List {
			types[p.Name] += "[]"
		}
	}
	return types
}

// mismatched are the parameters that the statement uses and nobody declared, and those declared that it does not use.
func mismatched(s *gate.Statement, statement project.Statement, params []project.Param) project.Problems {
	var problems project.Problems
	declared := make([]string, len(params))
	for i, p := range params {
		declared[i] = p.Name
		if !slices.Contains(s.Params(), p.Name) {
			problems = append(problems, project.Problem{At: p.At, Message: fmt.Sprintf("the parameter %q is declared, but the SQL does not use it", p.Name),
				Fix: fmt.Sprintf("write $%s where its value belongs, or remove it", p.Name)})
		}
	}
	for _, name := range s.Params() {
		if !slices.Contains(declared, name) {
			problems = append(problems, gate.Undeclared(s.Param(name), name, declared).Problem(statement))
		}
	}
	return problems
}

// limited is the shaped statement with a bound on its rows. The engine keeps the order of a subquery below a LIMIT.
func limited(statement string, shape serving.Shape, rows int) string {
	return shaped(statement, shape) + " LIMIT " + strconv.Itoa(rows)
}

// shaped is the statement with its columns picked and its rows sorted. The names in the shape have to be columns of the statement:
// quoted, each can only mean that column.
func shaped(statement string, shape serving.Shape) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, name := range shape.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(engine.Identifier(name))
	}
	if len(shape.Columns) == 0 {
		b.WriteByte('*')
	}
	b.WriteString(" FROM (" + statement + ")")
	for i, o := range shape.Order {
		if i == 0 {
			b.WriteString(" ORDER BY ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(engine.Identifier(o.Column))
		if o.Descending {
			b.WriteString(" DESC")
		}
		b.WriteString(" NULLS LAST")
	}
	return b.String()
}

// bind gives the parameters their values, NULL for those that values does not have.
func bind(params []string, values serving.Args) []any {
	args := make([]any, len(params))
	for i, name := range params {
		var value any
		if v, ok := values[name]; ok && v.Items != nil {
			value = v.Items
		} else if ok && !v.Null {
			value = v.Text
		}
		args[i] = sql.Named(name, value)
	}
	return args
}

// describe gives the columns of a rewritten statement.
func describe(ctx context.Context, c *engine.Conn, statement string, params []string) (_ []serving.Column, err error) {
	rows, err := c.Rows(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+statement+")", bind(params, nil)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var columns []serving.Column
	for rows.Next() {
		var col serving.Column
		if err := rows.Scan(&col.Name, &col.Type); err != nil {
			return nil, err
		}
		columns = append(columns, col)
	}
	return columns, rows.Err()
}

// presentable refuses a statement with a column whose values have no form in an answer, and one that cannot be shaped.
func presentable(ctx context.Context, c *engine.Conn, statement string, shape serving.Shape, params []string) error {
	reader, err := c.Arrow(ctx, limited(statement, shape, 0), bind(params, nil)...)
	if err != nil {
		return err
	}
	defer reader.Release()
	return encode.Check(reader.Schema())
}

// badName says what is wrong with the column's name among those before it, or "".
func badName(columns []serving.Column, i int) string {
	name := columns[i].Name
	if name == "" || len(name) > project.MaxColumnNameBytes || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Sprintf("column %d has a name that is empty, longer than %d bytes, or holds a control character", i+1, project.MaxColumnNameBytes)
	}
	for _, c := range columns[:i] {
		// The engine compares names without regard to case, and so do many readers of answers.
		if strings.EqualFold(c.Name, name) {
			return fmt.Sprintf("two columns are named %q", name)
		}
	}
	return ""
}

// refusal turns what the gate, the engine or the encoder says about a statement into an error at its place in it; any other error
// is not about the statement, and ok is false.
func refusal(err error, s *gate.Statement) (_ *gate.Error, ok bool) {
	var refused *gate.Error
	if errors.As(err, &refused) {
		return refused, true
	}
	var shape *encode.Unsupported
	if errors.As(err, &shape) {
		return &gate.Error{Offset: s.Identifier(shape.Column), Message: shape.Error()}, true
	}
	if e, ok := blamable(err); ok {
		message, _, _ := strings.Cut(e.Message, "\n")
		return &gate.Error{Message: message}, true
	}
	return nil, false
}
