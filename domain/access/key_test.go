package access

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"leapview/domain/fail"
	"leapview/domain/serving"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func secretOf(n byte) Secret { return NewSecret("abcdefg"+KeyID(rune('0'+n)), [32]byte{n, 1, 2}) }

// TestSecret proves that a key's text comes back from its own parser, that every single wrong, missing or additional character is
// told as a mistake of typing, and that another text is told as no key.
func TestSecret(t *testing.T) {
	s := secretOf(1)
	text := s.Reveal()
	if !strings.HasPrefix(text, "lvk_abcdefg1_") || len(text) != secretLength {
		t.Fatalf("the text is %q", text)
	}
	if back, err := ParseSecret(text); err != nil || back != s {
		t.Fatalf("parsed %v, %v", back == s, err)
	}
	if s.Digest() == secretOf(2).Digest() {
		t.Error("two keys have one digest")
	}
	wrong := map[string]bool{text[:len(text)-1]: true, text + "a": true, text[:20] + text[21:]: true, strings.ToUpper(text[4:]): false, "": false, "Bearer": false}
	for i := len(secretPrefix); i < len(text); i++ {
		other := byte('a')
		if text[i] == other {
			other = 'b'
		}
		wrong[text[:i]+string(other)+text[i+1:]] = true
	}
	for text, mistyped := range wrong {
		code := "key_malformed"
		if mistyped {
			code = "key_mistyped"
		}
		_, err := ParseSecret(text)
		if fail.CodeOf(err) != code || fail.KindOf(err) != fail.Denied {
			t.Errorf("%q: %v, want %s", text, err, code)
		}
		if len(text) > 8 && strings.Contains(err.Error(), text[len(text)-8:]) {
			t.Errorf("the refusal repeats the text: %v", err)
		}
	}
}

// TestSecretIsNotShown proves that no way of printing or encoding shows a key's text.
func TestSecretIsNotShown(t *testing.T) {
	s := secretOf(1)
	inside := struct {
		S Secret
		P *Secret
	}{s, &s}
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&shown, verb+verb+verb+"\n", s, &s, inside)
	}
	text, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	shown.Write(text)
	if body := s.Reveal()[13:]; strings.Contains(shown.String(), body) || strings.Contains(shown.String(), fmt.Sprintf("%x", body)) {
		t.Errorf("it shows:\n%s", shown.String())
	}
}

// TestDigest proves that a digest is read back from its text, and nothing else is.
func TestDigest(t *testing.T) {
	d := secretOf(1).Digest()
	if back, err := ParseDigest(d.String()); err != nil || back != d {
		t.Errorf("parsed %v, %v", back, err)
	}
	for _, bad := range []string{"", d.String()[1:], strings.ToUpper(d.String()), strings.Repeat("g", 64)} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestKeyID proves what can name a key, and that a random id holds one.
func TestKeyID(t *testing.T) {
	if id, err := ParseKeyID(string(NewKeyID("zzzzzzzzzzzzzzzzzzabcd2345"))); err != nil || id != "abcd2345" {
		t.Errorf("%q, %v", id, err)
	}
	for _, bad := range []string{"", "abc", "abcd234", "abcd23456", "ABCD2345", "abcd/345"} {
		if _, err := ParseKeyID(bad); fail.CodeOf(err) != "bad_key_id" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestParseLifetime proves which lifetimes there are.
func TestParseLifetime(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "12h": 12 * time.Hour, "90d": 90 * 24 * time.Hour, "3650d": longestLifetime} {
		if got, err := ParseLifetime(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for text, code := range map[string]string{"0d": "bad_lifetime", "d": "bad_lifetime", "-1d": "bad_lifetime", "+1d": "bad_lifetime", "1.5d": "bad_lifetime", "90": "bad_lifetime",
		"90m": "bad_lifetime", "é": "bad_lifetime", "99999999999d": "bad_lifetime", "3651d": "key_lifetime", "1048575d": "key_lifetime"} {
		if _, err := ParseLifetime(text); fail.CodeOf(err) != code {
			t.Errorf("%q: %v, want %s", text, err, code)
		}
	}
}

// TestUsable proves that a key is good to the last moment before its end, and not after its revocation.
func TestUsable(t *testing.T) {
	k := Key{ID: "abcdefg1"}
	ending := Key{ID: "abcdefg1", ExpiresAt: noon}
	revoked := Key{ID: "abcdefg1", ExpiresAt: noon, RevokedAt: noon.Add(-time.Hour)}
	for name, c := range map[string]struct {
		key  Key
		at   time.Time
		code string
	}{
		"for ever":            {k, noon.Add(1e6 * time.Hour), ""},
		"just before its end": {ending, noon.Add(-1), ""},
		"at its end":          {ending, noon, "key_expired"},
		"revoked":             {revoked, noon.Add(-2 * time.Hour), "key_revoked"},
	} {
		if err := c.key.Usable(c.at); codeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// TestCreate proves what a new key is, and what refuses to be one.
func TestCreate(t *testing.T) {
	s := State{Workspaces: []serving.Workspace{"flights"}}
	d := secretOf(1).Digest()
	k, events, err := s.Create("abcdefg1", d, Spec{Grant{Viewer, "flights"}, "dashboards", time.Hour}, Local.Caller("r"), noon)
	want := Key{ID: "abcdefg1", Digest: d, Grant: Grant{Viewer, "flights"}, Label: "dashboards", CreatedAt: noon, CreatedBy: "local", ExpiresAt: noon.Add(time.Hour)}
	if err != nil || k != want || fmt.Sprint(events) != fmt.Sprint([]Event{KeyCreated{want}}) {
		t.Errorf("%+v, %v, %v", k, events, err)
	}
	if p := k.Principal(); p != (Principal{"key:abcdefg1", Grant{Viewer, "flights"}}) {
		t.Errorf("its principal is %+v", p)
	}
	for name, c := range map[string]struct {
		spec Spec
		code string
	}{
		"no role":           {Spec{}, "bad_role"},
		"unknown workspace": {Spec{Grant: Grant{Viewer, "flihgts"}}, "unknown_workspace"},
		"long label":        {Spec{Grant: Grant{Viewer, ""}, Label: strings.Repeat("é", 101)}, "bad_label"},
		"control character": {Spec{Grant: Grant{Viewer, ""}, Label: "a\nb"}, "bad_label"},
		"broken UTF-8":      {Spec{Grant: Grant{Viewer, ""}, Label: "\xff"}, "bad_label"},
	} {
		if _, events, err := s.Create("abcdefg1", d, c.spec, Local.Caller(""), noon); fail.CodeOf(err) != c.code || events != nil {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}

// TestKeysAreBounded proves that the oldest key that is refused anyway makes room, and that only keys in use can be too many.
func TestKeysAreBounded(t *testing.T) {
	var s State
	for i := range MaxKeys {
		s.Keys = append(s.Keys, Key{ID: KeyID(fmt.Sprintf("k%07d", i))})
	}
	spec := Spec{Grant: Grant{Viewer, ""}}
	if _, _, err := s.Create("abcdefg1", Digest{}, spec, Local.Caller(""), noon); fail.CodeOf(err) != "keys" || fail.KindOf(err) != fail.Limit {
		t.Errorf("with all of them in use: %v", err)
	}
	s.Keys[7].ExpiresAt, s.Keys[9].RevokedAt = noon, noon
	_, events, err := s.Create("abcdefg1", Digest{}, spec, Local.Caller(""), noon)
	if err != nil || len(events) != 2 || events[0] != (KeyForgotten{"k0000007", noon}) {
		t.Errorf("%v, %v", events, err)
	}
	if after := s.After(events); len(after) != MaxKeys || after[7].ID != "k0000008" || after[MaxKeys-1].ID != "abcdefg1" || len(s.Keys) != MaxKeys || s.Keys[7].ID != "k0000007" {
		t.Errorf("after it: %d keys", len(after))
	}
}

// TestRevoke proves that a key is revoked once, with one event, and that another id is missing.
func TestRevoke(t *testing.T) {
	s := State{Keys: []Key{{ID: "abcdefg1"}, {ID: "abcdefg2"}}}
	k, events, err := s.Revoke("abcdefg2", noon)
	if err != nil || k.RevokedAt != noon || len(events) != 1 || events[0] != (KeyRevoked{"abcdefg2", noon}) {
		t.Fatalf("%v, %v, %v", k, events, err)
	}
	s.Keys = s.After(events)
	if k, events, err := s.Revoke("abcdefg2", noon.Add(time.Hour)); err != nil || events != nil || k.RevokedAt != noon {
		t.Errorf("again: %v, %v, %v", k, events, err)
	}
	if s.Keys[0].RevokedAt != (time.Time{}) {
		t.Error("the other key is revoked too")
	}
	if _, _, err := s.Revoke("abcdefg3", noon); fail.CodeOf(err) != "no_such_key" || fail.KindOf(err) != fail.Missing {
		t.Errorf("an unknown one: %v", err)
	}
}

// TestLoad proves that the one door back from storage refuses what no decision writes.
func TestLoad(t *testing.T) {
	good := Key{ID: "abcdefg1", Grant: Grant{Viewer, ""}, CreatedAt: noon, CreatedBy: "local"}
	if k, err := Load(good); err != nil || k != good {
		t.Errorf("%v, %v", k, err)
	}
	for name, change := range map[string]func(*Key){
		"id":    func(k *Key) { k.ID = "x" },
		"role":  func(k *Key) { k.Grant.Role = "god" },
		"time":  func(k *Key) { k.CreatedAt = time.Time{} },
		"maker": func(k *Key) { k.CreatedBy = "" },
		"label": func(k *Key) { k.Label = "\x1b" },
	} {
		k := good
		change(&k)
		if _, err := Load(k); fail.KindOf(err) != fail.Corrupt {
			t.Errorf("a wrong %s: %v", name, err)
		}
	}
}

type strangeEvent struct{}

func (strangeEvent) EventName() string { return "strange" }

// TestAudit proves that every event tells who did what to what through which request, without the digest, and that an event the
// audit does not know is refused.
func TestAudit(t *testing.T) {
	k := Key{ID: "abcdefg1", Digest: secretOf(1).Digest(), Grant: Grant{Viewer, "flights"}, Label: "l", CreatedAt: noon, ExpiresAt: noon}
	by := Caller{"key:zzzzzzzz", "req1"}
	for _, c := range []struct {
		event                           Event
		action, target, outcome, detail string
	}{
		{KeyCreated{k}, "key_created", "/keys/abcdefg1", "ok", `{"expires_at":"2026-03-01T12:00:00Z","label":"l","role":"viewer","workspace":"flights"}`},
		{KeyRevoked{k.ID, noon}, "key_revoked", "/keys/abcdefg1", "ok", `{}`},
		{KeyForgotten{k.ID, noon}, "key_forgotten", "/keys/abcdefg1", "ok", `{}`},
		{Denied{Refresh, "flights", "role_too_low", noon, 0}, "refresh", "flights", "denied", `{"code":"role_too_low"}`},
		{Denied{Refresh, "flights", "role_too_low", noon, 3}, "refresh", "flights", "denied", `{"code":"role_too_low","untold":3}`},
	} {
		row, err := Audit(by, c.event)
		if err != nil || row.At != noon || row.Principal != by.Principal || row.Request != "req1" || row.Action != c.action || row.Target != c.target || row.Outcome != c.outcome || row.Detail != c.detail {
			t.Errorf("%T: %+v, %v", c.event, row, err)
		}
	}
	if _, err := Audit(by, strangeEvent{}); fail.CodeOf(err) != "unknown_event" {
		t.Errorf("a strange event: %v", err)
	}
}
