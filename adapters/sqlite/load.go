package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// micros is how a time is stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

// moment is a stored time.
func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }

// scanner reads the current row.
type scanner func(dest ...any) error

// each calls row for every row of the query.
func each(ctx context.Context, tx *sql.Tx, row func(scanner) error, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// loadWorkspaces lists the workspaces, sorted.
func loadWorkspaces(ctx context.Context, tx *sql.Tx) ([]serving.Workspace, error) {
	var names []serving.Workspace
	err := each(ctx, tx, func(scan scanner) error {
		var w serving.Workspace
		if err := scan(&w); err != nil {
			return err
		}
		names = append(names, w)
		return nil
	}, `SELECT name FROM workspaces ORDER BY name`)
	return names, err
}

// load reads the state that the scope asks for, within one transaction.
func load(ctx context.Context, tx *sql.Tx, scope refresh.Scope) (refresh.State, error) {
	s := refresh.State{Workspace: scope.Workspace, RequestID: scope.RequestID}
	err := tx.QueryRowContext(ctx, `SELECT coalesce((SELECT lineage FROM lake), ''), coalesce((SELECT max(fence) FROM workspaces), 0)`).
		Scan(&s.Lineage, &s.HighestFence)
	if err != nil {
		return s, err
	}
	err = tx.QueryRowContext(ctx, `SELECT coalesce(fence, 0) FROM workspaces WHERE name = ?`, scope.Workspace).Scan(&s.Fence)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Exists = true
	if s.Pointer, err = loadPointer(ctx, tx, scope.Workspace); err != nil {
		return s, err
	}
	if s.Deployment, err = loadDeployment(ctx, tx, scope.Workspace); err != nil {
		return s, err
	}
	err = each(ctx, tx, func(scan scanner) error {
		var d project.Digest
		if err := scan(&d); err != nil {
			return err
		}
		if s.Releases == nil {
			s.Releases = map[project.Digest]bool{}
		}
		s.Releases[d] = true
		return nil
	}, `SELECT digest FROM releases WHERE workspace = ?`, scope.Workspace)
	if err != nil {
		return s, err
	}
	if s.Tables, err = loadNames(ctx, tx, `SELECT name, model FROM physical_tables WHERE workspace = ?`, scope.Workspace); err != nil {
		return s, err
	}
	if s.Live, err = loadRuns(ctx, tx, `workspace = ? AND status IN ('queued', 'running') ORDER BY seq`, scope.Workspace); err != nil {
		return s, err
	}
	if scope.Run != "" {
		if s.Run, err = loadRun(ctx, tx, `workspace = ? AND id = ?`, scope.Workspace, scope.Run); err != nil {
			return s, err
		}
	}
	if s.Run != nil {
		if s.ActiveRows, err = loadActiveRows(ctx, tx, scope.Workspace); err != nil {
			return s, err
		}
		if s.Candidate, err = loadCandidate(ctx, tx, *s.Run); err != nil {
			return s, err
		}
	}
	if scope.Ledger {
		if s.ActiveFiles, err = loadActiveFiles(ctx, tx, scope.Workspace); err != nil {
			return s, err
		}
	}
	if scope.IdempotencyKey != "" {
		if s.Keyed, err = loadRun(ctx, tx, `workspace = ? AND idempotency_key = ?`, scope.Workspace, scope.IdempotencyKey); err != nil {
			return s, err
		}
	}
	return s, nil
}

func loadPointer(ctx context.Context, tx *sql.Tx, w serving.Workspace) (serving.Pointer, error) {
	var p serving.Pointer
	var built, activated int64
	err := tx.QueryRowContext(ctx, `SELECT generation, snapshot, release, plan, run, built_at, activated_at, activated_by FROM serving_pointers
		WHERE workspace = ?`, w).Scan(&p.Generation, &p.Snapshot, &p.Release, &p.PlanDigest, &p.Run, &built, &activated, &p.ActivatedBy)
	if errors.Is(err, sql.ErrNoRows) {
		return serving.Pointer{}, nil
	}
	if err != nil {
		return serving.Pointer{}, err
	}
	if p.Generation < 1 || p.Snapshot < 1 {
		return serving.Pointer{}, fail.New(fail.Corrupt, "impossible_pointer", "workspace %q is stored as serving generation %d at snapshot %d, which cannot be", w, p.Generation, p.Snapshot)
	}
	p.BuiltAt, p.ActivatedAt = moment(built), moment(activated)
	p.Tables, err = loadNames(ctx, tx, `SELECT model, physical FROM serving_pointer_tables WHERE workspace = ?`, w)
	return p, err
}

func loadDeployment(ctx context.Context, tx *sql.Tx, w serving.Workspace) (refresh.Deployment, error) {
	var d refresh.Deployment
	var at int64
	err := tx.QueryRowContext(ctx, `SELECT number, release, source_root, deployed_at, deployed_by FROM deployments WHERE workspace = ?
		ORDER BY number DESC LIMIT 1`, w).Scan(&d.Number, &d.Release, &d.SourceRoot, &at, &d.By)
	if errors.Is(err, sql.ErrNoRows) {
		return refresh.Deployment{}, nil
	}
	d.At = moment(at)
	return d, err
}

// loadNames reads a query of two text columns into a map; nil when there is no row.
func loadNames(ctx context.Context, tx *sql.Tx, query string, args ...any) (map[string]string, error) {
	var names map[string]string
	err := each(ctx, tx, func(scan scanner) error {
		var key, value string
		if err := scan(&key, &value); err != nil {
			return err
		}
		if names == nil {
			names = map[string]string{}
		}
		names[key] = value
		return nil
	}, query, args...)
	return names, err
}

// loadActiveRows reads how many rows of each source the active snapshot was built from; nil when nothing says so.
func loadActiveRows(ctx context.Context, tx *sql.Tx, w serving.Workspace) (map[string]int64, error) {
	var rows map[string]int64
	err := each(ctx, tx, func(scan scanner) error {
		var source string
		var n int64
		if err := scan(&source, &n); err != nil {
			return err
		}
		if rows == nil {
			rows = map[string]int64{}
		}
		rows[source] = n
		return nil
	}, `SELECT r.source, r.rows FROM serving_pointers p JOIN attempts a ON a.workspace = p.workspace AND a.snapshot = p.snapshot AND a.stage = 'activated'
		JOIN source_rows r ON r.fence = a.fence WHERE p.workspace = ?`, w)
	return rows, err
}

// loadActiveFiles reads which files the active snapshot was built from, by source and name.
func loadActiveFiles(ctx context.Context, tx *sql.Tx, w serving.Workspace) ([]refresh.SourceFile, error) {
	var files []refresh.SourceFile
	err := each(ctx, tx, func(scan scanner) error {
		var f refresh.SourceFile
		if err := scan(&f.Source, &f.Name, &f.Size, &f.SHA256); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	}, `SELECT f.source, f.name, f.size, f.sha256 FROM serving_pointers p JOIN attempts a ON a.workspace = p.workspace AND a.snapshot = p.snapshot AND a.stage = 'activated'
		JOIN source_files f ON f.fence = a.fence WHERE p.workspace = ? ORDER BY f.source, f.name`, w)
	return files, err
}

// loadRuns reads the runs that meet the condition.
func loadRuns(ctx context.Context, tx *sql.Tx, condition string, args ...any) ([]refresh.Run, error) {
	var runs []refresh.Run
	err := each(ctx, tx, func(scan scanner) error {
		var r refresh.Run
		var requested int64
		var started, ended sql.NullInt64
		err := scan(&r.ID, &r.Workspace, &r.IdempotencyKey, &r.Status, &r.Attempts, &r.Stops, &r.Deployment, &requested, &r.RequestedBy, &r.Owner,
			&r.ClaimRevision, &started, &ended, &r.Failure.Kind, &r.Failure.Code, &r.Failure.Message, &r.Generation, &r.Snapshot)
		if err != nil {
			return err
		}
		switch r.Status {
		case refresh.Queued, refresh.Running, refresh.Succeeded, refresh.Failed, refresh.Canceled:
		default:
			return fail.New(fail.Corrupt, "impossible_run", "run %s is stored as %q, which is no status", r.ID, r.Status)
		}
		r.RequestedAt = moment(requested)
		if started.Valid {
			r.StartedAt = moment(started.Int64)
		}
		if ended.Valid {
			r.EndedAt = moment(ended.Int64)
		}
		runs = append(runs, r)
		return nil
	}, `SELECT id, workspace, coalesce(idempotency_key, ''), status, attempts, stops, coalesce(deployment, 0), requested_at, requested_by, coalesce(owner, ''),
		claim_revision, started_at, ended_at, failure_kind, failure_code, failure_message, coalesce(generation, 0), coalesce(snapshot, 0)
		FROM runs WHERE `+condition, args...)
	return runs, err
}

// loadRun reads the one run that meets the condition; nil when there is none.
func loadRun(ctx context.Context, tx *sql.Tx, condition string, args ...any) (*refresh.Run, error) {
	runs, err := loadRuns(ctx, tx, condition, args...)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

// loadCandidate reads the newest attempt of the run; nil when there is none, or when it was activated.
func loadCandidate(ctx context.Context, tx *sql.Tx, r refresh.Run) (refresh.Candidate, error) {
	row := refresh.Row{Mark: refresh.Mark{Kind: refresh.MarkRefresh, Workspace: r.Workspace, Run: r.ID}}
	m := &row.Mark
	err := tx.QueryRowContext(ctx, `SELECT fence, attempt, lineage, base, release, plan, stage, coalesce(snapshot, 0), coalesce(reason, '') FROM attempts
		WHERE run = ? ORDER BY attempt DESC LIMIT 1`, r.ID).
		Scan(&m.Fence, &m.Attempt, &m.Lineage, &m.Base, &m.Release, &m.Plan, &row.Stage, &row.Snapshot, &row.Reason)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if row.Stage == refresh.StageActivated {
		return nil, nil
	}
	if row.Files, err = loadFiles(ctx, tx, m.Fence); err != nil {
		return nil, err
	}
	if row.Checks, err = loadChecks(ctx, tx, m.Fence); err != nil {
		return nil, err
	}
	return refresh.Load(row)
}

// loadChecks reads what was found of an attempt.
func loadChecks(ctx context.Context, tx *sql.Tx, fence refresh.Fence) ([]refresh.CheckResult, error) {
	var checks []refresh.CheckResult
	err := each(ctx, tx, func(scan scanner) error {
		var c refresh.CheckResult
		if err := scan(&c.Model, &c.Check, &c.Name, &c.At.File, &c.At.Line, &c.At.Column, &c.Severity, &c.OK, &c.Failures, &c.Judged, &c.Detail, &c.Sample); err != nil {
			return err
		}
		checks = append(checks, c)
		return nil
	}, `SELECT model, rule, name, at_file, at_line, at_column, severity, ok, failures, judged, detail, sample FROM candidate_checks WHERE fence = ? ORDER BY position`, fence)
	return checks, err
}

// loadFiles reads the files of a candidate, sorted by path.
func loadFiles(ctx context.Context, tx *sql.Tx, fence refresh.Fence) ([]refresh.File, error) {
	var files []refresh.File
	err := each(ctx, tx, func(scan scanner) error {
		var f refresh.File
		if err := scan(&f.Path, &f.Size, &f.SHA256); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	}, `SELECT path, size, sha256 FROM candidate_files WHERE fence = ? ORDER BY path`, fence)
	return files, err
}
