package lake

import (
	"fmt"
	"testing"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/project"
)

// TestPlainReadsTheSame proves that no bent form passes for a plain one: whenever a file is found plain, the engine's own typed reading
// fails at nothing and gives what the exact reading gives. The values are all kinds of texts, also those that the engine
// bends, each against every type.
func TestPlainReadsTheSame(t *testing.T) {
	b, o := opened(t)
	values := []string{"0", "-0", "7", "007", "-1", "+5", "1.5", "1.0", ".5", "5.", "1e3", "1E3", "0x10", "0b1", "1_000", " 7", "7 ", "\t7", "-", "--1", "127", "128", "255", "256", "32768",
		"2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "99999999999999999999999999999999999999999", "0.1", "0.123456789012345678901234567890",
		"12345678901234567890.5", "1.239", "1.23", "99.99", "100", "100.00", "-99.99", "1.230", "NA", "na", "NULL", "null", "nan", "inf", "-inf", "1e400", "1e99", "1.5e-9", "-2.5E+07", "1e", "e3", "1e3.5", "1e-", "true", "false", "t", "yes", "1",
		"2013-01-01", "2013-1-1", "2013-13-01", "2013-02-29", "2012-02-29", "0000-01-01", "9999-12-31", "2013/01/01", "01/02/2013", "20130101", "2013-01-01 (BC)", "infinity", "epoch",
		"2013-01-01 10:00:00", "2013-01-01T10:00:00", "2013-01-01T10:00:00Z", "2013-01-01 10:00:00Z", "2013-01-01T10:00:00+02", "2013-01-01T10:00:00.5", "2013-01-01T24:00:00", "2013-01-01T23:59:60",
		"2013-01-01T25:00:00Z", "2013-01-01T10:60:00Z", "2013-03-10T02:30:00Z", "0001-01-01T00:00:00Z", "2013-02-29T10:00:00Z", "2013-04-31T10:00:00Z", "2013-13-01T10:00:00Z", "2013-00-10T10:00:00Z", "2013-01-00T10:00:00Z", "2013-12-31T23:59:59Z", "2013-01-01T10:00:60Z", "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z", "text", "ü", "a\xffb", "a\x00b", "'", "\\", "\\N", "#", "a b", "-2013-01-01"}
	plain := map[project.Type]int{}
	for _, kind := range []project.Type{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DOUBLE", "DECIMAL(4,2)", "DECIMAL(18,0)", "DECIMAL(38,10)",
		"DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "BOOLEAN", "UUID", "BLOB", "JSON"} {
		source := sourceOf(project.CSV, "a VARCHAR", "b "+string(kind))
		text := texts{columns: source.Columns, header: true, delimiter: ",", nulls: []string{"", "NA"}}
		table := "stage " + source.Name + " 0"
		read := func(statement string) string {
			t.Helper()
			must(t, b.conn.Exec(t.Context(), "CREATE OR REPLACE TEMP TABLE "+engine.Identifier(table)+" (a VARCHAR, b "+string(kind)+")"))
			if err := b.conn.Exec(t.Context(), statement); err != nil {
				if !stopped(err) {
					t.Fatal(err)
				}
				return "stopped"
			}
			return fmt.Sprint(rowsOf(t, b, source))
		}
		for _, v := range append(values, "") {
			a := file(t, o, "f.csv", []byte("a,b\nx,"+v+"\ny,NA\n"))
			rows, ok := text.plain(t.Context(), []string{a.Path})
			if !ok {
				continue
			}
			plain[kind]++
			typed, exact := read("INSERT INTO "+engine.Identifier(table)+" "+text.typedQuery(source.Columns, a.Path)), read(text.insert(table, true, a.Path))
			if typed != exact || typed == "stopped" || rows != 2 {
				t.Errorf("%q as %s: the typed reading gives %s, the exact one %s; %d rows were counted", v, kind, typed, exact, rows)
			}
		}
	}
	for _, kind := range []project.Type{"TINYINT", "INTEGER", "BIGINT", "UBIGINT", "DOUBLE", "DECIMAL(4,2)", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "VARCHAR"} {
		if plain[kind] < 3 {
			t.Errorf("only %d values are plain as %s", plain[kind], kind)
		}
	}
}

// TestPlainShapes proves which lines are left to the exact reading.
func TestPlainShapes(t *testing.T) {
	_, o := opened(t)
	text := texts{columns: sourceOf(project.CSV, "a VARCHAR", "b INTEGER").Columns, header: true, delimiter: ",", nulls: []string{"", "NA"}}
	for content, want := range map[string]bool{
		"a,b\nx,1\n": true, "a,b\nx,1": true, "a,b\n,\n": true, "a,b\n": true, "a,b": true, "\"a\",b\nx,1\n": false, "a,b\r\nx,1\n": false, "a,b\na\xffb,1\n": false, "\xEF\xBB\xBFa,b\nx,1\n": true,
		"a,b\nx,1\n\n": false, "a,b\r\nx,1\r\n": false, "a,b\n\"x\",1\n": false, "a,b\nx\n": false, "a,b\nx,1,\n": false, "a,b\nx,1,2\n": false, "a,b\nx;1\n": false,
	} {
		a := file(t, o, "f.csv", []byte(content))
		if _, got := text.plain(t.Context(), []string{a.Path}); got != want {
			t.Errorf("%q: plain is %t", content, got)
		}
	}
	if _, ok := text.plain(t.Context(), []string{o.StagedDir + "/missing"}); ok {
		t.Error("a missing file is plain")
	}
}
