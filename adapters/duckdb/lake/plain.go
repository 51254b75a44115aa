package lake

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"leapview/domain/project"
)

// Reading every field as text and casting it exactly costs as much again as the engine's own typed reading. Most files need no such
// care: each of their fields has a form that the engine's reading cannot bend. plain proves that of a file, byte by byte; a file that
// it does not understand at once is read the exact way, which also says what is wrong with it. So a mistake here may cost time, and
// must never be that a bent form passes for a plain one.

// form of a field that the engine reads exactly: whole reports whether text has it. The text is never empty.
type whole func(text []byte) bool

// wholes gives the columns' plain forms; ok is false when a column's type has none.
func wholes(columns []project.Column) (forms []whole, ok bool) {
	forms = make([]whole, len(columns))
	for i, c := range columns {
		switch c.Type {
		case "VARCHAR":
			forms[i] = func(text []byte) bool { return bytes.IndexByte(text, 0) < 0 }
		case "TINYINT", "SMALLINT", "INTEGER", "BIGINT":
			forms[i] = func(text []byte) bool { return isWhole(unsigned(text)) }
		case "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
			forms[i] = isWhole
		case "DOUBLE":
			forms[i] = func(text []byte) bool { return isFloat(unsigned(text)) }
		case "DATE":
			forms[i] = func(text []byte) bool { return len(text) == 10 && isDay(text) }
		case "TIMESTAMP":
			forms[i] = func(text []byte) bool { return len(text) == 19 && isMoment(text) }
		case "TIMESTAMP WITH TIME ZONE":
			forms[i] = func(text []byte) bool { return len(text) == 20 && text[19] == 'Z' && isMoment(text) }
		default:
			digits, decimal := strings.CutPrefix(string(c.Type), "DECIMAL(")
			_, s, _ := strings.Cut(strings.TrimSuffix(digits, ")"), ",")
			scale, err := strconv.Atoi(s)
			if !decimal || err != nil {
				return nil, false
			}
			forms[i] = func(text []byte) bool { return isDecimal(unsigned(text), scale) }
		}
	}
	return forms, true
}

// unsigned is the text behind a minus.
func unsigned(text []byte) []byte { return bytes.TrimPrefix(text, []byte{'-'}) }

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

// isDecimal accepts digits, and at most scale more behind a point.
func isDecimal(text []byte, scale int) bool {
	n := digitsOf(text)
	if n == 0 || n > 100 {
		return false
	}
	if n == len(text) {
		return true
	}
	rest := text[n+1:]
	return text[n] == '.' && len(rest) <= scale && isWhole(rest)
}

// isFloat accepts a decimal, with an exponent too small to make it infinite.
func isFloat(text []byte) bool {
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
	return isDecimal(text, 100)
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

// plain tells whether every field of every file has its type's plain form or is a text that means NULL. Files that cannot be read are
// not plain.
func (t texts) plain(ctx context.Context, paths []string) bool {
	forms, ok := wholes(t.columns)
	if !ok {
		return false
	}
	nulls := make([][]byte, len(t.nulls))
	for i, n := range t.nulls {
		nulls[i] = []byte(n)
	}
	is := make([]bool, len(paths))
	turn := make(chan struct{}, derivers)
	var all sync.WaitGroup
	for i, path := range paths {
		turn <- struct{}{}
		all.Go(func() {
			is[i] = plainFile(ctx, path, t.delimiter[0], forms, nulls)
			<-turn
		})
	}
	all.Wait()
	for _, yes := range is {
		if !yes {
			return false
		}
	}
	return true
}

func plainFile(ctx context.Context, path string, delimiter byte, forms []whole, nulls [][]byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	in := bufio.NewReaderSize(patient{ctx, f}, 1<<18)
	for header := true; ; header = false {
		// A line that does not fit into the buffer is not plain.
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		if len(line) == 0 {
			return true
		}
		if !header && !plainLine(bytes.TrimSuffix(line, []byte{'\n'}), delimiter, forms, nulls) {
			return false
		}
	}
}

// plainLine is false for an empty line, and for any with a quote or a carriage return.
func plainLine(line []byte, delimiter byte, forms []whole, nulls [][]byte) bool {
	if len(line) == 0 || bytes.IndexByte(line, '"') >= 0 || bytes.IndexByte(line, '\r') >= 0 {
		return false
	}
	for i, form := range forms {
		end := bytes.IndexByte(line, delimiter)
		if last := i == len(forms)-1; last != (end < 0) {
			return false
		} else if last {
			end = len(line)
		}
		if text := line[:end]; !form(text) && !isNull(text, nulls) {
			return false
		}
		if i < len(forms)-1 {
			line = line[end+1:]
		}
	}
	return true
}

func isNull(text []byte, nulls [][]byte) bool {
	for _, n := range nulls {
		if bytes.Equal(text, n) {
			return true
		}
	}
	return false
}
