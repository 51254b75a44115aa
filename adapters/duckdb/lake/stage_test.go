package lake

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// These tests prove, on the real engine, that staging takes every value exactly as its file says it or names the file and the line of
// the one that it cannot: no value is rounded, cut, shifted, guessed or lost on the way.

// opened is a lake with one begun build.
func opened(t *testing.T, change ...func(*engine.Options)) (*build, engine.Options) {
	t.Helper()
	e, o := enginetest.Open(t, change...)
	l := New(e, Options{DataDir: o.DataDir})
	must(t, l.Init(t.Context(), "lineage"))
	return begun(t, l), o
}

func begun(t *testing.T, l *Lake) *build {
	t.Helper()
	b, err := l.Begin(t.Context(), "sales")
	must(t, err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.(*build)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file is a staged copy with this content. Its path holds what the engine must not read anything into.
func file(t *testing.T, o engine.Options, name string, content []byte) ports.Artifact {
	t.Helper()
	dir, err := os.MkdirTemp(o.StagedDir, "year=1999")
	must(t, err)
	path := filepath.Join(dir, "it's "+filepath.Base(name))
	must(t, os.WriteFile(path, content, 0o600))
	return ports.Artifact{Name: "in/" + name, Path: path, Size: int64(len(content))}
}

func zip(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	must(t, err)
	must(t, z.Close())
	return b.Bytes()
}

func sourceOf(format project.Format, columns ...string) project.Source {
	s := project.Source{Name: "src", Format: format, Delimiter: ",", NullTexts: []string{"NA"}}
	for _, c := range columns {
		name, kind, _ := strings.Cut(c, " ")
		s.Columns = append(s.Columns, project.Column{Name: name, Type: project.Type(kind)})
	}
	return s
}

// rowsOf is the staged table as text, in its order, NULL as ∅.
func rowsOf(t *testing.T, b *build, s project.Source) []string {
	t.Helper()
	texts := join(s.Columns, " || '|' || ", func(c project.Column) string {
		return "coalesce(CAST(" + engine.Identifier(c.Name) + " AS VARCHAR), '∅')"
	})
	rows, err := b.conn.Rows(t.Context(), "SELECT "+texts+" FROM "+engine.Identifier("stage "+s.Name+" 0"))
	must(t, err)
	defer rows.Close()
	got := []string{}
	for rows.Next() {
		var text string
		must(t, rows.Scan(&text))
		got = append(got, text)
	}
	must(t, rows.Err())
	return got
}

// stage stages the files and gives the rows, or the places of the problems.
func stage(t *testing.T, b *build, s project.Source, artifacts ...ports.Artifact) (rows, places []string, err error) {
	t.Helper()
	var kind string
	switch err := b.conn.Scan(t.Context(), "SELECT table_type FROM information_schema.tables WHERE table_catalog = 'temp' AND table_name = ?", []any{stagedName(s, 0)}, &kind); {
	case err == nil:
		must(t, b.conn.Exec(t.Context(), "DROP "+map[string]string{"VIEW": "VIEW", "LOCAL TEMPORARY": "TABLE"}[kind]+" "+engine.Identifier(stagedName(s, 0))))
	case !errors.Is(err, sql.ErrNoRows):
		t.Fatal(err)
	}
	delete(b.staged, s.Name)
	n, err := b.Stage(t.Context(), s, artifacts)
	if err != nil {
		if fail.KindOf(err) != fail.Invalid {
			t.Errorf("the error has kind %s: %v", fail.KindOf(err), err)
		}
		var problems project.Problems
		if !errors.As(err, &problems) {
			t.Fatalf("no problems: %v", err)
		}
		for _, p := range problems {
			places = append(places, p.At.String())
			if p.Message == "" || strings.Contains(p.Message, artifacts[0].Path) || strings.Contains(p.Message, misfit) {
				t.Errorf("a problem does not say what is wrong, or says it in our words: %v", p)
			}
		}
		return nil, places, err
	}
	rows = rowsOf(t, b, s)
	if int(n.Rows) != len(rows) {
		t.Errorf("Stage counts %d rows of %d", n.Rows, len(rows))
	}
	return rows, nil, nil
}

// closed closes the build and proves that nothing is left beside the staged copies.
func closed(t *testing.T, b *build, o engine.Options) {
	t.Helper()
	must(t, b.Close())
	leftovers, err := filepath.Glob(filepath.Join(o.StagedDir, "*", "*.derived"))
	must(t, err)
	if len(leftovers) > 0 {
		t.Errorf("%v were left beside the staged copies", leftovers)
	}
}

func TestCSVValues(t *testing.T) {
	b, o := opened(t)
	for _, tc := range []struct {
		kind string
		// exact maps texts to what they become, and none lists those that are refused.
		exact map[string]string
		none  []string
	}{
		{"INTEGER", map[string]string{"7": "7", "-7": "-7", "+7": "7", "007": "7", "-0": "0", "2147483647": "2147483647", "": "∅", "NA": "∅"},
			[]string{"1.5", "1.0", " 7", "7 ", "1e3", "0x1F", "1_000", "2147483648", `""`, `"NA"`, "true", "x"}},
		{"BIGINT", map[string]string{"9007199254740993": "9007199254740993", "-9223372036854775808": "-9223372036854775808"}, []string{"9223372036854775808", "9223372036854775807.4", "1e18"}},
		{"UBIGINT", map[string]string{"18446744073709551615": "18446744073709551615"}, []string{"-1", "18446744073709551616"}},
		{"TINYINT", map[string]string{"127": "127"}, []string{"128", "1.5"}},
		{"DOUBLE", map[string]string{"1.5": "1.5", "1e3": "1000.0", ".5": "0.5", "5.": "5.0", "0.1": "0.1", "NaN": "nan", "-inf": "-inf", "Infinity": "inf", "1400": "1400.0"},
			[]string{"1e400", "-1e400", "1_000", "1,5x", " 1", "0x1F", "1.5f"}},
		{"DECIMAL(4,2)", map[string]string{"1.2": "1.20", "1.20": "1.20", "1.2000": "1.20", ".5": "0.50", "5.": "5.00", "-99.99": "-99.99", "+1": "1.00"},
			[]string{"1.239", "12345", "100", "1e1", "1_0", "."}},
		{"DECIMAL(4,0)", map[string]string{"12": "12", "12.00": "12"}, []string{"1.5", ".5"}},
		{"DECIMAL(38,2)", map[string]string{"123456789012345678901234567890123456.78": "123456789012345678901234567890123456.78"}, []string{"123456789012345678901234567890123456.789"}},
		{"BOOLEAN", map[string]string{"true": "true", "FALSE": "false", "t": "true", "0": "false"}, []string{"2", "yes", "on", " true"}},
		{"DATE", map[string]string{"2013-01-01": "2013-01-01", "2024-02-29": "2024-02-29"},
			[]string{"2013-13-01", "2013-02-29", "2013-01-02 10:00:00", "01/02/2013", "20130102", "2013-1-2", " 2013-01-01", "epoch"}},
		{"TIME", map[string]string{"05:00": "05:00:00", "23:59:59.999999": "23:59:59.999999"}, []string{"25:00", "05:00:00+02", "05:00:00.1234567", "2013-01-01 05:00:00"}},
		{"TIMESTAMP", map[string]string{"2013-01-01 05:00:00": "2013-01-01 05:00:00", "2013-01-01T05:00:00.5": "2013-01-01 05:00:00.5", "2013-01-01 05:00:00.1234560": "2013-01-01 05:00:00.123456"},
			[]string{"2013-01-01 05:00:00+02", "2013-01-01T05:00:00Z", "2013-01-01 05:00:00.1234567", "2013-01-01 25:00:00", "2013-01-01"}},
		{"TIMESTAMP WITH TIME ZONE", map[string]string{"2013-01-01T05:00:00Z": "2013-01-01 05:00:00+00", "2013-01-01 05:00:00+02": "2013-01-01 03:00:00+00", "2013-01-01T05:00:00-05:30": "2013-01-01 10:30:00+00"},
			[]string{"2013-01-01T05:00:00+99:99", "2013-01-01T05:00:00+02:60", "2013-01-01 05:00:00", "2013-01-01 05:00:00 America/New_York", "2013-01-01 05:00:00.1234567Z"}},
		{"UUID", map[string]string{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, []string{"x", "a0eebc99"}},
		{"JSON", map[string]string{`"{""a"": 12345678901234567890.10}"`: `{"a": 12345678901234567890.10}`}, []string{`"{a"`}},
		{"BLOB", map[string]string{"abc": "abc", `\x41`: "A"}, []string{"é", `\x4`}},
		{"VARCHAR", map[string]string{"x": "x", " x ": " x ", `"NA"`: "NA", `""`: "", "": "∅", "NA": "∅", "007": "007", `x"y`: `x"y`, `"a,""b"""`: `a,"b"`, "#1": "#1", "é": "é"}, []string{"x\x00y", "\xff"}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			s := sourceOf(project.CSV, "k VARCHAR", "v "+tc.kind)
			content, want := "k,v\n", []string{}
			for text, value := range tc.exact {
				content += "k," + text + "\n"
				want = append(want, "k|"+value)
			}
			got, _, err := stage(t, b, s, file(t, o, "a.csv", []byte(content)))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("staged %q, want %q: %v", got, want, err)
			}
			// Each refused text alone: it is found behind good ones, in the second file.
			good := file(t, o, "good.csv", []byte(content))
			for _, text := range tc.none {
				bad := file(t, o, "bad.csv", []byte(content+"k,"+text+"\n"))
				got, places, err := stage(t, b, s, good, bad)
				line := fmt.Sprintf("in/bad.csv:%d:", len(tc.exact)+2)
				if got != nil || len(places) != 1 || !strings.HasPrefix(places[0], line) {
					t.Errorf("%q became %q, or was refused at %q instead of %q: %v", text, got, places, line, err)
				}
			}
		})
	}
}

func TestCSVShapes(t *testing.T) {
	b, o := opened(t)
	const header = "a,b\n"
	long := strings.Repeat("1,x\n", 300_000)
	for _, tc := range []struct {
		name, content string
		rows, places  []string
	}{
		{"columns by name", "b,a\nx,1\n", []string{"1|x"}, nil},
		{"no rows", "a,b\n", []string{}, nil},
		{"no line end at the end", "a,b\n1,x", []string{"1|x"}, nil},
		{"CRLF", "a,b\r\n1,x\r\n2,y\r\n", []string{"1|x", "2|y"}, nil},
		{"byte order mark", "\xef\xbb\xbfa,b\n1,x\n", []string{"1|x"}, nil},
		{"quoted header", "\"a\",\"b\"\n1,x\n", []string{"1|x"}, nil},
		{"quoted line end", "a,b\n1,\"x\ny\"\n2,z\n", []string{"1|x\ny", "2|z"}, nil},
		{"empty lines between", "a,b\n1,x\n\n2,y\n\n", []string{"1|x", "2|y"}, nil},
		{"a comment is text", "a,b\n1,#x\n", []string{"1|#x"}, nil},
		{"a trailing delimiter", "a,b\n1,x,\n", nil, []string{"in/x.csv:2:1"}},

		{"empty file", "", nil, []string{"in/x.csv:1:1"}},
		{"no header", "1,x\n", nil, []string{"in/x.csv:1:1", "in/x.csv:1:1", "in/x.csv:1:1", "in/x.csv:1:1"}},
		{"empty first line", "\na,b\n1,x\n", nil, []string{"in/x.csv:1:1"}},
		{"extra column", "a,b,c\n1,x,2\n", nil, []string{"in/x.csv:1:1"}},
		{"missing column", "a\n1\n", nil, []string{"in/x.csv:1:1"}},
		{"repeated column", "a,b,b\n1,x,y\n", nil, []string{"in/x.csv:1:1"}},
		{"other case", "A,b\n1,x\n", nil, []string{"in/x.csv:1:1", "in/x.csv:1:1"}},
		{"other delimiter", "a;b\n1;x\n", nil, []string{"in/x.csv:1:1", "in/x.csv:1:1", "in/x.csv:1:1"}},
		{"short record", header + "1,x\n2\n3,y\n4\n", nil, []string{"in/x.csv:3:1", "in/x.csv:5:1"}},
		{"long record", header + "1,x\n2,y,z\n", nil, []string{"in/x.csv:3:1"}},
		{"short record behind a quoted line end and an empty line", header + "1,\"x\n\ny\"\n\n2\n", nil, []string{"in/x.csv:6:1"}},
		{"misfit behind a quoted line end and an empty line", header + "1,\"x\r\n\ny\"\n\n2.5,z\n", nil, []string{"in/x.csv:6:1"}},
		{"misfit behind a bare quote", header + "1,x\"y\n2,\"z\"\nno,z\n", nil, []string{"in/x.csv:4:1"}},
		{"misfit in a later column", "b,a\né\"\"x,1\nlonger text,no\n", nil, []string{"in/x.csv:3:13"}},
		{"open quote", header + "1,x\n2,\"y\n3,z\n", nil, []string{"in/x.csv:3:1"}},
		{"text behind a quote", header + "1,x\n2,\"y\"z\n", nil, []string{"in/x.csv:3:1"}},
		{"two ways to end a line", header + "1,x\n2,y\r\n3,z\n", nil, []string{"in/x.csv:3:1"}},
		{"no UTF-8", header + "1,x\n2,\xff\xfe\n", nil, []string{"in/x.csv:3:1"}},
		{"UTF-16", "\xff\xfea\x00,\x00b\x00\n\x001\x00,\x00x\x00\n\x00", nil, []string{"in/x.csv:1:1"}},
		{"a record that is too long", header + "1,x\n2," + strings.Repeat("y", 2_100_000) + "\n", nil, []string{"in/x.csv:3:1"}},
		{"a misfit far down", header + long + "1.5,x\n" + long, nil, []string{"in/x.csv:300002:1"}},
		{"more than are worth reporting", header + strings.Repeat("x,1\n", 100), nil, nil},
	} {
		for _, suffix := range []string{"", ".gz"} {
			t.Run(tc.name+suffix, func(t *testing.T) {
				content := []byte(tc.content)
				if suffix != "" {
					content = zip(t, content)
				}
				rows, places, err := stage(t, b, sourceOf(project.CSV, "a INTEGER", "b VARCHAR"), file(t, o, "x.csv"+suffix, content))
				want := []string{}
				for _, p := range tc.places {
					want = append(want, strings.Replace(p, "x.csv", "x.csv"+suffix, 1))
				}
				switch {
				case tc.rows != nil && !reflect.DeepEqual(rows, tc.rows):
					t.Errorf("staged %q, want %q: %v", rows, tc.rows, err)
				case tc.places != nil && !reflect.DeepEqual(places, want):
					t.Errorf("refused at %q, want %q: %v", places, want, err)
				case tc.rows == nil && tc.places == nil && len(places) != mostProblems+1:
					t.Errorf("%d problems were reported", len(places))
				}
			})
		}
	}
}

// TestRecordsOverSeveralLines proves that records with line breaks in quotes are read whole wherever they stand in a file that several
// threads would share.
func TestRecordsOverSeveralLines(t *testing.T) {
	b, o := opened(t)
	var text, objects strings.Builder
	text.WriteString("a,b\n")
	// Each record looks like two of other shapes to whoever begins to read within it.
	field := strings.Repeat("x\n1,\"\"2\"\",3\n", 2000)
	const n = 1500
	for i := range n {
		fmt.Fprintf(&text, "%d,\"%s\"\n", i, field)
		fmt.Fprintf(&objects, "{\"a\": %d, \"b\": \"%s\"}\n", i, strings.Repeat(`x\n1,\"2\",3\n`, 2000))
	}
	for name, content := range map[string]string{"x.csv": text.String(), "x.json": objects.String()} {
		format := project.CSV
		if name == "x.json" {
			format = project.JSON
		}
		s := sourceOf(format, "a INTEGER", "b VARCHAR")
		s.Name = "src_" + string(format)
		staged, err := b.Stage(t.Context(), s, []ports.Artifact{file(t, o, name, []byte(content))})
		var sum int64
		if err == nil {
			must(t, b.conn.Scan(t.Context(), "SELECT sum(a) FROM "+engine.Identifier(stagedName(s, 0))+" WHERE length(b) = ?", []any{2000 * len("x\n1,\"2\",3\n")}, &sum))
		}
		if err != nil || staged.Rows != n || sum != n*(n-1)/2 {
			t.Errorf("%s: %d rows, sum %d: %v", name, staged.Rows, sum, err)
		}
	}
}

func TestOneColumnKeepsEmptyLines(t *testing.T) {
	b, o := opened(t)
	rows, _, err := stage(t, b, sourceOf(project.CSV, "a INTEGER"), file(t, o, "x.csv", []byte("a\n1\n\n2\n")))
	if want := []string{"1", "∅", "2"}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Fatalf("staged %q, want %q: %v", rows, want, err)
	}
	_, places, err := stage(t, b, sourceOf(project.CSV, "a INTEGER"), file(t, o, "x.csv", []byte("a\n1\n\nx\n")))
	if want := []string{"in/x.csv:4:1"}; !reflect.DeepEqual(places, want) {
		t.Fatalf("refused at %q, want %q: %v", places, want, err)
	}
}

func TestGzipIsProved(t *testing.T) {
	b, o := opened(t)
	s := sourceOf(project.CSV, "a INTEGER", "b VARCHAR")
	whole := zip(t, []byte("a,b\n"+strings.Repeat("1,x\n", 100_000)))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-8] ^= 1
	two := append(zip(t, []byte("a,b\n1,x\n")), zip(t, []byte("2,y\n"))...)
	if rows, _, err := stage(t, b, s, file(t, o, "two.csv.gz", two)); err != nil || !reflect.DeepEqual(rows, []string{"1|x", "2|y"}) {
		t.Errorf("a file of two members: %q, %v", rows, err)
	}
	for name, content := range map[string][]byte{
		"cut in the middle": whole[:len(whole)/2], "cut in its trailer": whole[:len(whole)-6], "wrong checksum": flipped,
		"text behind it": append(bytes.Clone(whole), "junk"...), "not zipped": []byte("a,b\n1,x\n"),
	} {
		if _, places, err := stage(t, b, s, file(t, o, "x.csv.gz", content)); !reflect.DeepEqual(places, []string{"in/x.csv.gz"}) {
			t.Errorf("%s: refused at %q: %v", name, places, err)
		}
	}
	// A JSON file is as strict.
	if _, places, err := stage(t, b, sourceOf(project.JSON, "a INTEGER"), file(t, o, "x.json.gz", zip(t, []byte("{\"a\":1}\n{\"a\":2}\n"))[:30])); len(places) != 1 {
		t.Errorf("a cut JSON file: refused at %q: %v", places, err)
	}
	closed(t, b, o)
}

func TestFilesWithOtherHeadersAndNames(t *testing.T) {
	b, o := opened(t)
	s := sourceOf(project.CSV, "a INTEGER", "b VARCHAR", "year INTEGER")
	rows, _, err := stage(t, b, s,
		file(t, o, "1.csv", []byte("a,b,year\n1,x,2013\n")), file(t, o, "2.csv.gz", zip(t, []byte("a,b,year\n2,y,2014\n"))),
		file(t, o, "3.csv", []byte("year,b,a\n2015,z,3\n")), file(t, o, "4.csv", []byte("year,b,a\n")))
	if want := []string{"1|x|2013", "2|y|2014", "3|z|2015"}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Fatalf("staged %q, want %q: %v", rows, want, err)
	}
	// A quote, a tab, a semicolon: the declaration decides, never the file.
	s = sourceOf(project.CSV, `a"b INTEGER`, "c VARCHAR")
	s.Delimiter, s.NullTexts = "\t", []string{"it's"}
	rows, _, err = stage(t, b, s, file(t, o, "x.csv", []byte("\"a\"\"b\"\tc\n1\tit's\n2\tNA\n")))
	if want := []string{"1|∅", "2|NA"}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Fatalf("staged %q, want %q: %v", rows, want, err)
	}
}

func TestJSONValues(t *testing.T) {
	b, o := opened(t)
	for _, tc := range []struct {
		kind  string
		exact map[string]string
		none  []string
	}{
		{"BIGINT", map[string]string{"9007199254740993": "9007199254740993", "-0": "0", "null": "∅"},
			[]string{"1.5", "9007199254740993.0", "1e3", "9223372036854775808", `"1"`, "true", "{}", "[1]"}},
		{"DECIMAL(19,2)", map[string]string{"12345678901234567.89": "12345678901234567.89", "1.10": "1.10", `"12345678901234567.80"`: "12345678901234567.80", "7": "7.00"},
			[]string{"0.1000000000000000055511151231257827", "1e2", `"x"`, "true"}},
		{"DOUBLE", map[string]string{"1.5": "1.5", "1e3": "1000.0"}, []string{"1e400", `"1.5"`}},
		{"VARCHAR", map[string]string{`"x"`: "x", `"NA"`: "NA", `""`: "", `"\\N"`: `\N`, `"a\"b\nc,\u00e9"`: "a\"b\nc,é", `"�\ufffd"`: "��", "null": "∅"},
			[]string{"1", "1.10", "{}", "true", `"x\u0000y"`, `"\ud800"`}},
		{"JSON", map[string]string{`{"b": 1.10,  "c":12345678901234567.89}`: `{"b": 1.10,  "c":12345678901234567.89}`, `"x"`: `"x"`, "[1, 2.0]": "[1, 2.0]", "null": "∅"}, nil},
		{"BOOLEAN", map[string]string{"true": "true", "false": "false"}, []string{"1", `"true"`}},
		{"DATE", map[string]string{`"2024-02-29"`: "2024-02-29"}, []string{`"2023-02-29"`, "20240229", `"2024-02-29T10:00:00Z"`}},
		{"TIMESTAMP WITH TIME ZONE", map[string]string{`"2013-01-01T05:00:00Z"`: "2013-01-01 05:00:00+00"}, []string{"1356998400", `"2013-01-01 05:00:00"`}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			s := sourceOf(project.JSON, "v "+tc.kind)
			lines, want := []string{}, []string{}
			for text, value := range tc.exact {
				lines = append(lines, `{"v":`+text+"}")
				want = append(want, value)
			}
			all := strings.Join(lines, "\n")
			rows, _, err := stage(t, b, s, file(t, o, "a.json", []byte(all)))
			if err != nil || !reflect.DeepEqual(rows, want) {
				t.Errorf("staged %q, want %q: %v", rows, want, err)
			}
			good := file(t, o, "good.json", []byte(all))
			for _, text := range tc.none {
				rows, places, err := stage(t, b, s, good, file(t, o, "bad.json", []byte(all+"\n{\"v\":"+text+"}\n")))
				if at := fmt.Sprintf("in/bad.json:%d:1", len(tc.exact)+1); rows != nil || !reflect.DeepEqual(places, []string{at}) {
					t.Errorf("%s became %q, or was refused at %q instead of %s: %v", text, rows, places, at, err)
				}
			}
		})
	}
}

func TestJSONShapes(t *testing.T) {
	b, o := opened(t)
	for _, tc := range []struct {
		name, content string
		rows, places  []string
	}{
		{"array", "[{\"a\":1,\"b\":\"x\"},\n {\"b\":\"y\",\"a\":2}]\n", []string{"1|x", "2|y"}, nil},
		{"one a line", "{\"a\":1,\"b\":\"x\"}\n\n{\"a\":2,\"b\":\"y\"}", []string{"1|x", "2|y"}, nil},
		{"over several lines", "{\n\"a\":1,\n\"b\":\"x\"}\n{\"a\":2}", []string{"1|x", "2|∅"}, nil},
		{"missing keys are NULL", "[{},{\"a\":1}]", []string{"∅|∅", "1|∅"}, nil},
		{"empty array", " [ ]\n", []string{}, nil},
		{"byte order mark", "\xef\xbb\xbf[{\"a\":1}]", []string{"1|∅"}, nil},

		{"empty file", " \n", nil, []string{"in/x.json:1:1"}},
		{"unknown key", "{\"a\":1}\n{\"a\":2,\"c\":3}\n", nil, []string{"in/x.json:2:1"}},
		{"key twice", "[{\"a\":1},\n{\"a\":2,\"a\":3}]", nil, []string{"in/x.json:2:1"}},
		{"null record", "[{\"a\":1},\nnull]", nil, []string{"in/x.json:2:1"}},
		{"numbers", "1\n2\n", nil, []string{"in/x.json:1:1"}},
		{"array of arrays", "[[1]]", nil, []string{"in/x.json:1:1"}},
		{"trailing comma", "{\"a\":1}\n{\"a\":2,}\n", nil, []string{"in/x.json:2:1"}},
		{"NaN", "{\"a\":NaN}\n", nil, []string{"in/x.json:1:1"}},
		{"cut line", "{\"a\":1}\n{\"a\":", nil, []string{"in/x.json:2:1"}},
		{"cut array", "[{\"a\":1},\n{\"a\":2}\n", nil, []string{"in/x.json:3:1"}},
		{"array without commas", "[{\"a\":1}\n{\"a\":2}]", nil, []string{"in/x.json:2:1"}},
		{"array with a last comma", "[{\"a\":1},\n]", nil, []string{"in/x.json:2:1"}},
		{"wrong brackets", "{\"a\":1}\n{\"b\":\n[1}]\n", nil, []string{"in/x.json:3:1"}},
		{"escaped names and nested texts", "{\"\\u0061\":1,\"b\":\"}\\\"{\"}", []string{"1|}\"{"}, nil},
		{"text behind the array", "[{\"a\":1}]\n{\"a\":2}", nil, []string{"in/x.json:2:1"}},
		{"no UTF-8", "{\"a\":1}\n{\"b\":\"\xff\"}\n", nil, []string{"in/x.json:2:1"}},
		{"a misfit far down", "[" + strings.Repeat("{\"a\":1},\n", 50_000) + "{\n\"b\":\"x\",\"a\":1.5}]", nil, []string{"in/x.json:50002:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, places, err := stage(t, b, sourceOf(project.JSON, "a INTEGER", "b VARCHAR"), file(t, o, "x.json", []byte(tc.content)))
			if tc.rows != nil && !reflect.DeepEqual(rows, tc.rows) || tc.places != nil && !reflect.DeepEqual(places, tc.places) {
				t.Errorf("staged %q, want %q; refused at %q, want %q: %v", rows, tc.rows, places, tc.places, err)
			}
		})
	}
	// One that the engine could not read is named too.
	wide := append([]byte("{\"b\":\"x\"}\n{\"b\":\""), bytes.Repeat([]byte("x"), maxRecord)...)
	if _, places, err := stage(t, b, sourceOf(project.JSON, "b VARCHAR"), file(t, o, "x.json", append(wide, "\"}\n"...))); !reflect.DeepEqual(places, []string{"in/x.json:2:1"}) {
		t.Errorf("a wide record: refused at %q: %v", places, err)
	}
	// A record that never ends does not fill the memory.
	huge := append([]byte(`{"b":"`), bytes.Repeat([]byte("x"), 2*maxObject)...)
	if _, places, err := stage(t, b, sourceOf(project.JSON, "b VARCHAR"), file(t, o, "x.json", huge)); !reflect.DeepEqual(places, []string{"in/x.json:1:1"}) {
		t.Errorf("an endless record: refused at %q: %v", places, err)
	}
}

func TestParquet(t *testing.T) {
	b, o := opened(t)
	// The test's own files are written by the engine, into the one folder that it may write them to.
	parquet := func(name, query string) ports.Artifact {
		a := file(t, o, name, nil)
		must(t, b.conn.Exec(t.Context(), "COPY ("+query+") TO "+engine.Literal(a.Path)+" (FORMAT parquet)"))
		return a
	}
	accepted := []struct{ name, query, kind, want string }{
		{"equal", "SELECT 1.25::DECIMAL(4,2) AS v", "DECIMAL(4,2)", "1.25"},
		{"wider whole number", "SELECT 1::TINYINT AS v", "BIGINT", "1"},
		{"unsigned into signed", "SELECT 4294967295::UINTEGER AS v", "BIGINT", "4294967295"},
		{"whole number into double", "SELECT 7::INTEGER AS v", "DOUBLE", "7.0"},
		{"whole number into decimal", "SELECT 9223372036854775807 AS v", "DECIMAL(21,2)", "9223372036854775807.00"},
		{"wider decimal", "SELECT 1.25::DECIMAL(4,2) AS v", "DECIMAL(6,3)", "1.250"},
		{"float into double", "SELECT 0.5::FLOAT AS v", "DOUBLE", "0.5"},
		{"day into timestamp", "SELECT DATE '2024-02-29' AS v", "TIMESTAMP", "2024-02-29 00:00:00"},
		{"whole microseconds", "SELECT TIMESTAMP_NS '2024-02-29 00:00:00.000001' AS v", "TIMESTAMP", "2024-02-29 00:00:00.000001"},
		{"NULL nanoseconds", "SELECT NULL::TIMESTAMP_NS AS v", "TIMESTAMP", "∅"},
		{"a column that a folder is named after", "SELECT 2013 AS v", "INTEGER", "2013"},
	}
	for _, tc := range accepted {
		t.Run(tc.name, func(t *testing.T) {
			rows, _, err := stage(t, b, sourceOf(project.Parquet, "v "+tc.kind), parquet("x.parquet", tc.query))
			if want := []string{tc.want}; err != nil || !reflect.DeepEqual(rows, want) {
				t.Errorf("staged %q, want %q: %v", rows, want, err)
			}
		})
	}
	for _, tc := range []struct{ name, query, kind, says string }{
		{"double into whole number", "SELECT 2.5::DOUBLE AS v", "INTEGER", "DOUBLE"},
		{"narrower whole number", "SELECT 1::BIGINT AS v", "INTEGER", "BIGINT"},
		{"big whole number into double", "SELECT 1::BIGINT AS v", "DOUBLE", "BIGINT"},
		{"narrower decimal", "SELECT 1.25::DECIMAL(6,3) AS v", "DECIMAL(6,2)", "DECIMAL(6,3)"},
		{"decimal without room", "SELECT 1::BIGINT AS v", "DECIMAL(20,2)", "BIGINT"},
		{"text into number", "SELECT '1' AS v", "INTEGER", "VARCHAR"},
		{"number into text", "SELECT 1 AS v", "VARCHAR", "INTEGER"},
		{"time zone dropped", "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS v", "TIMESTAMP", "TIME ZONE"},
		{"nanoseconds", "SELECT TIMESTAMP_NS '2024-02-29 00:00:00.000000001' AS v", "TIMESTAMP", "microsecond"},
		{"missing column", "SELECT 1 AS w", "INTEGER", `"v"`},
		{"extra column", "SELECT 1 AS v, 2 AS w", "INTEGER", `"w"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			good := parquet("good.parquet", "SELECT NULL::"+tc.kind+" AS v")
			_, places, err := stage(t, b, sourceOf(project.Parquet, "v "+tc.kind), good, parquet("bad.parquet", tc.query))
			if len(places) == 0 || places[0] != "in/bad.parquet" || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("refused at %q: %v", places, err)
			}
		})
	}
	// What the engine would cut or choke on without a word; the files are from another writer.
	for name, kind := range map[string]string{"int96.parquet": "TIMESTAMP", "time_ns.parquet": "TIME"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		must(t, err)
		if _, places, err := stage(t, b, sourceOf(project.Parquet, "v "+kind), file(t, o, "bad.parquet", content)); len(places) != 1 || !strings.Contains(err.Error(), "microseconds") {
			t.Errorf("%s: refused at %q: %v", name, places, err)
		}
	}
	// What is left out is not held against anything.
	content, err := os.ReadFile(filepath.Join("testdata", "int96.parquet"))
	must(t, err)
	other := sourceOf(project.Parquet, "w TIMESTAMP")
	other.OnChange = project.ChangeIgnore
	if _, places, err := stage(t, b, other, file(t, o, "bad.parquet", content)); len(places) != 1 || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("a column that is left out: refused at %q: %v", places, err)
	}
	if _, places, err := stage(t, b, sourceOf(project.Parquet, "v VARCHAR"), parquet("nul.parquet", "SELECT 'x' || chr(0) AS v")); len(places) != 1 || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("a text with a NUL byte: refused at %q: %v", places, err)
	}
	whole := parquet("whole.parquet", "SELECT range AS v FROM range(1000)")
	content, err = os.ReadFile(whole.Path)
	must(t, err)
	for name, part := range map[string][]byte{"cut": content[:len(content)/2], "empty": nil, "text": []byte("v\n1\n")} {
		if _, places, err := stage(t, b, sourceOf(project.Parquet, "v BIGINT"), file(t, o, "bad.parquet", part)); !reflect.DeepEqual(places, []string{"in/bad.parquet"}) {
			t.Errorf("%s: refused at %q: %v", name, places, err)
		}
	}
}

func TestStagingStopsAtBoundsAndCancels(t *testing.T) {
	b, o := opened(t, func(o *engine.Options) { o.MemoryBytes, o.TempBytes = 64<<20, 8<<20 })
	s := sourceOf(project.CSV, "a BIGINT", "b VARCHAR")
	var content strings.Builder
	content.WriteString("a,b\n")
	for i := range 2_000_000 {
		fmt.Fprintf(&content, "%d,\"some \"\"text\"\" of row number %d that is not short\"\n", i, i)
	}
	big := file(t, o, "big.csv.gz", zip(t, []byte(content.String())))
	if _, err := b.Stage(t.Context(), s, []ports.Artifact{big}); fail.KindOf(err) != fail.Limit {
		t.Errorf("a source beyond memory and spill space: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Name = "other"
	if _, err := b.Stage(ctx, s, []ports.Artifact{big}); fail.KindOf(err) != fail.Canceled {
		t.Errorf("a cancelled staging: %v", err)
	}
	must(t, b.Close())
	// The engine lives on, and the next build starts clean.
	next := begun(t, b.lake)
	if rows, _, err := stage(t, next, sourceOf(project.CSV, "a BIGINT", "b VARCHAR"), file(t, o, "x.csv", []byte("a,b\n1,x\n"))); err != nil || len(rows) != 1 {
		t.Errorf("after the limit: %q, %v", rows, err)
	}
}
