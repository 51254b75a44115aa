package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/query"
	"leapview/domain/project"
)

// TestCompileFilling proves which source fills a model that works new files in, and that what is wrong with it is told at its place.
func TestCompileFilling(t *testing.T) {
	e, _ := enginetest.Open(t)
	other := flights
	other.Name = "others"
	filled := func(name, sql string, f project.Filling) project.Model {
		m := model(name, sql)
		f.InputAt, f.KeyAt = at("models/"+name+".sql", 30, 1), at("models/"+name+".sql", 31, 1)
		if f.DeletedWhen.SQL != "" {
			f.DeletedWhen.At = at("models/"+name+".sql", 32, 1)
		}
		m.Filling = f
		return m
	}
	upsert := func(deleted string, key ...string) project.Filling {
		return project.Filling{Mode: project.ModeUpsert, Key: key, DeletedWhen: project.Statement{SQL: deleted}}
	}
	const both = "SELECT f.carrier, f.delay FROM raw_flights f JOIN others USING (carrier)"
	p := project.Project{Name: "p", Sources: []project.Source{flights, other}, Models: []project.Model{
		filled("one", "SELECT carrier, now() AS at FROM raw_flights", project.Filling{Mode: project.ModeAppend}),
		filled("two", both, project.Filling{Mode: project.ModeAppend, Input: "others"}),
		filled("three", "SELECT * FROM raw_flights", upsert("delay > 3 -- and that is that", "carrier", "fare")),
		filled("four", "SELECT carrier, random() AS r FROM one", project.Filling{}),
	}}
	r, err := query.NewCompiler(e).Compile(t.Context(), "id", p)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Models {
		got = append(got, fmt.Sprintf("%s %q %t", m.Name, m.Input, m.Volatile))
	}
	if s, want := strings.Join(got, "; "), `one "raw_flights" true; two "others" false; three "raw_flights" false; four "" true`; s != want {
		t.Errorf("got %s, want %s", s, want)
	}

	p.Models = []project.Model{
		model("base", "SELECT carrier FROM raw_flights"),
		filled("sourceless", "SELECT carrier FROM base", project.Filling{Mode: project.ModeAppend}),
		filled("which", both, project.Filling{Mode: project.ModeAppend}),
		filled("unread", "SELECT carrier FROM raw_flights", project.Filling{Mode: project.ModeAppend, Input: "other"}),
		filled("keyless", "SELECT carrier, delay::DOUBLE AS d FROM raw_flights", upsert("", "carier", "d")),
		filled("condition", "SELECT carrier FROM raw_flights", upsert("carrier", "carrier")),
		filled("unknown", "SELECT carrier FROM raw_flights", upsert("delay = 1", "carrier")),
		filled("looking", "SELECT carrier FROM raw_flights", upsert("carrier IN (SELECT carrier FROM base)", "carrier")),
		filled("closing", "SELECT carrier FROM raw_flights", upsert("true) OR (true", "carrier")),
	}
	_, err = query.NewCompiler(e).Compile(t.Context(), "id", p)
	var problems project.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("err = %v", err)
	}
	want := []string{
		"models/closing.sql:32:5: deleted_when: syntax error",
		"models/condition.sql:32:1: deleted_when is VARCHAR, and no condition",
		`models/keyless.sql:31:1: model "keyless" has no column "carier" to find rows by; did you mean "carrier"?`,
		`models/keyless.sql:31:1: column "d" of model "keyless" is DOUBLE, and numbers that are only near each other find no rows`,
		`models/looking.sql:32:33: deleted_when: it judges one row, and may not read "base"`,
		`models/sourceless.sql:1:1: model "sourceless" reads no source, and mode append works new files of one into its table; read a source, or write mode: full`,
		`models/unknown.sql:32:1: deleted_when: Referenced column "delay" not found`,
		`models/unread.sql:30:1: model "unread" does not read a source "other"`,
		`models/which.sql:1:1: model "which" reads the sources raw_flights, others, and does not say which one's files fill its table; write for example input: raw_flights`,
	}
	for i, p := range problems {
		text := fmt.Sprintf("%s: %s; %s", p.At, p.Message, p.Fix)
		if i >= len(want) || !strings.HasPrefix(text, want[i]) {
			t.Errorf("problem %d: %s", i, text)
		}
	}
	if len(problems) != len(want) {
		t.Errorf("%d problems, not %d", len(problems), len(want))
	}
}
