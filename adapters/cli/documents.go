package cli

import (
	"encoding/json"
	"time"

	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// The documents of the API as this package reads them from a running node. Without one, a command makes the same documents from
// what the use cases say, so that --json prints the same either way.

type mistakeDoc struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	Text    string `json:"text,omitempty"`
}

type problemDoc struct {
	Code     string       `json:"code"`
	Kind     string       `json:"kind"`
	Detail   string       `json:"detail"`
	Fix      string       `json:"fix"`
	Problems []mistakeDoc `json:"problems"`
	Errors   []wrongDoc   `json:"errors"`
}

// wrongDoc is one thing wrong with a call.
type wrongDoc struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
	Allowed string `json:"allowed,omitempty"`
}

type deploymentDoc struct {
	Number     int64          `json:"number"`
	Release    project.Digest `json:"release"`
	SourceRoot string         `json:"source_root,omitempty"`
	At         time.Time      `json:"at"`
	By         string         `json:"by"`
}

type deployedDoc struct {
	Workspace  serving.Workspace `json:"workspace"`
	Deployment deploymentDoc     `json:"deployment"`
	Models     int               `json:"models"`
	Endpoints  int               `json:"endpoints"`
}

type runDoc struct {
	ID          refresh.RunID             `json:"id"`
	Workspace   serving.Workspace         `json:"workspace"`
	Status      refresh.Status            `json:"status"`
	Attempts    int                       `json:"attempts"`
	Deployment  *int64                    `json:"deployment"`
	RequestedAt time.Time                 `json:"requested_at"`
	RequestedBy string                    `json:"requested_by"`
	StartedAt   *time.Time                `json:"started_at"`
	EndedAt     *time.Time                `json:"ended_at"`
	Generation  *serving.GenerationNumber `json:"generation"`
	Snapshot    *serving.Snapshot         `json:"snapshot"`
	Failure     *refresh.Failure          `json:"failure"`
}

// checkedRunDoc is a run with what its checks found.
type checkedRunDoc struct {
	runDoc
	Checks []checkDoc `json:"checks"`
}

type runStepsDoc struct {
	checkedRunDoc
	Steps []stepDoc `json:"steps"`
}

type checkDoc struct {
	Model    string            `json:"model"`
	Kind     project.CheckKind `json:"kind"`
	Check    string            `json:"check"`
	Name     string            `json:"name,omitempty"`
	File     string            `json:"file"`
	Line     int               `json:"line"`
	Severity project.Severity  `json:"severity"`
	Outcome  string            `json:"outcome"`
	Failures int64             `json:"failures"`
	Judged   int64             `json:"judged"`
	Detail   string            `json:"detail"`
	Sample   json.RawMessage   `json:"sample"`
}

func checksOf(results []refresh.CheckResult) []checkDoc {
	docs := make([]checkDoc, len(results))
	for i, r := range results {
		docs[i] = checkDoc{r.Model, r.Kind(), r.Check, r.Name, r.At.File, r.At.Line, r.Severity, r.Outcome(), r.Failures, r.Judged, r.Detail, nil}
		if r.Sample != "" {
			docs[i].Sample = json.RawMessage(r.Sample)
		}
	}
	return docs
}

type stepDoc struct {
	At      time.Time   `json:"at"`
	Phase   plan.Phase  `json:"phase"`
	Subject string      `json:"subject"`
	Done    bool        `json:"done"`
	Rows    *int64      `json:"rows"`
	Action  plan.Action `json:"action"`
	Reason  string      `json:"reason"`
	Warning string      `json:"warning"`
}

type activeDoc struct {
	Generation  serving.GenerationNumber `json:"generation"`
	Snapshot    serving.Snapshot         `json:"snapshot"`
	Release     project.Digest           `json:"release"`
	Plan        project.Digest           `json:"plan"`
	Run         string                   `json:"run"`
	BuiltAt     time.Time                `json:"built_at"`
	ActivatedAt time.Time                `json:"activated_at"`
	ActivatedBy string                   `json:"activated_by"`
}

type statusDoc struct {
	Workspace serving.Workspace `json:"workspace"`
	Lineage   string            `json:"lineage"`
	Active    *activeDoc        `json:"active"`
	Deployed  *deploymentDoc    `json:"deployed"`
	LiveRuns  []runDoc          `json:"live_runs"`
	Problem   *string           `json:"problem"`
}

type workspacesDoc struct {
	Workspaces []statusDoc `json:"workspaces"`
}

type originDoc struct {
	Workspace  serving.Workspace        `json:"workspace"`
	Lineage    string                   `json:"lineage"`
	Generation serving.GenerationNumber `json:"generation"`
	Snapshot   serving.Snapshot         `json:"snapshot"`
	Release    project.Digest           `json:"release"`
	BuiltAt    time.Time                `json:"built_at"`
}

type resultDoc struct {
	Rows             int64    `json:"rows"`
	Truncated        bool     `json:"truncated"`
	TruncationReason string   `json:"truncation_reason"`
	Warnings         []string `json:"warnings"`
}

// keyRequestDoc asks for a key.
type keyRequestDoc struct {
	Role      string `json:"role"`
	Workspace string `json:"workspace,omitempty"`
	Label     string `json:"label,omitempty"`
	Expires   string `json:"expires,omitempty"`
}

type keyDoc struct {
	ID        access.KeyID       `json:"id"`
	Principal string             `json:"principal"`
	Role      access.Role        `json:"role"`
	Workspace *serving.Workspace `json:"workspace"`
	Label     string             `json:"label"`
	CreatedAt time.Time          `json:"created_at"`
	CreatedBy string             `json:"created_by"`
	ExpiresAt *time.Time         `json:"expires_at"`
	RevokedAt *time.Time         `json:"revoked_at"`
	UsedAt    *time.Time         `json:"used_at"`
}

type createdKeyDoc struct {
	Key string `json:"key"`
	keyDoc
}

type keysDoc struct {
	Keys []keyDoc `json:"keys"`
}

func keyOf(k app.KeyUse) keyDoc {
	return keyDoc{k.ID, k.Principal().Name, k.Grant.Role, unlessZero(k.Grant.Workspace), k.Label, k.CreatedAt.UTC(), k.CreatedBy,
		unlessZero(k.ExpiresAt.UTC()), unlessZero(k.RevokedAt.UTC()), unlessZero(k.UsedAt)}
}

func deploymentOf(d refresh.Deployment) deploymentDoc {
	return deploymentDoc{d.Number, d.Release, d.SourceRoot, d.At.UTC(), d.By}
}

func runOf(r refresh.Run) runDoc {
	return runDoc{ID: r.ID, Workspace: r.Workspace, Status: r.Status, Attempts: r.Attempts, Deployment: unlessZero(r.Deployment),
		RequestedAt: r.RequestedAt.UTC(), RequestedBy: r.RequestedBy, StartedAt: unlessZero(r.StartedAt.UTC()),
		EndedAt: unlessZero(r.EndedAt.UTC()), Generation: unlessZero(r.Generation), Snapshot: unlessZero(r.Snapshot),
		Failure: unlessZero(r.Failure)}
}

func statusOf(s app.WorkspaceStatus) statusDoc {
	d := statusDoc{Workspace: s.Workspace, Lineage: s.Lineage, LiveRuns: make([]runDoc, len(s.Live)), Problem: unlessZero(s.Problem)}
	if p := s.Pointer; p.Active() {
		d.Active = &activeDoc{p.Generation, p.Snapshot, p.Release, p.PlanDigest, p.Run, p.BuiltAt.UTC(), p.ActivatedAt.UTC(), p.ActivatedBy}
	}
	if s.Deployment.Number > 0 {
		x := deploymentOf(s.Deployment)
		d.Deployed = &x
	}
	for i, r := range s.Live {
		d.LiveRuns[i] = runOf(r)
	}
	return d
}

// unlessZero is nil for a zero value, which stands for what there is not yet.
func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
