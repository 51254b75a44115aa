package plan

import (
	"fmt"
	"strings"
	"testing"

	"leapview/domain/project"
)

// TestCompare proves that every part of a project is told as what becomes of it, that what reads a changed part is affected through any
// number of models, and that places and descriptions change nothing.
func TestCompare(t *testing.T) {
	columns := func(names ...string) (cs []project.Column) {
		for _, n := range names {
			name, kind, _ := strings.Cut(n, " ")
			cs = append(cs, project.Column{Name: name, Type: project.Type(kind)})
		}
		return cs
	}
	release := func() Release {
		model := func(name, sql string, reads ...string) Model {
			return Model{Model: project.Model{Name: name, Statement: project.Statement{SQL: sql}, Checks: []project.Check{{Kind: project.NotNull, Columns: []string{"a"}}}}, Reads: reads, Columns: columns("a BIGINT", "b VARCHAR")}
		}
		return Release{
			Project:   project.Project{Sources: []project.Source{{Name: "s", Location: "s.csv", Columns: columns("a BIGINT")}, {Name: "t", Location: "t.csv", Columns: columns("a BIGINT")}}},
			Models:    []Model{model("m1", "SELECT 1", "s"), model("m2", "SELECT 2", "m1"), model("m3", "SELECT 3", "t")},
			Endpoints: []Endpoint{{Endpoint: project.Endpoint{Name: "e", Limit: 10, Params: []project.Param{{Name: "p", Type: project.ParamString}}}, Reads: []string{"m2"}, Columns: columns("a BIGINT")}},
		}
	}
	told := func(changes []Change) string {
		var b strings.Builder
		for _, c := range changes {
			if c.Status != Same {
				fmt.Fprintf(&b, "%s %s %s (%s)\n", c.Status, c.Part, c.Name, strings.Join(c.Reasons, "; "))
			}
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		change func(*Release)
		want   string
	}{
		"nothing": {func(*Release) {}, ""},
		"places and descriptions": {func(r *Release) {
			r.Project.Sources[0].Description, r.Models[0].Description, r.Endpoints[0].Params[0].Description = "x", "y", "z"
			r.Project.Sources[0].At.Line, r.Models[0].Statement.At.Line, r.Endpoints[0].Params[0].At.Line = 7, 7, 7
		}, ""},
		"a source's column": {func(r *Release) { r.Project.Sources[0].Columns = columns("a INTEGER", "c DATE") },
			"changed source s (column a is INTEGER instead of BIGINT; column c is new)\naffected model m1 (it reads s)\naffected model m2 (it reads m1)\naffected endpoint e (it reads m2)\n"},
		"how a source is read": {func(r *Release) { r.Project.Sources[1].Delimiter, r.Project.Sources[1].Location = ";", "u.csv" },
			"changed source t (its location is u.csv instead of t.csv; it is read in another way)\naffected model m3 (it reads t)\n"},
		"a model": {func(r *Release) {
			r.Models[1].Statement.SQL, r.Models[1].Columns = "SELECT 22", columns("b VARCHAR", "a BIGINT")
		},
			"changed model m2 (its columns come in another order; its SQL changed)\naffected endpoint e (it reads m2)\n"},
		"bounds": {func(r *Release) { r.Project.Sources[1].Bounds.MinRows = 1 }, "changed source t (its bounds changed)\n"},
		"a source's files": {func(r *Release) {
			r.Project.Sources[1].Columns[0].From, r.Project.Sources[1].Dialect.SkipLines = "A", 1
		},
			"changed source t (column a is read in another way; it is read in another way)\naffected model m3 (it reads t)\n"},
		"checks": {func(r *Release) { r.Models[0].Checks[0].Severity = project.SeverityWarn }, "changed model m1 (its checks changed)\n"},
		"an endpoint's choices": {func(r *Release) {
			r.Endpoints[0].OrderBy = project.OrderBy{Allow: []project.Column{{Name: "a", At: project.Position{Line: 9}}}}
			r.Endpoints[0].Endpoint.Columns.Allow = []project.Column{{Name: "a"}}
		}, "changed endpoint e (how it is sorted changed; which columns can be picked changed)\n"},
		"an endpoint's descriptions, examples and places": {func(r *Release) {
			r.Endpoints[0].Examples = []project.Example{{Name: "x"}}
			r.Endpoints[0].Endpoint.Columns.Described = []project.Column{{Name: "a"}}
		}, ""},
		"an endpoint": {func(r *Release) { r.Endpoints[0].Limit, r.Endpoints[0].Params = 20, nil },
			"changed endpoint e (its limit is 20 instead of 10 rows; its parameters changed)\n"},
		"gone and new": {func(r *Release) {
			r.Models[2].Name, r.Endpoints[0].Name, r.Project.Sources = "m4", "f", r.Project.Sources[:1]
		}, "removed source t ()\nadded model m4 ()\nremoved model m3 ()\nadded endpoint f ()\nremoved endpoint e ()\n"},
	} {
		old, next := release(), release()
		tc.change(&next)
		if got := told(Compare(&old, next)); got != tc.want {
			t.Errorf("%s:\n%swant\n%s", name, got, tc.want)
		}
	}
	for _, c := range Compare(nil, release()) {
		if c.Status != Added {
			t.Errorf("without an old release %s is %s", c.Name, c.Status)
		}
	}
}
