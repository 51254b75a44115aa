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

// Checker judges candidates by queries that the reader pins and proves like any other.
type Checker struct{ reader *Reader }

var _ ports.Checker = (*Checker)(nil)

// NewChecker makes a checker over the reader.
func NewChecker(r *Reader) *Checker { return &Checker{r} }

// Check is ports.Checker's.
func (k *Checker) Check(ctx context.Context, scope serving.Scope, model plan.Model, check project.Check) (refresh.CheckResult, error) {
	result := refresh.CheckResult{Model: model.Name, Check: check.String(), At: check.At}
	columns := make([]string, len(check.Columns))
	missing := make([]string, len(check.Columns))
	for i, c := range check.Columns {
		columns[i] = quote(c)
		missing[i] = quote(c) + " IS NULL"
	}
	table := quote(model.Name)
	switch check.Kind {
	case project.NotNull:
		n, err := k.numbers(ctx, scope, fmt.Sprintf("SELECT count(*) FILTER (WHERE %s) AS missing, count(*) AS total FROM %s", strings.Join(missing, " OR "), table))
		if err != nil {
			return result, err
		}
		result.OK, result.Detail = n[0] == 0, fmt.Sprintf("%d of %d rows have a NULL", n[0], n[1])
	case project.Unique:
		// A key that holds a NULL repeats nothing, as in SQL's UNIQUE.
		n, err := k.numbers(ctx, scope, fmt.Sprintf("SELECT count(*) FILTER (WHERE n > 1) AS repeated, coalesce(sum(n), 0)::BIGINT AS total FROM (SELECT count(*) AS n FROM %s WHERE NOT (%s) GROUP BY %s)",
			table, strings.Join(missing, " OR "), strings.Join(columns, ", ")))
		if err != nil {
			return result, err
		}
		result.OK, result.Detail = n[0] == 0, fmt.Sprintf("%d keys occur more than once in %d rows", n[0], n[1])
	case project.RowCount:
		n, err := k.numbers(ctx, scope, fmt.Sprintf("SELECT count(*) AS total, 0 AS none FROM %s", table))
		if err != nil {
			return result, err
		}
		result.OK = (check.Min == nil || n[0] >= *check.Min) && (check.Max == nil || n[0] <= *check.Max)
		result.Detail = fmt.Sprintf("the table has %d rows", n[0])
	default:
		return result, fail.New(fail.Internal, "unknown_check", "there is no check %q", check.Kind)
	}
	return result, nil
}

// numbers is the one row of a statement of ours, which has only integers.
func (k *Checker) numbers(ctx context.Context, scope serving.Scope, statement string) ([2]int64, error) {
	var n [2]int64
	err := k.reader.transaction(ctx, func(c *engine.Conn) error {
		s, err := gate.Parse(ctx, c, statement)
		if err != nil {
			return err
		}
		q, err := prove(ctx, c, scope, s, nil)
		if err != nil {
			return err
		}
		return c.Scan(ctx, limited(q.sql, 1), nil, &n[0], &n[1])
	})
	return n, err
}

// quote writes a name so that the engine reads it as one.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
