package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"leapview/adapters/mem"
	"leapview/domain/access"
	"leapview/domain/fail"
)

// lock is a keyring over twins.
type lock struct {
	*Keyring
	t       testing.TB
	control *mem.Control
	clock   *mem.Clock
	log     *bytes.Buffer
}

func newLock(t testing.TB) lock {
	t.Helper()
	l := lock{t: t, control: mem.NewControl(), clock: &mem.Clock{}, log: &bytes.Buffer{}}
	return l.reopened()
}

// reopened is the keyring of the next process.
func (l lock) reopened() lock {
	l.t.Helper()
	k, err := OpenKeyring(context.Background(), l.control, l.clock, &mem.Identity{}, slog.New(slog.NewTextHandler(l.log, nil)))
	if err != nil {
		l.t.Fatal(err)
	}
	l.Keyring = k
	return l
}

func (l lock) create(spec access.Spec) (access.Key, string) {
	l.t.Helper()
	key, secret, err := l.Create(context.Background(), access.Local.Caller("req"), spec)
	if err != nil {
		l.t.Fatal(err)
	}
	return key, secret.Reveal()
}

// tries gives the code of an attempt's refusal, or the principal's name.
func (l lock) tries(text, address string) string {
	p, err := l.Authenticate(context.Background(), text, address)
	if err != nil {
		return fail.CodeOf(err)
	}
	return p.Name
}

func viewer() access.Spec { return access.Spec{Grant: access.Grant{Role: access.Viewer}} }

// TestKeyring proves a key's life at the door: it lets in its principal, is refused from the moment of its revocation or its end on,
// also by the next process, and once there was a key one is needed for ever.
func TestKeyring(t *testing.T) {
	l := newLock(t)
	if l.Required() {
		t.Error("a key is required before there is one")
	}
	if got := l.tries("lvk_x", "a"); got != "key_mistyped" {
		t.Errorf("a key before there is one: %s", got)
	}
	forever, text := l.create(viewer())
	ending := viewer()
	ending.Lifetime = time.Hour
	_, endingText := l.create(ending)
	if !l.Required() {
		t.Error("no key is required although there is one")
	}
	for _, k := range []string{text, endingText} {
		if got := l.tries(k, "a"); !strings.HasPrefix(got, "key:") {
			t.Errorf("a good key is refused: %s", got)
		}
	}
	for wrong, code := range map[string]string{"": "key_malformed", text[1:]: "key_malformed", text[:len(text)-1]: "key_mistyped",
		access.NewSecret("abcdefgh", [32]byte{1}).Reveal(): "key_unknown"} {
		if got := l.tries(wrong, "b"); got != code {
			t.Errorf("%q: %s, want %s", wrong, got, code)
		}
	}
	l.clock.Set(l.clock.Now().Add(time.Hour))
	if got := l.tries(endingText, "c"); got != "key_expired" {
		t.Errorf("after its end: %s", got)
	}
	if _, err := l.Revoke(context.Background(), access.Local.Caller("req"), forever.ID); err != nil {
		t.Fatal(err)
	}
	for _, l := range []lock{l, l.reopened()} {
		if got := l.tries(text, "d"); got != "key_revoked" || !l.Required() {
			t.Errorf("after its revocation: %s, required %v", got, l.Required())
		}
	}
	if strings.Contains(l.log.String(), text[13:40]) {
		t.Errorf("the log shows a key:\n%s", l.log)
	}
}

// TestKeysInUse proves that the list has every key with the time of its newest use, and that a change of keys does not forget it.
func TestKeysInUse(t *testing.T) {
	l := newLock(t)
	used, text := l.create(viewer())
	l.create(viewer())
	l.tries(text, "a")
	last, _ := l.create(viewer())
	if _, err := l.Revoke(context.Background(), access.Local.Caller(""), last.ID); err != nil {
		t.Fatal(err)
	}
	list := l.List()
	if len(list) != 3 || list[0].ID != used.ID || list[0].UsedAt.Before(used.CreatedAt) || !list[1].UsedAt.IsZero() || list[2].RevokedAt.IsZero() {
		t.Errorf("listed %+v", list)
	}
}

// TestRevocationOfUnknownOutcome proves that a key is refused when it is not known whether its revocation was stored, and goes on to be
// good when it is known that it was not.
func TestRevocationOfUnknownOutcome(t *testing.T) {
	l := newLock(t)
	key, text := l.create(viewer())
	for _, c := range []struct {
		kind fail.Kind
		want string
	}{{fail.Limit, "key:" + string(key.ID)}, {fail.UnknownOutcome, "key_revoked"}} {
		l.control.FailCommit = func() error { return fail.New(c.kind, "planted", "no") }
		if _, err := l.Revoke(context.Background(), access.Local.Caller(""), key.ID); fail.KindOf(err) != c.kind {
			t.Fatal(err)
		}
		l.control.FailCommit = nil
		if got := l.tries(text, "a"); got != c.want {
			t.Errorf("%s: %s, want %s", c.kind, got, c.want)
		}
	}
}

// TestGuessingIsSlow proves that a failure is told after a moment, that an address which fails too often is told when to come back,
// that another address and a good key are not concerned, and that no more than a bounded number of callers wait.
func TestGuessingIsSlow(t *testing.T) {
	l := newLock(t)
	_, text := l.create(viewer())
	began := time.Now()
	if got := l.tries("lvk_", "a"); got != "key_mistyped" || time.Since(began) < failureDelay {
		t.Errorf("%s after %s", got, time.Since(began))
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var err error
	for range 20 {
		// Who went away is not waited for.
		_, err = l.Authenticate(ended, "lvk_", "a")
	}
	var throttled *ThrottledError
	if !errors.As(err, &throttled) || fail.CodeOf(err) != "too_many_failures" || fail.KindOf(err) != fail.Busy || throttled.After < time.Second || throttled.After > time.Minute {
		t.Fatalf("after 20 failures: %v", err)
	}
	if got := l.tries(text, "a"); !strings.HasPrefix(got, "key:") {
		t.Errorf("a good key from that address: %s", got)
	}
	if got := l.tries("lvk_", "b"); got != "key_mistyped" {
		t.Errorf("another address: %s", got)
	}
	l.clock.Set(l.clock.Now().Add(throttled.After))
	if got := l.tries("lvk_", "a"); got != "key_mistyped" {
		t.Errorf("after its wait: %s", got)
	}
	var wg sync.WaitGroup
	codes := make(chan string, 3*maxDelayed)
	for i := range cap(codes) {
		wg.Go(func() { codes <- l.tries("lvk_", fmt.Sprint("many", i)) })
	}
	wg.Wait()
	close(codes)
	count := map[string]int{}
	for code := range codes {
		count[code]++
	}
	if count["too_many_failures"] == 0 || count["key_mistyped"] < maxDelayed {
		t.Errorf("of many at once: %v", count)
	}
}

// TestDenialsAreBounded proves that denials are told to the audit with who, what and through which request, that many of them are
// counted instead, and that a store which cannot tell them does not stand in the way.
func TestDenialsAreBounded(t *testing.T) {
	l := newLock(t)
	deny := func() {
		l.Denied(context.Background(), access.Caller{Principal: access.Anonymous, Request: "req9"}, access.Refresh, "flights", fail.New(fail.Denied, "key_required", "no"))
	}
	for range 1000 {
		deny()
	}
	rows := l.control.Audit()
	if len(rows) < denialsAtOnce || len(rows) > denialsAtOnce+2 {
		t.Errorf("%d rows tell of 1000 denials", len(rows))
	}
	if r := rows[0]; r.Principal != "anonymous" || r.Action != "refresh" || r.Target != "flights" || r.Outcome != "denied" || r.Request != "req9" || r.Detail != `{"code":"key_required"}` {
		t.Errorf("told %+v", r)
	}
	l.clock.Set(l.clock.Now().Add(time.Hour))
	deny()
	if last := l.control.Audit()[len(rows)]; last.Detail != fmt.Sprintf(`{"code":"key_required","untold":%d}`, 1000-len(rows)) {
		t.Errorf("after %d rows: %s", len(rows), last.Detail)
	}
	l.control.FailCommit = func() error { return errors.New("disk") }
	deny()
	if !strings.Contains(l.log.String(), "denial was not told") {
		t.Errorf("log: %s", l.log)
	}
}

// TestKeysChangeWhileTheyAreUsed proves, under the race detector, that requests and changes of keys go on side by side.
func TestKeysChangeWhileTheyAreUsed(t *testing.T) {
	l := newLock(t)
	_, text := l.create(viewer())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if got := l.tries(text, "a"); !strings.HasPrefix(got, "key:") {
					t.Errorf("refused: %s", got)
					return
				}
				l.List()
			}
		})
	}
	for range 20 {
		key, _ := l.create(viewer())
		if _, err := l.Revoke(context.Background(), access.Local.Caller(""), key.ID); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if n := len(l.List()); n != 21 {
		t.Errorf("%d keys are listed", n)
	}
}

// BenchmarkAuthenticate is what a key costs each request, beside a thousand others.
func BenchmarkAuthenticate(b *testing.B) {
	l := newLock(b)
	_, text := l.create(viewer())
	for range access.MaxKeys - 1 {
		l.create(viewer())
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		p, err := l.Authenticate(context.Background(), text, "a")
		if err == nil {
			err = access.Allowed(p, access.Query, "flights")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
