package project

import (
	"strings"
	"testing"
)

// Proves that a format reads exactly the texts that it describes, each as the one moment that it means: nothing is guessed, carried over
// or left out.
func TestTimeFormReads(t *testing.T) {
	for _, tc := range []struct {
		kind   Type
		format string
		exact  map[string]string
		none   string
	}{
		{"DATE", "%d/%m/%Y", map[string]string{"01/02/2024": "2024-02-01", "1/2/2024": "2024-02-01", "31/12/1999": "1999-12-31", "29/02/2024": "2024-02-29"},
			"31/02/2024|29/02/2023|00/01/2024|13/13/2024|1/2/24|01-02-2024|01/02/2024 |/02/2024|001/02/2024|1/2/20240|01/02/0000|+1/02/2024|"},
		{"DATE", "%Y%m%d", map[string]string{"20240229": "2024-02-29"}, "2024229|202402290|20240230|2024-02-29"},
		{"DATE", "%m/%d/%y", map[string]string{"2/1/68": "2068-02-01", "02/01/69": "1969-02-01", "12/31/00": "2000-12-31"}, "2/1/2024|2/30/24|2/1/4"},
		{"DATE", "%d %b %Y", map[string]string{"1 Feb 2024": "2024-02-01", "01 FEB 2024": "2024-02-01"}, "1 February 2024|1 Fev 2024|1 Feb2024"},
		{"DATE", "%B %d, %Y", map[string]string{"May 1, 2024": "2024-05-01", "september 30, 2024": "2024-09-30"}, "Sep 30, 2024|September 31, 2024"},
		{"DATE", "%a %d.%m.%Y", map[string]string{"Thu 29.02.2024": "2024-02-29"}, "Wed 29.02.2024|Th 29.02.2024"},
		{"DATE", "%A %d.%m.%Y", map[string]string{"thursday 29.02.2024": "2024-02-29"}, "Thu 29.02.2024"},
		{"DATE", "100%% %Y-%m-%d", map[string]string{"100% 2024-02-29": "2024-02-29"}, "100 2024-02-29"},
		{"TIME", "%H:%M", map[string]string{"7:05": "07:05:00", "23:59": "23:59:00", "00:00": "00:00:00"}, "24:00|23:60|7:5x|:05"},
		{"TIME", "%I:%M:%S %p", map[string]string{"12:00:00 AM": "00:00:00", "12:30:00 pm": "12:30:00", "1:02:03 PM": "13:02:03"}, "13:00:00 PM|0:00:00 AM|1:02:03|1:02:03PM"},
		{"TIMESTAMP", "%d.%m.%Y %H:%M:%S.%f", map[string]string{"29.02.2024 23:59:59.5": "2024-02-29 23:59:59.500000", "1.2.2024 0:0:0.000001": "2024-02-01 00:00:00.000001",
			"1.2.2024 00:00:00.1234560": "2024-02-01 00:00:00.123456"}, "29.02.2024 23:59:60.0|29.02.2024 23:59:59|29.02.2024 23:59:59.1234567|30.02.2024 00:00:00.0"},
		{"TIMESTAMP", "%Y%m%d%H%M%S%f", map[string]string{"20240229235959000001": "2024-02-29 23:59:59.000001", "202402292359595": "2024-02-29 23:59:59.500000"}, "20240229235959|202402292359590000001"},
		{"TIMESTAMP", "%Y-%m-%dT%H", map[string]string{"2024-02-29T07": "2024-02-29 07:00:00"}, "2024-02-29T7:00|2024-02-29t07"},
		{"TIMESTAMP WITH TIME ZONE", "%d/%m/%Y %H:%M %z", map[string]string{"01/02/2024 00:30 +02:00": "2024-01-31 22:30:00Z", "01/02/2024 00:30 -0530": "2024-02-01 06:00:00Z", "01/02/2024 00:30 Z": "2024-02-01 00:30:00Z",
			"01/02/2024 00:30 +14": "2024-01-31 10:30:00Z"}, "01/02/2024 00:30|01/02/2024 00:30 +2|01/02/2024 00:30 +02:|01/02/2024 00:30 +02:60|01/02/2024 00:30 UTC|01/01/0001 00:30 +02|01/02/2024 00:30 +0200x|01/02/2024 00:30 +99"},
	} {
		f, err := ParseTimeForm(tc.format, tc.kind)
		if err != nil {
			t.Errorf("%s as %s: %v", tc.format, tc.kind, err)
			continue
		}
		for text, want := range tc.exact {
			if got, ok := f.Append([]byte("x"), []byte(text)); !ok || string(got) != "x"+want {
				t.Errorf("%s: %q became %q, %t; want %q", tc.format, text, got, ok, want)
			}
		}
		for _, text := range strings.Split(tc.none, "|") {
			if got, ok := f.Append(nil, []byte(text)); ok {
				t.Errorf("%s: %q became %q", tc.format, text, got)
			}
		}
	}
}

// Proves that a format which leaves open what a text means is refused, with what to write.
func TestTimeFormRefuses(t *testing.T) {
	for _, tc := range []struct{ format, kind, says string }{
		{"%d/%m", "DATE", "the year"}, {"%Y-%d", "DATE", "the month"}, {"%Y-%m", "DATE", "the day"}, {"%d/%m/%Y %H", "DATE", "no place"}, {"%H", "TIME", "the minute"}, {"%H:%M %Y", "TIME", "no place"},
		{"%Y-%m-%d", "TIMESTAMP", "the hour"}, {"%Y-%m-%d %H:%M", "TIMESTAMP WITH TIME ZONE", "the offset"}, {"%Y-%m-%d %H:%M %z", "TIMESTAMP", "no place"},
		{"%I:%M", "TIME", "%p"}, {"%H:%M %p", "TIME", "%p"}, {"%H:%M %I %p", "TIME", "say the same"}, {"%Y-%m-%d %H %S", "TIMESTAMP", "between"}, {"%H:%M.%f", "TIME", "between"},
		{"%Y-%y-%m-%d", "DATE", "say the same"}, {"%d %b %m %Y", "DATE", "say the same"}, {"%d/%m/%Y/%d", "DATE", "twice"}, {"%-d/%m/%Y", "DATE", "minus"}, {"%d/%q/%Y", "DATE", "not known"}, {"%d/%m/%Y%", "DATE", "single"},
		{"%d", "INTEGER", "INTEGER"}, {"", "DATE", "the year"}, {strings.Repeat("x", 300) + "%Y%m%d", "DATE", "longer"},
	} {
		if _, err := ParseTimeForm(tc.format, Type(tc.kind)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q as %s: %v; want %q", tc.format, tc.kind, err, tc.says)
		}
	}
}

// Proves that numbers with separators are read only where each separator stands in its place, and keep all of their digits.
func TestNumberForms(t *testing.T) {
	for _, tc := range []struct {
		decimal, thousands string
		exact              map[string]string
		none               string
	}{
		{",", ".", map[string]string{"1.234.567,89": "1234567.89", "1234567,89": "1234567.89", "-1.234": "-1234", "+0,5": "+0.5", ",5": ".5", "5,": "5.", "1,5e3": "1.5e3", "NaN": "NaN", "-inf": "-inf",
			"123456789012345678901234567890,1": "123456789012345678901234567890.1"}, "1.5|1.23|1.2345|12.34.567|1234.567|1.234.56|.123|1,2,3|1,234.5|1..234|,|x|1 234|1,5e|--1|"},
		{"", ",", map[string]string{"1,234.5": "1234.5", "1,234": "1234", "12": "12"}, "1,23|1,2345|12,345,67|,123|1234,567"},
		{",", "", map[string]string{"1,5": "1.5", "7": "7"}, "1.5|1.234,5"},
		{"", "\u00a0", map[string]string{"12\u00a0345.5": "12345.5"}, "12 345|12\u00a034"},
	} {
		s := Source{Dialect: Dialect{Decimal: tc.decimal, Thousands: tc.thousands}}
		f := s.FieldForm(Column{Type: "DOUBLE"})
		for text, want := range tc.exact {
			if got, ok := f.Append([]byte("x"), []byte(text)); !ok || string(got) != "x"+want {
				t.Errorf("%q %q: %q became %q, %t; want %q", tc.decimal, tc.thousands, text, got, ok, want)
			}
		}
		for _, text := range strings.Split(tc.none, "|") {
			if got, ok := f.Append(nil, []byte(text)); ok {
				t.Errorf("%q %q: %q became %q", tc.decimal, tc.thousands, text, got)
			}
		}
	}
	s := Source{Dialect: Dialect{Decimal: ",", DateFormat: "%d.%m.%Y", TimestampFormat: "%d.%m.%Y %H:%M"}}
	for kind, own := range map[Type]bool{"VARCHAR": false, "BOOLEAN": false, "UUID": false, "TIME": false, "DECIMAL(18,2)": true, "INTEGER": true, "DOUBLE": true, "DATE": true, "TIMESTAMP": true} {
		if got := s.FieldForm(Column{Type: kind}) != nil; got != own {
			t.Errorf("%s has a form of its own: %t", kind, got)
		}
	}
	if (Source{}).FieldForm(Column{Type: "DATE", Format: "%Y%m%d"}) == nil {
		t.Error("a column's own format is not used")
	}
}
