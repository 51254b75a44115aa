package mem

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a clock that a test moves. Its zero value starts at a fixed time, and each look at it takes a millisecond, so that no
// two times are equal.
type Clock struct {
	mu sync.Mutex
	// since is the time that has passed since clockStart. Guarded by mu.
	since time.Duration
}

var clockStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Now is the current time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since += time.Millisecond
	return clockStart.Add(c.since)
}

// Set makes now the time that the next Now gives, also when it is in the past, as a machine's clock may jump.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = now.Sub(clockStart) - time.Millisecond
}

// Identity makes ids and secrets by counting, so that a failing test can be run again with the same ids.
type Identity struct {
	n atomic.Int64
}

// NewID gives the next id. It has the length and the letters of a random one.
func (i *Identity) NewID() string { return fmt.Sprintf("id%024d", i.n.Add(1)) }

// NewSecret gives the digest of the next id, which looks random and can be told in advance.
func (i *Identity) NewSecret() [32]byte { return sha256.Sum256([]byte(i.NewID())) }
