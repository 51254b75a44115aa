// Package project owns what people write: project files, their strict decoding, and the project bundle they are packed into.
//
// Invariants: the same files give the same release id on every machine; a decoded Project is complete and consistent, or
// decoding gives every problem found, each at its file, line and column. This package does not read disks, does not know the
// engine's SQL (a model's text stays opaque here), and never executes anything.
package project

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"leapview/domain/fail"
)

// Digest is a SHA-256 in lower-case hexadecimal. A release is identified by the digest of its project bundle.
type Digest string

// DigestOf is the digest of b.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(hex.EncodeToString(sum[:]))
}

// ParseDigest refuses whatever is not 64 lower-case hexadecimal digits.
func ParseDigest(s string) (Digest, error) {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", fail.New(fail.Invalid, "bad_digest", "%q is not a SHA-256 digest in lower-case hexadecimal", s)
	}
	return Digest(s), nil
}

// Short is the digest's first twelve digits, for people.
func (d Digest) Short() string {
	if len(d) < 12 {
		return string(d)
	}
	return string(d[:12])
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// ValidName tells whether s can name a workspace, source, model, endpoint or parameter.
func ValidName(s string) bool { return nameForm.MatchString(s) }

// Position is a place in a project file. Line and Column count from 1; 0 means that the whole file is meant.
type Position struct {
	File   string
	Line   int
	Column int
}

// String is file:line:column, as editors and compilers write it.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Project is a decoded set of project files.
type Project struct {
	Name        string
	Description string
	Sources     []Source
	Models      []Model
	Endpoints   []Endpoint
	Tests       []Test
}

// Format is how a source's files are written.
type Format string

// The formats of this version. CSV files whose name ends in .gz are read as gzip.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
	JSON    Format = "json"
	// NDJSON is JSON with exactly one object a line.
	NDJSON Format = "ndjson"
)

// Source is a declared set of files with declared columns.
type Source struct {
	Name        string
	Description string
	At          Position
	// Location is a slash-separated path or glob below the deployment's source root.
	Location string
	Format   Format
	// Delimiter separates CSV fields: one byte, "," unless declared.
	Delimiter string
	// NullTexts are the CSV field texts that mean NULL, besides the empty unquoted field.
	NullTexts []string
	// Dialect is how CSV files are written beyond that.
	Dialect Dialect
	// Types is for Parquet files; empty is TypesWiden.
	Types TypePolicy
	// OnChange is empty for ChangeFail.
	OnChange Change
	Bounds   Bounds
	// Columns in declared order; never empty.
	Columns []Column
}

// Column is a name and an engine type in canonical spelling (see ParseType).
type Column struct {
	Name string
	Type Type
	At   Position
	// From is what a source's files call the column; empty when they call it by its name.
	From string `json:",omitempty"`
	// Format is how the days and times of a CSV source's column are written; empty is as the source's dialect says.
	Format string `json:",omitempty"`
	// Description is for people; it decides nothing.
	Description string
}

// Type is an engine type in canonical spelling, for example INTEGER or DECIMAL(18,2).
type Type string

// Layer labels a model within its workspace.
type Layer string

// The layers, from the sources upward.
const (
	Raw     Layer = "raw"
	Staging Layer = "staging"
	Mart    Layer = "mart"
)

// Statement is SQL with the place where it begins, so that an offset in it becomes a line and column of its file.
type Statement struct {
	SQL string
	// At is the position of the first byte of SQL.
	At Position
	// Indent is how many characters of the file stand before each line of SQL but the first. Unplaced says that the file writes SQL
	// otherwise, as YAML with escapes does, so that At is the only place known.
	Indent int
}

// Unplaced is the Indent of a statement in which no place is known.
const Unplaced = -1

// PositionOf turns a byte offset in the statement into a position of its file.
func (s Statement) PositionOf(offset int) Position {
	p := s.At
	if offset < 0 || s.Indent == Unplaced {
		return p
	}
	for i, r := range s.SQL {
		if i >= offset {
			break
		}
		if r == '\n' {
			p.Line++
			p.Column = 1 + s.Indent
		} else {
			p.Column++
		}
	}
	return p
}

// Model is one table, defined by a SELECT over sources and other models.
type Model struct {
	Name        string
	Description string
	Layer       Layer
	At          Position
	Statement   Statement
	// Filling is how the model's table is filled; its zero value is anew from everything.
	Filling Filling
	// Casts are the declared types of some of the model's columns: its output is cast to them, and a value that does not fit
	// fails the run.
	Casts  []Column
	Checks []Check
}

// Test is one case of a test file: when its relations hold the given rows, the expected ones come out.
type Test struct {
	// File is the test file's name without folder and ending, and Name is the case's within it.
	File, Name string
	At         Position
	// Model or Endpoint is what is tested; SubjectAt is where it is named.
	Model, Endpoint string
	SubjectAt       Position
	// Call is what an endpoint is asked.
	Call   Call
	Given  []Fixture
	Expect Fixture
	// Ordered tells that the rows' order counts.
	Ordered bool
}

// Fixture is rows that a test writes down.
type Fixture struct {
	// Relation is a source or model; empty for expected rows.
	Relation string
	At       Position
	Rows     []FixtureRow
}

// FixtureRow is one written row. A column that it leaves out is NULL.
type FixtureRow struct {
	At    Position
	Cells []Cell
}

// Cell is one written value, as JSON with the very digits that its author wrote.
type Cell struct {
	Column string
	At     Position
	JSON   string
}
