package lake

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"leapview/domain/project"
	"leapview/ports"
)

// maxObject bounds one JSON record in bytes.
const maxObject = 16 << 20

// stageJSON reads an array of objects, or one object after another. The engine's JSON reader rounds numbers, takes keys twice and
// lets bad syntax pass, so each file is taken apart here: every value becomes a field with the very text it was written in.
func (b *build) stageJSON(ctx context.Context, s *staged, artifacts []ports.Artifact) error {
	source := s.source
	ignored := make([][]string, len(artifacts))
	defer func() { s.ignore(slices.Concat(ignored...)...) }()
	return b.stageCopies(ctx, s, artifacts, func(i int, in io.Reader, out io.Writer) (project.Problems, error) {
		j := newObjects(artifacts[i], source, in, out)
		err := j.run(func() bool { return len(j.problems) <= mostProblems })
		ignored[i] = slices.Collect(maps.Keys(j.ignored))
		return j.problems, err
	}, func(a ports.Artifact, misfits []misplaced, problem func(misplaced, project.Position) project.Problem) (problems project.Problems, err error) {
		in, err := openArtifact(a)
		if err != nil {
			return nil, err
		}
		n := int64(0)
		j := newObjects(a, source, patient{ctx, in}, io.Discard)
		err = j.run(func() bool {
			for n++; len(misfits) > 0 && misfits[0].record == n; misfits = misfits[1:] {
				problems = append(problems, problem(misfits[0], j.at(j.lines[misfits[0].column])))
			}
			return len(misfits) > 0
		})
		return problems, errors.Join(err, in.Close())
	})
}

// objects takes a JSON file apart into the fields of its records.
type objects struct {
	artifact ports.Artifact
	source   project.Source
	index    map[string]int
	// accepted are the kinds of values that each column accepts.
	accepted []string
	in       *bufio.Reader
	// line is the one that in stands on, counted from 1.
	line     int
	out      io.Writer
	problems project.Problems
	// object is the text of the current record, and lines are those that its columns' values begin on, 0 for those that are not given.
	object []byte
	lines  []int
	fields [][]byte
	// record is what the current object becomes.
	record []byte
	// ignored are keys that were left out.
	ignored map[string]bool
}

// mostIgnored is how many different keys of a file are remembered as left out.
const mostIgnored = 1000

func newObjects(a ports.Artifact, source project.Source, in io.Reader, out io.Writer) *objects {
	j := &objects{artifact: a, source: source, index: map[string]int{}, ignored: map[string]bool{}, in: skipBOM(in), line: 1, out: out,
		lines: make([]int, len(source.Columns)), fields: make([][]byte, len(source.Columns))}
	for i, c := range source.Columns {
		j.index[c.FileColumn()] = i
		j.accepted = append(j.accepted, kinds(c.Type))
	}
	return j
}

func (j *objects) at(line int) project.Position {
	return project.Position{File: j.artifact.Name, Line: line, Column: 1}
}

func (j *objects) bad(line int, fix, format string, args ...any) {
	j.problems = append(j.problems, project.Problem{At: j.at(line), Message: fmt.Sprintf(format, args...), Fix: fix})
}

// run reads the whole file, or until visit, which is called behind each record, has seen enough. What is wrong with the file is in
// problems; the error is what kept it from being read.
func (j *objects) run(visit func() bool) error {
	shape := "deliver an array of objects, or one object after another"
	if j.source.Format == project.NDJSON {
		shape = "deliver one object a line"
	}
	c, err := j.space()
	if errors.Is(err, io.EOF) {
		j.bad(1, shape, "the file is empty: it holds no JSON")
		return nil
	}
	lines := j.source.Format == project.NDJSON
	array := err == nil && c == '[' && !lines
	if array {
		_, _ = j.in.Discard(1)
		c, err = j.space()
	}
	for more, ended := true, 0; ; c, err = j.space() {
		switch {
		case errors.Is(err, io.EOF) && !array:
			return nil
		case errors.Is(err, io.EOF):
			j.bad(j.line, "deliver the file again", "the file ends within its array")
			return nil
		case err != nil:
			return err
		case array && c == ']':
			_, _ = j.in.Discard(1)
			if _, err = j.space(); !errors.Is(err, io.EOF) {
				j.bad(j.line, shape, "there is text behind the array")
			}
			return nil
		case array && !more && c == ',':
			_, _ = j.in.Discard(1)
			if c, err = j.space(); err != nil {
				continue
			}
		case array && !more:
			j.bad(j.line, "mend the file, or deliver it again", "the file is not well-formed JSON: two records of the array have no comma between them")
			return nil
		}
		if c != '{' {
			j.bad(j.line, shape, "a record is no object")
			return nil
		}
		more = false
		begin := j.line
		if ok, err := j.next(); err != nil || !ok {
			return err
		}
		if lines && (begin == ended || j.line != begin) {
			j.bad(begin, "deliver one object a line, or declare format: json", "the record does not have a line of its own, as in ndjson")
			return nil
		}
		ended = j.line
		if !visit() {
			return nil
		}
	}
}

// space passes over white space and gives the byte that comes next, which stays to be read.
func (j *objects) space() (byte, error) {
	for {
		c, err := j.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			j.line++
		case ' ', '\t', '\r':
		default:
			return c, j.in.UnreadByte()
		}
	}
}

// next reads an object and writes its record. It gives false when the rest of the file cannot be made out.
func (j *objects) next() (bool, error) {
	begin := j.line
	j.object = j.object[:0]
	depth, quoted, escaped := 0, false, false
	for done := false; !done; {
		c, err := j.in.ReadByte()
		if errors.Is(err, io.EOF) {
			j.bad(begin, "deliver the file again", "the file ends within this record")
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if j.object = append(j.object, c); len(j.object) > maxObject {
			j.bad(begin, "deliver smaller records", "the record is longer than %d bytes", maxObject)
			return false, nil
		}
		switch {
		case c == '\n':
			j.line++
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
			done = depth == 0
		}
	}
	if !json.Valid(j.object) {
		var syntax *json.SyntaxError
		err := json.Unmarshal(j.object, &struct{}{})
		if errors.As(err, &syntax) {
			begin += bytes.Count(j.object[:min(syntax.Offset, int64(len(j.object)))], []byte("\n"))
		}
		j.bad(begin, "mend the file, or deliver it again", "the record is not well-formed JSON: %v", err)
		return false, nil
	}
	j.members(begin)
	j.record = j.record[:0]
	for i, text := range j.fields {
		if i > 0 {
			j.record = append(j.record, ',')
		}
		if text == nil {
			j.record = append(j.record, null...)
			continue
		}
		j.record = appendField(j.record, text)
	}
	j.record = append(j.record, '\n')
	if why := tooLong(j.record); why != "" {
		j.bad(begin, "deliver smaller records", "%s", why)
		return true, nil
	}
	_, err := j.out.Write(j.record)
	return true, err
}

// members finds the columns in the object, which is known to be well-formed and begins on the line.
func (j *objects) members(line int) {
	clear(j.fields)
	clear(j.lines)
	text := j.object
	pos := 1
	space := func() {
		for strings.IndexByte(" \t\r\n", text[pos]) >= 0 {
			if text[pos] == '\n' {
				line++
			}
			pos++
		}
	}
	for {
		if space(); text[pos] == '}' {
			return
		}
		end := valueEnd(text, pos)
		name := text[pos+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var s string
			if json.Unmarshal(text[pos:end], &s) == nil {
				name = []byte(s)
			}
		}
		pos = end
		space()
		pos++ // the colon
		space()
		end = valueEnd(text, pos)
		j.member(string(name), text[pos:end], line)
		line += bytes.Count(text[pos:end], []byte("\n"))
		pos = end
		if space(); text[pos] == ',' {
			pos++
		}
	}
}

// valueEnd is the offset behind the value that begins at pos in well-formed JSON.
func valueEnd(text []byte, pos int) int {
	depth := 0
	for {
		switch c := text[pos]; c {
		case '"':
			for pos++; text[pos] != '"'; pos++ {
				if text[pos] == '\\' {
					pos++
				}
			}
			pos++
		case '{', '[':
			depth++
			pos++
			continue
		case '}', ']':
			depth--
			pos++
		case ',', ':', ' ', '\t', '\r', '\n':
			pos++
			continue
		default:
			for strings.IndexByte(",:}] \t\r\n", text[pos]) < 0 {
				pos++
			}
		}
		if depth == 0 {
			return pos
		}
	}
}

func (j *objects) member(name string, raw []byte, line int) {
	i, ok := j.index[name]
	if !ok {
		if j.source.OnChange == project.ChangeIgnore {
			if len(j.ignored) < mostIgnored {
				j.ignored[name] = true
			}
			return
		}
		fix := undeclared(name, fileColumns(j.source))
		j.bad(line, fix, "the record has a key %s that source %q does not declare", shown(name), j.source.Name)
		return
	}
	if j.lines[i] > 0 {
		j.bad(line, "deliver the file with each key once", "the record has the key %q twice", name)
	}
	c := j.source.Columns[i]
	text, why := fieldOf(raw, j.accepted[i])
	if why != "" {
		_, expected := form(c.Type)
		j.bad(line, "mend the file, or declare the column otherwise", "key %q is declared %s, but the value %s is %s: it has to be %s", name, c.Type, shown(string(raw)), why, expected)
	}
	j.fields[i], j.lines[i] = text, line
}

// kinds are the first bytes of the JSON values that a type accepts, besides null; "" accepts all. Strings count as texts, days and
// times, and as decimals, which many write as strings because other readers would round them.
func kinds(t project.Type) string {
	const number = "-0123456789"
	switch t {
	case "JSON":
		return ""
	case "BOOLEAN":
		return "tf"
	case "VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "UUID", "BLOB":
		return `"`
	}
	if _, _, ok := decimalOf(t); ok {
		return number + `"`
	}
	return number
}

// fieldOf is the text of a JSON value, nil for null, or why it is none that is accepted. Numbers keep the digits that they were
// written with, and where all is accepted the value stays as it is.
func fieldOf(raw []byte, accepted string) (text []byte, why string) {
	if !utf8.Valid(raw) {
		return nil, "not valid UTF-8"
	}
	switch kind := raw[0]; {
	case kind == 'n':
		return nil, ""
	case accepted == "":
		return raw, ""
	case strings.IndexByte(accepted, kind) < 0:
		switch kind {
		case '"':
			return nil, "a string"
		case 't', 'f':
			return nil, "a boolean"
		case '{':
			return nil, "an object"
		case '[':
			return nil, "an array"
		}
		return nil, "a number"
	case kind != '"':
		return raw, ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, "not a string that can be read"
	}
	// The decoder puts U+FFFD in the place of what is no character.
	if strings.ContainsRune(s, utf8.RuneError) && !bytes.ContainsRune(raw, utf8.RuneError) && !strings.Contains(strings.ToLower(string(raw)), `\ufffd`) {
		return nil, "a string with half a surrogate pair"
	}
	return []byte(s), ""
}
