package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// counted is what counting gave for one rule.
type counted struct {
	judged, failures int64
	// unjudged is what the engine said when it could not tell, or nil.
	unjudged *engine.SQLError
}

// Check is ports.Checker's. One statement answers all checks of the model, since proving costs as much as counting; what breaks a rule is
// asked for when something does.
func (k *Checker) Check(ctx context.Context, scope serving.Scope, model plan.Model, now time.Time) ([]refresh.CheckResult, error) {
	rules := make([]rule, len(model.Checks))
	for i, c := range model.Checks {
		var err error
		if rules[i], err = ruleOf(c, model, now.UnixMicro()); err != nil {
			return nil, err
		}
	}
	counts := make([]counted, len(rules))
	if err := k.count(ctx, scope, model, rules, counts); err != nil {
		return nil, fmt.Errorf("check model %q: %w", model.Name, err)
	}
	results := make([]refresh.CheckResult, len(rules))
	for i, c := range model.Checks {
		n := counts[i]
		if c.Kind == project.RowCount && !c.Counts(n.judged) {
			n.failures = 1
		}
		r := refresh.CheckResult{Model: model.Name, Check: c.String(), Name: c.Name, At: c.At, Severity: c.Severity, Judged: n.judged, Failures: n.failures}
		var err error
		switch {
		case n.unjudged != nil:
			r.Detail = "the engine cannot judge it on the rows it met"
			r.Sample, err = complaint(n.unjudged)
		case c.Allows(n.failures, n.judged):
			r.OK, r.Detail = true, detail(c, n.judged, n.failures)
		default:
			r.Detail = detail(c, n.judged, n.failures)
			r.Sample, err = k.sample(ctx, scope, c, rules[i])
		}
		if err != nil {
			return nil, fmt.Errorf("look at what breaks check %s of model %q: %w", r.Check, model.Name, err)
		}
		results[i] = r
	}
	return results, nil
}

// count answers the rules in one statement. When that one is more than the gate lets through, or when the rows are not what one of the
// rules can be computed of, it is asked in halves: every rule that can be judged is.
func (k *Checker) count(ctx context.Context, scope serving.Scope, model plan.Model, rules []rule, counts []counted) error {
	err := k.reader.transaction(ctx, func(c *engine.Conn) error {
		if err := k.columns(ctx, c, scope, model); err != nil {
			return err
		}
		return k.answer(ctx, c, scope, model, rules, counts)
	})
	var refused *gate.Error
	var unjudged *unjudgedError
	half := len(rules) / 2
	switch {
	case half > 0 && (errors.As(err, &refused) || errors.As(err, &unjudged)):
		if err := k.count(ctx, scope, model, rules[:half], counts[:half]); err != nil {
			return err
		}
		return k.count(ctx, scope, model, rules[half:], counts[half:])
	case errors.As(err, &unjudged):
		counts[0] = counted{unjudged: unjudged.cause}
		return nil
	}
	return err
}

// unjudgedError is what the engine says of the rows while it computes rules over them, as of a text that is no number.
type unjudgedError struct{ cause *engine.SQLError }

// Error is the engine's text.
func (e *unjudgedError) Error() string { return e.cause.Error() }

// columns proves that the table has the columns that its model was compiled to.
func (k *Checker) columns(ctx context.Context, c *engine.Conn, scope serving.Scope, model plan.Model) error {
	s, err := gate.Parse(ctx, c, "SELECT * FROM "+engine.Identifier(model.Name))
	if err != nil {
		return err
	}
	whole, _, err := pin(ctx, c, scope, s, nil)
	if err != nil {
		return err
	}
	columns, err := describe(ctx, c, whole.SQL, nil)
	if err != nil {
		return err
	}
	return sameColumns(model, columns)
}

// answer counts for the rules in one statement.
func (k *Checker) answer(ctx context.Context, c *engine.Conn, scope serving.Scope, model plan.Model, rules []rule, counts []counted) error {
	if len(rules) == 0 {
		return nil
	}
	selected := make([]string, len(rules))
	var into []any
	for i, r := range rules {
		selected[i] = fmt.Sprintf("%s AS j%d, %s AS f%d", r.judged, i, r.failures, i)
		into = append(into, &counts[i].judged, &counts[i].failures)
	}
	s, err := gate.Parse(ctx, c, "SELECT "+strings.Join(selected, ", ")+" FROM "+engine.Identifier(model.Name))
	if err != nil {
		return err
	}
	q, err := prove(ctx, c, scope, s, nil)
	if err != nil {
		return err
	}
	err = unreadable(c.Scan(ctx, limited(q.sql, serving.Shape{}, 1), nil, into...))
	if e, ok := blamable(err); ok {
		return &unjudgedError{e}
	}
	return err
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
