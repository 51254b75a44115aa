package ports

import (
	"context"
	"time"

	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// Lake is the write side of the analytical store. All writing goes through the one build that Begin hands out at a time.
type Lake interface {
	// Begin takes the lake's single writer, waiting for it until ctx ends, and pins one connection to it. The caller closes the
	// build. The workspace's schema exists afterwards.
	Begin(ctx context.Context, workspace serving.Workspace) (Build, error)
	// Find looks the mark up in the catalog and gives the snapshot whose commit carries exactly it, and when it was committed.
	// found is false when no commit does: since each commit of ours changes something, the attempt then never committed.
	Find(ctx context.Context, mark refresh.Mark) (at serving.Snapshot, committedAt time.Time, found bool, err error)
	// Files lists every data file that these physical tables of the workspace, and the lake's own, need at the snapshot, as paths relative
	// to the data directory, slash-separated, sorted.
	Files(ctx context.Context, scope serving.Scope) ([]string, error)
	// Survey reads what the lake says of itself, to be proved against the control plane at start.
	Survey(ctx context.Context) (LakeSurvey, error)
}

// LakeSurvey is what a lake says of itself.
type LakeSurvey struct {
	// Lineage of the init mark; empty when there is none.
	Lineage string
	// HighestFence over all marks of ours.
	HighestFence refresh.Fence
	// Snapshots that can be read, ascending.
	Snapshots []serving.Snapshot
	// Marks are ours, by the snapshot whose commit carries them. A lake that went back in time hands out its newer ids again, so an
	// id alone proves nothing.
	Marks map[serving.Snapshot]refresh.Mark
}

// Build is one refresh's turn at the lake. It is used by one goroutine.
type Build interface {
	// Stage reads the artifacts of a source, as declared, into a table that only this build sees. Called again for the same source it adds
	// another part to it; parts are counted from 0. A row, file or header that does not fit the declaration is a project.Problems with the
	// artifact's own name and line. The source's bounds are the caller's to hold.
	Stage(ctx context.Context, source project.Source, artifacts []Artifact) (Staged, error)
	// Create makes the models' physical tables, empty, each in its own commit, and drops those of the workspace that are neither these
	// nor among the kept ones. A table that exists with its columns is left alone.
	Create(ctx context.Context, models []plan.Model, keep []string) error
	// Commit does the steps in order and commits them with the mark as one snapshot. A table that a step keeps, or works new files into,
	// is first brought back to what it is at the mark's base, whatever the lake's newest rows of it are. progress is called before and
	// after each model that is not kept, with the rows that were written for it. What Commit returns proves nothing: nil may hide a
	// rollback and an error may hide a commit, so the caller asks Find. A model's own error (its SQL, a cast that fails, a key that is
	// NULL or repeated) is a project.Problems.
	Commit(ctx context.Context, steps []plan.Step, mark refresh.Mark, progress func(plan.Progress)) error
	// Close gives the writer back and forgets everything staged. Twice is once.
	Close() error
}

// Staged is what a source brought in.
type Staged struct {
	Rows int64
	// Ignored are columns of its files that are not declared and were left out, sorted.
	Ignored []string
}

// Compiler turns a decoded project into a compiled release. It binds every statement against the declared columns of the sources
// and touches neither data nor lake.
type Compiler interface {
	// Compile gives the release, or project.Problems with all mistakes found, each at its line.
	Compile(ctx context.Context, id project.Digest, p project.Project) (plan.Release, error)
}

// Reader is the read side of the analytical store.
type Reader interface {
	// Prepare pins every relation of the statement to the scope's snapshot, proves it on the bound plan, and gives the query.
	// What cannot be proved is refused. params are bound as values of their declared types, by name.
	Prepare(ctx context.Context, scope serving.Scope, statement project.Statement, params []project.Param) (Query, error)
	// Open takes one connection and begins one read transaction on it. It does not wait for a connection: the caller has been
	// admitted, and too many readers at once is a defect that fails loudly. The caller closes the reading.
	Open(ctx context.Context) (Reading, error)
}

// Query is a prepared, proved statement. It never changes, is shared by goroutines, and lives as long as its generation.
type Query interface {
	// Columns that its answers have.
	Columns() []serving.Column
	// Shaped is the statement's query with the columns of its answers picked and their rows sorted. It is proved, too, before it first
	// runs. A shape is checked beforehand: a column that the statement does not have, or a repeated one, is an internal error.
	Shaped(shape serving.Shape) (Query, error)
}

// Reading is one connection within one read transaction. It is used by one goroutine.
type Reading interface {
	// Answer runs the query. It reads at most one row more than limits allow, and says so when it leaves rows out. A context
	// that ends stops the engine and gives a canceled error.
	Answer(ctx context.Context, q Query, args serving.Args, limits serving.Limits) (serving.Answer, error)
	// Close ends the transaction and gives the connection back; after any error the connection is discarded. Twice is once.
	Close() error
}
