package mem

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

var (
	_ ports.Lake    = (*Store)(nil)
	_ ports.Reader  = (*Store)(nil)
	_ ports.Checker = (*Store)(nil)
)

// query is the store's ports.Query.
type query struct {
	scope serving.Scope
	// table is the physical table that the statement reads.
	table string
	bound *bound
	shape serving.Shape
	// columns are those of the answers.
	columns []serving.Column
}

// Columns is ports.Query's.
func (q *query) Columns() []serving.Column { return q.columns }

// Shaped is ports.Query's.
func (q *query) Shaped(shape serving.Shape) (ports.Query, error) {
	columns, err := shape.Of(q.bound.answers())
	if err != nil {
		return nil, err
	}
	return &query{q.scope, q.table, q.bound, shape, columns}, nil
}

// Prepare is ports.Reader's.
func (s *Store) Prepare(ctx context.Context, scope serving.Scope, statement project.Statement, params []project.Param) (ports.Query, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	parsed, bad := parse(statement.SQL)
	if bad != nil {
		return nil, project.Problems{bad.problem(statement)}
	}
	name, found := scope.Tables[parsed.from.text]
	if !found {
		known := make([]string, 0, len(scope.Tables))
		for m := range scope.Tables {
			known = append(known, m)
		}
		slices.Sort(known)
		bad := refuse(parsed.from.offset, "%q is not a model of workspace %q", parsed.from.text, scope.Workspace)
		bad.fix = project.Suggest(parsed.from.text, known)
		return nil, project.Problems{bad.problem(statement)}
	}
	s.mu.Lock()
	t, _, err := s.tableAt(scope, name)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	b, bad := bind(parsed, t.columns, params)
	if bad != nil {
		return nil, project.Problems{bad.problem(statement)}
	}
	if problems := b.unused(params); len(problems) > 0 {
		return nil, problems
	}
	return &query{scope: scope, table: name, bound: b, columns: b.answers()}, nil
}

// Open is ports.Reader's.
func (s *Store) Open(ctx context.Context) (ports.Reading, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	select {
	case <-s.readings:
	default:
		return nil, fail.New(fail.Internal, "too_many_readings", "%d readings are open, and no more may be (limit connections = %d)", s.o.Readings, s.o.Readings)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &reading{store: s, head: s.head}, nil
}

// reading is the store's ports.Reading. head is the newest snapshot that its transaction sees.
type reading struct {
	store  *Store
	head   serving.Snapshot
	broken bool
	closed bool
}

// Answer is ports.Reading's.
func (r *reading) Answer(ctx context.Context, q ports.Query, args serving.Args, limits serving.Limits) (serving.Answer, error) {
	if r.closed || r.broken {
		return serving.Answer{}, fail.New(fail.Internal, "reading_closed", "the reading was used after it was closed or had failed")
	}
	a, err := r.answer(ctx, q, args, limits)
	r.broken = err != nil
	return a, err
}

func (r *reading) answer(ctx context.Context, q ports.Query, args serving.Args, limits serving.Limits) (serving.Answer, error) {
	var a serving.Answer
	if err := ended(ctx); err != nil {
		return a, err
	}
	mine, ok := q.(*query)
	if !ok {
		return a, fail.New(fail.Internal, "foreign_query", "the query was prepared by another store")
	}
	if limits.Rows < 1 || limits.Bytes < 1 {
		return a, fail.New(fail.Internal, "bad_limits", "an answer needs limits of at least one row and one byte, not %d and %d", limits.Rows, limits.Bytes)
	}
	for _, f := range mine.bound.filters {
		if _, given := args[f.param]; f.param != "" && !given {
			return a, fail.New(fail.Internal, "unbound_parameter", "the parameter %q was given no value", f.param)
		}
	}
	if mine.scope.Snapshot > r.head {
		return a, fail.New(fail.Missing, "snapshot_missing", "snapshot %d was committed after this reading began at snapshot %d", mine.scope.Snapshot, r.head)
	}
	in, err := r.store.rowsAt(mine.scope, mine.table)
	if err != nil {
		return a, err
	}
	rows, err := mine.bound.run(in, args)
	if err != nil {
		return a, fail.New(fail.Invalid, "query_failed", "the query failed").Because(err)
	}
	rows = mine.bound.shaped(rows, mine.shape)
	var out bytes.Buffer
	out.WriteByte('[')
	for _, row := range rows {
		line := encodeRow(row)
		if a.Count > 0 {
			line = append([]byte(","), line...)
		}
		// One byte is for the bracket that closes the answer.
		switch {
		case a.Count >= limits.Rows:
			a.Truncated, a.TruncationReason = true, serving.RowLimit
		case out.Len()+len(line)+1 > limits.Bytes:
			a.Truncated, a.TruncationReason = true, serving.ByteLimit
		}
		if a.Truncated {
			break
		}
		out.Write(line)
		a.Count++
	}
	out.WriteByte(']')
	a.Columns, a.Rows = mine.Columns(), out.Bytes()
	return a, nil
}

// Close is ports.Reading's.
func (r *reading) Close() error {
	if !r.closed {
		r.closed = true
		r.store.readings <- struct{}{}
	}
	return nil
}

// Check is ports.Checker's.
func (s *Store) Check(ctx context.Context, scope serving.Scope, model plan.Model, now time.Time) ([]refresh.CheckResult, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	rows, err := s.rowsAt(scope, model.Table)
	if err != nil {
		return nil, err
	}
	if t := s.table(scope.Workspace, model.Table); t == nil || !sameColumns(t.columns, model.Columns) {
		return nil, fail.New(fail.Corrupt, "columns_differ", "table %q has other columns than model %q was compiled to", model.Table, model.Name)
	}
	results := make([]refresh.CheckResult, len(model.Checks))
	for i, c := range model.Checks {
		if results[i], err = s.judge(scope, rows, model, c, now); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// table is a stored table, or nil.
func (s *Store) table(w serving.Workspace, name string) *storedTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schemas[w][name]
}

// judge evaluates one check over a model's rows. The twin knows no SQL inside of checks.
func (s *Store) judge(scope serving.Scope, rows [][]value, model plan.Model, check project.Check, now time.Time) (refresh.CheckResult, error) {
	result := refresh.CheckResult{Model: model.Name, Check: check.String(), Name: check.Name, At: check.At, Severity: check.Severity, Judged: int64(len(rows))}
	at := make([]int, len(check.Columns))
	for i, name := range check.Columns {
		at[i] = slices.IndexFunc(model.Columns, func(c project.Column) bool { return c.Name == name })
		if at[i] < 0 {
			return result, fail.New(fail.Internal, "unknown_check_column", "check %s names column %q, which model %q does not have", check, name, model.Name)
		}
	}
	if check.Where.SQL != "" {
		return result, fail.New(fail.Invalid, "twin_sql", "the in-memory store does not read the SQL of check %s", check)
	}
	key := func(row []value, at []int) []value {
		key := make([]value, len(at))
		for i, j := range at {
			key[i] = row[j]
		}
		return key
	}
	parse := func(l project.Literal) (value, error) { return parseValue(l.Text, model.Columns[at[0]].Type) }
	switch check.Kind {
	case project.NotNull:
		for _, row := range rows {
			if slices.Contains(key(row, at), nil) {
				result.Failures++
			}
		}
		result.Detail = fmt.Sprintf("%d of %d rows have a NULL", result.Failures, len(rows))
	case project.Unique:
		seen := map[string]int64{}
		for _, row := range rows {
			// SQL's UNIQUE never counts a key that holds a NULL as a repetition.
			if k := key(row, at); !slices.Contains(k, nil) {
				seen[string(encodeRow(k))]++
			}
		}
		for _, n := range seen {
			if n > 1 {
				result.Failures += n
			}
		}
		result.Detail = fmt.Sprintf("%d of %d rows share their key with another", result.Failures, len(rows))
	case project.RowCount:
		if !check.Counts(result.Judged) {
			result.Failures = 1
		}
		result.Detail = fmt.Sprintf("the table has %d rows", len(rows))
	case project.AcceptedValues:
		var accepted []value
		for _, l := range check.Values {
			v, err := parse(l)
			if err != nil {
				return result, err
			}
			accepted = append(accepted, v)
		}
		for _, row := range rows {
			if v := row[at[0]]; v != nil && !slices.Contains(accepted, v) {
				result.Failures++
			}
		}
		result.Detail = fmt.Sprintf("%d of %d rows have a value that is not accepted", result.Failures, len(rows))
	case project.Range:
		for _, row := range rows {
			out := false
			for i, bound := range []*project.Literal{check.Low, check.High} {
				if bound == nil || row[at[0]] == nil {
					continue
				}
				v, err := parse(*bound)
				if err != nil {
					return result, err
				}
				if d := compare(row[at[0]], v); i == 0 && d < 0 || i == 1 && d > 0 {
					out = true
				}
			}
			if out {
				result.Failures++
			}
		}
		result.Detail = fmt.Sprintf("%d of %d rows are out of the range", result.Failures, len(rows))
	case project.Relationships:
		to, err := s.rowsAt(scope, scope.Tables[check.To])
		if err != nil {
			return result, err
		}
		other := s.table(scope.Workspace, scope.Tables[check.To])
		fields := make([]int, len(check.Fields))
		for i, name := range check.Fields {
			fields[i] = slices.IndexFunc(other.columns, func(c project.Column) bool { return c.Name == name })
		}
		known := map[string]bool{}
		for _, row := range to {
			known[string(encodeRow(key(row, fields)))] = true
		}
		for _, row := range rows {
			if k := key(row, at); !slices.Contains(k, nil) && !known[string(encodeRow(k))] {
				result.Failures++
			}
		}
		result.Detail = fmt.Sprintf("%d of %d rows point to nothing in %s", result.Failures, len(rows), check.To)
	case project.Freshness:
		var newest time.Time
		for _, row := range rows {
			if day, ok := row[at[0]].(date); ok {
				// It is a day: it was parsed as one.
				if d, _ := time.Parse(time.DateOnly, string(day)); d.After(newest) {
					newest = d
				}
			}
		}
		if newest.IsZero() || newest.Before(now.Add(-check.MaxAge)) {
			result.Failures = 1
		}
		result.Detail = fmt.Sprintf("the newest value is %s", newest.Format(time.DateOnly))
	case project.Expression, project.CustomSQL:
		return result, fail.New(fail.Invalid, "twin_sql", "the in-memory store does not know check %s", check.Kind)
	default:
		return result, fail.New(fail.Internal, "unknown_check", "there is no check %q", check.Kind)
	}
	result.OK = check.Allows(result.Failures, result.Judged)
	return result, nil
}
