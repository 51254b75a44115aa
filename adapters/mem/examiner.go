package mem

import (
	"bytes"
	"context"
	"strings"

	"leapview/domain/draft"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// Examiner is the in-memory twin of the examiner, for text formats. Content gives the bytes of a staged artifact.
type Examiner struct {
	Content func(ports.Artifact) ([]byte, error)
}

var _ ports.Examiner = Examiner{}

// Examine is ports.Examiner's.
func (x Examiner) Examine(ctx context.Context, format project.Format, a ports.Artifact) (draft.Table, error) {
	if err := ended(ctx); err != nil {
		return draft.Table{}, err
	}
	content, err := x.Content(a)
	if err != nil {
		return draft.Table{}, err
	}
	if strings.HasSuffix(a.Name, ".gz") {
		if content, err = gunzip(a.Name, content); err != nil {
			return draft.Table{}, err
		}
	}
	switch format {
	case project.CSV:
		return draft.ReadCSV(a.Name, bytes.NewReader(content))
	case project.JSON, project.NDJSON:
		return draft.ReadJSON(a.Name, bytes.NewReader(content))
	case project.Parquet:
	}
	return draft.Table{}, fail.New(fail.Invalid, "unknown_format", "the in-memory examiner does not read %s", format)
}
