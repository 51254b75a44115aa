package project

import (
	"fmt"
	"strings"

	"leapview/domain/fail"
)

// Problem is one mistake in a project file, or one row of a source that does not fit its declaration.
type Problem struct {
	At Position
	// Message says what is wrong and why.
	Message string
	// Fix says what to write instead; may be empty.
	Fix string
	// Line is the text of the line at At, when it is known.
	Line string
}

// String is the problem on one line, followed by the source line and a caret when the line is known.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", p.At, p.Message)
	if p.Fix != "" {
		fmt.Fprintf(&b, "; %s", p.Fix)
	}
	if p.Line != "" && p.At.Column > 0 {
		pad := make([]rune, 0, p.At.Column)
		for i, r := range []rune(p.Line) {
			if i >= p.At.Column-1 {
				break
			}
			if r == '\t' {
				pad = append(pad, '\t')
			} else {
				pad = append(pad, ' ')
			}
		}
		fmt.Fprintf(&b, "\n    %s\n    %s^", p.Line, string(pad))
	}
	return b.String()
}

// Problems is every mistake found, all at once. It is an error of kind Invalid.
type Problems []Problem

// Error lists the problems, one after another.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// FailKind is Invalid.
func (ps Problems) FailKind() fail.Kind { return fail.Invalid }

// FailCode is invalid_project.
func (ps Problems) FailCode() string { return "invalid_project" }

// FailSummary counts the problems, for where they are listed apart.
func (ps Problems) FailSummary() string {
	if len(ps) == 1 {
		return "1 problem was found"
	}
	return fmt.Sprintf("%d problems were found", len(ps))
}
