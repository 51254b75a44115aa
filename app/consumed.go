package app

import (
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
