package project

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// decodeChecks decodes a model with these checks, written as JSON.
func decodeChecks(checks string) ([]Check, error) {
	p, err := Decode([]File{file("leapview.yaml", `{"name": "p"}`), file("models/m.sql", "/*---\n{\"checks\": ["+checks+"]}\n---*/\nSELECT 1 AS a\n")}, jsonDocuments{})
	if err != nil {
		return nil, err
	}
	return p.Models[0].Checks, nil
}

// Proves what each kind and option of a check is decoded to, and how it is described to people.
func TestDecodeChecks(t *testing.T) {
	for body, want := range map[string]string{
		`"not_null": "a"`:                                  `["not_null","","error","",0,"",["a"],null,null,null,null,[],"",null,0,""] not_null(a)`,
		`"unique": ["a", "b"]`:                             `["unique","","error","",0,"",["a","b"],null,null,null,null,[],"",null,0,""] unique(a, b)`,
		`"row_count": {"min": 1}`:                          `["row_count","","error","",0,"",null,1,null,null,null,[],"",null,0,""] row_count(1..)`,
		`"range": {"column": "a", "max": 0.10, "min": -5}`: `["range","","error","",0,"",["a"],null,null,"-5","0.10",[],"",null,0,""] range(a: -5..0.10)`,
		`"accepted_values": {"column": "a", "values": [1, true, "x"]}, "severity": "warn", "name": "n"`: `["accepted_values","n","warn","",0,"",["a"],null,null,null,null,["1","true","x"],"",null,0,""] accepted_values(a: 1, true, x)`,
		`"relationships": {"column": "a", "to": "m", "field": "b"}`:                                     `["relationships","","error","",0,"",["a"],null,null,null,null,[],"m",["b"],0,""] relationships(a to m.b)`,
		`"relationships": {"columns": ["a", "c"], "to": "m", "fields": ["b", "d"]}`:                     `["relationships","","error","",0,"",["a","c"],null,null,null,null,[],"m",["b","d"],0,""] relationships(a, c to m.b, d)`,
		`"freshness": {"column": "a", "max_age": "36h"}`:                                                `["freshness","","error","",0,"",["a"],null,null,null,null,[],"",null,129600000000000,""] freshness(a: 36h)`,
		`"expression": "a > 1 ; ", "where": "b", "max_failures": 9, "max_failure_percent": 0.5`:         `["expression","","error","b",9,"0.5",null,null,null,null,null,[],"",null,0,"a \u003e 1"] expression(a > 1) where b`,
		`"sql": "SELECT 1", "max_failures": 9223372036854775807`:                                        `["sql","","error","",9223372036854775807,"",null,null,null,null,null,[],"",null,0,"SELECT 1"] sql(SELECT 1)`,
	} {
		checks, err := decodeChecks("{" + body + "}")
		if err != nil || len(checks) != 1 {
			t.Errorf("{%s} gives %v, %v", body, checks, err)
			continue
		}
		if got := checks[0].Definition() + " " + checks[0].String(); got != want {
			t.Errorf("{%s} is\n%s, want\n%s", body, got, want)
		}
	}
	for body, says := range map[string]string{
		`"not_null": "a", "max_failure_percent": 1e2`:                                         "plain decimal digits",
		`"not_null": "a", "max_failure_percent": 1e-99999999`:                                 "plain decimal digits",
		`"not_null": "a", "max_failure_percent": 0.00000000000000000001`:                      "at most 20 plain decimal digits",
		`"not_null": "a", "max_failure_percent": 100.1`:                                       "must be 0 to 100",
		`"not_null": "a", "max_failures": 9223372036854775808`:                                "an integer of 64 bits",
		`"not_null": "a", "max_failures": 1.0`:                                                "must be an integer",
		`"not_null": "a", "name": "` + strings.Repeat("n", 256) + `"`:                         "limit check_text_bytes",
		`"not_null": "a", "name": "a\nb"`:                                                     "control character",
		`"range": {"column": "a", "min": "` + strings.Repeat("1", 256) + `"}`:                 "limit check_text_bytes",
		`"freshness": {"column": "a", "max_age": "99999999999999999999w"}`:                    "no time span",
		`"freshness": {"column": "a", "max_age": "6000w"}`:                                    "no time span",
		`"expression": " ; "`:                                                                 "expression is empty",
		`"expression": "` + strings.Repeat("x", MaxSQLBytes+1) + `"`:                          "limit sql_bytes",
		`"accepted_values": {"column": "a", "values": [1` + strings.Repeat(", 1", 300) + `]}`: "limit accepted_values",
	} {
		if _, err := decodeChecks("{" + body + "}"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("{%.80s} gives %.200v, want %q in it", body, err, says)
		}
	}
}

// Proves that checks which differ only where their description is cut are two, that one rule may warn and fail, and that one that is given
// twice is found.
func TestCheckTwice(t *testing.T) {
	long := strings.Repeat("a = 1 AND ", 20)
	for checks, twice := range map[string]bool{
		`{"not_null": "a", "where": "` + long + `b"}, {"not_null": "a", "where": "` + long + `c"}`:                             false,
		`{"accepted_values": {"column": "a", "values": ["x, y"]}}, {"accepted_values": {"column": "a", "values": ["x", "y"]}}`: false,
		`{"not_null": "a", "severity": "warn"}, {"not_null": "a", "max_failure_percent": 5}`:                                   false,
		`{"not_null": "a"}, {"not_null": ["a"], "max_failures": 5, "name": "n"}`:                                               true,
		`{"expression": "` + long + `b"}, {"expression": "` + long + `b"}`:                                                     true,
	} {
		if _, err := decodeChecks(checks); (err != nil) != twice || twice && !strings.Contains(err.Error(), "is given twice") {
			t.Errorf("%s gives %v", checks, err)
		}
	}
}

// Proves that a tolerance holds exactly at its border, that the larger of both counts, and that no number is rounded or overflows.
func TestAllows(t *testing.T) {
	for _, tc := range []struct {
		most             int64
		percent          string
		failures, judged int64
		ok               bool
	}{
		{0, "", 0, 0, true}, {0, "", 1, 10, false}, {3, "", 3, 3, true}, {3, "", 4, 1000, false},
		{0, "10", 1, 10, true}, {0, "10", 2, 19, false}, {0, "10", 2, 20, true}, {2, "10", 2, 10, true}, {2, "50", 5, 10, true},
		{0, "0.1", 1, 1000, true}, {0, "0.1", 1, 999, false}, {0, "33.333333333333333", 1, 3, false}, {0, "33.333333333333334", 1, 3, true},
		{0, "100", 5, 5, true}, {0, "100", 5, 0, false}, {0, "100", 6, 5, false}, {0, "0", 0, 0, true}, {0, "0", 1, math.MaxInt64, false},
		{math.MaxInt64, "", math.MaxInt64, 1, true}, {0, "100", math.MaxInt64, math.MaxInt64, true}, {0, "99.999999999999999", math.MaxInt64, math.MaxInt64, false},
	} {
		c := Check{MaxFailures: tc.most, MaxPercent: tc.percent}
		if got := c.Allows(tc.failures, tc.judged); got != tc.ok {
			t.Errorf("%d of %d with %d and %q%%: %t", tc.failures, tc.judged, tc.most, tc.percent, got)
		}
	}
}

// Proves that a time span is written in its longest exact unit, and reads back as the same.
func TestSpan(t *testing.T) {
	for text, want := range map[string]string{"36h": "36h", "48h": "2d", "7d": "1w", "90m": "90m", "120m": "2h", "61s": "61s", "86400s": "1d", "5200w": "5200w"} {
		d := &decoder{}
		got := Span(d.duration(Node{Kind: StringNode, Text: text}, "max_age"))
		if got != want || len(d.problems) > 0 {
			t.Errorf("%s is %s, want %s: %v", text, got, want, d.problems)
		}
	}
	if got := Span(time.Second); got != "1s" {
		t.Errorf("a second is %s", got)
	}
}

// FuzzCheck proves that no check makes decoding panic or take long, that what is refused has a place in its file, and that what is accepted
// has a description of bounded length and is the same check when it is decoded again.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{`"not_null": "a"`, `"range": {"column": "a", "min": 1e5, "max": null}`, `"accepted_values": {"column": [], "values": {"a": 1}}`, `"unique": ["a", "a"], "severity": 5`,
		`"freshness": {"column": "a", "max_age": "-5h"}, "max_failures": -1`, `"sql": "\u0000", "where": ";"`, `"max_failure_percent": 1e-999999`, `"row_count": {"min": 5, "max": 1}`,
		`"relationships": {"columns": ["a"], "column": "b", "to": 7, "fields": []}`, `"name": "\u202e", "expression": "ü"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		checks, err := decodeChecks("{" + body + "}")
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("%q: %v", body, err)
			}
			for _, p := range problems {
				if p.At.File == "" || p.Message == "" {
					t.Errorf("%q: a problem without a place: %+v", body, p)
				}
			}
			return
		}
		again, err := decodeChecks("{" + body + "}")
		if fmt.Sprint(again) != fmt.Sprint(checks) || err != nil {
			t.Errorf("%q is %v, and then %v, %v", body, checks, again, err)
		}
		for _, c := range checks {
			if len(c.String()) > 400 || c.Kind == "" || c.Severity == "" || c.Definition() == "" {
				t.Errorf("%q is %+v", body, c)
			}
		}
	})
}
