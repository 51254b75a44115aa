package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"leapview/domain/project"
)

func models(names ...string) project.Project {
	var p project.Project
	for _, n := range names {
		p.Models = append(p.Models, project.Model{Name: n, Statement: project.Statement{At: project.Position{File: "models/" + n + ".sql", Line: 1, Column: 1}}})
	}
	return p
}

// Proves, for every graph over four models of which the first may read itself (8,192 of them), that an order is given exactly when
// there is no circle, that it holds each model once and after all that it reads, and that a circle is named truly.
func TestOrderEveryGraph(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	p := models(names...)
	for bits := range 1 << 13 {
		reads := map[string][]string{}
		edge := func(from, to int) bool {
			if from == to {
				return from == 0 && bits>>12 == 1
			}
			// Each model has three bits, for the others in their order.
			if to > from {
				to--
			}
			return bits>>(from*3+to)&1 == 1
		}
		for i, from := range names {
			for j, to := range names {
				if edge(i, j) {
					reads[from] = append(reads[from], to)
				}
			}
		}
		order, problems := Order(p, reads)
		if cyclic(edge) {
			if order != nil || len(problems) == 0 {
				t.Fatalf("%v has a circle, and gave %v", reads, order)
			}
			for _, q := range problems {
				_, circle, _ := strings.Cut(q.Message, ": ")
				path := strings.Split(circle, " → ")
				if len(path) < 2 || path[0] != path[len(path)-1] {
					t.Fatalf("%v: %q is no circle", reads, q.Message)
				}
				for i := range path[1:] {
					if !slices.Contains(reads[path[i]], path[i+1]) {
						t.Fatalf("%v: %q is not a circle of it", reads, q.Message)
					}
				}
			}
			continue
		}
		if len(problems) > 0 || len(order) != 4 {
			t.Fatalf("%v has no circle, and gave %v, %v", reads, order, problems)
		}
		at := map[string]int{}
		for i, m := range order {
			at[m.Name] = i
		}
		for from, tos := range reads {
			for _, to := range tos {
				if at[to] >= at[from] {
					t.Fatalf("%v: %s is not before %s in %v", reads, to, from, at)
				}
			}
		}
	}
}

// cyclic decides by closing the relation: a circle is a node that reaches itself.
func cyclic(edge func(from, to int) bool) bool {
	var reach [4][4]bool
	for i := range 4 {
		for j := range 4 {
			reach[i][j] = edge(i, j)
		}
	}
	for k := range 4 {
		for i := range 4 {
			for j := range 4 {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	return reach[0][0] || reach[1][1] || reach[2][2] || reach[3][3]
}

// Proves that an unknown relation is a problem at its model with a suggestion, that sources are known, and that the order does not
// depend on how reads are listed.
func TestOrderNames(t *testing.T) {
	p := models("mart", "stage")
	p.Sources = []project.Source{{Name: "flights"}}
	_, problems := Order(p, map[string][]string{"mart": {"stagee", "flights"}, "stage": {"mart"}})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `"mart" reads "stagee"`) || problems[0].Fix != `did you mean "stage"?` || problems[0].At.File != "models/mart.sql" {
		t.Errorf("got %v", problems)
	}
	for _, reads := range [][]string{{"c", "b", "flights"}, {"flights", "b", "c"}} {
		p := models("a", "b", "c")
		p.Sources = []project.Source{{Name: "flights"}}
		order, problems := Order(p, map[string][]string{"a": reads})
		if len(problems) > 0 || order[0].Name != "b" || order[1].Name != "c" || order[2].Name != "a" {
			t.Errorf("%v gave %v, %v", reads, order, problems)
		}
	}
}

// Proves that the physical name depends on the model's name and its columns' names, types and order, on nothing else, and that no
// two of them can be confused.
func TestPhysicalTable(t *testing.T) {
	at := project.Position{File: "x", Line: 9, Column: 9}
	if a, b := PhysicalTable("m", []project.Column{{Name: "a", Type: "INTEGER"}}), PhysicalTable("m", []project.Column{{Name: "a", Type: "INTEGER", At: at, Description: "d"}}); a != b {
		t.Errorf("a place or description makes another table: %s, %s", a, b)
	}
	seen := map[string]string{}
	for _, model := range []string{"m", "m__", "m__0123456789ab"} {
		for _, columns := range [][]project.Column{
			nil, {{Name: "a", Type: "INTEGER"}}, {{Name: "a", Type: "BIGINT"}}, {{Name: "A", Type: "INTEGER"}}, {{Name: "aI", Type: "NTEGER"}},
			{{Name: "a", Type: "INTEGER"}, {Name: "b", Type: "DATE"}}, {{Name: "b", Type: "DATE"}, {Name: "a", Type: "INTEGER"}}, {{Name: "a7:INTEGER1:b", Type: "DATE"}},
		} {
			name, what := PhysicalTable(model, columns), fmt.Sprint(model, columns)
			if other, ok := seen[name]; ok {
				t.Errorf("%s names both %s and %s", name, other, what)
			}
			seen[name] = what
			if !strings.HasPrefix(name, model+"__") || len(name) != len(model)+2+12 {
				t.Errorf("%s names %s", name, what)
			}
		}
	}
	const want = "flights__7ee7a8c99732"
	if got := PhysicalTable("flights", []project.Column{{Name: "carrier", Type: "VARCHAR"}, {Name: "delay", Type: "BIGINT"}}); got != want {
		t.Errorf("got %s, was %s: every table in every lake would be built anew", got, want)
	}
}

// Proves that the plan's digest changes with whatever decides the rows, and with nothing else.
func TestDigest(t *testing.T) {
	make := func(change func(*Release)) project.Digest {
		r := Release{ID: "id", Project: project.Project{Name: "p", Sources: []project.Source{{Name: "s", Location: "a.csv", Format: project.CSV, Delimiter: ",", NullTexts: []string{"NA"},
			Columns: []project.Column{{Name: "x", Type: "INTEGER"}}}}},
			Models: []Model{{Model: project.Model{Name: "m", Statement: project.Statement{SQL: "SELECT x FROM s"}}, Columns: []project.Column{{Name: "x", Type: "INTEGER"}}, Table: "m__1"},
				{Model: project.Model{Name: "n", Statement: project.Statement{SQL: "SELECT 1"}}, Table: "n__1"}}}
		change(&r)
		return r.Digest()
	}
	base := make(func(*Release) {})
	for what, change := range map[string]func(*Release){
		"location": func(r *Release) { r.Project.Sources[0].Location = "b.csv" }, "format": func(r *Release) { r.Project.Sources[0].Format = project.JSON },
		"delimiter": func(r *Release) { r.Project.Sources[0].Delimiter = ";" }, "null texts": func(r *Release) { r.Project.Sources[0].NullTexts = nil },
		"dialect": func(r *Release) { r.Project.Sources[0].Dialect.SkipLines = 1 }, "types": func(r *Release) { r.Project.Sources[0].Types = project.TypesExact },
		"on_change": func(r *Release) { r.Project.Sources[0].OnChange = project.ChangeIgnore }, "from": func(r *Release) { r.Project.Sources[0].Columns[0].From = "X" },
		"column format": func(r *Release) { r.Project.Sources[0].Columns[0].Format = "%Y" },
		"source column": func(r *Release) { r.Project.Sources[0].Columns[0].Type = "BIGINT" }, "source": func(r *Release) { r.Project.Sources[0].Name = "t" },
		"sql": func(r *Release) { r.Models[0].Statement.SQL += " " }, "model": func(r *Release) { r.Models[0].Name = "o" }, "table": func(r *Release) { r.Models[0].Table = "m__2" },
		"column": func(r *Release) { r.Models[0].Columns[0].Name = "y" }, "order": func(r *Release) { slices.Reverse(r.Models) },
	} {
		if make(change) == base {
			t.Errorf("another %s gives the same digest", what)
		}
	}
	for what, change := range map[string]func(*Release){
		"id": func(r *Release) { r.ID = "other" }, "project": func(r *Release) { r.Project.Name = "q" }, "description": func(r *Release) { r.Models[0].Description = "d" },
		"place": func(r *Release) { r.Models[0].Statement.At.Line, r.Models[0].Columns[0].At.Line = 5, 6 }, "column description": func(r *Release) { r.Project.Sources[0].Columns[0].Description = "d" },
		"checks": func(r *Release) { r.Models[0].Checks = []project.Check{{Kind: project.Unique}} }, "layer": func(r *Release) { r.Models[0].Layer = project.Raw },
		"endpoint": func(r *Release) { r.Endpoints = []Endpoint{{}} }, "bounds": func(r *Release) { r.Project.Sources[0].Bounds.MinRows = 1 },
	} {
		if make(change) != base {
			t.Errorf("another %s gives another digest", what)
		}
	}
}

// Proves that a release's tables are found by model.
func TestTables(t *testing.T) {
	r := Release{Models: []Model{{Model: project.Model{Name: "m"}, Table: "m__1"}, {Model: project.Model{Name: "n"}, Table: "n__1"}}}
	if got := r.Tables(); len(got) != 2 || got["m"] != "m__1" || got["n"] != "n__1" {
		t.Errorf("got %v", got)
	}
}
