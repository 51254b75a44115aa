package app

import "time"

// AskLimits bound what one request may take.
type AskLimits struct {
	// Bytes is the most that the rows of one request may take, encoded, over all of its answers.
	Bytes int64
	// Calls is the most endpoint calls of one query bundle.
	Calls int
	// Time is the longest that one request may take, its waiting included.
	Time time.Duration
}

// Limits are the bounds of a node that its operator sets. DefaultLimits makes the ones to begin with.
type Limits struct {
	Ask AskLimits
	// QuerySlots is how many readings are open at once; 0 derives it from the engine's threads. QueryQueue is how many requests wait for one.
	QuerySlots, QueryQueue int
	// Requests is how many requests to the API are worked on at a time.
	Requests int
	// BodyBytes bounds a request's body, a deployment's excepted.
	BodyBytes int64
	// SourceFiles and SourceBytes bound what one source brings in.
	SourceFiles int
	SourceBytes int64
}

// MostBodyBytes is the longest body that any node takes, whatever its operator says.
const MostBodyBytes = 64 << 20

// DefaultLimits are the bounds of a node whose operator says nothing.
func DefaultLimits() Limits { return DefaultSettings().Limits }
