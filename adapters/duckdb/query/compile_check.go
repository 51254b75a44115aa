package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/plan"
	"leapview/domain/project"
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
		whole := project.Statement{SQL: "SELECT " + r.judged + " AS judged, " + r.failures + " AS failures FROM " + engine.Identifier(m.Name), At: c.At}
		if _, err := w.bindCheck(ctx, whole); err != nil {
			bad, ok := refusal(err, nil)
			if !ok {
				return err
			}
			w.report(c.At, bad.Fix, "check %s of model %q: %s", c, m.Name, bad.Message)
		}
	}
	return nil
}

// bindCheck binds a statement over the models' empty tables, and gives the types that come out.
func (w *compilation) bindCheck(ctx context.Context, statement project.Statement) ([]string, error) {
	s, err := gate.Parse(ctx, w.conn, statement.SQL)
	if err != nil {
		return nil, err
	}
	for _, name := range s.Reads() {
		if !w.models[name] {
			known := slices.DeleteFunc(slices.Clone(w.names), func(n string) bool { return !w.models[n] })
			return nil, &gate.Error{Offset: s.Relation(name), Message: fmt.Sprintf("a check reads models only, and %q is none", name), Fix: project.Suggest(name, known)}
		}
		if _, bound := w.bound[name]; !bound {
			return nil, nil
		}
	}
	if len(s.Params()) > 0 {
		return nil, &gate.Error{Offset: s.Param(s.Params()[0]), Message: "a check has no parameters", Fix: "write the value itself"}
	}
	_, columns, err := w.columns(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	types := make([]string, len(columns))
	for i, c := range columns {
		types[i] = c.Type
	}
	return types, nil
}

// checkParts binds the author's own SQL and values, each at its place.
func (w *compilation) checkParts(ctx context.Context, c project.Check, m plan.Model) error {
	const head = "SELECT ("
	for _, part := range []struct {
		what      string
		statement project.Statement
	}{{"where", c.Where}, {"expression", c.Statement}} {
		if part.statement.SQL == "" || part.what == "expression" && c.Kind != project.Expression {
			continue
		}
		types, err := w.bindCheck(ctx, project.Statement{SQL: head + part.statement.SQL + "\n) AS condition FROM " + engine.Identifier(m.Name)})
		bad, refused := refusal(err, nil)
		switch {
		case refused:
			w.problems = append(w.problems, (&gate.Error{Offset: bad.Offset - len(head), Message: part.what + ": " + bad.Message, Fix: bad.Fix}).Problem(part.statement))
		case err != nil:
			return err
		case len(types) == 1 && types[0] != "BOOLEAN" && types[0] != `"NULL"`:
			w.report(part.statement.At, "write a comparison", "%s is %s, and no condition", part.what, types[0])
		}
	}
	if c.Kind == project.CustomSQL {
		if _, err := w.bindCheck(ctx, c.Statement); err != nil {
			return w.refused(err, c.Statement, nil)
		}
	}
	for _, text := range slices.Concat(c.Values, present(c.Low), present(c.High)) {
		if err := w.castValue(ctx, c, m, text); err != nil {
			return err
		}
	}
	if c.Kind == project.Freshness {
		switch t := typeOf(m, c.Columns[0]); t {
		case "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		default:
			w.report(c.At, "name a column of days or times", "check %s: column %q is %s, which has no age", c, c.Columns[0], t)
		}
	}
	if c.Kind == project.Relationships {
		return w.target(c)
	}
	return nil
}

func present(s *string) []string {
	if s == nil {
		return nil
	}
	return []string{*s}
}

// castValue reports a value that is none of the column's type, or would be another one there.
func (w *compilation) castValue(ctx context.Context, c project.Check, m plan.Model, text string) error {
	kind := string(typeOf(m, c.Columns[0]))
	cast := value(text, m, c.Columns[0])
	// A number that the type rounds, and a day that loses its time, are not what was written.
	same := "true"
	switch {
	case strings.Contains(kind, "INT") || strings.HasPrefix(kind, "DECIMAL"):
		same = "TRY_CAST(" + engine.Literal(text) + " AS DECIMAL(38,18)) IS NULL OR CAST(" + cast + " AS DECIMAL(38,18)) = TRY_CAST(" + engine.Literal(text) + " AS DECIMAL(38,18))"
	case kind == "DATE":
		same = "CAST(" + cast + " AS VARCHAR) = " + engine.Literal(text)
	}
	var exact bool
	var shown string
	err := w.conn.Scan(ctx, "SELECT "+same+", CAST("+cast+" AS VARCHAR)", nil, &exact, &shown)
	if bad, ok := refusal(err, nil); ok {
		w.report(c.At, "write a value of that type", "check %s: %q is no value of column %q, which is %s: %s", c, text, c.Columns[0], kind, bad.Message)
		return nil
	}
	if err == nil && !exact {
		w.report(c.At, "write a value of that type", "check %s: %q would become another value of column %q, which is %s", c, text, c.Columns[0], kind)
	}
	return err
}

// target reports a model or column that relationships point to and that is not there.
func (w *compilation) target(c project.Check) error {
	known := slices.DeleteFunc(slices.Clone(w.names), func(n string) bool { return !w.models[n] })
	if !w.models[c.To] {
		w.report(c.At, project.Suggest(c.To, known), "check %s: the project has no model %q", c, c.To)
		return nil
	}
	i := slices.IndexFunc(w.release.Models, func(m plan.Model) bool { return m.Name == c.To })
	if i < 0 {
		// It has problems of its own.
		return nil
	}
	var names []string
	for _, x := range w.release.Models[i].Columns {
		names = append(names, x.Name)
	}
	for _, f := range c.Fields {
		if !slices.Contains(names, f) {
			w.report(c.At, project.Suggest(f, names), "check %s: model %q has no column %q", c, c.To, f)
		}
	}
	return nil
}
