// Package mem owns a working in-memory twin of every port, for tests that need the whole application in milliseconds.
//
// Invariant: a twin may be simpler than the adapter it stands for, never kinder: whatever it accepts, the adapter accepts with the
// same meaning, and what it does not support it refuses by name. Each passes the contract suite of its port. The package touches no
// disk but a folder that a test gives to Sources, no network and no clock, and does not know which test drives it.
package mem
