package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"leapview/adapters/fs"
	"leapview/adapters/mem"
	"leapview/app"
	"leapview/bootstrap"
	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
	"leapview/tests/nodetest"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what twins share, so that a node can be closed and opened again over the same things.
type world struct {
	dir     string
	control *mem.Control
	disk    *mem.Disk
	store   *mem.Store
	sources *mem.Sources
	clock   *mem.Clock
	ids     *mem.Identity
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: filepath.Join(t.TempDir(), "node"), control: mem.NewControl(), disk: &mem.Disk{}, clock: &mem.Clock{}, ids: &mem.Identity{}}
	w.sources = &mem.Sources{Files: map[string][]byte{}}
	// The real files make their folders themselves; beside their twin nobody does.
	for _, folder := range []string{"staged", "exports"} {
		if err := os.MkdirAll(filepath.Join(w.dir, "runtime", folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// content gives a staged copy from memory, or from the disk when real files are beside the twin of the lake.
func (w *world) content(a ports.Artifact) ([]byte, error) {
	if strings.HasPrefix(a.Path, w.dir) {
		return os.ReadFile(a.Path)
	}
	return w.sources.Content(a)
}

// healthy is the twin of an engine that is never invalidated.
type healthy struct{}

func (healthy) Fatal() error { return nil }

// twins are the parts of a node that touches no disk.
func (w *world) twins() bootstrap.Parts {
	return bootstrap.Parts{
		Layout: fs.At,
		Files: func(context.Context, bootstrap.Config, app.Boot, *bootstrap.Closers) (bootstrap.Files, error) {
			return bootstrap.Files{Sources: w.sources, Bundles: &mem.Bundles{Disk: w.disk}, Watermark: &mem.Watermark{Disk: w.disk}}, nil
		},
		Control: func(context.Context, bootstrap.Config, *bootstrap.Closers) (bootstrap.Control, error) {
			w.control = w.control.Reopen()
			return bootstrap.Control{Control: w.control, Registry: w.control, Keys: w.control}, nil
		},
		Store: func(ctx context.Context, _ bootstrap.Config, _ app.Boot, id ports.Identity, control bootstrap.Control, _ *bootstrap.Closers) (bootstrap.Store, error) {
			record, err := control.Registry.Lake(ctx)
			if err != nil {
				return bootstrap.Store{}, err
			}
			if !record.Ready {
				record = ports.LakeRecord{Lineage: id.NewID(), Ready: true}
				if err := control.Registry.RecordLake(ctx, record); err != nil {
					return bootstrap.Store{}, err
				}
			}
			if w.store == nil {
				w.store = mem.NewStore(record.Lineage, mem.StoreOptions{Clock: w.clock, Disk: w.disk, Readings: 16, Content: w.content})
			}
			return bootstrap.Store{Lake: w.store, Files: &mem.DataFiles{Disk: w.disk}, Compiler: mem.Compiler{}, Reader: w.store, Checker: w.store, Examiner: mem.Examiner{Content: w.sources.Content}, Health: healthy{}}, nil
		},
		Documents: func() ports.Documents { return mem.Documents{} },
		Clock:     func() ports.Clock { return w.clock },
		Identity:  func() ports.Identity { return w.ids },
	}
}

// TestScenario proves that a node behaves the same whatever its adapters are.
func TestScenario(t *testing.T) {
	real := bootstrap.Real()
	for _, c := range []struct {
		name string
		mix  func(w *world, p *bootstrap.Parts)
	}{
		{"all twins", func(*world, *bootstrap.Parts) {}},
		{"real control plane", func(_ *world, p *bootstrap.Parts) { p.Control = real.Control }},
		{"real lake", func(w *world, p *bootstrap.Parts) {
			p.Layout, p.Store = real.Layout, real.Store
			// A real engine reads files and not Go memory.
			w.sources.Dir = filepath.Join(w.dir, "runtime", "staged")
		}},
		{"real files", func(_ *world, p *bootstrap.Parts) { p.Layout, p.Files = real.Layout, real.Files }},
		{"real YAML", func(_ *world, p *bootstrap.Parts) { p.Documents = real.Documents }},
		{"real clock and ids", func(_ *world, p *bootstrap.Parts) { p.Clock, p.Identity = real.Clock, real.Identity }},
		{"all real", func(_ *world, p *bootstrap.Parts) { *p = real }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			parts := w.twins()
			c.mix(w, &parts)
			scenario(t, w, parts)
		})
	}
}

// scenario is the life of a workspace: nothing there, a deploy, a refresh, answers and refusals, a second refresh beside a lease on the
// first generation, three kinds of failed refreshes, and a restart.
func scenario(t *testing.T, w *world, parts bootstrap.Parts) {
	ctx := context.Background()
	n := nodetest.Open(t, nodetest.Config(t, w.dir), parts)
	write := func(rows ...string) {
		t.Helper()
		n.Write(t, rows...)
		w.write(rows...)
	}
	kind := func(what string, err error, want fail.Kind) {
		t.Helper()
		if fail.KindOf(err) != want {
			t.Errorf("%s: got %v (%s), want %s", what, err, fail.KindOf(err), want)
		}
	}
	rows := func(endpoint, want string, params ...string) {
		t.Helper()
		given := map[string]string{}
		for i := 0; i+1 < len(params); i += 2 {
			given[params[i]] = params[i+1]
		}
		if got := n.Ask(t, endpoint, given); got != want {
			t.Errorf("%s %v: got %s, want %s", endpoint, params, got, want)
		}
	}

	_, err := n.Asker.Ask(ctx, nodetest.Workspace, []app.Call{{Endpoint: "region"}})
	kind("before anything", err, fail.Missing)
	_, err = n.Refresher.Request(ctx, nodetest.Workspace, "", access.Local.Caller(""))
	kind("a refresh of nothing", err, fail.Conflict)

	write(nodetest.Order(1, "north", 10), nodetest.Order(2, "south", 20), "3,north,NA")
	deployed := n.Deploy(t, nodetest.Files())
	if again := n.Deploy(t, nodetest.Files()); again.Deployment.Release != deployed.Deployment.Release || again.Deployment.Number != 2 {
		t.Errorf("the same files were deployed as %+v, then as %+v", deployed.Deployment, again.Deployment)
	}

	asked, err := n.Refresher.Request(ctx, nodetest.Workspace, "monday", access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := n.Refresher.Request(ctx, nodetest.Workspace, "monday", access.Local.Caller("")); err != nil || twice.ID != asked.ID {
		t.Errorf("one key gave run %s, then %s, %v", asked.ID, twice.ID, err)
	}
	var phases []plan.Phase
	p, err := n.Worker.WorkOne(ctx, nodetest.Workspace, asked.ID, func(s plan.Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != s.Phase {
			phases = append(phases, s.Phase)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(phases); got != "[acquire stage create build commit sync validate activate]" {
		t.Errorf("the phases were %s", got)
	}
	if p.Generation != 1 || p.Snapshot <= 0 || p.Release != deployed.Deployment.Release || len(p.Tables) != 2 {
		t.Errorf("activated %+v", p)
	}
	rows("region", `[["north",1,10]]`)
	rows("region", `[["south",1,20]]`, "region", "south")
	rows("orders", `[[2,"south",20]]`, "at_least", "15")
	_, err = n.Asker.Ask(ctx, nodetest.Workspace, []app.Call{{Endpoint: "regoin"}})
	kind("unknown endpoint", err, fail.Missing)
	_, err = n.Asker.Ask(ctx, nodetest.Workspace, []app.Call{{Endpoint: "orders", Call: project.Call{Params: map[string]project.Given{"at_least": project.Texts("many")}}}})
	kind("bad parameter", err, fail.Invalid)

	lease, err := n.Generation.Acquire(nodetest.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	write(nodetest.Order(1, "north", 100), nodetest.Order(4, "east", 5))
	if second := n.Refresh(t); second.Generation != 2 || second.Snapshot <= p.Snapshot {
		t.Errorf("activated %+v after %+v", second, p)
	}
	bundle, err := n.Asker.Ask(ctx, nodetest.Workspace, []app.Call{{Name: "a", Endpoint: "region"}, {Name: "b", Endpoint: "orders"}})
	if err != nil || bundle.Pointer.Generation != 2 || string(bundle.Answers[0].Rows) != `[["north",1,100]]` || bundle.Answers[1].Count != 2 {
		t.Errorf("the bundle gave %+v, %v", bundle, err)
	}
	n.Worker.Retire(ctx)
	if lease.Generation.Pointer.Generation != 1 {
		t.Errorf("the lease is on %+v", lease.Generation.Pointer)
	}
	lease.Release()
	n.Worker.Retire(ctx)

	failed := func(what string, want fail.Kind) {
		t.Helper()
		_, id, err := n.TryRefresh(t)
		kind(what, err, want)
		run, err := n.Refresher.Run(ctx, nodetest.Workspace, id)
		if err != nil || run.Status != refresh.Failed || run.Failure.Message == "" {
			t.Errorf("%s: the run is %+v, %v", what, run, err)
		}
		rows("region", `[["north",1,100]]`)
	}
	write(nodetest.Order(1, "north", 1), nodetest.Order(1, "south", 2))
	failed("a check that fails", fail.Invalid)
	write("x,north,1")
	failed("a bad row", fail.Invalid)
	n.Deploy(t, nodetest.Replace(nodetest.Files(), "sources/orders.yaml", `{"connector": "file", "location": "nothing*.csv", "format": "csv", "columns": {"id": "BIGINT", "region": "VARCHAR", "amount": "BIGINT"}}`))
	failed("no source file", fail.Missing)
	n.Close(t)

	n = nodetest.Open(t, nodetest.Config(t, w.dir), parts)
	rows("region", `[["north",1,100]]`)
	n.Deploy(t, nodetest.Files())
	write(nodetest.Order(8, "north", 3))
	if third := n.Refresh(t); third.Generation != 3 {
		t.Errorf("activated %+v after the restart", third)
	}
	rows("orders", `[[8,"north",3]]`)
	status, err := n.Status.Workspace(ctx, nodetest.Workspace)
	if err != nil || status.Pointer.Generation != 3 || len(status.Live) != 0 || status.Problem != "" || status.Workspace != serving.Workspace("shop") {
		t.Errorf("the status is %+v, %v", status, err)
	}
}
