// Package planted keeps bugs: small changes of the source that a test of this tree must catch. `make planted` builds each one in an
// overlay, without touching the tree, runs the test it is for, and fails when that test passes.
package planted
