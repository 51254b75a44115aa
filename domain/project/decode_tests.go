package project

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The bounds of test files.
const (
	MaxTestCases = 200
	MaxTestRows  = 1000
)

// test decodes a test file: cases of one model or endpoint, each with the rows that its relations hold and those that must come out.
func (d *decoder) test(name string, f File) {
	n, ok := d.yaml(f.Path, f.Content, 0)
	if !ok {
		return
	}
	m := d.mapping(n, "a test file", []string{"description", "model", "endpoint", "cases"})
	if !m.ok {
		return
	}
	d.optionalText(m, "description")
	of := Test{File: name}
	model, isModel := m.get("model")
	endpoint, isEndpoint := m.get("endpoint")
	switch {
	case isModel == isEndpoint:
		d.report(n.At, "a test file names either a model or an endpoint", "write model: NAME or endpoint: NAME")
	case isModel:
		of.SubjectAt = model.At
		of.Model, _ = d.scalarText(model, "model")
	default:
		of.SubjectAt = endpoint.At
		of.Endpoint, _ = d.scalarText(endpoint, "endpoint")
	}
	v, ok := m.required("cases")
	if !ok {
		return
	}
	items := d.list(v, "cases")
	switch {
	case v.Kind == ListNode && len(items) == 0:
		d.report(v.At, "cases is empty, so the file tests nothing", "write at least one case, with name, given and expect")
	case len(items) > MaxTestCases:
		d.report(v.At, fmt.Sprintf("%d cases are too many (limit test_cases = %d)", len(items), MaxTestCases), "split the file")
		return
	}
	var names []string
	for _, item := range items {
		t, ok := d.testCase(of, item)
		if !ok {
			continue
		}
		if slices.Contains(names, t.Name) {
			d.report(t.At, fmt.Sprintf("two cases have the name %s", show(t.Name)), "rename one")
		}
		names = append(names, t.Name)
		d.project.Tests = append(d.project.Tests, t)
	}
}

func (d *decoder) testCase(t Test, n Node) (Test, bool) {
	t.At = n.At
	before := len(d.problems)
	keys := []string{"name", "given", "expect"}
	if t.Endpoint != "" {
		keys = append(keys, "params", orderByKey, columnsKey, limitKey, "ordered")
	}
	m := d.mapping(n, "a case", keys)
	if v, ok := m.required("name"); ok {
		t.Name, _ = d.scalarText(v, "name")
		if ok := t.Name != "" && len(t.Name) <= MaxColumnNameBytes; !ok && v.Kind == StringNode {
			d.report(v.At, fmt.Sprintf("%s cannot name a case", show(t.Name)), fmt.Sprintf("use 1 to %d bytes", MaxColumnNameBytes))
		}
	}
	if v, ok := m.get("params"); ok {
		t.Call.Params = d.testParams(v)
	}
	d.callShape(m, &t.Call)
	if v, ok := m.get("ordered"); ok {
		if v.Kind != BooleanNode {
			d.report(v.At, "ordered must be true or false, and is "+v.Kind.String(), "")
		}
		t.Ordered = v.Text == "true"
	}
	if v, ok := m.required("given"); ok {
		if v.Kind != MappingNode {
			d.report(v.At, "given must be a mapping of relations to rows, and is "+v.Kind.String(), "write for example given: {flights: [{carrier: UA}]}")
		}
		for _, e := range v.Entries {
			name, ok := d.scalarText(e.Key, "a relation's name")
			if ok && slices.ContainsFunc(t.Given, func(f Fixture) bool { return f.Relation == name }) {
				d.report(e.Key.At, fmt.Sprintf("the rows of %s are given twice", show(name)), "remove one")
			}
			t.Given = append(t.Given, Fixture{Relation: name, At: e.Key.At, Rows: d.fixtureRows(e.Value, name)})
		}
	}
	if v, ok := m.required("expect"); ok {
		t.Expect = Fixture{At: v.At, Rows: d.fixtureRows(v, "expect")}
	}
	return t, m.ok && len(d.problems) == before
}

// testParams decodes values whose parameters are not known yet.
func (d *decoder) testParams(v Node) map[string]Given {
	if v.Kind != MappingNode {
		d.report(v.At, "params must be a mapping of names to values, and is "+v.Kind.String(), "")
		return nil
	}
	params := map[string]Given{}
	for _, e := range v.Entries {
		name, ok := d.scalarText(e.Key, "a parameter's name")
		switch {
		case !ok:
		case e.Value.Kind == ListNode:
			g := Given{List: true}
			for _, item := range e.Value.Items {
				g.Items = append(g.Items, d.testItem(item, name))
			}
			params[name] = g
		case e.Value.Kind != NullNode:
			params[name] = Given{Items: []Item{d.testItem(e.Value, name)}}
		}
	}
	return params
}

// testItem is the text of a single value.
func (d *decoder) testItem(v Node, name string) Item {
	if v.Kind == ListNode || v.Kind == MappingNode || v.Kind == NullNode {
		d.report(v.At, fmt.Sprintf("a value of parameter %s must be a text, a number, true or false, and is %s", show(name), v.Kind), "")
	}
	return Item{Text: v.Text}
}

// fixtureRows decodes a list of mappings of columns to values. A column that a row leaves out is NULL there.
func (d *decoder) fixtureRows(v Node, what string) []FixtureRow {
	items := d.list(v, "the rows of "+what)
	if len(items) > MaxTestRows {
		d.report(v.At, fmt.Sprintf("%d rows are too many for a test (limit test_rows = %d)", len(items), MaxTestRows), "keep the ones that matter")
		return nil
	}
	rows := make([]FixtureRow, 0, len(items))
	for _, item := range items {
		if item.Kind != MappingNode {
			d.report(item.At, "a row must be a mapping of columns to values, and is "+item.Kind.String(), "write for example {carrier: UA, flights: 3}")
			continue
		}
		row := FixtureRow{At: item.At}
		for _, e := range item.Entries {
			name, ok := d.scalarText(e.Key, "a column's name")
			if !ok {
				continue
			}
			if slices.ContainsFunc(row.Cells, func(c Cell) bool { return strings.EqualFold(c.Column, name) }) {
				d.report(e.Key.At, fmt.Sprintf("column %s is given twice", show(name)), "remove one")
				continue
			}
			row.Cells = append(row.Cells, Cell{Column: name, At: e.Value.At, JSON: jsonOf(e.Value)})
		}
		rows = append(rows, row)
	}
	return rows
}

// jsonOf writes a value as JSON. A number keeps its digits.
func jsonOf(v Node) string {
	switch v.Kind {
	case NullNode:
		return "null"
	case IntegerNode, FloatNode, BooleanNode:
		return v.Text
	case ListNode:
		items := make([]string, len(v.Items))
		for i, x := range v.Items {
			items[i] = jsonOf(x)
		}
		return "[" + strings.Join(items, ",") + "]"
	case MappingNode:
		entries := make([]string, len(v.Entries))
		for i, e := range v.Entries {
			entries[i] = quoteJSON(e.Key.Text) + ":" + jsonOf(e.Value)
		}
		return "{" + strings.Join(entries, ",") + "}"
	case StringNode:
	}
	return quoteJSON(v.Text)
}

func quoteJSON(s string) string {
	// A string always has a JSON form.
	b, _ := json.Marshal(s)
	return string(b)
}
