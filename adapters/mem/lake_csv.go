package mem

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// maxContent bounds a decompressed file: the store is for tests, and keeps every row in memory.
const maxContent = 64 << 20

// unsupportedSource are the problems of a source whose format or types the store does not have.
func unsupportedSource(s project.Source) project.Problems {
	var problems project.Problems
	if d := s.Dialect; d.Quote != "" || d.Escape != "" || d.Encoding != "" || d.SkipLines != 0 || d.Comment != "" || d.Pad || s.OnChange == project.ChangeIgnore {
		problems = append(problems, project.Problem{At: s.At, Message: fmt.Sprintf("the in-memory store does not read files that are written like those of source %q", s.Name)})
	}
	if s.Format == project.Parquet {
		problems = append(problems, project.Problem{At: s.At, Message: fmt.Sprintf("the in-memory store does not read the format %s of source %q", s.Format, s.Name)})
	}
	for _, c := range s.Columns {
		if !supported(c.Type) {
			problems = append(problems, project.Problem{At: c.At, Message: fmt.Sprintf("the in-memory store does not have the type %s of column %q", c.Type, c.Name)})
		}
	}
	return problems
}

// readCSV reads a file of the source, whose header, if it has one, must be the declared columns in their order. A quoted field is never NULL.
func readCSV(s project.Source, name string, content []byte) ([][]value, error) {
	wrong := func(line int, format string, args ...any) error {
		return project.Problems{{At: project.Position{File: name, Line: line, Column: 1}, Message: fmt.Sprintf(format, args...)}}
	}
	if strings.HasSuffix(name, ".gz") {
		var err error
		if content, err = gunzip(name, content); err != nil {
			return nil, err
		}
	}
	r := csv.NewReader(bytes.NewReader(content))
	r.FieldsPerRecord = len(s.Columns)
	if s.Delimiter != "" {
		r.Comma = rune(s.Delimiter[0])
	}
	header := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		header[i] = c.FileColumn()
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	var rows [][]value
	for first := true; ; first = false {
		start := r.InputOffset()
		fields, err := r.Read()
		if start < int64(len(content)) && (content[start] == '\n' || content[start] == '\r') {
			return nil, wrong(bytes.Count(content[:start], []byte("\n"))+1, "the line is empty")
		}
		if errors.Is(err, io.EOF) && first {
			return nil, wrong(1, "the file is empty; its first line must name the columns %s", strings.Join(header, ", "))
		}
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		var broken *csv.ParseError
		if errors.As(err, &broken) {
			return nil, wrong(broken.StartLine, "the line is not a record of %d CSV fields: %v", len(header), broken.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		line, _ := r.FieldPos(0)
		if first && !s.Dialect.Headless {
			if !slices.Equal(fields, header) {
				return nil, wrong(line, "the header names the columns %s, declared are %s", strings.Join(fields, ", "), strings.Join(header, ", "))
			}
			continue
		}
		row := make([]value, len(fields))
		for i, text := range fields {
			at, column := r.FieldPos(i)
			quoted := column <= len(lines[at-1]) && lines[at-1][column-1] == '"'
			if !quoted && (text == "" || slices.Contains(s.NullTexts, text)) {
				continue
			}
			if form := s.FieldForm(s.Columns[i]); form != nil {
				own, ok := form.Append(nil, []byte(text))
				if !ok {
					return nil, wrong(line, "column %q: %q is not %s", s.Columns[i].Name, text, form.Expected)
				}
				text = string(own)
			}
			if row[i], err = parseValue(text, s.Columns[i].Type); err != nil {
				return nil, wrong(line, "column %q: %v", s.Columns[i].Name, err)
			}
		}
		rows = append(rows, row)
	}
}

func gunzip(name string, content []byte) ([]byte, error) {
	bad := func(err error) error {
		return project.Problems{{At: project.Position{File: name}, Message: fmt.Sprintf("the file is not readable as gzip: %v", err)}}
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, bad(err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxContent+1))
	if err != nil {
		return nil, bad(err)
	}
	if len(out) > maxContent {
		return nil, fail.New(fail.Limit, "file_too_large", "%s is larger than %d bytes when decompressed, the in-memory store's limit", name, maxContent)
	}
	return out, nil
}
