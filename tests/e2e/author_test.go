package e2e

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestValidate proves that a project is judged without a node or data: a right one is described, and all mistakes of a wrong one are
// named at their lines, with the line, also those that only the engine can find.
func TestValidate(t *testing.T) {
	s := newShop(t)
	out := ok(t, s.args("validate", s.dir)...)
	if want := "is valid: 1 source, "; !strings.Contains(out.out, want) {
		t.Errorf("a right project: %s", out.out)
	}
	s.write(t, "models/a.sql", "SELECT regio FROM orders\n")
	s.write(t, "models/b.sql", "SELECT count(*) AS n FROM order_lines\n")
	if out = run(t, s.args("validate", s.dir)...); out.code != 2 {
		t.Errorf("exit code %d", out.code)
	}
	for _, want := range []string{"models/a.sql:1:8: ", "    SELECT regio FROM orders\n           ^", "models/b.sql:1:27: ", "order_lines"} {
		if !strings.Contains(out.errOut, want) {
			t.Errorf("the report lacks %q:\n%s", want, out.errOut)
		}
	}
}

// TestProjectTests proves that a case passes on the rows that it expects and fails on any others, shows the difference, and that what a
// case gives wrongly is named at its line. No data directory is touched.
func TestProjectTests(t *testing.T) {
	s := newShop(t)
	head := "model: stg_orders\ncases:\n  - name: one\n    given: {orders: [{id: 1, region: north, amount: 10}, {id: 2, region: \"a 'quoted' ü\", amount: 20}]}\n    expect:\n"
	for _, c := range []struct {
		name, rows string
		code       int
		says       []string
	}{
		{"passes in another order", "      - {id: 2, region: \"a 'quoted' ü\", amount: 20}\n      - {id: 1, region: north, amount: 10}\n", 0, []string{"ok      orders: one"}},
		{"passes on some columns", "      - {id: 1}\n      - {id: 2}\n", 0, []string{"ok"}},
		{"a wrong value", "      - {id: 1, region: south}\n      - {id: 2, region: \"a 'quoted' ü\"}\n", 2, []string{"FAILED", `- [1,"south"]`, `+ [1,"north"]`, "tests/orders.yaml:3:5"}},
		{"a row too many", "      - {id: 1}\n      - {id: 1}\n      - {id: 2}\n", 2, []string{"- [1]"}},
		{"a row too few", "      - {id: 2}\n", 2, []string{"+ [1]"}},
		{"an unknown column", "      - {id: 1, regon: north}\n", 2, []string{"tests/orders.yaml:6:24", `"regon"`, "region", "^"}},
		{"a value of another type", "      - {id: 1.5}\n", 2, []string{"tests/orders.yaml:6:9", "1.5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.write(t, "tests/orders.yaml", head+c.rows)
			out := run(t, s.args("test", s.dir)...)
			if out.code != c.code {
				t.Errorf("exit code %d, want %d", out.code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(out.out, want) {
					t.Errorf("the report lacks %q:\n%s", want, out.out)
				}
			}
		})
	}
	s.write(t, "tests/orders.yaml", "model: stg_orders\ncases: [{name: one, given: {order: []}, expect: []}]\n")
	out := run(t, s.args("test", s.dir, "--json")...)
	for _, want := range []string{`does not read \"order\"`, `gives no rows for \"orders\"`, `"failed": 1`} {
		if !strings.Contains(out.out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out.out)
		}
	}
	if _, err := os.Stat(s.data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the node's directory was touched: %v", err)
	}
}
