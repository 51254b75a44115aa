package refresh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a control plane of one workspace and a lake, as small as they can be. It applies events the way storage must.
type world struct {
	highest    Fence
	fence      Fence
	pointer    serving.Pointer
	deployment Deployment
	runs       []Run
	// candidates are the newest attempts by run; an activated one is gone.
	candidates map[RunID]Candidate
	// commits are the snapshots of the lake by the mark on them.
	commits map[Mark]serving.Snapshot
	newest  serving.Snapshot
	// begun are all attempts ever made: old ones may still be at work somewhere.
	begun []Begun
}

func (w world) copy() world {
	w.runs = slices.Clone(w.runs)
	w.begun = slices.Clone(w.begun)
	c, m := map[RunID]Candidate{}, map[Mark]serving.Snapshot{}
	for k, v := range w.candidates {
		c[k] = v
	}
	for k, v := range w.commits {
		m[k] = v
	}
	w.candidates, w.commits = c, m
	return w
}

// state is what a decision about the run sees.
func (w world) state(id RunID) State {
	s := State{Workspace: "w", Exists: true, Lineage: "l", HighestFence: w.highest, Fence: w.fence, Pointer: w.pointer, Deployment: w.deployment}
	for _, r := range w.runs {
		if !r.Status.Final() {
			s.Live = append(s.Live, r)
		}
		if r.ID == id {
			run := r
			s.Run, s.Candidate = &run, w.candidates[id]
		}
	}
	return s
}

func (w *world) run(id RunID) *Run {
	for i := range w.runs {
		if w.runs[i].ID == id {
			return &w.runs[i]
		}
	}
	return nil
}

func (w *world) apply(t *testing.T, events []Event) {
	t.Helper()
	for _, e := range events {
		switch e := e.(type) {
		case Deployed:
			w.deployment = e.Deployment
		case RunRequested:
			w.runs = append(w.runs, e.Run)
		case AttemptBegan:
			m := e.Candidate.Mark()
			r := w.run(m.Run)
			r.Status, r.Owner, r.Attempts = Running, e.Owner, m.Attempt
			w.highest, w.fence = m.Fence, m.Fence
			w.candidates[m.Run] = e.Candidate
			w.begun = append(w.begun, e.Candidate)
		case CandidateCommitted:
			w.candidates[e.Candidate.Mark().Run] = e.Candidate
		case CandidateSynced:
			w.candidates[e.Candidate.Mark().Run] = e.Candidate
		case CandidateValidated:
			w.candidates[e.Candidate.Mark().Run] = e.Candidate
		case CandidateOrphaned:
			w.candidates[e.Candidate.Mark().Run] = e.Candidate
		case Activated:
			delete(w.candidates, e.Candidate.Mark().Run)
			w.pointer = e.Pointer
		case RunRequeued:
			r := w.run(e.Run)
			r.Status = Queued
			if e.Stopped {
				r.Stops++
			}
		case RunEnded:
			w.run(e.Run).Status = e.Status
		case WorkspaceCreated, ReleaseAccepted, SourcesAcquired, TableRecorded, GenerationRetired:
		default:
			t.Fatalf("the world does not know %T", e)
		}
	}
}

func (w world) key() string {
	s := fmt.Sprint(w.highest, w.fence, w.pointer.Generation, w.pointer.Snapshot, w.pointer.Run, w.deployment.Number, w.newest)
	for _, r := range w.runs {
		s += fmt.Sprint("|", r.ID, r.Status, r.Owner, r.Attempts, r.Stops)
		if c := w.candidates[r.ID]; c != nil {
			s += fmt.Sprint(c.Stage(), c.Mark().Fence, row(c).Snapshot)
		}
	}
	for _, b := range w.begun {
		s += fmt.Sprint("/", b.Mark().Fence, w.commits[b.Mark()])
	}
	return s
}

// steps are the worlds that one step leads to, by the step's name. A step that is refused is left out, unless it may not be.
func (w world) steps(t *testing.T) map[string]world {
	out := map[string]world{}
	step := func(name string, events []Event, err error) {
		if err == nil {
			n := w.copy()
			n.apply(t, events)
			out[name] = n
		}
	}
	if w.deployment.Number < 1 {
		_, events, err := w.state("").Deploy(project.Digest(fmt.Sprint("release", w.deployment.Number+1)), 1, "/", now, "me")
		step("deploy", events, err)
	}
	if len(w.runs) < 2 {
		_, events, err := w.state("").Request(RunID(fmt.Sprint("run", len(w.runs)+1)), "", now, "me")
		step("request", events, err)
	}
	for _, r := range w.runs {
		s := w.state(r.ID)
		if w.highest < 3 {
			_, events, err := s.Begin(fmt.Sprint("boot", w.highest), w.deployment.Release, "plan", now)
			step(fmt.Sprint("begin ", r.ID), events, err)
		}
		events, err := s.Fail(Failed, Failure{Message: "why"}, 0, now)
		step(fmt.Sprint("fail ", r.ID), events, err)
		var committed serving.Snapshot
		if s.Candidate != nil {
			committed = w.commits[s.Candidate.Mark()]
		}
		events, err = s.Interrupted(committed, now)
		step(fmt.Sprint("interrupt ", r.ID), events, err)
		// One run's node is enough to stop: it differs from a death by what it counts only.
		if r.ID == "run1" {
			events, err = s.Stopped(committed, now)
			step(fmt.Sprint("stop ", r.ID), events, err)
		}
	}
	// Every attempt ever begun goes on, whether it still may or not.
	for _, b := range w.begun {
		m := b.Mark()
		at, committed := w.commits[m]
		if !committed {
			n := w.copy()
			n.newest++
			n.commits[m] = n.newest
			out[fmt.Sprint("lake commit ", m.Fence)] = n
			continue
		}
		s := w.state(m.Run)
		c, err := b.Proved(m, at)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Synced(nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := d.Judged(nil)
		if err != nil {
			t.Fatal(err)
		}
		events, err := s.RecordCommit(c, now)
		step(fmt.Sprint("record commit ", m.Fence), events, err)
		events, err = s.RecordSync(d, now)
		step(fmt.Sprint("record sync ", m.Fence), events, err)
		events, err = s.RecordValidation(v, now)
		step(fmt.Sprint("record validation ", m.Fence), events, err)
		_, events, err = s.Activate(v, nil, "boot", now, now)
		step(fmt.Sprint("activate ", m.Fence), events, err)
	}
	return out
}

// Proves, over every order in which two runs, up to three attempts, crashes, stops, failures and late attempts can interleave, that an
// older fence never wins, that only a validated candidate of the newest fence is activated, that each activation serves a
// snapshot that carries its own mark and is newer than the one before, and that a run which has ended never changes.
func TestEveryInterleaving(t *testing.T) {
	first := world{candidates: map[RunID]Candidate{}, commits: map[Mark]serving.Snapshot{}}
	seen := map[string]bool{first.key(): true}
	front := []world{first}
	activations := 0
	for depth := 0; len(front) > 0; depth++ {
		if depth > 60 {
			t.Fatal("the world does not end")
		}
		var next []world
		for _, w := range front {
			for name, n := range w.steps(t) {
				if n.highest != w.highest && n.highest != w.highest+1 || n.fence != n.highest {
					t.Fatalf("%s: fence %d/%d after %d", name, n.fence, n.highest, w.highest)
				}
				for i, r := range w.runs {
					if r.Status.Final() && n.runs[i] != r {
						t.Fatalf("%s changed a run that had ended: %+v to %+v", name, r, n.runs[i])
					}
					// A candidate changes only through its own newest fence, or by being given up.
					before, after := w.candidates[r.ID], n.candidates[r.ID]
					if before != nil && after != nil && before.Stage() != after.Stage() && after.Stage() != StageOrphan && after.Mark().Fence != n.fence {
						t.Fatalf("%s moved the fenced attempt %s from %s to %s", name, after.Mark(), before.Stage(), after.Stage())
					}
				}
				if n.pointer.Generation != w.pointer.Generation {
					activations++
					c, ok := w.candidates[RunID(n.pointer.Run)].(Validated)
					if !ok || c.Mark().Fence != w.fence || c.Snapshot() != n.pointer.Snapshot {
						t.Fatalf("%s activated %+v from %+v at fence %d", name, n.pointer, w.candidates[RunID(n.pointer.Run)], w.fence)
					}
					if n.commits[c.Mark()] != n.pointer.Snapshot || n.pointer.Snapshot <= w.pointer.Snapshot || n.pointer.Generation != w.pointer.Generation+1 {
						t.Fatalf("%s: pointer %+v after %+v", name, n.pointer, w.pointer)
					}
					if r := n.run(RunID(n.pointer.Run)); r.Status != Succeeded {
						t.Fatalf("%s: the run that activated is %s", name, r.Status)
					}
				} else if n.pointer.Snapshot != w.pointer.Snapshot {
					t.Fatalf("%s moved the pointer without a generation", name)
				}
				if k := n.key(); !seen[k] {
					seen[k] = true
					next = append(next, n)
				}
			}
		}
		front = next
	}
	if activations == 0 || len(seen) < 1000 {
		t.Errorf("only %d worlds and %d activations: the test explores nothing", len(seen), activations)
	}
	t.Logf("%d worlds, %d activations", len(seen), activations)
}

// Proves the decisions about requests: nothing to refresh, the same key, and the bound on waiting runs.
func TestRequest(t *testing.T) {
	if _, _, err := (State{Workspace: "w"}).Request("r", "", now, "me"); fail.CodeOf(err) != "nothing_deployed" || fail.KindOf(err) != fail.Conflict {
		t.Errorf("nothing deployed: %v", err)
	}
	s := State{Workspace: "w", Deployment: Deployment{Number: 1, Release: "rel"}}
	r, events, err := s.Request("r", "key", now, "me")
	if err != nil || len(events) != 1 || r.Status != Queued || r.IdempotencyKey != "key" || r.RequestedBy != "me" || !r.RequestedAt.Equal(now) {
		t.Errorf("got %+v, %v, %v", r, events, err)
	}
	s.Keyed = &Run{ID: "old", Status: Failed}
	if r, events, err := s.Request("r", "key", now, "me"); err != nil || len(events) != 0 || r.ID != "old" {
		t.Errorf("the same key: %+v, %v, %v", r, events, err)
	}
	s.Keyed, s.Live = nil, make([]Run, MaxLiveRuns-1)
	if _, _, err := s.Request("r", "", now, "me"); err != nil {
		t.Error(err)
	}
	s.Live = make([]Run, MaxLiveRuns)
	if _, _, err := s.Request("r", "", now, "me"); fail.CodeOf(err) != "too_many_runs" || fail.KindOf(err) != fail.Busy {
		t.Errorf("too many: %v", err)
	}
}

// Proves that a deployment is numbered, and that the workspace and the release are recorded the first time only.
func TestDeploy(t *testing.T) {
	names := func(events []Event) (out []string) {
		for _, e := range events {
			out = append(out, e.EventName())
		}
		return out
	}
	d, events, err := (State{Workspace: "w"}).Deploy("rel", 9, "/src", now, "me")
	if err != nil || d != (Deployment{Number: 1, Release: "rel", SourceRoot: "/src", At: now, By: "me"}) || !slices.Equal(names(events), []string{"workspace_created", "release_accepted", "deployed"}) {
		t.Errorf("got %+v, %v, %v", d, names(events), err)
	}
	d, events, err = (State{Workspace: "w", Exists: true, Deployment: d, Releases: map[project.Digest]bool{"rel": true}}).Deploy("rel", 9, "/src", now, "me")
	if err != nil || d.Number != 2 || !slices.Equal(names(events), []string{"deployed"}) {
		t.Errorf("again: %+v, %v, %v", d, names(events), err)
	}
}

// Proves that an attempt begins only for a queued run, over the release that it compiled, with the next fence of the node.
func TestBegin(t *testing.T) {
	s := State{Workspace: "w", Exists: true, Lineage: "l", HighestFence: 7, Fence: 2, Deployment: Deployment{Number: 1, Release: "rel"}, Pointer: serving.Pointer{Snapshot: 5}}
	if _, _, err := s.Begin("boot", "rel", "plan", now); fail.KindOf(err) != fail.Missing {
		t.Errorf("no run: %v", err)
	}
	for _, status := range []Status{Running, Succeeded, Failed, Canceled} {
		s.Run = &Run{ID: "r", Status: status}
		if _, _, err := s.Begin("boot", "rel", "plan", now); fail.CodeOf(err) != "run_not_queued" {
			t.Errorf("%s: %v", status, err)
		}
	}
	s.Run = &Run{ID: "r", Status: Queued, Attempts: 1}
	if _, _, err := s.Begin("boot", "other", "plan", now); fail.CodeOf(err) != "deployment_moved" {
		t.Errorf("other release: %v", err)
	}
	b, events, err := s.Begin("boot", "rel", "plan", now)
	want := Mark{Kind: MarkRefresh, Lineage: "l", Workspace: "w", Run: "r", Attempt: 2, Fence: 8, Base: 5, Release: "rel", Plan: "plan"}
	if err != nil || b.Mark() != want || len(events) != 1 {
		t.Errorf("got %+v, %v, %v", b, events, err)
	}
	s.Lineage = ""
	if _, _, err := s.Begin("boot", "rel", "plan", now); fail.KindOf(err) != fail.Corrupt {
		t.Errorf("no lineage: %v", err)
	}
}

// Proves that what an attempt read is recorded whole, by the attempt itself, and only before it commits.
func TestRecordSources(t *testing.T) {
	b := Begun{attempt{goodMark}}
	s := State{Workspace: "w", Fence: 3, Run: &Run{ID: "r", Status: Running}, Candidate: b}
	good := SourceFile{Source: "s", Name: "a.csv", Size: 0, SHA256: goodFile.SHA256}
	files, rows := []SourceFile{good}, map[string]int64{"s": 7}
	events, err := s.RecordSources(b, files, rows, now)
	if err != nil || len(events) != 1 {
		t.Fatalf("got %v, %v", events, err)
	}
	files[0].Name, rows["s"] = "changed", 8
	if got := events[0].(SourcesAcquired); got.Files[0] != good || got.Rows["s"] != 7 || got.Candidate != b || !got.At.Equal(now) {
		t.Errorf("got %+v", got)
	}
	if events, err := s.RecordSources(b, nil, nil, now); err != nil || len(events) != 0 {
		t.Errorf("nothing read: %v, %v", events, err)
	}
	for _, bad := range []SourceFile{{}, {Name: "a", SHA256: good.SHA256}, {Source: "s", SHA256: good.SHA256}, {Source: "s", Name: "a"}, {Source: "s", Name: "a", Size: -1, SHA256: good.SHA256}} {
		if _, err := s.RecordSources(b, []SourceFile{good, bad}, nil, now); fail.CodeOf(err) != "bad_source_record" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, bad := range []map[string]int64{{"": 1}, {"s": -1}} {
		if _, err := s.RecordSources(b, nil, bad, now); fail.CodeOf(err) != "bad_source_record" {
			t.Errorf("%v: %v", bad, err)
		}
	}
	s.Candidate = Committed{b.attempt, 6}
	if _, err := s.RecordSources(b, []SourceFile{good}, nil, now); fail.CodeOf(err) != "candidate_moved" {
		t.Errorf("after the commit: %v", err)
	}
	s.Fence = 4
	if _, err := s.RecordSources(b, []SourceFile{good}, nil, now); fail.KindOf(err) != fail.Fenced {
		t.Errorf("fenced: %v", err)
	}
}

// Proves that a table is recorded once, by its own model, and only before the commit.
func TestRecordTable(t *testing.T) {
	b := Begun{attempt{goodMark}}
	s := State{Workspace: "w", Fence: 3, Run: &Run{ID: "r", Status: Running}, Candidate: b, Tables: map[string]string{"a__1": "a"}}
	if events, err := s.RecordTable(b, "b", "b__1", now); err != nil || len(events) != 1 {
		t.Errorf("new: %v, %v", events, err)
	}
	if events, err := s.RecordTable(b, "a", "a__1", now); err != nil || len(events) != 0 {
		t.Errorf("known: %v, %v", events, err)
	}
	if _, err := s.RecordTable(b, "b", "a__1", now); fail.CodeOf(err) != "table_of_other_model" {
		t.Errorf("of another model: %v", err)
	}
	s.Candidate = Committed{b.attempt, 6}
	if _, err := s.RecordTable(b, "b", "b__1", now); fail.CodeOf(err) != "candidate_moved" {
		t.Errorf("after the commit: %v", err)
	}
	s.Fence = 4
	if _, err := s.RecordTable(b, "b", "b__1", now); fail.KindOf(err) != fail.Fenced {
		t.Errorf("fenced: %v", err)
	}
}

// Proves that an activation names everything that its answers' receipts need, and that a moved pointer refuses it.
func TestActivate(t *testing.T) {
	v := Validated{Durable{Committed{attempt{goodMark}, 6}, nil}, nil}
	s := State{Workspace: "w", Fence: 3, Pointer: serving.Pointer{Generation: 4, Snapshot: 5}, Run: &Run{ID: "r", Status: Running, RequestedBy: "me"}, Candidate: v}
	built := now.Add(-time.Minute)
	p, events, err := s.Activate(v, map[string]string{"m": "m__1"}, "boot", built, now)
	if err != nil || len(events) != 2 || p.Generation != 5 || p.Snapshot != 6 || p.Release != "rel" || p.PlanDigest != "plan" || p.Run != "r" ||
		!p.BuiltAt.Equal(built) || !p.ActivatedAt.Equal(now) || p.ActivatedBy != "me" || p.Tables["m"] != "m__1" {
		t.Errorf("got %+v, %v, %v", p, events, err)
	}
	s.Pointer.Snapshot = 4
	if _, _, err := s.Activate(v, nil, "boot", built, now); fail.CodeOf(err) != "pointer_moved" {
		t.Errorf("moved: %v", err)
	}
	s.Candidate = v.Durable
	if _, _, err := s.Activate(v, nil, "boot", built, now); fail.CodeOf(err) != "candidate_moved" {
		t.Errorf("not validated in storage: %v", err)
	}
	if _, _, err := (State{}).Activate(Validated{}, nil, "", built, now); err == nil {
		t.Error("zero values activated something")
	}
}

// Proves what happens to a run whose process died: its attempt becomes an orphan with the snapshot that the lake shows, it waits
// again until it had enough attempts, and a run that is not running stays as it is.
func TestInterrupted(t *testing.T) {
	b := Begun{attempt{goodMark}}
	s := State{Run: &Run{ID: "r", Status: Running, Owner: "dead", Attempts: 1}, Candidate: b}
	for at, want := range map[serving.Snapshot]serving.Snapshot{0: 0, 6: 6} {
		events, err := s.Interrupted(at, now)
		if err != nil || len(events) != 2 || events[0].(CandidateOrphaned).Candidate.Snapshot() != want || events[1].EventName() != "run_requeued" {
			t.Errorf("committed at %d: %+v, %v", at, events, err)
		}
	}
	for _, at := range []serving.Snapshot{-1, 5} {
		if events, err := s.Interrupted(at, now); fail.KindOf(err) != fail.Corrupt {
			t.Errorf("a commit at %d, not newer than the base: %+v, %v", at, events, err)
		}
	}
	s.Run.Attempts = MaxAttempts
	events, err := s.Interrupted(0, now)
	if err != nil || len(events) != 2 || events[1].(RunEnded).Status != Failed || events[1].(RunEnded).Failure.Code != "interrupted" {
		t.Errorf("enough attempts: %+v, %v", events, err)
	}
	for what, r := range map[string]*Run{"none": nil, "queued": {Status: Queued}, "ended": {Status: Failed}} {
		if events, err := (State{Run: r, Candidate: b}).Interrupted(6, now); err != nil || len(events) != 0 {
			t.Errorf("%s: %+v, %v", what, events, err)
		}
	}
}

// Proves that a node which stops gives its run back without burning one of its attempts, however often, up to a bound, and that an attempt
// which died in between counts as before.
func TestStopped(t *testing.T) {
	s := State{Run: &Run{ID: "r", Status: Running, Owner: "boot", Attempts: 1}, Candidate: Begun{attempt{goodMark}}}
	settle := func(decide func(serving.Snapshot, time.Time) ([]Event, error)) Event {
		t.Helper()
		events, err := decide(6, now)
		if err != nil || len(events) != 2 || events[0].(CandidateOrphaned).Candidate.Snapshot() != 6 {
			t.Fatalf("%+v: %+v, %v", *s.Run, events, err)
		}
		return events[1]
	}
	for stops := range MaxStops {
		s.Run.Stops, s.Run.Attempts = stops, stops+1
		if got := settle(s.Stopped); got != (RunRequeued{Run: "r", Stopped: true, Reason: "the node that worked on it stopped", At: now}) {
			t.Fatalf("stop %d: %+v", stops+1, got)
		}
	}
	// Beyond the bound a stop counts like a death.
	s.Run.Stops = MaxStops
	for died := 1; died < MaxAttempts; died++ {
		s.Run.Attempts = MaxStops + died
		for _, decide := range []func(serving.Snapshot, time.Time) ([]Event, error){s.Stopped, s.Interrupted} {
			if got := settle(decide).(RunRequeued); got.Stopped {
				t.Errorf("death %d: %+v", died, got)
			}
		}
	}
	s.Run.Attempts = MaxStops + MaxAttempts
	for _, decide := range []func(serving.Snapshot, time.Time) ([]Event, error){s.Stopped, s.Interrupted} {
		if got := settle(decide).(RunEnded); got.Failure.Code != "interrupted" {
			t.Errorf("after all attempts: %+v", got)
		}
	}
	// The last attempt that may die is given back as well when its node stops.
	s.Run.Stops, s.Run.Attempts = 0, MaxAttempts
	if got := settle(s.Stopped).(RunRequeued); !got.Stopped {
		t.Errorf("the last attempt: %+v", got)
	}
}

// Proves that failing ends a run once, gives its candidate up, and needs a run.
func TestFail(t *testing.T) {
	if _, err := (State{}).Fail(Failed, Failure{}, 0, now); fail.KindOf(err) != fail.Missing {
		t.Errorf("no run: %v", err)
	}
	f := Failure{Kind: "invalid", Code: "c", Message: "why"}
	s := State{Run: &Run{ID: "r", Status: Running}, Candidate: Committed{attempt{goodMark}, 6}}
	events, err := s.Fail(Canceled, f, 0, now)
	if err != nil || len(events) != 2 || events[0].(CandidateOrphaned).Candidate.Reason() != "why" || events[1].(RunEnded) != (RunEnded{Run: "r", Status: Canceled, Failure: f, At: now}) {
		t.Errorf("got %+v, %v", events, err)
	}
	for _, c := range []Candidate{nil, Orphan{attempt{goodMark}, 6, "before"}} {
		s.Candidate = c
		if events, err := s.Fail(Failed, f, 0, now); err != nil || len(events) != 1 {
			t.Errorf("candidate %+v: %+v, %v", c, events, err)
		}
	}
	s.Run.Status = Succeeded
	if events, err := s.Fail(Failed, f, 0, now); err != nil || len(events) != 0 {
		t.Errorf("ended: %+v, %v", events, err)
	}
}
