package project

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

func (d *decoder) source(name string, f File) {
	s := Source{Name: name, At: Position{File: f.Path}, Delimiter: ","}
	n, ok := d.yaml(f.Path, f.Content, 0)
	if !ok {
		return
	}
	m := d.mapping(n, "a source", []string{"connector", "description", "location", "format", "delimiter", "null_texts", "columns"}, "on_change", "bounds")
	s.Description = d.optionalText(m, "description")
	if v, ok := m.get("connector"); ok {
		d.choice(v, "connector", []string{"file"}, "http", "https", "s3", "postgres", "postgresql", "mysql", "sqlite", "excel", "ducklake")
	}
	if v, ok := m.required("location"); ok {
		s.Location = d.location(v)
	}
	if v, ok := m.required("format"); ok {
		s.Format = Format(d.choice(v, "format", []string{string(CSV), string(Parquet), string(JSON)}))
	}
	for _, key := range []string{"delimiter", "null_texts"} {
		if v, ok := m.get(key); ok && s.Format != CSV && s.Format != "" {
			d.report(v.At, fmt.Sprintf("%s is for CSV files, and the format is %s", key, s.Format), "remove it")
		}
	}
	if v, ok := m.get("delimiter"); ok {
		if text, ok := d.scalarText(v, "delimiter"); ok {
			if len(text) != 1 || text[0] > '~' || text[0] < ' ' && text[0] != '\t' || text[0] == '"' {
				d.report(v.At, fmt.Sprintf("%q cannot separate fields", text), "use one ASCII character, such as \";\" or \"\\t\", other than the quote")
			}
			s.Delimiter = text
		}
	}
	if v, ok := m.get("null_texts"); ok {
		s.NullTexts = d.nullTexts(v, s.Delimiter)
	}
	if v, ok := m.required("columns"); ok {
		s.Columns = d.columns(v, ParseType)
	}
	d.project.Sources = append(d.project.Sources, s)
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

func (d *decoder) nullTexts(v Node, delimiter string) []string {
	var texts []string
	for _, item := range d.list(v, "null_texts") {
		text, ok := d.scalarText(item, "a null text")
		switch {
		case !ok:
		case len(text) > MaxColumnNameBytes || strings.ContainsFunc(text, unicode.IsControl):
			d.report(item.At, fmt.Sprintf("%s cannot be a null text", show(text)), fmt.Sprintf("use at most %d bytes without control characters", MaxColumnNameBytes))
		case text != "" && strings.Contains(text, delimiter) || strings.Contains(text, `"`):
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

// columns decodes NAME: TYPE and NAME: {type: TYPE, description: TEXT}.
func (d *decoder) columns(v Node, parseType func(string) (Type, error)) []Column {
	if v.Kind != MappingNode {
		d.report(v.At, "columns must be a mapping of names to types, and is "+v.Kind.String(), "write for example columns: {carrier: VARCHAR}")
		return nil
	}
	if len(v.Entries) == 0 {
		d.report(v.At, "columns is empty", "name at least one column, with its type")
	}
	var columns []Column
	seen := map[string]string{}
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
		if typeNode.Kind == MappingNode {
			m := d.mapping(typeNode, "a column", []string{"type", "description"})
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
		columns = append(columns, c)
	}
	return columns
}
