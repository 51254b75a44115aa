package project

import (
	"fmt"
	"time"

	"leapview/domain/fail"
)

// Encoding is how the characters of a text file are written.
type Encoding string

// The encodings of this version. UTF-16 files say their byte order by a mark at their beginning.
const (
	UTF8        Encoding = "utf-8"
	UTF16       Encoding = "utf-16"
	Latin1      Encoding = "latin-1"
	Windows1252 Encoding = "windows-1252"
)

// QuoteNone is the declared quote of files that have none.
const QuoteNone = "none"

// Dialect is how CSV files are written, the delimiter and the null texts apart. The zero value is the common way: UTF-8 text, a header in
// the first line, fields in double quotes with quotes in them doubled, and values in the engine's own form.
type Dialect struct {
	// Quote encloses fields: one ASCII character, or QuoteNone. Empty is the double quote.
	Quote string `json:",omitempty"`
	// Escape stands before a quote within a quoted field, and before itself. Empty: such a quote is doubled.
	Escape string `json:",omitempty"`
	// Headless files have no header: their columns are the declared ones, in the declared order.
	Headless bool `json:",omitempty"`
	// Encoding is empty for UTF8.
	Encoding Encoding `json:",omitempty"`
	// SkipLines are the lines before the header, or before the first record of headless files.
	SkipLines int `json:",omitempty"`
	// Comment begins lines that are no records. Empty: every line is one.
	Comment string `json:",omitempty"`
	// Decimal stands before a number's fraction, and Thousands between groups of three digits before it. Empty is a point, and nothing.
	Decimal   string `json:",omitempty"`
	Thousands string `json:",omitempty"`
	// DateFormat and TimestampFormat are how columns of these types are written that declare no format of their own. Empty is ISO 8601.
	DateFormat      string `json:",omitempty"`
	TimestampFormat string `json:",omitempty"`
	// Pad reads NULL for the fields that a record lacks at its end.
	Pad bool `json:",omitempty"`
}

// Change says what happens to columns of a file that are not declared.
type Change string

// The ways with columns that are not declared; without a declared one they fail the refresh.
const (
	ChangeFail   Change = "fail"
	ChangeIgnore Change = "ignore"
)

// TypePolicy says which types of a Parquet file's columns are accepted for the declared ones.
type TypePolicy string

// The policies; without a declared one, types whose values all have a place in the declared type are accepted.
const (
	TypesWiden TypePolicy = "widen"
	TypesExact TypePolicy = "exact"
)

// Bounds are what a source may bring in. A zero is no bound of the source's own.
type Bounds struct {
	MaxFiles int64
	// MaxBytes is of all files together, as they are stored.
	MaxBytes int64
	MaxRows  int64
	// MinRows is 1 or more.
	MinRows int64
	// MaxShrink is the percentage of rows that may be lost against what the active snapshot was built from, in plain digits; nil is no
	// bound.
	MaxShrink *int64
	// Freshness is how long ago the newest file may have been written.
	Freshness time.Duration
}

// FileColumn is the column's name in the source's files.
func (c Column) FileColumn() string {
	if c.From != "" {
		return c.From
	}
	return c.Name
}

// AcceptCount holds the number of files against the source's own bound.
func (s Source) AcceptCount(files int) error {
	if b := s.Bounds.MaxFiles; b > 0 && int64(files) > b {
		return fail.New(fail.Limit, "source_files", "source %q: location %q matches %d files (limit bounds.max_files = %d)", s.Name, s.Location, files, b).
			WithFix("look at what was delivered, or change bounds.max_files in %s", s.At.File)
	}
	return nil
}

// AcceptBytes holds the bytes of the files up to the named one against the source's own bound.
func (s Source) AcceptBytes(bytes int64, name string) error {
	if b := s.Bounds.MaxBytes; b > 0 && bytes > b {
		return fail.New(fail.Limit, "source_bytes", "source %q: its files have %d bytes together with %s (limit bounds.max_bytes = %d)", s.Name, bytes, name, b).
			WithFix("look at what was delivered, or change bounds.max_bytes in %s", s.At.File)
	}
	return nil
}

// AcceptAge holds the files against the freshness of a source that has one. newest is when the newest one was written.
func (s Source) AcceptAge(newest, now time.Time) error {
	age := now.Sub(newest)
	if age <= s.Bounds.Freshness {
		return nil
	}
	return fail.New(fail.Invalid, "source_stale", "source %q: its newest file was written %s ago, at %s (limit bounds.freshness = %s)", s.Name, age.Round(time.Second), newest.UTC().Format(time.RFC3339), s.Bounds.Freshness).
		WithFix("deliver the files again, or raise bounds.freshness in %s", s.At.File)
}

// AcceptRows holds the number of rows that the source brought in against its bounds. before is what the active snapshot was built from;
// 0 when nothing is known of that.
func (s Source) AcceptRows(rows, before int64) error {
	b := s.Bounds
	refuse := func(kind fail.Kind, code, setting, format string, args ...any) error {
		return fail.New(kind, code, "source %q: its files have %d rows%s", s.Name, rows, fmt.Sprintf(format, args...)).
			WithFix("look at what was delivered, or change bounds.%s in %s", setting, s.At.File)
	}
	switch {
	case b.MaxRows > 0 && rows > b.MaxRows:
		return refuse(fail.Limit, "source_rows", "max_rows", " (limit bounds.max_rows = %d)", b.MaxRows)
	case rows < b.MinRows:
		return refuse(fail.Invalid, "source_too_few_rows", "min_rows", " (limit bounds.min_rows = %d)", b.MinRows)
	// Sources have far fewer rows than would make these products too large.
	case b.MaxShrink != nil && (before-rows)*100 > *b.MaxShrink*before:
		return refuse(fail.Invalid, "source_shrank", "max_shrink_percent", ", and the active snapshot was built from %d: %.1f%% of them are gone (limit bounds.max_shrink_percent = %d)",
			before, 100*float64(before-rows)/float64(before), *b.MaxShrink)
	}
	return nil
}
