package query

import (
	"cmp"
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
	"leapview/domain/serving"
	"leapview/ports"
)

// Compiler binds the statements of a project against empty temporary tables: one a source, with its declared columns, and one a
// model, with those that came out.
type Compiler struct{ engine *engine.Engine }

var _ ports.Compiler = (*Compiler)(nil)

// NewCompiler makes a compiler over the engine.
func NewCompiler(e *engine.Engine) *Compiler { return &Compiler{e} }

// Compile is ports.Compiler's. It needs one connection, which is ended afterwards with the tables on it.
func (k *Compiler) Compile(ctx context.Context, id project.Digest, p project.Project) (_ plan.Release, err error) {
	c, err := k.engine.Conn(ctx)
	if err != nil {
		return plan.Release{}, err
	}
	c.Discard()
	defer func() { err = errors.Join(err, c.Close()) }()
	w := &compilation{conn: c, release: plan.Release{ID: id, Project: p}, bound: map[string]gate.Target{}, models: map[string]bool{}}
	if err := w.run(ctx); err != nil {
		return plan.Release{}, err
	}
	if len(w.problems) > 0 {
		slices.SortStableFunc(w.problems, func(a, b project.Problem) int {
			return cmp.Or(strings.Compare(a.At.File, b.At.File), a.At.Line-b.At.Line, a.At.Column-b.At.Column)
		})
		return plan.Release{}, w.problems
	}
	return w.release, nil
}

// compilation is one project at work.
type compilation struct {
	conn     *engine.Conn
	release  plan.Release
	problems project.Problems
	// bound are the relations whose temporary tables exist.
	bound map[string]gate.Target
	// names are all sources and models; models tells which are models.
	names  []string
	models map[string]bool
}

func (w *compilation) report(at project.Position, fix, format string, args ...any) {
	w.problems = append(w.problems, project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// refused reports an error that is about the statement. Any other error is given back.
func (w *compilation) refused(err error, statement project.Statement, s *gate.Statement) error {
	bad, ok := refusal(err, s)
	if !ok {
		return err
	}
	w.problems = append(w.problems, bad.Problem(statement))
	return nil
}

func (w *compilation) run(ctx context.Context) error {
	p := w.release.Project
	for _, s := range p.Sources {
		w.names = append(w.names, s.Name)
		if err := w.table(ctx, s.Name, s.Columns); err != nil {
			return err
		}
	}
	for _, m := range p.Models {
		w.names = append(w.names, m.Name)
		w.models[m.Name] = true
	}
	// 1. Every model is parsed, since what they read decides the order.
	parsed := map[string]*gate.Statement{}
	reads := map[string][]string{}
	for _, m := range p.Models {
		s, err := gate.Parse(ctx, w.conn, m.Statement.SQL)
		if err != nil {
			if err := w.refused(err, m.Statement, nil); err != nil {
				return err
			}
			continue
		}
		parsed[m.Name] = s
		for _, name := range s.Reads() {
			if slices.Contains(w.names, name) {
				reads[m.Name] = append(reads[m.Name], name)
				continue
			}
			w.report(m.Statement.PositionOf(s.Relation(name)), project.Suggest(name, w.names),
				"model %q reads %q, which is neither a source nor a model of this project", m.Name, name)
			delete(parsed, m.Name)
		}
	}
	order, circles := plan.Order(p, reads)
	w.problems = append(w.problems, circles...)
	if len(circles) > 0 {
		order = p.Models
	}
	// 2. Models bind in order. Without an order, those that do not stand in a circle still show what else is wrong.
	for progress := true; progress; {
		progress = false
		for _, m := range order {
			s := parsed[m.Name]
			if s == nil || !w.ready(reads[m.Name]) {
				continue
			}
			delete(parsed, m.Name)
			progress = true
			if err := w.model(ctx, m, s); err != nil {
				return err
			}
		}
	}
	// 3. Checks may read every model.
	for _, m := range w.release.Models {
		if err := w.checks(ctx, m); err != nil {
			return err
		}
	}
	// 4. Endpoints bind against the models.
	for _, e := range p.Endpoints {
		if err := w.endpoint(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// ready tells whether everything that is read has a table.
func (w *compilation) ready(reads []string) bool {
	return !slices.ContainsFunc(reads, func(name string) bool { _, ok := w.bound[name]; return !ok })
}

// table makes an empty temporary table with the columns.
func (w *compilation) table(ctx context.Context, name string, columns []project.Column) error {
	defs := make([]string, len(columns))
	for i, c := range columns {
		defs[i] = engine.Identifier(c.Name) + " " + string(c.Type)
	}
	if err := w.conn.Exec(ctx, "CREATE TEMP TABLE "+engine.Identifier(name)+" ("+strings.Join(defs, ", ")+")"); err != nil {
		return fmt.Errorf("compile %s: %w", name, err)
	}
	w.bound[name] = gate.Target{Catalog: "temp", Schema: "main", Table: name}
	return nil
}

// model binds one model and makes its table.
func (w *compilation) model(ctx context.Context, m project.Model, s *gate.Statement) error {
	reads := s.Reads()
	text, columns, err := w.columns(ctx, s, nil)
	if err != nil {
		return w.refused(err, m.Statement, s)
	}
	before := len(w.problems)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
		if why := badName(columns, i); why != "" {
			w.report(m.Statement.PositionOf(s.Identifier(c.Name)), "name it: … AS name", "model %q: %s", m.Name, why)
		}
	}
	if len(w.problems) > before {
		return nil
	}
	out := make([]project.Column, len(columns))
	selected := make([]string, len(columns))
	for i, c := range columns {
		out[i].Name, selected[i] = c.Name, engine.Identifier(c.Name)
		if at := slices.IndexFunc(m.Casts, func(x project.Column) bool { return x.Name == c.Name }); at >= 0 {
			cast := m.Casts[at]
			out[i].Type, out[i].At, out[i].Description = cast.Type, cast.At, cast.Description
			selected[i] = fmt.Sprintf("CAST(%s AS %s) AS %s", selected[i], cast.Type, selected[i])
			if err := w.castable(ctx, text, c, cast); err != nil {
				return err
			}
			continue
		}
		at := m.Statement.PositionOf(s.Identifier(c.Name))
		t, err := project.LakeType(c.Type)
		if err != nil {
			w.report(at, fail.FixOf(err), "column %q of model %q: %s", c.Name, m.Name, fail.DetailOf(err, true))
		}
		out[i].Type, out[i].At = t, at
	}
	for _, cast := range m.Casts {
		if !slices.Contains(names, cast.Name) {
			w.report(cast.At, project.Suggest(cast.Name, names), "model %q has no column %q", m.Name, cast.Name)
		}
	}
	for _, check := range m.Checks {
		for _, name := range check.Columns {
			if !slices.Contains(names, name) {
				w.report(check.At, project.Suggest(name, names), "check %s: model %q has no column %q", check, m.Name, name)
			}
		}
	}
	if len(w.problems) > before {
		return nil
	}
	if err := presentable(ctx, w.conn, "SELECT "+strings.Join(selected, ", ")+" FROM ("+text.SQL+")", serving.Shape{}, nil); err != nil {
		return w.refused(err, m.Statement, s)
	}
	if err := w.table(ctx, m.Name, out); err != nil {
		return err
	}
	compiled := plan.Model{Model: m, Reads: reads, Columns: out, Table: plan.PhysicalTable(m.Name, out), Volatile: s.Volatile()}
	if sound, err := w.filling(ctx, &compiled); err != nil || !sound {
		return err
	}
	w.release.Models = append(w.release.Models, compiled)
	return nil
}

// columns rewrites the statement to the temporary tables, binds it there, and gives what comes out.
func (w *compilation) columns(ctx context.Context, s *gate.Statement, types map[string]string) (gate.Text, []serving.Column, error) {
	text, err := s.Rewrite(ctx, w.conn, w.bound, types)
	if err != nil {
		return text, nil, err
	}
	if err := gate.Bind(ctx, w.conn, text); err != nil {
		return text, nil, err
	}
	columns, err := describe(ctx, w.conn, text.SQL, s.Params())
	return text, columns, err
}

// castable reports a declared cast that the engine does not know.
func (w *compilation) castable(ctx context.Context, text gate.Text, c serving.Column, cast project.Column) error {
	_, err := describe(ctx, w.conn, fmt.Sprintf("SELECT CAST(%s AS %s) AS x FROM (%s)", engine.Identifier(c.Name), cast.Type, text.SQL), nil)
	if bad, ok := refusal(err, nil); ok {
		w.report(cast.At, "declare another type, or convert it in the SQL", "column %q is %s, which cannot be cast to %s: %s", c.Name, c.Type, cast.Type, bad.Message)
		return nil
	}
	return err
}

// endpoint binds one endpoint.
func (w *compilation) endpoint(ctx context.Context, e project.Endpoint) error {
	s, err := gate.Parse(ctx, w.conn, e.Statement.SQL)
	if err != nil {
		return w.refused(err, e.Statement, nil)
	}
	before := len(w.problems)
	w.problems = append(w.problems, mismatched(s, e.Statement, e.Params)...)
	reads := s.Reads()
	for _, name := range reads {
		switch {
		case w.models[name]:
		case slices.Contains(w.names, name):
			w.report(e.Statement.PositionOf(s.Relation(name)), "write a model over the source and read that", "endpoint %q reads the source %q, but endpoints read models only", e.Name, name)
		default:
			known := slices.DeleteFunc(slices.Clone(w.names), func(n string) bool { return !w.models[n] })
			w.report(e.Statement.PositionOf(s.Relation(name)), project.Suggest(name, known), "endpoint %q reads %q, which is not a model of this project", e.Name, name)
		}
	}
	if len(w.problems) > before || !w.ready(reads) {
		// A model without a table has a problem of its own, which is reported.
		return nil
	}
	text, columns, err := w.columns(ctx, s, paramTypes(e.Params))
	if err != nil {
		return w.refused(err, e.Statement, s)
	}
	out := make([]project.Column, len(columns))
	for i, c := range columns {
		out[i] = project.Column{Name: c.Name, Type: project.Type(c.Type), At: e.Statement.PositionOf(s.Identifier(c.Name))}
		if why := badName(columns, i); why != "" {
			w.report(out[i].At, "name it: … AS name", "endpoint %q: %s", e.Name, why)
		}
	}
	out, undescribed := e.Describe(out)
	w.problems = append(w.problems, undescribed...)
	if len(w.problems) > before {
		return nil
	}
	shape := serving.Shape{Order: slices.Clone(e.OrderBy.Ties)}
	for _, c := range e.OrderBy.Allow {
		shape.Order = append(shape.Order, project.Order{Column: c.Name})
	}
	if err := presentable(ctx, w.conn, text.SQL, shape, s.Params()); err != nil {
		return w.refused(err, e.Statement, s)
	}
	w.release.Endpoints = append(w.release.Endpoints, plan.Endpoint{Endpoint: e, Reads: reads, Columns: out})
	return nil
}
