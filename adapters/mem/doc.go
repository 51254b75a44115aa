// Package mem owns a working in-memory twin of every port, for tests that need the whole application in milliseconds.
//
// Invariant: a twin may be simpler than the adapter it stands for, never kinder: whatever it accepts, the adapter accepts with the
// same meaning, and what it does not support it refuses by name. Each passes the contract suite of its port. The package touches no
// disk, network or clock of its own, and does not know which test drives it.
package mem
