package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

// store is one analytical store under test, with all of its ports.
type store struct {
	lake     ports.Lake
	reader   ports.Reader
	compiler ports.Compiler
	checker  ports.Checker
	lineage  string
	// connections is how many readings may be open at a time while nothing is built.
	connections int
	// stage keeps a file where Stage can read it; name is what its author calls it.
	stage func(t *testing.T, name string, content []byte) ports.Artifact
	// holds tells whether the data directory has a file of at least one byte at path.
	holds func(path string) bool
	// reopen ends this handle and gives another over what it stored, as the next process does.
	reopen func(t *testing.T) store
}

// opener starts a store with a lake of its own that ends with the test.
type opener func(t *testing.T) store

const lineage = "lineageofthecontracttests1"

type fixedClock time.Time

func (c fixedClock) Now() time.Time { return time.Time(c) }

// memStore is the in-memory twin.
func memStore(t *testing.T) store {
	s, _ := memStoreWithFaults(t)
	return s
}

func memStoreWithFaults(*testing.T) (store, *mem.Store) {
	disk := &mem.Disk{}
	s := mem.NewStore(lineage, mem.StoreOptions{
		Clock: fixedClock(time.Now().UTC()), Disk: disk, Readings: 4,
		Content: func(a ports.Artifact) ([]byte, error) {
			content, found := disk.Read(a.Path)
			if !found {
				return nil, fail.New(fail.Missing, "not_staged", "%s was not staged", a.Path)
			}
			return content, nil
		},
	})
	twin := store{lake: s, reader: s, compiler: mem.Compiler{}, checker: s, lineage: lineage, connections: 4,
		stage: func(_ *testing.T, name string, content []byte) ports.Artifact {
			path := "staged/" + string(project.DigestOf(content)) + "/" + name
			disk.Write(path, content)
			return ports.Artifact{Name: name, Path: path, Size: int64(len(content)), SHA256: project.DigestOf(content)}
		},
		holds: func(path string) bool {
			content, found := disk.Read(path)
			return found && len(content) > 0
		},
	}
	// The twin has no process to end: what a next one finds is the store itself.
	twin.reopen = func(*testing.T) store { return twin }
	return twin, s
}

// flightRows is the source of all cases, with every type and NULLs, in no order.
const flightRows = `id,carrier,delay,day,late,distance
3,B'b,-7,2024-03-10,true,2.5
1,Aa,10,2024-01-31,false,100.25
2,Aa,,2024-02-29,,
4,,20,,true,-0.5
`

func flightsSource() project.Source {
	return project.Source{Name: "flights", At: project.Position{File: "sources/flights.yaml", Line: 1, Column: 1}, Location: "flights*.csv",
		Format: project.CSV, Delimiter: ",",
		Columns: []project.Column{{Name: "id", Type: "BIGINT"}, {Name: "carrier", Type: "VARCHAR"}, {Name: "delay", Type: "INTEGER"},
			{Name: "day", Type: "DATE"}, {Name: "late", Type: "BOOLEAN"}, {Name: "distance", Type: "DOUBLE"}}}
}

// modelOf is a model whose statement begins on line 3 of its file.
func modelOf(name, sql string, casts ...project.Column) project.Model {
	file := "models/" + name + ".sql"
	return project.Model{Name: name, Layer: project.Mart, At: project.Position{File: file, Line: 1, Column: 1}, Casts: casts,
		Statement: project.Statement{SQL: sql, At: project.Position{File: file, Line: 3, Column: 1}}}
}

func endpointOf(name, sql string, params ...project.Param) project.Endpoint {
	file := "endpoints/" + name + ".sql"
	return project.Endpoint{Name: name, At: project.Position{File: file, Line: 1, Column: 1}, Params: params, Limit: 100,
		Statement: project.Statement{SQL: sql, At: project.Position{File: file, Line: 3, Column: 1}}}
}

func projectOf(models ...project.Model) project.Project {
	return project.Project{Name: "sales", Sources: []project.Source{flightsSource()}, Models: models}
}

// everyFlight is a model that holds the source as it is.
func everyFlight() project.Model { return modelOf("trips", "SELECT * FROM flights") }

func compile(t *testing.T, s store, p project.Project) plan.Release {
	t.Helper()
	text, err := json.Marshal(p)
	mustLake(t, err)
	r, err := s.compiler.Compile(t.Context(), project.DigestOf(text), p)
	mustLake(t, err)
	return r
}

func markOf(s store, w serving.Workspace, r plan.Release, fence refresh.Fence) refresh.Mark {
	return refresh.Mark{Kind: refresh.MarkRefresh, Lineage: s.lineage, Workspace: w, Run: refresh.RunID(fmt.Sprintf("run%d", fence)), Attempt: 1,
		Fence: fence, Release: r.ID, Plan: r.Digest()}
}

func ignore(plan.Progress) {}

// begun is a build with the flights staged and the release's tables created; it ends with the test at the latest.
func begun(t *testing.T, s store, w serving.Workspace, r plan.Release, csv string) ports.Build {
	t.Helper()
	b, err := s.lake.Begin(t.Context(), w)
	mustLake(t, err)
	t.Cleanup(func() { _ = b.Close() })
	_, err = b.Stage(t.Context(), flightsSource(), []ports.Artifact{s.stage(t, "flights.csv", []byte(csv))})
	mustLake(t, err)
	mustLake(t, b.Create(t.Context(), r.Models, nil))
	return b
}

// refreshed commits the release over csv and gives the scope of what was committed.
func refreshed(t *testing.T, s store, w serving.Workspace, r plan.Release, fence refresh.Fence, csv string) serving.Scope {
	t.Helper()
	b := begun(t, s, w, r, csv)
	mustLake(t, b.Commit(t.Context(), plan.Anew(r.Models), markOf(s, w, r, fence), ignore))
	mustLake(t, b.Close())
	return foundMark(t, s, w, r, fence)
}

// foundMark is the scope of the commit that carries the mark, which must be there.
func foundMark(t *testing.T, s store, w serving.Workspace, r plan.Release, fence refresh.Fence) serving.Scope {
	t.Helper()
	at, when, ok, err := s.lake.Find(t.Context(), markOf(s, w, r, fence))
	mustLake(t, err)
	if !ok || at < 1 {
		t.Fatalf("the mark of fence %d was not found (found %t, snapshot %d)", fence, ok, at)
	}
	if age := time.Since(when); age < -time.Minute || age > time.Hour {
		t.Errorf("the commit is dated %s", when)
	}
	return serving.Scope{Workspace: w, Snapshot: at, Tables: r.Tables()}
}

// noMark checks that no commit carries the mark.
func noMark(t *testing.T, s store, w serving.Workspace, r plan.Release, fence refresh.Fence) {
	t.Helper()
	at, _, ok, err := s.lake.Find(t.Context(), markOf(s, w, r, fence))
	mustLake(t, err)
	if ok {
		t.Fatalf("the mark of fence %d is in snapshot %d, though nothing was committed", fence, at)
	}
}

func statementOf(sql string) project.Statement {
	return project.Statement{SQL: sql, At: project.Position{File: "endpoints/case.sql", Line: 3, Column: 1}}
}

var plenty = serving.Limits{Rows: 1000, Bytes: 1 << 20}

// ask answers one statement in a reading of its own.
func ask(t *testing.T, s store, scope serving.Scope, sql string) serving.Answer {
	t.Helper()
	q, err := s.reader.Prepare(t.Context(), scope, statementOf(sql), nil)
	mustLake(t, err)
	r, err := s.reader.Open(t.Context())
	mustLake(t, err)
	a, err := r.Answer(t.Context(), q, serving.Args{}, plenty)
	mustLake(t, err)
	mustLake(t, r.Close())
	return a
}

// wantRows checks that the answer holds these rows, written as JSON.
func wantRows(t *testing.T, a serving.Answer, want string) {
	t.Helper()
	if got, w := canonical(t, a.Rows), canonical(t, []byte(want)); got != w {
		t.Errorf("rows are %s, want %s", got, w)
	}
}

// canonical is JSON with one spelling for each value, so that 2.50 and 2.5 are one number but no digit of a whole number is lost.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var rows [][]any
	if err := d.Decode(&rows); err != nil {
		t.Fatalf("the rows are not an array of arrays: %v\n%s", err, text)
	}
	for _, row := range rows {
		for i, v := range row {
			if n, ok := v.(json.Number); ok {
				if _, err := n.Int64(); err != nil {
					f, err := n.Float64()
					mustLake(t, err)
					row[i] = f
				}
			}
		}
	}
	out, err := json.Marshal(rows)
	mustLake(t, err)
	return string(out)
}

// wantKind checks that err is a failure of this kind.
func wantKind(t *testing.T, err error, kind fail.Kind) {
	t.Helper()
	if err == nil || fail.KindOf(err) != kind {
		t.Errorf("the error is of kind %s, want %s: %v", fail.KindOf(err), kind, err)
	}
}

// wantProblem checks that err is project.Problems, one of which stands at this place; a column of 0 is not compared.
func wantProblem(t *testing.T, err error, at project.Position) {
	t.Helper()
	problems, ok := asProblems(err)
	if !ok {
		t.Fatalf("the error is not project.Problems: %v", err)
	}
	for _, p := range problems {
		if p.At.File == at.File && p.At.Line == at.Line && (at.Column == 0 || p.At.Column == at.Column) {
			return
		}
	}
	t.Errorf("no problem stands at %s:\n%v", at, err)
}

func mustLake(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
