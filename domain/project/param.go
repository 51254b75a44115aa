package project

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"leapview/domain/fail"
)

// The bounds of parameters and their values.
const (
	// MaxParamBytes bounds the text of one value, or of one item of a list.
	MaxParamBytes = 4096
	// MaxListItems bounds the items that a list may be declared to hold, and defaultListItems those of a list that declares no bound.
	MaxListItems     = 1000
	defaultListItems = 100
	// MaxListBytes bounds all items of one list together.
	MaxListBytes = 64 << 10
	// MaxPatternBytes bounds the text of a pattern.
	MaxPatternBytes = 500
)

// Decimal parameters are exact: they have the digits of DECIMAL(38,9), and more of them are refused rather than rounded.
const (
	decimalDigits   = 38
	decimalFraction = 9
)

// paramTypes lists every parameter type, as their authors write them.
var paramTypes = []string{string(ParamString), string(ParamInteger), string(ParamDecimal), string(ParamBoolean), string(ParamDate), string(ParamTimestamp)}

var (
	integerForm   = regexp.MustCompile(`^-?[0-9]+$`)
	decimalForm   = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	dateForm      = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	timestampForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$`)
)

// Parse gives the canonical text of a value, or of one item of a list: equal values have equal texts. It refuses what is not of the
// parameter's type, not in its enum, out of its bounds, or does not match its pattern.
func (p Param) Parse(text string) (canonical string, err error) {
	canonical, err = p.Type.canonical(text)
	if err != nil {
		return "", err
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, canonical) {
		return "", wrongValue("%s is not one of %s", show(text), list(p.Enum))
	}
	if p.Min != nil && p.Type.compare(canonical, *p.Min) < 0 {
		return "", wrongValue("%s is less than the least value, %s", show(text), *p.Min)
	}
	if p.Max != nil && p.Type.compare(canonical, *p.Max) > 0 {
		return "", wrongValue("%s is more than the greatest value, %s", show(text), *p.Max)
	}
	if n := utf8.RuneCountInString(canonical); p.MinLength != nil && n < *p.MinLength {
		return "", wrongValue("%s has a length of %d, less than %d (min_length)", show(text), n, *p.MinLength)
	} else if p.MaxLength != nil && n > *p.MaxLength {
		return "", wrongValue("%s has a length of %d, more than %d (max_length)", show(text), n, *p.MaxLength)
	}
	if p.Pattern != nil && !p.Pattern.whole.MatchString(canonical) {
		return "", wrongValue("%s does not match the pattern %s", show(text), p.Pattern)
	}
	return canonical, nil
}

func wrongValue(format string, args ...any) *fail.Error {
	return fail.New(fail.Invalid, "bad_parameter", format, args...)
}

// show quotes a value for a message, which does not grow with it.
func show(s string) string {
	if len(s) > 60 {
		return strconv.Quote(strings.ToValidUTF8(s[:60], "")) + "…"
	}
	return strconv.Quote(s)
}

// list joins the first names for a message.
func list(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (t ParamType) canonical(s string) (string, error) {
	if len(s) > MaxParamBytes {
		return "", wrongValue("it has %d bytes (limit parameter_bytes = %d)", len(s), MaxParamBytes)
	}
	switch t {
	case ParamString:
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return "", wrongValue("%s is not UTF-8 text without NUL", show(s))
		}
		return s, nil
	case ParamInteger:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || !integerForm.MatchString(s) {
			return "", wrongValue("%s is not an integer of 64 bits in plain digits", show(s))
		}
		return strconv.FormatInt(n, 10), nil
	case ParamDecimal:
		return canonicalDecimal(s)
	case ParamBoolean:
		if s != "true" && s != "false" {
			return "", wrongValue("%s is neither true nor false", show(s))
		}
		return s, nil
	case ParamDate:
		day, err := time.Parse(time.DateOnly, s)
		if err != nil || !dateForm.MatchString(s) || day.Year() < 1 {
			return "", wrongValue("%s is not a date of the calendar, written YYYY-MM-DD", show(s))
		}
		return s, nil
	case ParamTimestamp:
		at, err := time.Parse("2006-01-02T15:04:05", s)
		if err != nil || !timestampForm.MatchString(s) || at.Year() < 1 {
			return "", wrongValue("%s is not a timestamp, written YYYY-MM-DDTHH:MM:SS with up to six fractional digits and without an offset", show(s))
		}
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s, nil
	}
	return "", fail.New(fail.Corrupt, "bad_parameter_type", "there is no parameter type %q", t)
}

func canonicalDecimal(s string) (string, error) {
	if !decimalForm.MatchString(s) {
		return "", wrongValue("%s is not a number in plain decimal digits", show(s))
	}
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if len(whole) > decimalDigits-decimalFraction || len(fraction) > decimalFraction {
		return "", wrongValue("%s has more than %d digits before the point or %d after it, and would be rounded", show(s), decimalDigits-decimalFraction, decimalFraction)
	}
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative && whole != "0" {
		whole = "-" + whole
	}
	return whole, nil
}

// bounded tells whether values of the type have an order, so that min and max make sense.
func (t ParamType) bounded() bool { return t != ParamString && t != ParamBoolean }

// compare orders two canonical texts of a bounded type.
func (t ParamType) compare(a, b string) int {
	if t == ParamInteger || t == ParamDecimal {
		// Canonical texts always parse.
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		return x.Cmp(y)
	}
	// Dates and timestamps have years of four digits, and a timestamp's fraction has no zeros at its end.
	return strings.Compare(a, b)
}

// allowed describes the values that the parameter accepts.
func (p Param) allowed() string {
	s := string(p.Type)
	if p.List {
		s = fmt.Sprintf("a list of at most %d items, each of type %s", p.MaxItems, p.Type)
	}
	if len(p.Enum) > 0 {
		s += ", one of " + list(p.Enum)
	}
	if p.Min != nil {
		s += ", at least " + *p.Min
	}
	if p.Max != nil {
		s += ", at most " + *p.Max
	}
	if p.MinLength != nil {
		s += fmt.Sprintf(", at least %d characters", *p.MinLength)
	}
	if p.MaxLength != nil {
		s += fmt.Sprintf(", at most %d characters", *p.MaxLength)
	}
	if p.Pattern != nil {
		s += ", matching " + p.Pattern.String()
	}
	return s
}

// Pattern is a regular expression in RE2's syntax that a whole text has to match.
type Pattern struct {
	text  string
	whole *regexp.Regexp
}

// ParsePattern refuses what is no pattern, and one that is too large to be matched quickly.
func ParsePattern(text string) (*Pattern, error) {
	if len(text) > MaxPatternBytes {
		return nil, fail.New(fail.Invalid, "bad_pattern", "the pattern has %d bytes (limit pattern_bytes = %d)", len(text), MaxPatternBytes).
			WithFix("write a shorter one")
	}
	// The text is parsed alone first: within the brackets below, one that is unbalanced could mean something else.
	if _, err := regexp.Compile(text); err != nil {
		return nil, fail.New(fail.Invalid, "bad_pattern", "the pattern %s is refused: %s", show(text), strings.TrimPrefix(err.Error(), "error parsing regexp: ")).
			WithFix("write a regular expression in the syntax of RE2")
	}
	whole, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return nil, fail.New(fail.Invalid, "bad_pattern", "the pattern %s is too large", show(text)).Because(err).WithFix("write a simpler one")
	}
	return &Pattern{text, whole}, nil
}

// String is the pattern as its author wrote it.
func (p *Pattern) String() string { return p.text }
