package project

import (
	"fmt"
	"slices"
)

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
