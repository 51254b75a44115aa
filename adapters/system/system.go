// Package system tells what the machine tells: the time, randomness, and how much memory and disk this process may use.
//
// Invariant: nothing here is remembered; each call asks the machine. It does not decide what to do with what it finds.
package system

import (
	"crypto/rand"
	"strings"
	"time"
)

// Clock is the machine's clock.
type Clock struct{}

// Now is the current time in UTC.
func (Clock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Identity makes ids and secrets from the kernel's randomness.
type Identity struct{}

// NewID gives 26 lower-case letters and digits, 130 bits of randomness in base 32.
func (Identity) NewID() string {
	id := rand.Text()
	// The library promises at least 128 bits and so may give a longer text one day; our ids are stored with this length.
	return strings.ToLower(id[:26])
}

// NewSecret gives 256 bits of the kernel's randomness.
func (Identity) NewSecret() [32]byte {
	var s [32]byte
	// The library ends the process rather than to return an error.
	_, _ = rand.Read(s[:])
	return s
}
