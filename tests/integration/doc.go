// Package integration runs one scenario of the whole node with every adapter a twin, with each real adapter alone among twins, and with
// all of them real: what the node does must not depend on which.
package integration
