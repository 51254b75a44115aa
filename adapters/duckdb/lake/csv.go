package lake

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// maxHeader bounds the header in bytes.
const maxHeader = 1 << 20

// stageCSV reads every file by the columns that its own header names.
func (b *build) stageCSV(ctx context.Context, s *staged, artifacts []ports.Artifact) error {
	source := s.source
	var problems project.Problems
	orders := make([][]project.Column, len(artifacts))
	for i, a := range artifacts {
		order, found, err := readHeader(a, source)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
		orders[i] = order
	}
	if len(problems) > 0 {
		return first(problems)
	}
	// The engine would take a gzip file that was cut short for one with fewer rows; unpacking checks its sum. Unpacked files are also
	// read by several threads.
	paths, drop, problems, err := derive(ctx, artifacts, zipped, func(_ ports.Artifact, in io.Reader, out io.Writer) (project.Problems, error) {
		_, err := io.Copy(out, in)
		return nil, err
	})
	// A view reads the files until the build is closed.
	b.closers = append(b.closers, drop)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return first(problems)
	}
	// Files with the same header are read together, so that the engine reads them side by side.
	type group struct {
		texts
		from, to int
	}
	var groups []group
	for i := 0; i < len(artifacts); {
		j := i + 1
		for j < len(artifacts) && slices.Equal(orders[i], orders[j]) {
			j++
		}
		t := texts{columns: orders[i], header: true, delimiter: source.Delimiter, nulls: append([]string{""}, source.NullTexts...)}
		groups = append(groups, group{t, i, j})
		i = j
	}
	// Plain files are read with their types, and not before a model asks for them.
	s.view = len(groups) > 0
	var queries []string
	for _, g := range groups {
		rows, plain := g.plain(ctx, paths[g.from:g.to])
		if s.view = plain; !plain {
			break
		}
		s.rows += rows
		queries = append(queries, g.typedQuery(source.Columns, paths[g.from:g.to]...))
	}
	if s.view {
		return b.conn.Exec(ctx, "CREATE TEMP VIEW "+engine.Identifier(s.relation)+" AS "+strings.Join(queries, " UNION ALL "))
	}
	if err := b.holding(ctx, s); err != nil {
		return err
	}
	for _, g := range groups {
		lines := oneLined(paths[g.from:g.to])
		for i := g.from; i < g.to && !lines; i++ {
			// A single thread takes a quote that is never closed for the end of a whole file.
			found, err := broken(ctx, artifacts[i], paths[i], g.texts)
			if err != nil {
				return err
			}
			problems = append(problems, found...)
		}
		if len(problems) > 0 {
			return first(problems)
		}
		if err := b.conn.Exec(ctx, g.insert(s.relation, lines, paths[g.from:g.to]...)); err != nil {
			return b.explainCSV(ctx, err, g.texts, artifacts[g.from:g.to], paths[g.from:g.to])
		}
	}
	return nil
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

// readHeader gives the declared columns in the order of the file's first record, or what is wrong with that record.
func readHeader(a ports.Artifact, source project.Source) ([]project.Column, project.Problems, error) {
	f, err := openArtifact(a)
	if err != nil {
		problems, err := asProblems(err)
		return nil, problems, err
	}
	defer f.Close()
	at := project.Position{File: a.Name, Line: 1, Column: 1}
	one := func(fix, format string, args ...any) (_ []project.Column, _ project.Problems, _ error) {
		return nil, project.Problems{{At: at, Message: fmt.Sprintf(format, args...), Fix: fix}}, nil
	}
	r := csv.NewReader(skipBOM(io.LimitReader(f, maxHeader)))
	r.Comma = rune(source.Delimiter[0])
	header, err := r.Read()
	var disk *fail.Error
	switch {
	case errors.Is(err, io.EOF):
		return one("deliver the file again", "the file is empty: it has not even a header")
	case errors.As(err, &disk):
		return nil, nil, err
	case err != nil:
		if problems, _ := asProblems(err); problems != nil {
			return nil, problems, nil
		}
		return one("deliver the file again, or correct the source's delimiter", "the header cannot be read: %v", err)
	}
	// The reader skips empty lines, which the engine would take for the header.
	if line, _ := r.FieldPos(0); line > 1 {
		return one("deliver the file with the header in its first line", "the first line is empty")
	}
	byName := map[string]project.Column{}
	declared := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		byName[c.Name], declared[i] = c, c.Name
	}
	var problems project.Problems
	bad := func(fix, format string, args ...any) {
		problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
	}
	order := make([]project.Column, len(header))
	for i, name := range header {
		c, ok := byName[name]
		order[i] = c
		switch {
		case slices.Contains(header[:i], name):
			bad("deliver the file with each column once", "the header names the column %s twice", shown(name))
		case !ok:
			fix := project.Suggest(name, declared)
			if fix == "" {
				fix = "declare it under columns, or deliver the file without it"
			}
			bad(fix, "the header has a column %s that source %q does not declare", shown(name), source.Name)
		}
	}
	for _, name := range declared {
		if !slices.Contains(header, name) {
			bad("deliver the file with it, or take it out of columns", "the header lacks the column %q that source %q declares", name, source.Name)
		}
	}
	return order, problems, nil
}

func skipBOM(r io.Reader) *bufio.Reader {
	b := bufio.NewReaderSize(r, 1<<16)
	if head, err := b.Peek(3); err == nil && bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}) {
		_, _ = b.Discard(3)
	}
	return b
}

// explainCSV says at which lines of which files the engine stopped, by reading the files once more: the engine's own line numbers
// count records, and it stops at the first misfit.
func (b *build) explainCSV(ctx context.Context, stop error, t texts, artifacts []ports.Artifact, paths []string) error {
	if !stopped(stop) {
		return stop
	}
	var problems project.Problems
	for i, a := range artifacts {
		if len(problems) > mostProblems {
			break
		}
		found, err := broken(ctx, a, paths[i], t)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			problems = append(problems, found...)
			continue
		}
		misfits, err := b.misfits(ctx, t, paths[i])
		if err != nil {
			return unreadable(err, a, paths[i])
		}
		found, err = placed(ctx, a, paths[i], t, misfits)
		if err != nil {
			return err
		}
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return first(problems)
	}
	// The engine alone knows; it names the file that it read.
	for i, a := range artifacts {
		if strings.Contains(stop.Error(), paths[i]) {
			return unreadable(stop, a, paths[i])
		}
	}
	return unreadable(stop, artifacts[0], paths[0])
}

// broken finds the records of a file that are no CSV, or not of this file's columns.
func broken(ctx context.Context, a ports.Artifact, path string, t texts) (project.Problems, error) {
	var problems project.Problems
	err := eachRecord(ctx, a, path, t, func(r record) bool {
		why := r.wrong
		// The engine lets the last delimiter of a line stand for nothing.
		if n := len(t.columns); why == "" && len(r.fields) != n && !(len(r.fields) == n+1 && r.lastEmpty) {
			why = fmt.Sprintf("the record has %d fields, the header has %d", len(r.fields), n)
		}
		if why != "" {
			problems = append(problems, project.Problem{At: project.Position{File: a.Name, Line: r.fields[0].line, Column: 1}, Message: why, Fix: "mend the file, or deliver it again"})
		}
		return len(problems) <= mostProblems
	})
	return problems, err
}

// placed gives misfits, which are in the order of their records, the places where they stand.
func placed(ctx context.Context, a ports.Artifact, path string, t texts, misfits []misplaced) (project.Problems, error) {
	if len(misfits) == 0 {
		return nil, nil
	}
	var problems project.Problems
	n := int64(-1)
	err := eachRecord(ctx, a, path, t, func(r record) bool {
		for n++; len(misfits) > 0 && misfits[0].record == n; misfits = misfits[1:] {
			at := r.fields[min(misfits[0].column, len(r.fields)-1)]
			problems = append(problems, t.problem(misfits[0], project.Position{File: a.Name, Line: at.line, Column: at.column}))
		}
		return len(misfits) > 0
	})
	return problems, err
}

// eachRecord shows the records of a file, the header first, until visit has seen enough.
func eachRecord(ctx context.Context, a ports.Artifact, path string, t texts, visit func(record) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fail.New(fail.Internal, "staged_file_gone", "the staged copy of %s cannot be opened", a.Name).Because(err)
	}
	defer f.Close()
	s := scanner{in: skipBOM(patient{ctx, f}), delimiter: t.delimiter[0], skipEmpty: len(t.columns) > 1, line: 1, column: 1}
	for {
		r, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fail.New(fail.Unavailable, "staged_file_unreadable", "the staged copy of %s cannot be read", a.Name).Because(err)
		}
		if !visit(r) || r.last {
			return nil
		}
	}
}
