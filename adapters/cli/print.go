package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// errorDoc is an error as --json prints it; its fields are those of the API's problem documents.
type errorDoc struct {
	Code     string       `json:"code"`
	Kind     string       `json:"kind"`
	Detail   string       `json:"detail"`
	Fix      string       `json:"fix,omitempty"`
	ExitCode int          `json:"exit_code"`
	Problems []mistakeDoc `json:"problems,omitempty"`
	Errors   []wrongDoc   `json:"errors,omitempty"`
	// Settings are what is wrong with settings.
	Settings []settingProblemDoc `json:"settings,omitempty"`
}

// printError writes err to standard error. There is nobody left to tell when that fails.
func (p *program) printError(err error) {
	var mistakes project.Problems
	errors.As(err, &mistakes)
	var wrong *project.CallError
	if !errors.As(err, &wrong) {
		wrong = &project.CallError{}
	}
	var settings app.SettingProblems
	errors.As(err, &settings)
	detail, fix := fail.DetailOf(err, true), fail.FixOf(err)
	if p.json {
		doc := errorDoc{fail.CodeOf(err), fail.KindOf(err).String(), detail, fix, exitCode(err), nil, nil, settingProblemsOf(settings)}
		for _, m := range mistakes {
			doc.Problems = append(doc.Problems, mistakeDoc{m.At.File, m.At.Line, m.At.Column, m.Message, m.Fix, m.Line})
		}
		for _, w := range wrong.Problems {
			doc.Errors = append(doc.Errors, wrongDoc{w.Pointer, w.Message, w.Allowed})
		}
		_ = json.NewEncoder(p.stderr).Encode(doc)
		return
	}
	_, _ = fmt.Fprintf(p.stderr, "leapview: %s\n", detail)
	for _, m := range mistakes {
		_, _ = fmt.Fprintf(p.stderr, "%s\n", m)
	}
	for _, x := range settings {
		_, _ = fmt.Fprintf(p.stderr, "%s\n", x)
	}
	for _, w := range wrong.Problems {
		_, _ = fmt.Fprintf(p.stderr, "  %s\n", w)
	}
	if fix != "" {
		_, _ = fmt.Fprintf(p.stderr, "  fix: %s\n", fix)
	}
}

func (p *program) print(format string, args ...any) error {
	return written(fmt.Fprintf(p.stdout, format, args...))
}

func (p *program) printJSON(doc any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return written(0, e.Encode(doc))
}

// hint writes a line for people to standard error.
func (p *program) hint(format string, args ...any) {
	if !p.json {
		_, _ = fmt.Fprintf(p.stderr, format+"\n", args...)
	}
}

func written(_ int, err error) error {
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// writeTable aligns the rows under the header. right tells which columns hold numbers.
func writeTable(w io.Writer, header []string, right []bool, rows [][]string) error {
	width := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line += "  "
			}
			if right[i] {
				line += pad + cell
			} else {
				line += cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return written(io.WriteString(w, b.String()))
}

// printable keeps data from moving the cursor of a terminal, and a cell on one line.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// grouped writes a count with a comma between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted is a count of things, with their name in the right number.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}
