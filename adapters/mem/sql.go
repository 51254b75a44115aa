package mem

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"leapview/domain/project"
	"leapview/domain/serving"
)

// The SQL of the in-memory store is a small part of the engine's, chosen so that every statement in it means the same there:
//
//	SELECT item, … FROM relation [WHERE cond AND …] [GROUP BY column, …] [ORDER BY name [ASC|DESC], …]
//
//	item: * (alone) | column [AS name] | count(*) AS name | sum(column) AS name | min(column) AS name | max(column) AS name
//	cond: column op value | column IS [NOT] NULL | list_contains($parameter, column)
//	op: = <> < <= > >=          value: 'text', number, true, false, $parameter
//
// Names are spelled as they were declared, bare or in double quotes; keywords may have any case; a comment runs from -- to the
// end of its line. ORDER BY names an item of the answer; NULL sorts last, also under DESC. A value is compared only with a column
// of its own kind: text with VARCHAR, an ISO date in quotes with DATE, a whole number with an integer or DOUBLE, a number with
// DOUBLE. Whatever is outside of this is a problem at its position that names the construct.

// statement is a parsed SELECT; offsets are bytes into its text.
type statement struct {
	star  bool
	items []item
	from  word
	where []condition
	group []word
	order []orderKey
}

// word is an identifier and where it stands.
type word struct {
	text   string
	offset int
}

// item is one column of the answer: a bare column when fn is empty. column is empty for count(*).
type item struct {
	fn     string
	column word
	name   word
}

// contains is the condition that a list holds the column's value.
const contains = "list_contains"

// condition compares a column with a value, or with NULL when op is IS or IS NOT, or looks for it in the list that is the value.
type condition struct {
	column word
	op     string
	value  token
	// negative tells that a minus stands before the number in value.
	negative bool
}

type orderKey struct {
	name word
	desc bool
}

type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	quotedToken
	numberToken
	textToken
	paramToken
	signToken
)

type token struct {
	kind   tokenKind
	text   string
	offset int
}

// is tells whether the token is this keyword or sign.
func (t token) is(s string) bool {
	switch t.kind {
	case wordToken:
		return strings.EqualFold(t.text, s)
	case signToken:
		return t.text == s
	}
	return false
}

// String names the token for people.
func (t token) String() string {
	switch t.kind {
	case endToken:
		return "the end of the statement"
	case wordToken:
		return strings.ToUpper(t.text)
	case textToken:
		return "'" + t.text + "'"
	case paramToken:
		return "$" + t.text
	}
	return t.text
}

// reserved are the words that the engine does not take as a bare name.
var reserved = strings.Fields(`all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
create default deferrable desc describe distinct do else end except false fetch for foreign from group having in initially
intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider placing primary
qualify references returning select show some summarize symmetric table then to trailing true union unique unpivot using variadic
when where window with`)

// refusal is a problem at a byte of the statement.
type refusal struct {
	offset  int
	message string
	fix     string
}

func refuse(offset int, format string, args ...any) *refusal {
	return &refusal{offset: offset, message: fmt.Sprintf(format, args...)}
}

// outside refuses a construct that the subset does not have.
func outside(t token) *refusal {
	return refuse(t.offset, "the in-memory store's SQL does not have %s here", t)
}

// problem places the refusal in its file.
func (r *refusal) problem(s project.Statement) project.Problem {
	at := s.PositionOf(r.offset)
	p := project.Problem{At: at, Message: r.message, Fix: r.fix}
	// The statement's first line may begin in the middle of the file's line, whose beginning is not known here.
	if n := at.Line - s.At.Line; n > 0 || s.At.Column == 1 {
		p.Line = strings.TrimSuffix(strings.Split(s.SQL, "\n")[n], "\r")
	}
	return p
}

func isNameByte(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}

// scan splits the statement into tokens, the last of which is an endToken.
func scan(sql string) ([]token, *refusal) {
	var out []token
	for i := 0; i < len(sql); {
		c := sql[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			for i < len(sql) && sql[i] != '\n' {
				i++
			}
		case isNameByte(c, true):
			for i < len(sql) && isNameByte(sql[i], false) {
				i++
			}
			out = append(out, token{wordToken, sql[start:i], start})
		case c >= '0' && c <= '9':
			for i < len(sql) && (sql[i] >= '0' && sql[i] <= '9' || sql[i] == '.') {
				i++
			}
			if i < len(sql) && isNameByte(sql[i], false) {
				return nil, refuse(start, "%q is neither a number nor a name", sql[start:i+1])
			}
			out = append(out, token{numberToken, sql[start:i], start})
		case c == '\'' || c == '"':
			var b strings.Builder
			i++
			for {
				if i >= len(sql) {
					return nil, refuse(start, "the quote that opens here is never closed")
				}
				if sql[i] != c {
					b.WriteByte(sql[i])
					i++
					continue
				}
				i++
				if i >= len(sql) || sql[i] != c {
					break
				}
				b.WriteByte(c)
				i++
			}
			kind := textToken
			if c == '"' {
				kind = quotedToken
			}
			out = append(out, token{kind, b.String(), start})
		case c == '$' && i+1 < len(sql) && isNameByte(sql[i+1], true):
			i++
			for i < len(sql) && isNameByte(sql[i], false) {
				i++
			}
			out = append(out, token{paramToken, sql[start+1 : i], start})
		default:
			_, n := utf8.DecodeRuneInString(sql[i:])
			for _, s := range []string{"<>", "<=", ">=", "!=", "/*"} {
				if strings.HasPrefix(sql[i:], s) {
					n = len(s)
				}
			}
			i += n
			out = append(out, token{signToken, sql[start:i], start})
		}
	}
	return append(out, token{kind: endToken, offset: len(sql)}), nil
}

type parser struct {
	tokens []token
	next   int
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != endToken {
		p.next++
	}
	return t
}

// accept takes the token when it is this keyword or sign.
func (p *parser) accept(s string) bool {
	if !p.peek().is(s) {
		return false
	}
	p.take()
	return true
}

func (p *parser) expect(words ...string) *refusal {
	for _, w := range words {
		if !p.accept(w) {
			return outside(p.peek())
		}
	}
	return nil
}

func (p *parser) name() (word, *refusal) {
	t := p.peek()
	bare := t.kind == wordToken && !slices.Contains(reserved, strings.ToLower(t.text))
	if !bare && t.kind != quotedToken {
		return word{}, outside(t)
	}
	if t.text == "" || len(t.text) > project.MaxColumnNameBytes || strings.ContainsFunc(t.text, unicode.IsControl) {
		return word{}, refuse(t.offset, "a name may not be empty, longer than %d bytes, or hold a control character", project.MaxColumnNameBytes)
	}
	p.take()
	return word{t.text, t.offset}, nil
}

// parse reads one statement of the subset.
func parse(sql string) (statement, *refusal) {
	var s statement
	if len(sql) > project.MaxSQLBytes {
		return s, refuse(0, "the statement is longer than %d bytes", project.MaxSQLBytes)
	}
	tokens, bad := scan(sql)
	if bad != nil {
		return s, bad
	}
	p := &parser{tokens: tokens}
	if bad := p.expect("select"); bad != nil {
		return s, bad
	}
	if p.accept("*") {
		s.star = true
	} else {
		for {
			it, bad := p.item()
			if bad != nil {
				return s, bad
			}
			s.items = append(s.items, it)
			if !p.accept(",") {
				break
			}
		}
	}
	if bad := p.expect("from"); bad != nil {
		return s, bad
	}
	if s.from, bad = p.name(); bad != nil {
		return s, bad
	}
	if p.accept("where") {
		for {
			c, bad := p.condition()
			if bad != nil {
				return s, bad
			}
			s.where = append(s.where, c)
			if !p.accept("and") {
				break
			}
		}
	}
	if p.accept("group") {
		if bad := p.expect("by"); bad != nil {
			return s, bad
		}
		for {
			w, bad := p.name()
			if bad != nil {
				return s, bad
			}
			s.group = append(s.group, w)
			if !p.accept(",") {
				break
			}
		}
	}
	if p.accept("order") {
		if bad := p.expect("by"); bad != nil {
			return s, bad
		}
		for {
			w, bad := p.name()
			if bad != nil {
				return s, bad
			}
			k := orderKey{name: w}
			if !p.accept("asc") {
				k.desc = p.accept("desc")
			}
			s.order = append(s.order, k)
			if !p.accept(",") {
				break
			}
		}
	}
	if t := p.peek(); t.kind != endToken {
		return s, outside(t)
	}
	return s, nil
}

func (p *parser) item() (item, *refusal) {
	w, bad := p.name()
	if bad != nil {
		return item{}, bad
	}
	it := item{column: w, name: w}
	if open := p.peek(); p.accept("(") {
		it.fn = strings.ToLower(w.text)
		switch it.fn {
		case "count":
			it.column = word{}
			bad = p.expect("*")
		case "sum", "min", "max":
			it.column, bad = p.name()
		default:
			return item{}, refuse(w.offset, "the in-memory store's SQL does not have the function %s", it.fn)
		}
		if bad != nil {
			return item{}, bad
		}
		if bad := p.expect(")"); bad != nil {
			return item{}, bad
		}
		if !p.peek().is("as") {
			return item{}, refuse(open.offset, "%s(…) needs a name of its own: write AS name after it", it.fn)
		}
	}
	if p.accept("as") {
		it.name, bad = p.name()
	}
	return it, bad
}

func (p *parser) condition() (condition, *refusal) {
	w, bad := p.name()
	if bad != nil {
		return condition{}, bad
	}
	c := condition{column: w}
	if strings.EqualFold(w.text, contains) && p.accept("(") {
		c.op, c.value = contains, p.take()
		if c.value.kind != paramToken {
			return c, outside(c.value)
		}
		if bad := p.expect(","); bad != nil {
			return c, bad
		}
		if c.column, bad = p.name(); bad != nil {
			return c, bad
		}
		return c, p.expect(")")
	}
	if p.accept("is") {
		c.op = "IS"
		if p.accept("not") {
			c.op = "IS NOT"
		}
		return c, p.expect("null")
	}
	op := p.take()
	if op.kind != signToken || !slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, op.text) {
		return c, outside(op)
	}
	c.op = op.text
	if p.accept("-") {
		c.negative = true
	}
	c.value = p.take()
	switch {
	case c.value.kind == numberToken:
	case c.negative:
		return c, outside(c.value)
	case c.value.kind == textToken, c.value.kind == paramToken, c.value.is("true"), c.value.is("false"):
	default:
		return c, outside(c.value)
	}
	return c, nil
}

// bound is a statement whose names and types are resolved against its relation's columns. It is immutable.
type bound struct {
	columns []project.Column
	outputs []output
	filters []filter
	// group are the positions of the grouping columns; grouped tells that rows are folded into groups, of which there is exactly
	// one when group is empty.
	group   []int
	grouped bool
	order   []sortKey
}

// output is one column of the answer; source is -1 for count(*).
type output struct {
	fn     string
	source int
}

type filter struct {
	source int
	op     string
	value  value
	// param is the name of the parameter that gives the value at run time, of kind; empty for a literal.
	param string
	kind  project.Type
}

type sortKey struct {
	output int
	desc   bool
}

// hugeint is the engine's type for sums of integers. No declared column has it.
const hugeint project.Type = "HUGEINT"

// bind resolves the statement over a relation with these columns.
func bind(s statement, columns []project.Column, params []project.Param) (*bound, *refusal) {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
		if !supported(c.Type) {
			return nil, refuse(s.from.offset, "the in-memory store does not have the type %s of column %q", c.Type, c.Name)
		}
	}
	find := func(w word) (int, *refusal) {
		i := slices.Index(names, w.text)
		if i < 0 {
			r := refuse(w.offset, "%q has no column %q", s.from.text, w.text)
			r.fix = project.Suggest(w.text, names)
			return 0, r
		}
		return i, nil
	}
	b := &bound{}
	for _, w := range s.group {
		i, bad := find(w)
		if bad != nil {
			return nil, bad
		}
		if columns[i].Type == "DOUBLE" {
			return nil, refuse(w.offset, "the in-memory store's SQL does not have GROUP BY over DOUBLE")
		}
		b.group = append(b.group, i)
	}
	items := s.items
	if s.star {
		for _, n := range names {
			items = append(items, item{column: word{n, s.from.offset}, name: word{n, s.from.offset}})
		}
	}
	b.grouped = len(s.group) > 0 || slices.ContainsFunc(items, func(it item) bool { return it.fn != "" })
	for _, it := range items {
		o, typ := output{fn: it.fn, source: -1}, project.Type("BIGINT")
		if it.fn != "count" {
			i, bad := find(it.column)
			if bad != nil {
				return nil, bad
			}
			o.source, typ = i, columns[i].Type
		}
		switch {
		case it.fn == "" && b.grouped && !slices.Contains(b.group, o.source):
			return nil, refuse(it.column.offset, "column %q must be named in GROUP BY or stand in an aggregate", it.column.text)
		case it.fn == "sum" && isInteger(typ):
			typ = hugeint
		case it.fn == "sum" && typ != "DOUBLE":
			return nil, refuse(it.column.offset, "the in-memory store's SQL does not have sum over %s", typ)
		}
		if slices.ContainsFunc(b.columns, func(c project.Column) bool { return strings.EqualFold(c.Name, it.name.text) }) {
			return nil, refuse(it.name.offset, "two columns of the answer are named %q", it.name.text)
		}
		b.columns = append(b.columns, project.Column{Name: it.name.text, Type: typ})
		b.outputs = append(b.outputs, o)
	}
	for _, c := range s.where {
		i, bad := find(c.column)
		if bad != nil {
			return nil, bad
		}
		f := filter{source: i, op: c.op, kind: columns[i].Type}
		switch {
		case c.op == "IS" || c.op == "IS NOT":
		case c.value.kind == paramToken:
			f.param = c.value.text
			bad = bindParam(c.value, c.op, columns[i], params)
		default:
			f.value, bad = literal(c, columns[i])
		}
		if bad != nil {
			return nil, bad
		}
		b.filters = append(b.filters, f)
	}
	for _, k := range s.order {
		i := slices.IndexFunc(b.columns, func(c project.Column) bool { return c.Name == k.name.text })
		if i < 0 {
			return nil, refuse(k.name.offset, "the in-memory store's SQL orders by columns of the answer only, and %q is none", k.name.text)
		}
		b.order = append(b.order, sortKey{i, k.desc})
	}
	return b, nil
}

// bindParam refuses a parameter that is not declared or does not compare with the column.
func bindParam(t token, op string, c project.Column, params []project.Param) *refusal {
	i := slices.IndexFunc(params, func(p project.Param) bool { return p.Name == t.text })
	if i < 0 {
		known := make([]string, len(params))
		for j, p := range params {
			known[j] = p.Name
		}
		r := refuse(t.offset, "parameter %s is not declared", t)
		r.fix = project.Suggest(t.text, known)
		return r
	}
	ok := false
	switch params[i].Type {
	case project.ParamString:
		ok = c.Type == "VARCHAR"
	case project.ParamInteger:
		ok = isInteger(c.Type) || c.Type == "DOUBLE"
	case project.ParamDecimal:
		ok = c.Type == "DOUBLE"
	case project.ParamBoolean:
		ok = c.Type == "BOOLEAN"
	case project.ParamDate:
		ok = c.Type == "DATE"
	case project.ParamTimestamp:
	}
	if !ok || params[i].List != (op == contains) {
		return refuse(t.offset, "the in-memory store does not compare %s column %q with the %s parameter %s", c.Type, c.Name, params[i].Type, t)
	}
	return nil
}

// literal is the condition's value as one of the column's type.
func literal(c condition, column project.Column) (value, *refusal) {
	text := c.value.text
	if c.negative {
		text = "-" + text
	}
	var want tokenKind
	typ := column.Type
	switch {
	case typ == "VARCHAR" || typ == "DATE":
		want = textToken
	case typ == "BOOLEAN":
		want, text = wordToken, strings.ToLower(text)
	default:
		want = numberToken
		if isInteger(typ) {
			// A number that the column cannot hold still compares with it.
			typ = "BIGINT"
		}
	}
	if c.value.kind != want {
		return nil, refuse(c.value.offset, "the in-memory store does not compare %s column %q with %s", column.Type, column.Name, c.value)
	}
	v, err := parseValue(text, typ)
	if err != nil {
		return nil, refuse(c.value.offset, "%s cannot be compared with %s column %q: %v", c.value, column.Type, column.Name, err)
	}
	return v, nil
}

// unused are the declared parameters that the statement does not use.
func (b *bound) unused(params []project.Param) project.Problems {
	var problems project.Problems
	for _, p := range params {
		if !slices.ContainsFunc(b.filters, func(f filter) bool { return f.param == p.Name }) {
			problems = append(problems, project.Problem{At: p.At, Message: fmt.Sprintf("the parameter %q is declared, but the SQL does not use it", p.Name),
				Fix: fmt.Sprintf("write $%s where its value belongs, or remove it", p.Name)})
		}
	}
	return problems
}

// run evaluates the statement over rows, which it only reads. args hold a value for each parameter.
func (b *bound) run(rows [][]value, args serving.Args) ([][]value, error) {
	kept, err := b.filter(rows, args)
	if err != nil {
		return nil, err
	}
	var out [][]value
	if b.grouped {
		if out, err = b.fold(kept); err != nil {
			return nil, err
		}
	} else {
		for _, row := range kept {
			o := make([]value, len(b.outputs))
			for i, c := range b.outputs {
				o[i] = row[c.source]
			}
			out = append(out, o)
		}
	}
	sortRows(out, b.order)
	return out, nil
}

// answers are the columns of the statement's answers.
func (b *bound) answers() []serving.Column {
	out := make([]serving.Column, len(b.columns))
	for i, c := range b.columns {
		out[i] = serving.Column{Name: c.Name, Type: string(c.Type)}
	}
	return out
}

// shaped gives the statement's rows in a shape that was checked.
func (b *bound) shaped(rows [][]value, shape serving.Shape) [][]value {
	column := func(name string) int {
		return slices.IndexFunc(b.columns, func(c project.Column) bool { return c.Name == name })
	}
	var keys []sortKey
	for _, o := range shape.Order {
		keys = append(keys, sortKey{column(o.Column), o.Descending})
	}
	sortRows(rows, keys)
	if len(shape.Columns) == 0 {
		return rows
	}
	picked := make([][]value, len(rows))
	for i, row := range rows {
		for _, name := range shape.Columns {
			picked[i] = append(picked[i], row[column(name)])
		}
	}
	return picked
}

// sortRows sorts rows by the keys; NULL is last in both directions.
func sortRows(rows [][]value, keys []sortKey) {
	slices.SortStableFunc(rows, func(x, y []value) int {
		for _, k := range keys {
			a, c := x[k.output], y[k.output]
			switch {
			case a == nil && c == nil:
				continue
			case a == nil:
				return 1
			case c == nil:
				return -1
			}
			if d := compare(a, c); d != 0 {
				if k.desc {
					return -d
				}
				return d
			}
		}
		return 0
	})
}

func (b *bound) filter(rows [][]value, args serving.Args) ([][]value, error) {
	if len(b.filters) == 0 {
		return rows, nil
	}
	// A condition holds when it does for any of these.
	against := make([][]value, len(b.filters))
	for i, f := range b.filters {
		arg := args[f.param]
		if f.param == "" || arg.Null {
			against[i] = []value{f.value}
			continue
		}
		kind := f.kind
		if isInteger(kind) {
			kind = "BIGINT"
		}
		texts := arg.Items
		if f.op != contains {
			texts = []string{arg.Text}
		}
		for _, text := range texts {
			v, err := parseValue(text, kind)
			if err != nil {
				return nil, fmt.Errorf("parameter $%s: %w", f.param, err)
			}
			against[i] = append(against[i], v)
		}
	}
	var kept [][]value
	for _, row := range rows {
		ok := true
		for i, f := range b.filters {
			ok = ok && slices.ContainsFunc(against[i], func(v value) bool { return holds(row[f.source], f.op, v) })
		}
		if ok {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

// holds evaluates one condition; a comparison with NULL holds for nothing.
func holds(a value, op string, b value) bool {
	switch op {
	case "IS":
		return a == nil
	case "IS NOT":
		return a != nil
	}
	if a == nil || b == nil {
		return false
	}
	d := compare(a, b)
	switch op {
	case "=", contains:
		return d == 0
	case "<>":
		return d != 0
	case "<":
		return d < 0
	case "<=":
		return d <= 0
	case ">":
		return d > 0
	}
	return d >= 0
}

// fold makes one row of each group, in the order in which the groups were first seen.
func (b *bound) fold(rows [][]value) ([][]value, error) {
	members := map[string][][]value{}
	var keys []string
	if len(b.group) == 0 {
		keys = []string{""}
	}
	for _, row := range rows {
		var k strings.Builder
		for _, g := range b.group {
			// NULL is a group of its own; the quotes keep it apart from any text.
			if row[g] == nil {
				k.WriteString("null,")
			} else {
				k.WriteString(strconv.Quote(fmt.Sprint(row[g])) + ",")
			}
		}
		if _, seen := members[k.String()]; !seen && len(b.group) > 0 {
			keys = append(keys, k.String())
		}
		members[k.String()] = append(members[k.String()], row)
	}
	var out [][]value
	for _, k := range keys {
		o := make([]value, len(b.outputs))
		for i, c := range b.outputs {
			switch c.fn {
			case "":
				o[i] = members[k][0][c.source]
			case "count":
				o[i] = int64(len(members[k]))
			default:
				for _, row := range members[k] {
					o[i] = accumulate(c.fn, o[i], row[c.source])
				}
				if f, ok := o[i].(float64); ok && math.IsInf(f, 0) {
					return nil, fmt.Errorf("the sum for %q is out of the range of DOUBLE", b.columns[i].Name)
				}
			}
		}
		out = append(out, o)
	}
	return out, nil
}
