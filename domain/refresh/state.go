package refresh

import (
	"fmt"
	"maps"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// MaxLiveRuns bounds the runs of one workspace that wait or work at a time.
const MaxLiveRuns = 16

// MaxAttempts bounds how often a run is tried again after its process died.
const MaxAttempts = 3

// MaxStops bounds how many of a run's attempts may end because the node chose to stop and not count as having died.
const MaxStops = 32

// Status is where a run stands.
type Status string

// The statuses of a run; the last three are final.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Canceled  Status = "canceled"
)

// Final tells whether a run in this status never changes again.
func (s Status) Final() bool {
	switch s {
	case Succeeded, Failed, Canceled:
		return true
	case Queued, Running:
	}
	return false
}

// Failure says why a run ended without activating. Its zero value means that it did not fail.
type Failure struct {
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Deployment makes a release the one that refreshes compile against. Its zero value means that nothing is deployed.
type Deployment struct {
	// Number counts a workspace's deployments from 1.
	Number  int64
	Release project.Digest
	// SourceRoot is the absolute directory that source locations are resolved against.
	SourceRoot string
	At         time.Time
	By         string
}

// Run is a durable job asking for one refresh.
type Run struct {
	ID             RunID
	Workspace      serving.Workspace
	IdempotencyKey string
	Status         Status
	// Attempts counts the attempts begun so far.
	Attempts int
	// Stops counts the attempts that ended because the node chose to stop.
	Stops int
	// Deployment is the number of the deployment that the newest attempt compiles; 0 before the first.
	Deployment  int64
	RequestedAt time.Time
	RequestedBy string
	// Owner is the boot id of the process that claimed the run; ClaimRevision rises with each claim.
	Owner         string
	ClaimRevision int
	StartedAt     time.Time
	EndedAt       time.Time
	Failure       Failure
	// Generation and Snapshot are what a succeeded run activated.
	Generation serving.GenerationNumber
	Snapshot   serving.Snapshot
}

// Scope says which rows a decision needs.
type Scope struct {
	Workspace serving.Workspace
	// Run adds this run and its newest attempt to the state.
	Run RunID
	// IdempotencyKey adds the run that was requested with this key.
	IdempotencyKey string
	// Ledger adds the files that the active snapshot was built from.
	Ledger bool
	// RequestID is of the request that asks, for the audit rows of the decision; empty when the node acts by itself.
	RequestID string
}

// State is a workspace's durable state as a decision sees it. A workspace nobody created has the zero value but for Workspace,
// RequestID, Lineage and HighestFence.
type State struct {
	Workspace serving.Workspace
	// RequestID is the scope's.
	RequestID string
	Exists    bool
	Lineage   string
	// HighestFence is the highest fence issued on this node; Fence is this workspace's newest.
	HighestFence Fence
	Fence        Fence
	Pointer      serving.Pointer
	Deployment   Deployment
	// Releases are the releases that the workspace accepted.
	Releases map[project.Digest]bool
	// Tables are the recorded physical tables, by physical name, with their model.
	Tables map[string]string
	// ActiveRows are how many rows of each source the active snapshot was built from; known with the scope's run, and of attempts that
	// recorded them.
	ActiveRows map[string]int64
	// ActiveFiles are the files that the active snapshot was built from, by source and name: it is they that the next refresh takes for
	// read, so that what was read goes back with the pointer. Known when the scope asks for the ledger.
	ActiveFiles []SourceFile
	// Live are the runs that wait or work, oldest first.
	Live []Run
	// Run is the run that the scope named; nil when there is none.
	Run *Run
	// Candidate is the newest attempt of Run; nil when there is none or it was activated.
	Candidate Candidate
	// Keyed is the run that was requested with the scope's idempotency key; nil when there is none.
	Keyed *Run
}

// Deploy accepts a compiled release and makes it the deployed one.
func (s State) Deploy(release project.Digest, size int64, sourceRoot string, now time.Time, by string) (Deployment, []Event, error) {
	d := Deployment{Number: s.Deployment.Number + 1, Release: release, SourceRoot: sourceRoot, At: now, By: by}
	var events []Event
	if !s.Exists {
		events = append(events, WorkspaceCreated{At: now, By: by})
	}
	if !s.Releases[release] {
		events = append(events, ReleaseAccepted{Release: release, Size: size, At: now, By: by})
	}
	return d, append(events, Deployed{d}), nil
}

// Request asks for a refresh. The same idempotency key gives the same run again, with no event.
func (s State) Request(id RunID, key string, now time.Time, by string) (Run, []Event, error) {
	if s.Keyed != nil && key != "" {
		return *s.Keyed, nil, nil
	}
	if s.Deployment.Number == 0 {
		return Run{}, nil, fail.New(fail.Conflict, "nothing_deployed", "workspace %q has no deployed release to refresh", s.Workspace).
			WithFix("deploy a project first: leapview deploy DIR")
	}
	if len(s.Live) >= MaxLiveRuns {
		return Run{}, nil, fail.New(fail.Busy, "too_many_runs", "workspace %q already has %d runs that wait or work (limit live_runs = %d)", s.Workspace, len(s.Live), MaxLiveRuns).
			WithFix("wait until one has ended")
	}
	r := Run{ID: id, Workspace: s.Workspace, IdempotencyKey: key, Status: Queued, RequestedAt: now, RequestedBy: by}
	return r, []Event{RunRequested{r}}, nil
}

// Begin claims the scope's run for owner and takes the next fence for a new attempt.
func (s State) Begin(owner string, release, plan project.Digest, now time.Time) (Begun, []Event, error) {
	if s.Run == nil {
		return Begun{}, nil, fail.New(fail.Missing, "unknown_run", "workspace %q has no such run", s.Workspace)
	}
	if s.Run.Status != Queued {
		return Begun{}, nil, fail.New(fail.Conflict, "run_not_queued", "run %s is %s and cannot begin", s.Run.ID, s.Run.Status)
	}
	if s.Deployment.Release != release {
		return Begun{}, nil, fail.New(fail.Conflict, "deployment_moved", "release %s was deployed while run %s compiled release %s", s.Deployment.Release.Short(), s.Run.ID, release.Short())
	}
	m := Mark{Kind: MarkRefresh, Lineage: s.Lineage, Workspace: s.Workspace, Run: s.Run.ID, Attempt: s.Run.Attempts + 1,
		Fence: s.HighestFence + 1, Base: s.Pointer.Snapshot, Release: release, Plan: plan}
	if err := m.validate(); err != nil {
		return Begun{}, nil, err
	}
	b := Begun{attempt{m}}
	return b, []Event{AttemptBegan{Candidate: b, Owner: owner, At: now}}, nil
}

// owns refuses an attempt that is not the newest of its workspace, or whose run has ended.
func (s State) owns(m Mark) error {
	if s.Fence != m.Fence {
		return fail.New(fail.Fenced, "fenced", "%s was overtaken: workspace %q is at fence %d", m, s.Workspace, s.Fence)
	}
	if s.Run == nil || s.Run.ID != m.Run || s.Run.Status != Running {
		return fail.New(fail.Fenced, "run_ended", "%s cannot go on: its run is not running", m)
	}
	return nil
}

// at refuses a transition from a stage that the stored candidate is not at.
func (s State) at(m Mark, want Stage) error {
	if err := s.owns(m); err != nil {
		return err
	}
	if s.Candidate == nil || s.Candidate.Mark() != m || s.Candidate.Stage() != want {
		return fail.New(fail.Conflict, "candidate_moved", "%s is not stored as %s", m, want)
	}
	return nil
}

// RecordSources records what the attempt read, and how many rows of each source, once, before it commits anything; no event when it read
// nothing.
func (s State) RecordSources(b Begun, files []SourceFile, rows map[string]int64, now time.Time) ([]Event, error) {
	if err := s.at(b.mark, StageBegun); err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Source == "" || f.Name == "" || f.Size < 0 || len(f.SHA256) != 64 {
			return nil, fail.New(fail.Internal, "bad_source_record", "%s: file %q of source %q has no size or digest", b.mark, f.Name, f.Source)
		}
	}
	for source, n := range rows {
		if source == "" || n < 0 {
			return nil, fail.New(fail.Internal, "bad_source_record", "%s: source %q has %d rows", b.mark, source, n)
		}
	}
	if len(files) == 0 && len(rows) == 0 {
		return nil, nil
	}
	return []Event{SourcesAcquired{Candidate: b, Files: append([]SourceFile(nil), files...), Rows: maps.Clone(rows), At: now}}, nil
}

// RecordTable records a physical table before it is created; no event when it already is.
func (s State) RecordTable(b Begun, model, table string, now time.Time) ([]Event, error) {
	if err := s.at(b.mark, StageBegun); err != nil {
		return nil, err
	}
	if owner, ok := s.Tables[table]; ok {
		if owner != model {
			return nil, fail.New(fail.Corrupt, "table_of_other_model", "physical table %q is recorded for model %q, not %q", table, owner, model)
		}
		return nil, nil
	}
	return []Event{TableRecorded{Table: table, Model: model, Fence: b.mark.Fence, At: now}}, nil
}

// RecordCommit records that the attempt's mark was found.
func (s State) RecordCommit(c Committed, now time.Time) ([]Event, error) {
	if err := s.at(c.mark, StageBegun); err != nil {
		return nil, err
	}
	return []Event{CandidateCommitted{Candidate: c, At: now}}, nil
}

// RecordSync records that the candidate's files are on disk.
func (s State) RecordSync(d Durable, now time.Time) ([]Event, error) {
	if err := s.at(d.mark, StageCommitted); err != nil {
		return nil, err
	}
	return []Event{CandidateSynced{Candidate: d, At: now}}, nil
}

// RecordRejection records what the checks of a candidate found that cannot be activated; it becomes an orphan.
func (s State) RecordRejection(d Durable, results []CheckResult, reason string, now time.Time) ([]Event, error) {
	if err := s.at(d.mark, StageDurable); err != nil {
		return nil, err
	}
	return []Event{CandidateOrphaned{Candidate: Abandon(d, reason), Checks: results, At: now}}, nil
}

// RecordValidation records that every check passed.
func (s State) RecordValidation(v Validated, now time.Time) ([]Event, error) {
	if err := s.at(v.mark, StageDurable); err != nil {
		return nil, err
	}
	return []Event{CandidateValidated{Candidate: v, At: now}}, nil
}

// Activate moves the serving pointer to the candidate's snapshot. It is refused when a newer fence was issued or the pointer is
// not the one that the candidate was built over. builtAt is when the candidate was committed.
func (s State) Activate(v Validated, tables map[string]string, owner string, builtAt, now time.Time) (serving.Pointer, []Event, error) {
	if err := s.at(v.mark, StageValidated); err != nil {
		return serving.Pointer{}, nil, err
	}
	if s.Pointer.Snapshot != v.mark.Base {
		return serving.Pointer{}, nil, fail.New(fail.Conflict, "pointer_moved", "%s was built over snapshot %d, but snapshot %d is active now", v.mark, v.mark.Base, s.Pointer.Snapshot)
	}
	p := serving.Pointer{Generation: s.Pointer.Generation + 1, Snapshot: v.snapshot, Release: v.mark.Release, PlanDigest: v.mark.Plan,
		Run: string(v.mark.Run), BuiltAt: builtAt, ActivatedAt: now, ActivatedBy: s.Run.RequestedBy, Tables: tables}
	return p, []Event{
		Activated{Candidate: v, Previous: s.Pointer, Pointer: p, Owner: owner},
		RunEnded{Run: v.mark.Run, Status: Succeeded, At: now},
	}, nil
}

// Fail ends the scope's run. Its newest attempt, when there is one, becomes an orphan; committed is the snapshot that carries the mark of
// one that only began, or 0 when the lake has none. A run that has ended stays as it is.
func (s State) Fail(status Status, f Failure, committed serving.Snapshot, now time.Time) ([]Event, error) {
	if s.Run == nil {
		return nil, fail.New(fail.Missing, "unknown_run", "workspace %q has no such run", s.Workspace)
	}
	if s.Run.Status.Final() {
		return nil, nil
	}
	var events []Event
	if s.Candidate != nil && s.Candidate.Stage() != StageOrphan {
		c, err := witnessed(s.Candidate, committed)
		if err != nil {
			return nil, err
		}
		events = append(events, CandidateOrphaned{Candidate: Abandon(c, f.Message), At: now})
	}
	return append(events, RunEnded{Run: s.Run.ID, Status: status, Failure: f, At: now}), nil
}

// witnessed is the candidate with what the lake says of it: an attempt that only began has committed when a snapshot carries its mark.
func witnessed(c Candidate, committed serving.Snapshot) (Candidate, error) {
	b, begun := c.(Begun)
	if !begun || committed == 0 {
		return c, nil
	}
	return b.Proved(b.mark, committed)
}

// Interrupted settles the scope's run, which nobody works on any more although it is running: its process died, or could not write
// down how the run ended. committed is the snapshot that carries the mark of its newest attempt, or 0 when the lake has none. The
// attempt becomes an orphan; the run waits for another attempt, or fails when it has had enough of them. A run that is not running
// stays as it is.
func (s State) Interrupted(committed serving.Snapshot, now time.Time) ([]Event, error) {
	return s.settle(committed, false, "whoever worked on it ended without saying how it ended", now)
}

// Stopped settles the scope's run as Interrupted does, for the node that works on it and chose to stop: the attempt does not count as
// one that died, MaxStops times.
func (s State) Stopped(committed serving.Snapshot, now time.Time) ([]Event, error) {
	return s.settle(committed, true, "the node that worked on it stopped", now)
}

func (s State) settle(committed serving.Snapshot, stopped bool, reason string, now time.Time) ([]Event, error) {
	if s.Run == nil || s.Run.Status != Running {
		return nil, nil
	}
	var events []Event
	candidate := s.Candidate
	if b, begun := candidate.(Begun); begun && committed != 0 {
		proved, err := b.Proved(b.mark, committed)
		if err != nil {
			return nil, err
		}
		candidate = proved
	}
	if candidate != nil && candidate.Stage() != StageOrphan {
		events = append(events, CandidateOrphaned{Candidate: Abandon(candidate, reason), At: now})
	}
	stopped = stopped && s.Run.Stops < MaxStops
	if !stopped && s.Run.Attempts-s.Run.Stops >= MaxAttempts {
		return append(events, RunEnded{Run: s.Run.ID, Status: Failed, At: now, Failure: Failure{Kind: fail.Unavailable.String(), Code: "interrupted",
			Message: fmt.Sprintf("none of the run's %d attempts came to its end: the last time, %s", s.Run.Attempts, reason)}}), nil
	}
	return append(events, RunRequeued{Run: s.Run.ID, Stopped: stopped, Reason: reason, At: now}), nil
}
