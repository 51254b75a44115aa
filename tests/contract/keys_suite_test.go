package contract

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/serving"
)

// keysSuite is the contract of ports.Keys.
func keysSuite(t *testing.T, open func(t *testing.T) controlPlane) {
	runControlCases(t, open, []controlCase{
		{"a key's whole life", keysWholeLife},
		{"a decision sees keys and workspaces", keysState},
		{"a denial is told and changes nothing", keysDenial},
		{"an event that does not fit is refused", keysMisfits},
		{"decide's error writes nothing", keysDecideFails},
		{"a failing commit writes nothing", keysCommitFails},
		{"an ended context", keysCanceled},
		{"concurrent changes all land", keysConcurrent},
		{"a closed handle is refused", keysClosed},
	})
}

// key is the n-th key, as it comes back from storage.
func key(n int, w serving.Workspace) access.Key {
	id := access.KeyID(fmt.Sprintf("key%05d", n))
	return access.Key{ID: id, Digest: access.NewSecret(id, [32]byte{byte(n)}).Digest(), Grant: access.Grant{Role: access.Analyst, Workspace: w},
		Label: "für Ann", CreatedAt: controlStored, CreatedBy: "local"}
}

// told writes these events.
func told(t *testing.T, c controlPlane, events ...access.Event) {
	t.Helper()
	if err := tell(c, events...); err != nil {
		t.Fatal(err)
	}
}

func tell(c controlPlane, events ...access.Event) error {
	return c.UpdateKeys(context.Background(), access.Caller{Principal: "ann", Request: "req1"}, func(access.State) ([]access.Event, error) { return events, nil })
}

func keysOf(t *testing.T, c controlPlane) []access.Key {
	t.Helper()
	keys, err := c.Keys.Keys(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func keysWholeLife(t *testing.T, c controlPlane) {
	controlFlights(t, c).ready()
	before := len(c.audit(t))
	controlSame(t, "keys of a new control plane", len(keysOf(t, c)), 0)
	a, b := key(1, ""), key(2, "flights")
	b.ExpiresAt = controlStored.Add(time.Hour)
	given := b
	// Neither the offset nor the nanoseconds survive.
	given.CreatedAt, given.ExpiresAt = controlNow, controlNow.Add(time.Hour)
	told(t, c, access.KeyCreated{Key: a}, access.KeyCreated{Key: given})
	controlSame(t, "keys", keysOf(t, c), []access.Key{a, b})
	told(t, c, access.KeyRevoked{ID: a.ID, At: controlNow})
	a.RevokedAt = controlStored
	c = c.reopen(t)
	controlSame(t, "keys after a revocation", keysOf(t, c), []access.Key{a, b})
	told(t, c, access.KeyForgotten{ID: a.ID, At: controlNow})
	controlSame(t, "keys after one was forgotten", keysOf(t, c), []access.Key{b})
	controlSame(t, "audit", c.audit(t)[before:], []string{"ann key_created /keys/key00001 ok req1", "ann key_created /keys/key00002 ok req1",
		"ann key_revoked /keys/key00001 ok req1", "ann key_forgotten /keys/key00001 ok req1"})
}

func keysState(t *testing.T, c controlPlane) {
	controlFlights(t, c).ready()
	told(t, c, access.KeyCreated{Key: key(1, "flights")})
	err := c.UpdateKeys(context.Background(), access.Local.Caller(""), func(s access.State) ([]access.Event, error) {
		controlSame(t, "state", s, access.State{Keys: []access.Key{key(1, "flights")}, Workspaces: []serving.Workspace{"flights"}})
		s.Keys[0].ID = "stolen"
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	controlSame(t, "keys", keysOf(t, c), []access.Key{key(1, "flights")})
}

func keysDenial(t *testing.T, c controlPlane) {
	told(t, c, access.Denied{Action: access.Refresh, Target: "flights", Code: "role_too_low", At: controlNow})
	controlSame(t, "keys", len(keysOf(t, c)), 0)
	controlSame(t, "audit", c.audit(t), []string{"ann refresh flights denied req1"})
}

// strangeKeyEvent is an event that no control plane knows.
type strangeKeyEvent struct{}

func (strangeKeyEvent) EventName() string { return "strange" }

func keysMisfits(t *testing.T, c controlPlane) {
	controlFlights(t, c).ready()
	told(t, c, access.KeyCreated{Key: key(1, "")})
	keys, rows := keysOf(t, c), c.audit(t)
	sameID, sameDigest, noRole := key(2, ""), key(2, ""), key(2, "")
	sameID.ID, sameDigest.Digest, noRole.Grant.Role = key(1, "").ID, key(1, "").Digest, "god"
	for name, tc := range map[string]struct {
		event access.Event
		kind  fail.Kind
		code  string
	}{
		"an id twice":       {access.KeyCreated{Key: sameID}, fail.Conflict, "already_stored"},
		"a digest twice":    {access.KeyCreated{Key: sameDigest}, fail.Conflict, "already_stored"},
		"no role":           {access.KeyCreated{Key: noRole}, fail.Internal, "impossible_write"},
		"no workspace":      {access.KeyCreated{Key: key(2, "nowhere")}, fail.Internal, "impossible_write"},
		"revoke no key":     {access.KeyRevoked{ID: "key00009", At: controlNow}, fail.Conflict, "key_moved"},
		"forget no key":     {access.KeyForgotten{ID: "key00009", At: controlNow}, fail.Conflict, "key_moved"},
		"deny without what": {access.Denied{Action: access.Refresh, At: controlNow}, fail.Internal, "impossible_write"},
		"a strange event":   {strangeKeyEvent{}, fail.Internal, "unknown_event"},
	} {
		// What goes with the misfit is not written either.
		err := tell(c, access.KeyCreated{Key: key(3, "")}, tc.event)
		if fail.KindOf(err) != tc.kind || fail.CodeOf(err) != tc.code {
			t.Errorf("%s: %v (%s, %s)", name, err, fail.KindOf(err), fail.CodeOf(err))
		}
	}
	told(t, c, access.KeyRevoked{ID: key(1, "").ID, At: controlNow})
	controlRefused(t, tell(c, access.KeyRevoked{ID: key(1, "").ID, At: controlNow}), fail.Conflict, "key_moved")
	controlSame(t, "number of keys", len(keysOf(t, c)), len(keys))
	controlSame(t, "number of audit rows", len(c.audit(t)), len(rows)+1)
}

func keysDecideFails(t *testing.T, c controlPlane) {
	mine := fail.New(fail.Limit, "mine", "no")
	err := c.UpdateKeys(context.Background(), access.Local.Caller(""), func(access.State) ([]access.Event, error) {
		return []access.Event{access.KeyCreated{Key: key(1, "")}}, mine
	})
	if err != mine {
		t.Fatalf("decide's error came back as %v", err)
	}
	controlSame(t, "keys", len(keysOf(t, c)), 0)
	controlSame(t, "audit rows", len(c.audit(t)), 0)
}

func keysCommitFails(t *testing.T, c controlPlane) {
	told(t, c, access.KeyCreated{Key: key(1, "")})
	heal := c.failCommits(t)
	if err := tell(c, access.KeyRevoked{ID: key(1, "").ID, At: controlNow}); err == nil {
		t.Fatal("the commit did not fail")
	}
	heal()
	controlSame(t, "keys", keysOf(t, c), []access.Key{key(1, "")})
	controlSame(t, "audit rows", len(c.audit(t)), 1)
	told(t, c, access.KeyRevoked{ID: key(1, "").ID, At: controlNow})
}

func keysCanceled(t *testing.T, c controlPlane) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.Keys.Keys(ended)
	controlRefused(t, err, fail.Canceled, "canceled")
	create := func(access.State) ([]access.Event, error) {
		return []access.Event{access.KeyCreated{Key: key(1, "")}}, nil
	}
	controlRefused(t, c.UpdateKeys(ended, access.Local.Caller(""), create), fail.Canceled, "canceled")
	during, cancel := context.WithCancel(context.Background())
	err = c.UpdateKeys(during, access.Local.Caller(""), func(s access.State) ([]access.Event, error) {
		cancel()
		return create(s)
	})
	controlRefused(t, err, fail.Canceled, "canceled")
	controlSame(t, "keys", len(keysOf(t, c)), 0)
}

func keysConcurrent(t *testing.T, c controlPlane) {
	const writers = 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			err := c.UpdateKeys(context.Background(), access.Local.Caller(""), func(s access.State) ([]access.Event, error) {
				return []access.Event{access.KeyCreated{Key: key(i, "")}, access.Denied{Action: access.CreateKey, Target: fmt.Sprint(len(s.Keys)), At: controlNow}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	controlSame(t, "keys", len(keysOf(t, c)), writers)
	// Each saw the one before it.
	seen := map[string]bool{}
	for _, row := range c.audit(t) {
		seen[row] = true
	}
	for i := range writers {
		if !seen[fmt.Sprintf("local create_key %d denied", i)] {
			t.Errorf("no decision saw %d keys", i)
		}
	}
}

func keysClosed(t *testing.T, c controlPlane) {
	c.reopen(t)
	_, err := c.Keys.Keys(context.Background())
	controlRefused(t, err, fail.Unavailable, "control_closed")
	controlRefused(t, tell(c, access.KeyCreated{Key: key(1, "")}), fail.Unavailable, "control_closed")
}
