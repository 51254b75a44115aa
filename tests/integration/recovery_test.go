package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"leapview/adapters/mem"
	"leapview/app"
	"leapview/bootstrap"
	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
	"leapview/tests/nodetest"
)

// faulty is a control plane whose updates meet what the test says.
type faulty struct {
	ports.Control
	mu sync.Mutex
	// before and after decide, by the events about to be written, which error an update gives. Guarded by mu.
	before, after func(events []refresh.Event) error
	updates       int
}

func (f *faulty) Update(ctx context.Context, s refresh.Scope, decide func(refresh.State) ([]refresh.Event, error)) error {
	f.mu.Lock()
	before, after := f.before, f.after
	f.updates++
	f.mu.Unlock()
	var written []refresh.Event
	err := f.Control.Update(ctx, s, func(st refresh.State) ([]refresh.Event, error) {
		events, err := decide(st)
		written = events
		if err == nil && before != nil {
			err = before(events)
		}
		return events, err
	})
	if err == nil && after != nil {
		err = after(written)
	}
	return err
}

func (f *faulty) set(before, after func([]refresh.Event) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after, f.updates = before, after, 0
}

func holds[E refresh.Event](events []refresh.Event) bool {
	for _, e := range events {
		if _, ok := e.(E); ok {
			return true
		}
	}
	return false
}

// faulted are the world's twins, with the faults in the control plane.
func (w *world) faulted(f *faulty) bootstrap.Parts {
	parts := w.twins()
	open := parts.Control
	parts.Control = func(ctx context.Context, c bootstrap.Config, closers *bootstrap.Closers) (bootstrap.Control, error) {
		s, err := open(ctx, c, closers)
		f.Control, s.Control = s.Control, f
		return s, err
	}
	return parts
}

// What the region endpoint answers after the first refresh of a faulty node, and after the one that would come next.
const first, second = `[["north",1,10]]`, `[["north",1,99]]`

// faultyNode is a node of twins that serves a first refresh and has the sources of a second, with its control plane's faults.
func faultyNode(t *testing.T) (*nodetest.Node, *world, *faulty) {
	t.Helper()
	w, f := newWorld(t), &faulty{}
	n := nodetest.Open(t, nodetest.Config(t, w.dir), w.faulted(f))
	w.write(nodetest.Order(1, "north", 10))
	n.Deploy(t, nodetest.Files())
	n.Refresh(t)
	w.write(nodetest.Order(1, "north", 99))
	return n, w, f
}

// answers checks what the region endpoint says.
func answers(t *testing.T, n *nodetest.Node, when, want string) {
	t.Helper()
	if got := n.Ask(t, "region", nil); got != want {
		t.Errorf("%s: answers %s, want %s", when, got, want)
	}
}

// work runs the node's worker until the test ends.
func work(t *testing.T, n *nodetest.Node) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Worker.Loop(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (w *world) write(rows ...string) {
	w.sources.Files["orders.csv"] = []byte("id,region,amount\n" + strings.Join(rows, "\n") + "\n")
}

// TestActivationOfUnknownOutcome proves that an activation which was written although the store could not say so is published, and
// that one which was not written is not.
func TestActivationOfUnknownOutcome(t *testing.T) {
	unknown := func(events []refresh.Event) error {
		if holds[refresh.Activated](events) {
			return fail.New(fail.UnknownOutcome, "planted", "the connection broke during the commit")
		}
		return nil
	}
	n, _, f := faultyNode(t)
	f.set(nil, unknown)
	if p, _, err := n.TryRefresh(t); err != nil || p.Generation != 2 {
		t.Errorf("written: generation %d, %v", p.Generation, err)
	}
	answers(t, n, "written", second)
	n, _, f = faultyNode(t)
	f.set(unknown, nil)
	if _, _, err := n.TryRefresh(t); fail.KindOf(err) != fail.UnknownOutcome {
		t.Errorf("not written: %v", err)
	}
	answers(t, n, "not written", first)
}

// TestCommitWordIsNotBelieved proves that a commit is what the lake says it is, whatever the engine reported.
func TestCommitWordIsNotBelieved(t *testing.T) {
	n, w, _ := faultyNode(t)
	w.store.FailNextCommit(mem.FailsAfter)
	if p, _, err := n.TryRefresh(t); err != nil || p.Generation != 2 {
		t.Errorf("an error that hid a commit: generation %d, %v", p.Generation, err)
	}
	w.store.FailNextCommit(mem.LosesSilently)
	if _, _, err := n.TryRefresh(t); fail.CodeOf(err) != "commit_lost" {
		t.Errorf("a success that hid a rollback: %v", err)
	}
	w.store.FailNextCommit(mem.FailsBefore)
	if _, _, err := n.TryRefresh(t); err == nil {
		t.Error("a failed commit was activated")
	}
	answers(t, n, "after all that", second)
}

// TestWorkerSettlesLater proves that a run whose end could not be written down is neither lost nor tried without pause: the worker
// waits, settles it, and works it again.
func TestWorkerSettlesLater(t *testing.T) {
	n, _, f := faultyNode(t)
	full := fail.New(fail.Limit, "disk_full", "the disk of the control plane is full")
	f.set(func(events []refresh.Event) error {
		if holds[refresh.CandidateCommitted](events) || holds[refresh.RunEnded](events) || holds[refresh.RunRequeued](events) {
			return full
		}
		return nil
	}, nil)
	run, err := n.Refresher.Request(context.Background(), nodetest.Workspace, "", access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	work(t, n)
	time.Sleep(500 * time.Millisecond)
	f.mu.Lock()
	tries := f.updates
	f.mu.Unlock()
	if tries > 20 {
		t.Errorf("%d updates in half a second", tries)
	}
	f.set(nil, nil)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r, err := n.Refresher.Run(context.Background(), nodetest.Workspace, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == refresh.Succeeded {
			if r.Attempts != 2 {
				t.Errorf("%d attempts", r.Attempts)
			}
			break
		}
		if r.Status.Final() || time.Now().After(deadline) {
			t.Fatalf("the run is %+v", r)
		}
	}
}

// TestFatalEndsTheWorker proves that a fatal error outside of the engine ends the worker, and with it the process.
func TestFatalEndsTheWorker(t *testing.T) {
	n, _, f := faultyNode(t)
	if _, err := n.Refresher.Request(context.Background(), nodetest.Workspace, "", access.Local.Caller("")); err != nil {
		t.Fatal(err)
	}
	f.set(func(events []refresh.Event) error {
		if holds[refresh.CandidateSynced](events) {
			return fail.New(fail.Fatal, "planted", "the disk gave up")
		}
		return nil
	}, nil)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := n.Worker.Loop(ctx); fail.KindOf(err) != fail.Fatal {
		t.Errorf("the worker ended with %v", err)
	}
}

// TestUnrecordedCommitIsNoSecret proves that a commit which the control plane would not record belongs, all the same, to the orphan that it
// becomes: whoever cleans up must find it.
func TestUnrecordedCommitIsNoSecret(t *testing.T) {
	n, w, f := faultyNode(t)
	refused := false
	f.set(func(events []refresh.Event) error {
		if holds[refresh.CandidateCommitted](events) && !refused {
			refused = true
			return fail.New(fail.Busy, "planted", "try later")
		}
		return nil
	}, nil)
	_, id, err := n.TryRefresh(t)
	if fail.CodeOf(err) != "planted" {
		t.Fatalf("the refresh ended with %v", err)
	}
	s, err := w.control.Load(context.Background(), refresh.Scope{Workspace: nodetest.Workspace, Run: id})
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := s.Candidate.(refresh.Orphan); !ok || o.Snapshot() <= s.Pointer.Snapshot {
		t.Errorf("the candidate is %#v, over snapshot %d", s.Candidate, s.Pointer.Snapshot)
	}
	answers(t, n, "after it", first)
}

// TestDeathAfterEachStep proves, on the twins, that a process which dies after any step of a refresh leaves the old answers or serves the new
// ones, and that the next start settles the run and works it to its end.
func TestDeathAfterEachStep(t *testing.T) {
	died := errors.New("the process died")
	for name, step := range map[string]func([]refresh.Event) bool{
		"begin":    holds[refresh.AttemptBegan],
		"sources":  holds[refresh.SourcesAcquired],
		"tables":   holds[refresh.TableRecorded],
		"commit":   holds[refresh.CandidateCommitted],
		"sync":     holds[refresh.CandidateSynced],
		"validate": holds[refresh.CandidateValidated],
		"activate": holds[refresh.Activated],
	} {
		for _, written := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, written %t", name, written), func(t *testing.T) {
				n, w, f := faultyNode(t)
				if name == "tables" {
					// Other columns need another table.
					n.Deploy(t, nodetest.Replace(nodetest.Files(), "models/regions.sql", "/*---\n{\"columns\": {\"total\": \"BIGINT\"}}\n---*/\nSELECT region, count(*) AS orders, sum(amount) AS total, min(id) AS lowest FROM stg_orders GROUP BY region\n"))
				}
				// Once dead, nothing is written any more.
				dead := false
				f.set(func(events []refresh.Event) error {
					if dead = dead || !written && step(events); dead {
						return died
					}
					return nil
				}, func(events []refresh.Event) error {
					if dead = step(events); dead {
						return died
					}
					return nil
				})
				if _, _, err := n.TryRefresh(t); !errors.Is(err, died) {
					t.Error(err)
				}
				answers(t, n, "after the death", first)
				n.Close(t)
				f.set(nil, nil)
				n = nodetest.Open(t, nodetest.Config(t, w.dir), w.faulted(f))
				if name == "activate" && written {
					// The pointer moved; only the process that moved it did not live to serve it.
					answers(t, n, "after the restart", second)
					return
				}
				answers(t, n, "after the restart", first)
				work(t, n)
				for deadline := time.Now().Add(10 * time.Second); n.Ask(t, "region", nil) != second; time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("the run was not worked again")
					}
				}
			})
		}
	}
}

// TestStopGivesTheRunBack proves that a node which chose to stop during a refresh, at whatever step, gives the run back without burning one
// of its attempts, more often than a run may die; that a death in between counts, and so does a stop that could not be written down or
// that a fatal error forced; and that the run is worked to its end at last.
func TestStopGivesTheRunBack(t *testing.T) {
	for name, step := range map[string]func([]refresh.Event) bool{
		"begin":    holds[refresh.AttemptBegan],
		"sources":  holds[refresh.SourcesAcquired],
		"commit":   holds[refresh.CandidateCommitted],
		"sync":     holds[refresh.CandidateSynced],
		"validate": holds[refresh.CandidateValidated],
	} {
		n, w, f := faultyNode(t)
		asked, err := n.Refresher.Request(context.Background(), nodetest.Workspace, "", access.Local.Caller(""))
		if err != nil {
			t.Fatal(err)
		}
		restarted := func(died int) {
			t.Helper()
			n.Close(t)
			f.set(nil, nil)
			n = nodetest.Open(t, nodetest.Config(t, w.dir), w.faulted(f))
			run, err := n.Refresher.Run(context.Background(), nodetest.Workspace, asked.ID)
			if err != nil {
				t.Fatal(err)
			}
			if run.Status != refresh.Queued || run.Attempts-run.Stops != died {
				t.Fatalf("%s: after the restart the run is %s after %d attempts and %d stops, want %d that died", name, run.Status, run.Attempts, run.Stops, died)
			}
			if got := n.Ask(t, "region", nil); got != first {
				t.Errorf("%s: answers %s", name, got)
			}

		}
		stop := func(written bool, cause error) {
			t.Helper()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			stopped := false
			f.set(func(events []refresh.Event) error {
				if stopped = stopped && !written || step(events); !stopped {
					return nil
				}
				cancel(cause)
				return fail.New(fail.Canceled, "canceled", "the node stops")
			}, nil)
			if err := n.Worker.Loop(ctx); err != nil {
				t.Errorf("%s: the worker ended with %v", name, err)
			}
		}
		for range refresh.MaxAttempts + 1 {
			stop(true, app.ErrStopping)
			restarted(0)
		}
		died := 0
		if name != "begin" {
			stop(false, app.ErrStopping)
			died++
			restarted(died)
			stop(true, errors.Join(app.ErrStopping, fail.New(fail.Fatal, "planted", "the engine was invalidated")))
			died++
			restarted(died)
		}
		stop(true, app.ErrStopping)
		restarted(died)

		ctx, end := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- n.Worker.Loop(ctx) }()
		for deadline := time.Now().Add(10 * time.Second); n.Ask(t, "region", nil) != second; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s: the run was not worked again", name)
				break
			}
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSourcesAreRecorded proves that each attempt's source files are known afterwards, with the digests of what was there when it read
// them, and that no transaction was added for them.
func TestSourcesAreRecorded(t *testing.T) {
	n, w, f := faultyNode(t)
	n.Refresh(t)
	for fence, amount := range map[refresh.Fence]int{1: 10, 2: 99} {
		content := []byte("id,region,amount\n" + nodetest.Order(1, "north", amount) + "\n")
		want := []refresh.SourceFile{{Source: "orders", Name: "orders.csv", Size: int64(len(content)), SHA256: project.DigestOf(content)}}
		if got := w.control.SourceFiles(fence); !reflect.DeepEqual(got, want) {
			t.Errorf("attempt %d read %+v, want %+v", fence, got, want)
		}
	}
	w.write(nodetest.Order(1, "north", 7))
	f.set(nil, nil)
	n.Refresh(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	// The request, the attempt, what it read and makes, its commit, its files, its checks, the activation.
	if f.updates != 7 {
		t.Errorf("a refresh writes %d times", f.updates)
	}
}

// TestStoresThatWentBack proves, on the real adapters, that a node refuses to serve and to write when its catalog or its control plane
// is older than the other, or than the fence file.
func TestStoresThatWentBack(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		code  string
	}{
		"catalog":       {[]string{"ducklake/catalog.duckdb"}, "lake_went_back"},
		"control plane": {[]string{"leapview.db"}, "control_plane_went_back"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "node")
			n := nodetest.Open(t, nodetest.Config(t, dir), bootstrap.Real())
			n.Write(t, nodetest.Order(1, "north", 10))
			n.Deploy(t, nodetest.Files())
			n.Refresh(t)
			n.Close(t)
			kept := map[string][]byte{}
			for _, f := range c.files {
				b, err := os.ReadFile(filepath.Join(dir, f))
				if err != nil {
					t.Fatal(err)
				}
				kept[f] = b
			}
			n = nodetest.Open(t, nodetest.Config(t, dir), bootstrap.Real())
			n.Refresh(t)
			n.Close(t)
			for f, b := range kept {
				for _, wal := range []string{".wal", "-wal", "-shm"} {
					if err := os.Remove(filepath.Join(dir, f+wal)); err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(dir, f), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := nodetest.TryOpen(t, nodetest.Config(t, dir), bootstrap.Real()); fail.CodeOf(err) != c.code || fail.KindOf(err) != fail.Corrupt {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
}
