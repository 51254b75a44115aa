package project

import (
	"fmt"
	"strings"
	"testing"

	"leapview/domain/fail"
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

// Proves that a call is completed with defaults and NULLs in canonical text.
func TestBindCompletes(t *testing.T) {
	e := Endpoint{Name: "e", Params: []Param{
		{Name: "day", Type: ParamDate, Default: text("2013-01-01")}, {Name: "n", Type: ParamInteger, Required: true}, {Name: "o", Type: ParamString, Enum: []string{"EWR"}}}}
	got, err := e.Bind(map[string]string{"n": "007"})
	if err != nil || len(got) != 3 || *got["day"] != "2013-01-01" || *got["n"] != "7" || got["o"] != nil {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = e.Bind(map[string]string{"n": "1", "o": "EWR", "day": "2013-02-01"})
	if err != nil || *got["day"] != "2013-02-01" || *got["o"] != "EWR" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := (Endpoint{}).Bind(nil); err != nil || len(got) != 0 {
		t.Errorf("no parameters: got %v, %v", got, err)
	}
}

// Proves that one error names everything wrong with a call and what would be right, and stays short however wrong the call is.
func TestBindReportsEverything(t *testing.T) {
	e := Endpoint{Name: "e", Params: []Param{
		{Name: "carrier", Type: ParamString, Enum: []string{"AA", "UA"}}, {Name: "day", Type: ParamDate, Required: true, Min: text("2013-01-01")}, {Name: "n", Type: ParamInteger, Max: text("9")}}}
	_, err := e.Bind(map[string]string{"carrier": "ZZ", "n": "10", "carier": "AA"})
	if fail.KindOf(err) != fail.Invalid || fail.CodeOf(err) != "bad_parameters" {
		t.Fatalf("got %v", err)
	}
	for _, says := range []string{`carrier: "ZZ" is not one of AA, UA`, "day: it is required (date, at least 2013-01-01)", `n: "10" is more than the greatest value, 9`, `"carier": there is no such parameter; did you mean "carrier"?`} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the error does not say %q: %v", says, err)
		}
	}
	many := map[string]string{"day": "2013-01-01"}
	for i := range 500 {
		many[fmt.Sprintf("%s%d", strings.Repeat("x", 500), i)] = "1"
	}
	if _, err := e.Bind(many); err == nil || len(err.Error()) > 3000 || !strings.Contains(err.Error(), "and 490 more") {
		t.Errorf("a very wrong call gives an error of %d bytes", len(err.Error()))
	}
}
