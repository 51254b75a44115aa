// Package plan owns the compiled form of a release: the order its models are built in, the columns each one has, the physical
// table each one is written to, and the digest that says whether two plans build the same tables.
//
// Invariant: a Release is acyclic, every relation it reads is one of its own sources or models, and the physical name of a
// table is a function of its model's name and columns alone. The package never sees SQL's insides: which relations a statement
// reads is told to it by whoever parsed the statement.
package plan

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"leapview/domain/project"
)

// Model is a compiled model.
type Model struct {
	project.Model
	// Reads are the sources and models that its statement names, sorted, without repetition.
	Reads []string
	// Columns are what its table holds, in order, after the declared casts.
	Columns []project.Column
	// Table is the physical table in the workspace's schema.
	Table string
	// Input is the source whose files fill the table one by one; empty when the table is always built anew.
	Input string
	// Volatile tells that the statement calls a function that gives other values at other times.
	Volatile bool
}

// Endpoint is an endpoint whose statement was bound once against the release's columns.
type Endpoint struct {
	project.Endpoint
	// Reads are the models that its statement names, sorted, without repetition.
	Reads   []string
	Columns []project.Column
}

// Release is a compiled release.
type Release struct {
	ID      project.Digest
	Project project.Project
	// Models in an order in which each follows all that it reads.
	Models    []Model
	Endpoints []Endpoint
}

// Tables maps each model to its physical table.
func (r Release) Tables() map[string]string {
	m := make(map[string]string, len(r.Models))
	for _, x := range r.Models {
		m[x.Name] = x.Table
	}
	return m
}

// Digest covers all that decides the rows of the release's tables besides the sources' own bytes.
func (r Release) Digest() project.Digest {
	type step struct {
		Model, Table, SQL string
		Columns           []project.Column
		// What most models leave out stays out, so that it changes no digest of theirs.
		Mode        project.Mode `json:",omitempty"`
		Input       string       `json:",omitempty"`
		Key         []string     `json:",omitempty"`
		DeletedWhen string       `json:",omitempty"`
	}
	type source struct {
		Name, Location, Delimiter string
		Format                    project.Format
		NullTexts                 []string
		Columns                   []project.Column
		// What most sources leave out stays out, so that it changes no digest of theirs.
		Dialect  project.Dialect    `json:",omitzero"`
		Types    project.TypePolicy `json:",omitempty"`
		OnChange project.Change     `json:",omitempty"`
	}
	var in struct {
		Sources []source
		Steps   []step
	}
	strip := func(cs []project.Column) []project.Column {
		out := make([]project.Column, len(cs))
		for i, c := range cs {
			out[i] = project.Column{Name: c.Name, Type: c.Type, From: c.From, Format: c.Format}
		}
		return out
	}
	for _, s := range r.Project.Sources {
		in.Sources = append(in.Sources, source{s.Name, s.Location, s.Delimiter, s.Format, s.NullTexts, strip(s.Columns), s.Dialect, s.Types, s.OnChange})
	}
	for _, m := range r.Models {
		in.Steps = append(in.Steps, step{m.Name, m.Table, m.Statement.SQL, strip(m.Columns), m.Filling.Mode, m.Input, m.Filling.Key, m.Filling.DeletedWhen.SQL})
	}
	b, err := json.Marshal(in)
	if err != nil {
		// Strings, and structs and slices of strings, always marshal.
		panic(err)
	}
	return project.DigestOf(b)
}

// PhysicalTable names the table that holds a model with these columns: the same columns keep the same table, so a refresh
// changes rows and no schema, and other columns get a table of their own that no reader of the old one notices.
func PhysicalTable(model string, columns []project.Column) string {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "%d:%s%d:%s", len(c.Name), c.Name, len(c.Type), c.Type)
	}
	return model + "__" + project.DigestOf([]byte(b.String())).Short()
}

// Order sorts models so that each follows all that it reads. reads gives, by model name, the relations that its statement
// names. Unknown relations and cycles are problems that name them; with any problem the order is nil.
func Order(p project.Project, reads map[string][]string) ([]project.Model, project.Problems) {
	known := map[string]bool{}
	names := make([]string, 0, len(p.Sources)+len(p.Models))
	for _, s := range p.Sources {
		known[s.Name] = true
		names = append(names, s.Name)
	}
	byName := map[string]project.Model{}
	for _, m := range p.Models {
		known[m.Name] = true
		byName[m.Name] = m
		names = append(names, m.Name)
	}
	var problems project.Problems
	for _, m := range p.Models {
		for _, r := range reads[m.Name] {
			if !known[r] {
				problems = append(problems, project.Problem{At: m.Statement.At,
					Message: fmt.Sprintf("model %q reads %q, which is neither a source nor a model of this project", m.Name, r),
					Fix:     project.Suggest(r, names)})
			}
		}
	}
	const (
		unseen = iota
		open
		done
	)
	state := map[string]int{}
	var order []project.Model
	var path []string
	var visit func(name string)
	visit = func(name string) {
		m, isModel := byName[name]
		if !isModel || state[name] == done {
			return
		}
		if state[name] == open {
			start := 0
			for i, n := range path {
				if n == name {
					start = i
				}
			}
			cycle := append(append([]string{}, path[start:]...), name)
			problems = append(problems, project.Problem{At: m.Statement.At,
				Message: fmt.Sprintf("models read each other in a circle: %s", strings.Join(cycle, " → ")),
				Fix:     "remove one of these references"})
			return
		}
		state[name] = open
		path = append(path, name)
		next := append([]string{}, reads[name]...)
		sort.Strings(next)
		for _, r := range next {
			visit(r)
		}
		path = path[:len(path)-1]
		state[name] = done
		order = append(order, m)
	}
	for _, m := range p.Models {
		visit(m.Name)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return order, nil
}

// Phase is what a refresh is doing.
type Phase string

// The phases, in the order in which a run passes through them.
const (
	PhaseAcquire  Phase = "acquire"
	PhaseStage    Phase = "stage"
	PhaseKeep     Phase = "keep"
	PhaseCreate   Phase = "create"
	PhaseBuild    Phase = "build"
	PhaseCommit   Phase = "commit"
	PhaseSync     Phase = "sync"
	PhaseValidate Phase = "validate"
	PhaseActivate Phase = "activate"
)

// Progress is one step of a refresh that began or ended.
type Progress struct {
	Phase Phase
	// Subject is the source, model or check at work; empty for a phase without one.
	Subject string
	// Done tells that the step ended well; Rows is then how many rows it made, or -1 when it makes none.
	Done bool
	Rows int64
	// Action and Reason say what becomes of the model that is built, and why.
	Action Action
	Reason string
	// Warning is what people should look at although the step ended well; or "".
	Warning string
}
