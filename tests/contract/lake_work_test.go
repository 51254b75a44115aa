package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// lakeWorkCases are the parts of the contract of ports.Build that are about going on from a base.
var lakeWorkCases = []struct {
	proves string
	run    func(*testing.T, store)
}{
	{"new files are appended to the base", lakeAppends},
	{"new files take the place of rows with their key, file after file", lakeUpserts},
	{"new files take the place of their partitions, NULL's too", lakeReplaces},
	{"a key that is NULL or repeated is named, and nothing is committed", lakeKeys},
	{"what an attempt left that was given up is no part of the next commit", lakeOrphans},
	{"a table that was dropped, emptied or is gone at the head comes back from the base", lakeRevives},
	{"a commit over an older base holds what that base held", lakeRollsBack},
	{"tables of neither the base nor the release are dropped, and older snapshots keep them", lakeDrops},
	{"a table that is kept and equal costs no file", lakeKeeps},
	{"a base without the table is corrupt", lakeBaseless},
}

// dealsOf are models of every mode over a source of flights: all rows, and those of one carrier and day.
func dealsOf(t *testing.T, s store) plan.Release {
	t.Helper()
	model := func(name string, mode project.Mode, key ...string) project.Model {
		m := modelOf(name, "SELECT id, carrier, delay FROM flights")
		m.Filling = project.Filling{Mode: mode, Key: key, KeyAt: project.Position{File: m.At.File, Line: 1, Column: 9}}
		return m
	}
	return compile(t, s, projectOf(model("appended", project.ModeAppend), model("upserted", project.ModeUpsert, "id"), model("parts", project.ModeReplace, "carrier"),
		modelOf("counted", "SELECT carrier, count(*) AS n FROM appended GROUP BY carrier"), model("fixed", "")))
}

// flights are the lines of a file, "id carrier delay" each.
func flights(lines ...string) string {
	text := "id,carrier,delay,day,late,distance\n"
	for _, l := range lines {
		f := strings.Split(l, " ")
		text += f[0] + "," + f[1] + "," + f[2] + ",2024-01-01,false,1\n"
	}
	return text
}

// deal is one commit of the release: each file is a part, and the steps of the models are as given; the others are kept.
type deal struct {
	fence refresh.Fence
	base  serving.Snapshot
	files []string
	steps map[string]plan.Action
	// keep are the physical tables that the base has.
	keep []string
}

func (d deal) mark(s store, r plan.Release) refresh.Mark {
	m := markOf(s, "sales", r, d.fence)
	m.Base = d.base
	return m
}

// commit gives the scope of what was committed, or the error.
func (d deal) commit(t *testing.T, s store, r plan.Release) (serving.Scope, error) {
	t.Helper()
	b, err := s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	defer func() { mustLake(t, b.Close()) }()
	var parts []int
	for i, f := range d.files {
		_, err := b.Stage(t.Context(), flightsSource(), []ports.Artifact{s.stage(t, fmt.Sprintf("f%d_%d.csv", d.fence, i), []byte(f))})
		mustLake(t, err)
		parts = append(parts, i)
	}
	var steps []plan.Step
	for _, m := range r.Models {
		step := plan.Step{Model: m, Action: plan.Keep}
		if a, ok := d.steps[m.Name]; ok {
			step.Action = a
		}
		if step.Action != plan.Keep && m.Input != "" {
			step.Parts = parts
		}
		steps = append(steps, step)
	}
	mustLake(t, b.Create(t.Context(), r.Models, d.keep))
	if err := b.Commit(t.Context(), steps, d.mark(s, r), ignore); err != nil {
		return serving.Scope{}, err
	}
	at, _, found, err := s.lake.Find(t.Context(), d.mark(s, r))
	mustLake(t, err)
	if !found {
		t.Fatalf("fence %d did not commit", d.fence)
	}
	return serving.Scope{Workspace: "sales", Snapshot: at, Tables: r.Tables()}, nil
}

func (d deal) must(t *testing.T, s store, r plan.Release) serving.Scope {
	t.Helper()
	scope, err := d.commit(t, s, r)
	mustLake(t, err)
	return scope
}

func everyStep(r plan.Release, first plan.Action) map[string]plan.Action {
	steps := map[string]plan.Action{}
	for _, m := range r.Models {
		steps[m.Name] = first
	}
	return steps
}

// goingOn is what a refresh does when there are only new files.
var goingOn = map[string]plan.Action{"appended": plan.Append, "upserted": plan.Upsert, "parts": plan.Replace, "counted": plan.Rebuild}

func wantTable(t *testing.T, s store, at serving.Scope, model, want string) {
	t.Helper()
	t.Run(fmt.Sprintf("%s at %d", model, at.Snapshot), func(t *testing.T) {
		t.Helper()
		sql := "SELECT * FROM " + model + " ORDER BY id, carrier, delay"
		if model == "counted" {
			sql = "SELECT * FROM counted ORDER BY carrier"
		}
		wantRows(t, ask(t, s, at, sql), want)
	})
}

func lakeAppends(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5", "2 Bb 6")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	second := deal{fence: 2, base: first.Snapshot, files: []string{flights("3 Aa 7"), flights("1 Aa 5")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, first, "appended", `[[1,"Aa",5],[2,"Bb",6]]`)
	wantTable(t, s, second, "appended", `[[1,"Aa",5],[1,"Aa",5],[2,"Bb",6],[3,"Aa",7]]`)
	wantTable(t, s, second, "counted", `[["Aa",3],["Bb",1]]`)
	wantTable(t, s, second, "fixed", `[[1,"Aa",5],[2,"Bb",6]]`)
	third := deal{fence: 3, base: second.Snapshot, files: []string{flights()}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, third, "appended", `[[1,"Aa",5],[1,"Aa",5],[2,"Bb",6],[3,"Aa",7]]`)
}

func lakeUpserts(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5", "2 Bb 6"), flights("2 Cc 7", "3 Dd 8")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	wantTable(t, s, first, "upserted", `[[1,"Aa",5],[2,"Cc",7],[3,"Dd",8]]`)
	second := deal{fence: 2, base: first.Snapshot, files: []string{flights("3 Ee 9", "4 Ff 1"), flights("4 Gg 2")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, first, "upserted", `[[1,"Aa",5],[2,"Cc",7],[3,"Dd",8]]`)
	wantTable(t, s, second, "upserted", `[[1,"Aa",5],[2,"Cc",7],[3,"Ee",9],[4,"Gg",2]]`)
}

func lakeReplaces(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5", "2 Aa 6", "3 Bb 7", "9  1")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	wantTable(t, s, first, "parts", `[[1,"Aa",5],[2,"Aa",6],[3,"Bb",7],[9,null,1]]`)
	second := deal{fence: 2, base: first.Snapshot, files: []string{flights("4 Aa 1", "5 Aa 1", "8  2"), flights("6 Cc 3"), flights()}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, second, "parts", `[[3,"Bb",7],[4,"Aa",1],[5,"Aa",1],[6,"Cc",3],[8,null,2]]`)
}

func lakeKeys(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	for fence, file := range []string{flights("2 Aa 5", "2 Aa 6"), flights(" Aa 5")} {
		d := deal{fence: refresh.Fence(10 + fence), base: first.Snapshot, files: []string{flights("7 Aa 1"), file}, steps: goingOn}
		_, err := d.commit(t, s, r)
		problems, ok := asProblems(err)
		if !ok || problems[0].At != (project.Position{File: "models/upserted.sql", Line: 1, Column: 9}) || !strings.Contains(problems[0].Message, fmt.Sprintf("f%d_1.csv", d.fence)) {
			t.Errorf("%q: %v", file, err)
		}
		if _, _, found, err := s.lake.Find(t.Context(), d.mark(s, r)); found || err != nil {
			t.Errorf("%q was committed: %v", file, err)
		}
	}
	next := deal{fence: 20, base: first.Snapshot, files: []string{flights("2 Bb 1")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, next, "upserted", `[[1,"Aa",5],[2,"Bb",1]]`)
}

func lakeOrphans(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5", "2 Bb 6")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	// Two attempts commit over the base, one after the other, and neither is activated: one adds, the other builds everything anew.
	one := deal{fence: 2, base: first.Snapshot, files: []string{flights("1 Xx 1", "3 Aa 7")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, one, "upserted", `[[1,"Xx",1],[2,"Bb",6],[3,"Aa",7]]`)
	two := deal{fence: 3, base: first.Snapshot, files: []string{flights("8 Yy 8")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	wantTable(t, s, two, "fixed", `[[8,"Yy",8]]`)
	next := deal{fence: 4, base: first.Snapshot, files: []string{flights("4 Aa 9", "2 Aa 1")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, next, "appended", `[[1,"Aa",5],[2,"Aa",1],[2,"Bb",6],[4,"Aa",9]]`)
	wantTable(t, s, next, "upserted", `[[1,"Aa",5],[2,"Aa",1],[4,"Aa",9]]`)
	wantTable(t, s, next, "parts", `[[2,"Aa",1],[2,"Bb",6],[4,"Aa",9]]`)
	wantTable(t, s, next, "counted", `[["Aa",3],["Bb",1]]`)
	wantTable(t, s, next, "fixed", `[[1,"Aa",5],[2,"Bb",6]]`)
	// Only one table is worked on, and the others are those of the base all the same.
	alone := deal{fence: 5, base: first.Snapshot, files: []string{flights("5 Zz 1")}, steps: map[string]plan.Action{"fixed": plan.Rebuild}}.must(t, s, r)
	wantTable(t, s, alone, "fixed", `[[5,"Zz",1]]`)
	for _, m := range []string{"appended", "upserted", "parts"} {
		wantTable(t, s, alone, m, `[[1,"Aa",5],[2,"Bb",6]]`)
	}
	wantTable(t, s, alone, "counted", `[["Aa",1],["Bb",1]]`)
	wantTable(t, s, first, "appended", `[[1,"Aa",5],[2,"Bb",6]]`)
}

func lakeRevives(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5", "2 Bb 6")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	// An attempt of another release drops all of the tables but one, and is given up.
	few := compile(t, s, projectOf(r.Models[4].Model))
	deal{fence: 2, base: first.Snapshot, files: []string{flights("9 Qq 9")}, steps: map[string]plan.Action{"fixed": plan.Rebuild}}.must(t, s, few)
	next := deal{fence: 3, base: first.Snapshot, files: []string{flights("3 Aa 7")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, next, "appended", `[[1,"Aa",5],[2,"Bb",6],[3,"Aa",7]]`)
	wantTable(t, s, next, "upserted", `[[1,"Aa",5],[2,"Bb",6],[3,"Aa",7]]`)
	wantTable(t, s, next, "parts", `[[2,"Bb",6],[3,"Aa",7]]`)
	wantTable(t, s, next, "fixed", `[[1,"Aa",5],[2,"Bb",6]]`)
	// An attempt that dies between creating and committing leaves empty tables, or none.
	b, err := s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	mustLake(t, b.Create(t.Context(), few.Models, nil))
	mustLake(t, b.Close())
	again := deal{fence: 4, base: next.Snapshot, files: []string{flights("4 Dd 1")}, steps: map[string]plan.Action{"fixed": plan.Rebuild}}.must(t, s, r)
	wantTable(t, s, again, "upserted", `[[1,"Aa",5],[2,"Bb",6],[3,"Aa",7]]`)
	wantTable(t, s, again, "counted", `[["Aa",2],["Bb",1]]`)
}

func lakeRollsBack(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	second := deal{fence: 2, base: first.Snapshot, files: []string{flights("1 Bb 6")}, steps: goingOn}.must(t, s, r)
	third := deal{fence: 3, base: first.Snapshot, files: []string{flights("2 Cc 7")}, steps: goingOn}.must(t, s, r)
	wantTable(t, s, second, "upserted", `[[1,"Bb",6]]`)
	wantTable(t, s, third, "appended", `[[1,"Aa",5],[2,"Cc",7]]`)
	wantTable(t, s, third, "upserted", `[[1,"Aa",5],[2,"Cc",7]]`)
	wantTable(t, s, third, "parts", `[[1,"Aa",5],[2,"Cc",7]]`)
}

func lakeDrops(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	few := compile(t, s, projectOf(r.Models[4].Model))
	var kept []string
	for _, m := range r.Models[:2] {
		kept = append(kept, m.Table)
	}
	second := deal{fence: 2, base: first.Snapshot, files: []string{flights("2 Bb 6")}, steps: map[string]plan.Action{"fixed": plan.Rebuild}, keep: kept}.must(t, s, few)
	for _, m := range r.Models {
		files, err := s.lake.Files(t.Context(), serving.Scope{Workspace: "sales", Snapshot: second.Snapshot, Tables: map[string]string{m.Name: m.Table}})
		there := m.Name == "fixed" || slices.Contains(kept, m.Table)
		if there != (err == nil) || !there && fail.KindOf(err) != fail.Corrupt && fail.KindOf(err) != fail.Missing {
			t.Errorf("%s has %d files at the second snapshot: %v", m.Name, len(files), err)
		}
		wantTable(t, s, first, m.Name, map[bool]string{true: `[["Aa",1]]`, false: `[[1,"Aa",5]]`}[m.Name == "counted"])
	}
}

func lakeKeeps(t *testing.T, s store) {
	r := dealsOf(t, s)
	first := deal{fence: 1, files: []string{flights("1 Aa 5")}, steps: everyStep(r, plan.Rebuild)}.must(t, s, r)
	second := deal{fence: 2, base: first.Snapshot, files: []string{flights("2 Bb 6")}, steps: map[string]plan.Action{"fixed": plan.Rebuild}}.must(t, s, r)
	for _, m := range r.Models {
		files := func(at serving.Scope) []string {
			got, err := s.lake.Files(t.Context(), serving.Scope{Workspace: "sales", Snapshot: at.Snapshot, Tables: map[string]string{m.Name: m.Table}})
			mustLake(t, err)
			return slices.DeleteFunc(got, func(p string) bool { return !strings.Contains(p, m.Table) })
		}
		if before, after := files(first), files(second); slices.Equal(before, after) != (m.Name != "fixed") || len(before) == 0 {
			t.Errorf("%s had the files %q, and has %q", m.Name, before, after)
		}
	}
}

func lakeBaseless(t *testing.T, s store) {
	r := dealsOf(t, s)
	few := compile(t, s, projectOf(r.Models[4].Model))
	first := deal{fence: 1, files: []string{flights("1 Aa 5")}, steps: everyStep(few, plan.Rebuild)}.must(t, s, few)
	_, err := deal{fence: 2, base: first.Snapshot, files: []string{flights("2 Bb 6")}, steps: goingOn}.commit(t, s, r)
	wantKind(t, err, fail.Corrupt)
}
