package draft

import (
	"encoding/json"
	"fmt"
	"math/big"
	"path"
	"regexp"
	"slices"
	"strings"

	"leapview/domain/project"
)

// Source is a table with the columns that were chosen for it.
type Source struct {
	Table
	// Name of the source, and Model of the model over it.
	SourceName, Model string
	Choices           []Choice
}

// Plan chooses names and types for the tables. name is the project's.
func Plan(tables []Table) []Source {
	var out []Source
	taken := map[string]bool{}
	for _, t := range tables {
		model := Name(path.Base(t.Name), "data")
		for i := 2; taken[model] || taken[model+"_file"]; i++ {
			model = fmt.Sprintf("%s_%d", Name(path.Base(t.Name), "data"), i)
		}
		s := Source{Table: t, Model: model, SourceName: model + "_file"}
		taken[s.Model], taken[s.SourceName] = true, true
		for _, c := range t.Columns {
			s.Choices = append(s.Choices, c.Choose())
		}
		out = append(out, s)
	}
	return out
}

// AsText makes every column VARCHAR, or JSON where values need not be strings, with the reason as a doubt about the file.
func (s *Source) AsText(why string) {
	s.Doubts = append(s.Doubts, why+": every column is kept as text")
	for i := range s.Choices {
		c := &s.Choices[i]
		c.Column.Type, c.Format, c.NullTexts, c.Doubts = "VARCHAR", "", nil, nil
		if s.Format == project.JSON {
			c.Column.Type = "JSON"
		}
	}
}

// Declared is the source as its declaration says it.
func (s *Source) Declared() project.Source {
	out := project.Source{Name: s.SourceName, Location: s.Location, Format: s.Format, Delimiter: s.Delimiter}
	if out.Delimiter == "" {
		out.Delimiter = ","
	}
	for _, c := range s.Choices {
		out.Columns = append(out.Columns, c.Column)
	}
	out.NullTexts = s.nullTexts()
	return out
}

// nullTexts are the null words of all columns, which hold for the whole file.
func (s *Source) nullTexts() []string {
	var nulls []string
	for _, c := range s.Choices {
		for _, w := range c.NullTexts {
			if s.Format == project.CSV && !slices.Contains(nulls, w) {
				nulls = append(nulls, w)
			}
		}
	}
	slices.Sort(nulls)
	return nulls
}

var endings = regexp.MustCompile(`(?i)(\.(csv|tsv|txt|parquet|json|ndjson|jsonl))?(\.gz)?$`)

// Name makes a name of a file's or folder's; other is what it is called when nothing is left of it.
func Name(text, other string) string {
	text = endings.ReplaceAllString(text, "")
	var b strings.Builder
	lower := false
	for _, r := range text {
		switch {
		case r >= 'A' && r <= 'Z':
			// orderDate is order_date, and ID is id.
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
			lower = false
			continue
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
		lower = r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
	}
	name := strings.Trim(regexp.MustCompile(`_+`).ReplaceAllString(b.String(), "_"), "_")
	if name == "" {
		return other
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = other + "_" + name
	}
	// Room for an ending of ours.
	if len(name) > 50 {
		name = strings.TrimRight(name[:50], "_")
	}
	if slices.Contains(reserved, name) {
		name += "_"
	}
	return name
}

// reserved are the words that the engine does not take for a column or table everywhere.
var reserved = strings.Fields(`all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check collate
	collation column concurrently constraint create cross default deferrable desc describe distinct do else end except
	false fetch for foreign freeze from full glob group having ilike in initially inner intersect into is isnull join
	lambda lateral leading left like limit natural not notnull null offset on only or order outer overlaps pivot
	pivot_longer pivot_wider placing positional primary qualify references returning right select semi show similar some
	summarize symmetric table tablesample then to trailing true union unique unpack unpivot using variadic verbose when
	where window with`)

// outputs are the names of a source's columns in its model.
func (s *Source) outputs() []string {
	var names []string
	for _, c := range s.Choices {
		name := Name(c.Column.Name, "column")
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s_%d", Name(c.Column.Name, "column"), n)
		}
		names = append(names, name)
	}
	return names
}

// Files writes the project.
func Files(name string, sources []Source) []project.File {
	files := []project.File{{Path: "leapview.yaml", Content: []byte("name: " + name + "\n")}}
	add := func(path, content string) {
		files = append(files, project.File{Path: path, Content: []byte(content)})
	}
	for i := range sources {
		s := &sources[i]
		add("sources/"+s.SourceName+".yaml", s.declaration())
		add("models/"+s.Model+".sql", s.model())
		if i == 0 {
			add("endpoints/"+s.Model+".sql", s.endpoint())
		}
	}
	slices.SortFunc(files, func(a, b project.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// comment wraps a sentence into comment lines.
func comment(b *strings.Builder, indent, text string) {
	const width = 130
	line := indent + "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

func (s *Source) declaration() string {
	var b strings.Builder
	comment(&b, "", fmt.Sprintf("Written after reading all %s of %s. A refresh guesses nothing: a file that does not fit this declaration fails it, with file and line.",
		counted(s.Rows, "row"), path.Base(s.Name)))
	b.WriteString("connector: file\n")
	fmt.Fprintf(&b, "location: %s\n", scalar(s.Location))
	fmt.Fprintf(&b, "format: %s\n", s.Format)
	for _, d := range s.Doubts {
		comment(&b, "", "DOUBT: "+d)
	}
	if s.Format == project.CSV && s.Delimiter != "," {
		fmt.Fprintf(&b, "delimiter: %s\n", text(s.Delimiter))
	}
	if nulls := s.nullTexts(); len(nulls) > 0 {
		for i, n := range nulls {
			nulls[i] = text(n)
		}
		comment(&b, "", "These texts mean that there is no value, in every column.")
		fmt.Fprintf(&b, "null_texts: [%s]\n", strings.Join(nulls, ", "))
	}
	b.WriteString("columns:\n")
	for _, c := range s.Choices {
		for _, d := range c.Doubts {
			comment(&b, "  ", "DOUBT: "+d)
		}
		fmt.Fprintf(&b, "  %s: %s\n", scalar(c.Column.Name), scalar(string(c.Column.Type)))
	}
	return b.String()
}

func (s *Source) model() string {
	var b strings.Builder
	names := s.outputs()
	fmt.Fprintf(&b, "/*---\ndescription: %s\nlayer: staging\n", scalar("The rows of "+path.Base(s.Name)))
	b.WriteString("# Inferred from the file: errors stop a refresh, warnings only tell. Change what is not true of the data to come.\nchecks:\n  - row_count: {min: 1}\n")
	if s.Rows == 0 {
		b.Reset()
		fmt.Fprintf(&b, "/*---\ndescription: %s\nlayer: staging\n", scalar("The rows of "+path.Base(s.Name)))
	} else {
		s.checks(&b, names)
	}
	b.WriteString("---*/\nSELECT\n")
	for i, c := range s.Choices {
		end := ","
		if i == len(s.Choices)-1 {
			end = ""
		}
		name := `"` + strings.ReplaceAll(c.Column.Name, `"`, `""`) + `"`
		switch {
		case c.Format != "":
			// Every value tells that the other order is not meant, or at least one does.
			fmt.Fprintf(&b, "    strptime(%s, '%s')::DATE AS %s%s\n", name, c.Format, names[i], end)
		case names[i] == c.Column.Name:
			fmt.Fprintf(&b, "    %s%s\n", names[i], end)
		default:
			fmt.Fprintf(&b, "    %s AS %s%s\n", name, names[i], end)
		}
	}
	fmt.Fprintf(&b, "FROM %s\n", s.SourceName)
	return b.String()
}

// checks writes what holds for every row that was read.
func (s *Source) checks(b *strings.Builder, names []string) {
	var full []string
	key := -1
	for i, c := range s.Columns {
		if !s.full(i) {
			continue
		}
		full = append(full, names[i])
		better := key < 0 || likeKey(names[i]) && !likeKey(names[key])
		if c.seen != nil && c.nested == 0 && s.Rows > 1 && better && s.Choices[i].Column.Type != "DOUBLE" && (likeKey(names[i]) || i == 0) {
			key = i
		}
	}
	if len(full) > 0 {
		fmt.Fprintf(b, "  - not_null: [%s]\n", strings.Join(full, ", "))
	}
	if key >= 0 {
		fmt.Fprintf(b, "  - unique: %s\n", names[key])
	}
	for i, c := range s.Columns {
		if values, ok := s.accepted(i); ok {
			for j, v := range values {
				values[j] = text(v)
			}
			fmt.Fprintf(b, "  - accepted_values: {column: %s, values: [%s]}\n    severity: warn\n", names[i], strings.Join(values, ", "))
		}
		switch kind := s.Choices[i].Column.Type; {
		case i == key || c.low == nil || likeKey(names[i]):
		case kind == "BIGINT" || strings.HasPrefix(string(kind), "DECIMAL"):
			fmt.Fprintf(b, "  - range: {column: %s, min: %s, max: %s}\n    severity: warn\n", names[i], exact(c.low), exact(c.high))
		}
	}
}

// full tells whether the column has a value in every row.
func (s *Source) full(i int) bool {
	c := s.Columns[i]
	if c.Nulls > 0 || c.Rows == 0 {
		return false
	}
	for _, w := range c.wordList() {
		for _, x := range s.Choices {
			if slices.Contains(x.NullTexts, w) {
				return false
			}
		}
	}
	return true
}

// likeKey tells whether a column is called like one that identifies something.
func likeKey(name string) bool {
	return name == "id" || name == "key" || name == "code" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_key") || strings.HasSuffix(name, "_no") || strings.HasSuffix(name, "_code") ||
		strings.HasSuffix(name, "_number") || name == "uuid"
}

// accepted are the values of a column that seems to hold one of a few words.
func (s *Source) accepted(i int) ([]string, bool) {
	c := s.Columns[i]
	if s.Choices[i].Column.Type != "VARCHAR" || c.values == nil || c.nested > 0 || len(c.values) < 2 || int64(len(c.values))*5 > c.Rows {
		return nil, false
	}
	var values []string
	for v := range c.values {
		values = append(values, v)
	}
	slices.Sort(values)
	return values, true
}

// calendar are names of numbers whose mean says nothing.
var calendar = []string{"year", "quarter", "month", "week", "weekday", "day", "hour", "minute", "second"}

func (s *Source) endpoint() string {
	names := s.outputs()
	category, amount := -1, -1
	for i := range s.Choices {
		if _, ok := s.accepted(i); ok && category < 0 {
			category = i
		}
		kind := s.Choices[i].Column.Type
		if c := s.Columns[i]; amount < 0 && (c.seen == nil || kind != "BIGINT") && !likeKey(names[i]) && !slices.Contains(calendar, names[i]) && (kind == "BIGINT" || kind == "DOUBLE" || strings.HasPrefix(string(kind), "DECIMAL")) {
			amount = i
		}
	}
	if category < 0 {
		return fmt.Sprintf("/*---\ndescription: The first rows of %s\nlimit: 100\n---*/\nSELECT *\nFROM %s\nORDER BY 1\n", s.Model, s.Model)
	}
	var b strings.Builder
	by := names[category]
	fmt.Fprintf(&b, "/*---\ndescription: How many rows of %s there are of each %s\nparams:\n  %s: {type: string, description: Only this one; all of them when left out}\n---*/\n", s.Model, by, by)
	fmt.Fprintf(&b, "SELECT\n    %s,\n    count(*) AS row_count", by)
	if amount >= 0 {
		fmt.Fprintf(&b, ",\n    round(avg(%s), 3) AS mean_%s", names[amount], names[amount])
	}
	fmt.Fprintf(&b, "\nFROM %s\nWHERE $%s IS NULL OR %s = $%s\nGROUP BY %s\nORDER BY row_count DESC, %s\n", s.Model, by, by, by, by, by)
	return b.String()
}

// exact is a number in plain digits.
func exact(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	return strings.TrimRight(x.FloatString(18), "0")
}

var plainForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./()-]*( [A-Za-z0-9_./()-]+)*$`)

// scalar writes a string as YAML, without quotes where nothing else could be meant.
func scalar(s string) string {
	if plainForm.MatchString(s) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	return text(s)
}

// text writes a string as quoted YAML, which takes JSON's form.
func text(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// A string always has a JSON form.
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// Readme says what was written and what to do with it.
func Readme(name string, sources []Source) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nA LeapView project. `leapview dev .` validates it, reads the data, serves the answers, and does so again after every change.\n\n", name)
	doubts := 0
	for i := range sources {
		s := &sources[i]
		fmt.Fprintf(&b, "- `sources/%s.yaml` declares %s: %s, %s.\n", s.SourceName, s.Location, counted(s.Rows, "row"), counted(int64(len(s.Choices)), "column"))
		fmt.Fprintf(&b, "- `models/%s.sql` is the table `%s` over it, with the checks that hold today.\n", s.Model, s.Model)
		doubts += s.doubts()
		if i == 0 {
			fmt.Fprintf(&b, "- `endpoints/%s.sql` is a first question, answered at `/v1/workspaces/%s/endpoints/%s`.\n", s.Model, name, s.Model)
		}
	}
	b.WriteString("\nEvery choice that could be wrong stands under a comment that begins with `DOUBT`")
	if doubts == 0 {
		b.WriteString("; there is none here")
	}
	b.WriteString(".\nChange any file and save it: a mistake is explained at its line, and the old answers stay until the new ones are proved.\n")
	return b.String()
}

func (s *Source) doubts() int {
	n := len(s.Doubts)
	for _, c := range s.Choices {
		n += len(c.Doubts)
	}
	return n
}

// Doubts counts what the author should look at.
func Doubts(sources []Source) int {
	n := 0
	for i := range sources {
		n += sources[i].doubts()
	}
	return n
}
