package ports

import "time"

// Clock tells the time.
type Clock interface {
	// Now is the current time in UTC.
	Now() time.Time
}

// Identity makes random ids and secrets.
type Identity interface {
	// NewID gives a fresh id: 26 lower-case letters and digits, at least 120 bits of them random.
	NewID() string
	// NewSecret gives 256 random bits that nobody can guess.
	NewSecret() [32]byte
}
