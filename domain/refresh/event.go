package refresh

import (
	"time"

	"leapview/domain/project"
	"leapview/domain/serving"
)

// Event is a past-tense fact. The control plane writes every event of one decision in one transaction, together with its audit
// row; logs and progress are made from the same values.
type Event interface {
	// EventName is stable and lower_snake_case; it is the audit's action.
	EventName() string
}

// WorkspaceCreated: the workspace exists from now on.
type WorkspaceCreated struct {
	At time.Time
	By string
}

// ReleaseAccepted: the node keeps this project bundle and compiled it without a problem.
type ReleaseAccepted struct {
	Release project.Digest
	Size    int64
	At      time.Time
	By      string
}

// Deployed: refreshes compile against this release from now on.
type Deployed struct {
	Deployment Deployment
}

// RunRequested: a durable job waits.
type RunRequested struct {
	Run Run
}

// AttemptBegan: a run is claimed by Owner, and its attempt has taken its fence on the workspace row. From here on the attempt
// protects whatever snapshot carries its mark.
type AttemptBegan struct {
	Candidate Begun
	Owner     string
	At        time.Time
}

// SourcesAcquired: the attempt has read these files and reads nothing else. Rows are how many each source had.
type SourcesAcquired struct {
	Candidate Begun
	Files     []SourceFile
	Rows      map[string]int64
	At        time.Time
}

// TableRecorded: a physical table may exist in the lake under this name. It is recorded before it is created.
type TableRecorded struct {
	Table string
	Model string
	Fence Fence
	At    time.Time
}

// CandidateCommitted: the attempt's mark was read back; its snapshot is protected as a candidate.
type CandidateCommitted struct {
	Candidate Committed
	At        time.Time
}

// CandidateSynced: every data file of the candidate is on disk.
type CandidateSynced struct {
	Candidate Durable
	At        time.Time
}

// CandidateValidated: every check passed at the candidate's snapshot.
type CandidateValidated struct {
	Candidate Validated
	At        time.Time
}

// CandidateOrphaned: the candidate was given up; its protection ends.
type CandidateOrphaned struct {
	Candidate Orphan
	// Checks are what was found, when that is why.
	Checks []CheckResult
	At     time.Time
}

// Activated: the serving pointer moved. Previous, when it was active, is held by a lease of Owner until that process retires
// its generation.
type Activated struct {
	Candidate Validated
	Previous  serving.Pointer
	Pointer   serving.Pointer
	Owner     string
}

// GenerationRetired: no request reads the generation any more; the lease that held its snapshot ends.
type GenerationRetired struct {
	Generation serving.GenerationNumber
	Owner      string
	At         time.Time
}

// RunRequeued: an attempt ended with its process; the run waits for another one.
type RunRequeued struct {
	Run RunID
	// Stopped tells that the node chose to stop, so that the attempt does not count as one that died.
	Stopped bool
	Reason  string
	At      time.Time
}

// RunEnded: the run reached a final status.
type RunEnded struct {
	Run     RunID
	Status  Status
	Failure Failure
	At      time.Time
}

// EventName is workspace_created.
func (WorkspaceCreated) EventName() string { return "workspace_created" }

// EventName is release_accepted.
func (ReleaseAccepted) EventName() string { return "release_accepted" }

// EventName is deployed.
func (Deployed) EventName() string { return "deployed" }

// EventName is run_requested.
func (RunRequested) EventName() string { return "run_requested" }

// EventName is attempt_began.
func (AttemptBegan) EventName() string { return "attempt_began" }

// EventName is sources_acquired.
func (SourcesAcquired) EventName() string { return "sources_acquired" }

// EventName is table_recorded.
func (TableRecorded) EventName() string { return "table_recorded" }

// EventName is candidate_committed.
func (CandidateCommitted) EventName() string { return "candidate_committed" }

// EventName is candidate_synced.
func (CandidateSynced) EventName() string { return "candidate_synced" }

// EventName is candidate_validated.
func (CandidateValidated) EventName() string { return "candidate_validated" }

// EventName is candidate_orphaned.
func (CandidateOrphaned) EventName() string { return "candidate_orphaned" }

// EventName is activated.
func (Activated) EventName() string { return "activated" }

// EventName is generation_retired.
func (GenerationRetired) EventName() string { return "generation_retired" }

// EventName is run_requeued.
func (RunRequeued) EventName() string { return "run_requeued" }

// EventName is run_ended.
func (RunEnded) EventName() string { return "run_ended" }
