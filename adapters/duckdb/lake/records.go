package lake

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxRecord is the longest record, in bytes, that the engine reads.
const maxRecord = 2_000_000

// place is where a field begins, counted from 1.
type place struct{ line, column int }

// record is one record of a CSV file.
type record struct {
	// fields are where its fields begin; there is at least one.
	fields []place
	// lastEmpty tells that nothing stands behind the last delimiter.
	lastEmpty bool
	// wrong says what makes it no record of CSV, if anything does.
	wrong string
	// last tells that nothing behind this record can be made out.
	last bool
}

// scanner finds where records and fields stand, by the same rules as the engine: fields are quoted by ", also behind spaces, a quote
// within is doubled, and lines end in one way throughout the file.
type scanner struct {
	in        *bufio.Reader
	delimiter byte
	// skipEmpty passes over empty lines. In files of one column an empty line is a record.
	skipEmpty    bool
	line, column int
	// ending is how the first line ended, which all others have to repeat.
	ending string
	bytes  []byte
}

// take reads a byte and moves on to the next place. Carriage returns that no line feed follows end lines too.
func (s *scanner) take() (byte, error) {
	c, err := s.in.ReadByte()
	if err != nil {
		return 0, err
	}
	s.bytes = append(s.bytes, c)
	switch {
	case c == '\n' || c == '\r' && !s.follows('\n'):
		s.line++
		s.column = 1
	case utf8.RuneStart(c):
		s.column++
	}
	return c, nil
}

func (s *scanner) follows(c byte) bool {
	next, err := s.in.Peek(1)
	return err == nil && next[0] == c
}

// next gives the next record, or io.EOF behind the last one.
func (s *scanner) next() (record, error) {
	if s.skipEmpty {
		for s.follows('\n') || s.follows('\r') {
			if _, err := s.take(); err != nil {
				return record{}, err
			}
		}
	}
	s.bytes = s.bytes[:0]
	r := record{fields: []place{{s.line, s.column}}}
	complain := func(format string, args ...any) {
		if r.wrong == "" {
			r.wrong = fmt.Sprintf(format, args...)
		}
	}
	const (
		begin = iota
		bare
		quoted
		closed
	)
	state := begin
	for {
		c, err := s.take()
		if errors.Is(err, io.EOF) {
			if len(s.bytes) == 0 {
				return r, io.EOF
			}
			if state == quoted {
				complain("the record has a quoted field that is never closed")
			}
			return s.finish(r, state == begin), nil
		}
		if err != nil {
			return r, err
		}
		if len(s.bytes) > maxRecord {
			complain("the record is longer than %d bytes", maxRecord)
			r.last = true
			return r, nil
		}
		switch {
		case state == quoted:
			if c == '"' {
				if s.follows('"') {
					if _, err := s.take(); err != nil {
						return r, err
					}
				} else {
					state = closed
				}
			}
		case c == s.delimiter:
			r.fields = append(r.fields, place{s.line, s.column})
			state = begin
		case c == '\n' || c == '\r':
			ending := string(c)
			if c == '\r' && s.follows('\n') {
				if _, err := s.take(); err != nil {
					return r, err
				}
				ending = "\r\n"
			}
			if s.ending == "" {
				s.ending = ending
			} else if ending != s.ending {
				complain("the line ends with %q, but the first one with %q", ending, s.ending)
				r.last = true
			}
			return s.finish(r, state == begin), nil
		case c == ' ' && (state == begin || state == closed):
		case c == '"' && state == begin:
			state = quoted
		case state == closed:
			complain("the record has text behind a closing quote")
			state = bare
		default:
			state = bare
		}
	}
}

func (s *scanner) finish(r record, empty bool) record {
	r.lastEmpty = empty
	if r.wrong == "" && !utf8.Valid(s.bytes) {
		r.wrong = "the record is not valid UTF-8"
	}
	return r
}
