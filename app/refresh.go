package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Boot is the random id of this process's turn at the data directory; claims and leases carry it.
type Boot string

// ErrStopping is the cause of a work context that ends because the node stops: the run is then given back to the queue, instead of being
// recorded as canceled by its requester. Joined with a fatal error it means that the node did not choose to stop: the run stays claimed, and
// the next start settles it as one that died, because it may be what broke the engine.
var ErrStopping = errors.New("the node is stopping")

// stopTime bounds the giving back of the run at work when the node stops, which waits for it.
const stopTime = 5 * time.Second

// settleTime bounds the work that must be done after a lake commit even though its requester has left.
const settleTime = 30 * time.Minute

// lookTime bounds one look at whether an activation was written.
const lookTime = 30 * time.Second

// Refresher runs refreshes.
type Refresher struct {
	control   ports.Control
	watermark ports.Watermark
	sources   ports.Sources
	lake      ports.Lake
	files     ports.DataFiles
	checker   ports.Checker
	releases  *Releases
	gens      *Generations
	clock     ports.Clock
	identity  ports.Identity
	boot      Boot
	log       *slog.Logger
}

// NewRefresher wires the ports that refreshing needs.
func NewRefresher(control ports.Control, watermark ports.Watermark, sources ports.Sources, lake ports.Lake, files ports.DataFiles,
	checker ports.Checker, releases *Releases, gens *Generations, clock ports.Clock, identity ports.Identity,
	boot Boot, log *slog.Logger) *Refresher {
	return &Refresher{control, watermark, sources, lake, files, checker, releases, gens, clock, identity, boot, log}
}

// Request records a run. The same idempotency key gives the run that was requested with it before.
func (r *Refresher) Request(ctx context.Context, w serving.Workspace, key string, by access.Caller) (refresh.Run, error) {
	var run refresh.Run
	id, now := refresh.RunID(r.identity.NewID()), r.clock.Now()
	err := r.control.Update(ctx, refresh.Scope{Workspace: w, IdempotencyKey: key, RequestID: by.Request}, func(s refresh.State) ([]refresh.Event, error) {
		var events []refresh.Event
		var err error
		run, events, err = s.Request(id, key, now, by.Principal)
		return events, err
	})
	return run, err
}

// Run is the run's durable state.
func (r *Refresher) Run(ctx context.Context, w serving.Workspace, id refresh.RunID) (refresh.Run, error) {
	s, err := r.control.Load(ctx, refresh.Scope{Workspace: w, Run: id})
	if err != nil {
		return refresh.Run{}, err
	}
	if s.Run == nil {
		return refresh.Run{}, fail.New(fail.Missing, "unknown_run", "workspace %q has no run %q", w, id)
	}
	return *s.Run, nil
}

// Checks are what the checks of the run's newest judged attempt found; empty when none was judged.
func (r *Refresher) Checks(ctx context.Context, id refresh.RunID) ([]refresh.CheckResult, error) {
	return r.control.Checks(ctx, id)
}

// Work carries one queued run through the whole protocol and publishes what it activated. On an error the run is settled as
// failed or canceled and the active snapshot is what it was; only when ctx ended with ErrStopping does it wait for the next start.
func (r *Refresher) Work(ctx context.Context, w serving.Workspace, id refresh.RunID, report func(plan.Progress)) (serving.Pointer, error) {
	p, err := r.refresh(ctx, w, id, report)
	if err == nil {
		return p, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrStopping) {
		if fail.KindOf(cause) == fail.Fatal || fail.KindOf(err) == fail.Fatal {
			return serving.Pointer{}, err
		}
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if lost := r.giveBack(stopping, w, id, refresh.State.Stopped); lost != nil {
			// The next start settles the run as one whose process died.
			r.log.WarnContext(ctx, "the run at work was not given back", "workspace", w, "run", id, "error", lost)
		}
		return serving.Pointer{}, err
	}
	var undecided *undecidedError
	if errors.As(err, &undecided) {
		r.log.ErrorContext(ctx, "refresh left to be settled", "workspace", w, "run", id, "error", err)
		return serving.Pointer{}, err
	}
	// Only its requester cancels a run; a bound of ours that ended something is a failure.
	status := refresh.Failed
	if ctx.Err() != nil {
		status = refresh.Canceled
	}
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	failure := refresh.Failure{Kind: fail.KindOf(err).String(), Code: fail.CodeOf(err), Message: err.Error()}
	settled := r.fail(settle, refresh.Scope{Workspace: w, Run: id}, status, failure)
	r.log.ErrorContext(ctx, "refresh failed", "workspace", w, "run", id, "code", failure.Code, "error", err)
	if settled != nil {
		return serving.Pointer{}, &undecidedError{errors.Join(err, settled)}
	}
	return serving.Pointer{}, err
}

// fail ends the run as it failed. An attempt that only began may have committed all the same, when the commit could not be recorded.
func (r *Refresher) fail(ctx context.Context, scope refresh.Scope, status refresh.Status, failure refresh.Failure) error {
	committed, err := r.committed(ctx, scope)
	if err != nil {
		return err
	}
	return r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) {
		return s.Fail(status, failure, committed, now)
	})
}

// committed is the snapshot that carries the mark of the run's newest attempt, when that one only began; 0 when there is none. It is written
// in the lake alone.
func (r *Refresher) committed(ctx context.Context, scope refresh.Scope) (serving.Snapshot, error) {
	s, err := r.control.Load(ctx, scope)
	if err != nil {
		return 0, err
	}
	b, ok := s.Candidate.(refresh.Begun)
	if !ok {
		return 0, nil
	}
	at, _, _, err := r.lake.Find(ctx, b.Mark())
	return at, err
}

// undecidedError is the error of a run that could not be settled: what became of it is to be looked up, or written down, later.
type undecidedError struct{ error }

// Unwrap gives the errors that led here.
func (e *undecidedError) Unwrap() error { return e.error }

// giveBack settles a run that is running and that nobody works on any more, as decide says: its attempt becomes an orphan, and it waits for
// another one or fails. Whether an attempt that only began has committed is written in the lake alone, under its mark.
func (r *Refresher) giveBack(ctx context.Context, w serving.Workspace, id refresh.RunID,
	decide func(s refresh.State, committed serving.Snapshot, now time.Time) ([]refresh.Event, error)) error {
	scope := refresh.Scope{Workspace: w, Run: id}
	at, err := r.committed(ctx, scope)
	if err != nil {
		return err
	}
	r.log.InfoContext(ctx, "abandoned run settled", "workspace", w, "run", id, "orphan_snapshot", at)
	return r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) { return decide(s, at, now) })
}

// refresh is steps 1 to 7 of the protocol (ARCHITECTURE.md, The refresh protocol). The order is the design.
func (r *Refresher) refresh(ctx context.Context, w serving.Workspace, id refresh.RunID, report func(plan.Progress)) (_ serving.Pointer, err error) {
	var none serving.Pointer
	scope := refresh.Scope{Workspace: w, Run: id}

	// 1. The attempt takes the next fence on the workspace row. From here it protects whatever snapshot carries its mark.
	rel, before, begun, err := r.begin(ctx, scope)
	if err != nil {
		return none, err
	}
	mark := begun.Mark()
	log := r.log.With("workspace", w, "run", id, "fence", mark.Fence)
	log.InfoContext(ctx, "attempt began", "attempt", mark.Attempt, "release", rel.ID.Short())
	// The fence is on disk outside the control plane before anything is done under it, so that a control plane that went back in
	// time is noticed.
	if err := r.watermark.Raise(ctx, mark.Fence); err != nil {
		return none, err
	}

	// 2. Finalized source files are copied and digested; the engine reads the copies into tables that only this build sees.
	defer func() {
		if err := r.sources.Release(context.WithoutCancel(ctx), id); err != nil {
			log.WarnContext(ctx, "staged files were not removed", "error", err)
		}
	}()
	artifacts := map[string][]ports.Artifact{}
	for _, s := range rel.Project.Sources {
		report(plan.Progress{Phase: plan.PhaseAcquire, Subject: s.Name})
		a, err := r.sources.Acquire(ctx, id, before.Deployment.SourceRoot, s)
		if err != nil {
			return none, err
		}
		if s.Bounds.Freshness > 0 {
			if err := s.AcceptAge(newest(a), r.clock.Now()); err != nil {
				return none, err
			}
		}
		artifacts[s.Name] = a
		report(plan.Progress{Phase: plan.PhaseAcquire, Subject: s.Name, Done: true, Rows: -1})
	}
	build, err := r.lake.Begin(ctx, w)
	if err != nil {
		return none, err
	}
	// Only the first Close acts; this one is for the ways out before the commit.
	defer func() {
		if err := build.Close(); err != nil {
			log.WarnContext(ctx, "build was not closed cleanly", "error", err)
		}
	}()
	base, err := r.base(ctx, before)
	if err != nil {
		return none, err
	}
	work := plan.Decide(base, rel, known(artifacts))
	for _, step := range work.Steps {
		log.InfoContext(ctx, "step decided", "model", step.Model.Name, "action", step.Action, "reason", step.Reason)
	}
	rows, err := r.stage(ctx, build, work, artifacts, before.ActiveRows, log, report)
	if err != nil {
		return none, err
	}

	for _, step := range work.Steps {
		if step.Action == plan.Keep {
			report(plan.Progress{Phase: plan.PhaseKeep, Subject: step.Model.Name, Done: true, Rows: -1})
		}
	}

	// 3. Missing tables are recorded, then created empty in commits of their own, since a schema change inside the data
	// transaction is not safe beside readers. Then one transaction writes all rows and the mark.
	if err := r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) {
		// What was read is told by the same transaction.
		events, err := s.RecordSources(begun, consumed(rel.Project.Sources, artifacts), rows, now)
		if err != nil {
			return nil, err
		}
		for _, m := range rel.Models {
			more, err := s.RecordTable(begun, m.Name, m.Table, now)
			if err != nil {
				return nil, err
			}
			events = append(events, more...)
		}
		return events, nil
	}); err != nil {
		return none, err
	}
	if err := build.Create(ctx, rel.Models, slices.Collect(maps.Values(before.Pointer.Tables))); err != nil {
		return none, err
	}
	report(plan.Progress{Phase: plan.PhaseCreate, Done: true, Rows: -1})
	commitErr := build.Commit(ctx, work.Steps, mark, work.Explained(report))

	// From here on the work outlives its requester, since there may be a commit that only we know of, but not the node: the next start
	// finds the commit by its mark.
	requested := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	defer func() {
		if fail.KindOf(err) == fail.Canceled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fail.New(fail.Limit, "settle_time", "hashing, judging and preparing what was committed took longer than %s (limit settle_time), and it was given up", settleTime).Because(err)
		}
	}()
	defer context.AfterFunc(requested, func() {
		if errors.Is(context.Cause(requested), ErrStopping) {
			cancel()
		}
	})()
	if err := build.Close(); err != nil {
		log.WarnContext(ctx, "build was not closed cleanly", "error", err)
	}

	// 4. The mark read back is the proof of the commit; what Commit said is not. Then the candidate is recorded, its files are
	// made durable, and their sizes and digests are recorded.
	at, builtAt, found, err := r.lake.Find(ctx, mark)
	if err != nil {
		return none, &undecidedError{errors.Join(err, commitErr)}
	}
	if !found {
		if commitErr == nil {
			commitErr = fail.New(fail.Internal, "commit_lost", "the lake has no commit of %s although the engine reported one", mark)
		}
		return none, commitErr
	}
	if commitErr != nil {
		log.WarnContext(ctx, "commit reported an error but its mark is in the lake", "error", commitErr)
	}
	committed, err := begun.Proved(mark, at)
	if err != nil {
		return none, err
	}
	if err := r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) { return s.RecordCommit(committed, now) }); err != nil {
		return none, err
	}
	report(plan.Progress{Phase: plan.PhaseCommit, Done: true, Rows: -1})
	candidate := serving.Scope{Workspace: w, Snapshot: at, Tables: rel.Tables()}
	paths, err := r.lake.Files(ctx, candidate)
	if err != nil {
		return none, err
	}
	sealed, err := r.seal(ctx, w, paths)
	if err != nil {
		return none, err
	}
	durable, err := committed.Synced(sealed)
	if err != nil {
		return none, err
	}
	if err := r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) { return s.RecordSync(durable, now) }); err != nil {
		return none, err
	}
	report(plan.Progress{Phase: plan.PhaseSync, Done: true, Rows: -1})

	// 5. The candidate is judged by queries pinned to it. Beside that the next generation is prepared and warmed, all before the pointer
	// moves: nothing that can fail stands between 6 and 7.
	prepared, stopPreparing := context.WithCancel(ctx)
	defer stopPreparing()
	preparing := r.prepareNext(prepared, w, mark.Lineage, rel, at)
	results, err := r.judge(ctx, candidate, rel, report)
	var validated refresh.Validated
	if err == nil {
		validated, err = durable.Judged(results)
	}
	if err != nil {
		// Nobody needs the generation of a candidate that is refused.
		stopPreparing()
	}
	next, prepareErr := preparing()
	if err != nil && results == nil {
		return none, err
	}
	if err != nil {
		rejected := r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) {
			return s.RecordRejection(durable, results, err.Error(), now)
		})
		if rejected != nil {
			return none, errors.Join(err, rejected)
		}
		return none, err
	}
	if err := r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) {
		return s.RecordValidation(validated, now)
	}); err != nil {
		return none, err
	}

	if prepareErr != nil {
		return none, prepareErr
	}

	// 6. The pointer moves in one transaction that checks the fence, the candidate's state and the pointer it was built over.
	err = r.record(ctx, scope, func(s refresh.State, now time.Time) ([]refresh.Event, error) {
		var events []refresh.Event
		var err error
		next.Pointer, events, err = s.Activate(validated, rel.Tables(), string(r.boot), builtAt, now)
		return events, err
	})
	if fail.KindOf(err) == fail.UnknownOutcome {
		err = r.activated(ctx, scope, next.Pointer, err)
	}
	if err != nil {
		return none, err
	}

	// 7. One swap.
	r.gens.Publish(next)
	report(plan.Progress{Phase: plan.PhaseActivate, Done: true, Rows: -1})
	log.InfoContext(ctx, "activated", "generation", next.Pointer.Generation, "snapshot", at)
	return next.Pointer, nil
}

// seal makes the files durable. Those that the active snapshot needs too are so already, and are not read again.
func (r *Refresher) seal(ctx context.Context, w serving.Workspace, paths []string) ([]refresh.File, error) {
	active, err := r.control.Files(ctx, w)
	if err != nil {
		return nil, err
	}
	known := make(map[string]refresh.File, len(active))
	for _, f := range active {
		known[f.Path] = f
	}
	var kept []refresh.File
	var fresh []string
	for _, path := range paths {
		if f, ok := known[path]; ok {
			kept = append(kept, f)
		} else {
			fresh = append(fresh, path)
		}
	}
	sealed, err := r.files.Seal(ctx, fresh)
	return append(kept, sealed...), err
}

// base is what the refresh goes on from: the active snapshot, when the release that built it can still be compiled.
func (r *Refresher) base(ctx context.Context, before refresh.State) (plan.Base, error) {
	if !before.Pointer.Active() {
		return plan.Base{Lost: "the first build"}, nil
	}
	old, err := r.releases.load(ctx, before.Pointer.Release)
	var problems project.Problems
	switch {
	case errors.As(err, &problems):
		return plan.Base{Lost: "the release that built the active snapshot does not compile any more"}, nil
	case err != nil:
		return plan.Base{}, err
	}
	base := plan.Base{Release: &old, Files: map[string][]plan.Artifact{}}
	for _, f := range before.ActiveFiles {
		base.Files[f.Source] = append(base.Files[f.Source], plan.Artifact{Name: f.Name, SHA256: f.SHA256})
	}
	return base, nil
}

// stage reads what the work needs into tables that only the build sees, and gives how many rows each of those sources has.
func (r *Refresher) stage(ctx context.Context, build ports.Build, work plan.Work, artifacts map[string][]ports.Artifact, active map[string]int64, log *slog.Logger,
	report func(plan.Progress)) (map[string]int64, error) {
	for _, repeat := range work.Repeats {
		log.WarnContext(ctx, "a file repeats another one and is not read", "source", repeat.Source, "file", repeat.Name, "same", repeat.Same)
	}
	rows := map[string]int64{}
	for _, s := range work.Unread {
		// Its files are those of the active snapshot; its bounds may be others.
		if n, known := active[s.Name]; known {
			rows[s.Name] = n
			if err := s.AcceptRows(n, n); err != nil {
				return nil, err
			}
		}
	}
	for _, stage := range work.Stages {
		s := stage.Source
		report(plan.Progress{Phase: plan.PhaseStage, Subject: s.Name})
		named := byName(artifacts[s.Name])
		var whole ports.Staged
		for _, part := range stage.Parts {
			staged, err := build.Stage(ctx, s, chosen(named, part))
			if err != nil {
				return nil, err
			}
			whole.Rows += staged.Rows
			whole.Ignored = slices.Compact(slices.Sorted(slices.Values(append(whole.Ignored, staged.Ignored...))))
		}
		rows[s.Name] = whole.Rows
		if !stage.Whole {
			// What is not read again is there as it was.
			rows[s.Name] += active[s.Name]
		}
		if err := s.AcceptRows(rows[s.Name], active[s.Name]); err != nil {
			return nil, err
		}
		warning := leftOut(s, whole)
		if warning != "" {
			log.WarnContext(ctx, "columns were left out", "source", s.Name, "columns", whole.Ignored)
		}
		if more := repeated(s, work.Repeats); more != "" {
			warning = strings.TrimPrefix(warning+"; "+more, "; ")
		}
		report(plan.Progress{Phase: plan.PhaseStage, Subject: s.Name, Done: true, Rows: whole.Rows, Warning: warning})
	}
	return rows, nil
}

// begin compiles the deployed release, so that the mark can name its plan, and begins the attempt. A deploy in between is compiled
// anew, a few times. before is the state that the attempt began in.
func (r *Refresher) begin(ctx context.Context, scope refresh.Scope) (rel plan.Release, before refresh.State, begun refresh.Begun, err error) {
	ledger := scope
	ledger.Ledger = true
	for range 3 {
		var state refresh.State
		if state, err = r.control.Load(ctx, scope); err != nil {
			return rel, before, begun, err
		}
		if rel, err = r.releases.load(ctx, state.Deployment.Release); err != nil {
			return rel, before, begun, err
		}
		err = r.record(ctx, ledger, func(s refresh.State, now time.Time) ([]refresh.Event, error) {
			var events []refresh.Event
			var err error
			before = s
			begun, events, err = s.Begin(string(r.boot), rel.ID, rel.Digest(), now)
			return events, err
		})
		if fail.CodeOf(err) != "deployment_moved" {
			break
		}
	}
	return rel, before, begun, err
}

// prepareNext begins to prepare and warm the generation over the candidate, and gives the function that waits for it.
func (r *Refresher) prepareNext(ctx context.Context, w serving.Workspace, lineage string, rel plan.Release, at serving.Snapshot) func() (*Generation, error) {
	var g *Generation
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if g, err = r.releases.prepare(ctx, w, lineage, rel, serving.Pointer{Snapshot: at, Tables: rel.Tables()}); err == nil {
			err = r.releases.warm(ctx, g)
		}
	}()
	return func() (*Generation, error) { <-done; return g, err }
}

// activated looks up whether an activation of unknown outcome was written. When even that cannot be known, the process must not go on
// serving what may no longer be active.
func (r *Refresher) activated(ctx context.Context, scope refresh.Scope, p serving.Pointer, unknown error) error {
	// What may have ended is the very context that the activation was written under.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	s, err := r.control.Load(ctx, scope)
	switch {
	case err != nil:
		return &undecidedError{fail.New(fail.Fatal, "activation_unknown", "whether generation %d of workspace %q was activated cannot be read back", p.Generation, scope.Workspace).
			Because(errors.Join(unknown, err)).WithFix("restart the process: it serves what the control plane says")}
	case s.Pointer.Generation == p.Generation && s.Pointer.Run == p.Run:
		return nil
	}
	return unknown
}

func (r *Refresher) record(ctx context.Context, scope refresh.Scope, decide func(refresh.State, time.Time) ([]refresh.Event, error)) error {
	now := r.clock.Now()
	return r.control.Update(ctx, scope, func(s refresh.State) ([]refresh.Event, error) { return decide(s, now) })
}

// judgesAtOnce is how many models are judged side by side: one model's counting leaves processors idle while the next one is bound.
const judgesAtOnce = 2

// judge runs every declared check at the candidate's snapshot.
func (r *Refresher) judge(ctx context.Context, scope serving.Scope, rel plan.Release, report func(plan.Progress)) ([]refresh.CheckResult, error) {
	results := make([][]refresh.CheckResult, len(rel.Models))
	errs := make([]error, len(rel.Models))
	now := r.clock.Now()
	var mu sync.Mutex
	failed := false
	var all sync.WaitGroup
	turn := make(chan struct{}, judgesAtOnce)
	for i, m := range rel.Models {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			say := func(done bool) {
				mu.Lock()
				defer mu.Unlock()
				report(plan.Progress{Phase: plan.PhaseValidate, Subject: m.Name, Done: done, Rows: -1})
			}
			mu.Lock()
			skip := failed
			mu.Unlock()
			if skip {
				return
			}
			say(false)
			if results[i], errs[i] = r.checker.Check(ctx, scope, m, now); errs[i] == nil {
				say(true)
				return
			}
			mu.Lock()
			failed = true
			mu.Unlock()
		})
	}
	all.Wait()
	for _, err := range errs {
		if fail.KindOf(err) == fail.Fatal {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return refresh.Bounded(slices.Concat(results...)), nil
}
