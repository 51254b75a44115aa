package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"

	"leapview/adapters/yaml"
	"leapview/bootstrap"
	"leapview/domain/project"
	"leapview/tests/nodetest"
)

// engineType is one type of the engine on its way from a file to an answer.
type engineType struct {
	// name is the engine's own, in duckdb_types().
	name string
	// declared is how a source declares it; refused is the word by which that is refused, or "".
	declared, refused string
	// csv is a field, literal the same value as the engine's expression of the file's own type, and json what an answer says of it.
	csv, literal, json string
	// foreign tells that Parquet files can hold the type although no source can declare it.
	foreign bool
}

// engineTypes has a row for every type of the engine, its extreme values where it has any.
var engineTypes = []engineType{
	{"BOOLEAN", "BOOLEAN", "", "true", "true", "true", false},
	{"TINYINT", "TINYINT", "", "-128", "(-128)::TINYINT", "-128", false},
	{"SMALLINT", "SMALLINT", "", "-32768", "(-32768)::SMALLINT", "-32768", false},
	{"INTEGER", "INTEGER", "", "-2147483648", "(-2147483648)::INTEGER", "-2147483648", false},
	{"BIGINT", "BIGINT", "", "9223372036854775807", "9223372036854775807::BIGINT", "9223372036854775807", false},
	{"UTINYINT", "UTINYINT", "", "255", "255::UTINYINT", "255", false},
	{"USMALLINT", "USMALLINT", "", "65535", "65535::USMALLINT", "65535", false},
	{"UINTEGER", "UINTEGER", "", "4294967295", "4294967295::UINTEGER", "4294967295", false},
	{"UBIGINT", "UBIGINT", "", "18446744073709551615", "18446744073709551615::UBIGINT", "18446744073709551615", false},
	{"HUGEINT", "HUGEINT", "loses digits", "", "170141183460469231731687303715884105727::HUGEINT", "", true},
	{"UHUGEINT", "UHUGEINT", "loses digits", "", "340282366920938463463374607431768211455::UHUGEINT", "", true},
	{"BIGNUM", "BIGNUM", "cannot store", "", "", "", false},
	{"DECIMAL", "DECIMAL(38,10)", "", "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789::DECIMAL(38,10)", "1234567890123456789012345678.0123456789", false},
	{"FLOAT", "FLOAT", "leaves rows out", "", "0.1::FLOAT", "", true},
	{"DOUBLE", "DOUBLE", "", "1.7976931348623157e308", "1.7976931348623157e308::DOUBLE", "1.7976931348623157e+308", false},
	{"DATE", "DATE", "", "2024-02-29", "DATE '2024-02-29'", `"2024-02-29"`, false},
	{"TIME", "TIME", "", "23:59:59.999999", "TIME '23:59:59.999999'", `"23:59:59.999999"`, false},
	{"TIME_NS", "TIME_NS", "cannot write", "", "", "", false},
	{"TIMESTAMP", "TIMESTAMP", "", "2024-02-29 23:59:59.999999", "TIMESTAMP '2024-02-29 23:59:59.999999'", `"2024-02-29T23:59:59.999999"`, false},
	{"TIMESTAMP_S", "TIMESTAMP_S", "microseconds", "", "", "", false},
	{"TIMESTAMP_MS", "TIMESTAMP_MS", "microseconds", "", "", "", false},
	{"TIMESTAMP_NS", "TIMESTAMP_NS", "microseconds", "", "'2024-02-29 23:59:59.999999999'::TIMESTAMP_NS", "", true},
	{"TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE", "", "2024-02-29T23:59:59+02:00", "TIMESTAMPTZ '2024-02-29 23:59:59+02:00'", `"2024-02-29T21:59:59Z"`, false},
	{"TIME WITH TIME ZONE", "TIME WITH TIME ZONE", "loses the offset", "", "", "", false},
	{"INTERVAL", "INTERVAL", "microseconds", "", "INTERVAL '1 month'", "", true},
	{"VARCHAR", "VARCHAR", "", "\"a,\"\"é\"\"\n😀\"", "'a,\"é\"' || chr(10) || '😀'", `"a,\"é\"\n😀"`, false},
	{"BLOB", "BLOB", "", `\x00A\xFF`, `'\x00A\xFF'::BLOB`, `"AEH/"`, false},
	{"BIT", "BIT", "cannot store", "", "", "", false},
	{"UUID", "UUID", "", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`, false},
	{"JSON", "JSON", "", `"{""n"": 12345678901234567890.10}"`, `'{"n": 12345678901234567890.10}'::JSON`, `"{\"n\": 12345678901234567890.10}"`, false},
	{"ENUM", "ENUM('a', 'b')", "cannot store", "", "", "", false},
	{"LIST", "INTEGER[]", "nested", "", "[1, 2]", "", true},
	{"STRUCT", "STRUCT(a INTEGER)", "nested", "", "{'a': 1}", "", true},
	{"MAP", "MAP(VARCHAR, INTEGER)", "nested", "", "MAP {'a': 1}", "", true},
	{"ARRAY", "INTEGER[2]", "nested", "", "", "", false},
	{"UNION", "UNION(a INTEGER, b VARCHAR)", "cannot store", "", "", "", false},
	{"VARIANT", "VARIANT", "cannot carry", "", "", "", false},
	{"GEOMETRY", "GEOMETRY", "cannot carry", "", "", "", false},
	{`"NULL"`, `"NULL"`, "no type", "", "", "", false},
	{"TYPE", "TYPE", "no such type", "", "", "", false},
}

// bare is an engine of the test's own, which writes the files of another program.
func bare(t *testing.T) *sql.DB {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	return db
}

// decoded is what decoding a source with this one column says.
func decoded(kind string) error {
	_, err := project.Decode([]project.File{
		{Path: "leapview.yaml", Content: []byte("name: shop")}, {Path: "models/m.sql", Content: []byte("SELECT * FROM s")},
		{Path: "sources/s.yaml", Content: fmt.Appendf(nil, "location: s.csv\nformat: csv\ncolumns: {v: {type: %q}}", kind)},
	}, yaml.Documents{})
	return err
}

// TestEveryTypeOfTheEngine proves, for every type that the engine says it has, that its values go exactly from CSV and Parquet files through a
// model into a JSON answer, or that the declaration or the file is refused by the type's name.
func TestEveryTypeOfTheEngine(t *testing.T) {
	db := bare(t)
	rows, err := db.Query("SELECT DISTINCT logical_type FROM duckdb_types() WHERE logical_type NOT LIKE '%LITERAL%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(engineTypes, func(x engineType) bool { return strings.Trim(x.name, `"`) == name }) {
			t.Errorf("the engine has the type %s, which the table does not", name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), bootstrap.Real())
	files := []project.File{{Path: "leapview.yaml", Content: []byte("name: shop")}}
	add := func(path, format string, args ...any) {
		files = append(files, project.File{Path: path, Content: fmt.Appendf(nil, format, args...)})
	}
	for i, x := range engineTypes {
		if x.refused != "" {
			if err := decoded(x.declared); err == nil || !strings.Contains(err.Error(), x.refused) {
				t.Errorf("%s is declared: %v, want %q", x.name, err, x.refused)
			}
			continue
		}
		// NULL and the value, so that neither stands for the other; a second column keeps the line from being empty.
		write(t, filepath.Join(n.Sources, fmt.Sprintf("t%d.csv", i)), "k,v\n1,"+x.csv+"\n2,\n")
		parquet(t, db, filepath.Join(n.Sources, fmt.Sprintf("t%d.parquet", i)), "SELECT 1 AS k, "+x.literal+" AS v UNION ALL SELECT 2, NULL")
		for _, format := range []string{"csv", "parquet"} {
			name := fmt.Sprintf("%s_%d", format, i)
			add("sources/s_"+name+".yaml", "location: t%d.%s\nformat: %s\ncolumns: {k: INTEGER, v: {type: %q}}", i, format, format, x.declared)
			add("models/m_"+name+".sql", "SELECT k, v FROM s_%s", name)
			add("endpoints/"+name+".sql", "SELECT v FROM m_%s ORDER BY k", name)
		}
	}
	n.Deploy(t, files)
	n.Refresh(t)
	for i, x := range engineTypes {
		if x.refused != "" {
			continue
		}
		for _, format := range []string{"csv", "parquet"} {
			if got, want := n.Ask(t, fmt.Sprintf("%s_%d", format, i), nil), "[["+x.json+"],[null]]"; got != want {
				t.Errorf("%s through %s: %s, want %s", x.name, format, got, want)
			}
		}
	}
	// What no source can declare is refused by name where a file has it, whatever it is declared as.
	for _, x := range engineTypes {
		if !x.foreign {
			continue
		}
		parquet(t, db, filepath.Join(n.Sources, "odd.parquet"), "SELECT "+x.literal+" AS v")
		for _, declared := range []string{"VARCHAR", "DECIMAL(38,0)", "JSON"} {
			n.Deploy(t, []project.File{files[0], {Path: "models/m.sql", Content: []byte("SELECT v FROM s")},
				{Path: "sources/s.yaml", Content: fmt.Appendf(nil, "location: odd.parquet\nformat: parquet\ncolumns: {v: {type: %q}}", declared)}})
			_, _, err := n.TryRefresh(t)
			var problems project.Problems
			if !errors.As(err, &problems) || problems[0].At.File != "odd.parquet" {
				t.Errorf("a %s in a Parquet file, declared %s: %v", x.name, declared, err)
			}
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// parquet has the engine of the test write a file.
func parquet(t *testing.T, db *sql.DB, path, query string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), "COPY ("+query+") TO '"+path+"' (FORMAT parquet)"); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
