package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/query"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is a place in a file.
func at(file string, line, column int) project.Position {
	return project.Position{File: file, Line: line, Column: column}
}

// statement is SQL that begins a file.
func statement(file, sql string) project.Statement {
	return project.Statement{SQL: sql, At: at(file, 1, 1)}
}

func column(name string, t project.Type) project.Column { return project.Column{Name: name, Type: t} }

func model(name, sql string) project.Model {
	return project.Model{Name: name, At: at("models/"+name+".sql", 1, 1), Statement: statement("models/"+name+".sql", sql)}
}

func endpoint(name, sql string, params ...project.Param) project.Endpoint {
	for i := range params {
		params[i].At = at("endpoints/"+name+".sql", 2+i, 3)
	}
	return project.Endpoint{Name: name, At: at("endpoints/"+name+".sql", 1, 1), Statement: statement("endpoints/"+name+".sql", sql), Params: params, Limit: 100}
}

func param(name string, t project.ParamType) project.Param { return project.Param{Name: name, Type: t} }

// flights is the source that the tests' projects read.
var flights = project.Source{Name: "raw_flights", Format: project.CSV, Columns: []project.Column{
	column("carrier", "VARCHAR"), column("delay", "INTEGER"), column("day", "DATE"), column("fare", "DECIMAL(18,2)"), column("extra", "JSON")}}

// columns are the columns' names and types on one line.
func columns(cs []project.Column) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Name+" "+string(c.Type))
	}
	return strings.Join(out, ", ")
}

// TestCompile proves that a project compiles into models in order with the columns that its SQL gives, casts applied, physical
// names by content, and into endpoints with their columns, and that the same project compiles twice on one engine.
func TestCompile(t *testing.T) {
	e, _ := enginetest.Open(t)
	totals := model("totals", "SELECT carrier, sum(delay) AS total, count(*) AS n, list(day) AS days, {'a': 1} AS s, max(fare) AS fare FROM clean GROUP BY carrier")
	totals.Casts = []project.Column{column("total", "BIGINT")}
	totals.Checks = []project.Check{{Kind: project.Unique, Columns: []string{"carrier"}}, {Kind: project.RowCount}}
	p := project.Project{
		Name:    "p",
		Sources: []project.Source{flights},
		Models:  []project.Model{totals, model("clean", "SELECT * FROM raw_flights WHERE delay IS NOT NULL"), model("order", "SELECT 1 AS x")},
		Endpoints: []project.Endpoint{
			endpoint("worst", "SELECT carrier, total, $least AS least FROM totals WHERE total > $least ORDER BY total DESC", param("least", project.ParamInteger)),
			endpoint("all_types", "SELECT $s AS s, $i AS i, $d AS d, $b AS b, $day AS day, $at AS at, sum(total) AS h FROM totals JOIN \"order\" ON true",
				param("s", project.ParamString), param("i", project.ParamInteger), param("d", project.ParamDecimal), param("b", project.ParamBoolean), param("day", project.ParamDate), param("at", project.ParamTimestamp)),
		},
	}
	k := query.NewCompiler(e)
	first, err := k.Compile(t.Context(), "id", p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range first.Models {
		names = append(names, m.Name)
		if m.Table != plan.PhysicalTable(m.Name, m.Columns) {
			t.Errorf("%s is in %s", m.Name, m.Table)
		}
	}
	if got := strings.Join(names, " "); got != "clean totals order" {
		t.Errorf("order %s", got)
	}
	if got, want := columns(first.Models[1].Columns), "carrier VARCHAR, total BIGINT, n BIGINT, days DATE[], s STRUCT(a INTEGER), fare DECIMAL(18,2)"; got != want {
		t.Errorf("columns %s, not %s", got, want)
	}
	if got, want := columns(first.Models[0].Columns), "carrier VARCHAR, delay INTEGER, day DATE, fare DECIMAL(18,2), extra JSON"; got != want {
		t.Errorf("columns %s, not %s", got, want)
	}
	if got := first.Models[1].Reads; !reflect.DeepEqual(got, []string{"clean"}) {
		t.Errorf("reads %v", got)
	}
	if got, want := columns(first.Endpoints[0].Columns), "carrier VARCHAR, total BIGINT, least BIGINT"; got != want {
		t.Errorf("columns %s, not %s", got, want)
	}
	if got, want := columns(first.Endpoints[1].Columns), "s VARCHAR, i BIGINT, d DECIMAL(38,9), b BOOLEAN, day DATE, at TIMESTAMP, h HUGEINT"; got != want {
		t.Errorf("columns %s, not %s", got, want)
	}
	if got := first.Endpoints[1].Reads; !reflect.DeepEqual(got, []string{"order", "totals"}) {
		t.Errorf("reads %v", got)
	}
	second, err := k.Compile(t.Context(), "id", p)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Error("the same project compiled differently")
	}
}

func ptr(s string) *string { return &s }

// TestCompileProblems proves that every mistake is found in one compilation, each at its line and column, with a message that names
// it.
func TestCompileProblems(t *testing.T) {
	e, _ := enginetest.Open(t)
	checked := model("checked", "SELECT carrier, delay FROM raw_flights")
	checked.Casts = []project.Column{{Name: "dely", Type: "BIGINT", At: at("models/checked.sql", 3, 5)}}
	checked.Checks = []project.Check{{Kind: project.NotNull, Columns: []string{"carrier", "carier"}, At: at("models/checked.sql", 5, 5)}}
	uncast := model("uncast", "SELECT {'a': delay} AS l FROM raw_flights")
	uncast.Casts = []project.Column{{Name: "l", Type: "STRUCT(b INTEGER)", At: at("models/uncast.sql", 2, 2)}}
	rules := model("rules", `SELECT carrier, delay, day, fare, NULL::DECIMAL(38,0) AS big, NULL::DOUBLE AS ratio, NULL::TIMESTAMP AS moment, NULL::TIMESTAMPTZ AS instant, true AS ok FROM raw_flights`)
	for line, c := range []project.Check{
		{Kind: project.AcceptedValues, Columns: []string{"delay"}, Values: []project.Literal{{Text: "1"}, {Text: "1.5"}}},
		{Kind: project.AcceptedValues, Columns: []string{"delay"}, Values: []project.Literal{{Text: "late"}}},
		{Kind: project.Range, Columns: []string{"day"}, Low: &project.Literal{Text: "2024-02-30"}},
		{Kind: project.Range, Columns: []string{"day"}, High: &project.Literal{Text: "2024-02-01 10:00:00"}},
		{Kind: project.Range, Columns: []string{"fare"}, High: &project.Literal{Text: "1.005"}},
		{Kind: project.Relationships, Columns: []string{"carrier"}, To: "goood", Fields: []string{"carrier"}},
		{Kind: project.Relationships, Columns: []string{"carrier"}, To: "good", Fields: []string{"carier"}},
		{Kind: project.Freshness, Columns: []string{"delay"}, MaxAge: 1},
		{Kind: project.Expression, Statement: project.Statement{SQL: "delay > 0 AND dely < 5"}},
		{Kind: project.Expression, Statement: project.Statement{SQL: "delay"}},
		{Kind: project.Expression, Statement: project.Statement{SQL: "carrier IN (FROM raw_flights SELECT carrier)"}},
		{Kind: project.CustomSQL, Statement: project.Statement{SQL: "SELECT * FROM read_csv('x')"}},
		{Kind: project.CustomSQL, Statement: project.Statement{SQL: "SELECT * FROM good WHERE carrier = $c"}},
		{Kind: project.NotNull, Columns: []string{"carrier"}, Where: project.Statement{SQL: "delay >"}},
		{Kind: project.NotNull, Columns: []string{"carrier"}, Where: project.Statement{SQL: "count(*) > 1"}},
		{Kind: project.NotNull, Columns: []string{"carrier"}, Where: project.Statement{SQL: "true) OR (true"}},
		{Kind: project.Expression, Statement: project.Statement{SQL: "delay > 0 AND\ncarrier IN (SELECT carrier FROM good)", Indent: 6}},
		{Kind: project.Expression, Statement: project.Statement{SQL: "delay > 0 AND\n dely < 5", Indent: project.Unplaced}},
		{Kind: project.Relationships, Columns: []string{"delay"}, To: "good", Fields: []string{"carrier"}},
		{Kind: project.Range, Columns: []string{"carrier"}, Low: &project.Literal{Text: "a"}},
		{Kind: project.Range, Columns: []string{"delay"}, Low: &project.Literal{Text: "5"}, High: &project.Literal{Text: "-5"}},
		{Kind: project.CustomSQL, Statement: project.Statement{SQL: "SELECT carrier, INTERVAL 1 DAY AS span FROM good"}},
		{Kind: project.Expression, Statement: project.Statement{SQL: "row_number() OVER () > 1"}},
		{Kind: project.AcceptedValues, Columns: []string{"big"}, Values: []project.Literal{{Text: "123456789012345678901234567890.6"}}},
		{Kind: project.AcceptedValues, Columns: []string{"ratio"}, Values: []project.Literal{{Text: "0.1"}, {Text: "nan"}, {Text: "9007199254740993"}}},
		{Kind: project.Range, Columns: []string{"moment"}, Low: &project.Literal{Text: "2024-01-01 10:00:00+02"}},
		{Kind: project.Range, Columns: []string{"instant"}, Low: &project.Literal{Text: "2024-01-01T10:00:00.1234567Z"}},
		{Kind: project.AcceptedValues, Columns: []string{"ok"}, Values: []project.Literal{{Text: "true"}, {Text: "yes"}}},
	} {
		c.At = at("models/rules.sql", 10+line, 5)
		for i := range c.Values {
			c.Values[i].At = at("models/rules.sql", 10+line, 30+i)
		}
		for _, l := range []*project.Literal{c.Low, c.High} {
			if l != nil {
				l.At = at("models/rules.sql", 10+line, 40)
			}
		}
		c.Statement.At, c.Where.At = at("models/rules.sql", 10+line, 20), at("models/rules.sql", 10+line, 20)
		rules.Checks = append(rules.Checks, c)
	}
	p := project.Project{
		Name:    "p",
		Sources: []project.Source{flights},
		Models: []project.Model{
			checked, uncast,
			model("good", "SELECT carrier FROM raw_flights"),
			model("syntax", "SELECT carrier\nFROM raw_flights WERE carrier = 'AA'"),
			model("unknown", "SELECT *\nFROM good,\n  raw_flight"),
			model("ref", "SELECT f.carrier,\n       f.dely\nFROM raw_flights f"),
			model("wide", "SELECT carrier,\n  sum(delay) AS total FROM raw_flights GROUP BY ALL"),
			model("span", "SELECT day - DATE '2000-01-01' AS ok, INTERVAL 1 DAY AS span FROM raw_flights"),
			model("twice", "SELECT carrier,\n carrier AS Carrier FROM raw_flights"),
			model("one", "SELECT * FROM two"), model("two", "SELECT * FROM one"),
			model("over", "SELECT * FROM ref"),
			model("outside", "SELECT * FROM read_csv('x.csv')"),
			model("param", "SELECT carrier FROM raw_flights WHERE delay > $least"),
			model("keys", "SELECT MAP {[1]: 2} AS m FROM raw_flights"),
			rules,
		},
		Endpoints: []project.Endpoint{
			endpoint("source", "SELECT * FROM\n raw_flights"),
			endpoint("nothing", "SELECT * FROM goood"),
			endpoint("undeclared", "SELECT carrier FROM good\nWHERE carrier = $carier", param("carrier", project.ParamString)),
			endpoint("unused", "SELECT carrier FROM good", param("carrier", project.ParamString)),
			endpoint("column", "SELECT carier FROM good"),
			endpoint("shown", "SELECT carrier, INTERVAL 1 DAY AS span FROM good"),
			endpoint("names", "SELECT carrier, 1 AS carrier FROM good"),
			endpoint("silent", "SELECT * FROM wide"),
		},
	}
	_, err := query.NewCompiler(e).Compile(t.Context(), "id", p)
	var problems project.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("err = %v", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%s: %s; %s", p.At, p.Message, p.Fix))
	}
	want := []struct{ at, says string }{
		{"endpoints/column.sql:1:8", `"carier" not found`},
		{"endpoints/names.sql:1:22", `two columns are named "carrier"`},
		{"endpoints/nothing.sql:1:15", `"goood", which is not a model of this project; did you mean "good"?`},
		{"endpoints/shown.sql:1:35", `column "span" cannot be part of an answer: INTERVAL`},
		{"endpoints/source.sql:2:2", `reads the source "raw_flights", but endpoints read models only`},
		{"endpoints/undeclared.sql:2:3", `"carrier" is declared, but the SQL does not use it`},
		{"endpoints/undeclared.sql:2:17", `the parameter $carier is not declared; did you mean "carrier"?`},
		{"endpoints/unused.sql:2:3", `"carrier" is declared, but the SQL does not use it; write $carrier`},
		{"models/checked.sql:3:5", `model "checked" has no column "dely"; did you mean "delay"?`},
		{"models/checked.sql:5:5", `check not_null(carrier, carier): model "checked" has no column "carier"; did you mean "carrier"?`},
		{"models/keys.sql:1:24", "MAP with nested keys"},
		{"models/one.sql:1:1", "models read each other in a circle: one → two → one"},
		{"models/outside.sql:1:15", "table function read_csv is not allowed"},
		{"models/param.sql:1:47", "only endpoints have parameters"},
		{"models/ref.sql:2:8", `"dely"`},
		{"models/rules.sql:10:31", `column "delay" is INTEGER, and "1.5" would become 2 in it; write 2 if that is meant`},
		{"models/rules.sql:11:30", `column "delay" is INTEGER, and "late" is no value of it`},
		{"models/rules.sql:12:40", `"2024-02-30" is no value of it`},
		{"models/rules.sql:13:40", `"2024-02-01 10:00:00" would become 2024-02-01 in it`},
		{"models/rules.sql:14:40", `"1.005" would become 1.01 in it`},
		{"models/rules.sql:15:5", `the project has no model "goood"; did you mean "good"?`},
		{"models/rules.sql:16:5", `model "good" has no column "carier"; did you mean "carrier"?`},
		{"models/rules.sql:17:5", `column "delay" is INTEGER, which has no age`},
		{"models/rules.sql:18:34", `expression: Referenced column "dely" not found`},
		{"models/rules.sql:19:20", "expression is INTEGER, and no condition"},
		{"models/rules.sql:20:37", `expression: it judges one row, and may not read "raw_flights"; use relationships`},
		{"models/rules.sql:21:34", "the table function read_csv is not allowed"},
		{"models/rules.sql:22:55", "a check has no parameters"},
		{"models/rules.sql:23:27", "where: syntax error"},
		{"models/rules.sql:24:20", "where: WHERE clause cannot contain aggregates"},
		{"models/rules.sql:25:24", `where: syntax error at or near ")"`},
		{"models/rules.sql:27:39", `expression: it judges one row, and may not read "good"`},
		{"models/rules.sql:27:20", `"dely"`},
		{"models/rules.sql:28:5", `column "delay" is INTEGER, and "carrier" of model "good" is VARCHAR: they are not compared without a cast`},
		{"models/rules.sql:29:5", `column "carrier" is VARCHAR, which has no range`},
		{"models/rules.sql:30:40", "has a min of 5 and a max of -5: no value has both; swap them"},
		{"models/rules.sql:31:54", `column "span" cannot be part of an answer: INTERVAL`},
		{"models/rules.sql:32:20", "expression: WHERE clause cannot contain window functions"},
		{"models/rules.sql:33:30", "would become 123456789012345678901234567891 in it"},
		{"models/rules.sql:34:32", `"9007199254740993" would become 9007199254740992.0 in it`},
		{"models/rules.sql:35:40", "would become 2024-01-01 10:00:00 in it"},
		{"models/rules.sql:36:40", `"2024-01-01T10:00:00.1234567Z" would become 2024-01-01 10:00:00.123456+00 in it`},
		{"models/rules.sql:37:31", `"yes" would become true in it`},
		{"models/span.sql:1:57", `column "span" of model "span"`},
		{"models/syntax.sql:2:23", `syntax error at or near "carrier"`},
		{"models/twice.sql:2:13", `two columns are named "Carrier"`},
		{"models/uncast.sql:2:2", `column "l" is STRUCT(a INTEGER), which cannot be cast to STRUCT(b INTEGER)`},
		{"models/unknown.sql:3:3", `"raw_flight", which is neither a source nor a model of this project; did you mean "raw_flights"?`},
		{"models/wide.sql:2:17", `column "total" of model "wide": a column of type HUGEINT cannot be stored`},
	}
	matched := 0
	for _, w := range want {
		for _, g := range got {
			if strings.HasPrefix(g, w.at+": ") && strings.Contains(g, w.says) {
				matched++
				break
			}
		}
	}
	if len(got) != len(want) || matched != len(want) {
		t.Errorf("%d of %d matched, %d found:\n%s", matched, len(want), len(got), strings.Join(got, "\n"))
	}
	for _, p := range problems {
		if p.At.File == "models/ref.sql" && p.Line != "       f.dely" {
			t.Errorf("line %q", p.Line)
		}
	}
}

// lake is an engine with two models in workspace w, at two snapshots.
type lake struct {
	e      *engine.Engine
	reader *query.Reader
	old    serving.Scope
	new    serving.Scope
}

func newLake(t testing.TB, change ...func(*engine.Options)) lake {
	t.Helper()
	e, _ := enginetest.Open(t, change...)
	c, err := e.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	l := lake{e: e, reader: query.NewReader(e)}
	head := func() serving.Scope {
		var n int64
		if err := c.Scan(t.Context(), "SELECT max(snapshot_id)::BIGINT FROM lake.snapshots()", nil, &n); err != nil {
			t.Fatal(err)
		}
		return serving.Scope{Workspace: "w", Snapshot: serving.Snapshot(n), Tables: map[string]string{"numbers": "numbers__0123456789ab", "names": "names__0123456789ab"}}
	}
	run := func(statements ...string) {
		for _, s := range statements {
			if err := c.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	run("CREATE SCHEMA lake.w",
		"CREATE TABLE lake.w.numbers__0123456789ab AS SELECT i, i % 10 AS k FROM range(10000) t(i)",
		"CREATE TABLE lake.w.names__0123456789ab AS SELECT i AS k, 'name ' || i AS name FROM range(10) t(i)")
	l.old = head()
	run("INSERT INTO lake.w.numbers__0123456789ab VALUES (-1, 5)", "UPDATE lake.w.names__0123456789ab SET name = 'new'")
	l.new = head()
	return l
}

// prepare prepares the SQL at the scope.
func (l lake) prepare(t testing.TB, scope serving.Scope, sql string, params ...project.Param) ports.Query {
	t.Helper()
	q, err := l.reader.Prepare(t.Context(), scope, statement("x.sql", sql), params)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return q
}

func (l lake) open(t testing.TB) ports.Reading {
	t.Helper()
	r, err := l.reader.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var plenty = serving.Limits{Rows: 1000, Bytes: 1 << 20}

// ask prepares and answers in one reading.
func (l lake) ask(t testing.TB, scope serving.Scope, sql string) serving.Answer {
	t.Helper()
	q := l.prepare(t, scope, sql)
	r := l.open(t)
	a, err := r.Answer(t.Context(), q, nil, plenty)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestValues proves for every type that its values appear exactly as documented, under the engine's name of the type, also within
// lists, structs and maps, and that what JSON cannot say is null and counted.
func TestValues(t *testing.T) {
	l := newLake(t)
	for _, x := range []struct{ sql, columnType, want string }{
		{"true", "BOOLEAN", "true"}, {"false", "BOOLEAN", "false"}, {"NULL::BOOLEAN", "BOOLEAN", "null"},
		{"(-128)::TINYINT", "TINYINT", "-128"}, {"255::UTINYINT", "UTINYINT", "255"},
		{"(-32768)::SMALLINT", "SMALLINT", "-32768"}, {"65535::USMALLINT", "USMALLINT", "65535"},
		{"(-2147483648)::INTEGER", "INTEGER", "-2147483648"}, {"4294967295::UINTEGER", "UINTEGER", "4294967295"},
		{"9007199254740993", "BIGINT", "9007199254740993"}, {"-9223372036854775808", "BIGINT", "-9223372036854775808"},
		{"18446744073709551615::UBIGINT", "UBIGINT", "18446744073709551615"},
		{"170141183460469231731687303715884105727", "HUGEINT", "170141183460469231731687303715884105727"},
		{"(-170141183460469231731687303715884105728)::HUGEINT", "HUGEINT", "-170141183460469231731687303715884105728"},
		{"(-1)::HUGEINT", "HUGEINT", "-1"},
		{"340282366920938463463374607431768211455::UHUGEINT", "UHUGEINT", "340282366920938463463374607431768211455"},
		{"1.10::DECIMAL(18,2)", "DECIMAL(18,2)", "1.10"}, {"1.10::DECIMAL(4,2)", "DECIMAL(4,2)", "1.10"}, {"(-0.05)::DECIMAL(9,2)", "DECIMAL(9,2)", "-0.05"},
		{"0::DECIMAL(38,9)", "DECIMAL(38,9)", "0.000000000"}, {"7::DECIMAL(10,0)", "DECIMAL(10,0)", "7"},
		{"12345678901234567890123456789012345678::DECIMAL(38,0)", "DECIMAL(38,0)", "12345678901234567890123456789012345678"},
		{"'-0.12345678901234567890123456789012345678'::DECIMAL(38,38)", "DECIMAL(38,38)", "-0.12345678901234567890123456789012345678"},
		{"0.1::DOUBLE", "DOUBLE", "0.1"}, {"1e300::DOUBLE", "DOUBLE", "1e+300"}, {"'-0.0'::DOUBLE", "DOUBLE", "-0"}, {"5e-324::DOUBLE", "DOUBLE", "5e-324"},
		{"0.1::FLOAT", "FLOAT", "0.1"}, {"16777216::FLOAT", "FLOAT", "16777216"}, {"123456789::DOUBLE", "DOUBLE", "123456789"},
		{"'x'", "VARCHAR", `"x"`}, {"''", "VARCHAR", `""`}, {"'é\"\\' || chr(10) || chr(0)", "VARCHAR", `"é\"\\\n\u0000"`},
		{"'b'::ENUM('a', 'b')", "ENUM('a', 'b')", `"b"`},
		{"'\\xAA\\x00\\xFF'::BLOB", "BLOB", `"qgD/"`}, {"''::BLOB", "BLOB", `""`},
		{"'550e8400-e29b-41d4-a716-446655440000'::UUID", "UUID", `"550e8400-e29b-41d4-a716-446655440000"`},
		{"'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID", "UUID", `"ffffffff-ffff-ffff-ffff-ffffffffffff"`},
		{`'{"n": 12345678901234567890, "a":1.10}'::JSON`, "JSON", `"{\"n\": 12345678901234567890, \"a\":1.10}"`},
		{"DATE '2013-01-31'", "DATE", `"2013-01-31"`}, {"DATE '0044-03-15 (BC)'", "DATE", `"-000043-03-15"`}, {"DATE '12345-06-07'", "DATE", `"+012345-06-07"`},
		{"'infinity'::DATE", "DATE", "null"}, {"'-infinity'::DATE", "DATE", "null"}, {"'epoch'::DATE", "DATE", `"1970-01-01"`},
		{"TIME '12:34:56.789'", "TIME", `"12:34:56.789"`}, {"TIME '24:00:00'", "TIME", `"24:00:00"`}, {"TIME '00:00:00'", "TIME", `"00:00:00"`},
		{"TIMESTAMP '2013-01-31 12:34:56'", "TIMESTAMP", `"2013-01-31T12:34:56"`}, {"TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP", `"1969-12-31T23:59:59.999999"`},
		{"TIMESTAMP '2013-01-31 12:34:56.5'", "TIMESTAMP", `"2013-01-31T12:34:56.5"`}, {"'infinity'::TIMESTAMP", "TIMESTAMP", "null"},
		{"'2013-01-31 12:34:56+02'::TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", `"2013-01-31T10:34:56Z"`}, {"'-infinity'::TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "null"},
		{"'2013-01-31 12:34:56'::TIMESTAMP_S", "TIMESTAMP_S", `"2013-01-31T12:34:56"`}, {"'2013-01-31 12:34:56.789'::TIMESTAMP_MS", "TIMESTAMP_MS", `"2013-01-31T12:34:56.789"`},
		{"'2013-01-31 12:34:56.123456789'::TIMESTAMP_NS", "TIMESTAMP_NS", `"2013-01-31T12:34:56.123456789"`}, {"'infinity'::TIMESTAMP_NS", "TIMESTAMP_NS", "null"},
		{"[1, NULL, 3]", "INTEGER[]", "[1,null,3]"}, {"[]::INTEGER[]", "INTEGER[]", "[]"}, {"NULL::INTEGER[]", "INTEGER[]", "null"}, {"[[true], NULL, []]", "BOOLEAN[][]", "[[true],null,[]]"},
		{"[1, 2]::INTEGER[2]", "INTEGER[2]", "[1,2]"},
		{`{'a': 1, 'b "c"': ['x', NULL], 'd': {'u': '550e8400-e29b-41d4-a716-446655440000'::UUID}, 't': true, 'h': 5::HUGEINT}`,
			`STRUCT(a INTEGER, "b ""c""" VARCHAR[], d STRUCT(u UUID), t BOOLEAN, h HUGEINT)`, `{"a":1,"b \"c\"":["x",null],"d":{"u":"550e8400-e29b-41d4-a716-446655440000"},"t":true,"h":5}`},
		{"NULL::STRUCT(a INTEGER)", "STRUCT(a INTEGER)", "null"}, {"{'a': NULL::INTEGER}", "STRUCT(a INTEGER)", `{"a":null}`},
		{"MAP {'k': 1.10, 'l\"': NULL}", "MAP(VARCHAR, DECIMAL(3,2))", `{"k":1.10,"l\"":null}`}, {"MAP {5: [true]}", "MAP(INTEGER, BOOLEAN[])", `{"5":[true]}`}, {"map_entries(MAP {5: true})", "STRUCT(\"key\" INTEGER, \"value\" BOOLEAN)[]", `[{"key":5,"value":true}]`},
		{"MAP {DATE '2013-01-31': [1]}", "MAP(DATE, INTEGER[])", `{"2013-01-31":[1]}`}, {"MAP {}::MAP(VARCHAR, INTEGER)", "MAP(VARCHAR, INTEGER)", "{}"},
		{"'nan'::DOUBLE", "DOUBLE", "null"}, {"['inf'::DOUBLE, 1, '-inf'::DOUBLE]", "DOUBLE[]", "[null,1.0,null]"}, {"'nan'::FLOAT", "FLOAT", "null"},
		{"NULL", "INTEGER", "null"},
	} {
		a := l.ask(t, l.new, "SELECT "+x.sql+" AS x")
		got := string(a.Rows)
		if want := "[[" + strings.ReplaceAll(x.want, "1.0,", "1,") + "]]"; got != want {
			t.Errorf("%s: %s, not %s", x.sql, got, want)
		}
		if !json.Valid(a.Rows) {
			t.Errorf("%s: %s is no JSON", x.sql, got)
		}
		if want := []serving.Column{{Name: "x", Type: x.columnType}}; !reflect.DeepEqual(a.Columns, want) {
			t.Errorf("%s: columns %v, not %v", x.sql, a.Columns, want)
		}
		odd := strings.Contains(x.sql, "inf") || strings.Contains(x.sql, "nan")
		if odd != (len(a.Warnings) == 1) {
			t.Errorf("%s: warnings %v", x.sql, a.Warnings)
		}
	}
	a := l.ask(t, l.new, "SELECT * FROM (VALUES ('nan'::DOUBLE, 1), ('inf'::DOUBLE, 2), (3, 3), ('-inf'::DOUBLE, NULL)) v(x, y)")
	if got := string(a.Rows); got != "[[null,1],[null,2],[3,3],[null,null]]" || a.Count != 4 {
		t.Errorf("%s", got)
	}
	if want := []string{"column x: 3 values are NaN or infinite, shown as null"}; !reflect.DeepEqual(a.Warnings, want) {
		t.Errorf("warnings %v", a.Warnings)
	}
}

// TestUnsupported proves that types without a form in an answer are refused by name when a query is prepared, not when it runs.
func TestUnsupported(t *testing.T) {
	l := newLake(t)
	for sql, says := range map[string]string{
		"INTERVAL 1 DAY": "INTERVAL is not supported", "[INTERVAL 1 DAY]": "INTERVAL is not supported", "'101'::BIT": "type bit", "'1'::BIGNUM": "type bignum",
		"'12:00:00+01'::TIMETZ": "type time_tz", "union_value(a := 1)": "not supported", "row(1, 2)": "members have no names", "MAP {[1]: 2}": "nested keys",
		"'12:00:00'::TIME_NS": "TIME_NS",
		"MAP {'a': true}":     "MAP of BOOLEAN", "MAP {'a': '101'::BIT}": "MAP of", "MAP {uuid(): 1}": "MAP of", "1::VARIANT": "VARIANT", "MAP {'a': 1::VARIANT}": "VARIANT",
	} {
		_, err := l.reader.Prepare(t.Context(), l.new, statement("x.sql", "SELECT 1 AS a, "+sql+" AS bad"), nil)
		var problems project.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), `column "bad"`) && says != "VARIANT" {
			t.Errorf("%s: err = %v", sql, err)
		}
	}
}

// TestSnapshots proves that readings of old and new snapshots, one after the other and at once in one reading, see exactly their
// own rows while newer ones exist.
func TestSnapshots(t *testing.T) {
	l := newLake(t)
	const sql = "SELECT count(*) AS n, sum(i)::BIGINT AS s, (SELECT count(*) FROM names WHERE name = 'new') AS fresh FROM numbers"
	old, fresh := l.prepare(t, l.old, sql), l.prepare(t, l.new, sql)
	r := l.open(t)
	for range 2 {
		for want, q := range map[string]ports.Query{"[[10000,49995000,0]]": old, "[[10001,49994999,10]]": fresh} {
			a, err := r.Answer(t.Context(), q, nil, plenty)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(a.Rows); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	}
	if got := old.Columns(); !reflect.DeepEqual(got, []serving.Column{{Name: "n", Type: "BIGINT"}, {Name: "s", Type: "BIGINT"}, {Name: "fresh", Type: "BIGINT"}}) {
		t.Errorf("columns %v", got)
	}
}

// TestParameters proves that parameters of each type are bound by name, exactly, also NULL, and that text which would be SQL stays a
// value.
func TestParameters(t *testing.T) {
	l := newLake(t)
	q := l.prepare(t, l.new, "SELECT $z AS z, $s AS s, $i AS i, $d AS d, $b AS b, $day AS day, $at AS at, $s || '!' AS again, count(*) AS n FROM numbers WHERE i < $i LIMIT $i",
		param("s", project.ParamString), param("i", project.ParamInteger), param("d", project.ParamDecimal), param("b", project.ParamBoolean),
		param("day", project.ParamDate), param("at", project.ParamTimestamp), param("z", project.ParamString))
	r := l.open(t)
	text := func(s string) serving.Value { return serving.Value{Text: s} }
	a, err := r.Answer(t.Context(), q, serving.Args{"z": {Null: true}, "s": text("'; DROP TABLE x --"), "i": text("42"), "d": text("-12345678901234567890123456789.123456789"),
		"b": text("true"), "day": text("2013-01-31"), "at": text("2013-01-31T12:34:56.789")}, plenty)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Rows), `[[null,"'; DROP TABLE x --",42,-12345678901234567890123456789.123456789,true,"2013-01-31","2013-01-31T12:34:56.789","'; DROP TABLE x --!",43]]`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	null := serving.Value{Null: true}
	a, err = r.Answer(t.Context(), q, serving.Args{"z": null, "s": null, "i": null, "d": null, "b": null, "day": null, "at": null}, plenty)
	if err != nil || a.Count != 1 {
		t.Errorf("%s, %v", a.Rows, err)
	}
	if _, err := r.Answer(t.Context(), q, serving.Args{"s": null}, plenty); fail.CodeOf(err) != "unbound_parameter" {
		t.Errorf("err = %v", err)
	}
}

// TestBounds proves that an answer holds at most its rows and bytes, in the statement's order, and names the bound that cut it.
func TestBounds(t *testing.T) {
	l := newLake(t)
	q := l.prepare(t, l.old, "SELECT i, repeat('x', 10) AS x FROM numbers ORDER BY (i * 7919) % 10007")
	r := l.open(t)
	full, err := r.Answer(t.Context(), q, nil, serving.Limits{Rows: 10000, Bytes: 1 << 20})
	if err != nil || full.Truncated || full.TruncationReason != "" || full.Count != 10000 {
		t.Fatalf("%d rows, %q, %v", full.Count, full.TruncationReason, err)
	}
	var rows [][]any
	if err := json.Unmarshal(full.Rows, &rows); err != nil {
		t.Fatal(err)
	}
	key := func(row []any) int { return int(row[0].(float64)) * 7919 % 10007 }
	if !slices.IsSortedFunc(rows, func(a, b []any) int { return key(a) - key(b) }) {
		t.Error("the rows are not in the statement's order")
	}
	for _, x := range []struct {
		limits serving.Limits
		count  int
		reason string
	}{
		{serving.Limits{Rows: 9999, Bytes: 1 << 20}, 9999, serving.RowLimit},
		{serving.Limits{Rows: 1, Bytes: 1 << 20}, 1, serving.RowLimit},
		{serving.Limits{Rows: 10000, Bytes: 1000}, -1, serving.ByteLimit},
		{serving.Limits{Rows: 10000, Bytes: 10}, 0, serving.ByteLimit},
	} {
		a, err := r.Answer(t.Context(), q, nil, x.limits)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Truncated || a.TruncationReason != x.reason || x.count >= 0 && a.Count != x.count {
			t.Errorf("%v: %d rows, %q", x.limits, a.Count, a.TruncationReason)
		}
		if len(a.Rows) > x.limits.Bytes || !json.Valid(a.Rows) {
			t.Errorf("%v: %d bytes", x.limits, len(a.Rows))
		}
		if body := strings.TrimSuffix(string(a.Rows), "]"); !strings.HasPrefix(string(full.Rows), body) {
			t.Errorf("%v: the rows are in another order", x.limits)
		}
	}
	if a := l.ask(t, l.old, "SELECT i FROM numbers WHERE i < 0"); string(a.Rows) != "[]" || a.Count != 0 || a.Truncated {
		t.Errorf("%s", a.Rows)
	}
}

// TestPrepareRefuses proves that what may not be read is refused with its place, and that a snapshot which does not exist is missing.
func TestPrepareRefuses(t *testing.T) {
	l := newLake(t)
	for sql, says := range map[string]string{
		"SELECT *\nFROM numers":                    `x.sql:2:6: there is no model or source "numers"; did you mean "numbers"?`,
		"SELECT * FROM lake.w.names__0123456789ab": "x.sql:1:15",
		"SELECT i, i AS I FROM numbers":            "two columns are named",
		"SELECT i,\n  nosuch FROM numbers":         `x.sql:2:3: Referenced column "nosuch" not found`,
		"SELECT i FROM numbers WHERE i > $p":       "x.sql:1:33: the parameter $p is not declared",
		"DELETE FROM numbers":                      "only a SELECT",
	} {
		if _, err := l.reader.Prepare(t.Context(), l.new, statement("x.sql", sql), nil); fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: err = %v", sql, err)
		}
	}
	gone := l.new
	gone.Snapshot += 100
	if _, err := l.reader.Prepare(t.Context(), gone, statement("x.sql", "FROM numbers"), nil); fail.KindOf(err) != fail.Missing {
		t.Errorf("err = %v", err)
	}
	gone.Snapshot = 0
	if _, err := l.reader.Prepare(t.Context(), gone, statement("x.sql", "FROM numbers"), nil); fail.KindOf(err) != fail.Internal {
		t.Errorf("err = %v", err)
	}
}

// TestFailures proves that an error while answering is classified, ends the reading and gives its connection back, and that closing
// twice is closing once.
func TestFailures(t *testing.T) {
	l := newLake(t, func(o *engine.Options) { o.Connections = 1 })
	q := l.prepare(t, l.new, "SELECT CAST(name AS INTEGER) AS x FROM names")
	for range 3 {
		r, err := l.reader.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.reader.Open(t.Context()); fail.CodeOf(err) != "pool_exhausted" {
			t.Errorf("err = %v", err)
		}
		if _, err := r.Answer(t.Context(), q, nil, plenty); fail.KindOf(err) != fail.Invalid || fail.CodeOf(err) != "query_failed" {
			t.Errorf("err = %v", err)
		}
		if _, err := r.Answer(t.Context(), q, nil, plenty); fail.CodeOf(err) != "reading_closed" {
			t.Errorf("err = %v", err)
		}
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if a := l.ask(t, l.new, "SELECT 1 AS x"); string(a.Rows) != "[[1]]" {
		t.Errorf("%s", a.Rows)
	}
}

// TestDamagedFiles proves that an answer and a check which meet a data file that is not as it was written blame the lake, and neither
// the statement nor the machine.
func TestDamagedFiles(t *testing.T) {
	l := newLake(t)
	replaced := func(with func(path string) error) func(string, []byte) error {
		return func(path string, _ []byte) error { return errors.Join(os.Remove(path), with(path)) }
	}
	for name, damage := range map[string]func(path string, content []byte) error{
		"missing": replaced(func(string) error { return nil }),
		"empty":   func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"cut":     func(path string, content []byte) error { return os.Truncate(path, int64(len(content)/2)) },
		"longer":  func(path string, content []byte) error { return os.WriteFile(path, append(content, 0), 0o600) },
		"body": func(path string, content []byte) error {
			return os.WriteFile(path, spoiled(content, 100, len(content)/2), 0o600)
		},
		"footer": func(path string, content []byte) error {
			return os.WriteFile(path, spoiled(content, len(content)-200, len(content)-100), 0o600)
		},
		"folder":    replaced(func(path string) error { return os.Mkdir(path, 0o700) }),
		"link_loop": replaced(func(path string) error { return os.Symlink(path, path) }),
		"link_out":  replaced(func(path string) error { return os.Symlink("/dev/null", path) }),
	} {
		scope, path := l.table(t, name)
		q := l.prepare(t, scope, "SELECT sum(i) AS s, max(name) AS name FROM "+name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := damage(path, content); err != nil {
			t.Fatal(err)
		}
		r := l.open(t)
		if _, err := r.Answer(t.Context(), q, nil, plenty); fail.KindOf(err) != fail.Corrupt || fail.CodeOf(err) != "data_unreadable" {
			t.Errorf("%s: the answer says %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		_, err = query.NewChecker(l.reader).Check(t.Context(), scope, plan.Model{Model: project.Model{Name: name, Checks: []project.Check{{Kind: project.Unique, Columns: []string{"name"}}}},
			Columns: []project.Column{column("i", "BIGINT"), column("name", "VARCHAR")}, Table: name}, time.Now())
		if fail.KindOf(err) != fail.Corrupt || fail.CodeOf(err) != "data_unreadable" {
			t.Errorf("%s: the check says %v", name, err)
		}
	}
}

// spoiled is the content with the bytes between the places set.
func spoiled(content []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		content[i] = 0xff
	}
	return content
}

// table makes a table and gives a scope that sees it, with its only data file.
func (l lake) table(t testing.TB, name string) (serving.Scope, string) {
	t.Helper()
	c, err := l.e.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(t.Context(), "CREATE TABLE lake.w."+name+" AS SELECT i, 'name ' || (i * 7919 % 10007) AS name FROM range(20000) t(i)"); err != nil {
		t.Fatal(err)
	}
	scope := serving.Scope{Workspace: "w", Tables: map[string]string{name: name}}
	var path string
	if err := c.Scan(t.Context(), "SELECT max(snapshot_id), (SELECT data_file FROM ducklake_list_files('lake', ?, schema => 'w')) FROM lake.snapshots()", []any{name}, &scope.Snapshot, &path); err != nil {
		t.Fatal(err)
	}
	return scope, path
}

// TestCanceled proves that a context that ends stops a running statement within a fraction of a second, as canceled.
func TestCanceled(t *testing.T) {
	l := newLake(t)
	q := l.prepare(t, l.old, "SELECT count(*) AS n FROM numbers a, numbers b, numbers c WHERE (a.i * b.i + c.i) % 7 = 3")
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		r := l.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		began := time.Now()
		_, err := r.Answer(ctx, q, nil, plenty)
		cancel()
		if fail.KindOf(err) != fail.Canceled {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(began); took > wait+2*time.Second {
			t.Errorf("it took %v", took)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConcurrent proves that one reader serves many goroutines, each at its own snapshot.
func TestConcurrent(t *testing.T) {
	l := newLake(t, func(o *engine.Options) { o.Connections = 8 })
	old, fresh := l.prepare(t, l.old, "SELECT count(*) AS n FROM numbers"), l.prepare(t, l.new, "SELECT count(*) AS n FROM numbers")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 5 {
				q, want := old, "[[10000]]"
				if g%2 == 0 {
					q, want = fresh, "[[10001]]"
				}
				r, err := l.reader.Open(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				a, err := r.Answer(t.Context(), q, nil, plenty)
				if err != nil || string(a.Rows) != want {
					t.Errorf("%s, not %s; %v", a.Rows, want, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkAnswer measures a small answer within one open reading.
func BenchmarkAnswer(b *testing.B) {
	l := newLake(b)
	q := l.prepare(b, l.new, "SELECT k, name, count(*) AS n FROM numbers JOIN names USING (k) GROUP BY ALL ORDER BY k")
	r := l.open(b)
	for b.Loop() {
		if _, err := r.Answer(b.Context(), q, nil, plenty); err != nil {
			b.Fatal(err)
		}
	}
}
