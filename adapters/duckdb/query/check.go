package query

import (
	"context"
	"fmt"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Checker judges candidates by queries that are pinned and proved like the reader's.
type Checker struct{ reader *Reader }

var _ ports.Checker = (*Checker)(nil)

// NewChecker makes a checker over the reader.
func NewChecker(r *Reader) *Checker { return &Checker{r} }

// Check is ports.Checker's. One statement answers all checks of the model, since proving costs as much as counting.
func (k *Checker) Check(ctx context.Context, scope serving.Scope, model plan.Model) ([]refresh.CheckResult, error) {
	table := engine.Identifier(model.Name)
	counts := []string{"count(*) AS total"}
	for i, c := range model.Checks {
		count, err := counting(c, table)
		if err != nil {
			return nil, err
		}
		counts = append(counts, fmt.Sprintf("%s AS c%d", count, i))
	}
	found := make([]int64, len(counts))
	err := k.reader.transaction(ctx, func(c *engine.Conn) error {
		s, err := gate.Parse(ctx, c, "SELECT * FROM "+table)
		if err != nil {
			return err
		}
		// Its columns are all that this one is asked for.
		whole, _, err := pin(ctx, c, scope, s, nil)
		if err != nil {
			return err
		}
		columns, err := describe(ctx, c, whole.SQL, nil)
		if err != nil {
			return err
		}
		if err := sameColumns(model, columns); err != nil {
			return err
		}
		if s, err = gate.Parse(ctx, c, "SELECT "+strings.Join(counts, ", ")+" FROM "+table); err != nil {
			return err
		}
		q, err := prove(ctx, c, scope, s, nil)
		if err != nil {
			return err
		}
		into := make([]any, len(found))
		for i := range found {
			into[i] = &found[i]
		}
		return unreadable(c.Scan(ctx, limited(q.sql, 1), nil, into...))
	})
	if err != nil {
		return nil, fmt.Errorf("check model %q: %w", model.Name, err)
	}
	results := make([]refresh.CheckResult, len(model.Checks))
	for i, c := range model.Checks {
		total, n := found[0], found[i+1]
		r := refresh.CheckResult{Model: model.Name, Check: c.String(), At: c.At, OK: n == 0}
		switch c.Kind {
		case project.NotNull:
			r.Detail = fmt.Sprintf("%d of %d rows have a NULL", n, total)
		case project.Unique:
			r.Detail = fmt.Sprintf("%d keys occur more than once in %d rows", n, total)
		case project.RowCount:
			r.OK = (c.Min == nil || total >= *c.Min) && (c.Max == nil || total <= *c.Max)
			r.Detail = fmt.Sprintf("the table has %d rows", total)
		}
		results[i] = r
	}
	return results, nil
}

// counting is the expression that counts what breaks the check.
func counting(check project.Check, table string) (string, error) {
	columns := make([]string, len(check.Columns))
	missing := make([]string, len(check.Columns))
	for i, c := range check.Columns {
		columns[i] = engine.Identifier(c)
		missing[i] = engine.Identifier(c) + " IS NULL"
	}
	switch check.Kind {
	case project.NotNull:
		return "count(*) FILTER (WHERE " + strings.Join(missing, " OR ") + ")", nil
	case project.Unique:
		// A key that holds a NULL repeats nothing, as in SQL's UNIQUE.
		return fmt.Sprintf("(SELECT count(*) FROM (SELECT 1 AS one FROM %s WHERE NOT (%s) GROUP BY %s HAVING count(*) > 1))", table, strings.Join(missing, " OR "), strings.Join(columns, ", ")), nil
	case project.RowCount:
		return "0", nil
	}
	return "", fail.New(fail.Internal, "unknown_check", "there is no check %q", check.Kind)
}

func sameColumns(m plan.Model, got []serving.Column) error {
	same := len(got) == len(m.Columns)
	for i := 0; same && i < len(got); i++ {
		same = got[i].Name == m.Columns[i].Name && got[i].Type == string(m.Columns[i].Type)
	}
	if !same {
		return fail.New(fail.Corrupt, "columns_differ", "table %q of model %q has columns %v in the lake, compiled were %v", m.Table, m.Name, got, m.Columns)
	}
	return nil
}
