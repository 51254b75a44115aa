package project

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"leapview/domain/fail"
)

func text[T any](v T) *T { return &v }

func file(path, content string) File { return File{path, []byte(content)} }

var goodFiles = []File{
	file("models/m.sql", "\n/*---\n{\"layer\": \"staging\", \"description\": \"d\", \"materialize\": \"table\", \"mode\": \"full\",\n"+
		" \"columns\": {\"n\": \"int8\", \"l\": \"struct(a int, b text)[]\"},\n"+
		" \"checks\": [{\"not_null\": \"n\"}, {\"unique\": [\"n\", \"l\"]}, {\"row_count\": {\"min\": 1, \"max\": 9}}]}\n---*/\n\n  SELECT 1 AS n -- x;\n"),
	file("models/bare.sql", "SELECT 'ä', 2 AS x;"),
	file("leapview.yaml", `{"name": "flights", "description": "All of them"}`),
	file("sources/s.yaml", `{"connector": "file", "location": "a/*.csv.gz", "format": "csv", "delimiter": "\t", "null_texts": ["NA", ""],
  "columns": {"a b": "timestamptz", "c": {"type": "decimal(10)", "description": "cents"}}}`),
	file("endpoints/e.sql", "/*---\r\n{\"limit\": 7, \"params\": {\"day\": {\"type\": \"date\", \"default\": \"2013-01-02\", \"min\": \"2013-01-01\"},\n"+
		" \"o\": {\"type\": \"string\", \"required\": true, \"enum\": [\"EWR\", \"JFK\"]}, \"d\": {\"type\": \"decimal\", \"max\": 1.50}}}\n---*/ SELECT $day"),
}

// Proves that every part of a right project is decoded, in a fixed order, with defaults, canonical types and texts, and places.
func TestDecodeReadsEverything(t *testing.T) {
	p, err := Decode(goodFiles, jsonDocuments{})
	if err != nil {
		t.Fatal(err)
	}
	want := Project{
		Name: "flights", Description: "All of them",
		Sources: []Source{{Name: "s", At: Position{File: "sources/s.yaml"}, Location: "a/*.csv.gz", Format: CSV, Delimiter: "\t", NullTexts: []string{"NA", ""},
			Columns: []Column{{Name: "a b", Type: "TIMESTAMP WITH TIME ZONE", At: Position{"sources/s.yaml", 2, 15}},
				{Name: "c", Type: "DECIMAL(10,0)", At: Position{"sources/s.yaml", 2, 37}, Description: "cents"}}}},
		Models: []Model{
			{Name: "bare", At: Position{File: "models/bare.sql"}, Layer: Mart, Statement: Statement{SQL: "SELECT 'ä', 2 AS x", At: Position{"models/bare.sql", 1, 1}}},
			{Name: "m", Description: "d", At: Position{File: "models/m.sql"}, Layer: Staging,
				Statement: Statement{SQL: "SELECT 1 AS n -- x", At: Position{"models/m.sql", 8, 3}},
				Casts: []Column{{Name: "n", Type: "BIGINT", At: Position{"models/m.sql", 4, 14}},
					{Name: "l", Type: "STRUCT(a INTEGER, b VARCHAR)[]", At: Position{"models/m.sql", 4, 27}}},
				Checks: []Check{{Kind: NotNull, Severity: SeverityError, At: Position{"models/m.sql", 5, 14}, Columns: []string{"n"}},
					{Kind: Unique, Severity: SeverityError, At: Position{"models/m.sql", 5, 33}, Columns: []string{"n", "l"}},
					{Kind: RowCount, Severity: SeverityError, At: Position{"models/m.sql", 5, 57}, Min: text[int64](1), Max: text[int64](9)}}},
		},
		Endpoints: []Endpoint{{Name: "e", At: Position{File: "endpoints/e.sql"}, Limit: 7, Statement: Statement{SQL: "SELECT $day", At: Position{"endpoints/e.sql", 4, 7}},
			Params: []Param{{Name: "day", At: Position{"endpoints/e.sql", 2, 25}, Type: ParamDate, Default: &Value{Text: "2013-01-02"}, Min: text("2013-01-01")},
				{Name: "o", At: Position{"endpoints/e.sql", 3, 2}, Type: ParamString, Required: true, Enum: []string{"EWR", "JFK"}},
				{Name: "d", At: Position{"endpoints/e.sql", 3, 69}, Type: ParamDecimal, Max: text("1.5")}}}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", p, want)
	}
	if got := p.Models[0].Statement.PositionOf(len("SELECT 'ä', ")); got.Column != 13 {
		t.Errorf("a column is counted in characters: got %d, want 13", got.Column)
	}
}

// Proves that mistakes in several files are all reported, sorted by place, each with its line, and that no project comes with them.
func TestDecodeReportsEverythingAtOnce(t *testing.T) {
	p, err := Decode([]File{
		file("sources/s.yaml", `{"location": "../x",`+"\n"+` "formt": "csv", "columns": {"a": "HUGEINT"}}`),
		file("models/s.sql", "SELECT 1"),
		file("models/no/such.sql", "SELECT 1"),
		file("modles/x.sql", "SELECT 1"),
		file("endpoints/e.sql", " \n"),
	}, jsonDocuments{})
	var problems Problems
	if !errors.As(err, &problems) || fail.KindOf(err) != fail.Invalid || !reflect.DeepEqual(p, Project{}) {
		t.Fatalf("got %+v and %v, want problems alone", p, err)
	}
	var got []string
	for _, q := range problems {
		got = append(got, q.At.String()+" | "+q.Line)
	}
	want := []string{
		"endpoints/e.sql:2:1 | ",
		"leapview.yaml | ",
		"models/no/such.sql | ",
		"models/s.sql | ",
		"modles/x.sql | ",
		`sources/s.yaml:1:1 | {"location": "../x",`,
		`sources/s.yaml:1:14 | {"location": "../x",`,
		`sources/s.yaml:2:2 |  "formt": "csv", "columns": {"a": "HUGEINT"}}`,
		`sources/s.yaml:2:35 |  "formt": "csv", "columns": {"a": "HUGEINT"}}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s\n\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), err)
	}
}

// Proves that a project full of mistakes gives a bounded report.
func TestDecodeBoundsItsReport(t *testing.T) {
	body := `{"x0":1`
	for range 5000 {
		body += `,"y":1`
	}
	_, err := Decode([]File{file("leapview.yaml", body+"}")}, jsonDocuments{})
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != maxProblems+1 {
		t.Fatalf("got %d problems, want %d and one that counts the others", len(problems), maxProblems)
	}
	if last := problems[maxProblems].Message; !strings.Contains(last, "4902 more") {
		t.Errorf("the last problem says %q", last)
	}
}

// Proves that no file content makes decoding panic, and that what it accepts is a whole project.
func FuzzDecode(f *testing.F) {
	for _, g := range goodFiles {
		f.Add(g.Path, g.Content)
	}
	f.Add("models/x.sql", []byte("/*---\n---*/"))
	f.Add("models/x.sql", []byte("/*---\n-*/ SELECT 1"))
	f.Add("models/x.sql", []byte("/*---"))
	f.Add("endpoints/e.sql", []byte("/*---\n{\"params\":{\"a\":{\"type\":\"decimal\",\"enum\":[1,1.0],\"min\":2}}}---*/1"))
	f.Fuzz(func(t *testing.T, path string, content []byte) {
		p, err := Decode([]File{{path, content}, file("leapview.yaml", `{"name": "x"}`), file("models/always.sql", "SELECT 1")}, jsonDocuments{})
		var problems Problems
		switch {
		case err == nil:
			if !ValidName(p.Name) || len(p.Models) == 0 {
				t.Errorf("an incomplete project was accepted: %+v", p)
			}
			for _, s := range p.Sources {
				if s.Location == "" || s.Format == "" || len(s.Columns) == 0 {
					t.Errorf("an incomplete source was accepted: %+v", s)
				}
			}
		case !errors.As(err, &problems) || len(problems) == 0 || problems.Error() == "":
			t.Errorf("got %v, want problems", err)
		}
	})
}
