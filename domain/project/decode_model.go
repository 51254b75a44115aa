package project

import (
	"fmt"
	"slices"
	"strings"
)

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
