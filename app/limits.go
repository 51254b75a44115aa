package app

import (
	"fmt"
	"math"
	"strings"
	"time"
)

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
	// BodyBytes bounds a request's body, a deployment's excepted.
	BodyBytes int64
	// SourceFiles and SourceBytes bound what one source brings in.
	SourceFiles int
	SourceBytes int64
}

// Limit is one row of the table that flags, their help, defaults and checks are made of.
type Limit struct {
	// Name is what errors call the bound; Flag follows from it.
	Name string
	// Meaning is for help; of a count, what is counted.
	Meaning string
	// Default, Least and Most are a count, bytes or nanoseconds, as the type of Value says.
	Default, Least, Most int64
	// Refresh tells that a refresh without a node keeps to it as well.
	Refresh bool
	// Value is where the bound is in l: an *int when it is a count, an *int64 when it is bytes, or a *time.Duration.
	Value func(l *Limits) any
}

// LimitTable are all bounds of a node that its operator sets.
var LimitTable = []Limit{
	{"query_slots", "requests that read at once, at most; 0 means twice the threads", 0, 1, 1024, false, func(l *Limits) any { return &l.QuerySlots }},
	{"query_queue", "requests that wait for their turn to read, at most", 256, 1, 100_000, false, func(l *Limits) any { return &l.QueryQueue }},
	{"query_time", "longest time that one request may take, its waiting included", int64(30 * time.Second), int64(100 * time.Millisecond), int64(24 * time.Hour), false,
		func(l *Limits) any { return &l.Ask.Time }},
	{"bundle_calls", "endpoint calls of one query bundle, at most", 32, 1, 1000, false, func(l *Limits) any { return &l.Ask.Calls }},
	{"answer_bytes", "most bytes that the rows of one request's answers may take", 16 << 20, 1 << 10, 1 << 30, false, func(l *Limits) any { return &l.Ask.Bytes }},
	{"body_bytes", "most bytes of one request's body", 1 << 20, 1 << 10, MostBodyBytes, false, func(l *Limits) any { return &l.BodyBytes }},
	{"source_files", "files of one source, at most", 1000, 1, 100_000, true, func(l *Limits) any { return &l.SourceFiles }},
	{"source_bytes", "most bytes of the files of one source together", 16 << 30, 1 << 10, math.MaxInt64 / 2, true, func(l *Limits) any { return &l.SourceBytes }},
}

// MostBodyBytes is the longest body that any node takes, whatever its operator says.
const MostBodyBytes = 64 << 20

// Flag is the bound's name on the command line.
func (l Limit) Flag() string { return strings.ReplaceAll(l.Name, "_", "-") }

// DefaultLimits are the bounds of a node whose operator says nothing.
func DefaultLimits() Limits {
	var l Limits
	for _, row := range LimitTable {
		switch v := row.Value(&l).(type) {
		case *int:
			*v = int(row.Default)
		case *int64:
			*v = row.Default
		case *time.Duration:
			*v = time.Duration(row.Default)
		}
	}
	return l
}

// Problems names every bound that is out of its own bounds.
func (l Limits) Problems() []string {
	var problems []string
	for _, row := range LimitTable {
		var value int64
		told := func(n int64) string { return fmt.Sprint(n) }
		switch v := row.Value(&l).(type) {
		case *int:
			value = int64(*v)
		case *int64:
			value = *v
			told = func(n int64) string { return fmt.Sprintf("%d bytes", n) }
		case *time.Duration:
			value = int64(*v)
			told = func(n int64) string { return time.Duration(n).String() }
		}
		if value < row.Least || value > row.Most {
			problems = append(problems, fmt.Sprintf("%s: %s is not from %s to %s", row.Flag(), told(value), told(row.Least), told(row.Most)))
		}
	}
	return problems
}
