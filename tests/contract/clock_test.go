package contract

import (
	"strings"
	"sync"
	"testing"
	"time"

	"leapview/adapters/mem"
	"leapview/adapters/system"
	"leapview/ports"
)

// TestClockMem proves the contract of ports.Clock and ports.Identity for the twins.
func TestClockMem(t *testing.T) { clockSuite(t, &mem.Clock{}, &mem.Identity{}) }

// TestClockSystem proves the contract of ports.Clock and ports.Identity for the machine's.
func TestClockSystem(t *testing.T) { clockSuite(t, system.Clock{}, system.Identity{}) }

// clockSuite is the contract of ports.Clock and ports.Identity.
func clockSuite(t *testing.T, clock ports.Clock, identity ports.Identity) {
	t.Run("the time is in UTC and goes forward", func(t *testing.T) {
		before := clock.Now()
		if before.Location() != time.UTC || before.Year() < 2020 {
			t.Errorf("now is %v", before)
		}
		if after := clock.Now(); after.Before(before) {
			t.Errorf("%v comes after %v", after, before)
		}
	})
	t.Run("ids have 26 lower-case letters and digits and are never given twice", func(t *testing.T) {
		const workers, each = 4, 500
		ids := make(chan string, workers*each)
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range each {
					ids <- identity.NewID()
				}
			})
		}
		wg.Wait()
		close(ids)
		seen := map[string]bool{}
		for id := range ids {
			if len(id) != 26 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || seen[id] {
				t.Fatalf("id %q is malformed, or was given before", id)
			}
			seen[id] = true
		}
	})
	t.Run("secrets are never given twice", func(t *testing.T) {
		seen := map[[32]byte]bool{}
		for range 1000 {
			s := identity.NewSecret()
			if seen[s] || s == ([32]byte{}) {
				t.Fatalf("secret %x is empty, or was given before", s)
			}
			seen[s] = true
		}
	})
}

// Proves that the twin's clock goes on from where it is set, also backwards, and tells equal runs equal times.
func TestClockIsSet(t *testing.T) {
	a, b := &mem.Clock{}, &mem.Clock{}
	if x, y := a.Now(), b.Now(); !x.Equal(y) {
		t.Errorf("two clocks begin at %v and %v", x, y)
	}
	for _, to := range []time.Time{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		a.Set(to)
		if x, y := a.Now(), a.Now(); !x.Equal(to) || y.Sub(x) != time.Millisecond {
			t.Errorf("set to %v it says %v, then %v", to, x, y)
		}
	}
}
