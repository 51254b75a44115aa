package ports

import (
	"context"

	"leapview/domain/draft"
	"leapview/domain/project"
)

// Examiner looks at whole source files, so that a project can be drafted from them.
type Examiner interface {
	// Examine reads every record of the file and gives what was seen of its columns. A file that cannot be a source of the format is
	// refused with the line that says so.
	Examine(ctx context.Context, format project.Format, a Artifact) (draft.Table, error)
}
