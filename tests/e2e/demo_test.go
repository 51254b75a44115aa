package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"leapview/tests/e2e/truth"
	"leapview/tests/nodetest"
)

// TestDemo proves the main job on the real example data, through the binary: deploy, refresh, serve, the known values from endpoints
// and from the query bundle, one snapshot for all of them, one open catalog, and a clean stop.
func TestDemo(t *testing.T) {
	root := nodetest.Root(t)
	data := filepath.Join(t.TempDir(), "data")
	flags := []string{"--data-dir", data, "--extensions", nodetest.Extensions(t)}
	ok(t, append([]string{"deploy", filepath.Join(root, "examples", "flights")}, flags...)...)
	r := ok(t, append([]string{"refresh", "flights"}, flags...)...)
	for _, want := range []string{"stg_flights", "336,776"} {
		if !strings.Contains(r.errOut, want) {
			t.Errorf("the progress does not show %s:\n%s", want, r.errOut)
		}
	}
	n := serve(t, data)

	t.Run("known values", func(t *testing.T) {
		cell := func(a answer, key, column string) string { return value(t, a, key, column) }
		o := n.get(t, "flights", "overview")
		check(t, "flights", cell(o, "", "flights"), truth.Flights)
		check(t, "never departed", cell(o, "", "never_departed"), truth.NeverDeparted)
		check(t, "distance", cell(o, "", "distance"), truth.Distance)
		origins := n.get(t, "flights", "origin_summary")
		check(t, "EWR", cell(origins, "EWR", "flights"), truth.FlightsEWR)
		check(t, "JFK", cell(origins, "JFK", "flights"), truth.FlightsJFK)
		check(t, "LGA", cell(origins, "LGA", "flights"), truth.FlightsLGA)
		carriers := n.get(t, "flights", "delays_by_carrier")
		check(t, "UA arrivals", cell(carriers, "UA", "arrivals"), truth.ArrivalsUA)
		check(t, "UA mean", cell(carriers, "UA", "mean_arr_delay"), truth.MeanArrDelayUA)
		missing := n.get(t, "flights", "planes_missing")
		total := int64(0)
		for _, row := range missing.Rows {
			v, err := row[index(t, missing, "flights_without_plane")].(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			total += v
		}
		check(t, "flights without a plane", fmt.Sprint(total), truth.FlightsWithoutPlane)
	})

	t.Run("query bundle", func(t *testing.T) {
		body, err := os.ReadFile(filepath.Join(root, "examples", "flights", "dashboard.json"))
		if err != nil {
			t.Fatal(err)
		}
		a, resp := fetch(t, "POST", n.url+"/v1/workspaces/flights/query-bundles", string(body))
		if len(a.Results) < 6 || a.Meta.Snapshot <= 0 || a.Meta.Generation != 1 || a.Meta.Lineage == "" || a.Meta.Release == "" || a.Meta.BuiltAt.IsZero() {
			t.Errorf("%d results, meta %+v", len(a.Results), a.Meta)
		}
		if got := resp.Header.Get("LeapView-Snapshot"); got != fmt.Sprint(a.Meta.Snapshot) {
			t.Errorf("the header says snapshot %q, the body %d", got, a.Meta.Snapshot)
		}
		single := n.get(t, "flights", "overview")
		for _, r := range a.Results {
			if r.Endpoint == "overview" && fmt.Sprint(r.Rows) != fmt.Sprint(single.Rows) {
				t.Errorf("the bundle says %v, the endpoint alone %v", r.Rows, single.Rows)
			}
		}
	})

	t.Run("lists, orders and descriptions", func(t *testing.T) {
		const call = "delays_by_carrier?carriers=UA&carriers=B6&carriers=EV&order_by=-flights&columns=carrier,flights&limit=2"
		if a := n.get(t, "flights", call); fmt.Sprint(a.Rows) != "[[UA 58665] [B6 54635]]" || len(a.Columns) != 2 {
			t.Errorf("%s: %v %v", call, a.Columns, a.Rows)
		}
		query := append([]string{"query", "flights", "delays_by_carrier", "--param", "carriers=UA", "--param", "carriers=B6"}, flags...)
		if r := ok(t, append(query, "--order-by=flights", "--columns=carrier,flights")...); !strings.Contains(r.out, "B6         54635\nUA         58665\n") {
			t.Errorf("the table is\n%s", r.out)
		}
		r := run(t, append(query, "--order-by=flight", "--param=carriers=United", "--limit=500")...)
		for _, want := range []string{"/params/carriers/2: \"United\" does not match", "/order_by: \"flight\" cannot be chosen; did you mean \"flights\"?", "/limit: 500"} {
			if r.code != 2 || !strings.Contains(r.errOut, want) {
				t.Errorf("exit code %d, and the refusal does not say %s:\n%s", r.code, want, r.errOut)
			}
		}
		described := ok(t, append([]string{"describe", "flights", "delays_by_carrier"}, flags...)...)
		for _, line := range strings.Split(described.out, "\n") {
			// Each example is a command that works as it is shown.
			if _, command, found := strings.Cut(line, "leapview query "); found {
				ok(t, append(append([]string{"query"}, strings.Fields(command)...), flags...)...)
			}
		}
		if !strings.Contains(described.out, "big_three_in_july") || !strings.Contains(described.out, "by default -mean_arr_delay") {
			t.Errorf("the description is\n%s", described.out)
		}
	})

	t.Run("the curl line works as printed", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err == nil {
			out, err := exec.Command("sh", "-c", n.hint).CombinedOutput()
			if err != nil || !strings.Contains(string(out), `"rows":`) {
				t.Errorf("%s: %v\n%.300s", n.hint, err, out)
			}
		}
		url := strings.Trim(n.hint[strings.LastIndex(n.hint, " ")+1:], `'"`)
		if a, _ := fetch(t, "GET", url, ""); len(a.Rows) == 0 {
			t.Errorf("%s answers no row", url)
		}
	})

	t.Run("one catalog", func(t *testing.T) {
		open := 0
		fds := fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid)
		entries, err := os.ReadDir(fds)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if target, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && strings.HasSuffix(target, "/ducklake/catalog.duckdb") {
				open++
			}
		}
		if open != 1 {
			t.Errorf("the catalog is open %d times", open)
		}
	})

	t.Run("commands reach the running node", func(t *testing.T) {
		r := ok(t, append([]string{"query", "flights", "delays_by_carrier", "--param", "origin=JFK", "--json"}, flags...)...)
		var a answer
		if err := json.Unmarshal([]byte(r.out), &a); err != nil || len(a.Rows) == 0 {
			t.Errorf("query: %v\n%s", err, r.out)
		}
		ok(t, append([]string{"refresh", "flights"}, flags...)...)
		if again := n.get(t, "flights", "overview"); again.Meta.Generation != 2 {
			t.Errorf("generation %d after a second refresh", again.Meta.Generation)
		}
		if r := ok(t, append([]string{"status", "flights"}, flags...)...); !strings.Contains(r.out, "flights") {
			t.Errorf("status says:\n%s", r.out)
		}
	})

	if code := n.stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	left, err := os.ReadDir(filepath.Join(data, "tmp", "duckdb"))
	if err != nil || len(left) > 0 {
		t.Errorf("spill folders left behind: %v, %v", left, err)
	}
}

func index(t *testing.T, a answer, column string) int {
	t.Helper()
	for i, c := range a.Columns {
		if c.Name == column {
			return i
		}
	}
	t.Fatalf("no column %s in %v", column, a.Columns)
	return -1
}

// value is the cell of a column in the row that begins with key, or in the only row when key is empty.
func value(t *testing.T, a answer, key, column string) string {
	t.Helper()
	i := index(t, a, column)
	for _, row := range a.Rows {
		if key == "" || row[0] == key {
			return fmt.Sprint(row[i])
		}
	}
	t.Fatalf("no row %s in %v", key, a.Rows)
	return ""
}

func check(t *testing.T, what, got string, want any) {
	t.Helper()
	if got != fmt.Sprint(want) {
		t.Errorf("%s: got %s, want %v", what, got, want)
	}
}
