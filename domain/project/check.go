package project

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// CheckKind names a rule over a model's rows.
type CheckKind string

// The checks of this version.
const (
	NotNull        CheckKind = "not_null"
	Unique         CheckKind = "unique"
	RowCount       CheckKind = "row_count"
	AcceptedValues CheckKind = "accepted_values"
	Range          CheckKind = "range"
	Relationships  CheckKind = "relationships"
	Freshness      CheckKind = "freshness"
	Expression     CheckKind = "expression"
	CustomSQL      CheckKind = "sql"
)

// checkKinds lists every check, as their authors write them.
var checkKinds = []string{string(NotNull), string(Unique), string(RowCount), string(AcceptedValues), string(Range), string(Relationships), string(Freshness),
	string(Expression), string(CustomSQL)}

// Severity says what a failed check does.
type Severity string

// The severities: an error keeps the candidate from being activated, a warning is told and kept.
const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// Check is a rule that the rows of its model must satisfy before a candidate can be activated. Which fields are set depends on Kind.
type Check struct {
	Kind CheckKind
	At   Position
	// Name is its author's, or "".
	Name     string
	Severity Severity
	// Where is a condition on the rows that are judged; without SQL all of them are. A row for which it is NULL is not.
	Where Statement
	// MaxFailures and MaxPercent, a decimal number, are how many rows may break the rule; the larger of the two counts.
	MaxFailures int64
	MaxPercent  string
	// Columns of not_null (each of them), unique and relationships (together), accepted_values, range and freshness (one).
	Columns []string
	// Min and Max bound row_count, inclusive; nil is unbounded.
	Min, Max *int64
	// Low and High bound a range, inclusive, as text of the column's type; nil is unbounded.
	Low, High *string
	// Values are the accepted ones, as texts of the column's type.
	Values []string
	// To is the model that relationships point to, and Fields its columns.
	To     string
	Fields []string
	// MaxAge is how old the newest value of freshness may be.
	MaxAge time.Duration
	// Statement is the condition of expression, or the SELECT of sql, whose rows are failures.
	Statement Statement
}

// String describes the check as its author wrote it.
func (c Check) String() string {
	inner := strings.Join(c.Columns, ", ")
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	switch c.Kind {
	case NotNull, Unique:
	case RowCount:
		lo, hi := "", ""
		if c.Min != nil {
			lo = fmt.Sprint(*c.Min)
		}
		if c.Max != nil {
			hi = fmt.Sprint(*c.Max)
		}
		inner = lo + ".." + hi
	case AcceptedValues:
		inner += ": " + list(c.Values)
	case Range:
		inner += ": " + text(c.Low) + ".." + text(c.High)
	case Relationships:
		inner += " to " + c.To + "." + strings.Join(c.Fields, ", ")
	case Freshness:
		inner += ": " + c.MaxAge.String()
	case Expression, CustomSQL:
		inner = short(c.Statement.SQL)
	}
	s := fmt.Sprintf("%s(%s)", c.Kind, inner)
	if c.Where.SQL != "" {
		s += " where " + short(c.Where.SQL)
	}
	return s
}

// short is SQL on one line, cut.
func short(sql string) string {
	sql = strings.Join(strings.Fields(sql), " ")
	if len(sql) > 80 {
		return strings.ToValidUTF8(sql[:80], "") + "…"
	}
	return sql
}

// Allows tells whether so many failures among so many judged rows are tolerated.
func (c Check) Allows(failures, judged int64) bool {
	if failures <= c.MaxFailures {
		return true
	}
	percent, ok := new(big.Rat).SetString(c.MaxPercent)
	if !ok {
		return false
	}
	// failures/judged <= percent/100, without rounding.
	left := new(big.Rat).SetInt64(failures)
	left.Mul(left, big.NewRat(100, 1))
	return left.Cmp(percent.Mul(percent, new(big.Rat).SetInt64(judged))) <= 0
}

// Counts tells whether a table with so many judged rows satisfies row_count.
func (c Check) Counts(judged int64) bool {
	return (c.Min == nil || judged >= *c.Min) && (c.Max == nil || judged <= *c.Max)
}
