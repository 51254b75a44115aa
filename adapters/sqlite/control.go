package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Update implements ports.Control.
func (s *Store) Update(ctx context.Context, scope refresh.Scope, decide func(refresh.State) ([]refresh.Event, error)) error {
	if err := s.Fatal(); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.classify(ctx, "begin", err)
	}
	// After the commit this does nothing; before it, it is how every error below leaves nothing behind.
	defer func() { _ = tx.Rollback() }()
	state, err := load(ctx, tx, scope)
	if err != nil {
		return s.classify(ctx, "load", err)
	}
	events, err := decide(state)
	if err != nil || len(events) == 0 {
		return err
	}
	for _, e := range events {
		if err := apply(ctx, tx, state, e); err != nil {
			return s.classify(ctx, "write "+e.EventName(), err)
		}
		row, err := refresh.Audit(state, e)
		if err != nil {
			return err
		}
		if err := tell(ctx, tx, row); err != nil {
			return s.classify(ctx, "write the audit of "+e.EventName(), err)
		}
	}
	return s.commitError(ctx, tx.Commit())
}

// Load implements ports.Control.
func (s *Store) Load(ctx context.Context, scope refresh.Scope) (refresh.State, error) {
	var state refresh.State
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		state, err = load(ctx, tx, scope)
		return err
	})
	return state, err
}

// Workspaces implements ports.Control.
func (s *Store) Workspaces(ctx context.Context) ([]serving.Workspace, error) {
	var names []serving.Workspace
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		names, err = loadWorkspaces(ctx, tx)
		return err
	})
	return names, err
}

// Files implements ports.Control.
func (s *Store) Files(ctx context.Context, workspace serving.Workspace) ([]refresh.File, error) {
	var files []refresh.File
	err := s.view(ctx, func(tx *sql.Tx) error {
		var fence refresh.Fence
		err := tx.QueryRowContext(ctx, `SELECT a.fence FROM serving_pointers p JOIN attempts a
			ON a.workspace = p.workspace AND a.snapshot = p.snapshot AND a.stage = 'activated' WHERE p.workspace = ?`, workspace).Scan(&fence)
		if errors.Is(err, sql.ErrNoRows) {
			var snapshot serving.Snapshot
			switch err := tx.QueryRowContext(ctx, `SELECT snapshot FROM serving_pointers WHERE workspace = ?`, workspace).Scan(&snapshot); {
			case errors.Is(err, sql.ErrNoRows):
				return nil
			case err != nil:
				return err
			}
			return fail.New(fail.Corrupt, "pointer_without_candidate", "workspace %q serves snapshot %d, which no stored candidate became", workspace, snapshot).
				WithFix("restore the data directory from a backup")
		}
		if err != nil {
			return err
		}
		files, err = loadFiles(ctx, tx, fence)
		return err
	})
	return files, err
}

// Runs implements ports.Control.
func (s *Store) Runs(ctx context.Context, workspace serving.Workspace, limit int) ([]refresh.Run, error) {
	var runs []refresh.Run
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		runs, err = loadRuns(ctx, tx, `workspace = ? ORDER BY seq DESC LIMIT ?`, workspace, limit)
		return err
	})
	return runs, err
}

// Checks implements ports.Control.
func (s *Store) Checks(ctx context.Context, run refresh.RunID) ([]refresh.CheckResult, error) {
	var checks []refresh.CheckResult
	err := s.view(ctx, func(tx *sql.Tx) error {
		var fence refresh.Fence
		err := tx.QueryRowContext(ctx, `SELECT a.fence FROM attempts a WHERE a.run = ? AND EXISTS (SELECT 1 FROM candidate_checks c WHERE c.fence = a.fence)
			ORDER BY a.attempt DESC LIMIT 1`, run).Scan(&fence)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		checks, err = loadChecks(ctx, tx, fence)
		return err
	})
	return checks, err
}

// Lake implements ports.Registry.
func (s *Store) Lake(ctx context.Context) (ports.LakeRecord, error) {
	var r ports.LakeRecord
	err := s.view(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT lineage, ready FROM lake`).Scan(&r.Lineage, &r.Ready)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return r, err
}

// RecordLake implements ports.Registry.
func (s *Store) RecordLake(ctx context.Context, r ports.LakeRecord) error {
	return s.change(ctx, "record the lake", func(tx *sql.Tx) error {
		n, err := affected(tx.ExecContext(ctx, `INSERT INTO lake (one, lineage, ready) VALUES (1, ?, ?)
			ON CONFLICT (one) DO UPDATE SET ready = excluded.ready WHERE lineage = excluded.lineage`, r.Lineage, r.Ready))
		if err == nil && n == 0 {
			err = fail.New(fail.Conflict, "lineage_changed", "the control plane belongs to a lake of another lineage than %q", r.Lineage).
				WithFix("put the lake and the control plane of one backup together")
		}
		return err
	})
}

// ReleaseLeases implements ports.Registry.
func (s *Store) ReleaseLeases(ctx context.Context, owner string) (int, error) {
	var ended int
	err := s.change(ctx, "release the leases of earlier processes", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM protections WHERE kind = 'leased' AND (workspace, holder) IN
			(SELECT workspace, owner || '/' || generation FROM leases WHERE owner <> ?)`, owner); err != nil {
			return err
		}
		var err error
		ended, err = affected(tx.ExecContext(ctx, `DELETE FROM leases WHERE owner <> ?`, owner))
		return err
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}

// view runs read in one read transaction.
func (s *Store) view(ctx context.Context, read func(*sql.Tx) error) error {
	if err := s.Fatal(); err != nil {
		return err
	}
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return s.classify(ctx, "begin reading", err)
	}
	defer func() { _ = tx.Rollback() }()
	return s.classify(ctx, "read", read(tx))
}

// change runs write in one write transaction.
func (s *Store) change(ctx context.Context, doing string, write func(*sql.Tx) error) error {
	if err := s.Fatal(); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.classify(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := write(tx); err != nil {
		return s.classify(ctx, doing, err)
	}
	return s.commitError(ctx, tx.Commit())
}

// affected counts the rows that a statement changed.
func affected(r sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
