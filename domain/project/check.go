package project

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
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

// Literal is a value as its author wrote it, to be read as one of a column's type.
type Literal struct {
	Text string
	At   Position
}

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
	// Low and High bound a range, inclusive; nil is unbounded.
	Low, High *Literal
	// Values are the accepted ones.
	Values []Literal
	// To is the model that relationships point to, and Fields its columns.
	To     string
	Fields []string
	// MaxAge is how old the newest value of freshness may be.
	MaxAge time.Duration
	// Statement is the condition of expression, or the SELECT of sql, whose rows are failures.
	Statement Statement
}

// Literals are all values that the check names, in the order in which they are written.
func (c Check) Literals() []Literal {
	all := slices.Clone(c.Values)
	for _, bound := range []*Literal{c.Low, c.High} {
		if bound != nil {
			all = append(all, *bound)
		}
	}
	return all
}

// Definition is all that the check says, exactly and without its places: equal ones are the same check.
func (c Check) Definition() string {
	text := func(l *Literal) *string {
		if l == nil {
			return nil
		}
		return &l.Text
	}
	b, err := json.Marshal([]any{c.Kind, c.Name, c.Severity, c.Where.SQL, c.MaxFailures, c.MaxPercent, c.Columns, c.Min, c.Max, text(c.Low), text(c.High), c.accepted(), c.To, c.Fields,
		c.MaxAge, c.Statement.SQL})
	if err != nil {
		// Strings, numbers and lists of them always marshal.
		panic(err)
	}
	return string(b)
}

func (c Check) accepted() []string {
	texts := make([]string, len(c.Values))
	for i, v := range c.Values {
		texts[i] = v.Text
	}
	return texts
}

// String describes the check for people, cut where it is long.
func (c Check) String() string {
	inner := strings.Join(c.Columns, ", ")
	text := func(l *Literal) string {
		if l == nil {
			return ""
		}
		return l.Text
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
		inner += ": " + list(c.accepted())
	case Range:
		inner += ": " + text(c.Low) + ".." + text(c.High)
	case Relationships:
		inner += " to " + c.To + "." + strings.Join(c.Fields, ", ")
	case Freshness:
		inner += ": " + Span(c.MaxAge)
	case Expression, CustomSQL:
		inner = short(c.Statement.SQL, 80)
	}
	s := fmt.Sprintf("%s(%s)", c.Kind, short(inner, 200))
	if c.Where.SQL != "" {
		s += " where " + short(c.Where.SQL, 80)
	}
	return s
}

// short is text on one line of at most so many bytes, and a sign when it was cut.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// Span is a time span of whole seconds as project files write it, in the longest unit that is exact.
func Span(d time.Duration) string {
	for _, unit := range []string{"w", "d", "h", "m"} {
		if d%spanUnits[unit] == 0 {
			return fmt.Sprintf("%d%s", d/spanUnits[unit], unit)
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// spanUnits are the units of time spans in project files.
var spanUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

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
