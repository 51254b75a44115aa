//go:build bench

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"leapview/adapters/fs"
	"leapview/adapters/yaml"
	"leapview/app"
	"leapview/bootstrap"
	"leapview/domain/access"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
	"leapview/tests/nodetest"
)

const (
	rows    = 6_000_000
	threads = 2
	memory  = int64(2 << 30)
)

// tiles are a dashboard of eight, as endpoints; the raw engine gets the same text over the same Parquet files.
var tiles = []struct{ name, sql string }{
	{"by_region", "SELECT region, count(*) AS n, avg(price) AS price FROM facts GROUP BY region ORDER BY region"},
	{"by_day", "SELECT day, count(*) AS n FROM facts GROUP BY day ORDER BY day"},
	{"by_kind", "SELECT kind, min(price) AS low, max(price) AS high FROM facts GROUP BY kind ORDER BY kind"},
	{"total", "SELECT count(*) AS n, sum(price) AS s FROM facts"},
	{"north", "SELECT kind, sum(price) AS s FROM facts WHERE region = 'r3' GROUP BY kind ORDER BY kind"},
	{"late", "SELECT region, sum(quantity) AS q FROM facts WHERE day >= DATE '2024-10-01' GROUP BY region ORDER BY region"},
	{"top", "SELECT id, price FROM facts ORDER BY price DESC, id LIMIT 10"},
	{"cheap", "SELECT count(*) AS n FROM facts WHERE price < 1.0 AND quantity > 3"},
}

const (
	pointSQL = "SELECT id, region, price FROM facts WHERE id = %s"
	scanSQL  = "SELECT region, kind, sum(price) AS s, avg(quantity) AS q FROM facts GROUP BY region, kind ORDER BY region, kind"
)

// TestRatios measures a node against the bare engine. It asserts nothing about time: the figures are for people, beside their targets.
func TestRatios(t *testing.T) {
	dir := t.TempDir()
	t.Run("endpoints", func(t *testing.T) { endpoints(t, filepath.Join(dir, "endpoints")) })
	t.Run("refresh", func(t *testing.T) { refreshes(t, filepath.Join(dir, "refresh")) })
	t.Run("append", func(t *testing.T) { appends(t, filepath.Join(dir, "append")) })
}

// raw is a bare engine with the node's threads and memory.
func raw(t *testing.T) *sql.Conn {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	must(t, c, fmt.Sprintf("SET threads=%d", threads))
	must(t, c, fmt.Sprintf("SET memory_limit='%dB'", memory))
	return c
}

func must(t *testing.T, c *sql.Conn, text string) {
	t.Helper()
	if _, err := c.ExecContext(context.Background(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// drain runs a query on the bare engine and reads all of its rows as Arrow batches, without encoding them.
func drain(t *testing.T, c *sql.Conn, text string) {
	t.Helper()
	err := c.Raw(func(dc any) error {
		a, err := duckdb.NewArrowFromConn(dc.(*duckdb.Conn))
		if err != nil {
			return err
		}
		r, err := a.QueryContext(context.Background(), text)
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
			_ = r.RecordBatch().NumRows()
		}
		return r.Err()
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// compare runs ours and theirs in turn and reports the medians and the median of the pairwise ratios. prepare, which may be nil, comes before
// ours and is not measured.
func compare(t *testing.T, name, target string, pairs int, prepare, ours, theirs func(i int)) {
	t.Helper()
	if prepare == nil {
		prepare = func(int) {}
	}
	prepare(0)
	ours(0)
	theirs(0)
	var a, b, q []float64
	for i := 1; i <= pairs; i++ {
		prepare(i)
		s := time.Now()
		ours(i)
		x := time.Since(s).Seconds() * 1000
		s = time.Now()
		theirs(i)
		y := time.Since(s).Seconds() * 1000
		a, b, q = append(a, x), append(b, y), append(q, x/y)
	}
	fmt.Printf("%-28s ours %9.2f ms   other %9.2f ms   ratio %5.2f (%.2f–%.2f)   target ≤ %s\n", name, median(a), median(b), median(q), q[0], q[len(q)-1], target)
}

// median sorts xs and gives its middle.
func median(xs []float64) float64 {
	sort.Float64s(xs)
	return xs[len(xs)/2]
}

func open(t *testing.T, dir string) (*bootstrap.Node, bootstrap.Config) {
	t.Helper()
	c := bootstrap.Config{Settings: app.Settings{DataDir: filepath.Join(dir, "node"), Extensions: nodetest.Extensions(t), Memory: memory, TempSpace: 8 << 30, Threads: threads, Limits: app.DefaultLimits()}}
	n, closers, err := bootstrap.Compose(context.Background(), c, bootstrap.Real(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closers.Close() })
	if err := n.Recoverer.Prove(context.Background()); err != nil {
		t.Fatal(err)
	}
	return n, c
}

func deploy(t *testing.T, n *bootstrap.Node, files []project.File, sources string) serving.Workspace {
	t.Helper()
	bundle, err := project.Pack(files)
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.Deployer.Deploy(context.Background(), bundle, sources, access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	return d.Workspace
}

func refreshOnce(t *testing.T, n *bootstrap.Node, w serving.Workspace) serving.Pointer {
	t.Helper()
	run, err := n.Refresher.Request(context.Background(), w, "", access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Worker.WorkOne(context.Background(), w, run.ID, func(plan.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	n.Worker.Retire(context.Background())
	return p
}

// endpoints measures a point, a scan and a bundle of eight over 6 million rows.
func endpoints(t *testing.T, dir string) {
	sources := filepath.Join(dir, "sources")
	if err := os.MkdirAll(sources, 0o700); err != nil {
		t.Fatal(err)
	}
	bare := raw(t)
	must(t, bare, fmt.Sprintf(`COPY (SELECT range AS id, 'r' || (hash(range) %% 20) AS region, 'k' || (hash(range * 7) %% 8) AS kind,
		DATE '2024-01-01' + (hash(range * 3) %% 366)::INTEGER AS day, (hash(range * 11) %% 100000) / 100.0 AS price, (hash(range * 13) %% 50)::INTEGER AS quantity
		FROM range(%d)) TO '%s/orders.parquet' (FORMAT parquet)`, rows, sources))
	files := []project.File{
		{Path: "leapview.yaml", Content: []byte("name: bench\n")},
		{Path: "sources/orders.yaml", Content: []byte("connector: file\nlocation: orders.parquet\nformat: parquet\ncolumns: {id: BIGINT, region: VARCHAR, kind: VARCHAR, day: DATE, price: DOUBLE, quantity: INTEGER}\n")},
		{Path: "models/facts.sql", Content: []byte("SELECT * FROM orders\n")},
		{Path: "endpoints/point.sql", Content: []byte("/*---\nparams: {id: {type: integer, required: true}}\n---*/\n" + fmt.Sprintf(pointSQL, "$id"))},
		{Path: "endpoints/scan.sql", Content: []byte(scanSQL)},
	}
	var calls []app.Call
	for _, x := range tiles {
		files = append(files, project.File{Path: "endpoints/" + x.name + ".sql", Content: []byte(x.sql)})
		calls = append(calls, app.Call{Name: x.name, Endpoint: x.name})
	}
	n, c := open(t, dir)
	w := deploy(t, n, files, sources)
	refreshOnce(t, n, w)
	must(t, bare, fmt.Sprintf("CREATE VIEW facts AS SELECT * FROM read_parquet('%s/data/bench/*/*.parquet')", c.DataDir))

	ask := func(calls ...app.Call) {
		if _, err := n.Asker.Ask(context.Background(), w, calls); err != nil {
			t.Fatal(err)
		}
	}
	id := func(i int) string { return fmt.Sprint((i * 7919 * 631) % rows) }
	compare(t, "endpoint, point, cold", "3.5", 61, nil, func(i int) {
		ask(app.Call{Endpoint: "point", Call: project.Call{Params: map[string]project.Given{"id": project.Texts(id(i))}}})
	},
		func(i int) { drain(t, bare, fmt.Sprintf(pointSQL, id(i))) })
	compare(t, "endpoint, scan, cold", "1.35", 21, nil, func(int) { ask(app.Call{Endpoint: "scan"}) }, func(int) { drain(t, bare, scanSQL) })
	compare(t, "query bundle of 8, 6 M rows", "1.35", 15, nil, func(int) { ask(calls...) }, func(int) {
		for _, x := range tiles {
			drain(t, bare, x.sql)
		}
	})
}

// refreshes measures a full refresh of the flights example against the same models as CREATE TABLE AS into a bare lake.
func refreshes(t *testing.T, dir string) {
	example := filepath.Join(nodetest.Root(t), "examples", "flights")
	files, err := fs.ReadProject(example)
	if err != nil {
		t.Fatal(err)
	}
	parts := bootstrap.Real()
	var compiler ports.Compiler
	store := parts.Store
	parts.Store = func(ctx context.Context, c bootstrap.Config, boot app.Boot, id ports.Identity, control bootstrap.Control, closers *bootstrap.Closers) (bootstrap.Store, error) {
		s, err := store(ctx, c, boot, id, control, closers)
		compiler = s.Compiler
		return s, err
	}
	c := bootstrap.Config{Settings: app.Settings{DataDir: filepath.Join(dir, "node"), Extensions: nodetest.Extensions(t), Memory: memory, TempSpace: 8 << 30, Threads: threads, Limits: app.DefaultLimits()}}
	n, closers, err := bootstrap.Compose(context.Background(), c, parts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closers.Close() })
	if err := n.Recoverer.Prove(context.Background()); err != nil {
		t.Fatal(err)
	}
	w := deploy(t, n, files, example)
	p, err := project.Decode(files, yaml.Documents{})
	if err != nil {
		t.Fatal(err)
	}
	rel, err := compiler.Compile(context.Background(), "bench", p)
	if err != nil {
		t.Fatal(err)
	}

	bare := raw(t)
	must(t, bare, fmt.Sprintf("LOAD '%s/ducklake.duckdb_extension'", nodetest.Extensions(t)))
	if err := os.MkdirAll(filepath.Join(dir, "bare"), 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, bare, fmt.Sprintf("ATTACH 'ducklake:%s/bare/catalog.duckdb' AS bare (DATA_PATH '%s/bare/data/', DATA_INLINING_ROW_LIMIT 0)", dir, dir))
	must(t, bare, "USE bare")
	for _, s := range p.Sources {
		if s.Format != project.CSV {
			t.Fatalf("source %s is %s; this measures CSV", s.Name, s.Format)
		}
		var columns, nulls []string
		for _, c := range s.Columns {
			columns = append(columns, fmt.Sprintf("'%s': '%s'", c.Name, c.Type))
		}
		for _, x := range s.NullTexts {
			nulls = append(nulls, "'"+x+"'")
		}
		must(t, bare, fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT * FROM read_csv('%s/%s', header=true, auto_detect=false, nullstr=[%s], columns={%s})",
			s.Name, example, s.Location, strings.Join(append(nulls, "''"), ","), strings.Join(columns, ",")))
	}
	// Each release differs from the one before in every model's text, so that each refresh builds every table anew.
	anew := func(i int) {
		var changed []project.File
		for _, f := range files {
			if strings.HasPrefix(f.Path, "models/") {
				f.Content = fmt.Appendf(slices.Clip(f.Content), "\n-- %d\n", i)
			}
			changed = append(changed, f)
		}
		deploy(t, n, changed, example)
	}
	compare(t, "refresh of examples/flights", "1.3", 7, anew, func(int) { refreshOnce(t, n, w) }, func(int) {
		for _, m := range rel.Models {
			must(t, bare, fmt.Sprintf("CREATE OR REPLACE TABLE bare.main.%s AS %s", m.Name, m.Statement.SQL))
		}
	})
}

// appends measures a refresh that appends the last month of flights, decoding, checks and activation included, against a refresh of the same
// project that builds all twelve months anew.
func appends(t *testing.T, dir string) {
	example := filepath.Join(nodetest.Root(t), "examples", "flights")
	declared, err := os.ReadFile(filepath.Join(example, "sources", "flights.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sources := filepath.Join(dir, "sources")
	if err := os.MkdirAll(filepath.Join(sources, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	month := func(i int) string { return fmt.Sprintf("data/flights-2013-%02d.csv.gz", i) }
	put := func(i int) {
		content, err := os.ReadFile(filepath.Join(example, month(i)))
		if err == nil {
			err = os.WriteFile(filepath.Join(sources, month(i)), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= 12; i++ {
		put(i)
	}
	n, _ := open(t, dir)
	build := func(round int) serving.Workspace {
		return deploy(t, n, []project.File{{Path: "leapview.yaml", Content: []byte("name: months\n")}, {Path: "sources/flights.yaml", Content: []byte(strings.Replace(string(declared), "bounds:", "# bounds:", 1))},
			{Path: "models/raw.sql", Content: fmt.Appendf(nil, "/*---\nmode: append\nchecks: [{not_null: [month, day, origin]}]\n---*/\nSELECT * FROM flights -- %d\n", round)},
			{Path: "endpoints/n.sql", Content: []byte("SELECT count(*) AS n FROM raw")}}, sources)
	}
	w := build(0)
	compare(t, "append of 1 month in 12", "full", 5, func(i int) {
		if err := os.Remove(filepath.Join(sources, month(12))); err != nil {
			t.Fatal(err)
		}
		build(2 * i)
		refreshOnce(t, n, w)
		put(12)
	}, func(int) { refreshOnce(t, n, w) }, func(i int) {
		build(2*i + 1)
		refreshOnce(t, n, w)
	})
}
