package project

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// otherConnectors are how people come by what this version reads as files.
var otherConnectors = map[string]string{
	"excel":      "save the sheet as CSV, with its columns declared: a workbook says neither types nor one way to write a day",
	"http":       "fetch the file into the source root before the refresh",
	"https":      "fetch the file into the source root before the refresh",
	"s3":         "copy the files into the source root before the refresh",
	"ducklake":   "export the table as Parquet into the source root",
	"postgres":   "export the table as CSV or Parquet into the source root, for example with COPY … TO … (FORMAT csv, HEADER)",
	"postgresql": "export the table as CSV or Parquet into the source root, for example with COPY … TO … (FORMAT csv, HEADER)",
	"mysql":      "export the table as CSV into the source root",
	"sqlite":     "export the table as CSV into the source root, for example with sqlite3 -csv -header",
}

// dialectKeys are the keys that only CSV sources have.
var dialectKeys = []string{"delimiter", "null_texts", "quote", "escape", "header", "encoding", "skip_lines", "comment", "decimal", "thousands", "date_format", "timestamp_format", "ragged"}

func (d *decoder) source(name string, f File) {
	s := Source{Name: name, At: Position{File: f.Path}, Delimiter: ","}
	n, ok := d.yaml(f.Path, f.Content, 0)
	if !ok {
		return
	}
	m := d.mapping(n, "a source", append([]string{"connector", "description", "location", "format", "columns", "types", "on_change", "bounds"}, dialectKeys...))
	s.Description = d.optionalText(m, "description")
	if v, ok := m.get("connector"); ok {
		if instead := otherConnectors[v.Text]; instead != "" && v.Kind == StringNode {
			d.report(v.At, fmt.Sprintf("connector %s is not built yet: sources are files", v.Text), instead)
		} else {
			d.choice(v, "connector", []string{"file"})
		}
	}
	if v, ok := m.required("location"); ok {
		s.Location = d.location(v)
	}
	if v, ok := m.required("format"); ok {
		if v.Text == "excel" || v.Text == "xlsx" {
			d.report(v.At, fmt.Sprintf("format %s is not built yet", v.Text), otherConnectors["excel"])
		} else {
			s.Format = Format(d.choice(v, "format", []string{string(CSV), string(Parquet), string(JSON), string(NDJSON)}))
		}
	}
	for _, key := range dialectKeys {
		if v, ok := m.get(key); ok && s.Format != CSV && s.Format != "" {
			d.report(v.At, fmt.Sprintf("%s is for CSV files, and the format is %s", key, s.Format), "remove it")
		}
	}
	if v, ok := m.get("types"); ok {
		if s.Format != Parquet && s.Format != "" {
			d.report(v.At, fmt.Sprintf("types is for Parquet files, and the format is %s", s.Format), "remove it")
		}
		s.Types = TypePolicy(d.choice(v, "types", []string{string(TypesWiden), string(TypesExact)}))
	}
	if v, ok := m.get("on_change"); ok {
		if v.Kind == StringNode && v.Text == "add" {
			d.report(v.At, "on_change add is not built yet: a column that no release declares has no type, and no table has a place for it",
				"declare the column and deploy, or write on_change: ignore to leave it out")
		} else {
			s.OnChange = Change(d.choice(v, "on_change", []string{string(ChangeFail), string(ChangeIgnore)}))
		}
	}
	d.dialect(m, &s)
	if v, ok := m.get("bounds"); ok {
		s.Bounds = d.sourceBounds(v)
	}
	if v, ok := m.required("columns"); ok {
		s.Columns = d.columns(v, ParseType, &s)
	}
	if v, ok := m.get("on_change"); ok && s.Dialect.Headless && s.OnChange == ChangeIgnore {
		d.report(v.At, "without a header nothing tells which column is a new one", "remove on_change, or header: false")
	}
	d.project.Sources = append(d.project.Sources, s)
}

// dialect decodes how CSV files are written.
func (d *decoder) dialect(m fields, s *Source) {
	if v, ok := m.get("delimiter"); ok {
		if text, ok := d.scalarText(v, "delimiter"); ok {
			if len(text) != 1 || text[0] > '~' || text[0] < ' ' && text[0] != '\t' {
				d.report(v.At, fmt.Sprintf("%q cannot separate fields", text), "use one ASCII character, such as \";\" or \"\\t\"")
			}
			s.Delimiter = text
		}
	}
	// Each character has one meaning.
	taken := map[string]string{s.Delimiter: "delimiter"}
	mark := func(key string, forbidden string) string {
		v, ok := m.get(key)
		if !ok {
			return ""
		}
		text, ok := d.scalarText(v, key)
		switch {
		case !ok:
			return ""
		case len(text) != 1 || text[0] <= ' ' || text[0] > '~' || strings.Contains(forbidden, text):
			d.report(v.At, fmt.Sprintf("%s cannot be %s", key, show(text)), "use one ASCII character that is no letter, digit or space")
			return ""
		case taken[text] != "":
			d.report(v.At, fmt.Sprintf("%s is %s, which the %s is already", key, show(text), taken[text]), "use another character")
			return ""
		}
		taken[text] = key
		return text
	}
	const wordly = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	quote := `"`
	if v, ok := m.get("quote"); ok && v.Kind == StringNode && v.Text == QuoteNone {
		quote, s.Dialect.Quote = "", QuoteNone
	} else if text := mark("quote", wordly); text != "" {
		quote = text
		if text != `"` {
			s.Dialect.Quote = text
		}
	} else if s.Delimiter == quote {
		v, _ := m.get("delimiter")
		d.report(v.At, "the delimiter is the quote", "use another delimiter, or declare the quote too")
	}
	if quote != "" {
		taken[quote] = "quote"
	}
	if v, ok := m.get("escape"); ok {
		switch {
		case quote == "":
			d.report(v.At, "escape is for quoted fields, and quote is none", "remove it")
		case v.Kind == StringNode && v.Text == quote:
			// A quote before a quote is the common way.
		default:
			s.Dialect.Escape = mark("escape", wordly)
		}
	}
	s.Dialect.Comment = mark("comment", wordly)
	if v, ok := m.get("header"); ok {
		if v.Kind != BooleanNode || v.Text != "true" && v.Text != "false" {
			d.report(v.At, "header must be true or false, and is "+v.Kind.String(), "write header: false for files without a header, whose columns are the declared ones in their order")
		}
		s.Dialect.Headless = v.Text == "false"
	}
	if v, ok := m.get("encoding"); ok {
		if s.Dialect.Encoding = Encoding(d.choice(v, "encoding", []string{string(UTF8), string(UTF16), string(Latin1), string(Windows1252)})); s.Dialect.Encoding == UTF8 {
			s.Dialect.Encoding = ""
		}
	}
	if v, ok := m.get("skip_lines"); ok {
		if n, ok := d.integer(v, "skip_lines"); ok && (n < 0 || n > MaxSkipLines) {
			d.report(v.At, fmt.Sprintf("skip_lines is %d (limit skip_lines = 0 to %d)", n, MaxSkipLines), "")
		} else {
			s.Dialect.SkipLines = int(n)
		}
	}
	if v, ok := m.get("ragged"); ok {
		s.Dialect.Pad = d.choice(v, "ragged", raggeds) == "pad"
	}
	d.separators(m, s)
	for key, t := range map[string]struct {
		kind Type
		into *string
	}{"date_format": {"DATE", &s.Dialect.DateFormat}, "timestamp_format": {"TIMESTAMP", &s.Dialect.TimestampFormat}} {
		v, ok := m.get(key)
		if !ok {
			continue
		}
		if *t.into, ok = d.scalarText(v, key); !ok {
			continue
		}
		// With an offset it is for the other type of timestamps.
		if t.kind == "TIMESTAMP" && strings.Contains(*t.into, "%z") {
			t.kind = "TIMESTAMP WITH TIME ZONE"
		}
		if _, err := ParseTimeForm(*t.into, t.kind); err != nil {
			d.refused(v.At, err)
			*t.into = ""
		}
	}
	if v, ok := m.get("null_texts"); ok {
		s.NullTexts = d.nullTexts(v, s.Delimiter, quote)
	}
}

// The words and separators that sources are declared with.
var (
	raggeds   = []string{"error", "pad"}
	decimals  = []string{".", ","}
	thousands = []string{",", ".", "'", "_", " ", "\u00a0", "\u202f"}
)

// MaxSkipLines bounds the lines before a header.
const MaxSkipLines = 1000

// separators decodes how numbers are written.
func (d *decoder) separators(m fields, s *Source) {
	one := func(key string, known []string) string {
		v, ok := m.get(key)
		if !ok {
			return ""
		}
		text, ok := d.scalarText(v, key)
		if ok && !slices.Contains(known, text) {
			d.report(v.At, fmt.Sprintf("%s cannot be %s", key, show(text)), "use one of "+strings.Join(quotedAll(known), ", "))
			return ""
		}
		return text
	}
	s.Dialect.Decimal = one("decimal", decimals)
	if s.Dialect.Decimal == "." {
		s.Dialect.Decimal = ""
	}
	s.Dialect.Thousands = one("thousands", thousands)
	v, _ := m.get("thousands")
	switch t := s.Dialect.Thousands; {
	case t == "." && s.Dialect.Decimal == "":
		d.report(v.At, "thousands is \".\", which stands before the fraction unless decimal says otherwise", "declare decimal: \",\" too")
	case t != "" && t == s.Dialect.Decimal:
		d.report(v.At, fmt.Sprintf("thousands is %q, which stands before the fraction already", t), "use another separator")
	}
}

func quotedAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = fmt.Sprintf("%q", t)
	}
	return out
}

// sourceBounds decodes what a source may bring in.
func (d *decoder) sourceBounds(v Node) Bounds {
	var b Bounds
	m := d.mapping(v, "bounds", []string{"max_files", "max_bytes", "max_rows", "min_rows", "max_shrink_percent", "freshness"})
	number := func(key string, least, most int64) *int64 {
		v, ok := m.get(key)
		if !ok {
			return nil
		}
		if v.Kind != IntegerNode && key == "max_bytes" {
			d.report(v.At, "max_bytes must be an integer, and is "+v.Kind.String(), "write the number of bytes in digits: 5 GB are 5000000000")
			return nil
		}
		n, ok := d.integer(v, key)
		switch {
		case !ok:
		case n < least:
			d.report(v.At, fmt.Sprintf("%s is %d, and must be %d or more", key, n, least), "")
		case n > most:
			d.report(v.At, fmt.Sprintf("%s is %d, and must be %d or less", key, n, most), "")
		}
		return &n
	}
	for key, into := range map[string]*int64{"max_files": &b.MaxFiles, "max_bytes": &b.MaxBytes, "max_rows": &b.MaxRows, "min_rows": &b.MinRows} {
		if n := number(key, 1, math.MaxInt64); n != nil {
			*into = *n
		}
	}
	b.MaxShrink = number("max_shrink_percent", 0, 99)
	if v, ok := m.get("freshness"); ok {
		b.Freshness = d.duration(v, "freshness")
	}
	if m.ok && len(m.values) == 0 {
		d.report(v.At, "bounds bounds nothing", "write for example bounds: {min_rows: 1}")
	}
	if b.MaxRows > 0 && b.MinRows > b.MaxRows {
		d.report(v.At, fmt.Sprintf("min_rows is %d and max_rows is %d: no number of rows is allowed", b.MinRows, b.MaxRows), "swap them")
	}
	return b
}

// location accepts a path or glob that stays below the source root and means the same on every machine.
func (d *decoder) location(v Node) string {
	s, ok := d.scalarText(v, "location")
	if !ok {
		return ""
	}
	why := ""
	_, badGlob := path.Match(s, "")
	switch {
	case s == "":
		why = "it is empty"
	case len(s) > MaxLocationBytes:
		why = fmt.Sprintf("it has %d bytes (limit location_bytes = %d)", len(s), MaxLocationBytes)
	case strings.Contains(s, "://"):
		why = "only files are read in this version"
	case strings.HasPrefix(s, "/"), strings.HasPrefix(s, "~"):
		why = "it is absolute"
	case strings.ContainsRune(s, '\\'):
		why = "folders are separated by /"
	case strings.ContainsFunc(s, unicode.IsControl):
		why = "it has a control character"
	case slices.Contains(strings.Split(s, "/"), ".."):
		why = "it leaves the source root"
	case path.Clean(s) != s || s == ".":
		why = "it is not in its shortest form"
	case badGlob != nil:
		why = "its pattern is not complete"
	}
	if why != "" {
		d.report(v.At, fmt.Sprintf("location %s is refused: %s", show(s), why), "use a path or pattern below the source root, such as flights/*.csv.gz")
	}
	return s
}

func (d *decoder) nullTexts(v Node, delimiter, quote string) []string {
	var texts []string
	for _, item := range d.list(v, "null_texts") {
		text, ok := d.scalarText(item, "a null text")
		switch {
		case !ok:
		case len(text) > MaxColumnNameBytes || strings.ContainsFunc(text, unicode.IsControl):
			d.report(item.At, fmt.Sprintf("%s cannot be a null text", show(text)), fmt.Sprintf("use at most %d bytes without control characters", MaxColumnNameBytes))
		case text != "" && strings.Contains(text, delimiter) || quote != "" && strings.Contains(text, quote):
			d.report(item.At, fmt.Sprintf("null text %s holds the delimiter or a quote, so no bare field can be it", show(text)), "remove it")
		case slices.Contains(texts, text):
			d.report(item.At, fmt.Sprintf("null text %q is given twice", text), "remove one")
		default:
			texts = append(texts, text)
		}
	}
	if len(texts) > MaxNullTexts {
		d.report(v.At, fmt.Sprintf("%d null texts are too many (limit null_texts = %d)", len(texts), MaxNullTexts), "")
	}
	return texts
}

// columns decodes NAME: TYPE and NAME: {type: TYPE, description: TEXT}. Those of a source may also say how its files name and write them; of
// is nil for others.
func (d *decoder) columns(v Node, parseType func(string) (Type, error), of *Source) []Column {
	if v.Kind != MappingNode {
		d.report(v.At, "columns must be a mapping of names to types, and is "+v.Kind.String(), "write for example columns: {carrier: VARCHAR}")
		return nil
	}
	if len(v.Entries) == 0 {
		d.report(v.At, "columns is empty", "name at least one column, with its type")
	}
	var columns []Column
	seen := map[string]string{}
	files := map[string]string{}
	keys := []string{"type", "description"}
	if of != nil {
		keys = append(keys, "from", "format")
	}
	for _, e := range v.Entries {
		name, ok := d.scalarText(e.Key, "a column's name")
		if !ok {
			continue
		}
		if name == "" || len(name) > MaxColumnNameBytes || strings.ContainsFunc(name, unicode.IsControl) {
			d.report(e.Key.At, fmt.Sprintf("%s cannot name a column", show(name)), fmt.Sprintf("use 1 to %d bytes without control characters", MaxColumnNameBytes))
			continue
		}
		if other, ok := seen[strings.ToLower(name)]; ok {
			d.report(e.Key.At, fmt.Sprintf("column %q is declared twice: %q has the same name, since case does not count", name, other), "remove or rename one")
			continue
		}
		seen[strings.ToLower(name)] = name
		c := Column{Name: name, At: e.Key.At}
		typeNode := e.Value
		var m fields
		if typeNode.Kind == MappingNode {
			m = d.mapping(typeNode, "a column", keys)
			c.Description = d.optionalText(m, "description")
			if typeNode, ok = m.required("type"); !ok {
				continue
			}
		}
		text, ok := d.scalarText(typeNode, "a column's type")
		if !ok {
			continue
		}
		t, err := parseType(text)
		if err != nil {
			d.refused(typeNode.At, err)
		}
		c.Type = t
		if of != nil {
			d.inFiles(&c, m, *of)
			if other, ok := files[c.FileColumn()]; ok {
				d.report(c.At, fmt.Sprintf("columns %q and %q are both read from %s", other, c.Name, show(c.FileColumn())), "declare one, and compute the other in a model")
			}
			files[c.FileColumn()] = c.Name
		}
		columns = append(columns, c)
	}
	return columns
}

// inFiles decodes how the source's files name and write the column.
func (d *decoder) inFiles(c *Column, m fields, s Source) {
	if v, ok := m.get("from"); ok {
		name, ok := d.scalarText(v, "from")
		switch {
		case !ok:
		case s.Dialect.Headless:
			d.report(v.At, "files without a header name no column", "remove from: columns are read by their order")
		case name == "" || len(name) > MaxColumnNameBytes || !utf8.ValidString(name) || strings.ContainsRune(name, 0):
			d.report(v.At, fmt.Sprintf("%s cannot name a column", show(name)), fmt.Sprintf("use 1 to %d bytes without NUL characters", MaxColumnNameBytes))
		case name != c.Name:
			c.From = name
		}
	}
	v, ok := m.get("format")
	if !ok {
		// One format is for all timestamps, but only those of one type have an offset.
		if format := s.Dialect.TimestampFormat; format != "" && strings.HasPrefix(string(c.Type), "TIMESTAMP") {
			if _, err := ParseTimeForm(format, c.Type); err != nil {
				d.report(c.At, fmt.Sprintf("column %q is %s, and timestamp_format is %s", c.Name, c.Type, show(format)), "give the column a format of its own, or declare it otherwise")
			}
		}
		return
	}
	text, ok := d.scalarText(v, "format")
	if !ok {
		return
	}
	if s.Format != CSV && s.Format != "" {
		d.report(v.At, fmt.Sprintf("a column's format is for CSV files, and the source's format is %s", s.Format), "remove it")
		return
	}
	if c.Type != "" {
		if _, err := ParseTimeForm(text, c.Type); err != nil {
			d.refused(v.At, err)
			return
		}
	}
	c.Format = text
}
