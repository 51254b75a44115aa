package query

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// checks binds what the model's checks say.
func (w *compilation) checks(ctx context.Context, m plan.Model) error {
	for _, c := range m.Checks {
		before := len(w.problems)
		if err := w.checkParts(ctx, c, m); err != nil {
			return err
		}
		if len(w.problems) > before {
			continue
		}
		// What its parts are is known; whether they go together shows when the whole is bound.
		r, err := ruleOf(c, m, 0)
		if err != nil {
			return err
		}
		if _, _, err := w.bindCheck(ctx, "SELECT "+r.judged+" AS judged, "+r.failures+" AS failures FROM "+engine.Identifier(m.Name)); err != nil {
			bad, ok := refusal(err, nil)
			if !ok {
				return err
			}
			w.report(c.At, bad.Fix, "check %s of model %q: %s", c, m.Name, bad.Message)
		}
	}
	return nil
}

// bindCheck binds a statement over the models' empty tables, and gives what comes out: nothing when a model that it reads has problems of
// its own.
func (w *compilation) bindCheck(ctx context.Context, statement string) (gate.Text, []serving.Column, error) {
	s, err := gate.Parse(ctx, w.conn, statement)
	if err != nil {
		return gate.Text{}, nil, err
	}
	for _, name := range s.Reads() {
		if !w.models[name] {
			known := slices.DeleteFunc(slices.Clone(w.names), func(n string) bool { return !w.models[n] })
			return gate.Text{}, nil, &gate.Error{Offset: s.Relation(name), Message: fmt.Sprintf("a check reads models only, and %q is none", name), Fix: project.Suggest(name, known)}
		}
		if _, bound := w.bound[name]; !bound {
			return gate.Text{}, nil, nil
		}
	}
	if err := withoutParams(s); err != nil {
		return gate.Text{}, nil, err
	}
	return w.columns(ctx, s, nil)
}

func withoutParams(s *gate.Statement) error {
	if len(s.Params()) == 0 {
		return nil
	}
	return &gate.Error{Offset: s.Param(s.Params()[0]), Message: "a check has no parameters", Fix: "write the value itself"}
}

// checkParts binds the author's own SQL and values, each at its place.
func (w *compilation) checkParts(ctx context.Context, c project.Check, m plan.Model) error {
	if err := w.condition(ctx, "where", c.Where, m); err != nil {
		return err
	}
	switch c.Kind {
	case project.NotNull, project.Unique, project.RowCount:
	case project.AcceptedValues:
		return w.literals(ctx, c, m)
	case project.Range:
		if t := typeOf(m, c.Columns[0]); !numeric(t) && !isTime(t) && t != "TIME" {
			w.report(c.At, "name a column of numbers, days or times, or write an expression", "check %s: column %q is %s, which has no range", c, c.Columns[0], t)
			return nil
		}
		return w.literals(ctx, c, m)
	case project.Relationships:
		w.target(c, m)
	case project.Freshness:
		if t := typeOf(m, c.Columns[0]); !isTime(t) {
			w.report(c.At, "name a column of days or times", "check %s: column %q is %s, which has no age", c, c.Columns[0], t)
		}
	case project.Expression:
		return w.condition(ctx, "expression", c.Statement, m)
	case project.CustomSQL:
		return w.failures(ctx, c)
	}
	return nil
}

// condition binds SQL over one row of the model.
func (w *compilation) condition(ctx context.Context, what string, statement project.Statement, m plan.Model) error {
	if statement.SQL == "" {
		return nil
	}
	from := " FROM " + engine.Identifier(m.Name)
	var columns []serving.Column
	// First it is parsed without brackets, which it might close; then it is bound as a column, which has a type, and as a condition, where
	// nothing that sees other rows may stand.
	for _, bind := range []struct {
		head string
		ask  func(head string) error
	}{
		{"SELECT true AS found WHERE ", func(head string) error {
			s, err := gate.Parse(ctx, w.conn, head+statement.SQL)
			if err != nil {
				return err
			}
			if reads := s.Reads(); len(reads) > 0 {
				return &gate.Error{Offset: s.Relation(reads[0]), Message: fmt.Sprintf("it judges one row, and may not read %q", reads[0]), Fix: "use relationships, or a check of kind sql"}
			}
			return withoutParams(s)
		}},
		{"SELECT (", func(head string) (err error) {
			_, columns, err = w.bindCheck(ctx, head+statement.SQL+"\n) AS condition"+from)
			return err
		}},
		{"SELECT true AS found" + from + " WHERE (", func(head string) error {
			_, _, err := w.bindCheck(ctx, head+statement.SQL+"\n)")
			return err
		}},
	} {
		err := bind.ask(bind.head)
		if bad, refused := refusal(err, nil); refused {
			w.problems = append(w.problems, (&gate.Error{Offset: bad.Offset - len(bind.head), Message: what + ": " + bad.Message, Fix: bad.Fix}).Problem(statement))
			return nil
		}
		if err != nil {
			return err
		}
	}
	if len(columns) == 1 && columns[0].Type != "BOOLEAN" {
		w.report(statement.At, "write a comparison", "%s is %s, and no condition", what, columns[0].Type)
	}
	return nil
}

// failures binds the SELECT of a check, whose rows have to be fit to be shown.
func (w *compilation) failures(ctx context.Context, c project.Check) error {
	s, err := gate.Parse(ctx, w.conn, c.Statement.SQL)
	if err == nil {
		_, _, err = w.bindCheck(ctx, c.Statement.SQL)
	}
	if err != nil {
		return w.refused(err, c.Statement, s)
	}
	text, columns, err := w.bindCheck(ctx, "SELECT * FROM "+fragment(c.Statement.SQL))
	for i := 0; i < len(columns) && err == nil; i++ {
		if why := badName(columns, i); why != "" {
			err = &gate.Error{Offset: s.Identifier(columns[i].Name), Message: why, Fix: "name it: … AS name"}
		}
	}
	if len(columns) > 0 && err == nil {
		err = presentable(ctx, w.conn, text.SQL, serving.Shape{}, nil)
	}
	return w.refused(err, c.Statement, s)
}

// literals reports values that are none of the column's type, or would be others there.
func (w *compilation) literals(ctx context.Context, c project.Check, m plan.Model) (err error) {
	kind := typeOf(m, c.Columns[0])
	all := c.Literals()
	casts := make([]string, len(all))
	for i, l := range all {
		casts[i] = fmt.Sprintf("(%d, CAST(TRY_CAST(%s AS %s) AS VARCHAR))", i, engine.Literal(l.Text), kind)
	}
	rows, err := w.conn.Rows(ctx, "SELECT shown FROM (VALUES "+strings.Join(casts, ", ")+") AS t(i, shown) ORDER BY i")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	before := len(w.problems)
	for i := 0; rows.Next(); i++ {
		var shown sql.NullString
		if err := rows.Scan(&shown); err != nil {
			return err
		}
		switch {
		case !shown.Valid:
			w.report(all[i].At, "write a value of that type", "check %s: column %q is %s, and %q is no value of it", c, c.Columns[0], kind, all[i].Text)
		case !exact(all[i].Text, shown.String, kind):
			w.report(all[i].At, fmt.Sprintf("write %s if that is meant", shown.String), "check %s: column %q is %s, and %q would become %s in it", c, c.Columns[0], kind, all[i].Text, shown.String)
		}
	}
	if err := rows.Err(); err != nil || len(w.problems) > before || c.Low == nil || c.High == nil {
		return err
	}
	return w.ordered(ctx, c, m)
}

// ordered reports a range that no value is in.
func (w *compilation) ordered(ctx context.Context, c project.Check, m plan.Model) error {
	var empty bool
	if err := w.conn.Scan(ctx, "SELECT "+value(c.Low.Text, m, c.Columns[0])+" > "+value(c.High.Text, m, c.Columns[0]), nil, &empty); err != nil {
		return err
	}
	if empty {
		w.report(c.Low.At, "swap them", "check %s has a min of %s and a max of %s: no value has both", c, c.Low.Text, c.High.Text)
	}
	return nil
}

// The forms of values that the engine takes as they are written.
var (
	numberForm = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)
	timeForms  = map[project.Type]*regexp.Regexp{
		"TIME":                     regexp.MustCompile(`^` + clock + `$`),
		"TIMESTAMP":                regexp.MustCompile(`^` + day + `([ T]` + clock + `)?$`),
		"TIMESTAMP WITH TIME ZONE": regexp.MustCompile(`^` + day + `([ T]` + clock + `(Z|[-+][0-9]{2}(:[0-9]{2})?)?)?$`),
	}
)

const (
	day   = `[0-9]{4}-[0-9]{2}-[0-9]{2}`
	clock = `[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?`
)

// exact tells whether a value of the type is what its author wrote: a number that the type rounds, a day that loses its time and a word for a
// truth value are others. shown is the value in the engine's words.
func exact(text, shown string, kind project.Type) bool {
	if numeric(kind) && numberForm.MatchString(text) && numberForm.MatchString(shown) {
		a, _ := new(big.Rat).SetString(text)
		b, _ := new(big.Rat).SetString(shown)
		return a.Cmp(b) == 0
	}
	if form := timeForms[kind]; form != nil && form.MatchString(text) {
		return true
	}
	return text == shown || kind != "VARCHAR" && strings.EqualFold(text, shown)
}

// isTime tells whether values of the type are moments, which have an age.
func isTime(t project.Type) bool {
	return t == "DATE" || t == "TIMESTAMP" || t == "TIMESTAMP WITH TIME ZONE"
}

// numeric tells whether values of the type are numbers.
func numeric(t project.Type) bool {
	return t == "DOUBLE" || wholeOrDecimal(t)
}

func wholeOrDecimal(t project.Type) bool {
	s := string(t)
	return strings.HasSuffix(s, "INT") || strings.HasSuffix(s, "INTEGER") || strings.HasPrefix(s, "DECIMAL") && strings.HasSuffix(s, ")")
}

// target reports a model or column that relationships point to and that is not there, or that nothing can be equal to.
func (w *compilation) target(c project.Check, m plan.Model) {
	known := slices.DeleteFunc(slices.Clone(w.names), func(n string) bool { return !w.models[n] })
	if !w.models[c.To] {
		w.report(c.At, project.Suggest(c.To, known), "check %s: the project has no model %q", c, c.To)
		return
	}
	i := slices.IndexFunc(w.release.Models, func(m plan.Model) bool { return m.Name == c.To })
	if i < 0 {
		// It has problems of its own.
		return
	}
	to := w.release.Models[i]
	var names []string
	for _, x := range to.Columns {
		names = append(names, x.Name)
	}
	for i, f := range c.Fields {
		if !slices.Contains(names, f) {
			w.report(c.At, project.Suggest(f, names), "check %s: model %q has no column %q", c, c.To, f)
			continue
		}
		// Other pairs the engine would cast as it likes: a text to a number, which fails on some row, or a large number to a near one.
		mine, theirs := typeOf(m, c.Columns[i]), typeOf(to, f)
		if mine != theirs && !(wholeOrDecimal(mine) && wholeOrDecimal(theirs)) && !(isTime(mine) && isTime(theirs)) {
			w.report(c.At, "cast one of them in its model", "check %s: column %q is %s, and %q of model %q is %s: they are not compared without a cast", c, c.Columns[i], mine, f, c.To, theirs)
		}
	}
}
