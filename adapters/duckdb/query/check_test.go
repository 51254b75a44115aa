package query_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"leapview/adapters/duckdb/query"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// condition is SQL inside of a check.
func condition(sql string) project.Statement {
	return project.Statement{SQL: sql, At: at("models/x.sql", 3, 12)}
}

// columnsLike are so many names.
func columnsLike(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	return names
}

// TestChecks proves every kind of check against the engine's own values: what breaks it is counted and shown, what does not is not, NULLs
// pass where nothing is said of them, and a check with a condition judges the rows that satisfy it.
func TestChecks(t *testing.T) {
	l := newLake(t)
	c, err := l.e.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`CREATE TABLE lake.w.things (id BIGINT, price DECIMAL(38,10), word VARCHAR, day DATE, moment TIMESTAMP, instant TIMESTAMP WITH TIME ZONE, ok BOOLEAN, ratio DOUBLE)`,
		`INSERT INTO lake.w.things VALUES
			(1, 0.1000000001, 'it''s', '2024-01-01', '2024-01-01 10:00:00', '2024-01-01 12:00:00+02', true, 1.5),
			(2, 12345678901234567890.0000000001, 'ü', '2024-02-29', '2024-02-29 23:59:59.999999', '2024-02-29 23:59:59Z', false, 'nan'),
			(2, -1, NULL, NULL, NULL, NULL, NULL, NULL),
			(NULL, NULL, 'x', '2024-01-02', NULL, 'infinity', true, 'inf')`,
		`CREATE TABLE lake.w.odd (id BIGINT, text VARCHAR, bytes BLOB, list INTEGER[], ` + strings.Join(columnsLike(15), " INTEGER, ") + ` INTEGER)`,
		`INSERT INTO lake.w.odd (id, text, bytes, list) SELECT i, repeat(chr(1), 10000), repeat('z', 10000)::BLOB, range(1000) FROM range(9) r(i)`,
		`CREATE TABLE lake.w.words (word VARCHAR, n BIGINT)`,
		`INSERT INTO lake.w.words VALUES ('it''s', 1), ('x', 2), (NULL, 3)`,
		`CREATE TABLE lake.w.empty (id BIGINT, day DATE)`,
		`CREATE TABLE lake.w.names ("Occurrences" BIGINT, "the other" BIGINT, "a""b" BIGINT)`,
		`INSERT INTO lake.w.names VALUES (7, 8, 9), (7, 8, 9)`,
	} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	var newest int64
	if err := c.Scan(t.Context(), "SELECT max(snapshot_id) FROM __ducklake_metadata_lake.ducklake_snapshot", nil, &newest); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	things := plan.Model{Model: project.Model{Name: "things"}, Table: "things", Columns: []project.Column{column("id", "BIGINT"), column("price", "DECIMAL(38,10)"), column("word", "VARCHAR"), column("day", "DATE"),
		column("moment", "TIMESTAMP"), column("instant", "TIMESTAMP WITH TIME ZONE"), column("ok", "BOOLEAN"), column("ratio", "DOUBLE")}}
	odd := plan.Model{Model: project.Model{Name: "odd"}, Table: "odd", Columns: []project.Column{column("id", "BIGINT"), column("text", "VARCHAR"), column("bytes", "BLOB"), column("list", "INTEGER[]")}}
	for _, name := range columnsLike(15) {
		odd.Columns = append(odd.Columns, column(name, "INTEGER"))
	}
	names := plan.Model{Model: project.Model{Name: "names"}, Table: "names", Columns: []project.Column{column("Occurrences", "BIGINT"), column("the other", "BIGINT"), column(`a"b`, "BIGINT")}}
	empty := plan.Model{Model: project.Model{Name: "empty"}, Table: "empty", Columns: []project.Column{column("id", "BIGINT"), column("day", "DATE")}}
	scope := serving.Scope{Workspace: "w", Snapshot: serving.Snapshot(newest), Tables: map[string]string{"things": "things", "words": "words", "empty": "empty", "odd": "odd", "names": "names"}}
	now := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	text := func(s string) *project.Literal { return &project.Literal{Text: s} }
	n := func(n int64) *int64 { return &n }
	of := func(kind project.CheckKind, columns ...string) project.Check {
		return project.Check{Kind: kind, Columns: columns, Severity: project.SeverityError}
	}
	with := func(c project.Check, change func(*project.Check)) project.Check { change(&c); return c }
	accepted := func(column string, values ...string) project.Check {
		return with(of(project.AcceptedValues, column), func(c *project.Check) {
			for _, v := range values {
				c.Values = append(c.Values, project.Literal{Text: v})
			}
		})
	}
	between := func(column string, low, high *project.Literal) project.Check {
		return with(of(project.Range, column), func(c *project.Check) { c.Low, c.High = low, high })
	}
	to := func(columns []string, model string, fields ...string) project.Check {
		return with(of(project.Relationships, columns...), func(c *project.Check) { c.To, c.Fields = model, fields })
	}
	fresh := func(column string, age time.Duration) project.Check {
		return with(of(project.Freshness, column), func(c *project.Check) { c.MaxAge = age })
	}
	sql := func(kind project.CheckKind, text string) project.Check {
		return with(of(kind), func(c *project.Check) { c.Statement = condition(text) })
	}
	where := func(c project.Check, text string) project.Check {
		c.Where = condition(text)
		return c
	}
	for _, tc := range []struct {
		model            plan.Model
		check            project.Check
		failures, judged int64
		// sample is what the shown failures hold.
		sample string
	}{
		{things, of(project.NotNull, "id"), 1, 4, `[null,null,"x"`},
		{things, of(project.NotNull, "id", "price"), 1, 4, ""},
		{things, where(of(project.NotNull, "id"), "word IS NULL -- a comment"), 0, 1, ""},
		{things, where(of(project.NotNull, "word"), "ratio <> 1.5"), 0, 2, ""},
		{things, of(project.Unique, "id"), 2, 4, `[[2,2]]`},
		{things, of(project.Unique, "id", "word"), 0, 4, ""},
		{things, where(of(project.Unique, "id"), "price > 0"), 0, 2, ""},
		{things, with(of(project.RowCount), func(c *project.Check) { c.Min, c.Max = n(4), n(4) }), 0, 4, ""},
		{things, with(of(project.RowCount), func(c *project.Check) { c.Max = n(3) }), 1, 4, ""},
		{things, where(with(of(project.RowCount), func(c *project.Check) { c.Max = n(3) }), "id = 2"), 0, 2, ""},
		{empty, with(of(project.RowCount), func(c *project.Check) { c.Min = n(1) }), 1, 0, ""},
		{things, accepted("word", "it's", "ü", "x"), 0, 4, ""},
		{things, accepted("word", "it's", "ü"), 1, 4, `"x"`},
		{things, accepted("price", "0.1000000001", "12345678901234567890.0000000001"), 1, 4, "-1"},
		{things, accepted("ok", "true"), 1, 4, ""},
		{things, accepted("day", "2024-01-01", "2024-01-02", "2024-02-29"), 0, 4, ""},
		{things, between("price", text("-1"), text("12345678901234567890.0000000001")), 0, 4, ""},
		{things, between("price", text("-0.9999999999"), text("12345678901234567890.0000000000")), 2, 4, ""},
		{things, between("day", text("2024-01-02"), nil), 1, 4, `"2024-01-01"`},
		{things, between("instant", nil, text("2024-01-01 10:00:00Z")), 2, 4, ""},
		{things, between("ratio", text("0"), text("10")), 2, 4, ""},
		{things, between("ratio", text("0"), nil), 1, 4, ""},
		{things, between("ratio", nil, text("inf")), 1, 4, ""},
		{names, of(project.Unique, "Occurrences", `a"b`), 2, 2, `{"columns":["Occurrences","a\"b","occurrences_"],"rows":[[7,9,2]]}`},
		{names, to([]string{"the other", `a"b`}, "names", `a"b`, "the other"), 2, 2, `{"columns":["the other","a\"b","Occurrences"],"rows":[[8,9,7],[8,9,7]]}`},
		{things, where(of(project.Unique, "ok"), "ratio <> 1.5 AND ok"), 0, 1, ""},
		{things, where(to([]string{"word"}, "words", "word"), "ratio <> 1.5"), 1, 2, `"ü"`},
		{things, where(to([]string{"word"}, "words", "word"), "things.id = 2"), 1, 2, `"ü"`},
		{things, to([]string{"id"}, "things", "id"), 0, 4, ""},
		{things, where(sql(project.Expression, "CAST(word AS INTEGER) > 0"), "word ~ '^[0-9]+$'"), 0, 0, ""},
		{things, to([]string{"word"}, "words", "word"), 1, 4, `"ü"`},
		{things, to([]string{"word", "id"}, "words", "word", "n"), 1, 4, `"ü"`},
		{things, where(to([]string{"word"}, "words", "word"), "id = 1"), 0, 1, ""},
		{empty, to([]string{"id"}, "words", "n"), 0, 0, ""},
		{things, fresh("day", 36*time.Hour-time.Microsecond), 1, 4, `[["2024-02-29"]]`},
		{things, fresh("day", 37*time.Hour), 0, 4, ""},
		{things, fresh("moment", 13*time.Hour), 0, 4, ""},
		{things, fresh("instant", 12*time.Hour), 1, 4, ""},
		{things, where(fresh("day", 37*time.Hour), "id = 1"), 1, 1, `"2024-01-01"`},
		{empty, fresh("day", time.Hour), 1, 0, `[[null]]`},
		{things, sql(project.Expression, "price > 0 -- positive"), 2, 4, "-1"},
		{things, sql(project.Expression, "id IS NULL OR id < 3"), 0, 4, ""},
		{things, sql(project.CustomSQL, "SELECT w.n FROM words AS w LEFT JOIN things AS t USING (word) WHERE t.word IS NULL"), 1, 4, `[[3]]`},
		{things, sql(project.CustomSQL, "SELECT 1 AS one FROM empty"), 0, 4, ""},
	} {
		m := tc.model
		m.Checks = []project.Check{tc.check}
		results, err := query.NewChecker(l.reader).Check(t.Context(), scope, m, now)
		if err != nil {
			t.Errorf("%s: %v", tc.check, err)
			continue
		}
		r := results[0]
		if r.Failures != tc.failures || r.Judged != tc.judged || r.OK != (tc.failures == 0) {
			t.Errorf("%s found %d of %d (%s, OK %t), want %d of %d", tc.check, r.Failures, r.Judged, r.Detail, r.OK, tc.failures, tc.judged)
		}
		shown := tc.failures > 0 && tc.check.Kind != project.RowCount
		if (r.Sample != "") != shown || !strings.Contains(r.Sample, tc.sample) || shown && !json.Valid([]byte(r.Sample)) {
			t.Errorf("%s shows %s, want %s in it", tc.check, r.Sample, tc.sample)
		}
	}
	// A sample has a row whatever the rows are: the columns that the check names come first, and long values are cut so that it shows.
	odd.Checks = []project.Check{accepted("list", "[1]"), sql(project.Expression, "id < 0"), sql(project.CustomSQL, "SELECT CAST(text AS INTEGER) AS n FROM odd")}
	results, err := query.NewChecker(l.reader).Check(t.Context(), scope, odd, now)
	if err != nil {
		t.Fatal(err)
	}
	cut := `"` + strings.Repeat(`\u0001`, 60) + `…"`
	for i, wants := range [][]string{
		{`{"columns":["list","id","text","bytes","c0",`, `"[0, 1, `, `, 16, 1…",0,` + cut + `,"` + strings.Repeat("enp6", 15) + `…",null,`, `"more_columns":3}`},
		{`{"columns":["id","text","bytes","list",`, `"more_columns":3}`},
		{`{"columns":["error"],"rows":[["Conversion Error: Could not convert string '`},
	} {
		for _, want := range wants {
			if sample := results[i].Sample; !strings.Contains(sample, want) || len(sample) > 7<<10 || !json.Valid([]byte(sample)) {
				t.Errorf("%s shows %s, want %s in it", results[i].Check, sample, want)
			}
		}
		if results[i].Failures != 9 {
			t.Errorf("%s found %d", results[i].Check, results[i].Failures)
		}
	}
	// What cannot be computed of some row is a failure of its check alone.
	unjudged := things
	unjudged.Checks = []project.Check{of(project.NotNull, "id"), sql(project.Expression, "CAST(word AS INTEGER) > 0"), of(project.Unique, "id"),
		sql(project.CustomSQL, "SELECT * FROM words WHERE CAST(word AS INTEGER) > 0"), of(project.RowCount)}
	unjudged.Checks[3].Severity = project.SeverityWarn
	if results, err = query.NewChecker(l.reader).Check(t.Context(), scope, unjudged, now); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprint(r.Outcome(), " ", r.Failures, " of ", r.Judged))
	}
	if want := "failed 1 of 4, failed 0 of 0, failed 2 of 4, warned 0 of 0, passed 0 of 4"; strings.Join(got, ", ") != want {
		t.Errorf("found %s, want %s", strings.Join(got, ", "), want)
	}
	for _, i := range []int{1, 3} {
		if !strings.Contains(results[i].Sample, "Could not convert string 'it''s'") && !strings.Contains(results[i].Sample, "Could not convert string 'it's'") {
			t.Errorf("%s shows %s", results[i].Check, results[i].Sample)
		}
	}
	// Tolerances hold to the row.
	for _, tc := range []struct {
		failures int64
		percent  string
		ok       bool
	}{{1, "", false}, {2, "", true}, {0, "49.9999999999999999", false}, {0, "50", true}, {1, "50", true}, {math.MaxInt64, "", true}} {
		m := things
		m.Checks = []project.Check{with(of(project.Unique, "id"), func(c *project.Check) { c.MaxFailures, c.MaxPercent = tc.failures, tc.percent })}
		if results, err = query.NewChecker(l.reader).Check(t.Context(), scope, m, now); err != nil || results[0].OK != tc.ok {
			t.Errorf("2 of 4 with %d and %s%% gives %+v, %v", tc.failures, tc.percent, results, err)
		}
	}
	// Many checks are several statements, with the same results.
	m := things
	for range 60 {
		m.Checks = append(m.Checks, where(of(project.Unique, "id"), "word <> '"+strings.Repeat("x", 200)+"'"), of(project.Unique, "id"))
	}
	if results, err = query.NewChecker(l.reader).Check(t.Context(), scope, m, now); err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if want := int64(i % 2 * 2); r.Failures != want {
			t.Fatalf("check %d of many found %d", i, r.Failures)
		}
	}
}
