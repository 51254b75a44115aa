package contract

import (
	"slices"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
)

func TestCompilerMem(t *testing.T) { compilerSuite(t, memStore) }

// compilerSuite is the contract of ports.Compiler.
func compilerSuite(t *testing.T, open opener) {
	s := open(t)
	t.Run("a release is ordered, typed and named", func(t *testing.T) { compilerReleases(t, s) })
	t.Run("every mistake is found at its line", func(t *testing.T) { compilerRefuses(t, s) })
	t.Run("columns get what is declared of them", func(t *testing.T) { compilerDescribes(t, s) })
	t.Run("several mistakes are found at once", func(t *testing.T) { compilerFindsAll(t, s) })
	t.Run("a context that has ended stops it", func(t *testing.T) {
		_, err := s.compiler.Compile(canceled(t), project.DigestOf(nil), projectOf(everyFlight()))
		wantKind(t, err, fail.Canceled)
	})
}

func columnTexts(columns []project.Column) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.Name+" "+string(c.Type))
	}
	return out
}

func compilerReleases(t *testing.T, s store) {
	p := projectOf(
		modelOf("by_carrier", "SELECT carrier, count(*) AS flights, sum(delay) AS delay, sum(distance) AS distance,\n  min(day) AS first_day, max(late) AS any_late\nFROM trips GROUP BY carrier",
			project.Column{Name: "delay", Type: "BIGINT"}),
		everyFlight(),
		modelOf("keys", "SELECT id AS key FROM trips", project.Column{Name: "key", Type: "INTEGER"}),
	)
	p.Endpoints = []project.Endpoint{
		endpointOf("late", "SELECT id, delay AS minutes FROM trips WHERE carrier = $carrier AND delay >= $delay ORDER BY id",
			project.Param{Name: "carrier", Type: project.ParamString}, project.Param{Name: "delay", Type: project.ParamInteger}),
		endpointOf("total", "SELECT sum(id) AS total FROM trips"),
	}
	id := project.DigestOf([]byte("a bundle"))
	r, err := s.compiler.Compile(t.Context(), id, p)
	mustLake(t, err)
	if r.ID != id || r.Project.Name != "sales" {
		t.Errorf("the release is %s of %q", r.ID, r.Project.Name)
	}

	byName := map[string]plan.Model{}
	for _, m := range r.Models {
		for _, read := range m.Reads {
			if _, built := byName[read]; !built && read != "flights" {
				t.Errorf("model %q stands before %q, which it reads", m.Name, read)
			}
		}
		byName[m.Name] = m
		if m.Table != plan.PhysicalTable(m.Name, m.Columns) {
			t.Errorf("model %q has the table %q", m.Name, m.Table)
		}
	}
	for name, want := range map[string]struct{ reads, columns []string }{
		"trips":      {[]string{"flights"}, []string{"id BIGINT", "carrier VARCHAR", "delay INTEGER", "day DATE", "late BOOLEAN", "distance DOUBLE"}},
		"by_carrier": {[]string{"trips"}, []string{"carrier VARCHAR", "flights BIGINT", "delay BIGINT", "distance DOUBLE", "first_day DATE", "any_late BOOLEAN"}},
		"keys":       {[]string{"trips"}, []string{"key INTEGER"}},
	} {
		if m := byName[name]; !slices.Equal(m.Reads, want.reads) || !slices.Equal(columnTexts(m.Columns), want.columns) {
			t.Errorf("model %q reads %v and has the columns %v", name, m.Reads, columnTexts(m.Columns))
		}
	}
	if len(r.Models) != 3 || len(r.Endpoints) != 2 {
		t.Fatalf("the release has %d models and %d endpoints", len(r.Models), len(r.Endpoints))
	}
	if e := r.Endpoints[0]; e.Name != "late" || !slices.Equal(e.Reads, []string{"trips"}) || !slices.Equal(columnTexts(e.Columns), []string{"id BIGINT", "minutes INTEGER"}) {
		t.Errorf("endpoint %q reads %v and has the columns %v", e.Name, e.Reads, columnTexts(e.Columns))
	}
	// A sum that no table could hold exactly may still be answered.
	if e := r.Endpoints[1]; !slices.Equal(columnTexts(e.Columns), []string{"total HUGEINT"}) {
		t.Errorf("endpoint %q has the columns %v", e.Name, columnTexts(e.Columns))
	}

	again, err := s.compiler.Compile(t.Context(), id, p)
	mustLake(t, err)
	if again.Digest() != r.Digest() {
		t.Error("the same project compiled to another plan")
	}
}

func compilerRefuses(t *testing.T, s store) {
	trips := everyFlight()
	with := func(m project.Model, change func(*project.Model)) project.Model {
		change(&m)
		return m
	}
	endpoint := func(e project.Endpoint) project.Project {
		p := projectOf(trips)
		p.Endpoints = []project.Endpoint{e}
		return p
	}
	valueAt := project.Position{File: "models/trips.sql", Line: 4, Column: 9}
	checked := func(c project.Check) project.Project {
		c.At = project.Position{File: "models/trips.sql", Line: 2, Column: 3}
		return projectOf(with(trips, func(m *project.Model) { m.Checks = []project.Check{c} }))
	}
	for _, c := range []struct {
		name    string
		project project.Project
		file    string
		line    int
		says    string
	}{
		{"unknown relation", projectOf(modelOf("m", "SELECT id\nFROM fligts")), "models/m.sql", 4, "flights"},
		{"unknown column", projectOf(modelOf("m", "SELECT id,\n  carier\nFROM flights")), "models/m.sql", 4, "carier"},
		{"unknown column in WHERE", projectOf(modelOf("m", "SELECT id FROM flights\nWHERE nothing = 1")), "models/m.sql", 4, "nothing"},
		{"unknown function", projectOf(modelOf("m", "SELECT id,\n  frobnicate(id) AS x\nFROM flights")), "models/m.sql", 4, "frobnicate"},
		{"cycle", projectOf(modelOf("a", "SELECT id FROM b"), modelOf("b", "SELECT id FROM a")), "models/a.sql", 3, "a → b → a"},
		{"model reads itself", projectOf(modelOf("a", "SELECT id FROM a")), "models/a.sql", 3, "a → a"},
		{"no SQL", projectOf(modelOf("m", "SELEKT 1")), "models/m.sql", 3, "SELEKT"},
		{"unfinished", projectOf(modelOf("m", "SELECT id FROM flights WHERE")), "models/m.sql", 3, ""},
		{"not a query", projectOf(modelOf("m", "DROP TABLE flights")), "models/m.sql", 3, "DROP"},
		{"two statements", projectOf(modelOf("m", "SELECT id FROM flights; SELECT id FROM flights")), "models/m.sql", 3, ""},
		{"parameter in a model", projectOf(modelOf("m", "SELECT id FROM flights\nWHERE id = $id")), "models/m.sql", 4, "$id"},
		{"missing GROUP BY", projectOf(modelOf("m", "SELECT carrier, count(*) AS n FROM flights")), "models/m.sql", 3, "carrier"},
		{"two columns of one name", projectOf(modelOf("m", "SELECT id AS x, delay AS x FROM flights")), "models/m.sql", 3, "x"},
		{"HUGEINT", projectOf(modelOf("m", "SELECT sum(id) AS total FROM flights")), "models/m.sql", 3, "HUGEINT"},
		{"cast of an unknown column", projectOf(modelOf("m", "SELECT id FROM flights", project.Column{Name: "di", Type: "BIGINT", At: project.Position{File: "models/m.sql", Line: 2, Column: 5}})), "models/m.sql", 2, "di"},
		{"check of an unknown column", projectOf(with(trips, func(m *project.Model) {
			m.Checks = []project.Check{{Kind: project.NotNull, Columns: []string{"idd"}, At: project.Position{File: "models/trips.sql", Line: 2, Column: 3}}}
		})), "models/trips.sql", 2, "idd"},
		{"value of another type", checked(project.Check{Kind: project.AcceptedValues, Columns: []string{"id"}, Values: []project.Literal{{Text: "1"}, {Text: "one", At: valueAt}}}), "models/trips.sql", 4, "one"},
		{"value that a number cannot be", checked(project.Check{Kind: project.AcceptedValues, Columns: []string{"distance"}, Values: []project.Literal{{Text: "0.1"}, {Text: "9007199254740993", At: valueAt}}}), "models/trips.sql", 4, "9007199254740993"},
		{"day that does not exist", checked(project.Check{Kind: project.Range, Columns: []string{"day"}, Low: &project.Literal{Text: "2024-02-30", At: valueAt}}), "models/trips.sql", 4, "2024-02-30"},
		{"range without a value", checked(project.Check{Kind: project.Range, Columns: []string{"id"}, Low: &project.Literal{Text: "5", At: valueAt}, High: &project.Literal{Text: "4"}}), "models/trips.sql", 4, "a min of 5 and a max of 4"},
		{"range of texts", checked(project.Check{Kind: project.Range, Columns: []string{"carrier"}, Low: &project.Literal{Text: "a"}}), "models/trips.sql", 2, "has no range"},
		{"relationship to no model", checked(project.Check{Kind: project.Relationships, Columns: []string{"id"}, To: "trip", Fields: []string{"id"}}), "models/trips.sql", 2, `"trips"`},
		{"relationship to no column", checked(project.Check{Kind: project.Relationships, Columns: []string{"id"}, To: "trips", Fields: []string{"idd"}}), "models/trips.sql", 2, "idd"},
		{"relationship between types", checked(project.Check{Kind: project.Relationships, Columns: []string{"id"}, To: "trips", Fields: []string{"carrier"}}), "models/trips.sql", 2, "VARCHAR"},
		{"freshness of a number", checked(project.Check{Kind: project.Freshness, Columns: []string{"id"}, MaxAge: 1}), "models/trips.sql", 2, "has no age"},
		{"endpoint reads a source", endpoint(endpointOf("e", "SELECT id FROM flights")), "endpoints/e.sql", 3, "flights"},
		{"endpoint reads nothing known", endpoint(endpointOf("e", "SELECT id FROM trip")), "endpoints/e.sql", 3, "trips"},
		{"undeclared parameter", endpoint(endpointOf("e", "SELECT id FROM trips WHERE id > $id\n  AND id = $idd", project.Param{Name: "id", Type: project.ParamInteger})), "endpoints/e.sql", 4, "idd"},
		{"unused parameter", endpoint(endpointOf("e", "SELECT id FROM trips", project.Param{Name: "id", Type: project.ParamInteger, At: project.Position{File: "endpoints/e.sql", Line: 2, Column: 1}})), "endpoints/e.sql", 2, "id"},
		{"order by an unknown column", endpoint(shaped(func(e *project.Endpoint, at project.Position) {
			e.OrderBy.Allow = []project.Column{{Name: "id"}, {Name: "carier", At: at}}
		})), "endpoints/e.sql", 2, `"carrier"`},
		{"ties by an unknown column", endpoint(shaped(func(e *project.Endpoint, at project.Position) {
			e.OrderBy.Ties = []project.Order{{Column: "ID", At: at}}
		})), "endpoints/e.sql", 2, `"ID"`},
		{"picking an unknown column", endpoint(shaped(func(e *project.Endpoint, at project.Position) {
			e.Columns.Allow = []project.Column{{Name: "delay", At: at}}
		})), "endpoints/e.sql", 2, `"delay"`},
		{"describing an unknown column", endpoint(shaped(func(e *project.Endpoint, at project.Position) {
			e.Columns.Described = []project.Column{{Name: "delay", At: at, Description: "minutes"}}
		})), "endpoints/e.sql", 2, `"delay"`},
		{"endpoint with an unknown column", endpoint(endpointOf("e", "SELECT id\nFROM trips WHERE\n  nothing IS NULL")), "endpoints/e.sql", 5, "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.compiler.Compile(t.Context(), project.DigestOf(nil), c.project)
			wantKind(t, err, fail.Invalid)
			wantProblem(t, err, project.Position{File: c.file, Line: c.line})
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the problem does not mention %q:\n%v", c.says, err)
			}
		})
	}
}

// shaped is an endpoint with declarations about its columns, id and carrier, that begin at a place.
func shaped(declare func(e *project.Endpoint, at project.Position)) project.Endpoint {
	e := endpointOf("e", "SELECT id, carrier FROM trips")
	declare(&e, project.Position{File: "endpoints/e.sql", Line: 2, Column: 5})
	return e
}

func compilerDescribes(t *testing.T, s store) {
	p := projectOf(everyFlight())
	e := shaped(func(e *project.Endpoint, _ project.Position) {
		e.OrderBy = project.OrderBy{Allow: []project.Column{{Name: "id"}}, Default: []project.Order{{Column: "id", Descending: true}}, Ties: []project.Order{{Column: "carrier"}}}
		e.Columns = project.Picking{Allow: []project.Column{{Name: "carrier"}}, Described: []project.Column{{Name: "carrier", Description: "IATA code"}}}
	})
	p.Endpoints = []project.Endpoint{e}
	r, err := s.compiler.Compile(t.Context(), project.DigestOf(nil), p)
	mustLake(t, err)
	columns := r.Endpoints[0].Columns
	if !slices.Equal(columnTexts(columns), []string{"id BIGINT", "carrier VARCHAR"}) || columns[0].Description != "" || columns[1].Description != "IATA code" {
		t.Errorf("the columns are %+v", columns)
	}
}

func compilerFindsAll(t *testing.T, s store) {
	p := projectOf(everyFlight(), modelOf("one", "SELECT nothing FROM flights"), modelOf("two", "SELECT id FROM nowhere"))
	p.Endpoints = []project.Endpoint{endpointOf("three", "SELECT nothing FROM trips")}
	_, err := s.compiler.Compile(t.Context(), project.DigestOf(nil), p)
	for _, file := range []string{"models/two.sql", "endpoints/three.sql", "models/one.sql"} {
		wantProblem(t, err, project.Position{File: file, Line: 3})
	}
}
