package sqlite

import (
	"context"
	"database/sql"

	"leapview/domain/access"
	"leapview/domain/fail"
)

// Keys implements ports.Keys.
func (s *Store) Keys(ctx context.Context) ([]access.Key, error) {
	var keys []access.Key
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		keys, err = loadKeys(ctx, tx)
		return err
	})
	return keys, err
}

// UpdateKeys implements ports.Keys.
func (s *Store) UpdateKeys(ctx context.Context, by access.Caller, decide func(access.State) ([]access.Event, error)) error {
	if err := s.Fatal(); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.classify(ctx, "begin", err)
	}
	defer func() { _ = tx.Rollback() }()
	var state access.State
	if state.Keys, err = loadKeys(ctx, tx); err != nil {
		return s.classify(ctx, "load the keys", err)
	}
	if state.Workspaces, err = loadWorkspaces(ctx, tx); err != nil {
		return s.classify(ctx, "load the workspaces", err)
	}
	events, err := decide(state)
	if err != nil || len(events) == 0 {
		return err
	}
	for _, e := range events {
		if err := applyKey(ctx, tx, e); err != nil {
			return s.classify(ctx, "write "+e.EventName(), err)
		}
		row, err := access.Audit(by, e)
		if err != nil {
			return err
		}
		if err := tell(ctx, tx, row); err != nil {
			return s.classify(ctx, "write the audit of "+e.EventName(), err)
		}
	}
	return s.commitError(ctx, tx.Commit())
}

// applyKey writes one event.
func applyKey(ctx context.Context, tx *sql.Tx, event access.Event) error {
	w := writer{tx: tx}
	switch e := event.(type) {
	case access.KeyCreated:
		k := e.Key
		var expires sql.NullInt64
		if !k.ExpiresAt.IsZero() {
			expires = sql.NullInt64{Int64: micros(k.ExpiresAt), Valid: true}
		}
		return w.exec(ctx, `INSERT INTO keys (id, digest, role, workspace, label, created_at, created_by, expires_at) VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, ?)`,
			k.ID, k.Digest.String(), k.Grant.Role, k.Grant.Workspace, k.Label, micros(k.CreatedAt), k.CreatedBy, expires)
	case access.KeyRevoked:
		return w.one(ctx, keyMoved(e.ID), `UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, micros(e.At), e.ID)
	case access.KeyForgotten:
		return w.one(ctx, keyMoved(e.ID), `DELETE FROM keys WHERE id = ?`, e.ID)
	case access.Denied:
		return nil
	}
	return fail.New(fail.Internal, "unknown_event", "the control plane does not know the event %s (%T)", event.EventName(), event)
}

func keyMoved(id access.KeyID) error {
	return fail.New(fail.Conflict, "key_moved", "key %s does not exist or was revoked already", id)
}

func loadKeys(ctx context.Context, tx *sql.Tx) ([]access.Key, error) {
	var keys []access.Key
	err := each(ctx, tx, func(scan scanner) error {
		var k access.Key
		var digest string
		var created int64
		var expires, revoked sql.NullInt64
		err := scan(&k.ID, &digest, &k.Grant.Role, &k.Grant.Workspace, &k.Label, &created, &k.CreatedBy, &expires, &revoked)
		if err != nil {
			return err
		}
		if k.Digest, err = access.ParseDigest(digest); err != nil {
			return err
		}
		k.CreatedAt = moment(created)
		if expires.Valid {
			k.ExpiresAt = moment(expires.Int64)
		}
		if revoked.Valid {
			k.RevokedAt = moment(revoked.Int64)
		}
		if k, err = access.Load(k); err != nil {
			return err
		}
		keys = append(keys, k)
		return nil
	}, `SELECT id, digest, role, coalesce(workspace, ''), label, created_at, created_by, expires_at, revoked_at FROM keys ORDER BY seq`)
	return keys, err
}
