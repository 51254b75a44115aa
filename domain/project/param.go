package project

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"leapview/domain/fail"
)

// MaxParamBytes bounds the text of one parameter value.
const MaxParamBytes = 4096

// Decimal parameters are exact: they have the digits of DECIMAL(38,9), and more of them are refused rather than rounded.
const (
	decimalDigits   = 38
	decimalFraction = 9
)

// maxComplaints bounds how many wrong parameters one error names.
const maxComplaints = 10

// paramTypes lists every parameter type, as their authors write them.
var paramTypes = []string{string(ParamString), string(ParamInteger), string(ParamDecimal), string(ParamBoolean), string(ParamDate), string(ParamTimestamp)}

var (
	integerForm   = regexp.MustCompile(`^-?[0-9]+$`)
	decimalForm   = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	dateForm      = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	timestampForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$`)
)

// Parse gives the canonical text of a value: equal values have equal texts. It refuses what is not of the parameter's type, not
// in its enum, or out of its bounds.
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

// Bind checks a call's parameters and completes them: the canonical text of every declared parameter by name, nil for NULL.
// Everything wrong with the call is reported at once.
func (e Endpoint) Bind(given map[string]string) (map[string]*string, error) {
	bound := make(map[string]*string, len(e.Params))
	names := make([]string, 0, len(e.Params))
	var wrong []string
	for _, p := range e.Params {
		names = append(names, p.Name)
		text, ok := given[p.Name]
		switch {
		case ok:
			canonical, err := p.Parse(text)
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %s", p.Name, err))
				continue
			}
			bound[p.Name] = &canonical
		case p.Required:
			wrong = append(wrong, fmt.Sprintf("%s: it is required (%s)", p.Name, p.allowed()))
		default:
			bound[p.Name] = p.Default
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(names, name) {
			continue
		}
		hint := Suggest(name, names)
		switch {
		case len(names) == 0:
			hint = "the endpoint has none"
		case hint == "":
			hint = "known are " + list(names)
		}
		wrong = append(wrong, fmt.Sprintf("%s: there is no such parameter; %s", show(name), hint))
	}
	if len(wrong) == 0 {
		return bound, nil
	}
	if len(wrong) > maxComplaints {
		wrong = append(wrong[:maxComplaints], fmt.Sprintf("and %d more", len(wrong)-maxComplaints))
	}
	return nil, fail.New(fail.Invalid, "bad_parameters", "endpoint %q cannot be asked with these parameters: %s", e.Name, strings.Join(wrong, "; ")).
		WithFix("correct them and ask again")
}

// allowed describes the values that the parameter accepts.
func (p Param) allowed() string {
	s := string(p.Type)
	if len(p.Enum) > 0 {
		s += ", one of " + list(p.Enum)
	}
	if p.Min != nil {
		s += ", at least " + *p.Min
	}
	if p.Max != nil {
		s += ", at most " + *p.Max
	}
	return s
}
