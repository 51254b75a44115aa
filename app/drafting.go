package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"leapview/domain/draft"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// DataFile is a file that a project is drafted from: where it is now, and where the project will find it.
type DataFile struct {
	// Root is an absolute directory, and Name the file's path below it, slash-separated.
	Root, Name string
	// Location is the file's path below the project's source root.
	Location string
}

// Drafted is a project that was written from a look at its data.
type Drafted struct {
	Name    string
	Sources []draft.Source
	// Files are the project's own, Readme is for people.
	Files  []project.File
	Readme string
}

// Draft looks at whole files and writes a project over them. What it gives was proved: the files stage as declared, and the project
// compiles.
func (a *Author) Draft(ctx context.Context, name string, files []DataFile) (_ Drafted, err error) {
	out := Drafted{Name: name}
	run := refresh.RunID(a.identity.NewID())
	defer func() { _ = a.sources.Release(context.WithoutCancel(ctx), run) }()
	var tables []draft.Table
	artifacts := make([]ports.Artifact, len(files))
	for i, f := range files {
		format, ok := formatOf(f.Name)
		if !ok {
			return out, fail.New(fail.Invalid, "unknown_ending", "%s: its ending does not say what kind of file it is", f.Name).
				WithFix("give files that end in .csv, .tsv, .txt, .parquet, .json, .ndjson or .jsonl; text files may be packed as .gz")
		}
		found, err := a.sources.Acquire(ctx, run, f.Root, project.Source{Name: fmt.Sprintf("file%d", i), Location: f.Name, Format: format})
		if err != nil {
			return out, err
		}
		artifacts[i] = found[0]
		t, err := a.examiner.Examine(ctx, format, found[0])
		if err != nil {
			return out, err
		}
		t.Location = f.Location
		tables = append(tables, t)
	}
	out.Sources = draft.Plan(tables)
	for i := range out.Sources {
		if err := a.holds(ctx, &out.Sources[i], artifacts[i]); err != nil {
			return out, err
		}
	}
	out.Files, out.Readme = draft.Files(name, out.Sources), draft.Readme(name, out.Sources)
	bundle, err := project.Pack(out.Files)
	if err != nil {
		return out, err
	}
	if _, err := a.Validate(ctx, bundle); err != nil {
		return out, fail.New(fail.Internal, "bad_draft", "the drafted project does not compile").Because(err)
	}
	return out, nil
}

// formatOf says by its ending what kind of file it is.
func formatOf(name string) (project.Format, bool) {
	name = strings.ToLower(name)
	zipped := strings.HasSuffix(name, ".gz")
	name = strings.TrimSuffix(name, ".gz")
	for _, e := range []string{".csv", ".tsv", ".txt"} {
		if strings.HasSuffix(name, e) {
			return project.CSV, true
		}
	}
	for _, e := range []string{".json", ".ndjson", ".jsonl"} {
		if strings.HasSuffix(name, e) {
			return project.JSON, true
		}
	}
	return project.Parquet, strings.HasSuffix(name, ".parquet") && !zipped
}

// holds proves that the file stages as it was declared. What the store reads otherwise than the examiner did is kept as text.
func (a *Author) holds(ctx context.Context, s *draft.Source, artifact ports.Artifact) error {
	for first := true; ; first = false {
		err := a.stages(ctx, s.Declared(), artifact)
		var problems project.Problems
		if err == nil || !errors.As(err, &problems) || !first {
			return err
		}
		s.AsText("a first reading of the types did not hold (" + problems[0].Message + ")")
	}
}

func (a *Author) stages(ctx context.Context, source project.Source, artifact ports.Artifact) (err error) {
	build, err := a.lake.Begin(ctx, "test")
	if err != nil {
		return err
	}
	defer func() {
		if e := build.Close(); err == nil {
			err = e
		}
	}()
	if _, err := build.Stage(ctx, source, []ports.Artifact{artifact}); err != nil {
		return err
	}
	return nil
}
