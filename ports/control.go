// Package ports owns the conversations that use cases have with the world: one file a conversation, one to four methods an
// interface. Every port has a working in-memory twin and a contract suite that the twin and the real adapter both pass.
//
// Invariant: a port names domain types only. It does not know which adapter answers.
//
// Unless a method says otherwise: it may block, it honours its context, it may be called from several goroutines, and its
// errors carry a fail.Kind.
package ports

import (
	"context"

	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// Control is the durable state of all workspaces: releases, deployments, runs, attempts, candidates, pointers, protections,
// leases and the audit.
type Control interface {
	// Update loads the state that scope asks for, lets decide choose events over it, and writes all of them, with one audit row
	// each, in one transaction. decide is pure and may run twice. An error from decide is returned as it is and nothing is
	// written; no events is no write. After a crash midway either all of the events are there or none.
	// Errors: decide's; busy when the store stayed locked; unknown-outcome when the commit's result is not known; corrupt when
	// stored rows cannot be loaded; canceled.
	Update(ctx context.Context, scope refresh.Scope, decide func(refresh.State) ([]refresh.Event, error)) error
	// Load is the state that scope asks for, from one consistent read.
	Load(ctx context.Context, scope refresh.Scope) (refresh.State, error)
	// Workspaces lists the workspaces that exist, sorted.
	Workspaces(ctx context.Context) ([]serving.Workspace, error)
	// Files are the data files recorded for the workspace's active snapshot; empty when nothing is active.
	Files(ctx context.Context, workspace serving.Workspace) ([]refresh.File, error)
	// Runs are the workspace's newest runs, at most limit of them, the newest first.
	Runs(ctx context.Context, workspace serving.Workspace, limit int) ([]refresh.Run, error)
	// Checks are what was found by the newest attempt of the run that was judged, in the order of judging; empty when none was.
	Checks(ctx context.Context, run refresh.RunID) ([]refresh.CheckResult, error)
}

// LakeRecord is what the control plane knows of its lake.
type LakeRecord struct {
	// Lineage is the lake's random id; empty before the lake is first created.
	Lineage string
	// Ready tells that the lake's creation was completed.
	Ready bool
}

// Registry is the control plane's record of the one lake it belongs to.
type Registry interface {
	// Lake is the record; its zero value in a new control plane.
	Lake(ctx context.Context) (LakeRecord, error)
	// RecordLake stores the record. A lineage, once stored, never changes: another one is refused as a conflict. Twice is once.
	RecordLake(ctx context.Context, r LakeRecord) error
	// ReleaseLeases ends every lease whose owner is not this one, with the protections they carried: their processes are gone,
	// since only one process at a time holds the data directory. It gives how many ended.
	ReleaseLeases(ctx context.Context, owner string) (int, error)
}
