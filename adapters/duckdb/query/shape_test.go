package query_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// TestLists proves that a list of each type is one value of the engine's list type, exact in every item, in each way in which SQL uses
// lists, and that items stay values whatever they look like.
func TestLists(t *testing.T) {
	l := newLake(t)
	listed := func(name string, of project.ParamType) project.Param {
		return project.Param{Name: name, Type: of, List: true}
	}
	items := func(texts ...string) serving.Value { return serving.Value{Items: append([]string{}, texts...)} }
	q := l.prepare(t, l.new, "SELECT $s AS s, $i AS i, $d AS d, $b AS b, $day AS day, $at AS at FROM range(1)", listed("s", project.ParamString), listed("i", project.ParamInteger),
		listed("d", project.ParamDecimal), listed("b", project.ParamBoolean), listed("day", project.ParamDate), listed("at", project.ParamTimestamp))
	var types []string
	for _, c := range q.Columns() {
		types = append(types, c.Type)
	}
	if got := strings.Join(types, " "); got != "VARCHAR[] BIGINT[] DECIMAL(38,9)[] BOOLEAN[] DATE[] TIMESTAMP[]" {
		t.Errorf("the lists are %s", got)
	}
	r := l.open(t)
	a, err := r.Answer(t.Context(), q, serving.Args{"s": items("a", "", "NULL", "[x, 'y']", "é\"\n"), "i": items("-9223372036854775808", "9223372036854775807"),
		"d": items("12345678901234567890123456789.123456789", "-0.000000001"), "b": items("true", "false"), "day": items("0001-01-01", "9999-12-31"),
		"at": items("2013-01-31T12:34:56.789", "0001-01-01T00:00:00")}, plenty)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Rows), `[[["a","","NULL","[x, 'y']","é\"\n"],[-9223372036854775808,9223372036854775807],[12345678901234567890123456789.123456789,-0.000000001],[true,false],["0001-01-01","9999-12-31"],["2013-01-31T12:34:56.789","0001-01-01T00:00:00"]]]`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for _, where := range []string{"k IN (SELECT unnest($ks))", "list_contains($ks, k)", "$ks IS NULL OR k IN (SELECT unnest($ks))", "k = ANY($ks)", "k IN $ks", "array_contains($ks, k)"} {
		q := l.prepare(t, l.new, "SELECT k FROM names WHERE "+where+" ORDER BY k", listed("ks", project.ParamInteger))
		many := make([]string, project.MaxListItems)
		for i := range many {
			many[i] = fmt.Sprint(i + 8)
		}
		null := "[]"
		if strings.Contains(where, "IS NULL") {
			null = "[[0],[1],[2],[3],[4],[5],[6],[7],[8],[9]]"
		}
		for want, v := range map[string]serving.Value{"[[2],[7]]": items("7", "2", "100", "2"), "[[8],[9]]": {Items: many}, null: {Null: true}} {
			a, err := r.Answer(t.Context(), q, serving.Args{"ks": v}, plenty)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			if string(a.Rows) != want {
				t.Errorf("%s with %v: %s, not %s", where, v, a.Rows, want)
			}
		}
		a, err := r.Answer(t.Context(), q, serving.Args{"ks": items()}, plenty)
		if err != nil || string(a.Rows) != "[]" {
			t.Errorf("%s with no items: %s, %v", where, a.Rows, err)
		}
	}
	q = l.prepare(t, l.new, "SELECT count(*) AS n FROM names WHERE name IN (SELECT unnest($names))", listed("names", project.ParamString))
	for _, hostile := range []string{"new') OR 1=1 --", "'; DROP TABLE names; --", "$names", `{"new"}`, "new\x01", strings.Repeat("(", 4096)} {
		a, err := r.Answer(t.Context(), q, serving.Args{"names": items(hostile, "nobody")}, plenty)
		if err != nil || string(a.Rows) != "[[0]]" {
			t.Errorf("%.40q: %s, %v", hostile, a.Rows, err)
		}
	}
}

// TestShapeNames proves that a column is picked and sorted by whatever it is called: as a name that the engine would take for something
// else, it is still that column.
func TestShapeNames(t *testing.T) {
	l := newLake(t)
	r := l.open(t)
	names := []string{`x" FROM names; --`, `"`, `""`, "a.b", "*", "ALL", "rowid", "1", "NULL", "null", "snapshot_id", "$p", "é ß", "order", "current_date", "k", "it's", "names", "count(*)", "COLUMNS(*)", "/*", " "}
	for _, name := range names {
		quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		q := l.prepare(t, l.new, "SELECT i AS "+quoted+", -i AS zz FROM numbers WHERE i BETWEEN 1 AND 3")
		for descending, want := range map[bool]string{false: "[[1],[2],[3]]", true: "[[3],[2],[1]]"} {
			shaped, err := q.Shaped(serving.Shape{Columns: []string{name}, Order: []project.Order{{Column: name, Descending: descending}}})
			if err != nil {
				t.Fatal(err)
			}
			a, err := r.Answer(t.Context(), shaped, nil, plenty)
			if err != nil || string(a.Rows) != want || len(a.Columns) != 1 || a.Columns[0].Name != name {
				t.Errorf("%s: %v %s, %v", quoted, a.Columns, a.Rows, err)
			}
		}
	}
}

// TestShapes proves that shapes go around any statement, one with an order, a bound, CTEs, a comment at its end, and parameters, that
// every type of column sorts, and that all of it reads its own snapshot.
func TestShapes(t *testing.T) {
	l := newLake(t)
	r := l.open(t)
	for sql, want := range map[string]string{
		"SELECT i, k FROM numbers WHERE i < $n AND i >= 0 ORDER BY i LIMIT 4 -- the first":                "[[3],[2],[1],[0]]",
		"WITH a AS (SELECT i FROM numbers) SELECT i, 1 AS one FROM a WHERE i BETWEEN 0 AND $n ORDER BY i": "[[5],[4],[3],[2],[1],[0]]",
		"SELECT i FROM numbers WHERE i = $n UNION ALL SELECT -1 ORDER BY i":                               "[[5],[-1]]",
		"VALUES ($n), (7), (NULL)": "[[7],[5],[null]]",
	} {
		q := l.prepare(t, l.new, sql, param("n", project.ParamInteger))
		shaped, err := q.Shaped(serving.Shape{Columns: []string{q.Columns()[0].Name}, Order: []project.Order{{Column: q.Columns()[0].Name, Descending: true}}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := r.Answer(t.Context(), shaped, serving.Args{"n": {Text: "5"}}, plenty)
		if err != nil || string(a.Rows) != want {
			t.Errorf("%s: %s, %v", sql, a.Rows, err)
		}
	}
	const every = "SELECT * FROM (VALUES (true, 1.5::DOUBLE, 'a', [1], {'a': 1}, MAP {'a': 1}, DATE '2013-01-01', 'x'::BLOB, uuid(), '{}'::JSON)) t(a, b, c, d, e, f, g, h, i, j)"
	q := l.prepare(t, l.new, every)
	for _, c := range q.Columns() {
		shaped, err := q.Shaped(serving.Shape{Columns: []string{"c"}, Order: []project.Order{{Column: c.Name}}})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := r.Answer(t.Context(), shaped, nil, plenty); err != nil || string(a.Rows) != `[["a"]]` {
			t.Errorf("by %s: %s, %v", c.Type, a.Rows, err)
		}
	}
	const count = "SELECT count(*) AS n, 1 AS one FROM numbers"
	for want, scope := range map[string]serving.Scope{"[[10000]]": l.old, "[[10001]]": l.new} {
		shaped, err := l.prepare(t, scope, count).Shaped(serving.Shape{Columns: []string{"n"}})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := r.Answer(t.Context(), shaped, nil, plenty); err != nil || string(a.Rows) != want {
			t.Errorf("%s, %v; want %s", a.Rows, err, want)
		}
	}
}

// TestShapeBounds proves that a shaped answer is cut where its limits say.
func TestShapeBounds(t *testing.T) {
	l := newLake(t)
	shaped, err := l.prepare(t, l.old, "SELECT i, k FROM numbers").Shaped(serving.Shape{Columns: []string{"i"}, Order: []project.Order{{Column: "k", Descending: true}, {Column: "i"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := l.open(t)
	a, err := r.Answer(t.Context(), shaped, nil, serving.Limits{Rows: 3, Bytes: 1000})
	if err != nil || string(a.Rows) != "[[9],[19],[29]]" || a.TruncationReason != serving.RowLimit {
		t.Errorf("%s, %q, %v", a.Rows, a.TruncationReason, err)
	}
	a, err = r.Answer(t.Context(), shaped, nil, serving.Limits{Rows: 3000, Bytes: 10})
	if err != nil || !json.Valid(a.Rows) || len(a.Rows) > 10 || a.TruncationReason != serving.ByteLimit {
		t.Errorf("%s, %q, %v", a.Rows, a.TruncationReason, err)
	}
	if _, err := l.prepare(t, l.old, "SELECT i FROM numbers").Shaped(serving.Shape{Columns: []string{"k"}}); fail.KindOf(err) != fail.Internal {
		t.Errorf("a column of the table that is none of the statement was given: %v", err)
	}
}
