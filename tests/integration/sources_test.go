package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leapview/adapters/mem"
	"leapview/bootstrap"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
	"leapview/tests/nodetest"
)

// declaring is a project whose one model gives the rows of one source.
func declaring(source string) []project.File {
	return []project.File{
		{Path: "leapview.yaml", Content: []byte("name: shop")}, {Path: "sources/src.yaml", Content: []byte(source)},
		{Path: "models/m.sql", Content: []byte("SELECT * FROM src")}, {Path: "endpoints/all.sql", Content: []byte("SELECT * FROM m ORDER BY ALL")},
	}
}

// TestSourcesThatOthersGuess proves, over whole refreshes, that the inputs which other programs answer with wrong values give the right ones
// here, or a refusal at the line that says why.
func TestSourcesThatOthersGuess(t *testing.T) {
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), bootstrap.Real())
	db := bare(t)
	sampled := "v\n" + strings.Repeat("12345\n", 30_000) + "00501\n"
	for _, tc := range []struct {
		name, source string
		files        map[string]string
		// query replaces the endpoint that gives all rows.
		query, rows, says string
	}{
		{"leading zeros behind a sample that looks like numbers", "location: a.csv\nformat: csv\ncolumns: {v: VARCHAR}", map[string]string{"a.csv": sampled},
			"SELECT min(v) AS low, count(*) AS n FROM m", `[["00501",30001]]`, ""},
		{"days whose order the data does not say", "location: a.csv\nformat: csv\ncolumns: {v: DATE}", map[string]string{"a.csv": "v\n01/02/2024\n05/06/2024\n"},
			"", "", "a.csv:2:1: column \"v\" is declared DATE"},
		{"days in the declared order", "location: a.csv\nformat: csv\ndate_format: \"%m/%d/%Y\"\ncolumns: {v: DATE}", map[string]string{"a.csv": "v\n01/02/2024\n05/06/2024\n"},
			"", `[["2024-01-02"],["2024-05-06"]]`, ""},
		{"days in another order than declared", "location: a.csv\nformat: csv\ndate_format: \"%m/%d/%Y\"\ncolumns: {v: DATE}", map[string]string{"a.csv": "v\n01/02/2024\n13/02/2024\n"},
			"", "", "a.csv:3:1: column \"v\" is declared DATE, which \"13/02/2024\" is not"},
		{"several Parquet files, the second one with fractions", "location: p*.parquet\nformat: parquet\ncolumns: {v: INTEGER}", map[string]string{"p1.parquet": "SELECT 1 AS v", "p2.parquet": "SELECT 2.5::DOUBLE AS v"},
			"", "", "p2.parquet: column \"v\" is DOUBLE in the file"},
		{"several Parquet files, declared as what holds both", "location: p*.parquet\nformat: parquet\ncolumns: {v: DOUBLE}", map[string]string{"p1.parquet": "SELECT 1 AS v", "p2.parquet": "SELECT 2.5::DOUBLE AS v"},
			"", "[[1],[2.5]]", ""},
		{"several Parquet files of exact types", "location: p*.parquet\nformat: parquet\ntypes: exact\ncolumns: {v: DOUBLE}", map[string]string{"p1.parquet": "SELECT 1.5::DOUBLE AS v", "p2.parquet": "SELECT 2 AS v"},
			"", "", "p2.parquet: column \"v\" is INTEGER in the file"},
		{"several Parquet files, the second one without a column", "location: p*.parquet\nformat: parquet\ncolumns: {v: {type: INTEGER, from: V 1}}", map[string]string{"p1.parquet": "SELECT 1 AS \"V 1\"", "p2.parquet": "SELECT 2 AS v"},
			"", "", "p2.parquet: the file lacks the column \"V 1\""},
		{"a Parquet column under another name", "location: p*.parquet\nformat: parquet\ncolumns: {v: {type: INTEGER, from: V 1}}", map[string]string{"p1.parquet": "SELECT 1 AS \"V 1\""}, "", "[[1]]", ""},
		{"big JSON integers beside a fraction", "location: a.json\nformat: json\ncolumns: {id: BIGINT}", map[string]string{"a.json": "[{\"id\":9007199254740993},\n{\"id\":1.5}]"},
			"", "", "a.json:2:1: column \"id\" is declared BIGINT, which \"1.5\" is not"},
		{"big JSON integers", "location: a.json\nformat: json\ncolumns: {id: BIGINT}", map[string]string{"a.json": "[{\"id\":9007199254740993},{\"id\":-9223372036854775808}]"}, "", "[[-9223372036854775808],[9007199254740993]]", ""},
		{"a number with thirty digits", "location: a.csv\nformat: csv\ncolumns: {id: \"DECIMAL(38,0)\"}", map[string]string{"a.csv": "id\n123456789012345678901234567890\n9007199254740993\n"},
			"", "[[9007199254740993],[123456789012345678901234567890]]", ""},
		{"a number beyond a double", "location: a.json\nformat: ndjson\ncolumns: {v: DOUBLE}", map[string]string{"a.json": "{\"v\":1}\n{\"v\":1e400}\n"}, "", "", "a.json:2:1: column \"v\" is declared DOUBLE"},
		{"nested JSON kept as its text", "location: a.json\nformat: ndjson\ncolumns: {v: JSON}", map[string]string{"a.json": "{\"v\":{\"n\": 12345678901234567890.10, \"a\":[1,  2]}}\n"}, "", `[["{\"n\": 12345678901234567890.10, \"a\":[1,  2]}"]]`, ""},
		{"nested JSON that is declared a text", "location: a.json\nformat: ndjson\ncolumns: {v: VARCHAR}", map[string]string{"a.json": "{\"v\":{}}\n"}, "", "", "a.json:1:1: key \"v\" is declared VARCHAR, but the value \"{}\" is an object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, content := range tc.files {
				path := filepath.Join(n.Sources, name)
				if strings.HasSuffix(name, ".parquet") {
					parquet(t, db, path, content)
				} else {
					write(t, path, content)
				}
				defer func() {
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
				}()
			}
			files := declaring(tc.source)
			if tc.query != "" {
				files = nodetest.Replace(files, "endpoints/all.sql", tc.query)
			}
			n.Deploy(t, files)
			if tc.says == "" {
				n.Refresh(t)
				if got := n.Ask(t, "all", nil); got != tc.rows {
					t.Errorf("answered %s, want %s", got, tc.rows)
				}
				return
			}
			if _, _, err := n.TryRefresh(t); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("refreshed: %v, want %q", err, tc.says)
			}
		})
	}
}

// TestSourcesWithinBounds proves that a refresh which brings in less, more or older than its source allows leaves the active snapshot and its
// answers as they were, that what it is held against is what was activated and not what was refused, and that this is known after a restart.
func TestSourcesWithinBounds(t *testing.T) {
	clock := &mem.Clock{}
	parts := bootstrap.Real()
	parts.Clock = func() ports.Clock { return clock }
	c := nodetest.Config(t, filepath.Join(t.TempDir(), "node"))
	n := nodetest.Open(t, c, parts)
	path := func(i int) string { return filepath.Join(n.Sources, fmt.Sprintf("o%d.csv", i)) }
	deliver := func(i, rows int) {
		t.Helper()
		write(t, path(i), "v\n"+strings.Repeat("1\n", rows))
		if err := os.Chtimes(path(i), time.Time{}, clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	n.Deploy(t, nodetest.Replace(declaring("location: o*.csv\nformat: csv\nbounds: {max_files: 2, max_bytes: 2100, max_rows: 1000, min_rows: 2, max_shrink_percent: 50, freshness: 36h}\ncolumns: {v: INTEGER}"),
		"endpoints/all.sql", "SELECT count(*) AS n FROM m"))
	refreshed := func(rows string) serving.Pointer {
		t.Helper()
		p := n.Refresh(t)
		if got := n.Ask(t, "all", nil); got != rows {
			t.Fatalf("answered %s, want %s", got, rows)
		}
		return p
	}
	refused := func(code, says, rows string) {
		t.Helper()
		_, _, err := n.TryRefresh(t)
		if err == nil || fail.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
			t.Errorf("refreshed: %v, want %s, %q", err, code, says)
		}
		if got := n.Ask(t, "all", nil); got != rows {
			t.Errorf("answered %s after %s, want %s", got, code, rows)
		}
	}
	deliver(1, 900)
	refreshed("[[900]]")
	deliver(1, 449)
	refused("source_shrank", "bounds.max_shrink_percent = 50", "[[900]]")
	n.Close(t)
	n = nodetest.Open(t, c, parts)
	deliver(1, 0)
	refused("source_too_few_rows", "bounds.min_rows = 2", "[[900]]")
	// What was refused is no measure.
	deliver(1, 440)
	refused("source_shrank", "built from 900", "[[900]]")
	deliver(1, 450)
	refreshed("[[450]]")
	deliver(1, 230)
	refreshed("[[230]]")
	deliver(1, 1001)
	refused("source_rows", "bounds.max_rows = 1000", "[[230]]")
	deliver(1, 1050)
	refused("source_bytes", "bounds.max_bytes = 2100", "[[230]]")
	deliver(1, 300)
	deliver(2, 1)
	deliver(3, 1)
	refused("source_files", "bounds.max_files = 2", "[[230]]")
	if err := os.Remove(path(3)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path(1), time.Time{}, clock.Now().Add(-100*time.Hour)); err != nil {
		t.Fatal(err)
	}
	refreshed("[[301]]")
	clock.Set(clock.Now().Add(37 * time.Hour))
	refused("source_stale", "bounds.freshness = 36h", "[[301]]")
}

// TestColumnsThatNobodyDeclared proves that a column which a file has beyond the declared ones fails the refresh, and that a source which says
// so goes on without it, which its run tells.
func TestColumnsThatNobodyDeclared(t *testing.T) {
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), bootstrap.Real())
	write(t, filepath.Join(n.Sources, "a.csv"), "id,note,v\n1,\"new\",x\n")
	declaration := "location: a.csv\nformat: csv\ncolumns: {id: INTEGER, v: VARCHAR}\n"
	n.Deploy(t, declaring(declaration))
	if _, _, err := n.TryRefresh(t); err == nil || !strings.Contains(err.Error(), "a.csv:1:1: the header has a column \"note\"") {
		t.Errorf("refreshed: %v", err)
	}
	n.Deploy(t, declaring(declaration+"on_change: ignore\n"))
	_, run, err := n.TryRefresh(t)
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Ask(t, "all", nil); got != `[[1,"x"]]` {
		t.Errorf("answered %s", got)
	}
	var warnings []string
	for _, s := range n.Worker.Steps(run) {
		if s.Warning != "" {
			warnings = append(warnings, fmt.Sprintf("%s %t %s: %s", s.Phase, s.Done, s.Subject, s.Warning))
		}
	}
	if want := `[stage true src: sources/src.yaml: columns that source "src" does not declare were left out: "note"]`; fmt.Sprint(warnings) != want {
		t.Errorf("the run warns %s, want %s", warnings, want)
	}
}

// TestCasesUseDeclaredNames proves that a project's own cases write a source's columns as they are declared, whatever its files call them and
// however they write their values.
func TestCasesUseDeclaredNames(t *testing.T) {
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), bootstrap.Real())
	bundle, err := project.Pack(append(declaring("location: a.csv\nformat: csv\ndecimal: \",\"\ncolumns: {id: {type: DOUBLE, from: Nr}, day: {type: DATE, from: Tag, format: \"%d.%m.%Y\"}}"),
		project.File{Path: "tests/m.yaml", Content: []byte("model: m\ncases: [{name: one, given: {src: [{id: 1.5, day: \"2024-02-29\"}]}, expect: [{id: 1.5, day: \"2024-02-29\"}]}]")}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.Author.Validate(t.Context(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := n.Author.Test(t.Context(), d, d.Project.Tests[0]); err != nil || !got.OK() {
		t.Errorf("%+v, %v", got, err)
	}
}
