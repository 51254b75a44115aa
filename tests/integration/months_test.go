package integration

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leapview/bootstrap"
	"leapview/domain/access"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/tests/nodetest"
)

// months is a project that fills the same rows in every mode from files of one month each.
func months(t *testing.T) []project.File {
	t.Helper()
	declared, err := os.ReadFile(filepath.Join(nodetest.Root(t), "examples", "flights", "sources", "flights.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var source []string
	for line := range strings.SplitSeq(string(declared), "\n") {
		switch {
		case strings.HasPrefix(line, "bounds:"):
		case strings.HasPrefix(line, "location:"):
			source = append(source, "location: f*.csv")
		default:
			source = append(source, line)
		}
	}
	const statement = "SELECT month, day, carrier, flight, origin, sched_dep_time, dep_time, arr_delay, distance FROM flights"
	files := []project.File{{Path: "leapview.yaml", Content: []byte("name: " + string(nodetest.Workspace))}, {Path: "sources/flights.yaml", Content: []byte(strings.Join(source, "\n"))}}
	add := func(path, content string) { files = append(files, project.File{Path: path, Content: []byte(content)}) }
	for name, head := range map[string]string{"anew": "mode: full", "appended": "mode: append", "upserted": "mode: upsert\nkey: [month, day, carrier, flight, origin, sched_dep_time]",
		"parts": "mode: replace_partitions\npartition_by: month"} {
		add("models/"+name+".sql", "/*---\n"+head+"\n---*/\n"+statement)
		add("endpoints/"+name+".sql", "SELECT month, count(*) AS flights, sum(distance) AS miles, count(dep_time) AS departed, sum(arr_delay * day) AS late, count(DISTINCT carrier) AS carriers, "+
			"sum(hash(carrier, origin, flight) % 1000003) AS mixed FROM "+name+" GROUP BY month ORDER BY month")
	}
	add("models/fixed.sql", "SELECT 1 AS one")
	return files
}

// refreshed works one refresh and gives what was done to each model that was not kept.
func refreshed(t *testing.T, n *nodetest.Node) map[string]plan.Action {
	t.Helper()
	run, err := n.Refresher.Request(context.Background(), nodetest.Workspace, "", access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]plan.Action{}
	if _, err := n.Worker.WorkOne(context.Background(), nodetest.Workspace, run.ID, func(p plan.Progress) {
		if p.Done && p.Phase == plan.PhaseBuild {
			done[p.Subject] = p.Action
		}
	}); err != nil {
		t.Fatal(err)
	}
	return done
}

// TestMonths proves on real flights that twelve appended months give the answers of a full build, through a restart and an attempt that is
// given up, that a month delivered again changes nothing, and that a corrected month changes its own rows and no others.
func TestMonths(t *testing.T) {
	c := nodetest.Config(t, filepath.Join(t.TempDir(), "node"))
	n := nodetest.Open(t, c, bootstrap.Real())
	files := months(t)
	n.Deploy(t, files)
	month := func(i int) string {
		t.Helper()
		f, err := os.Open(filepath.Join(nodetest.Root(t), "examples", "flights", "data", fmt.Sprintf("flights-2013-%02d.csv.gz", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		// A tenth of each month is enough, and every day and carrier is in it.
		var some []string
		for i, line := range strings.Split(string(text), "\n") {
			if i == 0 || i%10 == 1 {
				some = append(some, line)
			}
		}
		return strings.Join(some, "\n") + "\n"
	}
	put := func(name, content string) { write(t, filepath.Join(n.Sources, name), content) }
	same := func(when string) string {
		t.Helper()
		want := n.Ask(t, "anew", nil)
		for _, name := range []string{"appended", "upserted", "parts"} {
			if got := n.Ask(t, name, nil); got != want {
				t.Fatalf("%s: %s answers\n%s, and the full build\n%s", when, name, got, want)
			}
		}
		return want
	}
	going := map[string]plan.Action{"anew": plan.Rebuild, "appended": plan.Append, "upserted": plan.Upsert, "parts": plan.Replace}
	for i := 1; i <= 12; i++ {
		put(fmt.Sprintf("f%02d.csv", i), month(i))
		if i == 5 {
			// A check that no row passes lets the attempt commit, and be given up.
			failing := nodetest.Replace(files, "models/fixed.sql", "/*---\nchecks: [{row_count: {min: 2}}]\n---*/\nSELECT 1 AS one")
			n.Deploy(t, failing)
			if _, _, err := n.TryRefresh(t); err == nil {
				t.Fatal("the check did not fail")
			}
			n.Deploy(t, files)
		}
		done := refreshed(t, n)
		if i > 1 && fmt.Sprint(done) != fmt.Sprint(going) {
			t.Errorf("month %d was worked in by %v", i, done)
		}
		same(fmt.Sprintf("month %d", i))
		if i == 8 {
			n.Close(t)
			n = nodetest.Open(t, c, bootstrap.Real())
			same("after a restart")
		}
	}
	if got := strings.Count(n.Ask(t, "anew", nil), "],["); got != 11 {
		t.Fatalf("%d months were answered", got+1)
	}

	before := same("all months")
	put("f99.csv", month(6))
	if done := refreshed(t, n); len(done) != 0 {
		t.Errorf("a month delivered twice was worked in by %v", done)
	}
	if after := same("a month delivered twice"); after != before {
		t.Errorf("a month delivered twice changed the answers to\n%s", after)
	}
	// It stands under the other name from now on.
	if err := os.Remove(filepath.Join(n.Sources, "f06.csv")); err != nil {
		t.Fatal(err)
	}
	if done := refreshed(t, n); len(done) != 0 {
		t.Errorf("a month under another name was worked in by %v", done)
	}

	corrected := strings.Split(strings.TrimSuffix(month(3), "\n"), "\n")
	put("f03.csv", strings.Join(corrected[:len(corrected)-100], "\n")+"\n")
	if done := refreshed(t, n); done["appended"] != plan.Rebuild || done["parts"] != plan.Replace || done["upserted"] != plan.Upsert {
		t.Errorf("a corrected month was worked in by %v", done)
	}
	rows := func(text string) []string { return strings.Split(text, "],[") }
	old, now := rows(before), rows(n.Ask(t, "parts", nil))
	for i := range old {
		if (old[i] == now[i]) != (i != 2) {
			t.Errorf("month %d was %s, and is %s", i+1, old[i], now[i])
		}
	}
	if want := n.Ask(t, "anew", nil); strings.Join(now, "],[") != want || n.Ask(t, "appended", nil) != want {
		t.Error("the corrected month is not what a full build makes of it")
	}
	// A row that the new file lacks is not taken away by its key.
	if up := rows(n.Ask(t, "upserted", nil)); !slices.Equal(up, old) {
		t.Errorf("upserting a file with fewer rows changed %v to %v", old, up)
	}
}
