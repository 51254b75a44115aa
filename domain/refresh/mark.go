// Package refresh owns the protocol that turns a deployed release into an activated snapshot: runs and their attempts, the
// fence that decides between them, the states a candidate passes through, and the decisions over a workspace's durable state.
//
// Invariants: a candidate is exactly one of Begun, Committed, Durable, Validated, Orphan, and each holds only what exists by
// then; only a Validated candidate can be activated; a state changes only through the transitions here, each of which gives the
// events that the control plane writes in one transaction; an older fence never wins. The package reads no clock and does no
// I/O: times and ids are arguments, and what the lake really holds is told to it.
package refresh

import (
	"encoding/json"
	"fmt"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// RunID identifies a run: a durable job asking for one refresh.
type RunID string

// Fence is the rising number that an attempt takes when it begins. It is issued from 1 for the whole node, so that one durable
// number outside the control plane can witness the highest; 0 is refused wherever a fence is read.
type Fence int64

// MarkKind says what kind of commit of ours a mark is on.
type MarkKind string

// The kinds of commits we make in the lake.
const (
	MarkInit    MarkKind = "init"
	MarkRefresh MarkKind = "refresh"
)

// Mark identifies one attempt. It is written into the lake commit that the attempt makes, and reading it back from the catalog
// is the only proof that the commit happened.
type Mark struct {
	Kind      MarkKind          `json:"kind"`
	Lineage   string            `json:"lineage"`
	Workspace serving.Workspace `json:"workspace,omitempty"`
	Run       RunID             `json:"run,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	Fence     Fence             `json:"fence,omitempty"`
	Base      serving.Snapshot  `json:"base"`
	Release   project.Digest    `json:"release,omitempty"`
	Plan      project.Digest    `json:"plan,omitempty"`
}

// Encode is the mark's one text; equal marks have equal texts, so a mark is looked up by equality.
func (m Mark) Encode() string {
	b, err := json.Marshal(m)
	if err != nil {
		// Strings and integers always marshal.
		panic(err)
	}
	return string(b)
}

// ParseMark reads a commit's extra info. ok is false when the text is not a mark of ours.
func ParseMark(s string) (m Mark, ok bool) {
	if json.Unmarshal([]byte(s), &m) != nil || m.Kind == "" || m.Lineage == "" {
		return Mark{}, false
	}
	return m, m.Encode() == s
}

// validate refuses a refresh mark that no attempt of ours can have.
func (m Mark) validate() error {
	switch {
	case m.Kind != MarkRefresh, m.Lineage == "", m.Workspace == "", m.Run == "", m.Attempt < 1, m.Fence < 1, m.Base < 0, m.Release == "", m.Plan == "":
		return fail.New(fail.Corrupt, "bad_attempt", "an attempt cannot be identified by %s", m.Encode())
	}
	return nil
}

// String names the attempt for people.
func (m Mark) String() string {
	return fmt.Sprintf("run %s attempt %d (fence %d)", m.Run, m.Attempt, m.Fence)
}
