package draft

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// Table is what was seen of one file.
type Table struct {
	// Name is the file's path as its author knows it, and Location where the project finds it, below the source root.
	Name, Location string
	Format         project.Format
	// Delimiter of CSV.
	Delimiter string
	Columns   []*Column
	Rows      int64
	// Doubts are about the file as a whole.
	Doubts []string
}

// The bounds of what a file may hold to be drafted from.
const (
	mostColumns = 2000
	mostLine    = 1 << 20
	peekBytes   = 1 << 18
)

func refuse(code, fix, format string, args ...any) error {
	return fail.New(fail.Invalid, code, format, args...).WithFix("%s", fix)
}

// delimiters are tried in this order.
var delimiters = []string{",", ";", "\t", "|"}

// ReadCSV looks at a CSV file, unpacked, whose first record names its columns.
func ReadCSV(name string, r io.Reader) (Table, error) {
	t := Table{Name: name, Format: project.CSV}
	in := bufio.NewReaderSize(r, peekBytes)
	head, err := in.Peek(peekBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return t, err
	}
	switch {
	case len(head) == 0:
		return t, refuse("empty_file", "give a file with a header and rows", "%s is empty", name)
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return t, refuse("other_encoding", "save it as UTF-8", "%s is UTF-16 text", name)
	case bytes.IndexByte(head, 0) >= 0:
		return t, refuse("not_text", "give a CSV, Parquet or JSON file with its usual ending", "%s is not a text file", name)
	}
	if bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")) {
		// A peeked byte can always be discarded.
		_, _ = in.Discard(3)
		head = head[3:]
	}
	var tied []string
	t.Delimiter, tied = delimiterOf(head)
	if len(tied) > 0 {
		t.Doubts = append(t.Doubts, fmt.Sprintf("its records are as regular when cut at %s", strings.Join(quoted(tied), " or ")))
	}
	records := scanner{in: in, delimiter: t.Delimiter[0]}
	header, err := records.next()
	if err != nil {
		return t, records.located(name, err)
	}
	if len(header) > mostColumns {
		return t, fail.New(fail.Limit, "columns", "%s has %d columns (limit columns = %d)", name, len(header), mostColumns)
	}
	if err := t.header(name, header); err != nil {
		return t, err
	}
	for {
		record, err := records.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t, records.located(name, err)
		}
		if len(record) == 1 && len(header) > 1 && record[0].Text == "" && !record[0].Quoted {
			return t, refuse("empty_line", "remove it", "%s:%d: the line is empty", name, records.line)
		}
		if len(record) != len(header) {
			return t, refuse("ragged", "mend the file", "%s:%d: the record has %d fields, the header has %d", name, records.line, len(record), len(header))
		}
		for i, f := range record {
			t.Columns[i].Add(f)
		}
		t.Rows++
	}
	return t, nil
}

// header makes the columns. A first record that looks like data names nothing.
func (t *Table) header(name string, record []Field) error {
	var seen []string
	for i, f := range record {
		low := strings.ToLower(f.Text)
		switch k := kindOf(f.Text); {
		case strings.TrimSpace(f.Text) == "":
			return refuse("column_without_name", "name every column in the file's first line", "%s:1: column %d has no name", name, i+1)
		case !f.Quoted && k != isText && k != isBoolean:
			return refuse("no_header", "put a first line before it that names the columns", "%s:1: %q is a value and no name, so the file seems to have no header", name, clip(f.Text))
		case slices.Contains(seen, low):
			return refuse("column_twice", "rename one: case does not count", "%s:1: two columns are called %q", name, f.Text)
		case len(f.Text) > project.MaxColumnNameBytes || strings.ContainsFunc(f.Text, func(r rune) bool { return r < ' ' }):
			return refuse("column_name", "rename it", "%s:1: %q cannot name a column", name, clip(f.Text))
		}
		seen = append(seen, low)
		t.Columns = append(t.Columns, NewColumn(f.Text, ""))
	}
	return nil
}

// delimiterOf chooses the delimiter that cuts the first lines into the same number of fields most regularly; tied are others that do
// as well.
func delimiterOf(head []byte) (best string, tied []string) {
	most := -1
	for _, d := range delimiters {
		records := scanner{in: bufio.NewReader(bytes.NewReader(head)), delimiter: d[0]}
		fields, n := 0, 0
		for n < 200 {
			record, err := records.next()
			if err != nil {
				break
			}
			if n == 0 {
				fields = len(record)
			} else if len(record) != fields && records.more() {
				fields = 0
				break
			}
			n++
		}
		score := fields
		switch {
		case score <= 1:
			continue
		case score > most:
			best, most, tied = d, score, nil
		case score == most:
			tied = append(tied, d)
		}
	}
	if best == "" {
		best = ","
	}
	return best, tied
}

func quoted(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = fmt.Sprintf("%q", t)
	}
	return out
}

// scanner reads the records of a CSV file, with quotes doubled inside quotes.
type scanner struct {
	in        *bufio.Reader
	delimiter byte
	// line is where the last record began; next is the line that stands next.
	line, nextLine int
}

var (
	errNotUTF8  = errors.New("it is not UTF-8 text")
	errOpen     = errors.New("a quoted field is never closed")
	errBehind   = errors.New("text stands behind a closing quote")
	errLongLine = fmt.Errorf("the record is longer than %d bytes", mostLine)
)

// more tells whether anything follows.
func (s *scanner) more() bool {
	_, err := s.in.Peek(1)
	return err == nil
}

func (s *scanner) located(name string, err error) error {
	switch {
	case errors.Is(err, errNotUTF8):
		return refuse("other_encoding", "save it as UTF-8", "%s:%d: %v", name, s.line, err)
	case errors.Is(err, errOpen), errors.Is(err, errBehind), errors.Is(err, errLongLine):
		return refuse("not_csv", "mend the file", "%s:%d: %v", name, s.line, err)
	}
	return err
}

// next gives a record, or io.EOF.
func (s *scanner) next() (record []Field, err error) {
	s.line = s.nextLine + 1
	if !s.more() {
		return nil, io.EOF
	}
	var field []byte
	isQuoted, size := false, 0
	end := func() error {
		if !utf8.Valid(field) {
			return errNotUTF8
		}
		record = append(record, Field{Text: string(field), Quoted: isQuoted})
		field, isQuoted = field[:0], false
		return nil
	}
	for {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return record, end()
		}
		if err != nil {
			return nil, err
		}
		if size++; size > mostLine {
			return nil, errLongLine
		}
		switch {
		case c == '"' && len(field) == 0 && !isQuoted:
			isQuoted = true
			if err := s.quoted(&field, &size); err != nil {
				return nil, err
			}
		case c == s.delimiter:
			if err := end(); err != nil {
				return nil, err
			}
		case c == '\n':
			s.nextLine++
			return record, end()
		case c == '\r':
			if b, err := s.in.Peek(1); err == nil && b[0] == '\n' {
				continue
			}
			s.nextLine++
			return record, end()
		case isQuoted:
			return nil, errBehind
		default:
			field = append(field, c)
		}
	}
}

// quoted reads to the closing quote.
func (s *scanner) quoted(field *[]byte, size *int) error {
	for {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return errOpen
		}
		if err != nil {
			return err
		}
		if *size++; *size > mostLine {
			return errLongLine
		}
		if c == '\n' {
			s.nextLine++
		}
		if c != '"' {
			*field = append(*field, c)
			continue
		}
		if b, err := s.in.Peek(1); err != nil || b[0] != '"' {
			return nil
		}
		// The second quote was peeked.
		_, _ = s.in.Discard(1)
		*field = append(*field, '"')
	}
}

// ReadJSON looks at a JSON file: an array of objects, or one object after another.
func ReadJSON(name string, r io.Reader) (Table, error) {
	t := Table{Name: name, Format: project.JSON}
	byName := map[string]*Column{}
	in := bufio.NewReader(r)
	for {
		b, err := in.Peek(1)
		if errors.Is(err, io.EOF) {
			return t, refuse("empty_file", "give a file with objects", "%s is empty", name)
		}
		if err != nil {
			return t, err
		}
		if strings.IndexByte(" \t\r\n\xEF\xBB\xBF", b[0]) < 0 {
			break
		}
		_, _ = in.Discard(1)
	}
	first, err := in.Peek(1)
	if err != nil {
		return t, err
	}
	array := first[0] == '['
	d := json.NewDecoder(in)
	if array {
		if _, err := d.Token(); err != nil {
			return t, notJSON(name, d, err)
		}
	}
	for d.More() {
		var object map[string]json.RawMessage
		if err := d.Decode(&object); err != nil {
			return t, notJSON(name, d, err)
		}
		keys := make([]string, 0, len(object))
		for key := range object {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			c := byName[key]
			if c == nil {
				if len(byName) == mostColumns {
					return t, fail.New(fail.Limit, "columns", "%s has more than %d different keys (limit columns)", name, mostColumns)
				}
				c = NewColumn(key, "")
				// The objects before it did not have the key.
				c.Rows, c.Nulls = t.Rows, t.Rows
				byName[key] = c
				t.Columns = append(t.Columns, c)
			}
			c.addJSON(object[key])
		}
		t.Rows++
		for _, c := range t.Columns {
			if c.Rows < t.Rows {
				c.Add(Field{Null: true})
			}
		}
	}
	if array {
		if _, err := d.Token(); err != nil {
			return t, notJSON(name, d, err)
		}
	}
	if len(t.Columns) == 0 {
		return t, refuse("empty_file", "give a file with objects", "%s holds no object with a key", name)
	}
	return t, nil
}

func notJSON(name string, d *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse("not_json", "give an array of objects, or one object after another", "%s: byte %d: %v", name, d.InputOffset(), err)
	}
	return err
}

// addJSON looks at one JSON value.
func (c *Column) addJSON(v json.RawMessage) {
	switch v[0] {
	case 'n':
		c.Add(Field{Null: true})
	case '"':
		var s string
		// The decoder has read it as a string already.
		_ = json.Unmarshal(v, &s)
		c.strings++
		if k := kindOf(s); k == isWhole || k == isFixed || k == isFloat || k == isBoolean {
			c.text(s)
			return
		}
		c.Add(Field{Text: s, Quoted: true})
	case '{', '[':
		c.nested++
		c.Rows++
	default:
		c.bare++
		c.Add(Field{Text: string(v)})
	}
}

// text looks at a string that would be read as a number: in JSON the quotes say that it is none.
func (c *Column) text(s string) {
	c.Rows++
	c.remember(s)
	c.kinds[isText]++
	if c.example == "" {
		c.example = s
	}
}
