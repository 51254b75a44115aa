// Package migrations owns the schema of the control plane, as numbered steps NNNN_name.up.sql and .down.sql.
//
// Invariant: a step that was released never changes; a new need is a new step. The package does not know when or how the steps
// are run.
package migrations

import "embed"

// Files holds every step.
//
//go:embed *.sql
var Files embed.FS
