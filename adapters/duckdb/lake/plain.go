package lake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"leapview/domain/project"
)

// Reading every field as text and casting it exactly costs as much again as the engine's own typed reading. Most files need no such
// care: each of their fields has a form that the engine's reading can neither bend nor refuse. plain proves that of a file, byte by
// byte; a file that it does not understand at once is read the exact way, which also says what is wrong with it. So a mistake here may
// cost time, and must never be that another form passes for a plain one.

// plainForm is what a column's plain fields look like.
type plainForm struct {
	kind plainKind
	// most is the largest whole number, in digits.
	most   string
	signed bool
	// before and behind are how many digits stand around the point.
	before, behind int
}

type plainKind uint8

const (
	anyText plainKind = iota
	wholeNumber
	fixedNumber
	floatNumber
	plainDay
	plainMoment
	plainInstant
)

// plainForms gives the columns' forms; ok is false when a column's type has none.
func plainForms(columns []project.Column) (forms []plainForm, ok bool) {
	forms = make([]plainForm, len(columns))
	for i, c := range columns {
		switch c.Type {
		case "VARCHAR":
			forms[i] = plainForm{kind: anyText}
		case "TINYINT":
			forms[i] = plainForm{kind: wholeNumber, most: "127", signed: true}
		case "SMALLINT":
			forms[i] = plainForm{kind: wholeNumber, most: "32767", signed: true}
		case "INTEGER":
			forms[i] = plainForm{kind: wholeNumber, most: "2147483647", signed: true}
		case "BIGINT":
			forms[i] = plainForm{kind: wholeNumber, most: "9223372036854775807", signed: true}
		case "UTINYINT":
			forms[i] = plainForm{kind: wholeNumber, most: "255"}
		case "USMALLINT":
			forms[i] = plainForm{kind: wholeNumber, most: "65535"}
		case "UINTEGER":
			forms[i] = plainForm{kind: wholeNumber, most: "4294967295"}
		case "UBIGINT":
			forms[i] = plainForm{kind: wholeNumber, most: "18446744073709551615"}
		case "DOUBLE":
			// With an exponent of two digits no such number is infinite.
			forms[i] = plainForm{kind: floatNumber, before: 100, behind: 100}
		case "DATE":
			forms[i] = plainForm{kind: plainDay}
		case "TIMESTAMP":
			forms[i] = plainForm{kind: plainMoment}
		case "TIMESTAMP WITH TIME ZONE":
			forms[i] = plainForm{kind: plainInstant}
		default:
			digits, decimal := strings.CutPrefix(string(c.Type), "DECIMAL(")
			w, s, _ := strings.Cut(strings.TrimSuffix(digits, ")"), ",")
			width, err := strconv.Atoi(w)
			if !decimal || err != nil {
				return nil, false
			}
			scale, err := strconv.Atoi(s)
			if err != nil {
				return nil, false
			}
			forms[i] = plainForm{kind: fixedNumber, before: width - scale, behind: scale}
		}
	}
	return forms, true
}

// holds tells whether the text, of a line that passed plainBytes, has the form.
func (f *plainForm) holds(text []byte) bool {
	switch f.kind {
	case anyText:
		return true
	case wholeNumber:
		if f.signed {
			text = unsigned(text)
		}
		return isWhole(text) && (len(text) < len(f.most) || len(text) == len(f.most) && string(text) <= f.most)
	case fixedNumber:
		return isDecimal(unsigned(text), f.before, f.behind)
	case floatNumber:
		return isFloat(unsigned(text), f.before, f.behind)
	case plainDay:
		return len(text) == 10 && isDay(text)
	case plainMoment:
		return len(text) == 19 && isMoment(text)
	case plainInstant:
		return len(text) == 20 && text[19] == 'Z' && isMoment(text)
	}
	return false
}

// unsigned is the text behind a minus.
func unsigned(text []byte) []byte {
	if len(text) > 0 && text[0] == '-' {
		return text[1:]
	}
	return text
}

// digitsOf counts the digits that text begins with.
func digitsOf(text []byte) int {
	for i, c := range text {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(text)
}

func isWhole(text []byte) bool { return len(text) > 0 && digitsOf(text) == len(text) }

// isDecimal accepts some digits, but no more than before, and no more than behind after a point.
func isDecimal(text []byte, before, behind int) bool {
	n := digitsOf(text)
	if n == 0 || n > before {
		return false
	}
	if n == len(text) {
		return true
	}
	rest := text[n+1:]
	return text[n] == '.' && len(rest) <= behind && isWhole(rest)
}

// isFloat accepts a decimal and an exponent of one or two digits.
func isFloat(text []byte, before, behind int) bool {
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		exponent := text[i+1:]
		if len(exponent) > 1 && (exponent[0] == '-' || exponent[0] == '+') {
			exponent = exponent[1:]
		}
		if len(exponent) > 2 || !isWhole(exponent) {
			return false
		}
		text = text[:i]
	}
	return isDecimal(text, before, behind)
}

// isDay accepts a day of the calendar in the first ten bytes. A day that does not exist is no plain one: in some types the engine reads
// it as NULL.
func isDay(text []byte) bool {
	if !isWhole(text[:4]) || text[4] != '-' || !isWhole(text[5:7]) || text[7] != '-' || !isWhole(text[8:10]) {
		return false
	}
	month, day := two(text[5:]), two(text[8:])
	// The 29th of February, which only some years have, is left to the exact way.
	return month >= 1 && month <= 12 && day >= 1 && (day <= 28 || day <= 30 && month != 2 || day == 31 && (month <= 7 && month%2 == 1 || month >= 8 && month%2 == 0))
}

// two is the number that two digits write.
func two(digits []byte) int { return int(digits[0]-'0')*10 + int(digits[1]-'0') }

// isMoment accepts a day and a time of day in the first nineteen bytes.
func isMoment(text []byte) bool {
	return isDay(text) && (text[10] == 'T' || text[10] == ' ') && isWhole(text[11:13]) && text[13] == ':' && isWhole(text[14:16]) && text[16] == ':' && isWhole(text[17:19]) &&
		two(text[11:]) < 24 && two(text[14:]) < 60 && two(text[17:]) < 60
}

// plain tells whether every field of every file has its column's plain form or is a text that means NULL, and counts the records.
// Files that cannot be read are not plain.
func (t texts) plain(ctx context.Context, paths []string) (rows int64, ok bool) {
	forms, ok := plainForms(t.columns)
	if !ok {
		return 0, false
	}
	records := make([]int64, len(paths))
	is := make([]bool, len(paths))
	turn := make(chan struct{}, derivers)
	var all sync.WaitGroup
	for i, path := range paths {
		turn <- struct{}{}
		all.Go(func() {
			records[i], is[i] = t.plainFile(ctx, path, forms)
			<-turn
		})
	}
	all.Wait()
	for i, yes := range is {
		if !yes {
			return 0, false
		}
		rows += records[i]
	}
	return rows, true
}

// mostPlain is how many bytes a plain line and its neighbours have at most.
const mostPlain = 1 << 18

func (t texts) plainFile(ctx context.Context, path string, forms []plainForm) (rows int64, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	in := patient{ctx, f}
	buffer := make([]byte, mostPlain)
	header, filled := t.header, 0
	for {
		n, err := io.ReadFull(in, buffer[filled:])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return 0, false
		}
		filled += n
		lines := buffer[:filled]
		if last && filled > 0 && lines[filled-1] != '\n' {
			lines = append(lines, '\n')
		}
		lines = lines[:bytes.LastIndexByte(lines, '\n')+1]
		if !last && len(lines) == 0 || !t.plainBytes(lines) {
			return 0, false
		}
		rest := lines
		if header {
			rest = rest[bytes.IndexByte(rest, '\n')+1:]
			header = false
		}
		for ; len(rest) > 0; rows++ {
			if rest = t.plainLine(rest, forms); rest == nil {
				return 0, false
			}
		}
		if last {
			return rows, true
		}
		filled = copy(buffer, buffer[len(lines):filled])
	}
}

// plainBytes refuses quotes, carriage returns, NUL bytes and what is no UTF-8.
func (t texts) plainBytes(lines []byte) bool {
	if t.quote != 0 && bytes.IndexByte(lines, t.quote) >= 0 {
		return false
	}
	return bytes.IndexByte(lines, '"') < 0 && bytes.IndexByte(lines, '\r') < 0 && bytes.IndexByte(lines, 0) < 0 && utf8.Valid(lines)
}

// plainLine gives what follows the first of the lines, or nil when that one is not plain; an empty line is not.
func (t texts) plainLine(lines []byte, forms []plainForm) []byte {
	delimiter := t.delimiter[0]
	if lines[0] == '\n' {
		return nil
	}
	for i := range forms {
		end := 0
		for lines[end] != delimiter && lines[end] != '\n' {
			end++
		}
		if last := i == len(forms)-1; last != (lines[end] == '\n') {
			return nil
		}
		if text := lines[:end]; !forms[i].holds(text) && !slices.Contains(t.nulls, string(text)) {
			return nil
		}
		lines = lines[end+1:]
	}
	return lines
}
