package project

import (
	"bytes"
	"fmt"
	"strings"
)

// FieldForm is how a CSV column's values are written, when that is not the engine's own form.
type FieldForm struct {
	// Expected says the form to people.
	Expected string
	// Append appends a value's text in the engine's own form to dst; ok is false when the text is not of the form.
	Append func(dst, text []byte) (_ []byte, ok bool)
}

// FieldForm is the form of the column's values; nil when they are in the engine's own. The source was decoded without problems.
func (s Source) FieldForm(c Column) *FieldForm {
	format := c.Format
	d := s.Dialect
	switch c.Type {
	case "DATE":
		if format == "" {
			format = d.DateFormat
		}
	case "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		if format == "" {
			format = d.TimestampFormat
		}
	case "TIME":
	default:
		if !numeric(c.Type) || (d.Decimal == "" || d.Decimal == ".") && d.Thousands == "" {
			return nil
		}
		return numberForm(d)
	}
	if format == "" {
		return nil
	}
	f, err := ParseTimeForm(format, c.Type)
	if err != nil {
		return &FieldForm{Expected: err.Error(), Append: func(dst, _ []byte) ([]byte, bool) { return dst, false }}
	}
	return &FieldForm{Expected: "written like " + format, Append: f.Append}
}

func numeric(t Type) bool {
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "DOUBLE":
		return true
	}
	return strings.HasPrefix(string(t), "DECIMAL(")
}

// numberForm reads numbers with the dialect's separators. A number without any group is taken; one with groups has them all.
func numberForm(d Dialect) *FieldForm {
	decimal, thousands := d.Decimal, []byte(d.Thousands)
	if decimal == "" {
		decimal = "."
	}
	expected := fmt.Sprintf("a number with %q before its fraction", decimal)
	if len(thousands) > 0 {
		expected += fmt.Sprintf(" and, if at all, %q between all groups of three digits", d.Thousands)
	}
	return &FieldForm{Expected: expected, Append: func(dst, text []byte) ([]byte, bool) {
		rest := text
		if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
			dst, rest = append(dst, rest[0]), rest[1:]
		}
		if len(rest) > 0 && (rest[0]|0x20 == 'n' || rest[0]|0x20 == 'i') {
			// NaN and infinities have no separators.
			return append(dst, rest...), true
		}
		whole := leadingDigits(rest)
		dst, rest = append(dst, rest[:whole]...), rest[whole:]
		for first := true; len(thousands) > 0 && bytes.HasPrefix(rest, thousands); first = false {
			group := rest[len(thousands):]
			if first && (whole < 1 || whole > 3) || leadingDigits(group) < 3 {
				return dst, false
			}
			dst, rest = append(dst, group[:3]...), group[3:]
			if leadingDigits(rest) > 0 {
				return dst, false
			}
		}
		fraction := 0
		if bytes.HasPrefix(rest, []byte(decimal)) {
			rest = rest[len(decimal):]
			fraction = leadingDigits(rest)
			dst, rest = append(append(dst, '.'), rest[:fraction]...), rest[fraction:]
		}
		if whole+fraction == 0 {
			return dst, false
		}
		if len(rest) > 0 && rest[0]|0x20 == 'e' {
			exponent := rest[1:]
			if len(exponent) > 0 && (exponent[0] == '-' || exponent[0] == '+') {
				exponent = exponent[1:]
			}
			if n := leadingDigits(exponent); n == 0 || n < len(exponent) {
				return dst, false
			}
			return append(dst, rest...), true
		}
		return dst, len(rest) == 0
	}}
}

func leadingDigits(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
