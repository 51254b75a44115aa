package draft

import (
	"fmt"
	"strings"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// chosen reads a CSV file of one column and gives what was chosen for it.
func chosen(t *testing.T, values ...string) Choice {
	t.Helper()
	table, err := ReadCSV("x.csv", strings.NewReader("id,x\n"+func() string {
		var b strings.Builder
		for i, v := range values {
			fmt.Fprintf(&b, "%d,%s\n", i, v)
		}
		return b.String()
	}()))
	if err != nil {
		t.Fatal(err)
	}
	return Plan([]Table{table})[0].Choices[1]
}

// TestChoose proves that a column's type holds all of its values exactly, and that every choice which could be wrong is doubted.
func TestChoose(t *testing.T) {
	long := func(value, other string) []string {
		out := make([]string, 30_001)
		for i := range out {
			out[i] = value
		}
		out[30_000] = other
		return out
	}
	for _, tc := range []struct {
		name   string
		values []string
		kind   project.Type
		format string
		doubt  string
		nulls  string
	}{
		{"whole numbers", []string{"1", "-2", "", "9223372036854775807"}, "BIGINT", "", "longer than 15 digits", ""},
		{"leading zeros", []string{"12345", "00501"}, "VARCHAR", "", "leading zeros", ""},
		{"leading zeros far down", long("12345", "00501"), "VARCHAR", "", "leading zeros", ""},
		{"zero alone", []string{"0", "10"}, "BIGINT", "", "", ""},
		{"more than 64 bits", []string{"1", "9223372036854775808"}, "DECIMAL(38,0)", "", "beyond 64 bits", ""},
		{"more than 38 digits", []string{"1", strings.Repeat("9", 39)}, "VARCHAR", "", "38 digits", ""},
		{"money", []string{"1.25", "-10", "3.5"}, "DECIMAL(18,2)", "", "2 digits behind the point", ""},
		{"measurements", []string{"1.23456", "1e5"}, "DOUBLE", "", "", ""},
		{"many digits", []string{"1.123456789012345678"}, "DOUBLE", "", "rounds", ""},
		{"booleans", []string{"true", "FALSE"}, "BOOLEAN", "", "", ""},
		{"days", []string{"2024-02-29", "2024-01-01"}, "DATE", "", "", ""},
		{"a day that does not exist", []string{"2024-02-29", "2023-02-29"}, "VARCHAR", "", "", ""},
		{"moments", []string{"2024-01-01 10:00", "2024-01-01T10:00:00.5"}, "TIMESTAMP", "", "without an offset", ""},
		{"instants", []string{"2024-01-01T10:00:00Z", "2024-01-01 10:00:00+02:00"}, "TIMESTAMP WITH TIME ZONE", "", "", ""},
		{"days and moments", []string{"2024-01-01", "2024-01-01 10:00"}, "VARCHAR", "", "", ""},
		{"day first", []string{"01/02/2024", "13/02/2024"}, "VARCHAR", "%d/%m/%Y", "", ""},
		{"month first, with points", []string{"01.02.2024", "02.13.2024"}, "VARCHAR", "%m.%d.%Y", "", ""},
		{"days in no known order", []string{"01/02/2024", "05/06/2024"}, "VARCHAR", "", "whether the day or the month", ""},
		{"days in two orders", []string{"13/02/2024", "02/13/2024"}, "VARCHAR", "", "two orders", ""},
		{"days that are none", []string{"13/02/2024", "31/02/2024"}, "VARCHAR", "", "none or are written in another way", ""},
		{"null words", []string{"1", "NA", "-"}, "BIGINT", "", "", "- NA"},
		{"null words among text", []string{"a", "NA"}, "VARCHAR", "", `may mean that there is no value`, ""},
		{"nothing but null words", []string{"NA", "NA"}, "VARCHAR", "", "nothing but NA", ""},
		{"quoted null words are text", []string{`"NA"`, "1"}, "VARCHAR", "", "", ""},
		{"nothing", []string{"", ""}, "VARCHAR", "", "no value in any row", ""},
		{"mixed", []string{"1", "2", "3", "seven"}, "VARCHAR", "", `"seven"`, ""},
		{"mixed far down", long("1", "x"), "VARCHAR", "", `"x"`, ""},
		{"text", []string{"a", "b, c"}, "", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.kind == "" {
				tc.values[1], tc.kind = `"b, c"`, "VARCHAR"
			}
			c := chosen(t, tc.values...)
			if c.Column.Type != tc.kind || c.Format != tc.format || strings.Join(c.NullTexts, " ") != tc.nulls {
				t.Errorf("chosen %s, format %q, null texts %q; want %s, %q, %q", c.Column.Type, c.Format, c.NullTexts, tc.kind, tc.format, tc.nulls)
			}
			if doubts := strings.Join(c.Doubts, "\n"); !strings.Contains(doubts, tc.doubt) || tc.doubt == "" && tc.kind != "VARCHAR" && doubts != "" {
				t.Errorf("the doubts are %q, want %q", doubts, tc.doubt)
			}
		})
	}
}

// TestReadJSON proves what JSON's own kinds make of a column.
func TestReadJSON(t *testing.T) {
	for content, want := range map[string]string{
		`[{"a": 1, "b": "x"}, {"a": 2.5}]`:                  "a DECIMAL(18,1), b VARCHAR",
		"{\"a\": \"007\"}\n{\"a\": \"8\"}":                  "a VARCHAR",
		`[{"a": {"b": 1}}, {"a": null}]`:                    "a JSON",
		`[{"a": "x"}, {"a": 1}]`:                            "a JSON",
		`[{"a": 9007199254740993}, {"a": 1}]`:               "a BIGINT",
		`{"a": "2024-01-01"}`:                               "a DATE",
		"\ufeff [ {\"a\": true, \"b\": []}, {\"b\": [1]} ]": "a BOOLEAN, b JSON",
	} {
		table, err := ReadJSON("x.json", strings.NewReader(content))
		if err != nil {
			t.Errorf("%s: %v", content, err)
			continue
		}
		var got []string
		for _, c := range Plan([]Table{table})[0].Choices {
			got = append(got, c.Column.Name+" "+string(c.Column.Type))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s, want %s", content, got, want)
		}
	}
}

// TestRefusedFiles proves that a file that nothing can be drafted from is refused with the reason and its line.
func TestRefusedFiles(t *testing.T) {
	for content, says := range map[string]string{
		"":                   "is empty",
		"\xff\xfea\x00":      "UTF-16",
		"a,b\n1,2\n1\n":      "x.csv:3: the record has 1 fields, the header has 2",
		"a,b\n1,2\n\n3,4\n":  "x.csv:3: the line is empty",
		"a,b\n1,\"2\n":       "x.csv:2: a quoted field is never closed",
		"a,b\n1,\"2\"x\n":    "x.csv:2: text stands behind",
		"a,b\n1,2\n1,\xff\n": "x.csv:3: it is not UTF-8",
		"1,2\n3,4\n":         "seems to have no header",
		"a,\n1,2\n":          "column 2 has no name",
		"a,A\n1,2\n":         `two columns are called "A"`,
		"PK\x03\x04\x00\x00": "not a text file",
		"a,b\n" + strings.Repeat("x", 1<<20+1) + ",1\n": "longer than",
	} {
		if _, err := ReadCSV("x.csv", strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), says) || fail.FixOf(err) == "" {
			t.Errorf("%.30q: %v", content, err)
		}
	}
	for content, says := range map[string]string{"": "is empty", "[1]": "byte", "{\"a\": 1": "byte", "[{}]": "no object with a key", "[{\"a\": 1}": "byte"} {
		if _, err := ReadJSON("x.json", strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestName proves that anything gives a name that a project may use.
func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"Sales Report 2024.csv": "sales_report_2024", "flights.csv.gz": "flights", "orderDate": "order_date", "ID": "id", "2024": "x_2024", "Straße": "stra_e",
		"": "x", "***": "x", "select": "select_", "at": "at_", "A-B": "a_b", "customerID": "customer_id", strings.Repeat("long", 40): strings.Repeat("long", 12) + "lo",
	} {
		if got := Name(text, "x"); got != want || !project.ValidName(got) {
			t.Errorf("%q is called %q, want %q", text, got, want)
		}
	}
}

// FuzzReadCSV proves that no bytes make the reader panic or hang, and that what it takes has as many values in every column.
func FuzzReadCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "a;b\r\n1;\"2\"\"\r\n3\"\r\n", "a\tb\n\t\n", "\ufeffa|b\n1|2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := ReadCSV("x.csv", strings.NewReader(string(b)))
		if err != nil {
			return
		}
		for _, c := range table.Columns {
			if c.Rows != table.Rows {
				t.Fatalf("column %q has %d values in %d rows", c.Name, c.Rows, table.Rows)
			}
		}
		for _, file := range Files("p", Plan([]Table{table})) {
			if len(file.Content) == 0 {
				t.Fatalf("%s is empty", file.Path)
			}
		}
	})
}
