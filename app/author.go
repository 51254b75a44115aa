package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Author answers what a project's author asks before anything is deployed.
type Author struct {
	releases *Releases
	registry ports.Registry
	identity ports.Identity
	sources  ports.Sources
	lake     ports.Lake
	reader   ports.Reader
	examiner ports.Examiner
}

// NewAuthor wires the ports that an author needs.
func NewAuthor(releases *Releases, registry ports.Registry, identity ports.Identity, sources ports.Sources, lake ports.Lake, reader ports.Reader,
	examiner ports.Examiner) *Author {
	return &Author{releases, registry, identity, sources, lake, reader, examiner}
}

// Draft is a compiled project that nothing was deployed of.
type Draft struct {
	plan.Release
	files []project.File
}

// Validate compiles a bundle and keeps nothing: the error is what a deploy of it would say.
func (a *Author) Validate(ctx context.Context, bundle []byte) (Draft, error) {
	rel, err := a.releases.compile(ctx, project.DigestOf(bundle), bundle)
	if err != nil {
		return Draft{}, err
	}
	files, err := project.Unpack(bundle)
	return Draft{rel, files}, err
}

// TestResult is how one case of a test file came out.
type TestResult struct {
	Test project.Test
	// Columns name what Missing and Unexpected hold, which are rows as JSON arrays.
	Columns []string
	// Missing were expected and did not come out, Unexpected came out and were not expected; both are bounded, and Differences counts
	// all of them.
	Missing, Unexpected []string
	Differences         int
	// Misordered tells that the rows are the expected ones in another order, which counted.
	Misordered bool
	// Err is why the case could not be judged: what it gives does not fit, or its subject failed on it.
	Err error
}

// OK tells whether the case passed.
func (r TestResult) OK() bool { return r.Err == nil && r.Differences == 0 && !r.Misordered }

// testBytes bounds one answer of a test.
const testBytes = 16 << 20

// mostDifferences is how many rows of each kind a result shows.
const mostDifferences = 10

// Test runs one case on a lake that holds nothing else: it goes the way of a refresh and of a request, over the rows that it gives. An
// error means that testing itself cannot go on.
func (a *Author) Test(ctx context.Context, d Draft, t project.Test) (TestResult, error) {
	r := TestResult{Test: t}
	w, err := a.scene(d.Release, t)
	if err == nil {
		err = a.play(ctx, d.Release, w, &r)
	}
	switch fail.KindOf(err) {
	case fail.Canceled, fail.Fatal, fail.Internal:
		if err != nil {
			return r, err
		}
	default:
		r.Err = lined(err, d.files)
	}
	return r, nil
}

// scene is a case as the models, sources and query that play it.
type scene struct {
	sources []project.Source
	// fixtures are the sources' rows, by name.
	fixtures map[string]project.Fixture
	models   []plan.Model
	actual   project.Statement
	params   []project.Param
	args     serving.Args
	shape    serving.Shape
	limit    int
	expected project.Statement
	columns  []string
}

// scene checks the case against the release that it tests.
func (*Author) scene(rel plan.Release, t project.Test) (*scene, error) {
	w := &scene{fixtures: map[string]project.Fixture{}, limit: project.MaxTestRows + 1}
	var problems project.Problems
	bad := func(at project.Position, fix, format string, args ...any) {
		problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	relations := map[string][]project.Column{}
	for _, s := range rel.Project.Sources {
		// A case writes the columns by their own names, and their values in the engine's own form.
		for _, c := range s.Columns {
			c.From, c.Format = "", ""
			relations[s.Name] = append(relations[s.Name], c)
		}
	}
	for _, m := range rel.Models {
		relations[m.Name] = m.Columns
	}
	var reads []string
	var out []project.Column
	if t.Model != "" {
		i := slices.IndexFunc(rel.Models, func(m plan.Model) bool { return m.Name == t.Model })
		m := rel.Models[i]
		reads, out = m.Reads, m.Columns
		// What the checks say of whole tables does not hold for a few rows.
		m.Checks = nil
		w.models = append(w.models, m)
		w.actual = project.Statement{SQL: "SELECT * FROM " + m.Name, At: m.Statement.At}
	} else {
		i := slices.IndexFunc(rel.Endpoints, func(e plan.Endpoint) bool { return e.Name == t.Endpoint })
		e := rel.Endpoints[i]
		reads, out = e.Reads, e.Columns
		var found project.CallError
		bound := e.Bind(t.Call, "", &found)
		for _, p := range found.Problems {
			bad(t.At, p.Fix(), "%s: %s", p.Name, p.Message)
		}
		if len(bound.Columns) > 0 {
			out = slices.DeleteFunc(slices.Clone(out), func(c project.Column) bool { return !slices.Contains(bound.Columns, c.Name) })
		}
		w.actual, w.params, w.args, w.limit = e.Statement, e.Params, bound.Args, bound.Limit
		w.shape = serving.Shape{Columns: bound.Columns, Order: bound.Order}
	}
	for _, f := range t.Given {
		if !slices.Contains(reads, f.Relation) {
			bad(f.At, project.Suggest(f.Relation, reads), "%s does not read %q; it reads %s", subject(t), f.Relation, strings.Join(reads, ", "))
		}
	}
	for _, name := range reads {
		i := slices.IndexFunc(t.Given, func(f project.Fixture) bool { return f.Relation == name })
		if i < 0 {
			bad(t.At, "add "+name+": [] under given if it is to be empty", "the case gives no rows for %q, which %s reads", name, subject(t))
			continue
		}
		source := project.Source{Name: name, Format: project.JSON, Columns: relations[name], At: t.Given[i].At}
		problems = append(problems, strangers(t.Given[i], source.Columns, name)...)
		if t.Endpoint != "" {
			// An endpoint reads models only, so the rows go through one that has the model's name.
			source.Name = "given_" + name
			at := slices.IndexFunc(rel.Models, func(m plan.Model) bool { return m.Name == name })
			m := rel.Models[at]
			m.Checks, m.Reads, m.Statement = nil, []string{source.Name}, project.Statement{SQL: "SELECT * FROM " + source.Name, At: t.At}
			w.models = append(w.models, m)
		}
		w.sources = append(w.sources, source)
		w.fixtures[source.Name] = t.Given[i]
	}
	problems = append(problems, strangers(t.Expect, out, subject(t))...)
	// Only the columns that some expected row names are compared; with no rows there is nothing to name.
	var compared []project.Column
	for _, c := range out {
		named := slices.ContainsFunc(t.Expect.Rows, func(r project.FixtureRow) bool {
			return slices.ContainsFunc(r.Cells, func(x project.Cell) bool { return x.Column == c.Name })
		})
		if !named && len(t.Expect.Rows) > 0 {
			continue
		}
		kind, err := project.LakeType(string(c.Type))
		switch {
		case c.Type == "HUGEINT" || c.Type == "UHUGEINT":
			kind = "DECIMAL(38,0)"
		case err != nil:
			bad(t.Expect.At, "leave the column out of expect, or cast it in the SQL", "column %q of %s has type %s, which a test cannot compare", c.Name, subject(t), c.Type)
		}
		compared = append(compared, project.Column{Name: c.Name, Type: kind})
		w.columns = append(w.columns, c.Name)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	name := "expected"
	for relations[name] != nil {
		name += "_"
	}
	source := project.Source{Name: "given_" + name, Format: project.JSON, Columns: compared, At: t.Expect.At}
	w.sources = append(w.sources, source)
	w.fixtures[source.Name] = t.Expect
	w.expected = project.Statement{SQL: "SELECT * FROM " + name, At: t.At}
	w.models = append(w.models, plan.Model{Model: project.Model{Name: name, Statement: project.Statement{SQL: "SELECT * FROM " + source.Name, At: t.At}},
		Reads: []string{source.Name}, Columns: compared, Table: plan.PhysicalTable(name, compared)})
	return w, nil
}

// subject names what a case tests.
func subject(t project.Test) string {
	if t.Model != "" {
		return fmt.Sprintf("model %q", t.Model)
	}
	return fmt.Sprintf("endpoint %q", t.Endpoint)
}

// strangers are the cells of a fixture whose columns its relation does not have.
func strangers(f project.Fixture, columns []project.Column, of string) project.Problems {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	var problems project.Problems
	for _, row := range f.Rows {
		for _, c := range row.Cells {
			if !slices.Contains(names, c.Column) {
				problems = append(problems, project.Problem{At: c.At, Message: fmt.Sprintf("%s has no column %q", of, c.Column), Fix: project.Suggest(c.Column, names)})
			}
		}
	}
	return problems
}

// play carries the scene out and compares.
func (a *Author) play(ctx context.Context, rel plan.Release, w *scene, r *TestResult) error {
	record, err := a.registry.Lake(ctx)
	if err != nil {
		return err
	}
	run := refresh.RunID(a.identity.NewID())
	defer func() { _ = a.sources.Release(context.WithoutCancel(ctx), run) }()
	const workspace = serving.Workspace("test")
	mark := refresh.Mark{Kind: refresh.MarkRefresh, Lineage: record.Lineage, Workspace: workspace, Run: run, Attempt: 1, Fence: 1, Release: rel.ID, Plan: rel.Digest()}
	if err := a.commit(ctx, workspace, run, w, mark); err != nil {
		return err
	}
	at, _, found, err := a.lake.Find(ctx, mark)
	if err != nil {
		return err
	}
	if !found {
		return fail.New(fail.Internal, "commit_lost", "the lake has no commit of %s although the engine reported one", mark)
	}
	scope := serving.Scope{Workspace: workspace, Snapshot: at, Tables: plan.Release{Models: w.models}.Tables()}
	actual, err := a.rows(ctx, scope, w.actual, w.params, w.args, w.shape, w.limit, w.columns)
	if err != nil {
		return err
	}
	expected, err := a.rows(ctx, scope, w.expected, nil, nil, serving.Shape{}, project.MaxTestRows, w.columns)
	if err != nil {
		return err
	}
	r.Columns = w.columns
	r.Misordered = r.Test.Ordered && !slices.Equal(actual, expected)
	r.Missing, r.Unexpected = without(expected, actual), without(actual, expected)
	r.Differences = len(r.Missing) + len(r.Unexpected)
	r.Missing, r.Unexpected = r.Missing[:min(len(r.Missing), mostDifferences)], r.Unexpected[:min(len(r.Unexpected), mostDifferences)]
	return nil
}

// commit builds the scene's tables.
func (a *Author) commit(ctx context.Context, workspace serving.Workspace, run refresh.RunID, w *scene, mark refresh.Mark) (err error) {
	build, err := a.lake.Begin(ctx, workspace)
	if err != nil {
		return err
	}
	defer func() {
		if e := build.Close(); err == nil {
			err = e
		}
	}()
	for _, s := range w.sources {
		f := w.fixtures[s.Name]
		artifact, err := a.sources.Write(ctx, run, s, "rows of "+s.Name+".json", fixtureJSON(f, s.Columns))
		if err != nil {
			return err
		}
		if _, err := build.Stage(ctx, s, []ports.Artifact{artifact}); err != nil {
			return placed(err, artifact.Name, f)
		}
	}
	if err := build.Create(ctx, w.models, nil); err != nil {
		return err
	}
	return build.Commit(ctx, plan.Anew(w.models), mark, func(plan.Progress) {})
}

// fixtureJSON writes one object a line, each with every column.
func fixtureJSON(f project.Fixture, columns []project.Column) []byte {
	if len(f.Rows) == 0 {
		return []byte("[]")
	}
	var b bytes.Buffer
	for _, row := range f.Rows {
		for i, c := range columns {
			b.WriteByte("{,"[min(i, 1)])
			value := "null"
			if at := slices.IndexFunc(row.Cells, func(x project.Cell) bool { return x.Column == c.Name }); at >= 0 {
				value = row.Cells[at].JSON
			}
			// A string always has a JSON form.
			name, _ := json.Marshal(c.Name)
			b.Write(name)
			b.WriteByte(':')
			b.WriteString(value)
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

// placed moves problems with a fixture's lines to the rows that its author wrote.
func placed(err error, artifact string, f project.Fixture) error {
	var problems project.Problems
	if !errors.As(err, &problems) {
		return err
	}
	problems = slices.Clone(problems)
	for i, p := range problems {
		if p.At.File == artifact {
			problems[i].At = f.At
			if p.At.Line >= 1 && p.At.Line <= len(f.Rows) {
				problems[i].At = f.Rows[p.At.Line-1].At
			}
			problems[i].Fix = "correct the row"
		}
	}
	return problems
}

// rows answers the statement and gives each row's compared columns as JSON.
func (a *Author) rows(ctx context.Context, scope serving.Scope, statement project.Statement, params []project.Param, args serving.Args, shape serving.Shape, limit int, columns []string) (_ []string, err error) {
	q, err := a.reader.Prepare(ctx, scope, statement, params)
	if err == nil && !shape.Whole() {
		q, err = q.Shaped(shape)
	}
	if err != nil {
		return nil, err
	}
	reading, err := a.reader.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reading.Close()) }()
	answer, err := reading.Answer(ctx, q, args, serving.Limits{Rows: limit, Bytes: testBytes})
	if err != nil {
		return nil, err
	}
	if answer.Truncated && answer.Count < limit {
		return nil, fail.New(fail.Limit, "test_bytes", "the answer has more than %d bytes (limit test_bytes)", testBytes).WithFix("give fewer rows")
	}
	at := make([]int, len(columns))
	for i, name := range columns {
		at[i] = slices.IndexFunc(answer.Columns, func(c serving.Column) bool { return c.Name == name })
	}
	var all [][]json.RawMessage
	if err := json.Unmarshal(answer.Rows, &all); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	out := make([]string, len(all))
	for i, row := range all {
		cells := make([]string, len(at))
		for j, k := range at {
			cells[j] = string(row[k])
		}
		out[i] = "[" + strings.Join(cells, ",") + "]"
	}
	return out, nil
}

// without gives what a has beyond b, each as often as it does.
func without(a, b []string) []string {
	left := map[string]int{}
	for _, x := range b {
		left[x]++
	}
	var out []string
	for _, x := range a {
		if left[x]--; left[x] < 0 {
			out = append(out, x)
		}
	}
	return out
}
