package mem

import (
	"context"
	"slices"

	"leapview/domain/access"
	"leapview/domain/fail"
)

// Keys implements ports.Keys.
func (c *Control) Keys(ctx context.Context) ([]access.Key, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(c.disk.now().keys), nil
}

// UpdateKeys implements ports.Keys.
func (c *Control) UpdateKeys(ctx context.Context, by access.Caller, decide func(access.State) ([]access.Event, error)) error {
	return c.write(ctx, func(s *controlState) (bool, error) {
		state := access.State{Keys: slices.Clone(s.keys)}
		for w := range s.fences {
			state.Workspaces = append(state.Workspaces, w)
		}
		slices.Sort(state.Workspaces)
		events, err := decide(state)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for _, e := range events {
			if err := s.applyKey(e); err != nil {
				return false, err
			}
			row, err := access.Audit(by, e)
			if err != nil {
				return false, err
			}
			if row.Principal == "" || row.Target == "" {
				return false, controlDefect("an audit row names a principal and a target")
			}
			s.tell(row)
		}
		return true, nil
	})
}

// applyKey writes one event, refusing whatever the real control plane's conditions and constraints refuse.
func (s *controlState) applyKey(event access.Event) error {
	switch e := event.(type) {
	case access.KeyCreated:
		k := e.Key
		k.CreatedAt = stored(k.CreatedAt)
		if !k.ExpiresAt.IsZero() {
			k.ExpiresAt = stored(k.ExpiresAt)
		}
		if _, err := access.Load(k); err != nil {
			return controlDefect("key " + string(k.ID) + " cannot be stored")
		}
		if w := k.Grant.Workspace; w != "" {
			if _, exists := s.fences[w]; !exists {
				return controlDefect("workspace " + string(w) + " does not exist")
			}
		}
		if slices.ContainsFunc(s.keys, func(o access.Key) bool { return o.ID == k.ID || o.Digest == k.Digest }) {
			return alreadyStored("key " + string(k.ID))
		}
		s.keys = append(s.keys, k)
		return nil
	case access.KeyRevoked:
		if i := s.key(e.ID); i >= 0 && s.keys[i].RevokedAt.IsZero() {
			s.keys[i].RevokedAt = stored(e.At)
			return nil
		}
		return keyMoved(e.ID)
	case access.KeyForgotten:
		if i := s.key(e.ID); i >= 0 {
			s.keys = slices.Delete(s.keys, i, i+1)
			return nil
		}
		return keyMoved(e.ID)
	case access.Denied:
		return nil
	}
	return fail.New(fail.Internal, "unknown_event", "the control plane does not know the event %s (%T)", event.EventName(), event)
}

// key is where the key is, or -1.
func (s *controlState) key(id access.KeyID) int {
	return slices.IndexFunc(s.keys, func(k access.Key) bool { return k.ID == id })
}

func keyMoved(id access.KeyID) error {
	return fail.New(fail.Conflict, "key_moved", "key %s does not exist or was revoked already", id)
}
