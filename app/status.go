package app

import (
	"context"
	"errors"
	"slices"
	"sync"

	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Status tells where workspaces stand.
type Status struct {
	control ports.Control
	gens    *Generations
}

// NewStatus wires the ports that telling needs.
func NewStatus(control ports.Control, gens *Generations) *Status { return &Status{control, gens} }

// WorkspaceStatus is where one workspace stands.
type WorkspaceStatus struct {
	Workspace  serving.Workspace
	Lineage    string
	Pointer    serving.Pointer
	Deployment refresh.Deployment
	Live       []refresh.Run
	// Problem says why the active snapshot is not served; empty when it is, or when nothing is active.
	Problem string
}

// Workspace is one workspace's status.
func (t *Status) Workspace(ctx context.Context, w serving.Workspace) (WorkspaceStatus, error) {
	s, err := t.control.Load(ctx, refresh.Scope{Workspace: w})
	if err != nil {
		return WorkspaceStatus{}, err
	}
	if !s.Exists {
		return WorkspaceStatus{}, fail.New(fail.Missing, "unknown_workspace", "there is no workspace %q", w).WithFix("deploy it first: leapview deploy DIR")
	}
	out := WorkspaceStatus{Workspace: w, Lineage: s.Lineage, Pointer: s.Pointer, Deployment: s.Deployment, Live: s.Live}
	if why := t.gens.Broken()[w]; why != nil {
		out.Problem = why.Error()
	}
	return out, nil
}

// MostRuns bounds how many runs one question lists.
const MostRuns = 1000

// Runs are the workspace's newest runs, the newest first.
func (t *Status) Runs(ctx context.Context, w serving.Workspace, limit int) ([]refresh.Run, error) {
	if limit < 1 || limit > MostRuns {
		return nil, fail.New(fail.Invalid, "bad_limit", "the limit is %d, and a list has 1 to %d runs", limit, MostRuns)
	}
	if _, err := t.Workspace(ctx, w); err != nil {
		return nil, err
	}
	return t.control.Runs(ctx, w, limit)
}

// All is the status of every workspace that sees lets through, sorted by name.
func (t *Status) All(ctx context.Context, sees func(serving.Workspace) bool) ([]WorkspaceStatus, error) {
	names, err := t.control.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(w serving.Workspace) bool { return !sees(w) })
	list := make([]WorkspaceStatus, len(names))
	for i, w := range names {
		if list[i], err = t.Workspace(ctx, w); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Readiness is whether the node may be sent requests. It starts as not ready.
type Readiness struct {
	gens *Generations
	// health asks the engine; it gives the sticky fatal error, if there is one.
	health Health

	mu    sync.Mutex
	state error
}

// Health gives the error that makes the whole process unfit to go on, or nil.
type Health interface{ Fatal() error }

// NewReadiness is not ready until Set(nil).
func NewReadiness(gens *Generations, health Health) *Readiness {
	return &Readiness{gens: gens, health: health, state: fail.New(fail.Unavailable, "starting", "the node is starting: it proves its stores")}
}

// Set says why the node is not ready, or with nil that it is.
func (r *Readiness) Set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = err
}

// Started tells whether the stores were proved and requests may be tried, although a workspace may be broken.
func (r *Readiness) Started() error {
	if err := r.health.Fatal(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Ready is nil when every workspace with an active snapshot is served.
func (r *Readiness) Ready() error {
	if err := r.Started(); err != nil {
		return err
	}
	var all []error
	for w, err := range r.gens.Broken() {
		all = append(all, fail.New(fail.Unavailable, "workspace_not_ready", "workspace %q cannot be served", w).Because(err))
	}
	return errors.Join(all...)
}
