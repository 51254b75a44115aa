package mem

import (
	"strings"
	"testing"

	"leapview/domain/project"
)

// Proves that what is outside of the store's SQL is refused where it stands, by its name.
func TestSQLRefusesByName(t *testing.T) {
	columns := []project.Column{{Name: "id", Type: "BIGINT"}, {Name: "name", Type: "VARCHAR"}, {Name: "day", Type: "DATE"},
		{Name: "ok", Type: "BOOLEAN"}, {Name: "x", Type: "DOUBLE"}}
	params := []project.Param{{Name: "text", Type: project.ParamString}, {Name: "when", Type: project.ParamTimestamp}}
	for _, c := range []struct{ sql, at, says string }{
		{"WITH a AS (SELECT id FROM t) SELECT id FROM a", "WITH", "WITH"},
		{"SELECT DISTINCT id FROM t", "DISTINCT", "DISTINCT"},
		{"SELECT id + 1 FROM t", "+", "+"},
		{"SELECT 1 AS one FROM t", "1", "1"},
		{"SELECT id name FROM t", "name", "NAME"},
		{"SELECT *, id FROM t", ",", ","},
		{"SELECT t.id FROM t", ".", "."},
		{"SELECT id FROM t JOIN u ON true", "JOIN", "JOIN"},
		{"SELECT id FROM t, u", ", u", ","},
		{"SELECT id FROM (SELECT id FROM t)", "(", "("},
		{"SELECT id FROM t a", "a", "A"},
		{"SELECT id FROM t WHERE id = 1 OR id = 2", "OR", "OR"},
		{"SELECT id FROM t WHERE NOT ok", "NOT", "NOT"},
		{"SELECT id FROM t WHERE ok", "", "the end"},
		{"SELECT id FROM t WHERE id IN (1)", "IN", "IN"},
		{"SELECT id FROM t WHERE id != 1", "!=", "!="},
		{"SELECT id FROM t WHERE id = id", "id", "ID"},
		{"SELECT id FROM t WHERE name = NULL", "NULL", "NULL"},
		{"SELECT id FROM t WHERE name LIKE 'a%'", "LIKE", "LIKE"},
		{"SELECT id FROM t WHERE day = DATE '2024-01-01'", "DATE", "DATE"},
		{"SELECT id FROM t GROUP BY ALL", "ALL", "ALL"},
		{"SELECT x FROM t GROUP BY x", "x", "DOUBLE"},
		{"SELECT id FROM t ORDER BY name", "name", "columns of the answer"},
		{"SELECT id FROM t ORDER BY id NULLS FIRST", "NULLS", "NULLS"},
		{"SELECT id FROM t LIMIT 1", "LIMIT", "LIMIT"},
		{"SELECT id FROM t HAVING id = 1", "HAVING", "HAVING"},
		{"SELECT avg(id) AS a FROM t", "avg", "avg"},
		{"SELECT count(id) AS n FROM t", "id", "ID"},
		{"SELECT sum(name) AS n FROM t", "name", "sum over VARCHAR"},
		{"SELECT max(id) FROM t", "(", "AS name"},
		{"SELECT id FROM t WHERE id = 'one'", "'one'", "'one'"},
		{"SELECT id FROM t WHERE id = 1.5", "1.5", "1.5"},
		{"SELECT id FROM t WHERE id = 9223372036854775808", "9223372036854775808", "range"},
		{"SELECT id FROM t WHERE name = 1", "1", "1"},
		{"SELECT id FROM t WHERE name = -'a'", "'a'", "'a'"},
		{"SELECT id FROM t WHERE day = '2024-02-30'", "'2024-02-30'", "2024-02-30"},
		{"SELECT id FROM t WHERE day = $when", "$when", "timestamp"},
		{"SELECT id FROM t WHERE id = $text", "$text", "string"},
		{"SELECT id FROM t WHERE name = $tex", "$tex", "$tex"},
		{"SELECT id FROM t WHERE name = ?", "?", "?"},
		{"SELECT id FROM t WHERE name = 'open", "'open", "never closed"},
		{"SELECT id FROM t /* why */", "/*", "/*"},
		{"SELECT id FROM t;", ";", ";"},
		{"SELECT ID FROM t", "ID", "ID"},
		{"SELECT id AS é FROM t", "é", "é"},
		{"SELECT 1x FROM t", "1x", "1x"},
	} {
		s, bad := parse(c.sql)
		if bad == nil {
			_, bad = bind(s, columns, params)
		}
		if bad == nil {
			t.Errorf("%s: accepted", c.sql)
			continue
		}
		// A word that stands twice is meant where it stands last.
		if want := strings.LastIndex(c.sql, c.at); bad.offset != want || !strings.Contains(bad.message, c.says) {
			t.Errorf("%s: refused at byte %d, want %d, with %q, which should mention %q", c.sql, bad.offset, want, bad.message, c.says)
		}
	}
}

// Proves that a problem stands at its line and column and shows its line, also when the statement begins in the middle of one.
func TestSQLProblemPlaces(t *testing.T) {
	s := project.Statement{SQL: "SELECT id\r\nFROM t\n  LIMIT 1", At: project.Position{File: "m.sql", Line: 7, Column: 4}}
	_, bad := parse(s.SQL)
	want := project.Problem{At: project.Position{File: "m.sql", Line: 9, Column: 3}, Message: bad.message, Line: "  LIMIT 1"}
	if got := bad.problem(s); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := refuse(2, "x").problem(s); got.At.Line != 7 || got.At.Column != 6 || got.Line != "" {
		t.Errorf("got %+v", got)
	}
}

// Proves that a quoted field is never NULL and that lines which are no records are refused where they stand.
func TestCSVFields(t *testing.T) {
	source := project.Source{Name: "s", Format: project.CSV, NullTexts: []string{"NA"}, Columns: []project.Column{{Name: "a", Type: "VARCHAR"}, {Name: "b", Type: "VARCHAR"}}}
	rows, err := readCSV(source, "s.csv", []byte("a,b\r\n\"\",\r\n\"NA\",NA\r\n\"two\nlines\",\"\""))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]value{{"", nil}, {"NA", nil}, {"two\nlines", ""}}
	for i, row := range want {
		if len(rows) != len(want) || rows[i][0] != row[0] || rows[i][1] != row[1] {
			t.Fatalf("rows are %q, want %q", rows, want)
		}
	}
	for text, at := range map[string]string{
		"a,b\nx,\"two\nlines\"\n\nx,y\n": "s.csv:4:1: the line is empty",
		"a,b\nx,y\n\n":                   "s.csv:3:1: the line is empty",
		"a,b\n\"two\nlines\",x\nx,\"y":   "s.csv:4:1:",
		"a,b\nx,y\"z\n":                  "s.csv:2:1:",
		"\n":                             "s.csv:1:1: the line is empty",
		"a,b\nx,\xff\n":                  "s.csv:2:1: column \"b\"",
	} {
		if _, err := readCSV(source, "s.csv", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), at) {
			t.Errorf("%q: %v, want it at %s", text, err, at)
		}
	}
}

// Proves that casts keep every digit and refuse what does not fit.
func TestCasts(t *testing.T) {
	for _, c := range []struct {
		in   value
		to   project.Type
		want value
	}{
		{int64(127), "TINYINT", int64(127)}, {int64(128), "TINYINT", nil}, {int64(-128), "TINYINT", int64(-128)}, {int64(-129), "TINYINT", nil},
		{accumulate("sum", accumulate("sum", nil, int64(1)), int64(9223372036854775807)), "BIGINT", nil},
		{accumulate("sum", nil, int64(9223372036854775807)), "BIGINT", int64(9223372036854775807)},
		{int64(9007199254740993), "VARCHAR", "9007199254740993"}, {int64(3), "DOUBLE", 3.0}, {"a", "VARCHAR", "a"},
	} {
		got, err := cast(c.in, c.to)
		if got != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("%v as %s is %v (%v), want %v", c.in, c.to, got, err, c.want)
		}
	}
}
