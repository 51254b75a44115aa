package query

import (
	"context"
	"encoding/json"
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

// The bounds of what is kept of a check's failures.
const (
	sampleRows  = 5
	sampleBytes = 8 << 10
)

// Check is ports.Checker's. One statement answers many checks of the model, since proving costs as much as counting; what breaks a rule is
// asked for when something does.
func (k *Checker) Check(ctx context.Context, scope serving.Scope, model plan.Model, now time.Time) ([]refresh.CheckResult, error) {
	rules := make([]rule, len(model.Checks))
	for i, c := range model.Checks {
		var err error
		if rules[i], err = ruleOf(c, model, now.UnixMicro()); err != nil {
			return nil, err
		}
	}
	results := make([]refresh.CheckResult, len(model.Checks))
	err := k.reader.transaction(ctx, func(c *engine.Conn) error {
		if err := k.columns(ctx, c, scope, model); err != nil {
			return err
		}
		return k.count(ctx, c, scope, model, rules, results)
	})
	if err != nil {
		return nil, fmt.Errorf("check model %q: %w", model.Name, err)
	}
	for i, c := range model.Checks {
		r := &results[i]
		r.Model, r.Check, r.Name, r.At, r.Severity = model.Name, c.String(), c.Name, c.At, c.Severity
		if c.Kind == project.RowCount && !c.Counts(r.Judged) {
			r.Failures = 1
		}
		r.OK, r.Detail = c.Allows(r.Failures, r.Judged), detail(c, r.Judged, r.Failures)
		if r.OK || rules[i].sample == "" {
			continue
		}
		if r.Sample, err = k.sample(ctx, scope, project.Statement{SQL: rules[i].sample, At: c.At}); err != nil {
			return nil, fmt.Errorf("look at what breaks check %s of model %q: %w", r.Check, model.Name, err)
		}
	}
	return results, nil
}

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

// count answers the checks in one statement, or in several when that one is more than the gate lets through.
func (k *Checker) count(ctx context.Context, c *engine.Conn, scope serving.Scope, model plan.Model, rules []rule, results []refresh.CheckResult) error {
	if len(rules) == 0 {
		return nil
	}
	var counts []string
	var into []any
	for i, r := range rules {
		counts = append(counts, fmt.Sprintf("%s AS j%d, %s AS f%d", r.judged, i, r.failures, i))
		into = append(into, &results[i].Judged, &results[i].Failures)
	}
	s, err := gate.Parse(ctx, c, "SELECT "+strings.Join(counts, ", ")+" FROM "+engine.Identifier(model.Name))
	var refused *gate.Error
	if half := len(rules) / 2; half > 0 && errors.As(err, &refused) {
		if err := k.count(ctx, c, scope, model, rules[:half], results[:half]); err != nil {
			return err
		}
		return k.count(ctx, c, scope, model, rules[half:], results[half:])
	}
	if err != nil {
		return err
	}
	q, err := prove(ctx, c, scope, s, nil)
	if err != nil {
		return err
	}
	return unreadable(c.Scan(ctx, limited(q.sql, serving.Shape{}, 1), nil, into...))
}

// sample gives a few rows of the statement as a JSON object. Rows that do not fit within the bound are left out, or all of them.
func (k *Checker) sample(ctx context.Context, scope serving.Scope, statement project.Statement) (_ string, err error) {
	q, err := k.reader.Prepare(ctx, scope, statement, nil)
	if err != nil {
		return "", err
	}
	reading, err := k.reader.Open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, reading.Close()) }()
	a, err := reading.Answer(ctx, q, nil, serving.Limits{Rows: sampleRows, Bytes: sampleBytes})
	if err != nil {
		return "", err
	}
	names := make([]string, len(a.Columns))
	for i, c := range a.Columns {
		names[i] = c.Name
	}
	text, err := json.Marshal(struct {
		Columns []string        `json:"columns"`
		Rows    json.RawMessage `json:"rows"`
	}{names, a.Rows})
	return string(text), err
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
