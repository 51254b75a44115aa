package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/ports"
)

const (
	// failureDelay is how long a caller waits to be told that its key is not good.
	failureDelay = 100 * time.Millisecond
	// maxDelayed is how many of them wait at a time; any more are told at once to come back later.
	maxDelayed = 64
	// denialTime is how often a refused change is told to the audit in the long run, denialsAtOnce how many are in a row. The ones in
	// between are counted.
	denialTime    = 2 * time.Second
	denialsAtOnce = 32
	// denialWriteTime bounds the writing of one.
	denialWriteTime = 2 * time.Second
)

// Keyring knows who may call. It holds all keys in memory, so that a request asks no store; a change is in the store first and here
// before it is answered, so that a revoked key is refused from then on.
type Keyring struct {
	store    ports.Keys
	clock    ports.Clock
	identity ports.Identity
	log      *slog.Logger

	// changing is held from before a change of the store until ring shows it, so that the changes are shown in their order.
	changing sync.Mutex
	ring     atomic.Pointer[ring]

	// delayed holds a token for each caller that waits to be told of its failure.
	delayed chan struct{}

	mu sync.Mutex
	// throttle, nextDenial and untold are guarded by mu. nextDenial is when the audit has been quiet for long enough again; untold
	// counts the denials since the last one that was told.
	throttle   access.Throttle
	nextDenial time.Time
	untold     int
}

// ring is a set of keys. It is never written after it was made, but for the times of use.
type ring struct {
	keys     []access.Key
	byDigest map[access.Digest]*keyInUse
}

type keyInUse struct {
	access.Key
	principal access.Principal
	// used is the time of the newest use, in microseconds since 1970; 0 when the key was not used since the node's start.
	used *atomic.Int64
}

// KeyUse is a key with when it was used last, as far as is known since the node's start; zero when it was not.
type KeyUse struct {
	access.Key
	UsedAt time.Time
}

// OpenKeyring reads the keys.
func OpenKeyring(ctx context.Context, store ports.Keys, clock ports.Clock, identity ports.Identity, log *slog.Logger) (*Keyring, error) {
	k := &Keyring{store: store, clock: clock, identity: identity, log: log, delayed: make(chan struct{}, maxDelayed)}
	keys, err := store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	k.show(keys)
	return k, nil
}

// show makes these the keys that requests are judged by. The times of use go on.
func (k *Keyring) show(keys []access.Key) {
	next := &ring{keys: keys, byDigest: make(map[access.Digest]*keyInUse, len(keys))}
	before := k.ring.Load()
	for _, key := range keys {
		held := &keyInUse{key, key.Principal(), &atomic.Int64{}}
		if before != nil {
			if old := before.byDigest[key.Digest]; old != nil {
				held.used = old.used
			}
		}
		next.byDigest[key.Digest] = held
	}
	k.ring.Store(next)
}

// Required tells whether whoever does not come through the node's socket needs a key. Once a key was made that stays so, also after
// the last one was revoked or has expired: the end of a key must not open the node.
func (k *Keyring) Required() bool { return len(k.ring.Load().keys) > 0 }

// Authenticate gives the principal whose key the text is. A failure is told after a moment, and an address that fails too often is
// told to wait; a good key is let in all the same, so that nobody can lock out those who share an address with him.
func (k *Keyring) Authenticate(ctx context.Context, text, address string) (access.Principal, error) {
	p, err := k.find(text)
	if err != nil {
		return access.Principal{}, k.slow(ctx, address, err)
	}
	return p, nil
}

func (k *Keyring) find(text string) (access.Principal, error) {
	secret, err := access.ParseSecret(text)
	if err != nil {
		return access.Principal{}, err
	}
	held := k.ring.Load().byDigest[secret.Digest()]
	if held == nil {
		return access.Principal{}, fail.New(fail.Denied, "key_unknown", "this node knows no such key").WithFix("ask an operator for a key: leapview key create")
	}
	now := k.clock.Now()
	if err := held.Usable(now); err != nil {
		return access.Principal{}, err
	}
	held.used.Store(now.UnixMicro())
	return held.principal, nil
}

// ThrottledError tells when to come back.
type ThrottledError struct {
	error
	After time.Duration
}

// Unwrap gives the refusal.
func (e *ThrottledError) Unwrap() error { return e.error }

// slow gives err after a moment, or the refusal of an address that failed too often.
func (k *Keyring) slow(ctx context.Context, address string, err error) error {
	k.mu.Lock()
	wait := k.throttle.Failed(address, k.clock.Now())
	k.mu.Unlock()
	if wait == 0 {
		select {
		case k.delayed <- struct{}{}:
			defer func() { <-k.delayed }()
		default:
			wait = time.Second
		}
	}
	if wait > 0 {
		return &ThrottledError{fail.New(fail.Busy, "too_many_failures", "too many keys from this address were no good").
			WithFix("check the key, and try again in %d s", int64((wait+time.Second-1)/time.Second)), wait}
	}
	select {
	case <-time.After(failureDelay):
	case <-ctx.Done():
	}
	return err
}

// List gives all keys, oldest first.
func (k *Keyring) List() []KeyUse {
	r := k.ring.Load()
	list := make([]KeyUse, len(r.keys))
	for i, key := range r.keys {
		list[i] = r.use(key)
	}
	return list
}

// use is the key with the time of its newest use.
func (r *ring) use(key access.Key) KeyUse {
	u := KeyUse{Key: key}
	if held := r.byDigest[key.Digest]; held != nil {
		if at := held.used.Load(); at != 0 {
			u.UsedAt = time.UnixMicro(at).UTC()
		}
	}
	return u
}

// Create makes a key. The secret is given out once and kept nowhere.
func (k *Keyring) Create(ctx context.Context, by access.Caller, spec access.Spec) (access.Key, access.Secret, error) {
	id := access.NewKeyID(k.identity.NewID())
	secret := access.NewSecret(id, k.identity.NewSecret())
	var key access.Key
	now := k.clock.Now()
	err := k.change(ctx, by, func(s access.State) ([]access.Event, error) {
		var events []access.Event
		var err error
		key, events, err = s.Create(id, secret.Digest(), spec, by, now)
		return events, err
	})
	if err != nil {
		return access.Key{}, access.Secret{}, err
	}
	k.log.InfoContext(ctx, "key created", "key", id, "principal", by.Principal)
	return key, secret, nil
}

// Revoke ends the use of a key: no request that begins after it is let in with it. Twice is once.
func (k *Keyring) Revoke(ctx context.Context, by access.Caller, id access.KeyID) (KeyUse, error) {
	var key access.Key
	now := k.clock.Now()
	err := k.change(ctx, by, func(s access.State) ([]access.Event, error) {
		var events []access.Event
		var err error
		key, events, err = s.Revoke(id, now)
		return events, err
	})
	if err != nil {
		return KeyUse{}, err
	}
	k.log.InfoContext(ctx, "key revoked", "key", id, "principal", by.Principal)
	return k.ring.Load().use(key), nil
}

// change changes the stored keys and shows what became of them. A change of unknown outcome is shown too: a key that may have been
// revoked is refused.
func (k *Keyring) change(ctx context.Context, by access.Caller, decide func(access.State) ([]access.Event, error)) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	var after []access.Key
	err := k.store.UpdateKeys(ctx, by, func(s access.State) ([]access.Event, error) {
		events, err := decide(s)
		after = s.After(events)
		return events, err
	})
	if err == nil || fail.KindOf(err) == fail.UnknownOutcome {
		k.show(after)
	}
	return err
}

// Denied tells the audit that the caller asked for a change and was refused with err. Few are told in a row and then one now and
// then, with the number of those in between, so that nobody can fill the audit.
func (k *Keyring) Denied(ctx context.Context, by access.Caller, a access.Action, target string, err error) {
	now := k.clock.Now()
	k.mu.Lock()
	const most = denialsAtOnce * denialTime
	next := k.nextDenial
	if next.Before(now) || next.Sub(now) > most {
		next = now
	}
	if next = next.Add(denialTime); next.Sub(now) > most {
		k.untold++
		k.mu.Unlock()
		return
	}
	untold := k.untold
	k.nextDenial, k.untold = next, 0
	k.mu.Unlock()
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), denialWriteTime)
	defer cancel()
	told := k.store.UpdateKeys(writing, by, func(access.State) ([]access.Event, error) {
		return []access.Event{access.Denied{Action: a, Target: target, Code: fail.CodeOf(err), At: now, Untold: untold}}, nil
	})
	if told != nil {
		k.log.ErrorContext(ctx, "denial was not told to the audit", "request_id", by.Request, "error", told)
	}
}
