package project

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"leapview/domain/fail"
)

// The bounds of what project files say.
const (
	MaxSQLBytes        = 64 << 10
	MaxColumnNameBytes = 255
	MaxLocationBytes   = 1024
	MaxParams          = 100
	MaxNullTexts       = 100
	MaxRows            = 100_000
)

// defaultRows is how many rows an endpoint's answer may hold when it declares no limit.
const defaultRows = 1000

// maxProblems bounds how many problems one decoding reports.
const maxProblems = 100

// rootFile names the project and marks its folder.
const rootFile = "leapview.yaml"

// endings are the folders of project files, each with the ending of the files in it.
var endings = map[string]string{"sources": ".yaml", "models": ".sql", "endpoints": ".sql"}

// Decode turns project files into a project. documents parses their YAML; positions that it is given are what comes before its
// text. The error is Problems: every mistake in every file, sorted by place, each with its line.
func Decode(files []File, documents interface {
	Parse(text []byte, at Position) (Node, Problems)
}) (Project, error) {
	d := decoder{parse: documents.Parse}
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	found := false
	for i, f := range sorted {
		if i > 0 && sorted[i-1].Path == f.Path {
			d.report(Position{File: f.Path}, "the file is given twice", "")
			continue
		}
		found = found || f.Path == rootFile
		d.file(f)
	}
	if !found {
		d.report(Position{File: rootFile}, "the file is missing: it names the project", "write at least name: my_project in it")
	}
	d.across()
	if len(d.problems) > 0 {
		return Project{}, complete(d.problems, sorted)
	}
	return d.project, nil
}

// complete sorts the problems, bounds their number and adds their lines.
func complete(problems Problems, files []File) Problems {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.At.File, b.At.File); c != 0 {
			return c
		}
		if a.At.Line != b.At.Line {
			return a.At.Line - b.At.Line
		}
		return a.At.Column - b.At.Column
	})
	if len(problems) > maxProblems {
		more := len(problems) - maxProblems
		problems = append(problems[:maxProblems:maxProblems], Problem{At: problems[maxProblems].At,
			Message: fmt.Sprintf("here and after it are %d more problems", more), Fix: "correct the first ones and try again"})
	}
	byPath := make(map[string]File, len(files))
	for _, f := range files {
		byPath[f.Path] = f
	}
	lines := map[string][]string{}
	for i, p := range problems {
		f, ok := byPath[p.At.File]
		if !ok || p.At.Line == 0 {
			continue
		}
		if lines[f.Path] == nil {
			lines[f.Path] = strings.Split(string(f.Content), "\n")
		}
		if all := lines[f.Path]; p.At.Line <= len(all) {
			problems[i].Line = lineText(all[p.At.Line-1])
		}
	}
	return problems
}

// lineText is a line fit to be shown: no carriage return, nothing that is not text, and empty when it is too long to help.
func lineText(line string) string {
	const longest = 300
	line = strings.TrimSuffix(line, "\r")
	if len(line) > longest || !utf8.ValidString(line) {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' || r == '\ufeff' {
			return '·'
		}
		return r
	}, line)
}

// decoder collects a project and all that is wrong with it.
type decoder struct {
	parse    func(text []byte, at Position) (Node, Problems)
	project  Project
	problems Problems
}

func (d *decoder) report(at Position, message, fix string) {
	d.problems = append(d.problems, Problem{At: at, Message: message, Fix: fix})
}

// Misplaced tells what is wrong with a file's path in a project; ok is true when nothing is.
func Misplaced(path string) (problem Problem, ok bool) {
	report := func(message, fix string) (Problem, bool) {
		return Problem{At: Position{File: path}, Message: message, Fix: fix}, false
	}
	folder, base, _ := strings.Cut(path, "/")
	ending, known := endings[folder]
	switch {
	case path == rootFile:
		return Problem{}, true
	case path == "leapview.yml":
		return report("the project's file has another name", "rename it to "+rootFile)
	case !known || base == "":
		fix := "a project holds leapview.yaml, sources/NAME.yaml, models/NAME.sql and endpoints/NAME.sql"
		if s := Suggest(folder, []string{"sources", "models", "endpoints"}); s != "" {
			fix = s
		}
		return report("the file has no place in a project", fix)
	}
	name, ended := strings.CutSuffix(base, ending)
	if !ended {
		right := "NAME"
		if stem, _, _ := strings.Cut(base, "."); ValidName(stem) {
			right = stem
		}
		return report(fmt.Sprintf("a file in %s ends in %s", folder, ending), fmt.Sprintf("rename it to %s/%s%s or move it elsewhere", folder, right, ending))
	}
	if !ValidName(name) {
		return report(fmt.Sprintf("%q cannot name one of the %s", name, folder),
			"use a lower-case letter, then at most 62 lower-case letters, digits or underscores, and no folders in between")
	}
	return Problem{}, true
}

// file decodes one file by its path.
func (d *decoder) file(f File) {
	if problem, ok := Misplaced(f.Path); !ok {
		d.problems = append(d.problems, problem)
		return
	}
	if !d.text(f) {
		return
	}
	folder, base, _ := strings.Cut(f.Path, "/")
	name := strings.TrimSuffix(base, endings[folder])
	switch folder {
	case rootFile:
		d.root(f)
	case "sources":
		d.source(name, f)
	case "models":
		d.model(name, f)
	case "endpoints":
		d.endpoint(name, f)
	}
}

// across checks what takes more than one file to see.
func (d *decoder) across() {
	if len(d.problems) == 0 && len(d.project.Models) == 0 {
		d.report(Position{File: rootFile}, "the project has no models, so a refresh would have nothing to build", "add models/NAME.sql")
	}
	sources := map[string]bool{}
	for _, s := range d.project.Sources {
		sources[s.Name] = true
	}
	for _, m := range d.project.Models {
		if sources[m.Name] {
			d.report(m.At, fmt.Sprintf("a source is called %q too, and SQL could not tell them apart", m.Name), "rename one of them")
		}
	}
}

// text refuses a file that is not plain UTF-8.
func (d *decoder) text(f File) bool {
	if bytes.HasPrefix(f.Content, []byte("\ufeff")) {
		d.report(Position{f.Path, 1, 1}, "the file begins with a byte order mark", "save it as UTF-8 without one")
		return false
	}
	line, column := 1, 1
	for i := 0; i < len(f.Content); {
		r, size := utf8.DecodeRune(f.Content[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			d.report(Position{f.Path, line, column}, "the file is not UTF-8 text", "save it as UTF-8")
			return false
		case r == 0:
			d.report(Position{f.Path, line, column}, "the file has a NUL character", "remove it")
			return false
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
		i += size
	}
	return true
}

// yaml parses text that begins lines after the file's first one.
func (d *decoder) yaml(file string, text []byte, lines int) (Node, bool) {
	n, problems := d.parse(text, Position{File: file, Line: lines})
	d.problems = append(d.problems, problems...)
	return n, len(problems) == 0
}

func (d *decoder) root(f File) {
	n, ok := d.yaml(f.Path, f.Content, 0)
	if !ok {
		return
	}
	m := d.mapping(n, "the project", []string{"name", "description"}, "schedules", "retention", "limits")
	d.project.Description = d.optionalText(m, "description")
	v, ok := m.required("name")
	if !ok {
		return
	}
	name, ok := d.scalarText(v, "name")
	if ok && !ValidName(name) {
		d.report(v.At, fmt.Sprintf("%q cannot name a project", name), "use a lower-case letter, then at most 62 lower-case letters, digits or underscores")
	}
	d.project.Name = name
}

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
		s.NullTexts = d.nullTexts(v)
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

func (d *decoder) nullTexts(v Node) []string {
	var texts []string
	for _, item := range d.list(v, "null_texts") {
		text, ok := d.scalarText(item, "a null text")
		switch {
		case !ok:
		case len(text) > MaxColumnNameBytes || strings.ContainsFunc(text, unicode.IsControl):
			d.report(item.At, fmt.Sprintf("%s cannot be a null text", show(text)), fmt.Sprintf("use at most %d bytes without control characters", MaxColumnNameBytes))
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

func (d *decoder) model(name string, f File) {
	m := Model{Name: name, At: Position{File: f.Path}, Layer: Mart}
	head, statement, ok := d.sql(f)
	if !ok {
		return
	}
	m.Statement = statement
	h := d.mapping(head, "a model", []string{"description", "layer", "materialize", "mode", "columns", "checks"}, "key", "partition_by", "order_by")
	m.Description = d.optionalText(h, "description")
	if v, ok := h.get("layer"); ok {
		m.Layer = Layer(d.choice(v, "layer", []string{string(Raw), string(Staging), string(Mart)}))
	}
	if v, ok := h.get("materialize"); ok {
		d.choice(v, "materialize", []string{"table"}, "view", "ephemeral")
	}
	if v, ok := h.get("mode"); ok {
		d.choice(v, "mode", []string{"full"}, "append", "incremental", "merge", "upsert", "snapshot")
	}
	if v, ok := h.get("columns"); ok {
		m.Casts = d.columns(v, parseCast)
	}
	if v, ok := h.get("checks"); ok {
		m.Checks = d.checks(v)
	}
	d.project.Models = append(d.project.Models, m)
}

func (d *decoder) checks(v Node) []Check {
	var checks []Check
	seen := map[string]bool{}
	for _, item := range d.list(v, "checks") {
		if item.Kind != MappingNode || len(item.Entries) != 1 {
			d.report(item.At, "a check is a mapping with one key", "write for example - not_null: carrier")
			continue
		}
		kind := d.choice(item.Entries[0].Key, "a check", []string{string(NotNull), string(Unique), string(RowCount)}, "accepted_values", "relationships", "sql")
		c := Check{Kind: CheckKind(kind), At: item.Entries[0].Key.At}
		value, ok := item.Entries[0].Value, false
		switch c.Kind {
		case NotNull, Unique:
			c.Columns, ok = d.checkedColumns(value, kind)
		case RowCount:
			c.Min, c.Max, ok = d.rowCount(value)
		}
		if !ok {
			continue
		}
		if seen[c.String()] {
			d.report(c.At, fmt.Sprintf("check %s is given twice", c), "remove one")
		}
		seen[c.String()] = true
		checks = append(checks, c)
	}
	return checks
}

// checkedColumns decodes one column or a list of them.
func (d *decoder) checkedColumns(v Node, kind string) ([]string, bool) {
	items := []Node{v}
	if v.Kind == ListNode {
		items = v.Items
	}
	if len(items) == 0 {
		d.report(v.At, kind+" names no column", "name at least one")
		return nil, false
	}
	var names []string
	for _, item := range items {
		name, ok := d.scalarText(item, "a column's name")
		if !ok {
			return nil, false
		}
		if name == "" || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			d.report(item.At, fmt.Sprintf("column %q is empty or given twice", name), "name each column once")
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

func (d *decoder) rowCount(v Node) (lo, hi *int64, ok bool) {
	m := d.mapping(v, "row_count", []string{"min", "max"})
	bound := func(key string) (*int64, bool) {
		n, given := m.get(key)
		if !given {
			return nil, true
		}
		i, ok := d.integer(n, key)
		if ok && i < 0 {
			d.report(n.At, fmt.Sprintf("%s is %d, and a table has no fewer than 0 rows", key, i), "")
			ok = false
		}
		return &i, ok
	}
	lo, loOK := bound("min")
	hi, hiOK := bound("max")
	switch {
	case !m.ok || !loOK || !hiOK:
		return nil, nil, false
	case lo == nil && hi == nil:
		d.report(v.At, "row_count has neither min nor max", "write for example row_count: {min: 1}")
		return nil, nil, false
	case lo != nil && hi != nil && *lo > *hi:
		d.report(v.At, fmt.Sprintf("row_count has a min of %d and a max of %d: no table can have both", *lo, *hi), "swap them")
		return nil, nil, false
	}
	return lo, hi, true
}

func (d *decoder) endpoint(name string, f File) {
	e := Endpoint{Name: name, At: Position{File: f.Path}, Limit: defaultRows}
	head, statement, ok := d.sql(f)
	if !ok {
		return
	}
	e.Statement = statement
	h := d.mapping(head, "an endpoint", []string{"description", "limit", "params"}, "order_by")
	e.Description = d.optionalText(h, "description")
	if v, ok := h.get("limit"); ok {
		if n, ok := d.integer(v, "limit"); ok {
			if n < 1 || n > MaxRows {
				d.report(v.At, fmt.Sprintf("limit is %d, and an answer has 1 to %d rows", n, MaxRows), "")
			}
			e.Limit = int(n)
		}
	}
	if v, ok := h.get("params"); ok {
		e.Params = d.params(v)
	}
	d.project.Endpoints = append(d.project.Endpoints, e)
}

func (d *decoder) params(v Node) []Param {
	if v.Kind != MappingNode {
		d.report(v.At, "params must be a mapping of names to declarations, and is "+v.Kind.String(), "write for example params: {carrier: {type: string}}")
		return nil
	}
	if len(v.Entries) > MaxParams {
		d.report(v.At, fmt.Sprintf("%d parameters are too many (limit params = %d)", len(v.Entries), MaxParams), "")
		return nil
	}
	var params []Param
	seen := map[string]bool{}
	for _, e := range v.Entries {
		name, ok := d.scalarText(e.Key, "a parameter's name")
		switch {
		case !ok:
		case !ValidName(name):
			d.report(e.Key.At, fmt.Sprintf("%s cannot name a parameter", show(name)), "use a lower-case letter, then at most 62 lower-case letters, digits or underscores")
		case seen[name]:
			d.report(e.Key.At, fmt.Sprintf("parameter %q is declared twice", name), "remove one")
		default:
			seen[name] = true
			params = append(params, d.param(name, e))
		}
	}
	return params
}

func (d *decoder) param(name string, e Entry) Param {
	p := Param{Name: name, At: e.Key.At}
	m := d.mapping(e.Value, "a parameter", []string{"type", "description", "required", "default", "enum", "min", "max"})
	p.Description = d.optionalText(m, "description")
	v, ok := m.required("type")
	if !ok {
		return p
	}
	p.Type = ParamType(d.choice(v, "type", paramTypes))
	if p.Type == "" {
		return p
	}
	if v, ok := m.get("required"); ok {
		if v.Kind != BooleanNode || v.Text != "true" && v.Text != "false" {
			d.report(v.At, "required must be true or false, and is "+v.Kind.String(), "")
		}
		p.Required = v.Text == "true"
	}
	// The bounds come first: the enum must keep to them, and the default to both.
	for _, bound := range []struct {
		key   string
		value **string
	}{{"min", &p.Min}, {"max", &p.Max}} {
		v, ok := m.get(bound.key)
		if !ok {
			continue
		}
		if !p.Type.bounded() {
			d.report(v.At, fmt.Sprintf("a parameter of type %s has no %s", p.Type, bound.key), "remove it")
			continue
		}
		if text, ok := d.value(Param{Type: p.Type}, v, bound.key); ok {
			*bound.value = &text
		}
	}
	if p.Min != nil && p.Max != nil && p.Type.compare(*p.Min, *p.Max) > 0 {
		d.report(e.Key.At, fmt.Sprintf("parameter %q has a min of %s and a max of %s: no value is allowed", name, *p.Min, *p.Max), "swap them")
		p.Min, p.Max = nil, nil
	}
	if v, ok := m.get("enum"); ok {
		var enum []string
		for _, item := range d.list(v, "enum") {
			text, ok := d.value(p, item, "a value of the enum")
			if ok && slices.Contains(enum, text) {
				d.report(item.At, fmt.Sprintf("%s is in the enum twice", show(text)), "remove one")
			}
			if ok {
				enum = append(enum, text)
			}
		}
		if v.Kind == ListNode && len(v.Items) == 0 {
			d.report(v.At, "enum is empty: no value is allowed", "name the values, or remove it")
		}
		p.Enum = enum
	}
	if v, ok := m.get("default"); ok {
		if p.Required {
			d.report(v.At, fmt.Sprintf("parameter %q is required, so its default is never used", name), "remove one of them")
		}
		if text, ok := d.value(p, v, "default"); ok {
			p.Default = &text
		}
	}
	return p
}

// value decodes a value of the parameter, written as its type is written in YAML, or in quotes as a call gives it.
func (d *decoder) value(p Param, v Node, what string) (string, bool) {
	fits, fix := v.Kind == StringNode, ""
	switch p.Type {
	case ParamInteger:
		fits = fits || v.Kind == IntegerNode
	case ParamDecimal:
		fits = fits || v.Kind == IntegerNode || v.Kind == FloatNode
	case ParamBoolean:
		fits = fits || v.Kind == BooleanNode
	case ParamString, ParamDate, ParamTimestamp:
		fix = "put it in quotes"
	}
	if !fits {
		if v.Kind == NullNode {
			fix = "leave it out: an optional parameter without a default is NULL"
		}
		d.report(v.At, fmt.Sprintf("%s must be of type %s, and is %s", what, p.Type, v.Kind), fix)
		return "", false
	}
	text, err := p.Parse(v.Text)
	if err != nil {
		d.report(v.At, fmt.Sprintf("%s is refused: %s", what, err), "")
		return "", false
	}
	return text, true
}

// opening and closing enclose the YAML at the head of an SQL file.
const (
	opening = "/*---"
	closing = "---*/"
)

// sql splits an SQL file into the YAML of its leading comment and the statement after it.
func (d *decoder) sql(f File) (head Node, statement Statement, ok bool) {
	text := string(f.Content)
	body := 0
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	head = Node{Kind: MappingNode, At: Position{f.Path, 1, 1}}
	from := Statement{SQL: text, At: Position{f.Path, 1, 1}}
	if strings.HasPrefix(text[start:], opening) {
		rest := text[start+len(opening):]
		line, after, _ := strings.Cut(rest, "\n")
		end := strings.Index(after, "*/")
		switch {
		case strings.TrimSpace(line) != "":
			d.report(from.PositionOf(start), opening+" does not stand alone on its line", "begin the YAML on the next line")
			return head, statement, false
		case end < 0:
			d.report(from.PositionOf(start), "the comment never ends", "end it with "+closing)
			return head, statement, false
		case !strings.HasSuffix(after[:end], strings.TrimSuffix(closing, "*/")):
			offset := len(text) - len(after) + end
			d.report(from.PositionOf(offset), "the comment that begins with "+opening+" ends with */", "end it with "+closing)
			return head, statement, false
		}
		yaml := after[:end+len("*/")-len(closing)]
		body = len(text) - len(after) + end + len("*/")
		n, parsed := d.yaml(f.Path, []byte(yaml), from.PositionOf(len(text)-len(after)).Line-1)
		if !parsed {
			return head, statement, false
		}
		head = n
	} else if at := misplaced(text, start); at >= 0 {
		d.report(from.PositionOf(at), "this comment would not be read as the file's YAML", "begin the file with "+opening+" on a line of its own")
		return head, statement, false
	}
	body += len(text[body:]) - len(strings.TrimLeftFunc(text[body:], unicode.IsSpace))
	sql := strings.TrimRightFunc(text[body:], unicode.IsSpace)
	// A last semicolon ends the statement, or a comment, and says nothing.
	sql = strings.TrimRightFunc(strings.TrimSuffix(sql, ";"), unicode.IsSpace)
	switch {
	case sql == "":
		d.report(from.PositionOf(body), "the file has no SQL", "write one SELECT")
		return head, statement, false
	case len(sql) > MaxSQLBytes:
		d.report(from.PositionOf(body), fmt.Sprintf("the SQL has %d bytes (limit sql_bytes = %d)", len(sql), MaxSQLBytes), "split it into several models")
		return head, statement, false
	}
	return head, Statement{SQL: sql, At: from.PositionOf(body)}, true
}

// misplaced finds a comment that was meant to hold YAML and does not: one that is not first, or whose opening is misspelt. It
// gives -1 when there is none.
func misplaced(text string, start int) int {
	if at := strings.Index(text, opening); at >= 0 {
		return at
	}
	if inner, ok := strings.CutPrefix(text[start:], "/*"); ok && strings.HasPrefix(strings.TrimSpace(inner), "--") {
		return start
	}
	return -1
}

// fields are the entries of a mapping by key.
type fields struct {
	d      *decoder
	at     Position
	what   string
	values map[string]Node
	// ok tells that the node was a mapping.
	ok bool
}

// mapping decodes a mapping whose keys are all known. later are keys that a coming version knows.
func (d *decoder) mapping(n Node, what string, known []string, later ...string) fields {
	m := fields{d: d, at: n.At, what: what, values: map[string]Node{}, ok: n.Kind == MappingNode}
	if !m.ok {
		d.report(n.At, fmt.Sprintf("%s must be a mapping, and is %s", what, n.Kind), "write key: value, with the keys "+strings.Join(known, ", "))
		return m
	}
	for _, e := range n.Entries {
		key := e.Key.Text
		_, repeated := m.values[key]
		switch {
		case e.Key.Kind != StringNode:
			d.report(e.Key.At, "a key must be a string, and is "+e.Key.Kind.String(), "")
		case repeated:
			d.report(e.Key.At, fmt.Sprintf("key %q is given twice", key), "remove one")
		case slices.Contains(later, key):
			d.report(e.Key.At, fmt.Sprintf("key %q of %s is not built yet", key, what), "remove it")
		case !slices.Contains(known, key):
			d.report(e.Key.At, fmt.Sprintf("%s has no key %s", what, show(key)), hint(key, known))
		default:
			m.values[key] = e.Value
		}
	}
	return m
}

// hint suggests the nearest of the known words, or names them all.
func hint(got string, known []string) string {
	if s := Suggest(got, known); s != "" {
		return s
	}
	return "known are " + strings.Join(known, ", ")
}

// get gives the value of a key that may be absent.
func (m fields) get(key string) (Node, bool) {
	n, ok := m.values[key]
	return n, ok
}

// required gives the value of a key that may not be absent.
func (m fields) required(key string) (Node, bool) {
	n, ok := m.values[key]
	if !ok && m.ok {
		m.d.report(m.at, fmt.Sprintf("%s needs the key %q", m.what, key), "")
	}
	return n, ok
}

// optionalText gives the string of a key, or "".
func (d *decoder) optionalText(m fields, key string) string {
	v, ok := m.get(key)
	if !ok {
		return ""
	}
	s, _ := d.scalarText(v, key)
	return s
}

// scalarText gives a string node's text. What YAML reads as something else is refused, since it may not be what its author meant.
func (d *decoder) scalarText(v Node, what string) (string, bool) {
	if v.Kind == StringNode {
		return v.Text, true
	}
	fix := ""
	if v.Kind == IntegerNode || v.Kind == FloatNode || v.Kind == BooleanNode {
		fix = fmt.Sprintf("put it in quotes: %q", v.Text)
	}
	d.report(v.At, fmt.Sprintf("%s must be a string, and is %s", what, v.Kind), fix)
	return "", false
}

// integer gives an integer in plain decimal digits.
func (d *decoder) integer(v Node, what string) (int64, bool) {
	if v.Kind != IntegerNode {
		d.report(v.At, fmt.Sprintf("%s must be an integer, and is %s", what, v.Kind), "")
		return 0, false
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		d.report(v.At, fmt.Sprintf("%s must be an integer of 64 bits in plain decimal digits, and is %s", what, show(v.Text)), "")
		return 0, false
	}
	return n, true
}

// list gives the items of a list.
func (d *decoder) list(v Node, what string) []Node {
	if v.Kind != ListNode {
		d.report(v.At, fmt.Sprintf("%s must be a list, and is %s", what, v.Kind), "write [a, b], or one item a line after a dash")
		return nil
	}
	return v.Items
}

// choice gives one of the known words, or "". later are words that a coming version knows.
func (d *decoder) choice(v Node, what string, known []string, later ...string) string {
	s, ok := d.scalarText(v, what)
	switch {
	case !ok:
	case slices.Contains(known, s):
		return s
	case slices.Contains(later, s):
		d.report(v.At, fmt.Sprintf("%s %s is not built yet", what, s), "known are "+strings.Join(known, ", "))
	default:
		d.report(v.At, fmt.Sprintf("%s cannot be %s", what, show(s)), hint(s, known))
	}
	return ""
}

// refused reports an error of this package at the place that it is about.
func (d *decoder) refused(at Position, err error) {
	var e *fail.Error
	if errors.As(err, &e) {
		d.report(at, e.Message, e.Fix)
	} else {
		d.report(at, err.Error(), "")
	}
}
