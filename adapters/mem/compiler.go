package mem

import (
	"context"
	"fmt"
	"slices"

	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/ports"
)

// Compiler is the in-memory twin of ports.Compiler, over the SQL described in sql.go.
type Compiler struct{}

var _ ports.Compiler = Compiler{}

// Compile is ports.Compiler's.
func (Compiler) Compile(ctx context.Context, id project.Digest, p project.Project) (plan.Release, error) {
	if err := ended(ctx); err != nil {
		return plan.Release{}, err
	}
	var problems project.Problems
	relations := map[string][]project.Column{}
	for _, s := range p.Sources {
		problems = append(problems, unsupportedSource(s)...)
		relations[s.Name] = s.Columns
	}

	// Every statement is parsed first, since the relations it names decide the order of binding.
	parsed := map[string]statement{}
	reads := map[string][]string{}
	names, modelNames := make([]string, 0, len(p.Sources)+len(p.Models)), make([]string, 0, len(p.Models))
	for _, m := range p.Models {
		modelNames = append(modelNames, m.Name)
	}
	for _, s := range p.Sources {
		names = append(names, s.Name)
	}
	names = append(names, modelNames...)
	for _, m := range p.Models {
		s, bad := parse(m.Statement.SQL)
		if bad == nil && !slices.Contains(names, s.from.text) {
			bad = refuse(s.from.offset, "model %q reads %q, which is neither a source nor a model of this project", m.Name, s.from.text)
			bad.fix = project.Suggest(s.from.text, names)
		}
		if bad != nil {
			problems = append(problems, bad.problem(m.Statement))
			continue
		}
		parsed[m.Name] = s
		reads[m.Name] = []string{s.from.text}
	}
	order, circles := plan.Order(p, reads)
	problems = append(problems, circles...)

	release := plan.Release{ID: id, Project: p}
	// A model is bound once the columns of what it reads are known. Going over all of them until nothing more can be bound finds the
	// mistakes of models that do not depend on a broken one, also when there is no order.
	bound := map[string]plan.Model{}
	tried := map[string]bool{}
	for more := true; more; {
		more = false
		for _, m := range p.Models {
			s, ok := parsed[m.Name]
			in, known := relations[s.from.text]
			if !ok || !known || tried[m.Name] {
				continue
			}
			tried[m.Name], more = true, true
			columns, found := modelColumns(m, s, in)
			compiled := plan.Model{Model: m, Reads: reads[m.Name], Columns: columns, Table: plan.PhysicalTable(m.Name, columns)}
			if len(found) == 0 && m.Filling.Incremental() {
				compiled.Input, found = plan.InputOf(compiled, p)
				found = append(found, plan.KeyProblems(compiled)...)
				if sql := m.Filling.DeletedWhen; sql.SQL != "" {
					found = append(found, project.Problem{At: sql.At, Message: "the in-memory store does not read SQL inside of deleted_when"})
				}
			}
			problems = append(problems, found...)
			if len(found) == 0 {
				relations[m.Name] = columns
				bound[m.Name] = compiled
			}
		}
	}
	for _, m := range order {
		release.Models = append(release.Models, bound[m.Name])
	}
	for _, m := range order {
		problems = append(problems, checkProblems(bound[m.Name], bound, modelNames)...)
	}
	for _, e := range p.Endpoints {
		s, bad := parse(e.Statement.SQL)
		if bad == nil && !slices.Contains(modelNames, s.from.text) {
			bad = refuse(s.from.offset, "endpoint %q reads %q, which is not a model of this project", e.Name, s.from.text)
			bad.fix = project.Suggest(s.from.text, modelNames)
		}
		if bad != nil {
			problems = append(problems, bad.problem(e.Statement))
			continue
		}
		in, known := relations[s.from.text]
		if !known {
			continue
		}
		q, bad := bind(s, in, e.Params)
		if bad != nil {
			problems = append(problems, bad.problem(e.Statement))
			continue
		}
		problems = append(problems, q.unused(e.Params)...)
		columns, undescribed := e.Describe(q.columns)
		problems = append(problems, undescribed...)
		release.Endpoints = append(release.Endpoints, plan.Endpoint{Endpoint: e, Reads: []string{s.from.text}, Columns: columns})
	}
	if len(problems) > 0 {
		return plan.Release{}, problems
	}
	return release, nil
}

// modelColumns are what the model's table holds, after its casts, or all that is wrong with them and its checks.
func modelColumns(m project.Model, s statement, in []project.Column) ([]project.Column, project.Problems) {
	q, bad := bind(s, in, nil)
	if bad != nil {
		return nil, project.Problems{bad.problem(m.Statement)}
	}
	var problems project.Problems
	columns := slices.Clone(q.columns)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	for _, c := range m.Casts {
		i := slices.Index(names, c.Name)
		switch {
		case i < 0:
			problems = append(problems, project.Problem{At: c.At, Message: fmt.Sprintf("model %q has no column %q", m.Name, c.Name), Fix: project.Suggest(c.Name, names)})
		case !castable(columns[i].Type, c.Type):
			problems = append(problems, project.Problem{At: c.At, Message: fmt.Sprintf("the in-memory store does not cast column %q from %s to %s", c.Name, columns[i].Type, c.Type)})
		default:
			columns[i] = c
		}
	}
	for _, c := range columns {
		if c.Type == hugeint && !slices.ContainsFunc(m.Casts, func(x project.Column) bool { return x.Name == c.Name }) {
			problems = append(problems, project.Problem{At: m.Statement.At,
				Message: fmt.Sprintf("column %q of model %q is a HUGEINT, which a table cannot hold exactly", c.Name, m.Name),
				Fix:     fmt.Sprintf("declare it under columns, for example %s: BIGINT", c.Name)})
		}
	}
	for _, check := range m.Checks {
		for _, name := range check.Columns {
			if !slices.Contains(names, name) {
				problems = append(problems, project.Problem{At: check.At, Message: fmt.Sprintf("check %s: model %q has no column %q", check, m.Name, name), Fix: project.Suggest(name, names)})
			}
		}
	}
	return columns, problems
}
