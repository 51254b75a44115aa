package app

import (
	"context"
	"log/slog"

	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Deployer accepts project bundles.
type Deployer struct {
	control  ports.Control
	bundles  ports.Bundles
	releases *Releases
	clock    ports.Clock
	log      *slog.Logger
	// turn lets one deploy compile at a time: compiling takes a connection that no slot was counted for.
	turn chan struct{}
}

// NewDeployer wires the ports that deploying needs.
func NewDeployer(control ports.Control, bundles ports.Bundles, releases *Releases, clock ports.Clock, log *slog.Logger) *Deployer {
	return &Deployer{control, bundles, releases, clock, log, make(chan struct{}, 1)}
}

// Planned is what a deploy and the refresh after it would change.
type Planned struct {
	Workspace serving.Workspace
	Release   project.Digest
	// Active is the release that is served now; empty when none is.
	Active  project.Digest
	Changes []plan.Change
}

// Plan compiles the bundle like a deploy, compares it with what is served, and changes nothing.
func (d *Deployer) Plan(ctx context.Context, bundle []byte) (Planned, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return Planned{}, fail.New(fail.Canceled, "canceled_waiting", "the plan was given up while a deploy was at work").Because(ctx.Err())
	}
	rel, err := d.releases.compile(ctx, project.DigestOf(bundle), bundle)
	if err != nil {
		return Planned{}, err
	}
	w, err := serving.ParseWorkspace(rel.Project.Name)
	if err != nil {
		return Planned{}, err
	}
	s, err := d.control.Load(ctx, refresh.Scope{Workspace: w})
	if err != nil {
		return Planned{}, err
	}
	out := Planned{Workspace: w, Release: rel.ID}
	var old *plan.Release
	if s.Pointer.Active() {
		active, err := d.releases.load(ctx, s.Pointer.Release)
		if err != nil {
			return Planned{}, err
		}
		old, out.Active = &active, active.ID
	}
	out.Changes = plan.Compare(old, rel)
	return out, nil
}

// Deployed is what a deploy did.
type Deployed struct {
	Workspace  serving.Workspace
	Deployment refresh.Deployment
	Models     int
	Endpoints  int
}

// Deploy compiles the bundle, keeps it, and makes it the release that the workspace's refreshes compile against. sourceRoot is the
// absolute directory of the sources. A bundle with problems changes nothing. The active snapshot and its endpoints stay until a
// refresh activates another.
func (d *Deployer) Deploy(ctx context.Context, bundle []byte, sourceRoot string, by access.Caller) (Deployed, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return Deployed{}, fail.New(fail.Canceled, "canceled_waiting", "the deploy was given up while another one was at work").Because(ctx.Err())
	}
	id := project.DigestOf(bundle)
	rel, err := d.releases.compile(ctx, id, bundle)
	if err != nil {
		return Deployed{}, err
	}
	w, err := serving.ParseWorkspace(rel.Project.Name)
	if err != nil {
		return Deployed{}, err
	}
	if _, err := d.bundles.Put(ctx, bundle); err != nil {
		return Deployed{}, err
	}
	out := Deployed{Workspace: w, Models: len(rel.Models), Endpoints: len(rel.Endpoints)}
	now := d.clock.Now()
	err = d.control.Update(ctx, refresh.Scope{Workspace: w, RequestID: by.Request}, func(s refresh.State) ([]refresh.Event, error) {
		deployment, events, err := s.Deploy(id, int64(len(bundle)), sourceRoot, now, by.Principal)
		out.Deployment = deployment
		return events, err
	})
	if err != nil {
		return Deployed{}, err
	}
	d.log.InfoContext(ctx, "deployed", "workspace", w, "release", id.Short(), "deployment", out.Deployment.Number)
	return out, nil
}
