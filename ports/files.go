package ports

import (
	"context"
	"time"

	"leapview/domain/project"
	"leapview/domain/refresh"
)

// Artifact is one finalized source file, staged for one run.
type Artifact struct {
	// Name is the path that the author knows: relative to the source root, slash-separated. Errors name it.
	Name string
	// Path is the absolute path of the staged copy, which the engine reads.
	Path   string
	Size   int64
	SHA256 project.Digest
	// Modified is when the source file was last written.
	Modified time.Time
}

// Sources acquires declared source files.
type Sources interface {
	// Acquire copies every file that the source's location matches below root into the run's staging folder, computing size and
	// digest on the way, and gives them sorted by name. A location that matches nothing, leaves root (also through a link), or
	// exceeds a bound, the source's own or the node's, is refused, and so is a file that changes while it is copied.
	Acquire(ctx context.Context, run refresh.RunID, root string, source project.Source) ([]Artifact, error)
	// Write stages content of our own for the source, as if it had been acquired under the name. What the run staged for the same
	// source before is replaced.
	Write(ctx context.Context, run refresh.RunID, source project.Source, name string, content []byte) (Artifact, error)
	// Release removes what was staged for the run. Twice is once.
	Release(ctx context.Context, run refresh.RunID) error
}

// DataFiles is the disk under the lake's Parquet files.
type DataFiles interface {
	// Seal makes each file and every folder above it durable, then gives its size and digest. paths are relative to the data
	// directory. When it returns without an error, a power cut loses none of them.
	Seal(ctx context.Context, paths []string) ([]refresh.File, error)
	// Prove checks that each file is there with its recorded size, and names the first that is not (kind corrupt).
	Prove(ctx context.Context, files []refresh.File) error
}

// Bundles keeps project bundles by digest.
type Bundles interface {
	// Put stores the bundle durably under its digest. Twice is once.
	Put(ctx context.Context, bundle []byte) (project.Digest, error)
	// Get gives the bundle's bytes, proved against the digest. One that is not there or has another digest is corrupt: only what was
	// stored is asked for.
	Get(ctx context.Context, id project.Digest) ([]byte, error)
}

// Watermark keeps the highest fence issued outside the control plane, where a control plane that went back in time cannot take
// it along.
type Watermark interface {
	// Raise stores the fence durably before it returns, unless a higher one is stored already.
	Raise(ctx context.Context, fence refresh.Fence) error
	// Highest is the highest fence stored, or 0.
	Highest(ctx context.Context) (refresh.Fence, error)
}

// Documents parses the YAML of project files.
type Documents interface {
	// Parse turns text into a tree of nodes with positions in file, counted from line and column 1 plus at's. Empty text is an
	// empty mapping. Text that is no YAML, or more than one document, is a problem. It never executes or resolves anything:
	// anchors, aliases and tags are problems.
	Parse(text []byte, at project.Position) (project.Node, project.Problems)
}
