// Package system tells what the machine tells: the time, randomness, and how much memory and disk this process may use.
//
// Invariant: nothing here is remembered; each call asks the machine. It does not decide what to do with what it finds.
package system
