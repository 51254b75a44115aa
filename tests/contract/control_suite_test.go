package contract

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// controlPlane is a control plane under test, with what the tests must see or do behind its ports.
type controlPlane struct {
	ports.Control
	ports.Registry
	ports.Keys
	// reopen closes this handle and opens what it stored, as the next process does.
	reopen func(t *testing.T) controlPlane
	// audit gives "principal action target outcome" a row, oldest first, and the request's id when there is one.
	audit func(t *testing.T) []string
	// protections gives "workspace kind snapshot" each, sorted; 0 is an attempt's yet unknown snapshot.
	protections func(t *testing.T) []string
	// sources gives "source name size digest" for each file that the attempt read, sorted.
	sources func(t *testing.T, fence refresh.Fence) []string
	// failCommits makes the commit of each later Update fail, until the function that it gives is called.
	failCommits func(t *testing.T) (heal func())
}

// controlCase is one promise, kept on a new control plane.
type controlCase struct {
	name string
	run  func(t *testing.T, c controlPlane)
}

func runControlCases(t *testing.T, open func(t *testing.T) controlPlane, cases []controlCase) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, open(t)) })
	}
}

// controlSuite is the contract of ports.Control.
func controlSuite(t *testing.T, open func(t *testing.T) controlPlane) {
	runControlCases(t, open, []controlCase{
		{"a workspace nobody created", controlUnknownWorkspace},
		{"a run's whole life", controlWholeLife},
		{"the second activation leases the first", controlSecondActivation},
		{"an idempotency key names one run", controlIdempotency},
		{"live runs are bounded and in order", controlLiveRuns},
		{"an older attempt is fenced", controlFenced},
		{"a fence is the whole node's", controlNodeFence},
		{"what an attempt read is kept", controlSources},
		{"the active snapshot's rows of each source", controlActiveRows},
		{"an orphan is requeued", controlRequeue},
		{"a rejected candidate keeps what its checks found", controlRejected},
		{"the newest runs come first, and no more than asked for", controlRuns},
		{"a run gives up after its attempts", controlGivesUp},
		{"a stale pointer does not move", controlStalePointer},
		{"an event that does not fit is refused", controlMisfits},
		{"an unknown event is refused", controlUnknownEvent},
		{"decide's error writes nothing", controlDecideFails},
		{"no events write nothing", controlNoEvents},
		{"a failing commit writes nothing", controlCommitFails},
		{"an ended context", controlCanceled},
		{"concurrent updates all land", controlConcurrent},
		{"the audit names the request", controlRequestID},
		{"nothing given out is shared", controlNotShared},
		{"a closed handle is refused", controlClosed},
	})
}

// registrySuite is the contract of ports.Registry.
func registrySuite(t *testing.T, open func(t *testing.T) controlPlane) {
	runControlCases(t, open, []controlCase{
		{"the lake's lineage never changes", controlLineage},
		{"leases of earlier processes end", controlReleaseLeases},
		{"an ended context", registryCanceled},
		{"a closed handle is refused", registryClosed},
	})
}

var (
	// controlNow has nanoseconds and an offset, of which neither survives storage.
	controlNow    = time.Date(2025, 3, 9, 14, 30, 0, 123456789, time.FixedZone("", 2*60*60))
	controlStored = time.Date(2025, 3, 9, 12, 30, 0, 123456000, time.UTC)
	controlRel    = project.DigestOf([]byte("release"))
	controlPlan   = project.DigestOf([]byte("plan"))
	controlTables = map[string]string{"delays": "delays_1", "carriers": "carriers_1"}
)

// controlDriver takes the domain's decisions over a control plane, failing the test when one is refused.
type controlDriver struct {
	t *testing.T
	c controlPlane
	w serving.Workspace
}

func (d controlDriver) update(scope refresh.Scope, decide func(refresh.State) ([]refresh.Event, error)) {
	d.t.Helper()
	scope.Workspace = d.w
	if err := d.c.Update(context.Background(), scope, decide); err != nil {
		d.t.Fatal(err)
	}
}

func (d controlDriver) load(run refresh.RunID) refresh.State {
	d.t.Helper()
	s, err := d.c.Load(context.Background(), refresh.Scope{Workspace: d.w, Run: run})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// ready has a lake and a deployment.
func (d controlDriver) ready() controlDriver {
	d.t.Helper()
	if err := d.c.RecordLake(context.Background(), ports.LakeRecord{Lineage: "lineage1", Ready: true}); err != nil {
		d.t.Fatal(err)
	}
	d.update(refresh.Scope{}, func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Deploy(controlRel, 99, "/data/src", controlNow, "bob")
		return events, err
	})
	return d
}

func (d controlDriver) request(run refresh.RunID, key string) (got refresh.Run) {
	d.t.Helper()
	d.update(refresh.Scope{IdempotencyKey: key}, func(s refresh.State) (events []refresh.Event, err error) {
		got, events, err = s.Request(run, key, controlNow, "ann")
		return events, err
	})
	return got
}

func (d controlDriver) begin(run refresh.RunID, owner string) (b refresh.Begun) {
	d.t.Helper()
	d.update(refresh.Scope{Run: run}, func(s refresh.State) (events []refresh.Event, err error) {
		b, events, err = s.Begin(owner, controlRel, controlPlan, controlNow)
		return events, err
	})
	return b
}

func (d controlDriver) recordTables(b refresh.Begun) {
	d.t.Helper()
	for model, table := range controlTables {
		d.update(refresh.Scope{Run: b.Mark().Run}, func(s refresh.State) ([]refresh.Event, error) { return s.RecordTable(b, model, table, controlNow) })
	}
}

func (d controlDriver) commit(b refresh.Begun, at serving.Snapshot) refresh.Committed {
	d.t.Helper()
	c, err := b.Proved(b.Mark(), at)
	if err != nil {
		d.t.Fatal(err)
	}
	d.update(refresh.Scope{Run: b.Mark().Run}, func(s refresh.State) ([]refresh.Event, error) { return s.RecordCommit(c, controlNow) })
	return c
}

// files of a candidate differ from one snapshot to the next.
func controlFiles(at serving.Snapshot) []refresh.File {
	return []refresh.File{
		{Path: fmt.Sprintf("flights/carriers_1/%d.parquet", at), Size: 10, SHA256: project.DigestOf([]byte("c"))},
		{Path: fmt.Sprintf("flights/delays_1/%d.parquet", at), Size: 20, SHA256: project.DigestOf([]byte("d"))},
	}
}

func (d controlDriver) sync(c refresh.Committed) refresh.Durable {
	d.t.Helper()
	files := controlFiles(c.Snapshot())
	slices.Reverse(files)
	durable, err := c.Synced(files)
	if err != nil {
		d.t.Fatal(err)
	}
	d.update(refresh.Scope{Run: c.Mark().Run}, func(s refresh.State) ([]refresh.Event, error) { return s.RecordSync(durable, controlNow) })
	return durable
}

func controlChecks() []refresh.CheckResult {
	at := project.Position{File: "models/delays.sql", Line: 3, Column: 5}
	return []refresh.CheckResult{
		{Model: "delays", Check: "unique(id)", Name: "keys", At: at, Severity: project.SeverityError, OK: true, Judged: 120, Detail: "120 rows, all different"},
		{Model: "delays", Check: "not_null(id)", At: at, Severity: project.SeverityWarn, Failures: 3, Judged: 120, Detail: "3 of 120 rows", Sample: `{"columns":["id"],"rows":[[null]]}`},
	}
}

func (d controlDriver) validate(durable refresh.Durable) refresh.Validated {
	d.t.Helper()
	v, err := durable.Judged(controlChecks())
	if err != nil {
		d.t.Fatal(err)
	}
	d.update(refresh.Scope{Run: v.Mark().Run}, func(s refresh.State) ([]refresh.Event, error) { return s.RecordValidation(v, controlNow) })
	return v
}

// validated takes the run from queued to validated at the snapshot.
func (d controlDriver) validated(run refresh.RunID, owner string, at serving.Snapshot) refresh.Validated {
	d.t.Helper()
	b := d.begin(run, owner)
	d.recordTables(b)
	return d.validate(d.sync(d.commit(b, at)))
}

func (d controlDriver) activate(v refresh.Validated, owner string) (p serving.Pointer) {
	d.t.Helper()
	d.update(refresh.Scope{Run: v.Mark().Run}, func(s refresh.State) (events []refresh.Event, err error) {
		p, events, err = s.Activate(v, controlTables, owner, controlNow, controlNow)
		return events, err
	})
	return p
}

// refused fails the test unless err has the kind and the code.
func controlRefused(t *testing.T, err error, kind fail.Kind, code string) {
	t.Helper()
	if fail.KindOf(err) != kind || fail.CodeOf(err) != code {
		t.Fatalf("got kind %s, code %s (%v), want %s, %s", fail.KindOf(err), fail.CodeOf(err), err, kind, code)
	}
}

func controlSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func controlFlights(t *testing.T, c controlPlane) controlDriver {
	return controlDriver{t, c, "flights"}
}

func controlUnknownWorkspace(t *testing.T, c controlPlane) {
	d := controlFlights(t, c)
	controlSame(t, "state", d.load("nothing"), refresh.State{Workspace: "flights"})
	names, err := c.Workspaces(context.Background())
	if err != nil || len(names) != 0 {
		t.Fatalf("workspaces: %v, %v", names, err)
	}
	files, err := c.Files(context.Background(), "flights")
	if err != nil || len(files) != 0 {
		t.Fatalf("files: %v, %v", files, err)
	}
	if err := c.RecordLake(context.Background(), ports.LakeRecord{Lineage: "lineage1"}); err != nil {
		t.Fatal(err)
	}
	controlDriver{t, c, "other"}.ready().request("run1", "")
	controlDriver{t, c, "other"}.begin("run1", "boot1")
	controlSame(t, "state beside another workspace", d.load("run1"), refresh.State{Workspace: "flights", Lineage: "lineage1", HighestFence: 1})
}

func controlWholeLife(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "key1")
	queued := refresh.Run{ID: "run1", Workspace: "flights", IdempotencyKey: "key1", Status: refresh.Queued, RequestedAt: controlStored, RequestedBy: "ann"}
	want := refresh.State{Workspace: "flights", Exists: true, Lineage: "lineage1",
		Deployment: refresh.Deployment{Number: 1, Release: controlRel, SourceRoot: "/data/src", At: controlStored, By: "bob"},
		Releases:   map[project.Digest]bool{controlRel: true}, Live: []refresh.Run{queued}, Run: &queued}
	controlSame(t, "queued", d.load("run1"), want)

	b := d.begin("run1", "boot1")
	running := queued
	running.Status, running.Owner, running.ClaimRevision, running.Attempts, running.Deployment, running.StartedAt = refresh.Running, "boot1", 1, 1, 1, controlStored
	want.Live, want.Run, want.Candidate, want.Fence, want.HighestFence = []refresh.Run{running}, &running, b, 1, 1
	controlSame(t, "begun", d.load("run1"), want)
	controlSame(t, "mark", b.Mark(), refresh.Mark{Kind: refresh.MarkRefresh, Lineage: "lineage1", Workspace: "flights", Run: "run1", Attempt: 1, Fence: 1,
		Release: controlRel, Plan: controlPlan})
	controlSame(t, "protections of an attempt", c.protections(t), []string{"flights attempt 0"})

	d.recordTables(b)
	d.recordTables(b)
	want.Tables = map[string]string{"delays_1": "delays", "carriers_1": "carriers"}
	controlSame(t, "tables recorded", d.load("run1"), want)

	committed := d.commit(b, 5)
	want.Candidate = committed
	controlSame(t, "committed", d.load("run1"), want)
	controlSame(t, "protections of a candidate", c.protections(t), []string{"flights candidate 5"})

	d.validate(d.sync(committed))
	// Files come back sorted by path, checks in the order in which they were judged.
	durable, err := committed.Synced(controlFiles(5))
	if err != nil {
		t.Fatal(err)
	}
	v, err := durable.Judged(controlChecks())
	if err != nil {
		t.Fatal(err)
	}
	want.Candidate = v
	controlSame(t, "validated", d.load("run1"), want)
	files, err := c.Files(context.Background(), "flights")
	if err != nil || len(files) != 0 {
		t.Fatalf("a candidate's files are not active: %v, %v", files, err)
	}

	d.activate(v, "boot1")
	ended := running
	ended.Status, ended.EndedAt, ended.Generation, ended.Snapshot = refresh.Succeeded, controlStored, 1, 5
	want.Live, want.Run, want.Candidate = nil, &ended, nil
	want.Pointer = serving.Pointer{Generation: 1, Snapshot: 5, Release: controlRel, PlanDigest: controlPlan, Run: "run1", BuiltAt: controlStored,
		ActivatedAt: controlStored, ActivatedBy: "ann", Tables: controlTables}
	controlSame(t, "activated", d.load("run1"), want)
	controlSame(t, "protections of an active snapshot", c.protections(t), []string{"flights active 5"})
	if files, err = c.Files(context.Background(), "flights"); err != nil {
		t.Fatal(err)
	}
	controlSame(t, "files", files, controlFiles(5))
	checks, err := c.Checks(context.Background(), "run1")
	if err != nil {
		t.Fatal(err)
	}
	controlSame(t, "checks", checks, controlChecks())
	if checks, err = c.Checks(context.Background(), "run9"); err != nil || len(checks) != 0 {
		t.Fatalf("an unknown run has checks: %v, %v", checks, err)
	}

	auditBefore := c.audit(t)
	controlSame(t, "audit", slices.DeleteFunc(slices.Clone(auditBefore), func(r string) bool { return strings.Contains(r, "table_recorded") }), []string{
		"bob workspace_created flights ok",
		"bob release_accepted flights/releases/" + string(controlRel) + " ok",
		"bob deployed flights/deployments/1 ok",
		"ann run_requested flights/runs/run1 ok",
		"ann attempt_began flights/runs/run1 ok",
		"ann candidate_committed flights/runs/run1 ok",
		"ann candidate_synced flights/runs/run1 ok",
		"ann candidate_validated flights/runs/run1 ok",
		"ann activated flights/generations/1 ok",
		"ann run_ended flights/runs/run1 ok",
	})
	if len(auditBefore) != 12 {
		t.Fatalf("each table is recorded once: %q", auditBefore)
	}

	// Everything is still there for the next process.
	c = c.reopen(t)
	controlSame(t, "reopened", controlDriver{t, c, "flights"}.load("run1"), want)
	controlSame(t, "reopened audit", c.audit(t), auditBefore)
	if files, err = c.Files(context.Background(), "flights"); err != nil {
		t.Fatal(err)
	}
	controlSame(t, "reopened files", files, controlFiles(5))
	names, err := c.Workspaces(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	controlSame(t, "reopened workspaces", names, []serving.Workspace{"flights"})
}

func controlSecondActivation(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	d.activate(d.validated("run1", "boot1", 5), "boot1")
	d.request("run2", "")
	v := d.validated("run2", "boot1", 8)
	controlSame(t, "base", v.Mark().Base, serving.Snapshot(5))
	p := d.activate(v, "boot1")
	controlSame(t, "generation", p.Generation, serving.GenerationNumber(2))
	controlSame(t, "protections", c.protections(t), []string{"flights active 8", "flights leased 5"})
	files, err := c.Files(context.Background(), "flights")
	if err != nil {
		t.Fatal(err)
	}
	controlSame(t, "files", files, controlFiles(8))
	// Retiring twice is retiring once.
	for range 2 {
		d.update(refresh.Scope{}, func(refresh.State) ([]refresh.Event, error) {
			return []refresh.Event{refresh.GenerationRetired{Generation: 1, Owner: "boot1", At: controlNow}}, nil
		})
	}
	controlSame(t, "protections after retiring", c.protections(t), []string{"flights active 8"})
	rows := c.audit(t)
	controlSame(t, "audit", rows[len(rows)-1], "system generation_retired flights/generations/1 ok")
}

func controlIdempotency(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "key1")
	if got := d.request("run2", "key1"); got.ID != "run1" {
		t.Fatalf("the key gave %s", got.ID)
	}
	controlSame(t, "unkeyed", []refresh.RunID{d.request("run3", "").ID, d.request("run4", "").ID}, []refresh.RunID{"run3", "run4"})
	// A decision that did not look is refused by what is stored.
	again := func(id refresh.RunID, key string) error {
		return c.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(refresh.State) ([]refresh.Event, error) {
			return []refresh.Event{refresh.RunRequested{Run: refresh.Run{ID: id, Workspace: "flights", IdempotencyKey: key, Status: refresh.Queued, RequestedAt: controlNow}}}, nil
		})
	}
	controlRefused(t, again("run5", "key1"), fail.Conflict, "already_stored")
	controlRefused(t, again("run1", ""), fail.Conflict, "already_stored")
	// Another workspace has keys of its own.
	other := controlDriver{t, c, "other"}.ready()
	if got := other.request("run9", "key1"); got.ID != "run9" {
		t.Fatalf("another workspace's key gave %s", got.ID)
	}
	if len(d.load("").Live) != 3 {
		t.Fatalf("live: %v", d.load("").Live)
	}
}

func controlLiveRuns(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	var ids []refresh.RunID
	for i := range refresh.MaxLiveRuns {
		// Ids sort against their order, which is the order of requests.
		ids = append(ids, refresh.RunID(fmt.Sprintf("run%02d", 99-i)))
		d.request(ids[i], "")
	}
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Request("late", "", controlNow, "ann")
		return events, err
	})
	controlRefused(t, err, fail.Busy, "too_many_runs")
	d.begin(ids[3], "boot1")
	d.update(refresh.Scope{Run: ids[0]}, func(s refresh.State) ([]refresh.Event, error) {
		return s.Fail(refresh.Canceled, refresh.Failure{Kind: "canceled", Code: "canceled", Message: "ann did"}, 0, controlNow)
	})
	var live []refresh.RunID
	for _, r := range d.load("").Live {
		live = append(live, r.ID)
	}
	controlSame(t, "live", live, ids[1:])
	d.request("late", "")
	rows := c.audit(t)
	controlSame(t, "audit", rows[len(rows)-2], "ann run_ended flights/runs/"+string(ids[0])+" canceled")
}

func controlFenced(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	d.request("run2", "")
	first := d.begin("run1", "boot1")
	d.recordTables(first)
	old := d.validate(d.sync(d.commit(first, 5)))
	b := d.begin("run2", "boot1")
	if b.Mark().Fence != 2 {
		t.Fatalf("fence %d", b.Mark().Fence)
	}
	// The domain sees it, and a decision that does not look is stopped by the store.
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Activate(old, controlTables, "boot1", controlNow, controlNow)
		return events, err
	})
	controlRefused(t, err, fail.Fenced, "fenced")
	before := d.load("run1")
	blind := map[string]refresh.Event{
		"activate": refresh.Activated{Candidate: old, Owner: "boot1", Pointer: serving.Pointer{Generation: 1, Snapshot: 5, Release: controlRel, PlanDigest: controlPlan, Run: "run1", Tables: controlTables}},
		"table":    refresh.TableRecorded{Table: "late_1", Model: "late", Fence: 1, At: controlNow},
		"sources":  refresh.SourcesAcquired{Candidate: first, Files: controlRead[:1], At: controlNow},
		"commit":   refresh.CandidateCommitted{Candidate: old.Committed, At: controlNow},
		"sync":     refresh.CandidateSynced{Candidate: old.Durable, At: controlNow},
		"validate": refresh.CandidateValidated{Candidate: old, At: controlNow},
	}
	for name, e := range blind {
		err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(refresh.State) ([]refresh.Event, error) { return []refresh.Event{e}, nil })
		if fail.KindOf(err) != fail.Fenced {
			t.Fatalf("%s behind a newer fence gave %v", name, err)
		}
	}
	controlSame(t, "state after refusals", d.load("run1"), before)
	// Giving the old attempt up is allowed, and takes its protection along.
	controlSame(t, "protections", c.protections(t), []string{"flights attempt 0", "flights candidate 5"})
	d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
		return s.Fail(refresh.Failed, refresh.Failure{Kind: "fenced", Code: "fenced", Message: "overtaken"}, 0, controlNow)
	})
	controlSame(t, "protections without the old one", c.protections(t), []string{"flights attempt 0"})
	s := d.load("run1")
	o, ok := s.Candidate.(refresh.Orphan)
	if !ok || o.Snapshot() != 5 || o.Reason() != "overtaken" || s.Run.Failure.Code != "fenced" {
		t.Fatalf("the old attempt is %#v of run %#v", s.Candidate, s.Run)
	}
}

func controlNodeFence(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	other := controlDriver{t, c, "other"}.ready()
	d.request("run1", "")
	d.request("run2", "")
	other.request("run3", "")
	// The first attempt's event is replayed after another workspace took the next fence.
	var stale []refresh.Event
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(s refresh.State) (_ []refresh.Event, err error) {
		_, stale, err = s.Begin("boot1", controlRel, controlPlan, controlNow)
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := other.begin("run3", "boot1").Mark().Fence; f != 1 {
		t.Fatalf("fence %d", f)
	}
	err = c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(refresh.State) ([]refresh.Event, error) { return stale, nil })
	controlRefused(t, err, fail.Fenced, "fenced")
	if s := d.load("run1"); s.Fence != 0 || s.HighestFence != 1 || s.Run.Status != refresh.Queued {
		t.Fatalf("after the refusal: %#v", s)
	}
	if f := d.begin("run2", "boot1").Mark().Fence; f != 2 {
		t.Fatalf("fence %d", f)
	}
}

// controlRead is what an attempt reads; two sources may have files of one name, and a file may be empty.
var controlRead = []refresh.SourceFile{
	{Source: "orders", Name: "in/b.csv", Size: 7, SHA256: project.DigestOf([]byte("b"))},
	{Source: "orders", Name: "in/a.csv", Size: 0, SHA256: project.DigestOf(nil)},
	{Source: "carriers", Name: "in/a.csv", Size: 3, SHA256: project.DigestOf([]byte("a"))},
}

func controlSources(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	first := d.begin("run1", "boot1")
	record := func(b refresh.Begun, files []refresh.SourceFile) error {
		return c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
			return s.RecordSources(b, files, nil, controlNow)
		})
	}
	before, told := d.load("run1"), len(c.audit(t))
	controlRefused(t, record(first, []refresh.SourceFile{controlRead[0], controlRead[1], controlRead[0]}), fail.Conflict, "already_stored")
	upper := controlRead[2]
	upper.SHA256 = project.Digest(strings.ToUpper(string(upper.SHA256)))
	controlRefused(t, record(first, []refresh.SourceFile{controlRead[0], upper}), fail.Internal, "impossible_write")
	controlSame(t, "after the refusals", c.sources(t, 1), []string(nil))
	controlSame(t, "audit rows after the refusals", len(c.audit(t)), told)

	if err := record(first, controlRead); err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("carriers in/a.csv 3 %s", project.DigestOf([]byte("a"))),
		fmt.Sprintf("orders in/a.csv 0 %s", project.DigestOf(nil)),
		fmt.Sprintf("orders in/b.csv 7 %s", project.DigestOf([]byte("b"))),
	}
	controlSame(t, "read", c.sources(t, 1), want)
	controlSame(t, "state", d.load("run1"), before)
	rows := c.audit(t)
	controlSame(t, "audit", rows[told:], []string{"ann sources_acquired flights/runs/run1 ok"})
	controlRefused(t, record(first, controlRead[:1]), fail.Conflict, "already_stored")

	// The next attempt reads anew, and the first one's files stay with it.
	d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) { return s.Interrupted(0, controlNow) })
	second := d.begin("run1", "boot2")
	if err := record(second, controlRead[:1]); err != nil {
		t.Fatal(err)
	}
	c = c.reopen(t)
	controlSame(t, "read first", c.sources(t, 1), want)
	controlSame(t, "read then", c.sources(t, 2), want[2:])
}

func controlActiveRows(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	build := func(run refresh.RunID, at serving.Snapshot, rows map[string]int64) refresh.Validated {
		t.Helper()
		d.request(run, "")
		b := d.begin(run, "boot1")
		d.update(refresh.Scope{Run: run}, func(s refresh.State) ([]refresh.Event, error) {
			return s.RecordSources(b, controlRead[:len(rows)], rows, controlNow)
		})
		d.recordTables(b)
		return d.validate(d.sync(d.commit(b, at)))
	}
	first := build("run1", 5, map[string]int64{"orders": 7, "carriers": 0})
	controlSame(t, "rows of a candidate", d.load("run1").ActiveRows, map[string]int64(nil))
	ledger := func() []refresh.SourceFile {
		t.Helper()
		s, err := c.Load(context.Background(), refresh.Scope{Workspace: "flights", Ledger: true})
		if err != nil {
			t.Fatal(err)
		}
		return s.ActiveFiles
	}
	controlSame(t, "files of a candidate", ledger(), []refresh.SourceFile(nil))
	d.activate(first, "boot1")
	d.request("run2", "")
	c = c.reopen(t)
	d = controlFlights(t, c)
	want := slices.Clone(controlRead[:2])
	slices.SortFunc(want, func(a, b refresh.SourceFile) int { return strings.Compare(a.Source+a.Name, b.Source+b.Name) })
	controlSame(t, "files of the active snapshot", ledger(), want)
	controlSame(t, "files nobody asked for", d.load("run2").ActiveFiles, []refresh.SourceFile(nil))
	controlSame(t, "rows of the active snapshot", d.load("run2").ActiveRows, map[string]int64{"orders": 7, "carriers": 0})
	controlSame(t, "rows without a run", d.load("").ActiveRows, map[string]int64(nil))
	b := d.begin("run2", "boot1")
	twice := func(refresh.State) ([]refresh.Event, error) {
		e := refresh.SourcesAcquired{Candidate: b, Rows: map[string]int64{"orders": 9}, At: controlNow}
		return []refresh.Event{e, e}, nil
	}
	controlRefused(t, c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run2"}, twice), fail.Conflict, "already_stored")
	d.update(refresh.Scope{Run: "run2"}, func(s refresh.State) ([]refresh.Event, error) {
		return s.RecordSources(b, nil, map[string]int64{"orders": 9}, controlNow)
	})
	controlSame(t, "rows beside those of an attempt", d.load("run2").ActiveRows, map[string]int64{"orders": 7, "carriers": 0})
}

func controlRequeue(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	d.sync(d.commit(d.begin("run1", "boot1"), 5))
	c = c.reopen(t)
	d = controlFlights(t, c)
	interrupted := func(s refresh.State) ([]refresh.Event, error) { return s.Interrupted(0, controlNow) }
	d.update(refresh.Scope{Run: "run1"}, interrupted)
	s := d.load("run1")
	o, ok := s.Candidate.(refresh.Orphan)
	if !ok || o.Snapshot() != 5 || s.Run.Status != refresh.Queued || s.Run.Owner != "" || s.Run.Attempts != 1 || len(s.Live) != 1 {
		t.Fatalf("requeued: %#v, run %#v", s.Candidate, s.Run)
	}
	controlSame(t, "protections", c.protections(t), []string(nil))
	// The next attempt dies before its commit is recorded, although the lake has it.
	d.begin("run1", "boot2")
	d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) { return s.Interrupted(6, controlNow) })
	if o, ok := d.load("run1").Candidate.(refresh.Orphan); !ok || o.Snapshot() != 6 || o.Mark().Attempt != 2 {
		t.Fatalf("the found commit is %#v", d.load("run1").Candidate)
	}
	b := d.begin("run1", "boot3")
	s = d.load("run1")
	if b.Mark().Attempt != 3 || b.Mark().Fence != 3 || s.Run.ClaimRevision != 3 || s.Run.Owner != "boot3" {
		t.Fatalf("third attempt %v of %#v", b.Mark(), s.Run)
	}
	d.recordTables(b)
	d.activate(d.validate(d.sync(d.commit(b, 9))), "boot3")
	if s := d.load("run1"); s.Pointer.Snapshot != 9 || s.Run.Status != refresh.Succeeded || s.Candidate != nil {
		t.Fatalf("after the third attempt: %#v", s)
	}
}

func controlRuns(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	for _, id := range []refresh.RunID{"run1", "run2", "run3"} {
		d.request(id, "")
	}
	for _, ask := range []struct {
		w     serving.Workspace
		limit int
		want  string
	}{{"flights", 5, "run3 run2 run1"}, {"flights", 2, "run3 run2"}, {"other", 5, ""}} {
		runs, err := c.Runs(context.Background(), ask.w, ask.limit)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range runs {
			ids = append(ids, string(r.ID))
			controlSame(t, "a listed run", r, *d.load(r.ID).Run)
		}
		if got := strings.Join(ids, " "); got != ask.want {
			t.Errorf("%d runs of %s: %s, want %s", ask.limit, ask.w, got, ask.want)
		}
	}
}

func controlRejected(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	durable := d.sync(d.commit(d.begin("run1", "boot1"), 5))
	results := controlChecks()
	results[0].OK, results[0].Failures = false, 1
	d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
		return s.RecordRejection(durable, results, "a check failed", controlNow)
	})
	d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
		return s.Fail(refresh.Failed, refresh.Failure{Kind: "invalid", Code: "checks_failed", Message: "a check failed"}, 0, controlNow)
	})
	c = c.reopen(t)
	d = controlDriver{t, c, "flights"}
	s := d.load("run1")
	if o, ok := s.Candidate.(refresh.Orphan); !ok || o.Snapshot() != 5 || o.Reason() != "a check failed" || s.Run.Status != refresh.Failed {
		t.Fatalf("rejected: %#v, run %#v", s.Candidate, s.Run)
	}
	controlSame(t, "protections", c.protections(t), []string(nil))
	checks, err := c.Checks(context.Background(), "run1")
	if err != nil {
		t.Fatal(err)
	}
	controlSame(t, "checks", checks, results)
}

func controlGivesUp(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	// What stopped on purpose does not count.
	for i := range 2 {
		d.begin("run1", fmt.Sprintf("stopping%d", i))
		d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) { return s.Stopped(0, controlNow) })
	}
	for i := range refresh.MaxAttempts {
		d.begin("run1", fmt.Sprintf("boot%d", i))
		d.update(refresh.Scope{Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
			return s.Interrupted(0, controlNow)
		})
	}
	s := d.load("run1")
	if s.Run.Attempts != refresh.MaxAttempts+2 || s.Run.Stops != 2 {
		t.Fatalf("%d attempts, %d stops", s.Run.Attempts, s.Run.Stops)
	}
	if s.Run.Status != refresh.Failed || s.Run.Failure.Code != "interrupted" || s.Run.EndedAt != controlStored || len(s.Live) != 0 {
		t.Fatalf("run %#v", s.Run)
	}
	rows := c.audit(t)
	controlSame(t, "audit", rows[len(rows)-1], "ann run_ended flights/runs/run1 failed")
}

func controlStalePointer(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	first := d.activate(d.validated("run1", "boot1", 5), "boot1")
	d.request("run2", "")
	v := d.validated("run2", "boot1", 8)
	before := d.load("run2")
	for _, previous := range []serving.Pointer{{}, {Generation: 7, Snapshot: 5}, {Generation: 1, Snapshot: 4}} {
		p := first
		p.Generation, p.Snapshot = previous.Generation+1, 8
		err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run2"}, func(refresh.State) ([]refresh.Event, error) {
			return []refresh.Event{refresh.Activated{Candidate: v, Previous: previous, Pointer: p, Owner: "boot1"}}, nil
		})
		controlRefused(t, err, fail.Conflict, "pointer_moved")
	}
	controlSame(t, "state", d.load("run2"), before)
	controlSame(t, "protections", c.protections(t), []string{"flights active 5", "flights candidate 8"})
}

func controlMisfits(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	b := d.begin("run1", "boot1")
	committed := d.commit(b, 5)
	before, told := d.load("run1"), len(c.audit(t))
	deployment := before.Deployment
	deployment.Number = 5
	unknown := before.Deployment
	unknown.Number, unknown.Release = 2, project.DigestOf([]byte("never accepted"))
	foreign := refresh.Run{ID: "run7", Workspace: "other", Status: refresh.Queued, RequestedAt: controlNow}
	misfits := []struct {
		event refresh.Event
		kind  fail.Kind
	}{
		{refresh.WorkspaceCreated{At: controlNow, By: "bob"}, fail.Conflict},
		{refresh.ReleaseAccepted{Release: controlRel, At: controlNow}, fail.Conflict},
		{refresh.ReleaseAccepted{Release: "no digest", At: controlNow}, fail.Internal},
		{refresh.Deployed{Deployment: deployment}, fail.Conflict},
		{refresh.Deployed{Deployment: unknown}, fail.Internal},
		{refresh.RunRequested{Run: foreign}, fail.Internal},
		{refresh.AttemptBegan{Candidate: b, Owner: "boot1", At: controlNow}, fail.Fenced},
		{refresh.CandidateCommitted{Candidate: committed, At: controlNow}, fail.Conflict},
		{refresh.CandidateOrphaned{Candidate: refresh.Abandon(committed, ""), At: controlNow}, fail.Internal},
		{refresh.RunRequeued{Run: "run7", At: controlNow}, fail.Conflict},
		{refresh.RunEnded{Run: "run7", Status: refresh.Failed, At: controlNow}, fail.Conflict},
		{refresh.RunEnded{Run: "run1", Status: refresh.Running, At: controlNow}, fail.Internal},
	}
	for _, m := range misfits {
		// The audit row and the fitting event before it must go as well.
		err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(refresh.State) ([]refresh.Event, error) {
			return []refresh.Event{refresh.TableRecorded{Table: "t_1", Model: "t", Fence: 1, At: controlNow}, m.event}, nil
		})
		if err == nil || fail.KindOf(err) != m.kind {
			t.Errorf("%#v gave %s: %v, want %s", m.event, fail.KindOf(err), err, m.kind)
		}
	}
	controlSame(t, "state", d.load("run1"), before)
	controlSame(t, "audit rows", len(c.audit(t)), told)
	// A pointer names recorded tables only.
	v := d.validate(d.sync(committed))
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Activate(v, map[string]string{"delays": "never_recorded"}, "boot1", controlNow, controlNow)
		return events, err
	})
	controlRefused(t, err, fail.Internal, "impossible_write")
	// Nothing happens in a workspace that does not exist.
	err = c.Update(context.Background(), refresh.Scope{Workspace: "nowhere"}, func(refresh.State) ([]refresh.Event, error) {
		return []refresh.Event{refresh.ReleaseAccepted{Release: controlRel, At: controlNow}}, nil
	})
	controlRefused(t, err, fail.Internal, "impossible_write")
	err = c.Update(context.Background(), refresh.Scope{Workspace: "No Name"}, func(refresh.State) ([]refresh.Event, error) {
		return []refresh.Event{refresh.WorkspaceCreated{At: controlNow, By: "bob"}}, nil
	})
	controlRefused(t, err, fail.Internal, "impossible_write")
}

type controlStrange struct{}

func (controlStrange) EventName() string { return "unknown" }

func controlUnknownEvent(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(refresh.State) ([]refresh.Event, error) { return []refresh.Event{controlStrange{}}, nil })
	controlRefused(t, err, fail.Internal, "unknown_event")
	controlSame(t, "audit rows", len(d.c.audit(t)), 3)
}

func controlDecideFails(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	before := d.load("")
	mine := errors.New("mine")
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Request("run1", "", controlNow, "ann")
		if err != nil {
			t.Error(err)
		}
		return events, mine
	})
	if err != mine {
		t.Fatalf("decide's error came back as %v", err)
	}
	controlSame(t, "state", d.load(""), before)
	controlSame(t, "audit rows", len(c.audit(t)), 3)
}

func controlNoEvents(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.update(refresh.Scope{}, func(refresh.State) ([]refresh.Event, error) { return nil, nil })
	controlSame(t, "audit rows", len(c.audit(t)), 3)
	// A decision that writes nothing leaves the store free for the next.
	d.request("run1", "")
}

func controlCommitFails(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	b := d.begin("run1", "boot1")
	d.recordTables(b)
	v := d.validate(d.sync(d.commit(b, 5)))
	before, told, held := d.load("run1"), c.audit(t), c.protections(t)
	heal := c.failCommits(t)
	err := c.Update(context.Background(), refresh.Scope{Workspace: "flights", Run: "run1"}, func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Activate(v, controlTables, "boot1", controlNow, controlNow)
		return events, err
	})
	if err == nil {
		t.Fatal("the commit did not fail")
	}
	controlSame(t, "state", d.load("run1"), before)
	controlSame(t, "audit", c.audit(t), told)
	controlSame(t, "protections", c.protections(t), held)
	heal()
	d.activate(v, "boot1")
	controlSame(t, "snapshot", d.load("run1").Pointer.Snapshot, serving.Snapshot(5))
}

func controlCanceled(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	request := func(s refresh.State) ([]refresh.Event, error) {
		_, events, err := s.Request("run1", "", controlNow, "ann")
		return events, err
	}
	controlRefused(t, c.Update(ended, refresh.Scope{Workspace: "flights"}, request), fail.Canceled, "canceled")
	_, err := c.Load(ended, refresh.Scope{Workspace: "flights"})
	controlRefused(t, err, fail.Canceled, "canceled")
	_, err = c.Workspaces(ended)
	controlRefused(t, err, fail.Canceled, "canceled")
	_, err = c.Files(ended, "flights")
	controlRefused(t, err, fail.Canceled, "canceled")
	// A context that ends while the decision is taken writes nothing either.
	during, cancel := context.WithCancel(context.Background())
	err = c.Update(during, refresh.Scope{Workspace: "flights"}, func(s refresh.State) ([]refresh.Event, error) {
		cancel()
		return request(s)
	})
	controlRefused(t, err, fail.Canceled, "canceled")
	if live := d.load("").Live; len(live) != 0 {
		t.Fatalf("a canceled update wrote %v", live)
	}
	d.request("run1", "")
}

func controlConcurrent(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			err := c.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(s refresh.State) ([]refresh.Event, error) {
				_, events, err := s.Deploy(controlRel, 99, fmt.Sprintf("/src/%d", i), controlNow, "bob")
				return events, err
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := c.Load(context.Background(), refresh.Scope{Workspace: "flights"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Each saw the one before it: a lost update would leave a smaller number.
	controlSame(t, "deployments", d.load("").Deployment.Number, int64(1+writers))
	controlSame(t, "audit rows", len(c.audit(t)), 3+writers)
}

func controlRequestID(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.update(refresh.Scope{RequestID: "req7"}, func(s refresh.State) ([]refresh.Event, error) {
		controlSame(t, "the state's request", s.RequestID, "req7")
		_, events, err := s.Request("run1", "", controlNow, "ann")
		return events, err
	})
	rows := c.audit(t)
	controlSame(t, "the audit", rows[len(rows)-1], "ann run_requested flights/runs/run1 ok req7")
}

func controlLineage(t *testing.T, c controlPlane) {
	ctx := context.Background()
	r, err := c.Lake(ctx)
	if err != nil || r != (ports.LakeRecord{}) {
		t.Fatalf("a new control plane knows the lake %v, %v", r, err)
	}
	if err := c.RecordLake(ctx, ports.LakeRecord{}); err == nil {
		t.Fatal("a lake without a lineage was recorded")
	}
	for range 2 {
		if err := c.RecordLake(ctx, ports.LakeRecord{Lineage: "lineage1"}); err != nil {
			t.Fatal(err)
		}
	}
	controlRefused(t, c.RecordLake(ctx, ports.LakeRecord{Lineage: "lineage2", Ready: true}), fail.Conflict, "lineage_changed")
	if r, err = c.Lake(ctx); err != nil || r != (ports.LakeRecord{Lineage: "lineage1"}) {
		t.Fatalf("after the refusal %v, %v", r, err)
	}
	if err := c.RecordLake(ctx, ports.LakeRecord{Lineage: "lineage1", Ready: true}); err != nil {
		t.Fatal(err)
	}
	if r, err = c.reopen(t).Lake(ctx); err != nil || r != (ports.LakeRecord{Lineage: "lineage1", Ready: true}) {
		t.Fatalf("reopened %v, %v", r, err)
	}
}

func controlReleaseLeases(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	for i, owner := range []string{"boot1", "boot1", "boot2", "boot3"} {
		run := refresh.RunID(fmt.Sprintf("run%d", i))
		d.request(run, "")
		d.activate(d.validated(run, owner, serving.Snapshot(5+i)), owner)
	}
	controlSame(t, "protections", c.protections(t), []string{"flights active 8", "flights leased 5", "flights leased 6", "flights leased 7"})
	for _, want := range []int{2, 0} {
		n, err := c.ReleaseLeases(context.Background(), "boot3")
		if err != nil || n != want {
			t.Fatalf("released %d, %v, want %d", n, err, want)
		}
	}
	controlSame(t, "protections of this process", c.protections(t), []string{"flights active 8", "flights leased 7"})
}

func controlNotShared(t *testing.T, c controlPlane) {
	d := controlFlights(t, c).ready()
	d.request("run1", "")
	d.activate(d.validated("run1", "boot1", 5), "boot1")
	before := d.load("run1")
	s := d.load("run1")
	s.Pointer.Tables["delays"] = "stolen"
	s.Tables["delays_1"] = "stolen"
	s.Releases["stolen"] = true
	s.Run.Status = refresh.Queued
	files, err := c.Files(context.Background(), "flights")
	if err != nil {
		t.Fatal(err)
	}
	files[0].Size = 1
	controlSame(t, "state", d.load("run1"), before)
	if files, err = c.Files(context.Background(), "flights"); err != nil {
		t.Fatal(err)
	}
	controlSame(t, "files", files, controlFiles(5))
}

func controlClosed(t *testing.T, c controlPlane) {
	c.reopen(t)
	_, err := c.Load(context.Background(), refresh.Scope{Workspace: "flights"})
	controlRefused(t, err, fail.Unavailable, "control_closed")
	err = c.Update(context.Background(), refresh.Scope{Workspace: "flights"}, func(refresh.State) ([]refresh.Event, error) { return nil, nil })
	controlRefused(t, err, fail.Unavailable, "control_closed")
}

func registryCanceled(t *testing.T, c controlPlane) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.Lake(ended)
	controlRefused(t, err, fail.Canceled, "canceled")
	controlRefused(t, c.RecordLake(ended, ports.LakeRecord{Lineage: "lineage1"}), fail.Canceled, "canceled")
	_, err = c.ReleaseLeases(ended, "boot1")
	controlRefused(t, err, fail.Canceled, "canceled")
	r, err := c.Lake(context.Background())
	if err != nil || r != (ports.LakeRecord{}) {
		t.Fatalf("a canceled record wrote %v, %v", r, err)
	}
}

func registryClosed(t *testing.T, c controlPlane) {
	c.reopen(t)
	_, err := c.Lake(context.Background())
	controlRefused(t, err, fail.Unavailable, "control_closed")
	controlRefused(t, c.RecordLake(context.Background(), ports.LakeRecord{Lineage: "lineage1"}), fail.Unavailable, "control_closed")
	_, err = c.ReleaseLeases(context.Background(), "boot1")
	controlRefused(t, err, fail.Unavailable, "control_closed")
}
