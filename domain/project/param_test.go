package project

import (
	"strings"
	"testing"
)

// Proves the canonical text of each type's values, that equal values have one text, and that nothing is rounded or guessed.
func TestParamParse(t *testing.T) {
	digits29, digits9 := strings.Repeat("9", 29), strings.Repeat("9", 9)
	for _, c := range []struct {
		t        ParamType
		in, want string
	}{
		{ParamInteger, "7", "7"}, {ParamInteger, "-007", "-7"}, {ParamInteger, "-0", "0"},
		{ParamInteger, "9223372036854775807", "9223372036854775807"}, {ParamInteger, "-9223372036854775808", "-9223372036854775808"},
		{ParamDecimal, "1.50", "1.5"}, {ParamDecimal, "00.000", "0"}, {ParamDecimal, "-0.0", "0"}, {ParamDecimal, "-0.1", "-0.1"}, {ParamDecimal, "10", "10"},
		{ParamDecimal, digits29 + "." + digits9 + "000", digits29 + "." + digits9},
		{ParamBoolean, "true", "true"}, {ParamBoolean, "false", "false"},
		{ParamDate, "2012-02-29", "2012-02-29"}, {ParamDate, "0001-01-01", "0001-01-01"}, {ParamDate, "9999-12-31", "9999-12-31"},
		{ParamTimestamp, "2013-01-02T03:04:05", "2013-01-02T03:04:05"}, {ParamTimestamp, "2013-01-02T03:04:05.120000", "2013-01-02T03:04:05.12"},
		{ParamTimestamp, "2013-01-02T03:04:00.000", "2013-01-02T03:04:00"},
		{ParamString, "", ""}, {ParamString, "é\n", "é\n"}, {ParamString, strings.Repeat("a", MaxParamBytes), strings.Repeat("a", MaxParamBytes)},
	} {
		if got, err := (Param{Type: c.t}).Parse(c.in); got != c.want || err != nil {
			t.Errorf("%s %q: got %q, %v; want %q", c.t, c.in, got, err, c.want)
		}
	}
	for kind, wrong := range map[ParamType][]string{
		ParamInteger:   {"", "+1", "1.0", "1e3", "0x10", "1_000", " 1", "9223372036854775808", "-9223372036854775809", "١"},
		ParamDecimal:   {"", ".5", "5.", "+1", "1e3", "1,5", "NaN", "inf", "0.0000000001", digits29 + "9", "--1", "1.-1"},
		ParamBoolean:   {"", "TRUE", "1", "yes"},
		ParamDate:      {"", "2013-02-29", "2013-13-01", "2013-1-1", "0000-01-01", "2013-01-01T00:00:00", "20130101", "-2013-01-01", "infinity"},
		ParamTimestamp: {"", "2013-01-01", "2013-01-01 00:00:00", "2013-01-01T00:00:00Z", "2013-01-01T00:00:00+01:00", "2013-01-01T24:00:00", "2013-01-01T00:00:60", "2013-01-01T00:00:00,5", "2013-01-01T00:00:00.1234567", "2013-02-30T00:00:00"},
		ParamString:    {"a\x00b", "\xff", strings.Repeat("a", MaxParamBytes+1)},
		"money":        {"1"},
	} {
		for _, in := range wrong {
			if got, err := (Param{Type: kind}).Parse(in); got != "" || err == nil || len(err.Error()) > 400 {
				t.Errorf("%s %.40q: got %q, %v; want an error", kind, in, got, err)
			}
		}
	}
}

// Proves that min and max are inclusive and compare values rather than texts, for each type that has an order.
func TestParamBounds(t *testing.T) {
	for _, c := range []struct {
		t              ParamType
		min, max       string
		inside, beyond []string
	}{
		{ParamInteger, "-10", "9", []string{"-10", "9", "-9", "0"}, []string{"-11", "10", "100"}},
		{ParamDecimal, "-1.5", "10", []string{"-1.50", "9.999999999", "10.0"}, []string{"-1.500000001", "10.000000001"}},
		{ParamDate, "2013-01-01", "2013-12-31", []string{"2013-01-01", "2013-12-31"}, []string{"2012-12-31", "2014-01-01"}},
		{ParamTimestamp, "2013-01-01T00:00:00", "2013-01-01T00:00:00.5", []string{"2013-01-01T00:00:00.0", "2013-01-01T00:00:00.500"}, []string{"2013-01-01T00:00:00.51", "2012-12-31T23:59:59.999999"}},
	} {
		p := Param{Type: c.t, Min: &c.min, Max: &c.max}
		for _, s := range c.inside {
			if _, err := p.Parse(s); err != nil {
				t.Errorf("%s %s: %v", c.t, s, err)
			}
		}
		for _, s := range c.beyond {
			if _, err := p.Parse(s); err == nil {
				t.Errorf("%s %s is accepted beyond %s..%s", c.t, s, c.min, c.max)
			}
		}
	}
}

// Proves that lengths count characters, that a pattern has to match the whole text, and that both hold beside each other.
func TestParamTexts(t *testing.T) {
	pattern := func(s string) *Pattern {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		p             Param
		right, refuse []string
	}{
		{Param{MinLength: text(2), MaxLength: text(3)}, []string{"ab", "éüß"}, []string{"", "a", "abcd"}},
		{Param{MaxLength: text(0)}, []string{""}, []string{"a"}},
		{Param{Pattern: pattern("[A-Z]{2}")}, []string{"UA"}, []string{"", "U", "UAX", "xUA", "UA\n", "ua"}},
		{Param{Pattern: pattern("a|b")}, []string{"a", "b"}, []string{"ab", "xb", "ax"}},
		{Param{Pattern: pattern("(?m)^a$")}, []string{"a"}, []string{"a\nb", "b\na"}},
		{Param{Pattern: pattern(""), MaxLength: text(5)}, []string{""}, []string{"a"}},
		{Param{Pattern: pattern("(?i)ua.*"), MaxLength: text(3)}, []string{"UA", "uax"}, []string{"uaxx", "UA\n"}},
	} {
		c.p.Type = ParamString
		for _, s := range c.right {
			if got, err := c.p.Parse(s); got != s || err != nil {
				t.Errorf("%s: %q became %q, %v", c.p.allowed(), s, got, err)
			}
		}
		for _, s := range c.refuse {
			if _, err := c.p.Parse(s); err == nil {
				t.Errorf("%s: %q is accepted", c.p.allowed(), s)
			}
		}
	}
	for _, bad := range []string{"[a", "a)|(b", "(?=a)", "\\1", strings.Repeat("a", MaxPatternBytes+1), "(a{1000}){1000}", "((a{100}){100}){100}"} {
		if _, err := ParsePattern(bad); err == nil || len(err.Error()) > 300 {
			t.Errorf("pattern %.40q: %v", bad, err)
		}
	}
}
