package app

import (
	"fmt"
	"slices"
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

// byName are the artifacts by their names.
func byName(artifacts []ports.Artifact) map[string]ports.Artifact {
	named := make(map[string]ports.Artifact, len(artifacts))
	for _, a := range artifacts {
		named[a.Name] = a
	}
	return named
}

// chosen are the artifacts of a part.
func chosen(named map[string]ports.Artifact, part []plan.Artifact) []ports.Artifact {
	out := make([]ports.Artifact, len(part))
	for i, p := range part {
		out[i] = named[p.Name]
	}
	return out
}

// repeated says which of the source's files were not read because their content was; "" when all were.
func repeated(s project.Source, repeats []plan.Repeat) string {
	var names []string
	for _, r := range repeats {
		if r.Source == s.Name {
			names = append(names, fmt.Sprintf("%s (the same as %s)", r.Name, r.Same))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: files with the content of another one were read once: %s", s.At.File, listed(names))
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
	if len(staged.Ignored) == 0 {
		return ""
	}
	names := make([]string, len(staged.Ignored))
	for i, name := range staged.Ignored {
		names[i] = strconv.Quote(name)
	}
	return fmt.Sprintf("%s: columns that source %q does not declare were left out: %s", s.At.File, s.Name, listed(names))
}

// listed names the first few, and counts the others.
func listed(names []string) string {
	const most = 20
	if n := len(names); n > most {
		names = append(slices.Clip(names[:most]), fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(names, ", ")
}
