package lake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"leapview/domain/project"
)

// maxRecord is the longest record, in bytes, that the engine reads.
const maxRecord = 2_000_000

// field is a part of a record, as offsets in its text.
type field struct {
	// start is where the field begins; its content, within its quotes if it has any, is from to.
	start, from, to int
	quoted          bool
	// escaped tells that the content holds escapes.
	escaped bool
}

// record is one record of a CSV file. It is valid until the next one is read.
type record struct {
	// text is the record as it stands in the file, recoded, without the end of its line.
	text []byte
	// fields has at least one.
	fields []field
	// line is the one that the record begins on, counted from 1.
	line int
	// wrong says what makes it no record of CSV, if anything does.
	wrong string
	// last tells that nothing behind this record can be made out.
	last bool
}

// place is where the record's field begins; of one that is not there, where the last one does.
func (r record) place(i int) (line, column int) {
	before := r.text[:r.fields[min(i, len(r.fields)-1)].start]
	last := max(bytes.LastIndexByte(before, '\n'), bytes.LastIndexByte(before, '\r'))
	return r.line + breaks(before), utf8.RuneCount(before[last+1:]) + 1
}

// breaks counts line ends: \n, \r\n and \r.
func breaks(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if bytes.IndexByte(text, '\r') >= 0 {
		n += bytes.Count(text, []byte{'\r'}) - bytes.Count(text, []byte("\r\n"))
	}
	return n
}

// records reads the records of a CSV file, which is UTF-8 text by now. Fields are quoted, also behind and before spaces; lines end in one
// way throughout the file.
type records struct {
	in        io.Reader
	delimiter byte
	// quote encloses fields and escape stands before a quote in them; 0 when there is none. escape is the quote when quotes are doubled.
	quote, escape byte
	// comment begins lines that are no records; 0 when there are none.
	comment byte
	// encoding is what the file should be, for messages.
	encoding project.Encoding
	// skipEmpty passes over empty lines. In files of one column an empty line is a record.
	skipEmpty bool
	// line is the one that comes next.
	line int
	// ending is how the first record's line ended, which all others have to repeat.
	ending string

	// buffer[at:end] was read and not used yet; ended tells that nothing follows it.
	buffer  []byte
	at, end int
	ended   bool
	fields  []field
	scratch []byte
}

// newRecords reads from the file's first byte behind its byte order mark.
func newRecords(source project.Source, in io.Reader) *records {
	d := source.Dialect
	r := &records{in: in, delimiter: source.Delimiter[0], quote: '"', encoding: d.Encoding, line: 1, buffer: make([]byte, 1<<16)}
	if d.Encoding == "" {
		r.encoding = project.UTF8
	}
	switch {
	case d.Quote == project.QuoteNone:
		r.quote = 0
	case d.Quote != "":
		r.quote = d.Quote[0]
	}
	if r.escape = r.quote; d.Escape != "" {
		r.escape = d.Escape[0]
	}
	if d.Comment != "" {
		r.comment = d.Comment[0]
	}
	return r
}

// text is the field's value. It is valid until the next value is asked for.
func (r *records) text(rec record, f field) []byte {
	content := rec.text[f.from:f.to]
	if !f.escaped {
		return content
	}
	r.scratch = r.scratch[:0]
	for i := 0; i < len(content); i++ {
		if content[i] == r.escape && i+1 < len(content) {
			i++
		}
		r.scratch = append(r.scratch, content[i])
	}
	return r.scratch
}

// fill reads more of the file behind what is in the buffer.
func (r *records) fill() error {
	if r.at > 0 {
		r.end = copy(r.buffer, r.buffer[r.at:r.end])
		r.at = 0
	}
	if r.end == len(r.buffer) {
		r.buffer = append(r.buffer, make([]byte, len(r.buffer))...)
	}
	n, err := io.ReadFull(r.in, r.buffer[r.end:])
	r.end += n
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.ended = true
		return nil
	}
	return err
}

// lineEnd is the length of the line end that text begins with. whole is false when more has to be read to tell.
func (r *records) lineEnd(text []byte) (n int, whole bool) {
	switch {
	case text[0] == '\n':
		return 1, true
	case len(text) == 1:
		return 1, r.ended
	case text[1] == '\n':
		return 2, true
	}
	return 1, true
}

// skipLine passes over a line, or gives io.EOF when there is none.
func (r *records) skipLine() error {
	for {
		text := r.buffer[r.at:r.end]
		if i := bytes.IndexAny(text, "\r\n"); i >= 0 {
			if n, whole := r.lineEnd(text[i:]); whole {
				r.at += i + n
				r.line++
				return nil
			}
		}
		if r.ended {
			r.at = r.end
			if len(text) == 0 {
				return io.EOF
			}
			return nil
		}
		if len(text) > maxRecord {
			// Nobody reads it; only its end counts.
			r.at = r.end - 1
		}
		if err := r.fill(); err != nil {
			return err
		}
	}
}

// next gives the next record, or io.EOF behind the last one.
func (r *records) next() (record, error) {
	for {
		text := r.buffer[r.at:r.end]
		switch {
		case len(text) == 0 && r.ended:
			return record{}, io.EOF
		case len(text) == 0:
		case r.comment != 0 && text[0] == r.comment, r.skipEmpty && (text[0] == '\n' || text[0] == '\r'):
			if err := r.skipLine(); err != nil {
				return record{}, err
			}
			continue
		default:
			rec, used, whole := r.parse(text)
			if !whole && len(text) > maxRecord {
				rec = record{text: text[:0], fields: []field{{}}, line: r.line, last: true, wrong: fmt.Sprintf("the record is longer than %d bytes; perhaps a quote is never closed", maxRecord)}
				return rec, nil
			}
			if whole {
				r.at += used
				r.line += breaks(text[:used])
				return rec, nil
			}
		}
		if err := r.fill(); err != nil {
			return record{}, err
		}
	}
}

// parse takes the first record from text. whole is false when the record goes on behind it.
func (r *records) parse(text []byte) (_ record, used int, whole bool) {
	rec := record{line: r.line}
	complain := func(format string, args ...any) {
		if rec.wrong == "" {
			rec.wrong = fmt.Sprintf(format, args...)
		}
	}
	r.fields = r.fields[:0]
	n, delimiter := len(text), r.delimiter
	for i := 0; ; {
		f := field{start: i, from: i}
		at := i
		for r.quote != 0 && at < n && text[at] == ' ' && delimiter != ' ' {
			at++
		}
		if r.quote != 0 && at < n && text[at] == r.quote {
			var closed bool
			var why string
			if f, at, closed, why = r.quotedField(text, f, at+1); !closed && !r.ended {
				return rec, 0, false
			} else if !closed {
				why = "the record has a quoted field that is never closed"
				rec.last = true
			}
			if why != "" {
				complain("%s", why)
			}
			for at < n && text[at] == ' ' && delimiter != ' ' {
				at++
			}
			if at < n && text[at] != delimiter && text[at] != '\n' && text[at] != '\r' {
				complain("the record has text behind a closing quote")
			}
		} else {
			at = i
		}
		for at < n && text[at] != delimiter && text[at] != '\n' && text[at] != '\r' {
			at++
		}
		if at == n && !r.ended {
			return rec, 0, false
		}
		if !f.quoted {
			f.to = at
		}
		r.fields = append(r.fields, f)
		if at < n && text[at] == delimiter {
			i = at + 1
			continue
		}
		used = at
		if at < n {
			end, known := r.lineEnd(text[at:])
			if !known {
				return rec, 0, false
			}
			used += end
			if ending := string(text[at:used]); r.ending == "" {
				r.ending = ending
			} else if ending != r.ending {
				complain("the line ends with %q, but the first one with %q", ending, r.ending)
				rec.last = true
			}
		}
		rec.text, rec.fields = text[:at], r.fields
		if at > maxRecord {
			complain("the record is longer than %d bytes", maxRecord)
			rec.last = true
		}
		if rec.wrong == "" && !utf8.Valid(rec.text) {
			rec.wrong = "the record is not valid " + string(r.encoding)
		}
		return rec, used, true
	}
}

// quotedField takes the rest of a quoted field whose content begins at. at is then behind its closing quote. why says what is wrong with it.
func (r *records) quotedField(text []byte, f field, at int) (_ field, _ int, closed bool, why string) {
	f.quoted, f.from, f.to = true, at, len(text)
	for {
		i := bytes.IndexByte(text[at:], r.quote)
		if r.escape != r.quote {
			end := len(text)
			if i >= 0 {
				end = at + i
			}
			if e := bytes.IndexByte(text[at:end], r.escape); e >= 0 {
				at += e + 1
				if at == len(text) {
					return f, at, false, why
				}
				if text[at] != r.quote && text[at] != r.escape {
					why = fmt.Sprintf("the record has a %q in quotes before a character that is no quote and no %q", r.escape, r.escape)
				}
				f.escaped = true
				at++
				continue
			}
		}
		if i < 0 {
			return f, len(text), false, why
		}
		at += i
		if r.escape == r.quote {
			// Where the text ends here and the file does not, the record is read again with more of it.
			if at+1 < len(text) && text[at+1] == r.quote {
				f.escaped = true
				at += 2
				continue
			}
		}
		f.to = at
		return f, at + 1, true, why
	}
}
