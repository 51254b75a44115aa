package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"leapview/domain/audit"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

const (
	// MaxKeys bounds the keys that are kept, those that were revoked or have expired too.
	MaxKeys = 1000
	// maxLabel is the longest label, in characters.
	maxLabel = 100
	// longestLifetime bounds how far ahead a key may expire.
	longestLifetime = 3650 * 24 * time.Hour
)

// Key is what is kept of a key.
type Key struct {
	ID     KeyID
	Digest Digest
	Grant  Grant
	// Label says for people what the key is for; it may be empty.
	Label     string
	CreatedAt time.Time
	CreatedBy string
	// ExpiresAt is zero for a key that does not expire, RevokedAt for one that was not revoked.
	ExpiresAt, RevokedAt time.Time
}

// Principal is whoever holds the key.
func (k Key) Principal() Principal { return Principal{Name: "key:" + string(k.ID), Grant: k.Grant} }

// Usable is nil while the key is neither revoked nor expired.
func (k Key) Usable(now time.Time) error {
	switch {
	case !k.RevokedAt.IsZero():
		return fail.New(fail.Denied, "key_revoked", "key %s was revoked on %s", k.ID, k.RevokedAt.UTC().Format(time.DateTime)).WithFix("ask an operator for another key")
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return fail.New(fail.Denied, "key_expired", "key %s expired on %s", k.ID, k.ExpiresAt.UTC().Format(time.DateTime)).WithFix("ask an operator for another key")
	}
	return nil
}

// Load refuses a stored key that no decision could have written.
func Load(k Key) (Key, error) {
	_, badID := ParseKeyID(string(k.ID))
	if badID != nil || k.Grant.Role.rank() < 0 || k.CreatedAt.IsZero() || k.CreatedBy == "" || badLabel(k.Label) != nil {
		return Key{}, fail.New(fail.Corrupt, "impossible_key", "the stored key %q cannot be what was written", k.ID).
			WithFix("restore the data directory from a backup")
	}
	return k, nil
}

// Spec is what a new key is to be.
type Spec struct {
	Grant Grant
	Label string
	// Lifetime is 0 for a key that does not expire.
	Lifetime time.Duration
}

// ParseLifetime reads a whole number of days or hours, such as 90d or 12h. Nothing is no end.
func ParseLifetime(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	unit := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 20)
	if unit == 0 || err != nil || n == 0 {
		return 0, fail.New(fail.Invalid, "bad_lifetime", "%q is not how long a key can live", s).WithFix("write whole days or hours, such as 90d or 12h")
	}
	if n > uint64(longestLifetime/unit) {
		return 0, fail.New(fail.Limit, "key_lifetime", "a key cannot live for %s (limit key_lifetime = 3650d)", s).WithFix("leave the end out for a key that does not expire")
	}
	return time.Duration(n) * unit, nil
}

func badLabel(s string) error {
	if utf8.RuneCountInString(s) > maxLabel || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fail.New(fail.Invalid, "bad_label", "the label is longer than %d characters, or not printable", maxLabel)
	}
	return nil
}

// State is what decisions over keys are taken over.
type State struct {
	// Keys are all that are kept, oldest first.
	Keys []Key
	// Workspaces are those that exist.
	Workspaces []serving.Workspace
}

// Event is a past-tense fact about keys, written with its audit row in one transaction.
type Event interface {
	// EventName is stable and lower_snake_case.
	EventName() string
}

// KeyCreated: whoever holds the key's text is its principal from now on.
type KeyCreated struct{ Key Key }

// KeyRevoked: the key is refused from now on.
type KeyRevoked struct {
	ID KeyID
	At time.Time
}

// KeyForgotten: a key that was refused already made room for another one.
type KeyForgotten struct {
	ID KeyID
	At time.Time
}

// Denied: somebody asked for a change and may not make it.
type Denied struct {
	Action Action
	Target string
	// Code is the refusal's.
	Code string
	At   time.Time
	// Untold counts the refusals since the last one that was told: telling all of them would let anyone fill the audit.
	Untold int
}

// EventName implements Event.
func (KeyCreated) EventName() string { return "key_created" }

// EventName implements Event.
func (KeyRevoked) EventName() string { return "key_revoked" }

// EventName implements Event.
func (KeyForgotten) EventName() string { return "key_forgotten" }

// EventName implements Event.
func (d Denied) EventName() string { return string(d.Action) }

// Create makes a key with the id and digest of a new secret. When no more are kept, the oldest
// one that is refused anyway is forgotten.
func (s State) Create(id KeyID, digest Digest, spec Spec, by Caller, now time.Time) (Key, []Event, error) {
	if _, err := ParseRole(string(spec.Grant.Role)); err != nil {
		return Key{}, nil, err
	}
	if err := badLabel(spec.Label); err != nil {
		return Key{}, nil, err
	}
	if w := spec.Grant.Workspace; w != "" && !slices.Contains(s.Workspaces, w) {
		names := make([]string, len(s.Workspaces))
		for i, known := range s.Workspaces {
			names[i] = string(known)
		}
		fix := "deploy it first: leapview deploy DIR"
		if near := project.Suggest(string(w), names); near != "" {
			fix = near
		}
		return Key{}, nil, fail.New(fail.Missing, "unknown_workspace", "there is no workspace %q to make a key for", w).WithFix("%s", fix)
	}
	k := Key{ID: id, Digest: digest, Grant: spec.Grant, Label: spec.Label, CreatedAt: now, CreatedBy: by.Principal}
	if spec.Lifetime != 0 {
		k.ExpiresAt = now.Add(spec.Lifetime)
	}
	var events []Event
	if len(s.Keys) >= MaxKeys {
		oldest := slices.IndexFunc(s.Keys, func(k Key) bool { return k.Usable(now) != nil })
		if oldest < 0 {
			return Key{}, nil, fail.New(fail.Limit, "keys", "there are %d keys in use (limit keys = %d)", len(s.Keys), MaxKeys).
				WithFix("revoke one that nobody needs: leapview key list, leapview key revoke ID")
		}
		events = append(events, KeyForgotten{s.Keys[oldest].ID, now})
	}
	return k, append(events, KeyCreated{k}), nil
}

// Revoke ends the use of a key. Twice is once.
func (s State) Revoke(id KeyID, now time.Time) (Key, []Event, error) {
	i := slices.IndexFunc(s.Keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, nil, fail.New(fail.Missing, "no_such_key", "there is no key %s", id).WithFix("leapview key list shows the ids")
	}
	k := s.Keys[i]
	if !k.RevokedAt.IsZero() {
		return k, nil, nil
	}
	k.RevokedAt = now
	return k, []Event{KeyRevoked{id, now}}, nil
}

// After is the keys once the events, decided over s, have happened.
func (s State) After(events []Event) []Key {
	keys := slices.Clone(s.Keys)
	for _, e := range events {
		switch e := e.(type) {
		case KeyCreated:
			keys = append(keys, e.Key)
		case KeyRevoked:
			for i := range keys {
				if keys[i].ID == e.ID {
					keys[i].RevokedAt = e.At
				}
			}
		case KeyForgotten:
			keys = slices.DeleteFunc(keys, func(k Key) bool { return k.ID == e.ID })
		case Denied:
		}
	}
	return keys
}

// Audit is the row that is written together with e, which the caller asked for. An event it does not know is refused, so that
// nothing can happen untold.
func Audit(by Caller, e Event) (audit.Row, error) {
	row := audit.Row{Principal: by.Principal, Action: e.EventName(), Outcome: "ok", Request: by.Request}
	detail := map[string]any{}
	switch e := e.(type) {
	case KeyCreated:
		row.At, row.Target = e.Key.CreatedAt, keyTarget(e.Key.ID)
		detail["role"], detail["workspace"], detail["label"] = e.Key.Grant.Role, e.Key.Grant.Workspace, e.Key.Label
		if !e.Key.ExpiresAt.IsZero() {
			detail["expires_at"] = e.Key.ExpiresAt.UTC()
		}
	case KeyRevoked:
		row.At, row.Target = e.At, keyTarget(e.ID)
	case KeyForgotten:
		row.At, row.Target = e.At, keyTarget(e.ID)
	case Denied:
		row.At, row.Target, row.Outcome = e.At, e.Target, "denied"
		detail["code"] = e.Code
		if e.Untold > 0 {
			detail["untold"] = e.Untold
		}
	default:
		return audit.Row{}, fail.New(fail.Internal, "unknown_event", "the audit does not know the event %s (%T)", e.EventName(), e)
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return audit.Row{}, fmt.Errorf("audit %s: %w", row.Action, err)
	}
	row.Detail = string(text)
	return row, nil
}

func keyTarget(id KeyID) string { return "/keys/" + string(id) }
