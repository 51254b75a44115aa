package lake

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"leapview/domain/project"
	"leapview/ports"
)

// utf16Of is text in UTF-16 with its byte order mark.
func utf16Of(big bool, text string) []byte {
	var b []byte
	for _, c := range utf16.Encode([]rune("\ufeff" + text)) {
		if big {
			b = append(b, byte(c>>8), byte(c))
		} else {
			b = append(b, byte(c), byte(c>>8))
		}
	}
	return b
}

// These cases prove that files which are written in other ways than the common one are read exactly as they are declared, or refused at the
// line and column that say otherwise.
func TestDialects(t *testing.T) {
	b, o := opened(t)
	type change func(*project.Source)
	dialect := func(d project.Dialect) change { return func(s *project.Source) { s.Dialect = d } }
	kinds := func(a, b string) change {
		return func(s *project.Source) { s.Columns[0].Type, s.Columns[1].Type = project.Type(a), project.Type(b) }
	}
	semicolons := func(s *project.Source) { s.Delimiter = ";" }
	long := strings.Repeat("1,x\n", 150_000)
	for _, tc := range []struct {
		name    string
		content string
		rows    []string
		places  []string
		changes []change
	}{
		{"other quote", "a,b\n1,'x,''y'''\n2,\"z\"\n", []string{"1|x,'y'", `2|"z"`}, nil, []change{dialect(project.Dialect{Quote: "'"})}},
		{"other quote, plain", "a,b\n1,x\n2,NA\n", []string{"1|x", "2|∅"}, nil, []change{dialect(project.Dialect{Quote: "'"})}},
		{"other quote that is open", "a,b\n1,'x\n", nil, []string{"in/x.csv:2:1"}, []change{dialect(project.Dialect{Quote: "'"})}},
		{"no quote", "a,b\n1,\"x\n2,'y\"\n", []string{`1|"x`, `2|'y"`}, nil, []change{dialect(project.Dialect{Quote: project.QuoteNone})}},
		{"no quote, quoted nothing", "a,b\n1,\"\"\n", []string{`1|""`}, nil, []change{dialect(project.Dialect{Quote: project.QuoteNone})}},
		{"escape", "a,b\n1,\"x \\\"y\\\" \\\\\"\n2,\\\n", []string{`1|x "y" \`, `2|\`}, nil, []change{dialect(project.Dialect{Escape: `\`})}},
		{"escape before what needs none", "a,b\n1,x\n2,\"x\\n\"\n", nil, []string{"in/x.csv:3:1"}, []change{dialect(project.Dialect{Escape: `\`})}},
		{"doubled quote beside an escape", "a,b\n1,\"x\"\"y\"\n", nil, []string{"in/x.csv:2:1"}, []change{dialect(project.Dialect{Escape: `\`})}},
		{"no header", "1,x\n2,y\n", []string{"1|x", "2|y"}, nil, []change{dialect(project.Dialect{Headless: true})}},
		{"no header, not plain", "1,\"x\"\n2,y\n", []string{"1|x", "2|y"}, nil, []change{dialect(project.Dialect{Headless: true})}},
		{"no header where there is one", "a,b\n1,x\n", nil, []string{"in/x.csv:1:1"}, []change{dialect(project.Dialect{Headless: true})}},
		{"no header and a field more", "1,x\n2,y,z\n", nil, []string{"in/x.csv:2:1"}, []change{dialect(project.Dialect{Headless: true})}},
		{"no header and no record", "", nil, []string{"in/x.csv:1:1"}, []change{dialect(project.Dialect{Headless: true})}},
		{"skipped lines", "Report, \"of\r\n\na,b\n1,x\n", []string{"1|x"}, nil, []change{dialect(project.Dialect{SkipLines: 2})}},
		{"skipped lines and a misfit", "Report\n\na,b\n1,x\nno,y\n", nil, []string{"in/x.csv:5:1"}, []change{dialect(project.Dialect{SkipLines: 2})}},
		{"skipped lines and another header", "Report\n\na,c\n1,x\n", nil, []string{"in/x.csv:3:1", "in/x.csv:3:1"}, []change{dialect(project.Dialect{SkipLines: 2})}},
		{"fewer lines than are skipped", "Report\n", nil, []string{"in/x.csv:2:1"}, []change{dialect(project.Dialect{SkipLines: 2})}},
		{"nothing behind skipped lines", "Report\nof\n", nil, []string{"in/x.csv:3:1"}, []change{dialect(project.Dialect{SkipLines: 2})}},
		{"comments", "# made by hand, \"\na,b\n1,x\n#2,y\n3,#z\n4,\"x\n#y\"\n#", []string{"1|x", "3|#z", "4|x\n#y"}, nil, []change{dialect(project.Dialect{Comment: "#"})}},
		{"a misfit behind comments", "#\na,b\n#\n#\n1,x\n#\n1.5,x\n", nil, []string{"in/x.csv:7:1"}, []change{dialect(project.Dialect{Comment: "#"})}},
		{"padded", "a,b\n1\n2,y\n", []string{"1|∅", "2|y"}, nil, []change{dialect(project.Dialect{Pad: true})}},
		{"padded, a field more", "a,b\n1\n2,y,z\n3,x,\n", nil, []string{"in/x.csv:3:1", "in/x.csv:4:1"}, []change{dialect(project.Dialect{Pad: true})}},
		{"padded, a misfit", "b,a\nx\ny,no\n", nil, []string{"in/x.csv:3:3"}, []change{dialect(project.Dialect{Pad: true})}},

		{"latin-1", "a,b\n1,caf\xe9 \x80\n", []string{"1|café \u0080"}, nil, []change{dialect(project.Dialect{Encoding: project.Latin1})}},
		{"latin-1 that could be utf-8", "a,b\n1,\xc3\xa9\n", []string{"1|Ã©"}, nil, []change{dialect(project.Dialect{Encoding: project.Latin1})}},
		{"windows-1252", "a,b\n1,\x80 \x93caf\xe9\x94 \xff\n", []string{"1|€ “café” ÿ"}, nil, []change{dialect(project.Dialect{Encoding: project.Windows1252})}},
		{"windows-1252, no character", "a,b\n1,x\n2,\x81\n", nil, []string{"in/x.csv:3:1"}, []change{dialect(project.Dialect{Encoding: project.Windows1252})}},
		{"windows-1252, a place", "b,a\n\xe9\xe9,1\n\xe9\xe9,no\n", nil, []string{"in/x.csv:3:4"}, []change{dialect(project.Dialect{Encoding: project.Windows1252})}},
		{"utf-16, little end first", string(utf16Of(false, "a,b\r\n1,é😀\r\n2,\"x\r\ny\"\r\n")), []string{"1|é😀", "2|x\r\ny"}, nil, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16, big end first", string(utf16Of(true, "a,b\n1,é😀\n")), []string{"1|é😀"}, nil, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16, a place", string(utf16Of(true, "b,a\né😀,1\né😀,no\n")), nil, []string{"in/x.csv:3:4"}, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16, half a pair", "\xff\xfea\x00,\x00b\x00\n\x001\x00,\x00\x00\xd8x\x00\n\x00", nil, []string{"in/x.csv:2:1"}, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16, half a unit", "\xff\xfea\x00,\x00b\x00\n\x001\x00,\x00x", nil, []string{"in/x.csv:2:1"}, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16 without its mark", "a\x00,\x00b\x00\n\x00", nil, []string{"in/x.csv:1:1"}, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16, empty", "", nil, []string{"in/x.csv:1:1"}, []change{dialect(project.Dialect{Encoding: project.UTF16})}},
		{"utf-16, nothing behind the mark", "\xff\xfe", nil, []string{"in/x.csv:1:1"}, []change{dialect(project.Dialect{Encoding: project.UTF16})}},

		{"numbers", "a;b\n1.234;1.234,50\n12;,5\nNA;-1\n", []string{"1234|1234.50", "12|0.50", "∅|-1.00"}, nil,
			[]change{semicolons, kinds("INTEGER", "DECIMAL(18,2)"), dialect(project.Dialect{Decimal: ",", Thousands: "."})}},
		{"numbers that are ambiguous", "a;b\n1;1.5\n1.2345;1\n1,5;1\n", nil, []string{"in/x.csv:2:3", "in/x.csv:3:1"},
			[]change{semicolons, kinds("INTEGER", "DOUBLE"), dialect(project.Dialect{Decimal: ",", Thousands: "."})}},
		{"a fraction in a whole number", "a;b\n1;1,5\n1,5;1\n", nil, []string{"in/x.csv:3:1"}, []change{semicolons, kinds("INTEGER", "DOUBLE"), dialect(project.Dialect{Decimal: ","})}},
		{"days", "a,b\n01/02/2024,x\n5/6/2024,y\n,z\n", []string{"2024-02-01|x", "2024-06-05|y", "∅|z"}, nil, []change{kinds("DATE", "VARCHAR"), dialect(project.Dialect{DateFormat: "%d/%m/%Y"})}},
		{"a day that is none", "b,a\nx,01/02/2024\nyy,02/13/2024\n", nil, []string{"in/x.csv:3:4"}, []change{kinds("DATE", "VARCHAR"), dialect(project.Dialect{DateFormat: "%d/%m/%Y"})}},
		{"a column's own format", "a,b\n20240201,01.02.2024 10:30\n", []string{"2024-02-01|2024-02-01 10:30:00"}, nil,
			[]change{kinds("DATE", "TIMESTAMP"), dialect(project.Dialect{DateFormat: "%d/%m/%Y", TimestampFormat: "%d.%m.%Y %H:%M"}), func(s *project.Source) { s.Columns[0].Format = "%Y%m%d" }}},
		{"a misfit far down", "a,b\n" + long + "1,\"x\"\"y\"\n1.5,x\n" + long, nil, []string{"in/x.csv:150003:1"}, nil},

		{"mapped", "ID,Given Name\n1,x\n", []string{"1|x"}, nil, []change{func(s *project.Source) { s.Columns[0].From, s.Columns[1].From = "ID", "Given Name" }}},
		{"mapped, not plain", "Given Name,ID\n\"x\",1\n", []string{"1|x"}, nil, []change{func(s *project.Source) { s.Columns[0].From, s.Columns[1].From = "ID", "Given Name" }}},
		{"mapped from a name that is not there", "a,b\n1,x\n", nil, []string{"in/x.csv:1:1", "in/x.csv:1:1"}, []change{func(s *project.Source) { s.Columns[0].From = "ID" }}},
		{"swapped", "b,a\n1,x\n", []string{"1|x"}, nil, []change{func(s *project.Source) { s.Columns[0].From, s.Columns[1].From = "b", "a" }}},
		{"ignored", "z,a,new,b,z\n9,1,?,x,\n8,2,\"\"\"\",y,\n", []string{"1|x", "2|y"}, nil, []change{func(s *project.Source) { s.OnChange = project.ChangeIgnore }}},
		{"ignored, and one twice", "a,b,a\n1,x,2\n", nil, []string{"in/x.csv:1:1"}, []change{func(s *project.Source) { s.OnChange = project.ChangeIgnore }}},
		{"ignored, and one missing", "a,c\n1,x\n", nil, []string{"in/x.csv:1:1"}, []change{func(s *project.Source) { s.OnChange = project.ChangeIgnore }}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, suffix := range []string{"", ".gz"} {
				s := sourceOf(project.CSV, "a INTEGER", "b VARCHAR")
				for _, c := range tc.changes {
					c(&s)
				}
				content := []byte(tc.content)
				if suffix != "" {
					content = zip(t, content)
				}
				rows, places, err := stage(t, b, s, file(t, o, "x.csv"+suffix, content))
				var want []string
				for _, p := range tc.places {
					want = append(want, strings.Replace(p, "x.csv", "x.csv"+suffix, 1))
				}
				if !reflect.DeepEqual(rows, tc.rows) || !reflect.DeepEqual(places, want) {
					t.Errorf("%s staged %q, want %q; refused at %q, want %q: %v", suffix, rows, tc.rows, places, want, err)
				}
			}
		})
	}
	closed(t, b, o)
}

// TestIgnoredColumnsAreNamed proves that columns which were left out are told, in all formats, and only those.
func TestIgnoredColumnsAreNamed(t *testing.T) {
	b, o := opened(t)
	parquet := file(t, o, "x.parquet", nil)
	must(t, b.conn.Exec(t.Context(), "COPY (SELECT 1 AS z, 2 AS a, '3' AS y) TO '"+strings.ReplaceAll(parquet.Path, "'", "''")+"' (FORMAT parquet)"))
	for format, content := range map[project.Format]string{project.CSV: "z,a,y\n1,2,3\n", project.JSON: `[{"z":1,"a":2},{"y":{"a":[]},"a":null}]`, project.NDJSON: "{\"a\":2,\"y\":1,\"z\":2}\n", project.Parquet: ""} {
		s := sourceOf(format, "a INTEGER")
		s.Name, s.OnChange = "src_"+string(format), project.ChangeIgnore
		a := parquet
		if content != "" {
			a = file(t, o, "x."+string(format), []byte(content))
		}
		staged, err := b.Stage(t.Context(), s, []ports.Artifact{a, a})
		if err != nil || !reflect.DeepEqual(staged.Ignored, []string{"y", "z"}) {
			t.Errorf("%s: left out %q: %v", format, staged.Ignored, err)
		}
		s.OnChange = ""
		if _, err := b.Stage(t.Context(), s, []ports.Artifact{a}); err == nil || !strings.Contains(err.Error(), `"z"`) {
			t.Errorf("%s: undeclared columns: %v", format, err)
		}
	}
}

// TestFormatsOfJSON proves that mapped keys are found under the files' names, and that ndjson takes one object a line and nothing else.
func TestFormatsOfJSON(t *testing.T) {
	b, o := opened(t)
	for _, tc := range []struct {
		name, content string
		rows, places  []string
	}{
		{"lines", "{\"A A\":1,\"b\":\"x\"}\n\n {\"b\":null}\n", []string{"1|x", "∅|∅"}, nil},
		{"a cut line", "{\"A A\":1}\n{\"A A\":2", nil, []string{"in/x.json:2:1"}},
		{"an array", "[{\"A A\":1}]\n", nil, []string{"in/x.json:1:1"}},
		{"an object over two lines", "{\"A A\":1}\n{\"A A\":\n2}\n", nil, []string{"in/x.json:2:1"}},
		{"two objects on one line", "{\"A A\":1}\n{\"A A\":2} {\"A A\":3}\n", nil, []string{"in/x.json:2:1"}},
		{"an empty file", "\n", nil, []string{"in/x.json:1:1"}},
		{"the declared name", "{\"a\":1}\n", nil, []string{"in/x.json:1:1"}},
		{"a big number", "{\"A A\":2147483648}\n", nil, []string{"in/x.json:1:1"}},
	} {
		s := sourceOf(project.NDJSON, "a INTEGER", "b VARCHAR")
		s.Columns[0].From = "A A"
		rows, places, err := stage(t, b, s, file(t, o, "x.json", []byte(tc.content)))
		if !reflect.DeepEqual(rows, tc.rows) || !reflect.DeepEqual(places, tc.places) {
			t.Errorf("%s: staged %q, want %q; refused at %q, want %q: %v", tc.name, rows, tc.rows, places, tc.places, err)
		}
	}
}

// TestRecordsAtEveryBoundary proves that what a record is does not depend on where reading stops in between.
func TestRecordsAtEveryBoundary(t *testing.T) {
	texts := []string{"a,b\r\n1,\"x\r\n\"\"y\"\"\"\r\n\r\n#c\r\n2,\"\"\r\n", "a\rb\r\r\"c\"\r", "\"a\",\"b\nc\"\n , \"x\" ,y\n", "a,b\n1,x\ny,\"", "é,ü\n\"é\"x,1\n", "\"\"\"\"\n\"a\"\"b\"", "#\n#x\n\n", ",\n,,\n", "a\r\nb\nc\r\n"}
	for _, text := range texts {
		for _, escape := range []string{"", `\`} {
			read := func(size int) (out []string) {
				s := project.Source{Delimiter: ",", Dialect: project.Dialect{Comment: "#", Escape: escape}}
				r := newRecords(s, bytes.NewReader([]byte(text)))
				r.buffer, r.skipEmpty = make([]byte, size), true
				for {
					rec, err := r.next()
					if err == io.EOF {
						return out
					}
					must(t, err)
					line := fmt.Sprint(rec.line, rec.wrong, rec.last)
					for i, f := range rec.fields {
						l, c := rec.place(i)
						line += fmt.Sprintf(" %d:%d %t %q", l, c, f.quoted, r.text(rec, f))
					}
					if out = append(out, line); rec.last {
						return out
					}
				}
			}
			want := read(1 << 10)
			for size := 1; size < len(text)+2; size++ {
				if got := read(size); !reflect.DeepEqual(got, want) {
					t.Errorf("%q with a buffer of %d: %q, want %q", text, size, got, want)
				}
			}
		}
	}
}
