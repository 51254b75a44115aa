package access

import (
	"fmt"
	"testing"
	"time"
)

// TestThrottle proves that an address may fail a few times in a row, then has to wait as long as it is told, that others do not, and
// that quiet time is given back.
func TestThrottle(t *testing.T) {
	var th Throttle
	for i := range failuresAtOnce {
		if wait := th.Failed("a", noon); wait != 0 {
			t.Fatalf("failure %d waits %s", i+1, wait)
		}
	}
	for range 3 {
		if wait := th.Failed("a", noon); wait != failureTime {
			t.Fatalf("one more waits %s", wait)
		}
	}
	if wait := th.Failed("b", noon); wait != 0 {
		t.Errorf("another address waits %s", wait)
	}
	later := noon.Add(failureTime)
	if wait := th.Failed("a", later); wait != 0 {
		t.Errorf("after its wait it waits %s", wait)
	}
	if wait := th.Failed("a", later); wait == 0 {
		t.Error("it may fail twice after one wait")
	}
	later = later.Add(time.Hour)
	for i := range failuresAtOnce {
		if wait := th.Failed("a", later); wait != 0 {
			t.Fatalf("failure %d after an hour waits %s", i+1, wait)
		}
	}
	// A clock that is set back does not lock anyone out for longer than the allowance takes.
	if wait := th.Failed("a", noon.Add(-24*time.Hour)); wait > failureTime {
		t.Errorf("after the clock was set back it waits %s", wait)
	}
}

// TestThrottleIsBounded proves that no more than a fixed number of addresses is remembered, that those which were quiet make room, and
// that when all are noisy the rest share one allowance.
func TestThrottleIsBounded(t *testing.T) {
	var th Throttle
	for i := range maxAddresses {
		th.Failed(fmt.Sprint(i), noon)
	}
	refused := 0
	for i := range 100 {
		if th.Failed(fmt.Sprint("new", i), noon) > 0 {
			refused++
		}
	}
	if refused != 100-failuresAtOnce || len(th.free) != maxAddresses+1 {
		t.Errorf("%d of 100 new addresses were refused, %d are remembered", refused, len(th.free))
	}
	if th.Failed("0", noon) != 0 {
		t.Error("an address that was there before pays for the new ones")
	}
	if wait := th.Failed("later", noon.Add(time.Hour)); wait != 0 || len(th.free) != 1 {
		t.Errorf("after an hour a new one waits %s, %d are remembered", wait, len(th.free))
	}
}
