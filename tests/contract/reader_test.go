package contract

import (
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

func TestReaderMem(t *testing.T) { readerSuite(t, memStore) }

// readerSuite is the contract of ports.Reader, ports.Query and ports.Reading.
func readerSuite(t *testing.T, open opener) {
	s := open(t)
	r := compile(t, s, projectOf(everyFlight()))
	scope := refreshed(t, s, "sales", r, 1, flightRows)
	t.Run("statements mean the same in every store", func(t *testing.T) { readerMeaning(t, s, scope) })
	t.Run("columns are named and typed before anything is read", func(t *testing.T) { readerColumns(t, s, scope) })
	t.Run("parameters are bound as values", func(t *testing.T) { readerParams(t, s, scope) })
	t.Run("answers take the shape that is asked for", func(t *testing.T) { readerShapes(t, s, scope) })
	t.Run("answers are bounded and say so", func(t *testing.T) { readerLimits(t, s, scope) })
	t.Run("what is not of the scope is refused", func(t *testing.T) { readerRefuses(t, s, scope) })
	t.Run("a missing argument or limit is noticed", func(t *testing.T) { readerArguments(t, s, scope) })
	t.Run("a reading is bounded, closes once and answers nothing afterwards", func(t *testing.T) { readerCloses(t, s, scope) })
	t.Run("a context that has ended stops it", func(t *testing.T) { readerCancelled(t, s, scope) })
}

func readerMeaning(t *testing.T, s store, scope serving.Scope) {
	for _, c := range []struct{ sql, rows string }{
		{`SELECT * FROM trips ORDER BY id`, `[[1,"Aa",10,"2024-01-31",false,100.25],[2,"Aa",null,"2024-02-29",null,null],[3,"B'b",-7,"2024-03-10",true,2.5],[4,null,20,null,true,-0.5]]`},
		{`select id as "the key", carrier from trips where id = 3 -- one row`, `[[3,"B'b"]]`},
		// NULL sorts last in both directions.
		{`SELECT delay FROM trips ORDER BY delay`, `[[-7],[10],[20],[null]]`},
		{`SELECT delay FROM trips ORDER BY delay DESC`, `[[20],[10],[-7],[null]]`},
		{`SELECT carrier, id FROM trips ORDER BY carrier DESC, id ASC`, `[["B'b",3],["Aa",1],["Aa",2],[null,4]]`},
		{`SELECT late, id FROM trips ORDER BY late, id`, `[[false,1],[true,3],[true,4],[null,2]]`},
		{`SELECT id FROM trips WHERE delay IS NULL`, `[[2]]`},
		{`SELECT id FROM trips WHERE delay IS NOT NULL AND carrier IS NOT NULL ORDER BY id`, `[[1],[3]]`},
		// A comparison with NULL holds for no row, <> included.
		{`SELECT id FROM trips WHERE carrier <> 'Aa'`, `[[3]]`},
		{`SELECT id FROM trips WHERE carrier = 'B''b'`, `[[3]]`},
		{`SELECT id FROM trips WHERE carrier = 'aa'`, `[]`},
		{`SELECT id FROM trips WHERE delay > -7 ORDER BY id`, `[[1],[4]]`},
		{`SELECT id FROM trips WHERE delay >= -7 AND delay < 20 ORDER BY id`, `[[1],[3]]`},
		{`SELECT id FROM trips WHERE delay < 5000000000 ORDER BY id`, `[[1],[3],[4]]`},
		{`SELECT id FROM trips WHERE day <= '2024-02-29' ORDER BY id`, `[[1],[2]]`},
		{`SELECT id FROM trips WHERE late = TRUE ORDER BY id`, `[[3],[4]]`},
		{`SELECT id FROM trips WHERE distance < 2.51 AND distance > -1 ORDER BY id`, `[[3],[4]]`},
		// Aggregates skip NULL, which is a group of its own.
		{`SELECT count(*) AS n, sum(delay) AS total, min(delay) AS low, max(day) AS last FROM trips`, `[[4,23,-7,"2024-03-10"]]`},
		{`SELECT count(*) AS n, sum(delay) AS total, max(carrier) AS last FROM trips WHERE id > 100`, `[[0,null,null]]`},
		{`SELECT carrier, count(*) AS n, sum(distance) AS far, sum(delay) AS total FROM trips GROUP BY carrier ORDER BY carrier`, `[["Aa",2,100.25,10],["B'b",1,2.5,-7],[null,1,-0.5,20]]`},
		{`SELECT count(*) AS n FROM trips WHERE id > 100 GROUP BY carrier`, `[]`},
		{`SELECT max(late) AS any_late, min(late) AS all_late FROM trips`, `[[true,false]]`},
		{`SELECT carrier FROM trips GROUP BY carrier, late ORDER BY carrier`, `[["Aa"],["Aa"],["B'b"],[null]]`},
	} {
		t.Run(c.sql, func(t *testing.T) { wantRows(t, ask(t, s, scope, c.sql), c.rows) })
	}
}

func readerColumns(t *testing.T, s store, scope serving.Scope) {
	const sql = "SELECT carrier, count(*) AS n, sum(delay) AS total, max(distance) AS far, min(day) AS first, max(late) AS any_late FROM trips GROUP BY carrier"
	want := []serving.Column{{Name: "carrier", Type: "VARCHAR"}, {Name: "n", Type: "BIGINT"}, {Name: "total", Type: "HUGEINT"},
		{Name: "far", Type: "DOUBLE"}, {Name: "first", Type: "DATE"}, {Name: "any_late", Type: "BOOLEAN"}}
	q, err := s.reader.Prepare(t.Context(), scope, statementOf(sql), nil)
	mustLake(t, err)
	answered := ask(t, s, scope, sql).Columns
	for i, c := range want {
		if len(q.Columns()) != len(want) || q.Columns()[i] != c || len(answered) != len(want) || answered[i] != c {
			t.Fatalf("columns are %v when prepared and %v when answered, want %v", q.Columns(), answered, want)
		}
	}
}

func readerParams(t *testing.T, s store, scope serving.Scope) {
	params := []project.Param{{Name: "carrier", Type: project.ParamString}, {Name: "delay", Type: project.ParamInteger},
		{Name: "day", Type: project.ParamDate}, {Name: "late", Type: project.ParamBoolean}, {Name: "distance", Type: project.ParamDecimal},
		{Name: "carriers", Type: project.ParamString, List: true}, {Name: "ids", Type: project.ParamInteger, List: true}, {Name: "days", Type: project.ParamDate, List: true},
		{Name: "flags", Type: project.ParamBoolean, List: true}, {Name: "distances", Type: project.ParamDecimal, List: true}}
	open, err := s.reader.Open(t.Context())
	mustLake(t, err)
	defer func() { mustLake(t, open.Close()) }()
	text := func(s string) serving.Value { return serving.Value{Text: s} }
	list := func(items ...string) serving.Value { return serving.Value{Items: append([]string{}, items...)} }
	for _, c := range []struct {
		name, where string
		args        serving.Args
		rows        string
	}{
		{"a text", "carrier = $carrier", serving.Args{"carrier": text("Aa")}, `[[1],[2]]`},
		{"a text with a quote", "carrier = $carrier", serving.Args{"carrier": text("B'b")}, `[[3]]`},
		{"a text that looks like SQL", "carrier = $carrier", serving.Args{"carrier": text("' OR 1=1 --")}, `[]`},
		{"NULL", "carrier = $carrier", serving.Args{"carrier": {Null: true}}, `[]`},
		{"an empty text is not NULL", "carrier <> $carrier", serving.Args{"carrier": text("")}, `[[1],[2],[3]]`},
		{"an integer", "delay >= $delay", serving.Args{"delay": text("10")}, `[[1],[4]]`},
		{"a negative integer", "delay = $delay", serving.Args{"delay": text("-7")}, `[[3]]`},
		{"an integer that the column cannot hold", "delay < $delay", serving.Args{"delay": text("9007199254740993")}, `[[1],[3],[4]]`},
		{"a date", "day > $day", serving.Args{"day": text("2024-01-31")}, `[[2],[3]]`},
		{"a boolean", "late = $late", serving.Args{"late": text("true")}, `[[3],[4]]`},
		{"a decimal", "distance <= $distance", serving.Args{"distance": text("2.5")}, `[[3],[4]]`},
		{"a list of texts", "list_contains($carriers, carrier)", serving.Args{"carriers": list("Aa", "B'b")}, `[[1],[2],[3]]`},
		{"a list with texts that look like lists and SQL", "list_contains($carriers, carrier)", serving.Args{"carriers": list("[Aa]", "Aa, B'b", "NULL", "'Aa'", "", "B'b")}, `[[3]]`},
		{"a list with repetitions", "list_contains($carriers, carrier)", serving.Args{"carriers": list("Aa", "Aa")}, `[[1],[2]]`},
		{"an empty list", "list_contains($carriers, carrier)", serving.Args{"carriers": list()}, `[]`},
		{"NULL for a list", "list_contains($carriers, carrier)", serving.Args{"carriers": {Null: true}}, `[]`},
		{"a list of integers", "list_contains($ids, id)", serving.Args{"ids": list("4", "-1", "9223372036854775807", "1")}, `[[1],[4]]`},
		{"a list of dates", "list_contains($days, day)", serving.Args{"days": list("2024-02-29", "0001-01-01")}, `[[2]]`},
		{"a list of booleans", "list_contains($flags, late)", serving.Args{"flags": list("false")}, `[[1]]`},
		{"a list of decimals", "list_contains($distances, distance)", serving.Args{"distances": list("2.5", "-0.5")}, `[[3],[4]]`},
		{"a list and a value", "list_contains($carriers, carrier) AND delay > $delay", serving.Args{"carriers": list("Aa", "B'b"), "delay": text("0")}, `[[1]]`},
		{"two of them, one twice", "delay > $delay AND delay <> $delay AND late = $late", serving.Args{"delay": text("0"), "late": text("true")}, `[[4]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var declared []project.Param
			for _, p := range params {
				if _, given := c.args[p.Name]; given {
					declared = append(declared, p)
				}
			}
			q, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT id FROM trips WHERE "+c.where+" ORDER BY id"), declared)
			mustLake(t, err)
			// The same query answers twice, in one reading.
			for range 2 {
				a, err := open.Answer(t.Context(), q, c.args, plenty)
				mustLake(t, err)
				wantRows(t, a, c.rows)
			}
		})
	}
}

func readerShapes(t *testing.T, s store, scope serving.Scope) {
	const sql = "SELECT id, carrier AS \"the carrier\", delay FROM trips ORDER BY id"
	q, err := s.reader.Prepare(t.Context(), scope, statementOf(sql), nil)
	mustLake(t, err)
	open, err := s.reader.Open(t.Context())
	mustLake(t, err)
	defer func() { mustLake(t, open.Close()) }()
	up, down := func(name string) project.Order { return project.Order{Column: name} }, func(name string) project.Order {
		return project.Order{Column: name, Descending: true}
	}
	for _, c := range []struct {
		name   string
		shape  serving.Shape
		limits serving.Limits
		rows   string
	}{
		{"none", serving.Shape{}, plenty, `[[1,"Aa",10],[2,"Aa",null],[3,"B'b",-7],[4,null,20]]`},
		{"sorted", serving.Shape{Order: []project.Order{up("delay")}}, plenty, `[[3,"B'b",-7],[1,"Aa",10],[4,null,20],[2,"Aa",null]]`},
		{"NULL is last in both directions", serving.Shape{Order: []project.Order{down("delay")}}, plenty, `[[4,null,20],[1,"Aa",10],[3,"B'b",-7],[2,"Aa",null]]`},
		{"by two keys", serving.Shape{Order: []project.Order{down("the carrier"), down("id")}}, plenty, `[[3,"B'b",-7],[2,"Aa",null],[1,"Aa",10],[4,null,20]]`},
		{"picked, in another order", serving.Shape{Columns: []string{"delay", "id"}}, plenty, `[[10,1],[null,2],[-7,3],[20,4]]`},
		{"sorted by a column that is not picked", serving.Shape{Columns: []string{"the carrier"}, Order: []project.Order{down("id")}}, plenty, `[[null],["B'b"],["Aa"],["Aa"]]`},
		{"sorted before it is cut", serving.Shape{Columns: []string{"id"}, Order: []project.Order{down("id")}}, serving.Limits{Rows: 2, Bytes: 1000}, `[[4],[3]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			shaped, err := q.Shaped(c.shape)
			mustLake(t, err)
			want := map[string]serving.Column{"id": {Name: "id", Type: "BIGINT"}, "the carrier": {Name: "the carrier", Type: "VARCHAR"}, "delay": {Name: "delay", Type: "INTEGER"}}
			names := c.shape.Columns
			if len(names) == 0 {
				names = []string{"id", "the carrier", "delay"}
			}
			for range 2 {
				a, err := open.Answer(t.Context(), shaped, serving.Args{}, c.limits)
				mustLake(t, err)
				wantRows(t, a, c.rows)
				for i, name := range names {
					if len(a.Columns) != len(names) || a.Columns[i] != want[name] || shaped.Columns()[i] != want[name] {
						t.Errorf("columns are %v when shaped and %v when answered, want %v", shaped.Columns(), a.Columns, names)
					}
				}
			}
		})
	}
	// Shaping leaves the query as it was.
	a, err := open.Answer(t.Context(), q, serving.Args{}, plenty)
	mustLake(t, err)
	wantRows(t, a, `[[1,"Aa",10],[2,"Aa",null],[3,"B'b",-7],[4,null,20]]`)
	for _, shape := range []serving.Shape{{Columns: []string{"nothing"}}, {Columns: []string{"id", "id"}}, {Columns: []string{"ID"}}, {Columns: []string{"*"}}, {Columns: []string{`id" FROM trips --`}},
		{Order: []project.Order{up("nothing")}}, {Order: []project.Order{up("-id")}}, {Columns: []string{"id"}, Order: []project.Order{up("")}}} {
		_, err := q.Shaped(shape)
		wantKind(t, err, fail.Internal)
	}
}

func readerLimits(t *testing.T, s store, scope serving.Scope) {
	q, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT id FROM trips ORDER BY id"), nil)
	mustLake(t, err)
	open, err := s.reader.Open(t.Context())
	mustLake(t, err)
	defer func() { mustLake(t, open.Close()) }()
	for _, c := range []struct {
		limits serving.Limits
		rows   string
		reason string
	}{
		{serving.Limits{Rows: 5, Bytes: 1000}, `[[1],[2],[3],[4]]`, ""},
		{serving.Limits{Rows: 4, Bytes: 1000}, `[[1],[2],[3],[4]]`, ""},
		{serving.Limits{Rows: 3, Bytes: 1000}, `[[1],[2],[3]]`, serving.RowLimit},
		{serving.Limits{Rows: 1, Bytes: 1000}, `[[1]]`, serving.RowLimit},
	} {
		a, err := open.Answer(t.Context(), q, serving.Args{}, c.limits)
		mustLake(t, err)
		wantRows(t, a, c.rows)
		if a.Count != strings.Count(c.rows, "[")-1 || a.Truncated != (c.reason != "") || a.TruncationReason != c.reason {
			t.Errorf("limits %v: %d rows, truncated %t because %q", c.limits, a.Count, a.Truncated, a.TruncationReason)
		}
	}
	// Whole rows are left out until the rest fits.
	a, err := open.Answer(t.Context(), q, serving.Args{}, serving.Limits{Rows: 100, Bytes: 12})
	mustLake(t, err)
	if len(a.Rows) > 12 || a.Count < 1 || a.Count > 3 || !a.Truncated || a.TruncationReason != serving.ByteLimit {
		t.Errorf("12 bytes hold %d rows in %d bytes, truncated %t because %q", a.Count, len(a.Rows), a.Truncated, a.TruncationReason)
	}
	wantRows(t, a, "[[1],[2],[3],[4]]"[:4*a.Count]+"]")
}

func readerRefuses(t *testing.T, s store, scope serving.Scope) {
	physical := scope.Tables["trips"]
	for _, sql := range []string{
		"SELECT id FROM flights", "SELECT id FROM nowhere", "SELECT id FROM " + physical, "SELECT id FROM sales." + physical,
		"SELECT id FROM trips WHERE id = $id", "DELETE FROM trips", "SELECT id FROM trips; SELECT id FROM trips",
		"SELECT * FROM read_csv('/etc/passwd')", "SELECT id FROM trips AT (VERSION => 1)", "",
	} {
		t.Run(sql, func(t *testing.T) {
			_, err := s.reader.Prepare(t.Context(), scope, statementOf(sql), nil)
			if problems, ok := asProblems(err); !ok || problems[0].At.File != "endpoints/case.sql" {
				t.Errorf("it was not refused as a problem of its file: %v", err)
			}
		})
	}
	t.Run("a column that is not there", func(t *testing.T) {
		_, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT nothing FROM trips"), nil)
		wantKind(t, err, fail.Invalid)
	})
	t.Run("a parameter that is not used", func(t *testing.T) {
		at := project.Position{File: "endpoints/case.sql", Line: 2, Column: 3}
		_, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT id FROM trips"), []project.Param{{Name: "id", Type: project.ParamInteger, At: at}})
		wantProblem(t, err, at)
	})
	t.Run("a workspace that is not there", func(t *testing.T) {
		elsewhere := scope
		elsewhere.Workspace = "elsewhere"
		if _, err := s.reader.Prepare(t.Context(), elsewhere, statementOf("SELECT id FROM trips"), nil); err == nil {
			t.Error("a table of another workspace was given")
		}
	})
	for _, n := range []serving.Snapshot{0, -1, scope.Snapshot + 1000} {
		elsewhere := scope
		elsewhere.Snapshot = n
		if _, err := s.reader.Prepare(t.Context(), elsewhere, statementOf("SELECT id FROM trips"), nil); err == nil {
			t.Errorf("snapshot %d was given", n)
		}
	}
}

// readerArguments are the caller's defects: each must be noticed rather than answered.
func readerArguments(t *testing.T, s store, scope serving.Scope) {
	q, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT id FROM trips WHERE id = $id"), []project.Param{{Name: "id", Type: project.ParamInteger}})
	mustLake(t, err)
	for _, c := range []struct {
		query  ports.Query
		args   serving.Args
		limits serving.Limits
	}{
		{q, serving.Args{}, plenty},
		{q, serving.Args{"id": {Text: "1"}}, serving.Limits{Rows: 0, Bytes: 100}},
		{q, serving.Args{"id": {Text: "1"}}, serving.Limits{Rows: 1, Bytes: 0}},
		{nil, serving.Args{"id": {Text: "1"}}, plenty},
	} {
		r, err := s.reader.Open(t.Context())
		mustLake(t, err)
		_, err = r.Answer(t.Context(), c.query, c.args, c.limits)
		wantKind(t, err, fail.Internal)
		// A reading that met an error answers nothing more.
		if _, err := r.Answer(t.Context(), q, serving.Args{"id": {Text: "1"}}, plenty); err == nil {
			t.Error("a reading that had failed answered")
		}
		mustLake(t, r.Close())
	}
}

func readerCloses(t *testing.T, s store, scope serving.Scope) {
	q, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT id FROM trips"), nil)
	mustLake(t, err)
	var open []ports.Reading
	for range s.connections {
		r, err := s.reader.Open(t.Context())
		mustLake(t, err)
		open = append(open, r)
	}
	if r, err := s.reader.Open(t.Context()); err == nil {
		t.Errorf("a reading more than %d was opened", s.connections)
		mustLake(t, r.Close())
	}
	for _, r := range open {
		mustLake(t, r.Close())
		mustLake(t, r.Close())
		if _, err := r.Answer(t.Context(), q, serving.Args{}, plenty); err == nil {
			t.Error("a closed reading answered")
		}
	}
	r, err := s.reader.Open(t.Context())
	mustLake(t, err)
	a, err := r.Answer(t.Context(), q, serving.Args{}, plenty)
	mustLake(t, err)
	mustLake(t, r.Close())
	if a.Count != 4 {
		t.Errorf("after all were closed a reading gave %d rows", a.Count)
	}
}

func readerCancelled(t *testing.T, s store, scope serving.Scope) {
	_, err := s.reader.Prepare(canceled(t), scope, statementOf("SELECT id FROM trips"), nil)
	wantKind(t, err, fail.Canceled)
	_, err = s.reader.Open(canceled(t))
	wantKind(t, err, fail.Canceled)
	q, err := s.reader.Prepare(t.Context(), scope, statementOf("SELECT id FROM trips"), nil)
	mustLake(t, err)
	r, err := s.reader.Open(t.Context())
	mustLake(t, err)
	_, err = r.Answer(canceled(t), q, serving.Args{}, plenty)
	wantKind(t, err, fail.Canceled)
	mustLake(t, r.Close())
}
