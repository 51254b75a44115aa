// Package serving owns what an answer comes from: the pointer that names a workspace's active snapshot, the generation built
// over it, the leases that hold a generation while requests read it, and the shape and bounds of an answer.
//
// Invariant: everything read for one request comes from one generation, and a generation names exactly one snapshot. The
// package does not know how a snapshot is read or how an answer travels.
package serving

import (
	"slices"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// Workspace is a served project's name; it also names its schema in the lake.
type Workspace string

// ParseWorkspace refuses what cannot name a workspace.
func ParseWorkspace(s string) (Workspace, error) {
	if !project.ValidName(s) {
		return "", fail.New(fail.Invalid, "bad_workspace_name", "%q cannot name a workspace", s).
			WithFix("use a lower-case letter, then at most 62 lower-case letters, digits or underscores")
	}
	return Workspace(s), nil
}

// Snapshot is an immutable version of the lake. 0 names no snapshot: the lake's own first version is never served.
type Snapshot int64

// GenerationNumber counts a workspace's activations from 1. 0 means that nothing was ever activated.
type GenerationNumber int64

// Pointer is a workspace's durable serving pointer. Its zero value means that nothing is active.
type Pointer struct {
	Generation  GenerationNumber
	Snapshot    Snapshot
	Release     project.Digest
	PlanDigest  project.Digest
	Run         string
	BuiltAt     time.Time
	ActivatedAt time.Time
	ActivatedBy string
	// Tables maps each model of the release to its physical table in the workspace's schema.
	Tables map[string]string
}

// Active tells whether the pointer names a snapshot.
func (p Pointer) Active() bool { return p.Snapshot > 0 }

// Scope is what a statement may see: one workspace at one snapshot, its models under their physical names.
type Scope struct {
	Workspace Workspace
	Snapshot  Snapshot
	Tables    map[string]string
}

// Scope is the pointer's scope for serving.
func (p Pointer) Scope(w Workspace) Scope {
	return Scope{Workspace: w, Snapshot: p.Snapshot, Tables: p.Tables}
}

// Limits bound one answer. Both are at least 1.
type Limits struct {
	Rows  int
	Bytes int
}

// The bounds that an answer's TruncationReason names, as callers read them.
const (
	RowLimit  = "row_limit"
	ByteLimit = "byte_limit"
)

// Column is one column of an answer: its name and its engine type.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Answer is a bounded result.
type Answer struct {
	Columns []Column
	// Rows is a JSON array with one array a row, in column order. Numbers are exact; DECIMAL and integers are JSON numbers
	// with all their digits; TIMESTAMPTZ is RFC 3339 with Z, TIMESTAMP the same without an offset; NaN and infinities are null
	// and counted in Warnings.
	Rows []byte
	// Count is how many rows Rows holds.
	Count int
	// Truncated tells that the statement had more rows than were returned; TruncationReason is then RowLimit or ByteLimit,
	// and else empty.
	Truncated        bool
	TruncationReason string
	Warnings         []string
}

// Value is a bound parameter: canonical text, a list of canonical texts, or NULL.
type Value = project.Value

// Args are a call's parameter values by name, complete and already validated.
type Args map[string]Value

// Shape is which of a query's columns an answer has, and how its rows are sorted. The zero value is all of them in the statement's
// own order.
type Shape struct {
	// Columns are names of the query's columns, each at most once; empty means all.
	Columns []string
	// Order sorts by columns of the query, whether they are part of the answer or not. NULL sorts last.
	Order []project.Order
}

// Whole tells that the shape changes nothing.
func (s Shape) Whole() bool { return len(s.Columns) == 0 && len(s.Order) == 0 }

// Of gives the columns of answers in this shape, of a query that has these columns. Whoever made the shape has checked it: what
// does not fit is a defect.
func (s Shape) Of(columns []Column) ([]Column, error) {
	find := func(name string) (Column, error) {
		for _, c := range columns {
			if c.Name == name {
				return c, nil
			}
		}
		return Column{}, fail.New(fail.Internal, "foreign_column", "the query has no column %q", name)
	}
	for _, o := range s.Order {
		if _, err := find(o.Column); err != nil {
			return nil, err
		}
	}
	if len(s.Columns) == 0 {
		return columns, nil
	}
	picked := make([]Column, len(s.Columns))
	for i, name := range s.Columns {
		var err error
		if picked[i], err = find(name); err != nil {
			return nil, err
		}
		if slices.Contains(s.Columns[:i], name) {
			return nil, fail.New(fail.Internal, "repeated_column", "the column %q was picked twice", name)
		}
	}
	return picked, nil
}
