package lake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// These tests prove, on the real engine, what the contract suite cannot see from outside: that a commit is what its snapshot shows to
// plain SQL, that nothing but marked data commits and single schema statements reach the lake, and that a model's failure is named at
// the place that its author wrote.

func modelOf(name, sql string, columns ...string) plan.Model {
	m := plan.Model{Model: project.Model{Name: name, Statement: project.Statement{SQL: sql, At: project.Position{File: "models/" + name + ".sql", Line: 4, Column: 1}}}}
	m.Columns = sourceOf(project.CSV, columns...).Columns
	if strings.Contains(sql, "src") {
		m.Reads = []string{"src"}
	}
	m.Table = plan.PhysicalTable(name, m.Columns)
	return m
}

func markOf(fence refresh.Fence) refresh.Mark {
	return refresh.Mark{Kind: refresh.MarkRefresh, Lineage: "lineage", Workspace: "sales", Run: "run's \"1\"", Attempt: 1, Fence: fence, Release: project.DigestOf(nil), Plan: project.DigestOf(nil)}
}

// commit stages the content, and builds and commits the models.
func commit(t *testing.T, l *Lake, o engine.Options, content string, mark refresh.Mark, models ...plan.Model) error {
	t.Helper()
	b, err := l.Begin(t.Context(), "sales")
	must(t, err)
	defer func() { must(t, b.Close()) }()
	_, err = b.Stage(t.Context(), sourceOf(project.CSV, "a INTEGER", "b VARCHAR"), []ports.Artifact{file(t, o, "x.csv", []byte("a,b\n"+content))})
	must(t, err)
	must(t, b.Create(t.Context(), models, nil))
	return b.Commit(t.Context(), plan.Anew(models), mark, func(plan.Progress) {})
}

func newLake(t *testing.T) (*Lake, *engine.Engine, engine.Options) {
	t.Helper()
	e, o := enginetest.Open(t)
	l := New(e, Options{DataDir: o.DataDir})
	must(t, l.Init(t.Context(), "lineage"))
	return l, e, o
}

func find(t *testing.T, l *Lake, mark refresh.Mark) serving.Snapshot {
	t.Helper()
	at, when, found, err := l.Find(t.Context(), mark)
	must(t, err)
	if !found {
		t.Fatalf("%s is not in the lake", mark)
	}
	if age := time.Since(when); age < -time.Minute || age > time.Hour || when.Location() != time.UTC {
		t.Errorf("%s was committed at %s", mark, when)
	}
	return at
}

func TestCommitIsWhatItsSnapshotShows(t *testing.T) {
	l, e, o := newLake(t)
	kept := modelOf("kept", "SELECT b, a FROM src -- a comment at the end", "b VARCHAR", "a INTEGER")
	sum := modelOf("sum", "WITH x AS (SELECT * FROM kept) SELECT sum(a) AS total FROM x", "total BIGINT")
	must(t, commit(t, l, o, "1,x\n2,y\n", markOf(1), kept, sum))
	first := find(t, l, markOf(1))

	// A reader that began before holds its snapshot while the next commit lands.
	held := enginetest.Conn(t, e)
	must(t, held.Exec(t.Context(), "BEGIN"))
	total := func(c *engine.Conn, at serving.Snapshot) (n int) {
		t.Helper()
		must(t, c.Scan(t.Context(), "SELECT total FROM "+tableOf("sales", sum.Table)+" AT (VERSION => ?)", []any{int64(at)}, &n))
		return n
	}
	if n := total(held, first); n != 3 {
		t.Fatalf("the held reader sees %d", n)
	}
	must(t, commit(t, l, o, "30,z\n", markOf(2), kept, sum))
	second := find(t, l, markOf(2))
	other := enginetest.Conn(t, e)
	if a, b, c := total(held, first), total(other, first), total(other, second); a != 3 || b != 3 || c != 30 {
		t.Fatalf("the held reader sees %d, another one %d at the first and %d at the second snapshot", a, b, c)
	}
	var b string
	must(t, other.Scan(t.Context(), "SELECT string_agg(b, ',' ORDER BY a) FROM "+tableOf("sales", kept.Table)+" AT (VERSION => ?)", []any{int64(first)}, &b))
	if b != "x,y" {
		t.Fatalf("columns moved: %q", b)
	}

	// The two commits share every table, so the second one changed no schema.
	var schemas int
	must(t, other.Scan(t.Context(), "SELECT count(DISTINCT schema_version) FROM "+engine.Metadata+".ducklake_snapshot WHERE snapshot_id BETWEEN ? AND ?", []any{int64(first), int64(second)}, &schemas))
	if schemas != 1 {
		t.Errorf("the second commit changed the schema")
	}
	// The marks table never holds more than one row, and one live file.
	var rows, files int
	must(t, other.Scan(t.Context(), "SELECT count(*), (SELECT count(*) FROM ducklake_list_files('lake', 'marks', schema => '_leapview')) FROM "+marks, nil, &rows, &files))
	if rows != 1 || files != 1 {
		t.Errorf("the marks table has %d rows in %d files", rows, files)
	}
}

func TestFailedCommitIsNotFound(t *testing.T) {
	l, e, o := newLake(t)
	good := modelOf("good", "SELECT a FROM src", "a INTEGER")
	must(t, commit(t, l, o, "1,x\n", markOf(1), good))
	before := find(t, l, markOf(1))
	for _, tc := range []struct {
		name, sql, columns, at, says string
	}{
		{"a cast of a column", "SELECT a, b FROM src", "a TINYINT,b VARCHAR", "models/bad.sql:4:1", `column "a" of model "bad"`},
		{"a cast of a later column", "SELECT a, b FROM src", "a INTEGER,b DATE", "models/bad.sql:4:1", `column "b" of model "bad"`},
		{"a cast in the statement", "SELECT\n  a,\n  CAST(b AS INTEGER) AS b\nFROM src", "a INTEGER,b INTEGER", "models/bad.sql:6:3", "'y'"},
		{"a sum that is too large", "SELECT\n  CAST(a AS TINYINT) * 2::TINYINT AS a FROM src WHERE a < 100", "a TINYINT", "models/bad.sql", "verflow"},
		{"an error of its own", "SELECT 1/0 AS a, CAST('no' AS DATE) AS b", "a DOUBLE,b DATE", "models/bad.sql:4:18", "no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bad := modelOf("bad", tc.sql, strings.Split(tc.columns, ",")...)
			err := commit(t, l, o, "70,y\n200,z\n", markOf(2), good, bad)
			var problems project.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].At.String(), tc.at) || !strings.Contains(problems[0].Message, tc.says) {
				t.Errorf("%v", err)
			}
			if _, _, found, err := l.Find(t.Context(), markOf(2)); found || err != nil {
				t.Errorf("found: %t, %v", found, err)
			}
		})
	}
	var a int
	must(t, enginetest.Conn(t, e).Scan(t.Context(), "SELECT a FROM "+tableOf("sales", good.Table), nil, &a))
	if survey, err := l.Survey(t.Context()); err != nil || a != 1 || survey.HighestFence != 1 {
		t.Errorf("the lake's head holds %d, its highest fence is %d, %v", a, survey.HighestFence, err)
	}
	if again := find(t, l, markOf(1)); again != before {
		t.Errorf("the first commit moved from %d to %d", before, again)
	}
}

func TestStatementsOfModelsAreGated(t *testing.T) {
	l, _, o := newLake(t)
	for _, sql := range []string{
		"SELECT * FROM read_text('/etc/passwd')", "DELETE FROM src", "SELECT 1 AS a; DROP SCHEMA lake.sales", "SELECT mark AS a FROM lake._leapview.marks",
		"SELECT * FROM unknown", `SELECT * FROM "stage src 0"`, "SELECT 1 AS a) ; COMMIT; (SELECT 1 AS a",
	} {
		err := commit(t, l, o, "1,x\n", markOf(1), modelOf("bad", sql, "a VARCHAR"))
		var problems project.Problems
		if !errors.As(err, &problems) || problems[0].At.File != "models/bad.sql" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, _, found, err := l.Find(t.Context(), markOf(1)); found || err != nil {
		t.Errorf("found: %t, %v", found, err)
	}
}

func TestInitIsDoneOnce(t *testing.T) {
	l, _, _ := newLake(t)
	before, err := l.Survey(t.Context())
	must(t, err)
	must(t, l.Init(t.Context(), "lineage"))
	if after, err := l.Survey(t.Context()); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the survey was %v and is %v, %v", before, after, err)
	}
	if err := l.Init(t.Context(), "another"); fail.CodeOf(err) != "lineage_mismatch" {
		t.Errorf("another lineage: %v", err)
	}
	// A creation that was interrupted before its commit is completed.
	f, p := enginetest.Open(t)
	c := enginetest.Conn(t, f)
	must(t, c.Exec(t.Context(), "CREATE SCHEMA "+engine.Lake+"."+own))
	half := New(f, Options{DataDir: p.DataDir})
	if survey, err := half.Survey(t.Context()); err != nil || survey.Lineage != "" {
		t.Errorf("half a lake has lineage %q, %v", survey.Lineage, err)
	}
	must(t, half.Init(t.Context(), "lineage"))
	if survey, err := half.Survey(t.Context()); err != nil || survey.Lineage != "lineage" {
		t.Errorf("the completed lake has lineage %q, %v", survey.Lineage, err)
	}
}

// A source is the same to every model, whether its files are read as they are, because one model reads it, or held, because several do,
// or were not plain.
func TestStagedSourcesReadTheSame(t *testing.T) {
	l, e, o := newLake(t)
	one := modelOf("one", "SELECT a, b FROM src", "a INTEGER", "b VARCHAR")
	two := modelOf("two", "SELECT b, a + 1 AS a FROM src WHERE a > 1", "b VARCHAR", "a INTEGER")
	one.Reads, two.Reads = []string{"src"}, []string{"src"}
	c := enginetest.Conn(t, e)
	digest := func(m plan.Model) (text string) {
		t.Helper()
		must(t, c.Scan(t.Context(), "SELECT string_agg(a || b, ',' ORDER BY a) FROM "+tableOf("sales", m.Table), nil, &text))
		return text
	}
	for i, tc := range []struct {
		content  string
		models   []plan.Model
		one, two string
	}{
		{"1,x\n2,y\n3,z\n", []plan.Model{one}, "1x,2y,3z", ""},
		{"1,x\n2,y\n3,z\n", []plan.Model{one, two}, "1x,2y,3z", "3y,4z"},
		{"1,\"x\"\n2,y\n3,z\n", []plan.Model{one, two}, "1x,2y,3z", "3y,4z"},
	} {
		must(t, commit(t, l, o, tc.content, markOf(refresh.Fence(i+1)), tc.models...))
		if got := digest(one); got != tc.one {
			t.Errorf("%d: the first model has %s", i, got)
		}
		if len(tc.models) > 1 {
			if got := digest(two); got != tc.two {
				t.Errorf("%d: the second model has %s", i, got)
			}
		}
	}
}

// The catalog's answer about all files of a schema is that of the engine's own function for each of its tables, at every snapshot.
func TestCatalogKnowsTheFilesThatTheEngineReads(t *testing.T) {
	l, e, o := newLake(t)
	m := modelOf("m", "SELECT a, b FROM src", "a INTEGER", "b VARCHAR")
	empty := modelOf("empty", "SELECT a FROM src WHERE false", "a INTEGER")
	c := enginetest.Conn(t, e)
	table := tableOf("sales", m.Table)
	must(t, commit(t, l, o, "1,x\n2,y\n3,z\n", markOf(1), m, empty))
	for _, statement := range []string{"DELETE FROM " + table + " WHERE a = 2", "INSERT INTO " + table + " VALUES (4, 'v')", "DELETE FROM " + table + " WHERE a = 1", "TRUNCATE " + table,
		"DROP TABLE " + tableOf("sales", empty.Table)} {
		must(t, c.Exec(t.Context(), statement))
	}
	must(t, commit(t, l, o, "5,w\n", markOf(2), m, empty))
	survey, err := l.Survey(t.Context())
	must(t, err)
	deletes := 0
	for _, at := range append(survey.Snapshots, newest) {
		all, err := l.catalog.files(t.Context(), c, "sales", int64(at))
		must(t, err)
		for name, some := range all {
			version := fmt.Sprintf(", snapshot_version => %d", at)
			if at == newest {
				version = ""
			}
			rows, err := c.Rows(t.Context(), "SELECT data_file, data_file_size_bytes, coalesce(delete_file, ''), coalesce(delete_file_size_bytes, 0) FROM ducklake_list_files('lake', "+engine.Literal(name)+", schema => 'sales'"+version+")")
			must(t, err)
			var want []dataFile
			for rows.Next() {
				var data, gone dataFile
				must(t, rows.Scan(&data.path, &data.size, &gone.path, &gone.size))
				want = append(want, data)
				if gone.path != "" {
					want = append(want, gone)
					deletes++
				}
			}
			must(t, errors.Join(rows.Err(), rows.Close()))
			for i := range want {
				want[i].path, err = filepath.Rel(o.DataDir, want[i].path)
				must(t, err)
			}
			order := func(a, b dataFile) int { return strings.Compare(a.path, b.path) }
			slices.SortFunc(want, order)
			slices.SortFunc(some, order)
			if !slices.Equal(some, want) {
				t.Errorf("%s at %d: the catalog names %v, the engine %v", name, at, some, want)
			}
		}
	}
	if deletes < 2 {
		t.Errorf("the engine named %d files of deletions", deletes)
	}
}

func TestFilesAreExactlyTheDataOfTheSnapshot(t *testing.T) {
	l, e, o := newLake(t)
	m := modelOf("m", "SELECT a, b FROM src", "a INTEGER", "b VARCHAR")
	must(t, commit(t, l, o, "1,x\n", markOf(1), m))
	first := serving.Scope{Workspace: "sales", Snapshot: find(t, l, markOf(1)), Tables: map[string]string{"m": m.Table}}
	files, err := l.Files(t.Context(), first)
	must(t, err)
	// Dropping its only file must make the snapshot unreadable: nothing else is needed but the marks, and it is.
	if len(files) != 2 || !strings.HasPrefix(files[0], own+"/marks/") || !strings.HasPrefix(files[1], "sales/"+m.Table+"/") {
		t.Fatalf("files: %v", files)
	}
	files = files[1:]
	must(t, commit(t, l, o, "2,y\n", markOf(2), m))
	must(t, os.Remove(filepath.Join(o.DataDir, filepath.FromSlash(files[0]))))
	c, err := e.Conn(t.Context())
	must(t, err)
	defer c.Close()
	read := "SELECT sum(a) FROM " + tableOf("sales", m.Table) + " AT (VERSION => ?)"
	var n int
	if err := c.Scan(t.Context(), read, []any{int64(first.Snapshot)}, &n); err == nil {
		t.Error("the first snapshot can be read without its file")
	}
	must(t, c.Scan(t.Context(), read, []any{int64(find(t, l, markOf(2)))}, &n))
	first.Snapshot = 999
	if _, err := l.Files(t.Context(), first); err == nil {
		t.Error("a snapshot that does not exist has files")
	}
}

func TestWriterComesBackFromEveryFailure(t *testing.T) {
	l, e, _ := newLake(t)
	// No connection is left for a build.
	var taken []*engine.Conn
	for {
		c, err := e.Conn(t.Context())
		if err != nil {
			break
		}
		taken = append(taken, c)
	}
	if _, err := l.Begin(t.Context(), "sales"); fail.CodeOf(err) != "pool_exhausted" {
		t.Errorf("a build without a connection: %v", err)
	}
	for _, c := range taken {
		must(t, c.Close())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Begin(ended, "sales"); fail.KindOf(err) != fail.Canceled {
		t.Errorf("a build in an ended context: %v", err)
	}
	b := begun(t, l)
	must(t, b.Close())
}

// TestLostHeadIsMadeAnew proves that a commit which never became durable, because its files were lost or cut in a power cut, does not
// stand in the way of the next one: not in a model's table and not in our own.
func TestLostHeadIsMadeAnew(t *testing.T) {
	e, o := enginetest.Open(t)
	l := New(e, Options{DataDir: o.DataDir})
	must(t, l.Init(t.Context(), "lineage"))
	model := plan.Model{Model: project.Model{Name: "m", Statement: project.Statement{SQL: "SELECT 1 AS a"}}, Columns: []project.Column{{Name: "a", Type: "INTEGER"}}}
	model.Table = plan.PhysicalTable("m", model.Columns)
	commit := func(fence refresh.Fence) refresh.Mark {
		t.Helper()
		b, err := l.Begin(t.Context(), "sales")
		must(t, err)
		must(t, b.Create(t.Context(), []plan.Model{model}, nil))
		mark := refresh.Mark{Kind: refresh.MarkRefresh, Lineage: "lineage", Workspace: "sales", Run: "run", Attempt: 1, Fence: fence, Release: "r", Plan: "p"}
		must(t, b.Commit(t.Context(), plan.Anew([]plan.Model{model}), mark, func(plan.Progress) {}))
		must(t, b.Close())
		return mark
	}
	mark := commit(1)
	// Each kind of loss in turn, to the files of the head.
	for i, lose := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 0) },
		func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, make([]byte, info.Size()), 0o600)
		},
	} {
		files, err := filepath.Glob(filepath.Join(o.DataDir, "*", "*", "*.parquet"))
		must(t, err)
		if len(files) < 2 {
			t.Fatalf("only %v", files)
		}
		for _, f := range files {
			must(t, lose(f))
		}
		mark = commit(refresh.Fence(i + 2))
	}
	at, _, found, err := l.Find(t.Context(), mark)
	if err != nil || !found {
		t.Fatalf("found %t, %v", found, err)
	}
	sound, err := l.Files(t.Context(), serving.Scope{Workspace: "sales", Snapshot: at, Tables: map[string]string{"m": model.Table}})
	if err != nil || len(sound) != 2 {
		t.Fatalf("the new snapshot needs %v, %v", sound, err)
	}
}
