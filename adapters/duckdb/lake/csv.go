package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"leapview/domain/project"
	"leapview/ports"
)

// stageCSV reads every file by the columns that its own header names. Plain files are read as they are; of all others, copies are.
func (b *build) stageCSV(ctx context.Context, s *staged, artifacts []ports.Artifact) error {
	source := s.source
	var problems project.Problems
	layouts := make([]layout, len(artifacts))
	for i, a := range artifacts {
		var found project.Problems
		var err error
		if layouts[i], found, err = layoutOf(ctx, a, source); err != nil {
			return err
		}
		problems = append(problems, found...)
		s.ignore(layouts[i].ignored...)
	}
	if len(problems) > 0 {
		return first(problems)
	}
	if readable(source) && !slices.ContainsFunc(layouts, func(l layout) bool { return len(l.ignored) > 0 }) {
		// The engine would take a gzip file that was cut short for one with fewer rows; unpacking checks its sum. Unpacked files are also
		// read by several threads.
		paths, drop, problems, err := derive(ctx, artifacts, zipped, func(_ int, in io.Reader, out io.Writer) (project.Problems, error) {
			_, err := io.Copy(out, in)
			return nil, err
		})
		needed := false
		defer func() {
			if !needed {
				drop()
			}
		}()
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return first(problems)
		}
		parts, files := grouped(source, layouts, paths)
		if needed, err = b.viewed(ctx, s, parts, files); needed || err != nil {
			// The view reads the files until the build is closed.
			b.closers = append(b.closers, drop)
			return err
		}
		unpacked := slices.Clone(artifacts)
		for i := range unpacked {
			unpacked[i].Path = paths[i]
		}
		artifacts = unpacked
	}
	return b.stageCopies(ctx, s, artifacts, func(i int, in io.Reader, out io.Writer) (project.Problems, error) {
		return transcribe(artifacts[i], source, layouts[i], in, out)
	}, func(a ports.Artifact, misfits []misplaced, problem func(misplaced, project.Position) project.Problem) (problems project.Problems, err error) {
		in, err := openArtifact(a)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		l := layouts[slices.IndexFunc(artifacts, func(x ports.Artifact) bool { return x.Path == a.Path })]
		r, err := began(a, source, l, patient{ctx, in})
		if err != nil {
			return nil, err
		}
		for n := int64(1); len(misfits) > 0; n++ {
			rec, err := r.next()
			if err != nil {
				return problems, err
			}
			for ; len(misfits) > 0 && misfits[0].record == n; misfits = misfits[1:] {
				line, column := rec.place(l.at[misfits[0].column])
				problems = append(problems, problem(misfits[0], project.Position{File: a.Name, Line: line, Column: column}))
			}
		}
		return problems, nil
	})
}

// readable tells whether the engine itself can read the source's files, when they are plain: nothing has to be recoded, skipped or
// converted.
func readable(s project.Source) bool {
	d := s.Dialect
	return d.Encoding == "" && d.SkipLines == 0 && d.Comment == "" && !slices.ContainsFunc(s.Columns, func(c project.Column) bool { return s.FieldForm(c) != nil })
}

// grouped puts files with the same header together, so that the engine reads them side by side.
func grouped(source project.Source, layouts []layout, paths []string) (parts []texts, files [][]string) {
	for i, l := range layouts {
		if i > 0 && slices.Equal(l.at, layouts[i-1].at) {
			files[len(files)-1] = append(files[len(files)-1], paths[i])
			continue
		}
		t := texts{columns: make([]project.Column, len(l.at)), header: !source.Dialect.Headless, delimiter: source.Delimiter, nulls: append([]string{""}, source.NullTexts...)}
		if q := source.Dialect.Quote; len(q) == 1 {
			t.quote = q[0]
		}
		for c, field := range l.at {
			t.columns[field] = source.Columns[c]
		}
		parts, files = append(parts, t), append(files, []string{paths[i]})
	}
	return parts, files
}

// oneLined tells whether no record of the files goes over several lines: no line break stands between two quotes. Files that cannot be read
// are not.
func oneLined(paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		f, err := os.Open(path)
		if err != nil {
			return true
		}
		defer f.Close()
		buffer := make([]byte, 1<<18)
		inside := false
		for {
			n, err := f.Read(buffer)
			for rest := buffer[:n]; len(rest) > 0; {
				at := bytes.IndexByte(rest, '"')
				if at < 0 {
					at = len(rest)
				}
				if inside && bytes.ContainsAny(rest[:at], "\r\n") {
					return true
				}
				if at == len(rest) {
					break
				}
				inside = !inside
				rest = rest[at+1:]
			}
			if errors.Is(err, io.EOF) {
				return false
			}
			if err != nil {
				return true
			}
		}
	})
}

// layout is where a file has the declared columns.
type layout struct {
	// at are the fields of the columns, and width is how many fields a record has.
	at    []int
	width int
	// ignored are the names in the header that are not declared.
	ignored []string
}

// began is the reader of the file's records, behind its header.
func began(a ports.Artifact, source project.Source, l layout, in io.Reader) (*records, error) {
	r, err := opening(a, source, in)
	if err != nil {
		return nil, err
	}
	if !source.Dialect.Headless {
		if _, err := r.next(); err != nil {
			return nil, err
		}
	}
	r.skipEmpty = l.width > 1
	return r, nil
}

// opening is the reader of the file's records, the header first.
func opening(a ports.Artifact, source project.Source, in io.Reader) (*records, error) {
	text, err := recoded(a, source, in)
	if err != nil {
		return nil, err
	}
	r := newRecords(source, text)
	for range source.Dialect.SkipLines {
		if err := r.skipLine(); errors.Is(err, io.EOF) {
			return nil, project.Problems{{At: project.Position{File: a.Name, Line: r.line, Column: 1}, Message: fmt.Sprintf("the file ends within the %d lines that are to be skipped", source.Dialect.SkipLines),
				Fix: "deliver the file again, or correct skip_lines"}}
		} else if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// layoutOf finds the declared columns in the file's first record, or says what is wrong with that record.
func layoutOf(ctx context.Context, a ports.Artifact, source project.Source) (layout, project.Problems, error) {
	l := layout{width: len(source.Columns)}
	in, err := openArtifact(a)
	if err != nil {
		problems, err := asProblems(err)
		return l, problems, err
	}
	defer in.Close()
	r, err := opening(a, source, patient{ctx, in})
	if err != nil {
		problems, err := asProblems(err)
		return l, problems, err
	}
	header, err := r.next()
	at := project.Position{File: a.Name, Line: header.line, Column: 1}
	one := func(fix, format string, args ...any) (layout, project.Problems, error) {
		return l, project.Problems{{At: at, Message: fmt.Sprintf(format, args...), Fix: fix}}, nil
	}
	switch {
	case errors.Is(err, io.EOF):
		at.Line = r.line
		if source.Dialect.Headless {
			return one("deliver the file again", "the file is empty: it has not even one record")
		}
		return one("deliver the file again", "the file is empty: it has not even a header")
	case err != nil:
		problems, err := asProblems(err)
		return l, problems, err
	case source.Dialect.Headless:
		for i := range source.Columns {
			l.at = append(l.at, i)
		}
		return l, nil, nil
	case header.wrong != "":
		return one("deliver the file again, or correct how the source's files are written", "the header cannot be read: %s", header.wrong)
	case len(header.text) == 0:
		return one("deliver the file with the header in its first line, or declare skip_lines", "the header is an empty line")
	}
	var names []string
	for _, f := range header.fields {
		names = append(names, string(r.text(header, f)))
	}
	l.width = len(names)
	var problems project.Problems
	bad := func(fix, format string, args ...any) {
		problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	declared := fileColumns(source)
	for i, name := range names {
		switch known := slices.Contains(declared, name); {
		case slices.Contains(names[:i], name) && (known || source.OnChange != project.ChangeIgnore):
			bad("deliver the file with each column once", "the header names the column %s twice", shown(name))
		case !known && source.OnChange == project.ChangeIgnore:
			l.ignored = append(l.ignored, name)
		case !known:
			bad(undeclared(name, declared), "the header has a column %s that source %q does not declare", shown(name), source.Name)
		}
	}
	for _, name := range declared {
		i := slices.Index(names, name)
		if i < 0 {
			bad("deliver the file with it, or take it out of columns", "the header lacks the column %q that source %q declares", name, source.Name)
		}
		l.at = append(l.at, i)
	}
	return l, problems, nil
}

// fileColumns are what the source's files call its columns, in the declared order.
func fileColumns(source project.Source) []string {
	names := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		names[i] = c.FileColumn()
	}
	return names
}

// undeclared is what to do about a column that is not declared.
func undeclared(name string, declared []string) string {
	if s := project.Suggest(name, declared); s != "" {
		return s
	}
	return "declare it under columns, leave it out with on_change: ignore, or deliver the file without it"
}

// transcribe writes a copy of the file's records.
func transcribe(a ports.Artifact, source project.Source, l layout, in io.Reader, out io.Writer) (project.Problems, error) {
	r, err := began(a, source, l, in)
	if err != nil {
		return asProblems(err)
	}
	forms := make([]*project.FieldForm, len(source.Columns))
	for i, c := range source.Columns {
		forms[i] = source.FieldForm(c)
	}
	whose := "the header has"
	if source.Dialect.Headless {
		whose = fmt.Sprintf("source %q declares", source.Name)
	}
	var problems project.Problems
	bad := func(line, column int, fix, format string, args ...any) {
		problems = append(problems, project.Problem{At: project.Position{File: a.Name, Line: line, Column: column}, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	const mend = "mend the file, or deliver it again"
	var record, value []byte
	for len(problems) <= mostProblems {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return problems, err
		}
		n := len(rec.fields)
		why := rec.wrong
		if why == "" && (n > l.width || n < l.width && !source.Dialect.Pad) {
			why = fmt.Sprintf("the record has %s, %s %d", plural(n, "field"), whose, l.width)
		}
		if why != "" {
			bad(rec.line, 1, mend, "%s", why)
			if rec.last {
				break
			}
			continue
		}
		record = record[:0]
		for i, at := range l.at {
			if i > 0 {
				record = append(record, ',')
			}
			if at >= n {
				record = append(record, null...)
				continue
			}
			f := rec.fields[at]
			text := r.text(rec, f)
			switch {
			case !f.quoted && (len(text) == 0 || slices.Contains(source.NullTexts, string(text))):
				record = append(record, null...)
				continue
			case forms[i] != nil:
				var ok bool
				if value, ok = forms[i].Append(value[:0], text); !ok {
					line, column := rec.place(at)
					c := source.Columns[i]
					bad(line, column, "mend the file, or correct how the column is written", "column %q is declared %s, which %s is not: it has to be %s", c.Name, c.Type, shown(string(text)), forms[i].Expected)
				}
				text = value
			}
			record = appendField(record, text)
		}
		record = append(record, '\n')
		if why := tooLong(record); why != "" {
			bad(rec.line, 1, mend, "%s", why)
			continue
		}
		if _, err := out.Write(record); err != nil {
			return problems, err
		}
	}
	return problems, nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
