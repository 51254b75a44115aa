package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a lake whose tables have moved on since the pinned version, and temporary tables under the models' own names with the
// rows of that version: what a statement gives over those is what its rewritten form has to give.
type world struct {
	c       *engine.Conn
	version int64
	pinned  map[string]gate.Target
	tables  []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	e, _ := enginetest.Open(t)
	w := &world{c: enginetest.Conn(t, e), pinned: map[string]gate.Target{}}
	w.c.Discard()
	w.run(t, "CREATE SCHEMA lake.w", "CREATE SCHEMA lake.other")
	for name, rows := range map[string]string{
		"flights":  "(SELECT * FROM (VALUES ('AA', 1, DATE '2013-01-01'), ('AA', 2, DATE '2013-01-02'), ('UA', 3, DATE '2013-02-01'), ('DL', NULL, NULL)) v(carrier, delay, day))",
		"airlines": "(SELECT * FROM (VALUES ('AA', 'American'), ('UA', 'United')) v(carrier, title))",
	} {
		table := name + "__0123456789ab"
		w.run(t,
			"CREATE TABLE lake.w."+table+" AS FROM "+rows,
			"CREATE TABLE lake.other."+table+" AS FROM "+rows,
			"CREATE TEMP TABLE "+name+" AS FROM "+rows)
		w.tables = append(w.tables, table)
	}
	w.version = w.head(t)
	w.run(t,
		"INSERT INTO lake.w.flights__0123456789ab VALUES ('AA', 1000, DATE '2020-01-01'), ('ZZ', 2000, NULL)",
		"INSERT INTO lake.w.airlines__0123456789ab VALUES ('ZZ', 'Newer'), ('AA', 'Doubled')")
	for _, table := range w.tables {
		name, _, _ := strings.Cut(table, "__")
		w.pinned[name] = gate.Target{Catalog: "lake", Schema: "w", Table: table, Version: w.version}
	}
	return w
}

func (w *world) run(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := w.c.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func (w *world) head(t testing.TB) int64 {
	t.Helper()
	var n int64
	if err := w.c.Scan(t.Context(), "SELECT max(snapshot_id)::BIGINT FROM lake.snapshots()", nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// rows are the statement's rows in a fixed order, with the names of its columns.
func (w *world) rows(t testing.TB, sql string) string {
	t.Helper()
	r, err := w.c.Rows(t.Context(), "SELECT * FROM ("+sql+") ORDER BY ALL")
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer r.Close()
	names, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, strings.Join(names, " | "))
	for r.Next() {
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := r.Scan(into...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, values...)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// passing are statements that the gate lets through, each with the relations that it reads.
var passing = []struct{ sql, reads string }{
	{"SELECT * FROM flights", "flights"},
	{"FROM flights", "flights"},
	{"SELECT carrier, delay FROM flights WHERE delay > 1 ORDER BY delay DESC;", "flights"},
	{"select CARRIER from FLIGHTS", "flights"},
	{`SELECT "flights"."carrier" FROM "flights"`, "flights"},
	{`SELECT "Flights".carrier FROM "Flights"`, "flights"},
	{"SELECT flights.carrier FROM flights -- a comment at the end", "flights"},
	{"/* flights /* nested */ */ SELECT flights.* FROM flights /* more */ ; ; -- end", "flights"},
	{"SELECT f.carrier, f.delay FROM flights f", "flights"},
	{"SELECT f.a FROM flights AS f(a, b)", "flights"},
	{"SELECT f.carrier FROM f: flights", "flights"},
	{"SELECT f.carrier, title FROM flights f JOIN airlines a ON f.carrier = a.carrier", "airlines flights"},
	{"SELECT carrier, title, delay FROM flights JOIN airlines USING (carrier)", "airlines flights"},
	{"SELECT flights.carrier, airlines.title FROM flights NATURAL LEFT JOIN airlines", "airlines flights"},
	{"SELECT a.delay, b.delay AS other FROM flights a, flights b WHERE a.carrier = b.carrier", "flights"},
	{"SELECT a.delay, b.title FROM flights a SEMI JOIN airlines USING (carrier) CROSS JOIN airlines b", "airlines flights"},
	{"SELECT a.carrier, b.day FROM flights a ASOF JOIN flights b ON a.carrier = b.carrier AND a.day >= b.day", "flights"},
	{"SELECT a.carrier, b.title FROM (flights a JOIN airlines b USING (carrier))", "airlines flights"},
	{"SELECT carrier, n FROM flights, LATERAL (SELECT count(*) AS n FROM airlines a WHERE a.carrier = flights.carrier)", "airlines flights"},
	{"SELECT carrier, x.title FROM flights LEFT JOIN LATERAL (SELECT title FROM airlines WHERE airlines.carrier = flights.carrier) x ON true", "airlines flights"},
	{"SELECT carrier, (SELECT max(title) FROM airlines a WHERE a.carrier = f.carrier) AS title FROM flights f", "airlines flights"},
	{"SELECT carrier FROM flights WHERE carrier IN (SELECT carrier FROM airlines)", "airlines flights"},
	{"SELECT carrier FROM flights f WHERE EXISTS (FROM airlines a WHERE a.carrier = f.carrier)", "airlines flights"},
	{"SELECT carrier FROM flights WHERE delay >= ALL (SELECT delay FROM flights WHERE delay IS NOT NULL)", "flights"},
	{"SELECT carrier, count(*) AS n FROM flights GROUP BY carrier HAVING count(*) > (SELECT count(*) - 2 FROM airlines)", "airlines flights"},
	{"SELECT carrier FROM flights ORDER BY (SELECT count(*) FROM airlines) LIMIT (SELECT count(*) FROM airlines)", "airlines flights"},
	{"SELECT carrier, row_number() OVER (PARTITION BY carrier ORDER BY delay) AS n FROM flights QUALIFY n <= (SELECT count(*) FROM airlines)", "airlines flights"},
	{"SELECT sum(delay) FILTER (WHERE carrier IN (SELECT carrier FROM airlines)) AS s FROM flights", "airlines flights"},
	{"SELECT a.carrier FROM flights a JOIN airlines b ON a.carrier = b.carrier AND b.title IN (SELECT title FROM airlines)", "airlines flights"},
	{"SELECT CASE WHEN (SELECT count(*) FROM airlines) > 2 THEN 'more' ELSE 'few' END AS c", "airlines"},
	{"SELECT unnest((SELECT list(title ORDER BY title) FROM airlines)) AS t", "airlines"},
	{"SELECT list_transform([1, 2], lambda x: x + 1) AS l, count(*) AS n FROM flights", "flights"},
	{"SELECT [x + 1 for x in [1, 2] if x > 1] AS l, max(delay) AS m FROM flights", "flights"},
	{"SELECT ARRAY(SELECT title FROM airlines ORDER BY title) AS l", "airlines"},
	{"SELECT carrier FROM flights UNION SELECT carrier FROM airlines", "airlines flights"},
	{"SELECT carrier FROM flights EXCEPT SELECT carrier FROM airlines", "airlines flights"},
	{"(SELECT carrier FROM flights ORDER BY delay LIMIT 1) UNION ALL BY NAME (FROM airlines)", "airlines flights"},
	{"(FROM flights) INTERSECT ALL (FROM flights)", "flights"},
	{"WITH a AS (SELECT * FROM flights) SELECT * FROM a", "flights"},
	{"WITH a AS MATERIALIZED (SELECT * FROM flights), b AS NOT MATERIALIZED (FROM a) SELECT * FROM b, a", "flights"},
	// A CTE of a relation's name means the relation within itself, and itself behind it.
	{"WITH flights AS (SELECT carrier, delay + 100 AS delay FROM flights) SELECT * FROM flights", "flights"},
	{"WITH FLIGHTS AS (SELECT 'x' AS carrier) SELECT * FROM flights", ""},
	{"WITH airlines AS (SELECT carrier FROM flights) SELECT * FROM airlines JOIN flights USING (carrier)", "flights"},
	{"WITH a AS (FROM airlines), airlines AS (SELECT 'x' AS title) SELECT a.title, airlines.title AS t FROM a, airlines", "airlines"},
	{"SELECT * FROM (WITH airlines AS (SELECT 'x' AS title) FROM airlines) q, airlines", "airlines"},
	{"WITH a AS (WITH airlines AS (SELECT 'x' AS title) FROM airlines) SELECT a.title AS t, airlines.title FROM a, airlines", "airlines"},
	{"WITH flights AS (SELECT 7 AS delay) SELECT * FROM (WITH flights AS (SELECT delay + 1 AS delay FROM flights) FROM flights)", ""},
	{"SELECT (WITH flights AS (SELECT 5 AS n) SELECT n FROM flights) AS five, carrier FROM flights", "flights"},
	{"WITH airlines AS (SELECT 1 AS x) (SELECT x FROM airlines UNION ALL SELECT delay FROM flights WHERE delay > (SELECT max(x) FROM airlines)) ORDER BY x", "flights"},
	{"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM flights)) SELECT * FROM r", "flights"},
	{"WITH RECURSIVE flights AS (SELECT delay FROM flights UNION ALL SELECT delay + 10 FROM flights WHERE delay < 5) SELECT * FROM flights", "flights"},
	{"WITH RECURSIVE flights AS (SELECT delay FROM flights) SELECT * FROM flights", "flights"},
	{"WITH RECURSIVE r(n) USING KEY (n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r", ""},
	{"PIVOT flights ON carrier IN ('AA', 'UA') USING sum(delay) GROUP BY day", "flights"},
	{"SELECT * FROM flights PIVOT (sum(delay) FOR carrier IN ('AA', 'UA'))", "flights"},
	{"UNPIVOT airlines ON carrier, title INTO NAME k VALUE v", "airlines"},
	{"SELECT * FROM airlines UNPIVOT (v FOR k IN (carrier, title))", "airlines"},
	{"SELECT carrier, day, sum(delay) AS s FROM flights GROUP BY ROLLUP (carrier, day)", "flights"},
	{"SELECT carrier, sum(delay) AS s FROM flights GROUP BY ALL", "flights"},
	{"SELECT DISTINCT ON (carrier) carrier, delay FROM flights ORDER BY carrier, delay", "flights"},
	{"SELECT * EXCLUDE (day) REPLACE (delay * 2 AS delay) FROM flights", "flights"},
	{"SELECT COLUMNS('c.*') FROM flights", "flights"},
	{"SELECT f FROM flights f", "flights"},
	{"SELECT carrier.lower().upper() AS u, carrier[1] AS i FROM flights", "flights"},
	{"SELECT count(*), sum(delay), 1e10, 5., 18446744073709551615, 1.10, 'it''s', $$flights$$, E'fl\\'ights' FROM flights", "flights"},
	{"SELECT 'flights' AS \"flights\", \"flights\".delay FROM flights", "flights"},
	{"SELECT é.delay AS ü FROM flights AS é WHERE 'ß' <> 'x'", "flights"},
	{"SELECT * FROM range(3) r(i), flights, unnest([1, 2]) u(x), generate_series(1, 2) g(y)", "flights"},
	{"SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(i, s), airlines", "airlines"},
	{"VALUES (1, 2), (3, 4)", ""},
	{"SELECT 1 AS one", ""},
	{"SELECT carrier FROM flights TABLESAMPLE 100%", "flights"},
	{"SELECT carrier::VARCHAR AS c, {'a': delay} AS s, MAP {'k': delay} AS m, delay::DECIMAL(18,2)[] AS l FROM flights WHERE false", "flights"},
	{"SELECT lpad(carrier, 5, '0') AS a, repeat(carrier, 2) AS b, printf('%05d', delay) AS c FROM flights", "flights"},
	{"SELECT carrier\n\tFROM flights\r\n WHERE delay\n=\n1", "flights"},
	{"SELECT * FROM flights POSITIONAL JOIN airlines", "airlines flights"},
	{"SELECT max(delay) OVER w AS m FROM flights WINDOW w AS (PARTITION BY carrier ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)", "flights"},
}

// TestPinned proves that each passing statement reads what it names, that its rewritten form gives exactly the rows of the pinned
// version although newer rows exist, under the same column names, and that its plan is proved.
func TestPinned(t *testing.T) {
	w := newWorld(t)
	for _, x := range passing {
		t.Run(x.sql, func(t *testing.T) {
			reads, err := gate.Reads(t.Context(), w.c, x.sql)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(reads, " "); got != x.reads {
				t.Errorf("reads %q, not %q", got, x.reads)
			}
			pinned, err := gate.Rewrite(t.Context(), w.c, x.sql, w.pinned)
			if err != nil {
				t.Fatal(err)
			}
			if err := gate.Prove(t.Context(), w.c, pinned, "w", w.tables, w.version); err != nil {
				t.Fatalf("%v\n%s", err, pinned)
			}
			plain := strings.TrimRight(strings.TrimSpace(x.sql), "; ")
			if i := strings.Index(plain, "--"); i >= 0 {
				plain = strings.TrimRight(plain[:i], "; ")
			}
			if want, got := w.rows(t, plain), w.rows(t, pinned); got != want {
				t.Errorf("%s\ngave\n%snot\n%s", pinned, got, want)
			}
		})
	}
}

// TestUnpinned proves that the same statements read the newest rows when their targets carry no version, so that the test above
// tells pinned from unpinned.
func TestUnpinned(t *testing.T) {
	w := newWorld(t)
	for name, target := range w.pinned {
		target.Version = 0
		w.pinned[name] = target
	}
	newest, err := gate.Rewrite(t.Context(), w.c, "SELECT carrier, title FROM flights JOIN airlines USING (carrier) WHERE delay > 999", w.pinned)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.rows(t, newest), "carrier | title\nAA American\nAA Doubled\nZZ Newer\n"; got != want {
		t.Errorf("gave\n%snot\n%s", got, want)
	}
}

// nested repeats a piece of SQL.
func nested(n int, open, core, end string) string {
	return strings.Repeat(open, n) + core + strings.Repeat(end, n)
}

// refused are statements that the gate refuses: with words of the message, and with the text that the error points at.
var refused = []struct{ sql, says, at string }{
	{"", "no statement", ""},
	{" ; -- nothing", "no statement", " ;"},
	{"SELECT 1; SELECT 2", "2 statements", "SELECT 1"},
	{"INSERT INTO flights VALUES (1)", "only a SELECT", "INSERT"},
	{"SELECT 1; DROP TABLE flights", "only a SELECT", "SELECT"},
	{"COPY flights TO 'x'", "only a SELECT", "COPY"},
	{"EXPLAIN SELECT 1", "only a SELECT", "EXPLAIN"},
	{"CALL lake.snapshots()", "only a SELECT", "CALL"},
	{"ATTACH ':memory:' AS x", "only a SELECT", "ATTACH"},
	{"SET threads = 1", "only a SELECT", "SET"},
	{"CREATE TABLE x AS SELECT 1", "only a SELECT", "CREATE"},
	{"PREPARE p AS SELECT 1", "only a SELECT", "PREPARE"},
	{"WITH x AS (INSERT INTO flights VALUES (1) RETURNING *) FROM x", "CTE needs a SELECT", "WITH"},
	{"SELECT *\nFROM flights WERE delay > 1", "syntax error", "delay"},
	{"SELECT * FROM", "syntax error", ""},
	{"DESCRIBE flights", "DESCRIBE, SUMMARIZE and SHOW", "DESCRIBE"},
	{"SUMMARIZE flights", "DESCRIBE, SUMMARIZE and SHOW", "SUMMARIZE"},
	{"SHOW TABLES", "DESCRIBE, SUMMARIZE and SHOW", "SHOW"},
	{"SELECT * FROM (DESCRIBE flights)", "DESCRIBE, SUMMARIZE and SHOW", ""},
	{"SELECT * FROM lake.w.flights__0123456789ab", "schema or catalog", "lake"},
	{"SELECT * FROM w.flights", "schema or catalog", "w.flights"},
	{"SELECT * FROM main.flights", "schema or catalog", "main"},
	{"SELECT * FROM temp.main.flights", "schema or catalog", "temp"},
	{"SELECT * FROM information_schema.tables", "schema or catalog", "information_schema"},
	{"SELECT * FROM __ducklake_metadata_lake.ducklake_snapshot", "schema or catalog", "__ducklake"},
	{"WITH RECURSIVE r(n) USING KEY (n) AS (SELECT 1 UNION SELECT r.n + 1 FROM r, recurring.r AS s WHERE r.n < 3) FROM r", "schema or catalog", "recurring"},
	{"SELECT * FROM flights AT (VERSION => 1)", "AT is not allowed", "flights"},
	{"SELECT * FROM flights AS f AT (TIMESTAMP => now())", "AT is not allowed", "flights"},
	{"WITH a AS (FROM flights) SELECT * FROM a AT (VERSION => 1)", "AT is not allowed", "a AT"},
	{"WITH flights AS (SELECT 1) SELECT * FROM flights AT (VERSION => 1)", "AT is not allowed", "flights AT"},
	{"SELECT * FROM 'data.parquet'", "neither a model nor a source", "'data"},
	{`SELECT * FROM "https://example.com/x.csv"`, "neither a model nor a source", `"https`},
	{"SELECT * FROM 'flights'", "not written in a way", "'flights'"},
	{"SELECT * FROM read_csv('/etc/passwd')", "table function read_csv", "read_csv"},
	{"SELECT * FROM glob('/**')", "table function glob", "glob"},
	{"SELECT * FROM query('SELECT 1')", "table function query", "query"},
	{"SELECT * FROM query_table('flights')", "table function query_table", "query_table"},
	{"SELECT * FROM duckdb_tables()", "table function duckdb_tables", "duckdb_tables"},
	{"SELECT * FROM pragma_table_info('flights')", "table function pragma_table_info", "pragma"},
	{"SELECT * FROM ducklake_snapshots('lake')", "table function ducklake_snapshots", "ducklake"},
	{"SELECT * FROM lake.snapshots()", "table function snapshots", "lake.snapshots"},
	{"SELECT * FROM json_execute_serialized_sql('{}')", "table function json_execute_serialized_sql", "json"},
	{"SELECT * FROM seq_scan('x')", "table function seq_scan", "seq_scan"},
	{"SELECT * FROM repeat('x', 5)", "table function repeat", "repeat"},
	{"SELECT current_setting('threads')", "function current_setting", "current_setting"},
	{"SELECT 1 WHERE CURRENT_SETTING('threads') > 1", "function current_setting", "CURRENT"},
	{`SELECT "current_setting"('threads')`, "function current_setting", `"current`},
	{"SELECT main.current_setting('threads')", "function current_setting", "main"},
	{"SELECT system.main.upper('x')", `catalog "system"`, "system"},
	{"SELECT carrier.current_setting() FROM flights", "function current_setting", "carrier"},
	{"SELECT list_transform(['x'], lambda s: getvariable(s))", "function getvariable", "getvariable"},
	{"SELECT nextval('s')", "function nextval", "nextval"},
	{"SELECT write_log('x')", "function write_log", "write_log"},
	{"SELECT sleep_ms(10)", "function sleep_ms", "sleep_ms"},
	{"SELECT getenv('HOME')", "function getenv", "getenv"},
	{"SELECT read_text('/etc/passwd')", "function read_text", "read_text"},
	{"SELECT count(*) FILTER (WHERE read_blob('x') IS NULL) FROM flights", "function read_blob", "read_blob"},
	{"SELECT * FROM range(getvariable('x'))", "function getvariable", "getvariable"},
	{"SELECT sum(1) OVER (ORDER BY getvariable('x'))", "function getvariable", "getvariable"},
	{"SELECT repeat('x', 1000000000)", "constant length", "repeat"},
	{"SELECT lpad('x', delay, ' ') FROM flights", "constant length", "lpad"},
	{"SELECT carrier.rpad(100000, ' ') FROM flights", "constant length", "carrier"},
	{"SELECT printf('%1000000d', 1)", "constant format", "printf"},
	{"SELECT format(carrier, 1) FROM flights", "constant format", "format"},
	{"SELECT CAST('x' AS lake.w.mytype)", `catalog or schema "lake"`, "CAST"},
	{"SELECT ?", "parameter without a name", "?"},
	{"SELECT 1 WHERE 2 > $1", "parameter without a name", "$1"},
	{"SELECT 1 AS x, $p", "has no name of its own", ""},
	{"SELECT (SELECT max(delay) FROM flights)", "has no name of its own", ""},
	{"SELECT * FROM (SELECT 1 + (SELECT max(delay) FROM flights))", "has no name of its own", ""},
	{"SELECT * FROM flights WHERE delay = 1e400", "constant that is not a number", "SELECT"},
	{"SELECT * FROM\u00a0flights", "special Unicode space", "\u00a0flights"},
	{"SELECT x\u00a0FROM flights", "special Unicode space", "\u00a0FROM"},
	{"SELECT 1 -- \x00", "not UTF-8", "SELECT"},
	{"SELECT '\xff'", "not UTF-8", "SELECT"},
	{"SELECT 1 --" + strings.Repeat(" ", 64<<10), "sql_bytes", "SELECT"},
	{"SELECT " + nested(110, "(1 + ", "1", ")"), "sql_depth", ""},
	{"SELECT * FROM " + nested(60, "(SELECT * FROM ", "flights", ")"), "sql_depth", ""},
	{"SELECT 1" + strings.Repeat(" AND x = 1", 1000), "sql_nodes", ""},
	{"SELECT 1" + strings.Repeat(" AND x", 5000), "sql_tokens", ""},
	{"SELECT 1 IN (0" + strings.Repeat(", 1", 1001) + ")", "sql_list", ""},
	{"SELECT 1" + strings.Repeat(", 1", 512), "sql_columns", ""},
	{"SELECT * FROM flights a0" + strings.Repeat(", flights", 17), "sql_joins", ""},
	{"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 64), "sql_", ""},
	{"WITH a AS (SELECT 1), b AS (FROM a, a x), c AS (FROM b, b x), d AS (FROM c, c x), e AS (FROM d, d x), f AS (FROM e, e x), g AS (FROM f, f x), h AS (FROM g, g x) FROM h, h x", "sql_expansions", ""},
}

// TestRefused proves that each of these is refused before the engine binds it, with a message that names it, at its place, by kind
// invalid.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	for _, x := range refused {
		name := x.sql
		if len(name) > 80 {
			name = name[:80]
		}
		t.Run(name, func(t *testing.T) {
			_, err := gate.Reads(t.Context(), w.c, x.sql)
			var bad *gate.Error
			if !errors.As(err, &bad) {
				t.Fatalf("err = %v", err)
			}
			if fail.KindOf(err) != fail.Invalid || fail.CodeOf(err) != "refused_sql" {
				t.Errorf("kind %v, code %s", fail.KindOf(err), fail.CodeOf(err))
			}
			if !strings.Contains(bad.Message, x.says) {
				t.Errorf("says %q, not %q", bad.Message, x.says)
			}
			if x.at != "" && !strings.HasPrefix(x.sql[bad.Offset:], x.at) {
				t.Errorf("points at %q, not at %q (%d)", x.sql[bad.Offset:], x.at, bad.Offset)
			}
			if bad.Offset < 0 || bad.Offset > len(x.sql) {
				t.Errorf("offset %d of %d", bad.Offset, len(x.sql))
			}
		})
	}
}

// TestRewriteRefuses proves that unknown names, parameters nobody declared, and names in places that take no subquery are refused
// while a statement is rewritten.
func TestRewriteRefuses(t *testing.T) {
	w := newWorld(t)
	for _, x := range []struct{ sql, says, fix, at string }{
		{"SELECT 1 FROM airlines, flight", `no model or source "flight"`, `"flights"`, "flight"},
		{"SELECT 1 FROM flights WHERE delay > $least", "only endpoints have parameters", "value itself", "$least"},
		{"TABLE flights", "cannot be replaced", "FROM name AS alias", "TABLE"},
	} {
		_, err := gate.Rewrite(t.Context(), w.c, x.sql, w.pinned)
		var bad *gate.Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: err = %v", x.sql, err)
			continue
		}
		if !strings.Contains(bad.Message, x.says) || !strings.Contains(bad.Fix, x.fix) || !strings.HasPrefix(x.sql[bad.Offset:], x.at) {
			t.Errorf("%s: %v at %d", x.sql, bad, bad.Offset)
		}
	}
}

// TestParameters proves that parameters of every type are cast, by name, wherever they stand, in any case and any number of
// times, and that a parameter within a string or comment is none.
func TestParameters(t *testing.T) {
	w := newWorld(t)
	types := map[string]string{"s": "VARCHAR", "i": "BIGINT", "d": "DECIMAL(38,9)", "b": "BOOLEAN", "day": "DATE", "at": "TIMESTAMP", "ds": "DECIMAL(38,9)[]", "ss": "VARCHAR[]"}
	const sql = `SELECT $s || '$i' AS s, $I + $i AS i, $d AS d, [$b] AS b, ($day)::DATE AS day, $at AS at, $ds AS ds /* $x */ FROM flights f WHERE f.delay < $i AND f.carrier IN (SELECT unnest($ss)) AND list_contains($SS, f.carrier) ORDER BY $s LIMIT $i -- $y`
	s, err := gate.Parse(t.Context(), w.c, sql)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Params(), " "); got != "at b d day ds i s ss" {
		t.Errorf("params %s", got)
	}
	if s.Param("i") != strings.Index(sql, "$I") {
		t.Errorf("$i is at %d", s.Param("i"))
	}
	text, err := s.Rewrite(t.Context(), w.c, w.pinned, types)
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Bind(t.Context(), w.c, text); err != nil {
		t.Fatal(err)
	}
	if err := gate.Prove(t.Context(), w.c, text.SQL, "w", w.tables, w.version); err != nil {
		t.Fatal(err)
	}
	s, err = gate.Parse(t.Context(), w.c, "SELECT 1 AS x WHERE 1 > $mist")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Rewrite(t.Context(), w.c, nil, map[string]string{"most": "BIGINT"})
	var bad *gate.Error
	if !errors.As(err, &bad) || bad.Offset != 24 || !strings.Contains(bad.Message, "$mist is not declared") || !strings.Contains(bad.Fix, `"most"`) {
		t.Errorf("err = %v", err)
	}
}

// TestBindPlaces proves that what the engine cannot bind is reported at its place in the author's text, whatever was put in
// front of it.
func TestBindPlaces(t *testing.T) {
	w := newWorld(t)
	for _, x := range []struct{ sql, says, at string }{
		{"SELECT carrier, carier FROM flights", `"carier" not found`, "carier"},
		{"SELECT f.carrier\nFROM flights f JOIN airlines ON f.carrier = airlines.carrier\nWHERE f.dely > $p", `"dely"`, "f.dely"},
		{"SELECT $p AS p, nosuch(carrier) AS x FROM flights", "nosuch", "nosuch"},
		{"SELECT $p AS p FROM flights, airlines WHERE carrier = 'x'", "Ambiguous", "carrier ="},
		{"SELECT upper(1, 2) AS x FROM flights WHERE delay > $p", "No function matches", "upper"},
		{"SELECT carrier, sum(delay) AS s FROM flights WHERE delay > $p", "GROUP BY", "carrier"},
		{"SELECT $p AS p, title FROM flights JOIN airlines USING (ttle)", "ttle", "ttle"},
		{"SELECT flights.carrier FROM flights f WHERE delay > $p", "flights", "flights.carrier"},
		{"SELECT filename FROM flights WHERE delay > $p", "filename", "filename"},
		{"SELECT rowid FROM flights WHERE delay > $p", "rowid", "rowid"},
	} {
		s, err := gate.Parse(t.Context(), w.c, x.sql)
		if err != nil {
			t.Fatalf("%s: %v", x.sql, err)
		}
		text, err := s.Rewrite(t.Context(), w.c, w.pinned, map[string]string{"p": "BIGINT"})
		if err != nil {
			t.Fatalf("%s: %v", x.sql, err)
		}
		err = gate.Bind(t.Context(), w.c, text)
		var bad *gate.Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: err = %v", x.sql, err)
			continue
		}
		if !strings.Contains(bad.Message, x.says) || !strings.HasPrefix(x.sql[bad.Offset:], x.at) {
			t.Errorf("%s: %v, at %q", x.sql, bad, x.sql[bad.Offset:])
		}
	}
}

// TestProveFindsPlanted proves that the plan alone gives away every text that reads something else than it should, although
// none of these texts went through the rules.
func TestProveFindsPlanted(t *testing.T) {
	w := newWorld(t)
	pinned := fmt.Sprintf("(FROM lake.w.flights__0123456789ab AT (VERSION => %d))", w.version)
	w.run(t,
		"CREATE TEMP MACRO newest() AS TABLE SELECT * FROM lake.w.flights__0123456789ab",
		"CREATE TEMP MACRO threads() AS current_setting('threads')",
		"CREATE TEMP VIEW hidden AS SELECT * FROM lake.w.flights__0123456789ab")
	for _, x := range []struct{ sql, says string }{
		{"FROM lake.w.flights__0123456789ab", fmt.Sprintf("at snapshot %d", w.head(t))},
		{"SELECT count(*) FROM lake.w.flights__0123456789ab", "at snapshot"},
		{fmt.Sprintf("FROM %s f WHERE EXISTS (FROM lake.w.airlines__0123456789ab)", pinned), "airlines__0123456789ab at snapshot"},
		{fmt.Sprintf("WITH a AS (FROM lake.w.flights__0123456789ab) SELECT * FROM %s f, a", pinned), "at snapshot"},
		{fmt.Sprintf("FROM lake.w.flights__0123456789ab AT (VERSION => %d)", w.version+1), "at snapshot"},
		{fmt.Sprintf("FROM lake.other.flights__0123456789ab AT (VERSION => %d)", w.version), "outside of lake.w"},
		{fmt.Sprintf("SELECT * FROM %s f, (FROM lake.w.airlines__0123456789ab AT (VERSION => %d))", pinned, w.version), "belongs to none of the models"},
		{"FROM flights", "reads through seq_scan"},
		{"FROM newest()", "at snapshot"},
		{"FROM hidden", "at snapshot"},
		{"SELECT threads()", "calls current_setting"},
		{"FROM query('FROM lake.w.flights__0123456789ab')", "at snapshot"},
		{"FROM query_table('flights')", "reads through seq_scan"},
		{"FROM duckdb_tables()", "reads through duckdb_tables"},
		{"FROM lake.snapshots()", "reads through"},
		{"FROM __ducklake_metadata_lake.ducklake_snapshot", "reads through seq_scan"},
		{"FROM (DESCRIBE lake.other.flights__0123456789ab)", "plan holds LOGICAL"},
		{"FROM read_text('/etc/hosts')", "cannot be proved"},
	} {
		tables := []string{"flights__0123456789ab"}
		if strings.Contains(x.says, "airlines") {
			tables = w.tables
		}
		err := gate.Prove(t.Context(), w.c, x.sql, "w", tables, w.version)
		if fail.CodeOf(err) != "unproved_plan" || fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: err = %v", x.sql, err)
		}
	}
	if err := gate.Prove(t.Context(), w.c, "FROM "+pinned, "w", []string{"flights__0123456789ab"}, w.version); err != nil {
		t.Error(err)
	}
	err := gate.Prove(t.Context(), w.c, "FROM lake.w.flights__0123456789ab AT (VERSION => 99)", "w", w.tables, 99)
	if fail.CodeOf(err) != "snapshot_missing" || fail.KindOf(err) != fail.Missing {
		t.Errorf("err = %v", err)
	}
}

// TestScans proves that every scan of a plan is listed with what it reads, and nothing else is.
func TestScans(t *testing.T) {
	w := newWorld(t)
	pinned, err := gate.Rewrite(t.Context(), w.c, "SELECT a.delay FROM flights a, flights b, range(3) WHERE EXISTS (FROM airlines)", w.pinned)
	if err != nil {
		t.Fatal(err)
	}
	scans, err := gate.Scans(t.Context(), w.c, pinned)
	if err != nil {
		t.Fatal(err)
	}
	count := map[gate.Scan]int{}
	for _, s := range scans {
		count[s]++
	}
	flights := gate.Scan{Catalog: "lake", Schema: "w", Table: "flights__0123456789ab", Snapshot: w.version}
	airlines := flights
	airlines.Table = "airlines__0123456789ab"
	if len(scans) != 3 || count[flights] != 2 || count[airlines] != 1 {
		t.Errorf("%+v", scans)
	}
}

// TestProblem proves that an error becomes a problem at its line and column, counted in characters, with the line's text.
func TestProblem(t *testing.T) {
	s := project.Statement{SQL: "SELECT 'é',\r\n  carier\r\nFROM flights", At: project.Position{File: "models/x.sql", Line: 4, Column: 1}}
	p := (&gate.Error{Offset: strings.Index(s.SQL, "carier"), Message: "no", Fix: "yes"}).Problem(s)
	if p.At != (project.Position{File: "models/x.sql", Line: 5, Column: 3}) || p.Line != "  carier" || p.Message != "no" || p.Fix != "yes" {
		t.Errorf("%+v", p)
	}
}

// silent is a Querier that must not be asked.
type silent struct{ t *testing.T }

func (s silent) Scan(context.Context, string, []any, ...any) error {
	s.t.Error("the engine was asked")
	return nil
}

// TestRefusedUnasked proves that oversized and malformed text is refused before the engine sees it.
func TestRefusedUnasked(t *testing.T) {
	for _, sql := range []string{strings.Repeat(" ", project.MaxSQLBytes+1), "SELECT '\xff'", "SELECT '\x00'", "SELECT\u00a01", strings.Repeat("a+", 6000)} {
		if _, err := gate.Parse(t.Context(), silent{t}, sql); fail.CodeOf(err) != "refused_sql" {
			t.Errorf("err = %v", err)
		}
	}
}

// TestNever proves that no statement, however it is cut, makes the gate panic or read something unproved: every prefix and every
// statement with one token left out is either refused or reads only names.
func TestNever(t *testing.T) {
	w := newWorld(t)
	for _, x := range passing {
		words := strings.Fields(x.sql)
		for i := range words {
			cut := strings.Join(append(append([]string{}, words[:i]...), words[i+1:]...), " ")
			pinned, err := gate.Rewrite(t.Context(), w.c, cut, w.pinned)
			var bad *gate.Error
			if err != nil {
				if !errors.As(err, &bad) {
					t.Errorf("%s: %v", cut, err)
				}
				continue
			}
			if err := gate.Prove(t.Context(), w.c, pinned, "w", w.tables, w.version); err != nil && !strings.Contains(err.Error(), "cannot be proved to read") {
				t.Errorf("%s: %v", cut, err)
			} else if err != nil && (strings.Contains(err.Error(), "at snapshot") || strings.Contains(err.Error(), "outside")) {
				t.Errorf("%s: the rules let through what the proof found: %v", cut, err)
			}
		}
	}
}

func BenchmarkGate(b *testing.B) {
	w := newWorld(b)
	const sql = "SELECT carrier, title, sum(delay) AS s FROM flights JOIN airlines USING (carrier) WHERE delay > 1 GROUP BY ALL ORDER BY s DESC"
	b.Run("Rewrite", func(b *testing.B) {
		for b.Loop() {
			if _, err := gate.Rewrite(b.Context(), w.c, sql, w.pinned); err != nil {
				b.Fatal(err)
			}
		}
	})
	pinned, err := gate.Rewrite(b.Context(), w.c, sql, w.pinned)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Prove", func(b *testing.B) {
		for b.Loop() {
			if err := gate.Prove(b.Context(), w.c, pinned, "w", w.tables, w.version); err != nil {
				b.Fatal(err)
			}
		}
	})
}
