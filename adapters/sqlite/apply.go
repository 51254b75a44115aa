package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"leapview/domain/audit"
	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// The kinds of protections.
const (
	protectActive    = "active"
	protectCandidate = "candidate"
	protectAttempt   = "attempt"
	protectLeased    = "leased"
)

// apply writes one event that was decided over the state. Each statement repeats the condition that it depends on, so that an
// event which no longer fits changes no row and is refused.
func apply(ctx context.Context, tx *sql.Tx, state refresh.State, event refresh.Event) error {
	w := writer{tx, state.Workspace}
	switch e := event.(type) {
	case refresh.WorkspaceCreated:
		return w.exec(ctx, `INSERT INTO workspaces (name, created_at, created_by) VALUES (?, ?, ?)`, w.workspace, micros(e.At), e.By)
	case refresh.ReleaseAccepted:
		return w.exec(ctx, `INSERT INTO releases (workspace, digest, size, accepted_at, accepted_by) VALUES (?, ?, ?, ?, ?)`,
			w.workspace, e.Release, e.Size, micros(e.At), e.By)
	case refresh.Deployed:
		return w.deployed(ctx, e.Deployment)
	case refresh.RunRequested:
		return w.requested(ctx, e.Run)
	case refresh.AttemptBegan:
		return w.began(ctx, e)
	case refresh.SourcesAcquired:
		return w.acquired(ctx, e)
	case refresh.TableRecorded:
		return w.one(ctx, w.fenced(e.Fence), `INSERT INTO physical_tables (workspace, name, model, fence, recorded_at) SELECT ?, ?, ?, ?, ?
			WHERE ?4 = (SELECT fence FROM workspaces WHERE name = ?1)`, w.workspace, e.Table, e.Model, e.Fence, micros(e.At))
	case refresh.CandidateCommitted:
		return w.committed(ctx, e)
	case refresh.CandidateSynced:
		return w.synced(ctx, e)
	case refresh.CandidateValidated:
		return w.validated(ctx, e)
	case refresh.CandidateOrphaned:
		return w.orphaned(ctx, e)
	case refresh.Activated:
		return w.activated(ctx, e)
	case refresh.GenerationRetired:
		if err := w.exec(ctx, `DELETE FROM leases WHERE workspace = ? AND generation = ? AND owner = ?`, w.workspace, e.Generation, e.Owner); err != nil {
			return err
		}
		return w.unprotect(ctx, protectLeased, leaseHolder(e.Owner, e.Generation))
	case refresh.RunRequeued:
		return w.one(ctx, notRunning(e.Run), `UPDATE runs SET status = 'queued', owner = NULL, stops = stops + ? WHERE workspace = ? AND id = ? AND status = 'running'`,
			e.Stopped, w.workspace, e.Run)
	case refresh.RunEnded:
		return w.one(ctx, notRunning(e.Run), `UPDATE runs SET status = ?, ended_at = ?, failure_kind = ?, failure_code = ?, failure_message = ?
			WHERE workspace = ? AND id = ? AND status IN ('queued', 'running')`,
			e.Status, micros(e.At), e.Failure.Kind, e.Failure.Code, e.Failure.Message, w.workspace, e.Run)
	}
	return fail.New(fail.Internal, "unknown_event", "the control plane does not know the event %s (%T)", event.EventName(), event)
}

// tell writes an audit row.
func tell(ctx context.Context, tx *sql.Tx, row audit.Row) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO audit_events (at, principal, action, target, outcome, detail, request) VALUES (?, ?, ?, ?, ?, ?, nullif(?, ''))`,
		micros(row.At), row.Principal, row.Action, row.Target, row.Outcome, row.Detail, row.Request)
	return err
}

// writer is one event's turn within the transaction of its decision; it lives no longer than apply.
type writer struct {
	tx        *sql.Tx
	workspace serving.Workspace
}

// exec runs a statement that may change any number of rows.
func (w writer) exec(ctx context.Context, query string, args ...any) error {
	_, err := w.tx.ExecContext(ctx, query, args...)
	return err
}

// one runs a statement that must change exactly one row; refusal is the error when it changed none.
func (w writer) one(ctx context.Context, refusal error, query string, args ...any) error {
	n, err := affected(w.tx.ExecContext(ctx, query, args...))
	if err == nil && n != 1 {
		return refusal
	}
	return err
}

func (w writer) protect(ctx context.Context, kind, holder string, snapshot serving.Snapshot, since int64) error {
	return w.exec(ctx, `INSERT INTO protections (workspace, kind, holder, snapshot, since) VALUES (?, ?, ?, nullif(?, 0), ?)`,
		w.workspace, kind, holder, snapshot, since)
}

func (w writer) unprotect(ctx context.Context, kind, holder string) error {
	return w.exec(ctx, `DELETE FROM protections WHERE workspace = ? AND kind = ? AND holder = ?`, w.workspace, kind, holder)
}

func (w writer) deployed(ctx context.Context, d refresh.Deployment) error {
	refusal := fail.New(fail.Conflict, "deployment_out_of_turn", "deployment %d of workspace %q does not follow the newest one", d.Number, w.workspace)
	return w.one(ctx, refusal, `INSERT INTO deployments (workspace, number, release, source_root, deployed_at, deployed_by) SELECT ?, ?, ?, ?, ?, ?
		WHERE ?2 = (SELECT coalesce(max(number), 0) + 1 FROM deployments WHERE workspace = ?1)`,
		w.workspace, d.Number, d.Release, d.SourceRoot, micros(d.At), d.By)
}

func (w writer) requested(ctx context.Context, r refresh.Run) error {
	if r.Workspace != w.workspace || r.Status != refresh.Queued {
		return fail.New(fail.Internal, "impossible_write", "run %s of workspace %q is requested as %s in workspace %q", r.ID, r.Workspace, r.Status, w.workspace)
	}
	return w.exec(ctx, `INSERT INTO runs (id, workspace, idempotency_key, status, attempts, requested_at, requested_by, claim_revision, failure_kind,
		failure_code, failure_message) VALUES (?, ?, nullif(?, ''), 'queued', 0, ?, ?, 0, '', '', '')`,
		r.ID, w.workspace, r.IdempotencyKey, micros(r.RequestedAt), r.RequestedBy)
}

func (w writer) began(ctx context.Context, e refresh.AttemptBegan) error {
	m := e.Candidate.Mark()
	if m.Workspace != w.workspace {
		return foreign(m, w.workspace)
	}
	// The fence is the node's: it must be above every workspace's, not only above this one's.
	if err := w.one(ctx, w.fenced(m.Fence), `UPDATE workspaces SET fence = ? WHERE name = ? AND NOT EXISTS (SELECT 1 FROM workspaces WHERE fence >= ?1)`,
		m.Fence, w.workspace); err != nil {
		return err
	}
	refusal := fail.New(fail.Conflict, "run_not_queued", "%s cannot begin: its run is not queued for it", m)
	if err := w.one(ctx, refusal, `UPDATE runs SET status = 'running', owner = ?1, claim_revision = claim_revision + 1, attempts = ?2,
		started_at = coalesce(started_at, ?3), deployment = (SELECT max(number) FROM deployments WHERE workspace = ?4)
		WHERE workspace = ?4 AND id = ?5 AND status = 'queued' AND attempts = ?2 - 1`,
		e.Owner, m.Attempt, micros(e.At), w.workspace, m.Run); err != nil {
		return err
	}
	if err := w.exec(ctx, `INSERT INTO attempts (fence, workspace, run, attempt, lineage, base, release, plan, owner, began_at, changed_at, stage)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?10, 'begun')`,
		m.Fence, w.workspace, m.Run, m.Attempt, m.Lineage, m.Base, m.Release, m.Plan, e.Owner, micros(e.At)); err != nil {
		return err
	}
	return w.protect(ctx, protectAttempt, m.Encode(), 0, micros(e.At))
}

// step moves an attempt from one stage to the next, or lets it stay at one, unless a newer fence was issued for its workspace.
func (w writer) step(ctx context.Context, m refresh.Mark, from, to refresh.Stage, snapshot serving.Snapshot, at int64) error {
	n, err := affected(w.tx.ExecContext(ctx, `UPDATE attempts SET stage = ?1, snapshot = nullif(?2, 0), changed_at = ?3
		WHERE fence = ?4 AND run = ?5 AND attempt = ?6 AND workspace = ?7 AND stage = ?8 AND fence = (SELECT fence FROM workspaces WHERE name = ?7)`,
		to, snapshot, at, m.Fence, m.Run, m.Attempt, w.workspace, from))
	if err != nil || n == 1 {
		return err
	}
	var newest refresh.Fence
	if err := w.tx.QueryRowContext(ctx, `SELECT coalesce(max(fence), 0) FROM workspaces WHERE name = ?`, w.workspace).Scan(&newest); err != nil {
		return err
	}
	if newest != m.Fence {
		return fail.New(fail.Fenced, "fenced", "%s was overtaken: workspace %q is at fence %d", m, w.workspace, newest)
	}
	return fail.New(fail.Conflict, "candidate_moved", "%s is not stored as %s", m, from)
}

func (w writer) acquired(ctx context.Context, e refresh.SourcesAcquired) error {
	m := e.Candidate.Mark()
	if err := w.step(ctx, m, refresh.StageBegun, refresh.StageBegun, 0, micros(e.At)); err != nil {
		return err
	}
	for _, f := range e.Files {
		if err := w.exec(ctx, `INSERT INTO source_files (fence, source, name, size, sha256) VALUES (?, ?, ?, ?, ?)`, m.Fence, f.Source, f.Name, f.Size, f.SHA256); err != nil {
			return err
		}
	}
	for source, n := range e.Rows {
		if err := w.exec(ctx, `INSERT INTO source_rows (fence, source, rows) VALUES (?, ?, ?)`, m.Fence, source, n); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) committed(ctx context.Context, e refresh.CandidateCommitted) error {
	m, at := e.Candidate.Mark(), micros(e.At)
	if err := w.step(ctx, m, refresh.StageBegun, refresh.StageCommitted, e.Candidate.Snapshot(), at); err != nil {
		return err
	}
	// The same snapshot stays protected throughout, first by the attempt's mark, now by its number.
	if err := w.unprotect(ctx, protectAttempt, m.Encode()); err != nil {
		return err
	}
	return w.protect(ctx, protectCandidate, m.Encode(), e.Candidate.Snapshot(), at)
}

func (w writer) synced(ctx context.Context, e refresh.CandidateSynced) error {
	m := e.Candidate.Mark()
	if err := w.step(ctx, m, refresh.StageCommitted, refresh.StageDurable, e.Candidate.Snapshot(), micros(e.At)); err != nil {
		return err
	}
	for _, f := range e.Candidate.Files() {
		if err := w.exec(ctx, `INSERT INTO candidate_files (fence, path, size, sha256) VALUES (?, ?, ?, ?)`, m.Fence, f.Path, f.Size, f.SHA256); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) validated(ctx context.Context, e refresh.CandidateValidated) error {
	m := e.Candidate.Mark()
	if err := w.step(ctx, m, refresh.StageDurable, refresh.StageValidated, e.Candidate.Snapshot(), micros(e.At)); err != nil {
		return err
	}
	return w.checks(ctx, m.Fence, e.Candidate.Checks())
}

// checks stores what was found of an attempt.
func (w writer) checks(ctx context.Context, fence refresh.Fence, results []refresh.CheckResult) error {
	for i, c := range results {
		if err := w.exec(ctx, `INSERT INTO candidate_checks (fence, position, model, rule, name, at_file, at_line, at_column, severity, ok, failures, judged, detail, sample)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			fence, i, c.Model, c.Check, c.Name, c.At.File, c.At.Line, c.At.Column, c.Severity, c.OK, c.Failures, c.Judged, c.Detail, c.Sample); err != nil {
			return err
		}
	}
	return nil
}

// orphaned gives an attempt up. No fence is asked: giving up is always allowed, also after a newer attempt began.
func (w writer) orphaned(ctx context.Context, e refresh.CandidateOrphaned) error {
	m := e.Candidate.Mark()
	refusal := fail.New(fail.Conflict, "candidate_moved", "%s is not stored as a live candidate", m)
	if err := w.one(ctx, refusal, `UPDATE attempts SET stage = 'orphan', snapshot = nullif(?, 0), reason = ?, changed_at = ?
		WHERE fence = ? AND run = ? AND attempt = ? AND workspace = ? AND stage NOT IN ('activated', 'orphan')`,
		e.Candidate.Snapshot(), e.Candidate.Reason(), micros(e.At), m.Fence, m.Run, m.Attempt, w.workspace); err != nil {
		return err
	}
	if err := w.checks(ctx, m.Fence, e.Checks); err != nil {
		return err
	}
	if err := w.unprotect(ctx, protectAttempt, m.Encode()); err != nil {
		return err
	}
	return w.unprotect(ctx, protectCandidate, m.Encode())
}

func (w writer) activated(ctx context.Context, e refresh.Activated) error {
	m, p, at := e.Candidate.Mark(), e.Pointer, micros(e.Pointer.ActivatedAt)
	if err := w.step(ctx, m, refresh.StageValidated, refresh.StageActivated, e.Candidate.Snapshot(), at); err != nil {
		return err
	}
	if err := w.movePointer(ctx, e.Previous, p); err != nil {
		return err
	}
	if err := w.exec(ctx, `DELETE FROM serving_pointer_tables WHERE workspace = ?`, w.workspace); err != nil {
		return err
	}
	for model, physical := range p.Tables {
		if err := w.exec(ctx, `INSERT INTO serving_pointer_tables (workspace, model, physical) VALUES (?, ?, ?)`, w.workspace, model, physical); err != nil {
			return err
		}
	}
	// What was active stays protected, now by the lease of the process whose requests may still read it.
	if e.Previous.Active() {
		if err := w.unprotect(ctx, protectActive, activeHolder(e.Previous.Generation)); err != nil {
			return err
		}
		if err := w.exec(ctx, `INSERT INTO leases (workspace, generation, owner, snapshot, since) VALUES (?, ?, ?, ?, ?)`,
			w.workspace, e.Previous.Generation, e.Owner, e.Previous.Snapshot, at); err != nil {
			return err
		}
		if err := w.protect(ctx, protectLeased, leaseHolder(e.Owner, e.Previous.Generation), e.Previous.Snapshot, at); err != nil {
			return err
		}
	}
	if err := w.unprotect(ctx, protectCandidate, m.Encode()); err != nil {
		return err
	}
	if err := w.protect(ctx, protectActive, activeHolder(p.Generation), p.Snapshot, at); err != nil {
		return err
	}
	return w.one(ctx, notRunning(m.Run), `UPDATE runs SET generation = ?, snapshot = ? WHERE workspace = ? AND id = ? AND status = 'running'`,
		p.Generation, p.Snapshot, w.workspace, m.Run)
}

// movePointer replaces exactly the previous pointer, or none when there was none.
func (w writer) movePointer(ctx context.Context, previous, p serving.Pointer) error {
	refusal := fail.New(fail.Conflict, "pointer_moved", "workspace %q no longer serves generation %d at snapshot %d", w.workspace, previous.Generation, previous.Snapshot)
	if !previous.Active() {
		return w.one(ctx, refusal, `INSERT INTO serving_pointers (workspace, generation, snapshot, release, plan, run, built_at, activated_at, activated_by)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace) DO NOTHING`,
			w.workspace, p.Generation, p.Snapshot, p.Release, p.PlanDigest, p.Run, micros(p.BuiltAt), micros(p.ActivatedAt), p.ActivatedBy)
	}
	return w.one(ctx, refusal, `UPDATE serving_pointers SET generation = ?, snapshot = ?, release = ?, plan = ?, run = ?, built_at = ?, activated_at = ?,
		activated_by = ? WHERE workspace = ? AND generation = ? AND snapshot = ?`,
		p.Generation, p.Snapshot, p.Release, p.PlanDigest, p.Run, micros(p.BuiltAt), micros(p.ActivatedAt), p.ActivatedBy,
		w.workspace, previous.Generation, previous.Snapshot)
}

func (w writer) fenced(f refresh.Fence) error {
	return fail.New(fail.Fenced, "fenced", "fence %d is not the newest: an attempt with a higher one began in workspace %q or another", f, w.workspace)
}

func notRunning(r refresh.RunID) error {
	return fail.New(fail.Conflict, "run_ended", "run %s does not exist, has ended, or is not running", r)
}

func foreign(m refresh.Mark, w serving.Workspace) error {
	return fail.New(fail.Internal, "impossible_write", "%s belongs to workspace %q, not %q", m, m.Workspace, w)
}

// activeHolder is the holder of an active snapshot's protection.
func activeHolder(g serving.GenerationNumber) string { return strconv.FormatInt(int64(g), 10) }

// leaseHolder is the holder of a leased snapshot's protection.
func leaseHolder(owner string, g serving.GenerationNumber) string {
	return fmt.Sprintf("%s/%d", owner, g)
}
