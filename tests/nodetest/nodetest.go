// Package nodetest opens whole nodes for tests: a small project over CSV files that the test writes, composed by bootstrap with the
// adapters that the test chooses.
//
// Invariant: what it opens is closed when the test ends. It proves nothing by itself.
package nodetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"leapview/app"
	"leapview/bootstrap"
	"leapview/domain/access"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// Workspace is the name of the small project.
const Workspace serving.Workspace = "shop"

// Root is the repository's root.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// Extensions is the folder that `make extensions` fills.
func Extensions(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(t), ".extensions")
	if _, err := os.Stat(filepath.Join(dir, "ducklake.duckdb_extension")); err != nil {
		t.Fatalf("the engine's extension is missing (%v): run make extensions", err)
	}
	return dir
}

// Config is a small node over dir.
func Config(t testing.TB, dir string) bootstrap.Config {
	return bootstrap.Config{Settings: app.Settings{DataDir: dir, Extensions: Extensions(t), Listen: "127.0.0.1:0", Memory: 256 << 20, TempSpace: 256 << 20, Threads: 2, Limits: app.DefaultLimits()}}
}

// Files is the small project, written so that every parser and compiler of the tree understands it: the YAML is JSON, and the SQL
// is the subset that the in-memory twin speaks.
func Files() []project.File {
	return []project.File{
		{Path: "leapview.yaml", Content: []byte(`{"name": "shop"}`)},
		{Path: "sources/orders.yaml", Content: []byte(`{"connector": "file", "location": "orders*.csv", "format": "csv", "null_texts": ["NA"],
 "columns": {"id": "BIGINT", "region": "VARCHAR", "amount": "BIGINT"}}`)},
		{Path: "models/stg_orders.sql", Content: []byte(`/*---
{"layer": "staging", "checks": [{"not_null": ["id", "region"]}, {"unique": "id"}, {"row_count": {"min": 1}}]}
---*/
SELECT id, region, amount FROM orders WHERE amount IS NOT NULL
`)},
		{Path: "models/regions.sql", Content: []byte(`/*---
{"layer": "mart", "columns": {"total": "BIGINT"}, "checks": [{"unique": "region"}]}
---*/
SELECT region, count(*) AS orders, sum(amount) AS total FROM stg_orders GROUP BY region
`)},
		{Path: "endpoints/region.sql", Content: []byte(`/*---
{"params": {"region": {"type": "string", "default": "north"}}}
---*/
SELECT region, orders, total FROM regions WHERE region = $region
`)},
		{Path: "endpoints/orders.sql", Content: []byte(`/*---
{"params": {"at_least": {"type": "integer", "default": "0"}}, "limit": 100}
---*/
SELECT id, region, amount FROM stg_orders WHERE amount >= $at_least ORDER BY id
`)},
	}
}

// Replace gives files with one of them replaced or added.
func Replace(files []project.File, path, content string) []project.File {
	var out []project.File
	for _, f := range files {
		if f.Path != path {
			out = append(out, f)
		}
	}
	return append(out, project.File{Path: path, Content: []byte(content)})
}

// Node is an opened node with the folder its sources lie in.
type Node struct {
	*bootstrap.Node
	Sources string
	close   func() error
}

// Open composes a node over dir and proves its stores, like a start does. It is closed at the end of the test, or before by Close.
func Open(t testing.TB, c bootstrap.Config, parts bootstrap.Parts) *Node {
	t.Helper()
	n, err := TryOpen(t, c, parts)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TryOpen is Open for tests that expect a refusal.
func TryOpen(t testing.TB, c bootstrap.Config, parts bootstrap.Parts) (*Node, error) {
	t.Helper()
	ctx := context.Background()
	var log bytes.Buffer
	composed, closers, err := bootstrap.Compose(ctx, c, parts, slog.New(slog.NewTextHandler(io.Writer(&log), nil)))
	if err != nil {
		return nil, err
	}
	n := &Node{Node: composed, Sources: filepath.Join(c.DataDir, "..", "sources"), close: closers.Close}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the node:\n%s", log.String())
		}
	})
	if err := composed.Recoverer.Prove(ctx); err != nil {
		return n, err
	}
	if err := composed.Recoverer.PublishAll(ctx); err != nil {
		return n, err
	}
	composed.Readiness.Set(nil)
	return n, os.MkdirAll(n.Sources, 0o700)
}

// Close closes the node now.
func (n *Node) Close(t testing.TB) {
	t.Helper()
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
}

// Write writes orders.csv: rows are id,region,amount lines.
func (n *Node) Write(t testing.TB, rows ...string) {
	t.Helper()
	text := "id,region,amount\n"
	for _, r := range rows {
		text += r + "\n"
	}
	if err := os.WriteFile(filepath.Join(n.Sources, "orders.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Deploy deploys files.
func (n *Node) Deploy(t testing.TB, files []project.File) app.Deployed {
	t.Helper()
	bundle, err := project.Pack(files)
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.Deployer.Deploy(context.Background(), bundle, n.Sources, access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TryRefresh requests one refresh and works it.
func (n *Node) TryRefresh(t testing.TB) (serving.Pointer, refresh.RunID, error) {
	t.Helper()
	ctx := context.Background()
	run, err := n.Refresher.Request(ctx, Workspace, "", access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Worker.WorkOne(ctx, Workspace, run.ID, func(plan.Progress) {})
	return p, run.ID, err
}

// Refresh is TryRefresh that must succeed.
func (n *Node) Refresh(t testing.TB) serving.Pointer {
	t.Helper()
	p, _, err := n.TryRefresh(t)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Ask calls one endpoint and gives its rows as JSON text.
func (n *Node) Ask(t testing.TB, endpoint string, params map[string]string) string {
	t.Helper()
	call := project.Call{Params: map[string]project.Given{}}
	for name, text := range params {
		call.Params[name] = project.Texts(text)
	}
	a, err := n.Asker.Ask(context.Background(), Workspace, []app.Call{{Endpoint: endpoint, Call: call}})
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Answers[0].Rows)
}

// Order is an order line.
func Order(id int, region string, amount int) string {
	return fmt.Sprintf("%d,%s,%d", id, region, amount)
}
