package project

import (
	"fmt"
	"slices"
	"strings"
)

// MaxExamples bounds the examples of one endpoint.
const MaxExamples = 20

func (d *decoder) endpoint(name string, f File) {
	e := Endpoint{Name: name, At: Position{File: f.Path}, Limit: defaultRows}
	head, statement, ok := d.sql(f)
	if !ok {
		return
	}
	e.Statement = statement
	h := d.mapping(head, "an endpoint", []string{"description", "limit", "params", orderByKey, columnsKey, "examples"})
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
	if v, ok := h.get(orderByKey); ok {
		e.OrderBy = d.orderBy(v)
	}
	if v, ok := h.get(columnsKey); ok {
		e.Columns = d.picking(v)
	}
	if v, ok := h.get("examples"); ok {
		e.Examples = d.examples(v, e)
	}
	d.project.Endpoints = append(d.project.Endpoints, e)
}

// orderBy decodes how callers may sort.
func (d *decoder) orderBy(v Node) OrderBy {
	var o OrderBy
	m := d.mapping(v, orderByKey, []string{"allow", "default", "ties"})
	allow, ok := m.required("allow")
	if !ok {
		return o
	}
	o.Allow = d.allowed(allow, "order_by.allow")
	known := columnNames(o.Allow)
	if v, ok := m.get("default"); ok {
		o.Default = d.sortKeys(v, "order_by.default")
		for _, k := range o.Default {
			if len(known) > 0 && !slices.Contains(known, k.Column) {
				d.report(k.At, fmt.Sprintf("the default order names %s, which is not under allow", show(k.Column)), hint(k.Column, known))
			}
		}
	}
	if v, ok := m.get("ties"); ok {
		o.Ties = d.sortKeys(v, "order_by.ties")
	}
	return o
}

// picking decodes what is declared of the output columns.
func (d *decoder) picking(v Node) Picking {
	var p Picking
	m := d.mapping(v, columnsKey, []string{"allow", "descriptions"})
	if v, ok := m.get("allow"); ok {
		p.Allow = d.allowed(v, "columns.allow")
	}
	if v, ok := m.get("descriptions"); ok {
		if v.Kind != MappingNode {
			d.report(v.At, "descriptions must be a mapping of columns to texts, and is "+v.Kind.String(), "write for example descriptions: {carrier: IATA code of the airline}")
			return p
		}
		for _, e := range v.Entries {
			name, named := d.scalarText(e.Key, "a column's name")
			text, described := d.scalarText(e.Value, "a column's description")
			if !named || !described {
				continue
			}
			if slices.Contains(columnNames(p.Described), name) {
				d.report(e.Key.At, fmt.Sprintf("%s is described twice", show(name)), "remove one")
			}
			p.Described = append(p.Described, Column{Name: name, At: e.Key.At, Description: text})
		}
	}
	return p
}

// allowed decodes the names of columns that callers may choose from.
func (d *decoder) allowed(v Node, what string) []Column {
	var columns []Column
	for _, k := range d.sortKeys(v, what) {
		if k.Descending {
			d.report(k.At, fmt.Sprintf("%s names %s with a minus, and callers choose the direction themselves", what, show(k.Column)), "write the column's name alone")
			continue
		}
		columns = append(columns, Column{Name: k.Column, At: k.At})
	}
	return columns
}

// sortKeys decodes a list of names of columns, each with a minus in front to sort it descending.
func (d *decoder) sortKeys(v Node, what string) []Order {
	var keys []Order
	items := d.list(v, what)
	if v.Kind == ListNode && len(items) == 0 {
		d.report(v.At, what+" names no column", "name some, or remove it")
	}
	for _, item := range items {
		text, ok := d.scalarText(item, "a column's name")
		if !ok {
			continue
		}
		o := Order{At: item.At}
		o.Column, o.Descending = strings.CutPrefix(text, "-")
		switch {
		case o.Column == "" || strings.ContainsAny(o.Column, ",") || strings.HasPrefix(o.Column, "-"):
			d.report(item.At, fmt.Sprintf("%s cannot be named in a call, where commas stand between names and a minus in front of them", show(text)),
				"give the column another name in the SQL: … AS name")
		case slices.ContainsFunc(keys, func(k Order) bool { return k.Column == o.Column }):
			d.report(item.At, fmt.Sprintf("%s names %s twice", what, show(o.Column)), "remove one")
		default:
			keys = append(keys, o)
		}
	}
	return keys
}

// examples decodes calls and checks each of them as if it were made.
func (d *decoder) examples(v Node, e Endpoint) []Example {
	items := d.list(v, "examples")
	if len(items) > MaxExamples {
		d.report(v.At, fmt.Sprintf("%d examples are too many (limit examples = %d)", len(items), MaxExamples), "")
		return nil
	}
	var examples []Example
	for _, item := range items {
		x := d.example(item, e)
		if x.Name != "" && slices.ContainsFunc(examples, func(y Example) bool { return y.Name == x.Name }) {
			d.report(x.At, fmt.Sprintf("two examples are named %q", x.Name), "rename one of them")
		}
		examples = append(examples, x)
	}
	return examples
}

func (d *decoder) example(n Node, e Endpoint) Example {
	x := Example{At: n.At, Call: Call{Params: map[string]Given{}}}
	m := d.mapping(n, "an example", []string{"name", "description", "params", orderByKey, columnsKey, limitKey})
	if v, ok := m.required("name"); ok {
		x.At = v.At
		if x.Name, ok = d.scalarText(v, "name"); ok && !ValidName(x.Name) {
			d.report(v.At, fmt.Sprintf("%s cannot name an example", show(x.Name)), "use a lower-case letter, then at most 62 lower-case letters, digits or underscores")
		}
	}
	x.Description = d.optionalText(m, "description")
	// What was written where, by the pointer that a complaint about it has.
	places := map[string]Position{}
	before := len(d.problems)
	if v, ok := m.get("params"); ok {
		places["/params"] = v.At
		x.Call.Params = d.exampleParams(v, e.Params, places)
	}
	d.callShape(m, &x.Call)
	for _, key := range reservedNames {
		if v, ok := m.get(key); ok {
			places[pointer("", key)] = v.At
		}
	}
	if !m.ok || len(d.problems) > before {
		return x
	}
	var found CallError
	e.Bind(x.Call, "", &found)
	for _, p := range found.Problems {
		at, ok := x.At, false
		for where := p.Pointer; where != "" && !ok; where = where[:strings.LastIndexByte(where, '/')] {
			if place, known := places[where]; known {
				at, ok = place, true
			}
		}
		d.report(at, fmt.Sprintf("the example %q is no call that is accepted: %s: %s", x.Name, p.Name, p.Message), p.Fix())
	}
	return x
}

// callShape decodes what stands beside the parameters of a call.
func (d *decoder) callShape(m fields, c *Call) {
	for key, to := range map[string]*Given{orderByKey: &c.OrderBy, columnsKey: &c.Columns} {
		if v, ok := m.get(key); ok {
			to.List = true
			for _, item := range d.list(v, key) {
				if text, ok := d.scalarText(item, "a column's name"); ok {
					to.Items = append(to.Items, Item{Text: text})
				}
			}
		}
	}
	if v, ok := m.get(limitKey); ok {
		if _, ok := d.integer(v, limitKey); ok {
			c.Limit = Texts(v.Text)
		}
	}
}

// exampleParams decodes the values of an example, each as its type is written in YAML.
func (d *decoder) exampleParams(v Node, params []Param, places map[string]Position) map[string]Given {
	given := map[string]Given{}
	if v.Kind != MappingNode {
		d.report(v.At, "params must be a mapping of names to values, and is "+v.Kind.String(), "write for example params: {carrier: UA}")
		return given
	}
	for _, entry := range v.Entries {
		name, ok := d.scalarText(entry.Key, "a parameter's name")
		if !ok {
			continue
		}
		if _, twice := given[name]; twice {
			d.report(entry.Key.At, fmt.Sprintf("parameter %s is given twice", show(name)), "remove one")
			continue
		}
		places[pointer("/params", name)] = entry.Value.At
		given[name] = Given{}
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			places[pointer("/params", name)] = entry.Key.At
			continue
		}
		value, ok := d.value(params[i], entry.Value, name)
		if !ok {
			continue
		}
		g := Texts(value.Items...)
		g.List = params[i].List
		if !g.List {
			g = Texts(value.Text)
		}
		given[name] = g
	}
	return given
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
		case slices.Contains(reservedNames, name):
			d.report(e.Key.At, fmt.Sprintf("no parameter can be called %s: callers give it beside the parameters", name), "use another name")
		case seen[name]:
			d.report(e.Key.At, fmt.Sprintf("parameter %q is declared twice", name), "remove one")
		default:
			seen[name] = true
			params = append(params, d.param(name, e))
		}
	}
	return params
}

// otherTypes are words that are no parameter types, with what to write for them. An empty entry is a short name.
var otherTypes = map[string]struct {
	canonical ParamType
	fix       string
}{
	"int":  {ParamInteger, ""},
	"bool": {ParamBoolean, ""},
	"enum": {"", "write {type: string, enum: [a, b]}: an enum is of the type of its values"},
	"list": {"", "write {type: string, list: true} for a list of strings"},
}

// paramType gives a parameter's type in its canonical spelling, or "".
func (d *decoder) paramType(v Node) ParamType {
	other, known := otherTypes[v.Text]
	for _, t := range paramTypes {
		if v.Text == "list of "+t || v.Text == t+"[]" {
			other.fix, known = fmt.Sprintf("write {type: %s, list: true}", t), true
		}
	}
	switch {
	case v.Kind != StringNode || !known:
		return ParamType(d.choice(v, "type", paramTypes))
	case other.canonical == "":
		d.report(v.At, "type cannot be "+show(v.Text), other.fix)
	}
	return other.canonical
}

func (d *decoder) param(name string, e Entry) Param {
	p := Param{Name: name, At: e.Key.At}
	m := d.mapping(e.Value, "a parameter", []string{"type", "description", "list", "max_items", "required", "default", "enum", "min", "max",
		"min_length", "max_length", "pattern"})
	p.Description = d.optionalText(m, "description")
	v, ok := m.required("type")
	if !ok {
		return p
	}
	if p.Type = d.paramType(v); p.Type == "" {
		return p
	}
	p.Required = d.truth(m, "required")
	if p.List = d.truth(m, "list"); p.List {
		p.MaxItems = defaultListItems
	}
	if v, ok := m.get("max_items"); ok {
		if n, ok := d.count(v, "max_items", 1, MaxListItems); ok {
			p.MaxItems = n
		}
		if !p.List {
			d.report(v.At, "max_items is of lists, and this parameter is none", "add list: true, or remove it")
		}
	}
	// The rules come first: the enum must keep to them, and the default to all.
	d.bounds(&p, m, e.Key.At)
	d.lengths(&p, m)
	if v, ok := m.get("enum"); ok {
		p.Enum = d.enum(p, v)
	}
	if v, ok := m.get("default"); ok {
		if p.Required {
			d.report(v.At, fmt.Sprintf("parameter %q is required, so its default is never used", name), "remove one of them")
		}
		if value, ok := d.value(p, v, "default"); ok {
			p.Default = &value
		}
	}
	return p
}

// truth gives a key that is true or false, or absent, which is false.
func (d *decoder) truth(m fields, key string) bool {
	v, ok := m.get(key)
	if ok && (v.Kind != BooleanNode || v.Text != "true" && v.Text != "false") {
		d.report(v.At, key+" must be true or false, and is "+v.Kind.String(), "")
	}
	return ok && v.Text == "true"
}

// count gives an integer within bounds.
func (d *decoder) count(v Node, what string, least, most int) (int, bool) {
	n, ok := d.integer(v, what)
	if ok && (n < int64(least) || n > int64(most)) {
		d.report(v.At, fmt.Sprintf("%s is %d, and can be %d to %d", what, n, least, most), "")
		return 0, false
	}
	return int(n), ok
}

// bounds decodes min and max.
func (d *decoder) bounds(p *Param, m fields, at Position) {
	for _, bound := range []struct {
		key   string
		value **string
	}{{"min", &p.Min}, {"max", &p.Max}} {
		v, ok := m.get(bound.key)
		if !ok {
			continue
		}
		if !p.Type.bounded() {
			fix := "remove it"
			if p.Type == ParamString {
				fix = fmt.Sprintf("bound its length with %s_length, or remove it", bound.key)
			}
			d.report(v.At, fmt.Sprintf("a parameter of type %s has no %s", p.Type, bound.key), fix)
			continue
		}
		if value, ok := d.value(Param{Type: p.Type}, v, bound.key); ok {
			*bound.value = &value.Text
		}
	}
	if p.Min != nil && p.Max != nil && p.Type.compare(*p.Min, *p.Max) > 0 {
		d.report(at, fmt.Sprintf("parameter %q has a min of %s and a max of %s: no value is allowed", p.Name, *p.Min, *p.Max), "swap them")
		p.Min, p.Max = nil, nil
	}
}

// lengths decodes what only strings have: their bounds in characters, and a pattern.
func (d *decoder) lengths(p *Param, m fields) {
	for _, bound := range []struct {
		key   string
		value **int
	}{{"min_length", &p.MinLength}, {"max_length", &p.MaxLength}} {
		if v, ok := m.get(bound.key); ok && d.ofStrings(p, v, bound.key) {
			if n, ok := d.count(v, bound.key, 0, MaxParamBytes); ok {
				*bound.value = &n
			}
		}
	}
	if p.MinLength != nil && p.MaxLength != nil && *p.MinLength > *p.MaxLength {
		d.report(p.At, fmt.Sprintf("parameter %q has a min_length of %d and a max_length of %d: no value is allowed", p.Name, *p.MinLength, *p.MaxLength), "swap them")
		p.MinLength, p.MaxLength = nil, nil
	}
	if v, ok := m.get("pattern"); ok && d.ofStrings(p, v, "pattern") {
		if text, ok := d.scalarText(v, "pattern"); ok {
			pattern, err := ParsePattern(text)
			if err != nil {
				d.refused(v.At, err)
				return
			}
			p.Pattern = pattern
		}
	}
}

// ofStrings refuses a key that only strings have.
func (d *decoder) ofStrings(p *Param, v Node, key string) bool {
	if p.Type != ParamString {
		d.report(v.At, fmt.Sprintf("a parameter of type %s has no %s", p.Type, key), "remove it")
	}
	return p.Type == ParamString
}

// enum decodes the only values that are allowed.
func (d *decoder) enum(p Param, v Node) []string {
	// An enum lists single values, of a list's items too.
	p.List = false
	var enum []string
	for _, item := range d.list(v, "enum") {
		value, ok := d.value(p, item, "a value of the enum")
		if ok && slices.Contains(enum, value.Text) {
			d.report(item.At, fmt.Sprintf("%s is in the enum twice", show(value.Text)), "remove one")
		}
		if ok {
			enum = append(enum, value.Text)
		}
	}
	if v.Kind == ListNode && len(v.Items) == 0 {
		d.report(v.At, "enum is empty: no value is allowed", "name the values, or remove it")
	}
	return enum
}

// value decodes a value of the parameter, and reports it when a call could not give it.
func (d *decoder) value(p Param, v Node, what string) (Value, bool) {
	if !p.List {
		text, ok := d.scalar(p, v, what)
		return Value{Text: text}, ok
	}
	if v.Kind != ListNode {
		d.report(v.At, fmt.Sprintf("%s must be a list of type %s, and is %s", what, p.Type, v.Kind), "write [a, b], or one item a line after a dash")
		return Value{}, false
	}
	before := len(d.problems)
	g := Given{List: true}
	for _, item := range v.Items {
		if item.Kind == NullNode {
			d.report(item.At, fmt.Sprintf("an item of %s is nothing, and the items of a list are values", what), "remove it")
			continue
		}
		text, _ := d.scalar(p, item, "an item of "+what)
		g.Items = append(g.Items, Item{Text: text})
	}
	if len(d.problems) > before {
		return Value{}, false
	}
	// Its items are right; what can still be wrong is the list as a whole.
	var found CallError
	value := p.bind(g, "", &found)
	for _, problem := range found.Problems {
		d.report(v.At, fmt.Sprintf("%s is refused: %s", what, problem.Message), "")
	}
	return value, found.Found() == nil
}

// scalar decodes a single value of the parameter, written as its type is written in YAML, or in quotes as a call gives it.
func (d *decoder) scalar(p Param, v Node, what string) (string, bool) {
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
		switch v.Kind {
		case NullNode:
			fix = "leave it out: an optional parameter without a default is NULL"
		case ListNode:
			fix = "write one value, or declare the parameter with list: true"
		case MappingNode:
			fix = "write one value"
		case StringNode, IntegerNode, FloatNode, BooleanNode:
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
