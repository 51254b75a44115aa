package gate_test

import (
	"slices"
	"testing"

	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/gate"
)

// Proves which statements may give other rows at another time.
func TestVolatile(t *testing.T) {
	e, _ := enginetest.Open(t)
	c := enginetest.Conn(t, e)
	for sql, want := range map[string]bool{
		"SELECT x FROM a": false, "SELECT error('no') AS x FROM a": false, "SELECT age(x, y) AS z, a.current_x FROM a": false, "SELECT date_trunc('day', x) AS y FROM a": false,
		"SELECT now() AS x": true, "SELECT current_date AS x": true, "SELECT CURRENT_TIMESTAMP AS x": true, "SELECT x FROM a WHERE y > today() - 3": true, "SELECT age(x) AS y FROM a": true,
		"WITH b AS (SELECT Random() AS r FROM a) SELECT r FROM b": true, "SELECT x FROM a ORDER BY uuid()": true, "SELECT x FROM a USING SAMPLE 10": true, "SELECT x FROM a TABLESAMPLE 10%": true,
		"SELECT (SELECT localtimestamp) AS x": true, "SELECT list_transform([1], lambda i: i + random()) AS x": true, "SELECT x FROM a UNION ALL SELECT now()": true,
	} {
		s, err := gate.Parse(t.Context(), c, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if s.Volatile() != want {
			t.Errorf("%s: volatile is %t", sql, !want)
		}
	}
	// Every function that the engine says gives other values at other times is known, or not let through at all.
	rows, err := c.Rows(t.Context(), "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability IN ('VOLATILE', 'CONSISTENT_WITHIN_QUERY') ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Close(); err != nil || len(names) < 20 {
		t.Fatalf("the engine has %d such functions: %v", len(names), err)
	}
	// error stops the statement, and stats and in_search_path tell of the statement itself.
	steady := []string{"error", "stats", "in_search_path"}
	for _, name := range names {
		s, err := gate.Parse(t.Context(), c, "SELECT "+name+"() AS x")
		if err == nil && !s.Volatile() && !slices.Contains(steady, name) {
			t.Errorf("%s is not taken for volatile", name)
		}
	}
}
