package contract

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"leapview/adapters/mem"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

func TestLakeMem(t *testing.T) { lakeSuite(t, memStore) }

func asProblems(err error) (project.Problems, bool) {
	var problems project.Problems
	ok := errors.As(err, &problems)
	return problems, ok
}

// lakeSuite is the contract of ports.Lake and ports.Build.
func lakeSuite(t *testing.T, open opener) {
	for _, c := range []struct {
		proves string
		run    func(*testing.T, store)
	}{
		{"a commit is found by its mark alone", lakeFindsMarks},
		{"a failed model leaves nothing found and the old rows", lakeFailedModel},
		{"a cancelled commit leaves nothing found and the old rows", lakeCancelled},
		{"after a cancel within a commit the mark decides which rows are there", lakeCancelledWithin},
		{"there is one writer, which a second build waits for until its context ends", lakeOneWriter},
		{"a held reading sees its snapshot while a commit lands", lakeHeldReading},
		{"creating a table twice is creating it once, and other columns are refused", lakeCreateTwice},
		{"staged rows are typed, counted, and only what was declared", lakeStages},
		{"what does not fit the declaration is named by file and line", lakeStageRefuses},
		{"headless files, mapped names and other forms of values are read as declared", lakeStagesForms},
		{"a model without rows is committed too", lakeEmptyModel},
		{"models are built in order and progress tells of each", lakeProgress},
		{"workspaces share the lake and nothing else", lakeWorkspaces},
		{"files are what a snapshot's tables need", lakeFiles},
		{"the survey tells lineage, fences and snapshots", lakeSurvey},
		{"what was committed is there after a restart", lakeReopens},
		{"nothing works on a closed build, or in a context that has ended", lakeClosed},
	} {
		t.Run(c.proves, func(t *testing.T) { c.run(t, open(t)) })
	}
	for _, c := range lakeWorkCases {
		t.Run(c.proves, func(t *testing.T) { c.run(t, open(t)) })
	}
}

const oneFlight = "id,carrier,delay,day,late,distance\n9,Zz,1,2024-06-01,false,1.5\n"

func lakeFindsMarks(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	noMark(t, s, "sales", r, 1)
	first := refreshed(t, s, "sales", r, 1, flightRows)
	noMark(t, s, "sales", r, 2)
	noMark(t, s, "other", r, 1)
	second := refreshed(t, s, "sales", r, 2, oneFlight)
	if second.Snapshot <= first.Snapshot {
		t.Errorf("the second commit is snapshot %d, not newer than the first, %d", second.Snapshot, first.Snapshot)
	}
	if again := foundMark(t, s, "sales", r, 1); again.Snapshot != first.Snapshot {
		t.Errorf("the first mark moved from snapshot %d to %d", first.Snapshot, again.Snapshot)
	}
	wantRows(t, ask(t, s, first, "SELECT id FROM trips ORDER BY id"), `[[1],[2],[3],[4]]`)
	wantRows(t, ask(t, s, second, "SELECT id FROM trips ORDER BY id"), `[[9]]`)
}

func lakeFailedModel(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight(),
		modelOf("totals", "SELECT carrier, sum(delay) AS total FROM flights GROUP BY carrier", project.Column{Name: "total", Type: "TINYINT"})))
	first := refreshed(t, s, "sales", r, 1, flightRows)

	b := begun(t, s, "sales", r, "id,carrier,delay,day,late,distance\n5,Aa,100,,,\n6,Aa,100,,,\n")
	err := b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, "sales", r, 2), ignore)
	problems, ok := asProblems(err)
	if !ok || problems[0].At.File != "models/totals.sql" {
		t.Errorf("the failed cast is not a problem of models/totals.sql: %v", err)
	}
	mustLake(t, b.Close())
	noMark(t, s, "sales", r, 2)
	wantRows(t, ask(t, s, first, "SELECT id FROM trips ORDER BY id"), `[[1],[2],[3],[4]]`)

	next := refreshed(t, s, "sales", r, 3, oneFlight)
	wantRows(t, ask(t, s, next, "SELECT id FROM trips"), `[[9]]`)
	wantRows(t, ask(t, s, next, "SELECT carrier, total FROM totals"), `[["Zz",1]]`)
}

func lakeCancelled(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	first := refreshed(t, s, "sales", r, 1, flightRows)
	b := begun(t, s, "sales", r, oneFlight)
	wantKind(t, b.Commit(canceled(t), plan.Anew(r.Models), markOf(s, "sales", r, 2), ignore), fail.Canceled)
	mustLake(t, b.Close())
	noMark(t, s, "sales", r, 2)
	wantRows(t, ask(t, s, first, "SELECT count(*) AS n FROM trips"), `[[4]]`)
	wantRows(t, ask(t, s, refreshed(t, s, "sales", r, 3, oneFlight), "SELECT id FROM trips"), `[[9]]`)
}

func lakeCancelledWithin(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight(), modelOf("copy", "SELECT * FROM trips")))
	first := refreshed(t, s, "sales", r, 1, flightRows)
	// The cancel falls at each of the progress reports in turn: before, between and after the models.
	for n := range 2 * len(r.Models) {
		fence := refresh.Fence(2 + n)
		ctx, cancel := context.WithCancel(t.Context())
		b := begun(t, s, "sales", r, oneFlight)
		seen := 0
		err := b.Commit(ctx, plan.Anew(r.Models), markOf(s, "sales", r, fence), func(plan.Progress) {
			if seen == n {
				cancel()
			}
			seen++
		})
		cancel()
		mustLake(t, b.Close())
		at, _, ok, findErr := s.lake.Find(t.Context(), markOf(s, "sales", r, fence))
		mustLake(t, findErr)
		if !ok {
			if err == nil {
				t.Errorf("cancelled at report %d: Commit says that it went well, and committed nothing", n)
			}
			continue
		}
		scope := serving.Scope{Workspace: "sales", Snapshot: at, Tables: r.Tables()}
		wantRows(t, ask(t, s, scope, "SELECT id FROM trips"), `[[9]]`)
		wantRows(t, ask(t, s, scope, "SELECT id FROM copy"), `[[9]]`)
	}
	wantRows(t, ask(t, s, first, "SELECT count(*) AS n FROM copy"), `[[4]]`)
	wantRows(t, ask(t, s, refreshed(t, s, "sales", r, 99, oneFlight), "SELECT id FROM copy"), `[[9]]`)
}

func lakeOneWriter(t *testing.T, s store) {
	first, err := s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.lake.Begin(ctx, "other")
	wantKind(t, err, fail.Canceled)

	type begin struct {
		build ports.Build
		err   error
	}
	waiting := make(chan begin, 1)
	go func() {
		b, err := s.lake.Begin(t.Context(), "other")
		waiting <- begin{b, err}
	}()
	select {
	case <-waiting:
		t.Error("a second build began while the first was open")
	case <-time.After(50 * time.Millisecond):
	}
	mustLake(t, first.Close())
	mustLake(t, first.Close())
	second := <-waiting
	mustLake(t, second.err)
	// The first build's second Close must not have let a third one in.
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.lake.Begin(ctx, "sales")
	wantKind(t, err, fail.Canceled)
	mustLake(t, second.build.Close())
	third, err := s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	mustLake(t, third.Close())
}

func lakeHeldReading(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	old := refreshed(t, s, "sales", r, 1, flightRows)
	count := statementOf("SELECT count(*) AS n FROM trips")
	q, err := s.reader.Prepare(t.Context(), old, count, nil)
	mustLake(t, err)
	held, err := s.reader.Open(t.Context())
	mustLake(t, err)
	defer func() { mustLake(t, held.Close()) }()
	ask := func(r ports.Reading, q ports.Query, want string) {
		t.Helper()
		a, err := r.Answer(t.Context(), q, serving.Args{}, plenty)
		mustLake(t, err)
		wantRows(t, a, want)
	}
	ask(held, q, `[[4]]`)

	next := refreshed(t, s, "sales", r, 2, oneFlight)
	ask(held, q, `[[4]]`)

	// A newer reading answers from both snapshots, beside the held one.
	newer, err := s.reader.Prepare(t.Context(), next, count, nil)
	mustLake(t, err)
	both, err := s.reader.Open(t.Context())
	mustLake(t, err)
	ask(both, newer, `[[1]]`)
	ask(held, q, `[[4]]`)
	ask(both, q, `[[4]]`)
	mustLake(t, both.Close())
}

func lakeCreateTwice(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	scope := refreshed(t, s, "sales", r, 1, flightRows)
	before, err := s.lake.Survey(t.Context())
	mustLake(t, err)
	b, err := s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	defer func() { mustLake(t, b.Close()) }()
	mustLake(t, b.Create(t.Context(), r.Models[:1], nil))
	after, err := s.lake.Survey(t.Context())
	mustLake(t, err)
	if !slices.Equal(before.Snapshots, after.Snapshots) {
		t.Errorf("creating an existing table made a snapshot: %v became %v", before.Snapshots, after.Snapshots)
	}
	wantRows(t, ask(t, s, scope, "SELECT count(*) AS n FROM trips"), `[[4]]`)

	other := r.Models[0]
	other.Columns = slices.Clone(other.Columns)
	other.Columns[0].Type = "VARCHAR"
	wantKind(t, b.Create(t.Context(), []plan.Model{other}, nil), fail.Corrupt)
}

func lakeStages(t *testing.T, s store) {
	source := flightsSource()
	source.Delimiter = ";"
	source.NullTexts = []string{"NA"}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte("id;carrier;delay;day;late;distance\n3;zipped;;;;\n"))
	mustLake(t, err)
	mustLake(t, z.Close())
	b, err := s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	defer func() { mustLake(t, b.Close()) }()
	staged, err := b.Stage(t.Context(), source, []ports.Artifact{
		s.stage(t, "in/a.csv", []byte("id;carrier;delay;day;late;distance\n1;\"a;\"\"b\";NA;NA;NA;NA\n2;NA;-5;2024-02-29;true;1e3\n4;\"NA\";;;;\n5;\"\";;;;\n")),
		s.stage(t, "in/b.csv.gz", zipped.Bytes()),
		s.stage(t, "in/c.csv", []byte("id;carrier;delay;day;late;distance\n")),
	})
	mustLake(t, err)
	if staged.Rows != 5 {
		t.Errorf("%d rows were staged, want 5", staged.Rows)
	}
	p := projectOf(everyFlight())
	p.Sources[0] = source
	r := compile(t, s, p)
	mustLake(t, b.Create(t.Context(), r.Models[:1], nil))
	mustLake(t, b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, "sales", r, 1), ignore))
	wantRows(t, ask(t, s, foundMark(t, s, "sales", r, 1), "SELECT * FROM trips ORDER BY id"),
		`[[1,"a;\"b",null,null,null,null],[2,null,-5,"2024-02-29",true,1000],[3,"zipped",null,null,null,null],[4,"NA",null,null,null,null],[5,"",null,null,null,null]]`)
}

func lakeStageRefuses(t *testing.T, s store) {
	const header = "id,carrier,delay,day,late,distance\n"
	const good = "1,Aa,5,2024-01-01,true,1.5\n"
	for _, c := range []struct {
		name, content string
		line          int
	}{
		{"text in an integer", header + good + "2,Aa,soon,2024-01-01,true,1.5\n", 3},
		{"fraction in an integer", header + "2,Aa,1.5,2024-01-01,true,1.5\n", 2},
		{"integer out of range", header + good + good + "2,Aa,2147483648,2024-01-01,true,1.5\n", 4},
		{"no such day", header + good + "2,Aa,5,2024-02-30,true,1.5\n", 3},
		{"no boolean", header + good + "2,Aa,5,2024-02-28,maybe,1.5\n", 3},
		{"no number", header + good + "2,Aa,5,2024-02-28,true,far\n", 3},
		{"too few fields", header + good + "2,Aa,5\n", 3},
		{"too many fields", header + good + "2,Aa,5,2024-02-28,true,1.5,more\n", 3},
		{"header names another column", "id,airline,delay,day,late,distance\n" + good, 1},
		{"header lacks a column", "id,carrier,delay,day,late\n1,Aa,5,2024-01-01,true\n", 1},
		{"no header", good, 1},
		{"empty file", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := s.lake.Begin(t.Context(), "sales")
			mustLake(t, err)
			defer func() { mustLake(t, b.Close()) }()
			_, err = b.Stage(t.Context(), flightsSource(), []ports.Artifact{
				s.stage(t, "in/good.csv", []byte(header+good)),
				s.stage(t, "in/bad.csv", []byte(c.content)),
			})
			wantKind(t, err, fail.Invalid)
			problems, ok := asProblems(err)
			if !ok || problems[0].At.File != "in/bad.csv" || problems[0].At.Line != c.line {
				t.Errorf("the problem is not at in/bad.csv:%d: %v", c.line, err)
			}
		})
	}
}

func lakeStagesForms(t *testing.T, s store) {
	source := flightsSource()
	source.Delimiter = ";"
	source.Dialect = project.Dialect{Headless: true, Decimal: ",", Thousands: ".", DateFormat: "%d.%m.%Y"}
	rows := func(source project.Source, name, content string, fence refresh.Fence) string {
		t.Helper()
		b, err := s.lake.Begin(t.Context(), "sales")
		mustLake(t, err)
		defer func() { mustLake(t, b.Close()) }()
		staged, err := b.Stage(t.Context(), source, []ports.Artifact{s.stage(t, name, []byte(content))})
		if err != nil {
			problems, ok := asProblems(err)
			if !ok {
				t.Fatal(err)
			}
			return problems[0].At.String()[:len(name)+2]
		}
		if staged.Rows != 2 || len(staged.Ignored) > 0 {
			t.Errorf("%s: staged %+v", name, staged)
		}
		p := projectOf(everyFlight())
		p.Sources[0] = source
		r := compile(t, s, p)
		mustLake(t, b.Create(t.Context(), r.Models[:1], nil))
		mustLake(t, b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, "sales", r, fence), ignore))
		return string(ask(t, s, foundMark(t, s, "sales", r, fence), "SELECT * FROM trips ORDER BY id").Rows)
	}
	const want = `[[1,"a",-1234,"2024-02-29",true,1234.5],[2,null,5,null,false,0.5]]`
	if got := rows(source, "in/a.csv", "1;a;-1.234;29.02.2024;true;1.234,5\n2;;5;;false;0,5\n", 1); got != want {
		t.Errorf("headless: %s", got)
	}
	for content, line := range map[string]string{"1;a;-1.234;30.02.2024;true;1\n": "1", "1;a;1;;true;1\n2;a;1;;true;1.5\n": "2", "1;a;1.23;;true;1\n": "1"} {
		if got := rows(source, "in/b.csv", content, 2); got != "in/b.csv:"+line {
			t.Errorf("%q: %s", content, got)
		}
	}
	source = flightsSource()
	source.Columns = slices.Clone(source.Columns)
	source.Columns[0].From, source.Columns[1].From = "No.", "id"
	if got := rows(source, "in/c.csv", "No.,id,delay,day,late,distance\n1,a,-1234,2024-02-29,true,1234.5\n2,,5,,false,0.5\n", 3); got != want {
		t.Errorf("mapped: %s", got)
	}
	if got := rows(source, "in/d.csv", "id,carrier,delay,day,late,distance\n", 4); got != "in/d.csv:1" {
		t.Errorf("the declared names: %s", got)
	}
}

func lakeEmptyModel(t *testing.T, s store) {
	r := compile(t, s, projectOf(modelOf("none", "SELECT id FROM flights WHERE id < 0")))
	scope := refreshed(t, s, "sales", r, 1, flightRows)
	wantRows(t, ask(t, s, scope, "SELECT id FROM none"), `[]`)
	// A second commit that changes nothing is found too.
	again := refreshed(t, s, "sales", r, 2, flightRows)
	if again.Snapshot <= scope.Snapshot {
		t.Errorf("the second commit is snapshot %d, not newer than %d", again.Snapshot, scope.Snapshot)
	}
	wantRows(t, ask(t, s, again, "SELECT id FROM none"), `[]`)
}

func lakeProgress(t *testing.T, s store) {
	r := compile(t, s, projectOf(modelOf("a_last", "SELECT id FROM middle WHERE id > 1"), modelOf("middle", "SELECT id FROM z_first WHERE id < 4"),
		modelOf("z_first", "SELECT id, carrier FROM flights")))
	b := begun(t, s, "sales", r, flightRows)
	var got []plan.Progress
	mustLake(t, b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, "sales", r, 1), func(p plan.Progress) {
		if p.Phase == plan.PhaseBuild {
			got = append(got, p)
		}
	}))
	build := func(model string, rows int64) []plan.Progress {
		return []plan.Progress{{Phase: plan.PhaseBuild, Subject: model}, {Phase: plan.PhaseBuild, Subject: model, Done: true, Rows: rows}}
	}
	if want := slices.Concat(build("z_first", 4), build("middle", 3), build("a_last", 2)); !slices.Equal(got, want) {
		t.Errorf("progress was %v, want %v", got, want)
	}
	wantRows(t, ask(t, s, foundMark(t, s, "sales", r, 1), "SELECT id FROM a_last ORDER BY id"), `[[2],[3]]`)
}

func lakeWorkspaces(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	sales := refreshed(t, s, "sales", r, 1, flightRows)
	other := refreshed(t, s, "other", r, 2, oneFlight)
	wantRows(t, ask(t, s, other, "SELECT id FROM trips"), `[[9]]`)
	wantRows(t, ask(t, s, sales, "SELECT count(*) AS n FROM trips"), `[[4]]`)
	// At the other's newer snapshot, this workspace is what it was.
	sales.Snapshot = other.Snapshot
	wantRows(t, ask(t, s, sales, "SELECT count(*) AS n FROM trips"), `[[4]]`)
}

func lakeFiles(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight(), modelOf("ids", "SELECT id FROM flights")))
	first := refreshed(t, s, "sales", r, 1, flightRows)
	files, err := s.lake.Files(t.Context(), first)
	mustLake(t, err)
	if len(files) < 2 || !slices.IsSorted(files) || len(slices.Compact(slices.Clone(files))) != len(files) {
		t.Fatalf("two filled tables need at least two files, sorted and each once: %v", files)
	}
	for _, f := range files {
		if f == "" || f[0] == '/' || !s.holds(f) {
			t.Errorf("%q is not a file below the data directory", f)
		}
	}
	one := first
	one.Tables = map[string]string{"ids": first.Tables["ids"]}
	fewer, err := s.lake.Files(t.Context(), one)
	mustLake(t, err)
	if len(fewer) == 0 || len(fewer) >= len(files) {
		t.Errorf("one of the tables needs %v, both need %v", fewer, files)
	}

	second := refreshed(t, s, "sales", r, 2, oneFlight)
	still, err := s.lake.Files(t.Context(), first)
	mustLake(t, err)
	if !slices.Equal(still, files) {
		t.Errorf("the first snapshot's files changed from %v to %v", files, still)
	}
	newer, err := s.lake.Files(t.Context(), second)
	mustLake(t, err)
	for _, f := range newer {
		if slices.Contains(files, f) {
			t.Errorf("the second snapshot, which replaced every row, still needs %s", f)
		}
	}
}

func lakeSurvey(t *testing.T, s store) {
	survey, err := s.lake.Survey(t.Context())
	mustLake(t, err)
	if survey.Lineage != s.lineage || survey.HighestFence != 0 {
		t.Errorf("a new lake tells of lineage %q and fence %d, want %q and 0", survey.Lineage, survey.HighestFence, s.lineage)
	}
	r := compile(t, s, projectOf(everyFlight()))
	seven := refreshed(t, s, "sales", r, 7, flightRows)
	five := refreshed(t, s, "other", r, 5, flightRows)
	survey, err = s.lake.Survey(t.Context())
	mustLake(t, err)
	if survey.Lineage != s.lineage || survey.HighestFence != 7 {
		t.Errorf("the lake tells of lineage %q and fence %d, want %q and 7", survey.Lineage, survey.HighestFence, s.lineage)
	}
	if !slices.IsSorted(survey.Snapshots) || !slices.Contains(survey.Snapshots, seven.Snapshot) || !slices.Contains(survey.Snapshots, five.Snapshot) {
		t.Errorf("snapshots %v are unsorted or lack %d or %d", survey.Snapshots, seven.Snapshot, five.Snapshot)
	}
}

func lakeReopens(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	old := refreshed(t, s, "sales", r, 1, flightRows)
	scope := refreshed(t, s, "sales", r, 2, oneFlight)
	before, err := s.lake.Survey(t.Context())
	mustLake(t, err)
	s = s.reopen(t)
	if again := foundMark(t, s, "sales", r, 2); again.Snapshot != scope.Snapshot {
		t.Errorf("the mark moved from snapshot %d to %d", scope.Snapshot, again.Snapshot)
	}
	wantRows(t, ask(t, s, scope, "SELECT id FROM trips"), `[[9]]`)
	wantRows(t, ask(t, s, old, "SELECT count(*) AS n FROM trips"), `[[4]]`)
	after, err := s.lake.Survey(t.Context())
	mustLake(t, err)
	if after.Lineage != before.Lineage || after.HighestFence != before.HighestFence || !slices.Equal(after.Snapshots, before.Snapshots) {
		t.Errorf("the survey changed from %+v to %+v", before, after)
	}
	wantRows(t, ask(t, s, refreshed(t, s, "sales", r, 3, flightRows), "SELECT count(*) AS n FROM trips"), `[[4]]`)
}

func lakeClosed(t *testing.T, s store) {
	r := compile(t, s, projectOf(everyFlight()))
	scope := refreshed(t, s, "sales", r, 1, flightRows)
	b := begun(t, s, "sales", r, oneFlight)
	mustLake(t, b.Close())
	if _, err := b.Stage(t.Context(), flightsSource(), nil); err == nil {
		t.Error("a closed build staged")
	}
	if err := b.Create(t.Context(), r.Models[:1], nil); err == nil {
		t.Error("a closed build created a table")
	}
	if err := b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, "sales", r, 2), ignore); err == nil {
		t.Error("a closed build committed")
	}
	noMark(t, s, "sales", r, 2)

	_, err := s.lake.Begin(canceled(t), "sales")
	wantKind(t, err, fail.Canceled)
	_, _, _, err = s.lake.Find(canceled(t), markOf(s, "sales", r, 1))
	wantKind(t, err, fail.Canceled)
	_, err = s.lake.Files(canceled(t), scope)
	wantKind(t, err, fail.Canceled)
	_, err = s.lake.Survey(canceled(t))
	wantKind(t, err, fail.Canceled)
	b, err = s.lake.Begin(t.Context(), "sales")
	mustLake(t, err)
	_, err = b.Stage(canceled(t), flightsSource(), []ports.Artifact{s.stage(t, "flights.csv", []byte(flightRows))})
	wantKind(t, err, fail.Canceled)
	mustLake(t, b.Close())
}

// Proves that each injected failure of the twin's commit does what it is named for, and only once: the mark tells what happened.
func TestLakeFaultsMem(t *testing.T) {
	for _, c := range []struct {
		fault         mem.CommitFault
		kind          fail.Kind
		ok, committed bool
	}{
		{fault: mem.FailsBefore, kind: fail.Internal},
		{fault: mem.FailsAfter, kind: fail.UnknownOutcome, committed: true},
		{fault: mem.LosesSilently, ok: true},
	} {
		s, faults := memStoreWithFaults(t)
		r := compile(t, s, projectOf(everyFlight()))
		refreshed(t, s, "sales", r, 1, flightRows)
		b := begun(t, s, "sales", r, oneFlight)
		faults.FailNextCommit(c.fault)
		err := b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, "sales", r, 2), ignore)
		mustLake(t, b.Close())
		if !c.ok {
			wantKind(t, err, c.kind)
		} else {
			mustLake(t, err)
		}
		if c.committed {
			wantRows(t, ask(t, s, foundMark(t, s, "sales", r, 2), "SELECT id FROM trips"), `[[9]]`)
		} else {
			noMark(t, s, "sales", r, 2)
		}
		refreshed(t, s, "sales", r, 3, oneFlight)
	}
}
