// Package gate owns the question whether SQL that a person wrote may reach the engine, and with what put in place of the names
// it reads.
//
// Invariants: a statement passes only as exactly one SELECT whose every relation is an unqualified name and whose every
// construct is on a list; whatever the package does not know is refused. Rewriting replaces pieces of the author's own text, and
// the result is parsed again and compared with the tree it has to have, so neither a wrong offset nor a wrong quote can change
// what a statement means. A proof reads the bound plan, after views, macros, CTEs and subqueries have been expanded, and trusts
// nothing that came before it.
//
// The package does not know which names a project has, what a snapshot means, or what the answers look like. It runs none of
// the SQL that it judges: the engine parses it and binds it, no more.
package gate

import (
	"context"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// Querier asks the engine for one row. An engine's connection is one.
type Querier interface {
	Scan(ctx context.Context, sql string, args []any, dest ...any) error
}

// Target is the table that stands behind a name.
type Target struct {
	Catalog, Schema, Table string
	// Version is the lake snapshot to read it at; 0 reads it as the connection sees it.
	Version int64
}

// The bounds of a statement. Each one keeps the engine's parser and planner, which cannot always be interrupted, from being kept
// busy by a few kilobytes of text.
const (
	maxBytes      = project.MaxSQLBytes
	maxTokens     = 10_000
	maxNodes      = 2000
	maxDepth      = 100
	maxJoins      = 16
	maxListed     = 1000
	maxUnions     = 64
	maxExpansions = 256
	maxItems      = 512
	maxWidth      = 10_000
)

// Error is a statement that is refused, or that the engine cannot bind.
type Error struct {
	// Offset is the byte in the author's statement that the error is about.
	Offset int
	// Message names the construct and says why it is refused.
	Message string
	// Fix says what to write instead; may be empty.
	Fix string
}

// Error is the message, then the fix.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Message
	}
	return e.Message + "; " + e.Fix
}

// FailKind is Invalid.
func (e *Error) FailKind() fail.Kind { return fail.Invalid }

// FailCode is refused_sql.
func (e *Error) FailCode() string { return "refused_sql" }

// Problem is the error at its place in the statement's file.
func (e *Error) Problem(s project.Statement) project.Problem {
	p := project.Problem{At: s.PositionOf(e.Offset), Message: e.Message, Fix: e.Fix}
	offset := min(max(e.Offset, 0), len(s.SQL))
	start := strings.LastIndexByte(s.SQL[:offset], '\n') + 1
	if s.Indent == 0 && (start > 0 || s.At.Column == 1) {
		line, _, _ := strings.Cut(s.SQL[start:], "\n")
		if line = strings.TrimSuffix(line, "\r"); len(line) <= 300 {
			p.Line = line
		}
	}
	return p
}

// Reads gives the relations that the statement reads, sorted, in lower case and without repetition; names of CTEs are resolved
// away. What the gate does not let through is an *Error.
func Reads(ctx context.Context, c Querier, sql string) ([]string, error) {
	s, err := Parse(ctx, c, sql)
	if err != nil {
		return nil, err
	}
	return s.Reads(), nil
}

// Rewrite puts each relation's target in the place of its name. to has to hold every relation that the statement reads.
func Rewrite(ctx context.Context, c Querier, sql string, to map[string]Target) (string, error) {
	s, err := Parse(ctx, c, sql)
	if err != nil {
		return "", err
	}
	t, err := s.Rewrite(ctx, c, to, nil)
	if err != nil {
		return "", err
	}
	return t.SQL, nil
}

// lower is s with its ASCII letters in lower case, which is how the engine compares names.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}
