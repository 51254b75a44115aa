package plan

import (
	"fmt"
	"slices"
	"strings"

	"leapview/domain/project"
)

// InputOf is the source whose files fill the model's table one by one, or what is wrong with it: the one that the model names, or the only
// one that it reads.
func InputOf(m Model, p project.Project) (string, project.Problems) {
	var sources []string
	for _, s := range p.Sources {
		if slices.Contains(m.Reads, s.Name) {
			sources = append(sources, s.Name)
		}
	}
	f := m.Filling
	problem := func(at project.Position, fix, format string, args ...any) (string, project.Problems) {
		return "", project.Problems{{At: at, Message: fmt.Sprintf(format, args...), Fix: fix}}
	}
	switch {
	case len(sources) == 0:
		return problem(m.Statement.At, "read a source, or write mode: full", "model %q reads no source, and mode %s works new files of one into its table", m.Name, f.Mode)
	case f.Input != "" && !slices.Contains(sources, f.Input):
		return problem(f.InputAt, project.Suggest(f.Input, sources), "model %q does not read a source %q", m.Name, f.Input)
	case f.Input != "":
		return f.Input, nil
	case len(sources) > 1:
		return problem(m.Statement.At, "write for example input: "+sources[0], "model %q reads the sources %s, and does not say which one's files fill its table", m.Name, strings.Join(sources, ", "))
	}
	return sources[0], nil
}

// KeyProblems are what is wrong with the columns that the model's key names.
func KeyProblems(m Model) project.Problems {
	var problems project.Problems
	names := make([]string, len(m.Columns))
	for i, c := range m.Columns {
		names[i] = c.Name
	}
	for _, k := range m.Filling.Key {
		i := slices.Index(names, k)
		switch {
		case i < 0:
			problems = append(problems, project.Problem{At: m.Filling.KeyAt, Message: fmt.Sprintf("model %q has no column %q to find rows by", m.Name, k), Fix: project.Suggest(k, names)})
		case m.Columns[i].Type == "DOUBLE":
			problems = append(problems, project.Problem{At: m.Filling.KeyAt, Message: fmt.Sprintf("column %q of model %q is DOUBLE, and numbers that are only near each other find no rows", k, m.Name),
				Fix: "declare it DECIMAL, or name another column"})
		}
	}
	return problems
}
