package refresh

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

var (
	goodMark = Mark{Kind: MarkRefresh, Lineage: "l", Workspace: "w", Run: "r", Attempt: 1, Fence: 3, Base: 5, Release: "rel", Plan: "plan"}
	goodFile = File{Path: "a.parquet", Size: 1, SHA256: project.DigestOf([]byte("a"))}
)

// Proves that a mark and its text are one to one, and that a text which is nearly a mark is none.
func TestMarkText(t *testing.T) {
	for _, m := range []Mark{goodMark, {Kind: MarkInit, Lineage: "l"}} {
		if got, ok := ParseMark(m.Encode()); !ok || got != m {
			t.Errorf("%s came back as %+v, %v", m.Encode(), got, ok)
		}
	}
	text := goodMark.Encode()
	for _, s := range []string{"", "{}", "null", "[]", " " + text, text + " ", strings.Replace(text, `"run":"r"`, `"run":"r","extra":1`, 1),
		strings.Replace(text, `"fence":3`, `"fence":3.0`, 1), strings.Replace(text, `"kind"`, `"Kind"`, 1), `{"kind":"refresh","base":0}`} {
		if m, ok := ParseMark(s); ok {
			t.Errorf("%q is taken for the mark %+v", s, m)
		}
	}
}

// Proves that no single field of a refresh mark can be missing, and that fences and attempts begin at 1.
func TestMarkIsComplete(t *testing.T) {
	if err := goodMark.validate(); err != nil {
		t.Fatal(err)
	}
	for what, breakIt := range map[string]func(*Mark){
		"kind": func(m *Mark) { m.Kind = "" }, "init": func(m *Mark) { m.Kind = MarkInit }, "lineage": func(m *Mark) { m.Lineage = "" },
		"workspace": func(m *Mark) { m.Workspace = "" }, "run": func(m *Mark) { m.Run = "" }, "attempt": func(m *Mark) { m.Attempt = 0 },
		"fence": func(m *Mark) { m.Fence = 0 }, "negative fence": func(m *Mark) { m.Fence = -1 }, "base": func(m *Mark) { m.Base = -1 },
		"release": func(m *Mark) { m.Release = "" }, "plan": func(m *Mark) { m.Plan = "" },
	} {
		m := goodMark
		breakIt(&m)
		if err := m.validate(); fail.KindOf(err) != fail.Corrupt {
			t.Errorf("%s: got %v", what, err)
		}
		if _, err := Load(Row{Stage: StageBegun, Mark: m}); fail.KindOf(err) != fail.Corrupt {
			t.Errorf("%s: loaded with %v", what, err)
		}
	}
}

// Proves that only the attempt's very own mark, on a snapshot newer than its base, proves its commit.
func TestProved(t *testing.T) {
	b := Begun{attempt{goodMark}}
	for _, breakIt := range []func(*Mark){
		func(m *Mark) { m.Kind = MarkInit }, func(m *Mark) { m.Lineage = "x" }, func(m *Mark) { m.Workspace = "x" }, func(m *Mark) { m.Run = "x" },
		func(m *Mark) { m.Attempt++ }, func(m *Mark) { m.Fence++ }, func(m *Mark) { m.Base++ }, func(m *Mark) { m.Release = "x" }, func(m *Mark) { m.Plan = "x" },
	} {
		m := goodMark
		breakIt(&m)
		if _, err := b.Proved(m, 6); fail.CodeOf(err) != "foreign_mark" {
			t.Errorf("the mark %s proved a commit of %s: %v", m.Encode(), goodMark.Encode(), err)
		}
	}
	for at, ok := range map[serving.Snapshot]bool{-1: false, 0: false, 4: false, 5: false, 6: true, 100: true} {
		if c, err := b.Proved(goodMark, at); (err == nil) != ok || ok && c.Snapshot() != at {
			t.Errorf("snapshot %d over base 5: %v", at, err)
		}
	}
	if _, err := (Begun{}).Proved(Mark{}, 0); err == nil {
		t.Error("the zero attempt was proved at the zero snapshot")
	}
}

// Proves that files without a size or digest are refused, that no file at all is fine (a table may be empty), and that what was
// given is copied.
func TestSynced(t *testing.T) {
	c := Committed{attempt{goodMark}, 6}
	for _, f := range []File{{}, {Path: "a"}, {Path: "a", Size: 1}, {Path: "a", Size: 1, SHA256: "abc"}, {Size: 1, SHA256: goodFile.SHA256}, {Path: "a", Size: -1, SHA256: goodFile.SHA256}} {
		if _, err := c.Synced([]File{goodFile, f}); fail.CodeOf(err) != "bad_file_record" {
			t.Errorf("file %+v: %v", f, err)
		}
	}
	files := []File{goodFile}
	d, err := c.Synced(files)
	if err != nil {
		t.Fatal(err)
	}
	files[0].Path = "changed"
	if d.Files()[0] != goodFile {
		t.Error("the candidate shares its files with its maker")
	}
	if _, err := c.Synced(nil); err != nil {
		t.Error(err)
	}
}

// Proves that one failed check is enough to refuse a candidate, and that every failed check is named at its place.
func TestJudged(t *testing.T) {
	d := Durable{Committed{attempt{goodMark}, 6}, nil}
	at := project.Position{File: "models/m.sql", Line: 3, Column: 5}
	_, err := d.Judged([]CheckResult{{Model: "m", Check: "unique(a)", OK: true}, {Model: "m", Check: "not_null(b)", At: at, Detail: "3 of 9 rows have b NULL"}, {Model: "n", Check: "row_count(1..)", Detail: "0 rows"}})
	if fail.CodeOf(err) != "checks_failed" || fail.KindOf(err) != fail.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, says := range []string{"2 of 3 checks failed", "models/m.sql:3:5", "not_null(b)", "3 of 9 rows", "row_count(1..)"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not say %q: %v", says, err)
		}
	}
	// What failed is shown by its first row, cut; a warning stops nothing; and a message stays short however many checks fail.
	many := []CheckResult{{Model: "m", Check: "range(b: 1..)", At: at, Sample: `{"columns":["b","c"],"rows":[[0,"` + strings.Repeat("ü", 200) + `"],[-1,"x"]]}`}, {Model: "m", Check: "unique(warned)", Severity: project.SeverityWarn}}
	for range 500 {
		many = append(many, CheckResult{Model: "m", Check: "unique(a)", Sample: "{}"})
	}
	_, err = d.Judged(many)
	for _, says := range []string{"501 of 502 checks failed", ", such as b=0 c=\"üüü", "ü…", "and 451 more checks failed"} {
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "warned") || len(err.Error()) > 10_000 {
			t.Errorf("the error does not say %q: %v", says, err)
		}
	}
	v, err := d.Judged([]CheckResult{{Model: "m", Check: "unique(a)", OK: true}})
	if err != nil || len(v.Checks()) != 1 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// Proves that a run keeps no more samples than fit, the first ones, and every result, and leaves what it was given alone.
func TestBounded(t *testing.T) {
	var results []CheckResult
	for i := range 200 {
		results = append(results, CheckResult{Check: fmt.Sprintf("unique(c%d)", i), Sample: strings.Repeat("x", 6<<10)})
	}
	kept, bytes := 0, 0
	for i, r := range Bounded(results) {
		if r.Check != results[i].Check || r.Kind() != project.Unique || results[i].Sample == "" {
			t.Fatalf("result %d is %s", i, r.Check)
		}
		if r.Sample != "" {
			kept, bytes = kept+1, bytes+len(r.Sample)
		}
	}
	if bytes > maxSampleBytes || kept != maxSampleBytes/(6<<10) {
		t.Errorf("%d samples of %d bytes are kept", kept, bytes)
	}
}

// row is what storage keeps of a candidate.
func row(c Candidate) Row {
	r := Row{Stage: c.Stage(), Mark: c.Mark()}
	switch c := c.(type) {
	case Begun:
	case Committed:
		r.Snapshot = c.Snapshot()
	case Durable:
		r.Snapshot, r.Files = c.Snapshot(), c.Files()
	case Validated:
		r.Snapshot, r.Files, r.Checks = c.Snapshot(), c.Files(), c.Checks()
	case Orphan:
		r.Snapshot, r.Reason = c.Snapshot(), c.Reason()
	}
	return r
}

// Proves, over every combination of what a stored row can hold, that Load accepts exactly the rows that transitions can leave,
// and gives back the very candidate that was stored.
func TestLoadAcceptsExactlyTheReachable(t *testing.T) {
	reachable := map[string]Candidate{}
	key := func(r Row) string {
		// An orphan's row keeps the files and checks that were recorded before it was given up.
		if r.Stage == StageOrphan {
			r.Files, r.Checks = nil, nil
		}
		return fmt.Sprintf("%s %d %v %v %q", r.Stage, r.Snapshot, r.Files, r.Checks, r.Reason)
	}
	keep := func(c Candidate) {
		reachable[key(row(c))] = c
		orphan := Abandon(c, "why")
		reachable[key(row(orphan))] = orphan
	}
	files := [][]File{nil, {goodFile}, {goodFile, {Path: "b"}}}
	checks := [][]CheckResult{nil, {{Check: "c", OK: true}}, {{Check: "c", OK: true}, {Check: "d"}}}
	snapshots := []serving.Snapshot{-1, 0, 1, 5, 6}
	b := Begun{attempt{goodMark}}
	keep(b)
	for _, at := range snapshots {
		c, err := b.Proved(goodMark, at)
		if err != nil {
			continue
		}
		keep(c)
		for _, fs := range files {
			d, err := c.Synced(fs)
			if err != nil {
				continue
			}
			keep(d)
			for _, cs := range checks {
				if v, err := d.Judged(cs); err == nil {
					keep(v)
				}
			}
		}
	}
	tried, accepted := 0, 0
	for _, stage := range []Stage{"", StageBegun, StageCommitted, StageDurable, StageValidated, StageActivated, StageOrphan, "other"} {
		for _, at := range snapshots {
			for _, fs := range files {
				for _, cs := range checks {
					for _, reason := range []string{"", "why"} {
						r := Row{Stage: stage, Mark: goodMark, Snapshot: at, Files: fs, Checks: cs, Reason: reason}
						want, ok := reachable[key(r)]
						got, err := Load(r)
						tried++
						switch {
						case ok && (err != nil || !reflect.DeepEqual(got, want)):
							t.Errorf("row %+v: got %+v, %v; want %+v", r, got, err, want)
						case !ok && (err == nil || fail.KindOf(err) != fail.Corrupt):
							t.Errorf("row %+v, which cannot be, was loaded as %+v, %v", r, got, err)
						case ok:
							accepted++
						}
					}
				}
			}
		}
	}
	if tried != 8*5*3*3*2 || accepted == 0 {
		t.Errorf("tried %d rows and accepted %d", tried, accepted)
	}
}

// Proves that giving up keeps the snapshot that the candidate had, and that the first reason stays.
func TestAbandon(t *testing.T) {
	b := Begun{attempt{goodMark}}
	c := Committed{b.attempt, 6}
	d := Durable{c, nil}
	for _, x := range []struct {
		candidate Candidate
		at        serving.Snapshot
	}{{b, 0}, {c, 6}, {d, 6}, {Validated{d, nil}, 6}} {
		o := Abandon(x.candidate, "why")
		if o.Snapshot() != x.at || o.Reason() != "why" || o.Mark() != goodMark || o.Stage() != StageOrphan {
			t.Errorf("%T became %+v", x.candidate, o)
		}
		if again := Abandon(o, "other"); again != o {
			t.Errorf("an orphan became %+v", again)
		}
	}
}
