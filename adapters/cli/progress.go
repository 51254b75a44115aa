package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"leapview/domain/plan"
)

// progress shows the steps of a refresh: one line for each that ended and, on a terminal, the one at work below them. It is used
// by one goroutine.
type progress struct {
	// w is nil when nothing is to be shown.
	w io.Writer
	// live tells that w is a terminal, whose last line can be written again.
	live bool
	// open tells that the last line is that of a step at work.
	open bool
	// brief leaves out the lines of steps that ended.
	brief bool
}

// phaseWords are what people read for phases whose own names say less.
var phaseWords = map[plan.Phase]string{plan.PhaseValidate: "check"}

func (p *program) progress() *progress {
	if p.json {
		return &progress{}
	}
	f, ok := p.stderr.(*os.File)
	return &progress{w: p.stderr, brief: p.brief, live: ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"}
}

// step shows one step. The end of the last phase is told by the line about what was activated.
func (s *progress) step(p plan.Progress) {
	if p.Phase == plan.PhaseActivate {
		return
	}
	if p.Warning != "" {
		s.line("warning: %s", printable(p.Warning))
	}
	word := phaseWords[p.Phase]
	if word == "" {
		word = string(p.Phase)
	}
	text := fmt.Sprintf("%-8s%s", word, p.Subject)
	switch {
	case p.Done && p.Rows >= 0:
		text = fmt.Sprintf("%-8s%-18s %11s rows", word, p.Subject, grouped(p.Rows))
		if p.Action != "" {
			text += fmt.Sprintf("  %s: %s", p.Action, printable(p.Reason))
		}
	case !p.Done && !s.live:
		return
	case !p.Done:
		text += " …"
	}
	text = strings.TrimRight(text, " ")
	if p.Done && s.brief {
		s.rewrite()
		return
	}
	if p.Done {
		s.line("%s", text)
		return
	}
	s.rewrite()
	s.print(text)
	s.open = true
}

// line shows a line that stays.
func (s *progress) line(format string, args ...any) {
	s.rewrite()
	s.print(fmt.Sprintf(format, args...) + "\n")
}

// rewrite goes back to the start of the line at work.
func (s *progress) rewrite() {
	if s.open {
		s.print("\r\x1b[K")
		s.open = false
	}
}

// close leaves the step at work on the screen, where it says how far things came.
func (s *progress) close() {
	if s.open {
		s.print("\n")
		s.open = false
	}
}

// print leaves progress out rather than fail the work that it tells of.
func (s *progress) print(text string) {
	if s.w != nil {
		_, _ = io.WriteString(s.w, text)
	}
}
