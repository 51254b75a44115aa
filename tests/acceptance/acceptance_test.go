package acceptance

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/adapters/fs"
	"leapview/app"
	"leapview/bootstrap"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
	"leapview/tests/nodetest"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// real gives the real parts, and the store that they open.
func real() (bootstrap.Parts, *bootstrap.Store) {
	parts, store := bootstrap.Real(), &bootstrap.Store{}
	open := parts.Store
	parts.Store = func(ctx context.Context, c bootstrap.Config, boot app.Boot, id ports.Identity, control bootstrap.Control, closers *bootstrap.Closers) (bootstrap.Store, error) {
		s, err := open(ctx, c, boot, id, control, closers)
		*store = s
		return s, err
	}
	return parts, store
}

func first(n *nodetest.Node, t *testing.T) {
	n.Write(t, nodetest.Order(1, "north", 10), nodetest.Order(2, "south", 20))
	n.Deploy(t, nodetest.Files())
	n.Refresh(t)
}

const firstNorth, secondNorth = `[["north",1,10]]`, `[["north",2,107]]`

func second(n *nodetest.Node, t *testing.T) {
	n.Write(t, nodetest.Order(1, "north", 100), nodetest.Order(3, "north", 7))
}

// limits are more than any answer here needs.
var limits = serving.Limits{Rows: 10, Bytes: 1 << 20}

// lease takes a lease on the current generation.
func lease(t *testing.T, n *nodetest.Node) *app.Lease {
	t.Helper()
	l, err := n.Generation.Acquire(nodetest.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// north asks the leased generation within the reading.
func north(r ports.Reading, l *app.Lease) (string, error) {
	a, err := r.Answer(context.Background(), l.Generation.Endpoints["region"].Query, serving.Args{"region": {Text: "north"}}, limits)
	return string(a.Rows), err
}

// read is north in a reading of its own.
func read(store *bootstrap.Store, l *app.Lease) (string, error) {
	r, err := store.Reader.Open(context.Background())
	if err != nil {
		return "", err
	}
	rows, err := north(r, l)
	return rows, errors.Join(err, r.Close())
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// openCatalogs counts the descriptors of this process on the catalog file.
func openCatalogs(t *testing.T, catalog string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && target == catalog {
			n++
		}
	}
	return n
}

// TestOneInstance proves the line "one DuckDB instance": through refreshes, a failure and a retirement the engine is constructed once
// and its catalog is open once.
func TestOneInstance(t *testing.T) {
	before := engine.Constructions()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "node")
	parts, _ := real()
	n := nodetest.Open(t, nodetest.Config(t, dir), parts)
	one := func(when string) {
		t.Helper()
		if got := engine.Constructions() - before; got != 1 {
			t.Errorf("%s: the engine was constructed %d times", when, got)
		}
		if got := openCatalogs(t, filepath.Join(dir, "ducklake", "catalog.duckdb")); got != 1 {
			t.Errorf("%s: the catalog is open %d times", when, got)
		}
	}
	one("after the start")
	first(n, t)
	one("after a refresh")
	second(n, t)
	n.Refresh(t)
	n.Worker.Retire(context.Background())
	one("after a retirement")
	n.Write(t, "x,north,1")
	if _, _, err := n.TryRefresh(t); err == nil {
		t.Fatal("a bad row was accepted")
	}
	one("after a failed refresh")
	expect(t, "after all that", n.Ask(t, "region", nil), secondNorth)
}

// TestHeldRead proves the line "a held pinned read does not stop a refresh commit on another connection": a read transaction that has
// read the lake reads the same again after the commit, and a query that executes all the while does not hold the commit up.
func TestHeldRead(t *testing.T) {
	parts, store := real()
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), parts)
	first(n, t)
	l := lease(t, n)
	defer l.Release()
	ctx := context.Background()
	held, err := store.Reader.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	rows, err := north(held, l)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "before the commit", rows, firstNorth)

	// The long query would take hours; it is stopped once the refresh beside it is over.
	long, err := store.Reader.Prepare(ctx, l.Generation.Pointer.Scope(nodetest.Workspace),
		project.Statement{SQL: "SELECT sum(o.amount + a.range * b.range) AS s FROM stg_orders o, range(3000000) a, range(3000000) b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	executing, err := store.Reader.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer executing.Close()
	longCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := executing.Answer(longCtx, long, nil, limits)
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond)

	second(n, t)
	done := make(chan error, 1)
	go func() { _, _, err := n.TryRefresh(t); done <- err }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("refresh beside held reads: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the refresh waits for held reads")
	}
	select {
	case err := <-ended:
		t.Fatalf("the long query ended before the refresh did: %v", err)
	default:
	}
	if rows, err = north(held, l); err != nil {
		t.Fatal(err)
	}
	expect(t, "in the same transaction after the commit", rows, firstNorth)
	expect(t, "a new request", n.Ask(t, "region", nil), secondNorth)
	stop()
	if err := <-ended; fail.KindOf(err) != fail.Canceled {
		t.Errorf("the stopped query ended with %v", err)
	}
}

// TestTwoGenerations proves the line "old and new generations observe exactly their snapshots at once".
func TestTwoGenerations(t *testing.T) {
	parts, store := real()
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), parts)
	first(n, t)
	older := lease(t, n)
	defer older.Release()
	second(n, t)
	n.Refresh(t)
	newer := lease(t, n)
	defer newer.Release()
	if older.Generation.Pointer.Snapshot == newer.Generation.Pointer.Snapshot {
		t.Fatal("both generations have one snapshot")
	}
	var all sync.WaitGroup
	for range 2 {
		for l, want := range map[*app.Lease]string{older: firstNorth, newer: secondNorth} {
			all.Go(func() {
				for range 20 {
					if rows, err := read(store, l); err != nil || rows != want {
						t.Errorf("snapshot %d answers %s, want %s; %v", l.Generation.Pointer.Snapshot, rows, want, err)
					}
				}
			})
		}
	}
	all.Wait()
}

// TestNoUnqualifiedRelation proves the line "no serving plan has an unqualified physical relation": every query of a generation, bound
// again by the engine, scans only this workspace's tables at exactly the generation's snapshot.
func TestNoUnqualifiedRelation(t *testing.T) {
	parts, store := real()
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), parts)
	n.Write(t, nodetest.Order(1, "north", 10))
	files := nodetest.Files()
	for name, sql := range map[string]string{
		"joined": "SELECT o.id, r.total FROM stg_orders o JOIN regions r ON o.region = r.region",
		"nested": "WITH big AS (SELECT * FROM stg_orders WHERE amount > (SELECT min(total) FROM regions)) SELECT count(*) AS n FROM big WHERE EXISTS (SELECT 1 FROM regions x WHERE x.region = big.region)",
		"union":  "SELECT region FROM regions UNION ALL (SELECT region FROM stg_orders ORDER BY (SELECT max(total) FROM regions))",
	} {
		files = nodetest.Replace(files, "endpoints/"+name+".sql", sql)
	}
	n.Deploy(t, files)
	p := n.Refresh(t)
	l := lease(t, n)
	defer l.Release()
	// Only beside a newer snapshot do a pinned relation and an unpinned one differ.
	second(n, t)
	n.Refresh(t)
	scans := 0
	for name, e := range l.Generation.Endpoints {
		text, ok := e.Query.(interface{ SQL() string })
		if !ok {
			t.Fatalf("the query of %s has no text", name)
		}
		c, err := store.Health.(*engine.Engine).Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		found, err := gate.Scans(context.Background(), c, text.SQL())
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("%s: the bound plan scans nothing", name)
		}
		for _, s := range found {
			scans++
			known := false
			for _, table := range p.Tables {
				known = known || s.Table == table
			}
			if s.Catalog != "lake" || s.Schema != string(nodetest.Workspace) || !known || s.Snapshot != int64(p.Snapshot) {
				t.Errorf("%s: scans %+v, want the workspace's tables at snapshot %d", name, s, p.Snapshot)
			}
		}
	}
	if scans < 9 {
		t.Errorf("only %d scans were seen; the statements hold at least 9", scans)
	}
}

// TestRetirement proves the line "retiring a generation cannot close the engine".
func TestRetirement(t *testing.T) {
	parts, store := real()
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), parts)
	first(n, t)
	older := lease(t, n)
	second(n, t)
	n.Refresh(t)
	ctx := context.Background()
	n.Worker.Retire(ctx)
	rows, err := read(store, older)
	if err != nil {
		t.Fatalf("a leased generation was retired: %v", err)
	}
	expect(t, "the leased generation", rows, firstNorth)
	older.Release()
	n.Worker.Retire(ctx)
	if err := store.Health.Fatal(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		n.Write(t, nodetest.Order(1, "north", i))
		n.Refresh(t)
		n.Worker.Retire(ctx)
		expect(t, "after a retirement", n.Ask(t, "region", nil), fmt.Sprintf(`[["north",1,%d]]`, i))
	}
}

// watched is a control plane that calls activating before an activation is written, and does not write it when that is an error.
type watched struct {
	ports.Control
	activating func() error
}

func (w watched) Update(ctx context.Context, s refresh.Scope, decide func(refresh.State) ([]refresh.Event, error)) error {
	return w.Control.Update(ctx, s, func(st refresh.State) ([]refresh.Event, error) {
		events, err := decide(st)
		for _, e := range events {
			if _, ok := e.(refresh.Activated); ok {
				err = errors.Join(err, w.activating())
			}
		}
		return events, err
	})
}

// watch has the parts' control plane watched.
func watch(parts *bootstrap.Parts, activating func() error) {
	open := parts.Control
	parts.Control = func(ctx context.Context, c bootstrap.Config, closers *bootstrap.Closers) (bootstrap.Control, error) {
		s, err := open(ctx, c, closers)
		s.Control = watched{s.Control, activating}
		return s, err
	}
}

// TestFailedActivation proves the line "a failed activation never shows an orphan": not at once, not after a restart, and not in what
// the next refresh activates.
func TestFailedActivation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	parts, _ := real()
	var failure error
	watch(&parts, func() error { return failure })
	n := nodetest.Open(t, nodetest.Config(t, dir), parts)
	first(n, t)
	second(n, t)
	failure = errors.New("the disk of the control plane is full")
	if _, _, err := n.TryRefresh(t); err == nil {
		t.Fatal("the activation did not fail")
	}
	expect(t, "right after the failure", n.Ask(t, "region", nil), firstNorth)
	n.Close(t)

	failure = nil
	n = nodetest.Open(t, nodetest.Config(t, dir), parts)
	expect(t, "after a restart", n.Ask(t, "region", nil), firstNorth)
	n.Write(t, nodetest.Order(9, "north", 1))
	n.Refresh(t)
	expect(t, "after the next refresh", n.Ask(t, "region", nil), `[["north",1,1]]`)
	expect(t, "no row of the orphan", n.Ask(t, "orders", nil), `[[9,"north",1]]`)
}

// recorded is the order in which things became durable.
type recorded struct {
	mu     sync.Mutex
	events []string
}

func (r *recorded) add(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

// TestSyncedBeforeActivation proves that every Parquet file of a candidate, and every folder above it, is synced before the
// transaction that activates it.
func TestSyncedBeforeActivation(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "node")
	order := &recorded{}
	parts, _ := real()
	openStore := parts.Store
	parts.Store = func(ctx context.Context, c bootstrap.Config, boot app.Boot, id ports.Identity, control bootstrap.Control, closers *bootstrap.Closers) (bootstrap.Store, error) {
		s, err := openStore(ctx, c, boot, id, control, closers)
		if err != nil {
			return s, err
		}
		s.Files = fs.NewDataFiles(c.Layout, func(f *os.File) error {
			err := f.Sync()
			name, pathErr := filepath.Rel(dir, fullName(f))
			order.add("sync " + name)
			return errors.Join(err, pathErr)
		})
		return s, nil
	}
	watch(&parts, func() error { order.add("activate"); return nil })
	n := nodetest.Open(t, nodetest.Config(t, dir), parts)
	first(n, t)
	second(n, t)
	// Which files a commit wrote is asked of the disk, not of what has to sync them.
	written := func() (files []string) {
		err := iofs.WalkDir(os.DirFS(filepath.Join(dir, "data")), ".", func(name string, e iofs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	before := written()
	order.events = nil
	n.Refresh(t)
	files := slices.DeleteFunc(written(), func(f string) bool { return slices.Contains(before, f) })
	if len(files) < 3 {
		t.Fatalf("the commit wrote only %v", files)
	}
	activated := slices.Index(order.events, "activate")
	if at := slices.Index(order.events, "sync ducklake"); at < 0 || at > activated {
		t.Errorf("the catalog's folder was not synced before the activation: %v", order.events)
	}
	for _, f := range files {
		for name := path.Join("data", f); name != "."; name = path.Dir(name) {
			if at := slices.Index(order.events, "sync "+name); at < 0 || at > activated {
				t.Errorf("%s was not synced before the activation: %v", name, order.events)
			}
		}
	}
}

// fullName is the path that a descriptor is open on.
func fullName(f *os.File) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return f.Name()
	}
	return name
}
