package http

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// statusDoc is where one workspace stands.
type statusDoc struct {
	Workspace serving.Workspace `json:"workspace"`
	Lineage   string            `json:"lineage"`
	// Active and Deployed are null when there is nothing.
	Active   *activeDoc     `json:"active"`
	Deployed *deploymentDoc `json:"deployed"`
	LiveRuns []runDoc       `json:"live_runs"`
	// Problem says why the active snapshot is not served; null when it is.
	Problem *string `json:"problem"`
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

type deploymentDoc struct {
	Number  int64          `json:"number"`
	Release project.Digest `json:"release"`
	// SourceRoot is a path of the node's machine, told to local callers only.
	SourceRoot string    `json:"source_root,omitempty"`
	At         time.Time `json:"at"`
	By         string    `json:"by"`
}

// listWorkspaces is GET /v1/workspaces.
func (r *routes) listWorkspaces(c echo.Context) error {
	all, err := r.status.All(c.Request().Context())
	if err != nil {
		return err
	}
	list := make([]statusDoc, len(all))
	for i, s := range all {
		list[i] = r.statusDoc(s)
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string][]statusDoc{"workspaces": list})
}

// workspaceStatus is GET /v1/workspaces/{workspace}/status.
func (r *routes) workspaceStatus(c echo.Context) error {
	w, err := serving.ParseWorkspace(c.Param("workspace"))
	if err != nil {
		return err
	}
	s, err := r.status.Workspace(c.Request().Context(), w)
	if err != nil {
		return err
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, r.statusDoc(s))
}

func (r *routes) statusDoc(s app.WorkspaceStatus) statusDoc {
	d := statusDoc{Workspace: s.Workspace, Lineage: s.Lineage, LiveRuns: make([]runDoc, len(s.Live))}
	if p := s.Pointer; p.Active() {
		d.Active = &activeDoc{p.Generation, p.Snapshot, p.Release, p.PlanDigest, p.Run, p.BuiltAt.UTC(), p.ActivatedAt.UTC(), p.ActivatedBy}
	}
	if s.Deployment.Number > 0 {
		x := r.deploymentDoc(s.Deployment)
		d.Deployed = &x
	}
	for i, run := range s.Live {
		d.LiveRuns[i] = r.runDoc(run)
	}
	if s.Problem != "" {
		d.Problem = &s.Problem
		if !r.local {
			hint := "the active snapshot cannot be served; on the node's machine, leapview status says why"
			d.Problem = &hint
		}
	}
	return d
}

func (r *routes) deploymentDoc(d refresh.Deployment) deploymentDoc {
	doc := deploymentDoc{Number: d.Number, Release: d.Release, At: d.At.UTC(), By: d.By}
	if r.local {
		doc.SourceRoot = d.SourceRoot
	}
	return doc
}

// requester names the caller for the audit. There are no principals yet: it says which door the request came through.
func (r *routes) requester() string {
	if r.local {
		return refresh.PrincipalLocal
	}
	return refresh.PrincipalHTTP
}
