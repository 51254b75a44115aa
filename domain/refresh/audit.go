package refresh

import (
	"encoding/json"
	"fmt"

	"leapview/domain/audit"
	"leapview/domain/fail"
)

// system is the principal of what the node does by itself.
const system = "system"

// Audit is the row that is written together with e, an event that was decided over s. An event it does not know is refused, so
// that nothing can happen untold.
func Audit(s State, e Event) (audit.Row, error) {
	row := telling{audit.Row{Principal: system, Action: e.EventName(), Target: string(s.Workspace), Outcome: "ok", Request: s.RequestID}}
	if s.Run != nil {
		row.by(s.Run.RequestedBy)
	}
	detail := map[string]any{}
	switch e := e.(type) {
	case WorkspaceCreated:
		row.At = e.At
		row.by(e.By)
	case ReleaseAccepted:
		row.At = e.At
		row.by(e.By)
		row.below("releases", e.Release)
		detail["size"] = e.Size
	case Deployed:
		row.At = e.Deployment.At
		row.by(e.Deployment.By)
		row.below("deployments", e.Deployment.Number)
		detail["release"], detail["source_root"] = e.Deployment.Release, e.Deployment.SourceRoot
	case RunRequested:
		row.At = e.Run.RequestedAt
		row.by(e.Run.RequestedBy)
		row.below("runs", e.Run.ID)
	case AttemptBegan:
		row.At = e.At
		row.attempt(e.Candidate, detail)
		detail["owner"], detail["base"], detail["release"], detail["plan"] = e.Owner, e.Candidate.mark.Base, e.Candidate.mark.Release, e.Candidate.mark.Plan
	case SourcesAcquired:
		row.At = e.At
		row.attempt(e.Candidate, detail)
		var bytes int64
		for _, f := range e.Files {
			bytes += f.Size
		}
		var rows int64
		for _, n := range e.Rows {
			rows += n
		}
		detail["files"], detail["bytes"], detail["rows"] = len(e.Files), bytes, rows
	case TableRecorded:
		row.At = e.At
		row.below("tables", e.Table)
		detail["model"], detail["fence"] = e.Model, e.Fence
	case CandidateCommitted:
		row.At = e.At
		row.attempt(e.Candidate, detail)
		detail["snapshot"] = e.Candidate.snapshot
	case CandidateSynced:
		row.At = e.At
		row.attempt(e.Candidate, detail)
		detail["snapshot"], detail["files"] = e.Candidate.snapshot, len(e.Candidate.files)
	case CandidateValidated:
		row.At = e.At
		row.attempt(e.Candidate, detail)
		detail["snapshot"], detail["checks"] = e.Candidate.snapshot, len(e.Candidate.checks)
	case CandidateOrphaned:
		row.At = e.At
		row.attempt(e.Candidate, detail)
		detail["reason"] = e.Candidate.reason
		if len(e.Checks) > 0 {
			detail["checks"] = len(e.Checks)
		}
		if e.Candidate.snapshot != 0 {
			detail["snapshot"] = e.Candidate.snapshot
		}
	case Activated:
		row.At = e.Pointer.ActivatedAt
		row.by(e.Pointer.ActivatedBy)
		row.below("generations", e.Pointer.Generation)
		detail["snapshot"], detail["release"], detail["run"], detail["fence"] = e.Pointer.Snapshot, e.Pointer.Release, e.Pointer.Run, e.Candidate.mark.Fence
		detail["previous_generation"], detail["previous_snapshot"] = e.Previous.Generation, e.Previous.Snapshot
	case GenerationRetired:
		row.At = e.At
		row.below("generations", e.Generation)
		detail["owner"] = e.Owner
	case RunRequeued:
		row.At = e.At
		row.below("runs", e.Run)
		detail["reason"] = e.Reason
	case RunEnded:
		row.At = e.At
		row.below("runs", e.Run)
		if e.Status != Succeeded {
			row.Outcome = string(e.Status)
		}
		if e.Failure != (Failure{}) {
			detail["failure"] = e.Failure
		}
	default:
		return audit.Row{}, fail.New(fail.Internal, "unknown_event", "the audit does not know the event %s (%T)", e.EventName(), e)
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return audit.Row{}, fmt.Errorf("audit %s: %w", row.Action, err)
	}
	row.Detail = string(text)
	return row.Row, nil
}

// telling is an audit row that is being made.
type telling struct{ audit.Row }

// by names the principal, unless it is not known.
func (r *telling) by(principal string) {
	if principal != "" {
		r.Principal = principal
	}
}

// below appends what is meant within the workspace.
func (r *telling) below(collection string, id any) {
	r.Target = fmt.Sprintf("%s/%s/%v", r.Target, collection, id)
}

// attempt names the attempt as the target.
func (r *telling) attempt(c Candidate, detail map[string]any) {
	m := c.Mark()
	r.below("runs", m.Run)
	detail["attempt"], detail["fence"] = m.Attempt, m.Fence
}
