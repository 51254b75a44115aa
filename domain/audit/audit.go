// Package audit owns the row that tells a durable change, or the refusal of one, to whoever asks later who did what, and when.
//
// Invariant: a row holds no secret and nothing that grows with the data. The package does not know which changes there are, nor how
// rows are kept.
package audit

import "time"

// Row is one thing that somebody did, or was refused.
type Row struct {
	At        time.Time
	Principal string
	// Action is an event's name, or the action that was refused.
	Action string
	// Target is a path that begins with the workspace, or with a slash when it is the node's.
	Target string
	// Outcome is ok, denied, or the status of a run that ended otherwise.
	Outcome string
	// Detail is a JSON object.
	Detail string
	// Request is the id of the request that asked for it; empty when the node acted by itself.
	Request string
}
