package lake

import (
	"context"
	"fmt"
	"io"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/project"
	"leapview/ports"
)

// The engine's own readers of text formats guess, round and let bad syntax pass, and know few of the ways in which files are written. So
// files are taken apart here, strictly, and every record is written down in one way that the engine reads as strictly: the declared columns
// in their order, UTF-8, commas, quotes where a field needs them, values in the engine's own form.

// null is the unquoted field that stands for NULL in such a copy.
const null = `\N`

// copyOf is how copies of the source's files are read.
func copyOf(source project.Source) texts {
	return texts{columns: source.Columns, delimiter: ",", nulls: []string{null}}
}

// appendField appends a value to a copy's record.
func appendField(dst, text []byte) []byte {
	if bare(text) {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for _, c := range text {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// bare tells whether a field with this text needs no quotes.
func bare(text []byte) bool {
	for _, c := range text {
		if c == ',' || c == '"' || c == '\n' || c == '\r' {
			return false
		}
	}
	return len(text) > 0 && string(text) != null
}

// stageCopies writes a copy of each artifact and reads the copies. locate gives the misfits of an artifact, which are in the order of their
// records, the places where they stand.
func (b *build) stageCopies(ctx context.Context, s *staged, artifacts []ports.Artifact, write func(i int, in io.Reader, out io.Writer) (project.Problems, error),
	locate func(a ports.Artifact, misfits []misplaced, problem func(misplaced, project.Position) project.Problem) (project.Problems, error)) error {
	every := func(ports.Artifact) bool { return true }
	paths, drop, problems, err := derive(ctx, artifacts, every, write)
	// A view reads the files until the build is closed.
	b.closers = append(b.closers, drop)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return first(problems)
	}
	t := copyOf(s.source)
	if view, err := b.viewed(ctx, s, []texts{t}, [][]string{paths}); view || err != nil {
		return err
	}
	if err := b.holding(ctx, s); err != nil {
		return err
	}
	stop := b.conn.Exec(ctx, t.insert(s.relation, oneLined(paths), paths...))
	if stop == nil || !stopped(stop) {
		return stop
	}
	// The engine stops at the first misfit, and its line numbers count records.
	for i, a := range artifacts {
		if len(problems) > mostProblems {
			break
		}
		misfits, err := b.misfits(ctx, t, paths[i])
		if err != nil {
			return unreadable(err, a, paths[i])
		}
		if len(misfits) == 0 {
			continue
		}
		found, err := locate(a, misfits, t.problem)
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

// viewed makes the source a view of its files when all of them are plain: they are read with their types, and not before a model asks for
// them. Each of the texts has paths of its own.
func (b *build) viewed(ctx context.Context, s *staged, parts []texts, paths [][]string) (bool, error) {
	var queries []string
	var rows int64
	for i, t := range parts {
		if len(paths[i]) == 0 {
			return false, nil
		}
		n, plain := t.plain(ctx, paths[i])
		if !plain {
			return false, nil
		}
		rows += n
		queries = append(queries, t.typedQuery(s.source.Columns, paths[i]...))
	}
	s.view, s.rows = true, rows
	return true, b.conn.Exec(ctx, "CREATE TEMP VIEW "+engine.Identifier(s.relation)+" AS "+strings.Join(queries, " UNION ALL "))
}

// tooLong says what is wrong with a record whose copy the engine could not read; "" when it can.
func tooLong(record []byte) string {
	if len(record) <= maxRecord {
		return ""
	}
	return fmt.Sprintf("the record's columns have more than %d bytes together, quotes counted twice", maxRecord)
}
