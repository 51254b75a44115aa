package project

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"leapview/domain/fail"
)

// The bounds of what project files say.
const (
	MaxSQLBytes        = 64 << 10
	MaxColumnNameBytes = 255
	MaxLocationBytes   = 1024
	MaxParams          = 100
	MaxNullTexts       = 100
	MaxRows            = 100_000
)

// defaultRows is how many rows an endpoint's answer may hold when it declares no limit.
const defaultRows = 1000

// maxProblems bounds how many problems one decoding reports.
const maxProblems = 100

// rootFile names the project and marks its folder.
const rootFile = "leapview.yaml"

// endings are the folders of project files, each with the ending of the files in it.
var endings = map[string]string{"sources": ".yaml", "models": ".sql", "endpoints": ".sql", "tests": ".yaml"}

// Decode turns project files into a project. documents parses their YAML; positions that it is given are what comes before its
// text. The error is Problems: every mistake in every file, sorted by place, each with its line.
func Decode(files []File, documents interface {
	Parse(text []byte, at Position) (Node, Problems)
}) (Project, error) {
	d := decoder{parse: documents.Parse}
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	found := false
	for i, f := range sorted {
		if i > 0 && sorted[i-1].Path == f.Path {
			d.report(Position{File: f.Path}, "the file is given twice", "")
			continue
		}
		found = found || f.Path == rootFile
		d.file(f)
	}
	if !found {
		d.report(Position{File: rootFile}, "the file is missing: it names the project", "write at least name: my_project in it")
	}
	d.across()
	if len(d.problems) > 0 {
		return Project{}, complete(d.problems, sorted)
	}
	return d.project, nil
}

// complete sorts the problems, bounds their number and adds their lines.
func complete(problems Problems, files []File) Problems {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.At.File, b.At.File); c != 0 {
			return c
		}
		if a.At.Line != b.At.Line {
			return a.At.Line - b.At.Line
		}
		return a.At.Column - b.At.Column
	})
	if len(problems) > maxProblems {
		more := len(problems) - maxProblems
		problems = append(problems[:maxProblems:maxProblems], Problem{At: problems[maxProblems].At,
			Message: fmt.Sprintf("here and after it are %d more problems", more), Fix: "correct the first ones and try again"})
	}
	return Lined(problems, files)
}

// Lined gives each problem that stands in one of the files the text of its line.
func Lined(problems Problems, files []File) Problems {
	problems = slices.Clone(problems)
	byPath := make(map[string]File, len(files))
	for _, f := range files {
		byPath[f.Path] = f
	}
	lines := map[string][]string{}
	for i, p := range problems {
		f, ok := byPath[p.At.File]
		if !ok || p.At.Line == 0 {
			continue
		}
		if lines[f.Path] == nil {
			lines[f.Path] = strings.Split(string(f.Content), "\n")
		}
		if all := lines[f.Path]; p.At.Line <= len(all) {
			problems[i].Line = lineText(all[p.At.Line-1])
		}
	}
	return problems
}

// lineText is a line fit to be shown: no carriage return, nothing that is not text, and empty when it is too long to help.
func lineText(line string) string {
	const longest = 300
	line = strings.TrimSuffix(line, "\r")
	if len(line) > longest || !utf8.ValidString(line) {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' || r == '\ufeff' {
			return '·'
		}
		return r
	}, line)
}

// decoder collects a project and all that is wrong with it.
type decoder struct {
	parse    func(text []byte, at Position) (Node, Problems)
	project  Project
	problems Problems
}

func (d *decoder) report(at Position, message, fix string) {
	d.problems = append(d.problems, Problem{At: at, Message: message, Fix: fix})
}

// Misplaced tells what is wrong with a file's path in a project; ok is true when nothing is.
func Misplaced(path string) (problem Problem, ok bool) {
	report := func(message, fix string) (Problem, bool) {
		return Problem{At: Position{File: path}, Message: message, Fix: fix}, false
	}
	folder, base, _ := strings.Cut(path, "/")
	ending, known := endings[folder]
	switch {
	case path == rootFile:
		return Problem{}, true
	case path == "leapview.yml":
		return report("the project's file has another name", "rename it to "+rootFile)
	case !known || base == "":
		fix := "a project holds leapview.yaml, sources/NAME.yaml, models/NAME.sql, endpoints/NAME.sql and tests/NAME.yaml"
		if s := Suggest(folder, slices.Sorted(maps.Keys(endings))); s != "" {
			fix = s
		}
		return report("the file has no place in a project", fix)
	}
	name, ended := strings.CutSuffix(base, ending)
	if !ended {
		right := "NAME"
		if stem, _, _ := strings.Cut(base, "."); ValidName(stem) {
			right = stem
		}
		return report(fmt.Sprintf("a file in %s ends in %s", folder, ending), fmt.Sprintf("rename it to %s/%s%s or move it elsewhere", folder, right, ending))
	}
	if !ValidName(name) {
		return report(fmt.Sprintf("%q cannot name one of the %s", name, folder),
			"use a lower-case letter, then at most 62 lower-case letters, digits or underscores, and no folders in between")
	}
	return Problem{}, true
}

// file decodes one file by its path.
func (d *decoder) file(f File) {
	if problem, ok := Misplaced(f.Path); !ok {
		d.problems = append(d.problems, problem)
		return
	}
	if !d.text(f) {
		return
	}
	folder, base, _ := strings.Cut(f.Path, "/")
	name := strings.TrimSuffix(base, endings[folder])
	switch folder {
	case rootFile:
		d.root(f)
	case "sources":
		d.source(name, f)
	case "models":
		d.model(name, f)
	case "endpoints":
		d.endpoint(name, f)
	case "tests":
		d.test(name, f)
	}
}

// across checks what takes more than one file to see.
func (d *decoder) across() {
	if len(d.problems) == 0 && len(d.project.Models) == 0 {
		d.report(Position{File: rootFile}, "the project has no models, so a refresh would have nothing to build", "add models/NAME.sql")
	}
	sources := map[string]bool{}
	for _, s := range d.project.Sources {
		sources[s.Name] = true
	}
	for _, m := range d.project.Models {
		if sources[m.Name] {
			d.report(m.At, fmt.Sprintf("a source is called %q too, and SQL could not tell them apart", m.Name), "rename one of them")
		}
	}
	var models, endpoints []string
	for _, m := range d.project.Models {
		models = append(models, m.Name)
	}
	for _, e := range d.project.Endpoints {
		endpoints = append(endpoints, e.Name)
	}
	for i, t := range d.project.Tests {
		// All cases of a file have one subject.
		if i > 0 && d.project.Tests[i-1].File == t.File {
			continue
		}
		what, name, known := "model", t.Model, models
		if t.Endpoint != "" {
			what, name, known = "endpoint", t.Endpoint, endpoints
		}
		if name != "" && !slices.Contains(known, name) && !d.broken(what+"s/"+name+".sql") {
			d.report(t.SubjectAt, fmt.Sprintf("the project has no %s %s", what, show(name)), Suggest(name, known))
		}
	}
}

// broken tells whether a file has problems of its own, so that what it declares is not known.
func (d *decoder) broken(file string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool { return p.At.File == file })
}

// text refuses a file that is not plain UTF-8.
func (d *decoder) text(f File) bool {
	if bytes.HasPrefix(f.Content, []byte("\ufeff")) {
		d.report(Position{f.Path, 1, 1}, "the file begins with a byte order mark", "save it as UTF-8 without one")
		return false
	}
	line, column := 1, 1
	for i := 0; i < len(f.Content); {
		r, size := utf8.DecodeRune(f.Content[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			d.report(Position{f.Path, line, column}, "the file is not UTF-8 text", "save it as UTF-8")
			return false
		case r == 0:
			d.report(Position{f.Path, line, column}, "the file has a NUL character", "remove it")
			return false
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
		i += size
	}
	return true
}

// yaml parses text that begins lines after the file's first one.
func (d *decoder) yaml(file string, text []byte, lines int) (Node, bool) {
	n, problems := d.parse(text, Position{File: file, Line: lines})
	d.problems = append(d.problems, problems...)
	return n, len(problems) == 0
}

func (d *decoder) root(f File) {
	n, ok := d.yaml(f.Path, f.Content, 0)
	if !ok {
		return
	}
	m := d.mapping(n, "the project", []string{"name", "description"}, "schedules", "retention", "limits")
	d.project.Description = d.optionalText(m, "description")
	v, ok := m.required("name")
	if !ok {
		return
	}
	name, ok := d.scalarText(v, "name")
	if ok && !ValidName(name) {
		d.report(v.At, fmt.Sprintf("%q cannot name a project", name), "use a lower-case letter, then at most 62 lower-case letters, digits or underscores")
	}
	d.project.Name = name
}

// opening and closing enclose the YAML at the head of an SQL file.
const (
	opening = "/*---"
	closing = "---*/"
)

// sql splits an SQL file into the YAML of its leading comment and the statement after it.
func (d *decoder) sql(f File) (head Node, statement Statement, ok bool) {
	text := string(f.Content)
	body := 0
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	head = Node{Kind: MappingNode, At: Position{f.Path, 1, 1}}
	from := Statement{SQL: text, At: Position{f.Path, 1, 1}}
	if strings.HasPrefix(text[start:], opening) {
		rest := text[start+len(opening):]
		line, after, _ := strings.Cut(rest, "\n")
		end := strings.Index(after, "*/")
		switch {
		case strings.TrimSpace(line) != "":
			d.report(from.PositionOf(start), opening+" does not stand alone on its line", "begin the YAML on the next line")
			return head, statement, false
		case end < 0:
			d.report(from.PositionOf(start), "the comment never ends", "end it with "+closing)
			return head, statement, false
		case !strings.HasSuffix(after[:end], strings.TrimSuffix(closing, "*/")):
			offset := len(text) - len(after) + end
			d.report(from.PositionOf(offset), "the comment that begins with "+opening+" ends with */", "end it with "+closing)
			return head, statement, false
		}
		yaml := after[:end+len("*/")-len(closing)]
		body = len(text) - len(after) + end + len("*/")
		n, parsed := d.yaml(f.Path, []byte(yaml), from.PositionOf(len(text)-len(after)).Line-1)
		if !parsed {
			return head, statement, false
		}
		head = n
	} else if at := misplaced(text, start); at >= 0 {
		d.report(from.PositionOf(at), "this comment would not be read as the file's YAML", "begin the file with "+opening+" on a line of its own")
		return head, statement, false
	}
	body += len(text[body:]) - len(strings.TrimLeftFunc(text[body:], unicode.IsSpace))
	sql := strings.TrimRightFunc(text[body:], unicode.IsSpace)
	// A last semicolon ends the statement, or a comment, and says nothing.
	sql = strings.TrimRightFunc(strings.TrimSuffix(sql, ";"), unicode.IsSpace)
	switch {
	case sql == "":
		d.report(from.PositionOf(body), "the file has no SQL", "write one SELECT")
		return head, statement, false
	case len(sql) > MaxSQLBytes:
		d.report(from.PositionOf(body), fmt.Sprintf("the SQL has %d bytes (limit sql_bytes = %d)", len(sql), MaxSQLBytes), "split it into several models")
		return head, statement, false
	}
	return head, Statement{SQL: sql, At: from.PositionOf(body)}, true
}

// misplaced finds a comment that was meant to hold YAML and does not: one that is not first, or whose opening is misspelt. It
// gives -1 when there is none.
func misplaced(text string, start int) int {
	if at := strings.Index(text, opening); at >= 0 {
		return at
	}
	if inner, ok := strings.CutPrefix(text[start:], "/*"); ok && strings.HasPrefix(strings.TrimSpace(inner), "--") {
		return start
	}
	return -1
}

// fields are the entries of a mapping by key.
type fields struct {
	d      *decoder
	at     Position
	what   string
	values map[string]Node
	// ok tells that the node was a mapping.
	ok bool
}

// mapping decodes a mapping whose keys are all known. later are keys that a coming version knows.
func (d *decoder) mapping(n Node, what string, known []string, later ...string) fields {
	m := fields{d: d, at: n.At, what: what, values: map[string]Node{}, ok: n.Kind == MappingNode}
	if !m.ok {
		d.report(n.At, fmt.Sprintf("%s must be a mapping, and is %s", what, n.Kind), "write key: value, with the keys "+strings.Join(known, ", "))
		return m
	}
	for _, e := range n.Entries {
		key := e.Key.Text
		_, repeated := m.values[key]
		switch {
		case e.Key.Kind != StringNode:
			d.report(e.Key.At, "a key must be a string, and is "+e.Key.Kind.String(), "")
		case repeated:
			d.report(e.Key.At, fmt.Sprintf("key %q is given twice", key), "remove one")
		case slices.Contains(later, key):
			d.report(e.Key.At, fmt.Sprintf("key %q of %s is not built yet", key, what), "remove it")
		case !slices.Contains(known, key):
			d.report(e.Key.At, fmt.Sprintf("%s has no key %s", what, show(key)), hint(key, known))
		default:
			m.values[key] = e.Value
		}
	}
	return m
}

// hint suggests the nearest of the known words, or names them all.
func hint(got string, known []string) string {
	if s := Suggest(got, known); s != "" {
		return s
	}
	return "known are " + strings.Join(known, ", ")
}

// get gives the value of a key that may be absent.
func (m fields) get(key string) (Node, bool) {
	n, ok := m.values[key]
	return n, ok
}

// required gives the value of a key that may not be absent.
func (m fields) required(key string) (Node, bool) {
	n, ok := m.values[key]
	if !ok && m.ok {
		m.d.report(m.at, fmt.Sprintf("%s needs the key %q", m.what, key), "")
	}
	return n, ok
}

// optionalText gives the string of a key, or "".
func (d *decoder) optionalText(m fields, key string) string {
	v, ok := m.get(key)
	if !ok {
		return ""
	}
	s, _ := d.scalarText(v, key)
	return s
}

// scalarText gives a string node's text. What YAML reads as something else is refused, since it may not be what its author meant.
func (d *decoder) scalarText(v Node, what string) (string, bool) {
	if v.Kind == StringNode {
		return v.Text, true
	}
	fix := ""
	if v.Kind == IntegerNode || v.Kind == FloatNode || v.Kind == BooleanNode {
		fix = fmt.Sprintf("put it in quotes: %q", v.Text)
	}
	d.report(v.At, fmt.Sprintf("%s must be a string, and is %s", what, v.Kind), fix)
	return "", false
}

// integer gives an integer in plain decimal digits.
func (d *decoder) integer(v Node, what string) (int64, bool) {
	if v.Kind != IntegerNode {
		d.report(v.At, fmt.Sprintf("%s must be an integer, and is %s", what, v.Kind), "")
		return 0, false
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		d.report(v.At, fmt.Sprintf("%s must be an integer of 64 bits in plain decimal digits, and is %s", what, show(v.Text)), "")
		return 0, false
	}
	return n, true
}

// list gives the items of a list.
func (d *decoder) list(v Node, what string) []Node {
	if v.Kind != ListNode {
		d.report(v.At, fmt.Sprintf("%s must be a list, and is %s", what, v.Kind), "write [a, b], or one item a line after a dash")
		return nil
	}
	return v.Items
}

// choice gives one of the known words, or "". later are words that a coming version knows.
func (d *decoder) choice(v Node, what string, known []string, later ...string) string {
	s, ok := d.scalarText(v, what)
	switch {
	case !ok:
	case slices.Contains(known, s):
		return s
	case slices.Contains(later, s):
		d.report(v.At, fmt.Sprintf("%s %s is not built yet", what, s), "known are "+strings.Join(known, ", "))
	default:
		d.report(v.At, fmt.Sprintf("%s cannot be %s", what, show(s)), hint(s, known))
	}
	return ""
}

// refused reports an error of this package at the place that it is about.
func (d *decoder) refused(at Position, err error) {
	var e *fail.Error
	if errors.As(err, &e) {
		d.report(at, e.Message, e.Fix)
	} else {
		d.report(at, err.Error(), "")
	}
}
