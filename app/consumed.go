package app

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/ports"
)

// consumed is what an attempt read, in the order of the sources.
func consumed(sources []project.Source, artifacts map[string][]ports.Artifact) []refresh.SourceFile {
	var files []refresh.SourceFile
	for _, s := range sources {
		for _, a := range artifacts[s.Name] {
			files = append(files, refresh.SourceFile{Source: s.Name, Name: a.Name, Size: a.Size, SHA256: a.SHA256})
		}
	}
	return files
}

// known are the artifacts as work is decided over them.
func known(artifacts map[string][]ports.Artifact) map[string][]plan.Artifact {
	files := map[string][]plan.Artifact{}
	for source, list := range artifacts {
		for _, a := range list {
			files[source] = append(files[source], plan.Artifact{Name: a.Name, SHA256: a.SHA256})
		}
	}
	return files
}

// chosen are the artifacts of a part.
func chosen(artifacts []ports.Artifact, part []plan.Artifact) []ports.Artifact {
	var out []ports.Artifact
	for _, p := range part {
		for _, a := range artifacts {
			if a.Name == p.Name {
				out = append(out, a)
			}
		}
	}
	return out
}

// repeated says which of the source's files were not read because their content was; "" when all were.
func repeated(s project.Source, repeats []plan.Repeat) string {
	const most = 20
	var names []string
	for _, r := range repeats {
		if r.Source == s.Name {
			names = append(names, fmt.Sprintf("%s (the same as %s)", r.Name, r.Same))
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > most:
		names = append(names[:most], fmt.Sprintf("and %d more", n-most))
	}
	return fmt.Sprintf("%s: files with the content of another one were read once: %s", s.At.File, strings.Join(names, ", "))
}

// newest is when the last written of the files was written.
func newest(artifacts []ports.Artifact) time.Time {
	var at time.Time
	for _, a := range artifacts {
		if a.Modified.After(at) {
			at = a.Modified
		}
	}
	return at
}

// leftOut says which columns of a source's files were left out; "" when none were.
func leftOut(s project.Source, staged ports.Staged) string {
	const most = 20
	names := make([]string, 0, most)
	for _, name := range staged.Ignored[:min(len(staged.Ignored), most)] {
		names = append(names, strconv.Quote(name))
	}
	switch n := len(staged.Ignored); {
	case n == 0:
		return ""
	case n > most:
		names = append(names, fmt.Sprintf("and %d more", n-most))
	}
	return fmt.Sprintf("%s: columns that source %q does not declare were left out: %s", s.At.File, s.Name, strings.Join(names, ", "))
}
