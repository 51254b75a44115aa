package project

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"leapview/domain/fail"
)

// The names that stand beside an endpoint's parameters in a call, so that no parameter may have them.
const (
	orderByKey = "order_by"
	columnsKey = "columns"
	limitKey   = "limit"
)

// reservedNames lists them.
var reservedNames = []string{orderByKey, columnsKey, limitKey}

// Call is what a caller asks of an endpoint, as it was written.
type Call struct {
	// Params are values by the name of their parameter. A value that is missing is left to the parameter's default.
	Params map[string]Given
	// OrderBy and Columns are names between commas, or one item each; OrderBy's may have a minus in front. Limit is a count of rows.
	// A zero value means that the caller did not say.
	OrderBy, Columns, Limit Given
}

// Given is one value of a call: its text, or the texts of a list.
type Given struct {
	Items []Item
	// List tells that it was written as a list. A query string cannot say so: there, a list is a name with several items.
	List bool
}

// Item is a value's text.
type Item struct {
	Text string
	// Instead names what was written where a text belongs, such as "an object"; empty when it is a text.
	Instead string
}

// Texts is a value of these texts, as a query string gives it.
func Texts(texts ...string) Given {
	g := Given{Items: make([]Item, len(texts))}
	for i, s := range texts {
		g.Items[i].Text = s
	}
	return g
}

// Given tells whether the caller wrote the value at all.
func (g Given) Given() bool { return g.List || len(g.Items) > 0 }

// Bound is a call that was checked and completed.
type Bound struct {
	// Args are the values of all declared parameters.
	Args map[string]Value
	// Order is what the answer is sorted by, and empty when the statement's own order holds.
	Order []Order
	// Columns are those of the answer, and empty when it has all.
	Columns []string
	// Limit is the most rows of the answer.
	Limit int
}

// CallProblem is one thing wrong with a call.
type CallProblem struct {
	// Pointer leads to it (RFC 6901) in the document that holds the call.
	Pointer string
	// Name is its name in a query string.
	Name string
	// Message says what is wrong and why, Allowed what would be right; Allowed may be empty.
	Message string
	Allowed string
	// Unknown tells that it is an endpoint that does not exist.
	Unknown bool
}

// Fix says what would be right, or nothing.
func (p CallProblem) Fix() string {
	if p.Allowed == "" {
		return ""
	}
	return "allowed: " + p.Allowed
}

// String is the problem on one line.
func (p CallProblem) String() string {
	s := p.Message
	if p.Pointer != "" {
		s = p.Pointer + ": " + s
	}
	if fix := p.Fix(); fix != "" {
		s += " (" + fix + ")"
	}
	return s
}

// maxCallProblems bounds how many problems one error names.
const maxCallProblems = 10

// CallError is everything wrong with a request at once.
type CallError struct {
	// Subject names what was asked.
	Subject  string
	Problems []CallProblem
	// More counts the problems beyond those that are named.
	More int
}

// full tells that further problems are only counted.
func (e *CallError) full() bool { return len(e.Problems) >= maxCallProblems }

// Add names or counts one more problem.
func (e *CallError) Add(p CallProblem) {
	if e.full() {
		e.More++
		return
	}
	e.Problems = append(e.Problems, p)
}

// Found is the error itself, or nil when nothing was found.
func (e *CallError) Found() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// Error is the summary, then each problem.
func (e *CallError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	if e.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", e.More))
	}
	return e.FailSummary() + ": " + strings.Join(parts, "; ")
}

// FailKind is Missing when all that is wrong is that endpoints do not exist, and Invalid otherwise.
func (e *CallError) FailKind() fail.Kind {
	if slices.ContainsFunc(e.Problems, func(p CallProblem) bool { return !p.Unknown }) {
		return fail.Invalid
	}
	return fail.Missing
}

// FailCode is unknown_endpoint or bad_parameters.
func (e *CallError) FailCode() string {
	if e.FailKind() == fail.Missing {
		return "unknown_endpoint"
	}
	return "bad_parameters"
}

// FailSummary counts the problems, for where they are listed apart.
func (e *CallError) FailSummary() string {
	s := e.Subject + " cannot be answered: "
	switch n := len(e.Problems) + e.More; {
	case n == 1:
		return s + "1 problem was found"
	case e.More > 0:
		return s + fmt.Sprintf("%d problems were found, of which the first %d are named", n, len(e.Problems))
	default:
		return s + fmt.Sprintf("%d problems were found", n)
	}
}

// pointer extends a JSON pointer by one key.
func pointer(at, key string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// Bind checks a call and completes it: defaults for what is not given, NULL for what has none. at is the JSON pointer of the call;
// whatever is wrong with it is added to found, and only without any of it may the result be used.
func (e Endpoint) Bind(c Call, at string, found *CallError) Bound {
	b := Bound{Args: make(map[string]Value, len(e.Params)), Limit: e.Limit}
	names := make([]string, 0, len(e.Params))
	for _, p := range e.Params {
		names = append(names, p.Name)
		where := pointer(at+"/params", p.Name)
		b.Args[p.Name] = Value{Null: true}
		if g, ok := c.Params[p.Name]; ok {
			b.Args[p.Name] = p.bind(g, where, found)
		} else if p.Required {
			found.Add(CallProblem{Pointer: where, Name: p.Name, Message: "it is required", Allowed: p.allowed()})
		} else if p.Default != nil {
			b.Args[p.Name] = *p.Default
		}
	}
	// An answer to a name that is not declared costs time, so only as many get one as are named.
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		if !slices.Contains(names, name) {
			found.Add(unknownParam(name, names, at+"/params", found.full()))
		}
	}
	b.Order = e.order(c.OrderBy, pointer(at, orderByKey), found)
	b.Columns = e.columns(c.Columns, pointer(at, columnsKey), found)
	if c.Limit.Given() {
		b.Limit = e.limit(c.Limit, pointer(at, limitKey), found)
	}
	return b
}

// unknownParam complains of a parameter that is not declared. A terse complaint is only counted.
func unknownParam(name string, known []string, at string, terse bool) CallProblem {
	p := CallProblem{Pointer: at, Name: name}
	if terse {
		return p
	}
	p.Message = fmt.Sprintf("there is no parameter %s", show(name))
	if len(name) <= MaxColumnNameBytes {
		p.Pointer = pointer(at, name)
	} else {
		p.Name = ""
	}
	switch near := Suggest(name, known); {
	case near != "":
		p.Message += "; " + near
	case name == "offset":
		p.Message += "; ask for the rows behind the last one by a parameter that the SQL compares with its key"
	}
	if len(known) > 0 {
		p.Allowed = list(known)
	}
	return p
}

// bind checks the value of one parameter.
func (p Param) bind(g Given, at string, found *CallError) Value {
	complain := func(at, format string, args ...any) {
		found.Add(CallProblem{Pointer: at, Name: p.Name, Message: fmt.Sprintf(format, args...), Allowed: p.allowed()})
	}
	switch n := len(g.Items); {
	case !p.List && g.List:
		complain(at, "it is a list")
		return Value{}
	case !p.List && n != 1:
		complain(at, "it is given %d times", n)
		return Value{}
	case p.List && n > p.MaxItems:
		complain(at, "it has %d items (limit max_items = %d)", n, p.MaxItems)
		return Value{}
	}
	texts := make([]string, len(g.Items))
	bytes := 0
	for i, item := range g.Items {
		where := at
		if g.List {
			where = pointer(at, strconv.Itoa(i))
		}
		if item.Instead != "" {
			complain(where, "it is %s", item.Instead)
			continue
		}
		text, err := p.Parse(item.Text)
		if err != nil {
			complain(where, "%s", err)
		}
		texts[i] = text
		bytes += len(text)
	}
	switch {
	case !p.List:
		return Value{Text: texts[0]}
	case bytes > MaxListBytes:
		complain(at, "its items have %d bytes in all (limit list_bytes = %d)", bytes, MaxListBytes)
	}
	return Value{Items: texts}
}

// order is what a caller's answer is sorted by.
func (e Endpoint) order(g Given, at string, found *CallError) []Order {
	keys := slices.Clone(e.OrderBy.Default)
	if g.Given() {
		keys = g.choose(orderByKey, e.OrderBy.Allow, at, found)
	}
	for _, o := range e.OrderBy.Ties {
		if len(keys) > 0 && !slices.ContainsFunc(keys, func(k Order) bool { return k.Column == o.Column }) {
			keys = append(keys, o)
		}
	}
	return keys
}

// columns are those that a caller chose.
func (e Endpoint) columns(g Given, at string, found *CallError) []string {
	if !g.Given() {
		return nil
	}
	var names []string
	for _, o := range g.choose(columnsKey, e.Columns.Allow, at, found) {
		names = append(names, o.Column)
	}
	return names
}

// choose reads the columns that a caller names, each at most once and each among the allowed ones. Only those of order_by have a
// direction.
func (g Given) choose(key string, among []Column, at string, found *CallError) []Order {
	allow := columnNames(among)
	allowed := ""
	switch {
	case len(allow) == 0:
	case key == orderByKey:
		allowed = list(allow) + ", each at most once, with a minus in front to sort it descending"
	default:
		allowed = list(allow) + ", each at most once"
	}
	complain := func(at, format string, args ...any) {
		found.Add(CallProblem{Pointer: at, Name: key, Message: fmt.Sprintf(format, args...), Allowed: allowed})
	}
	var terms []string
	for i, item := range g.Items {
		switch {
		case len(allow) == 0:
		case item.Instead == "":
			terms = append(terms, strings.SplitN(item.Text, ",", len(allow)+2)...)
		case g.List:
			complain(pointer(at, strconv.Itoa(i)), "it is %s", item.Instead)
		default:
			complain(at, "it is %s", item.Instead)
		}
	}
	switch {
	case len(allow) == 0:
		complain(at, "the endpoint does not let its callers choose %s", key)
		return nil
	case len(g.Items) == 0:
		complain(at, "it names no column")
	case len(terms) > len(allow):
		complain(at, "it names more columns than there are to choose from")
		terms = terms[:len(allow)]
	}
	var keys []Order
	for _, term := range terms {
		o := Order{Column: term}
		if key == orderByKey {
			o.Column, o.Descending = strings.CutPrefix(term, "-")
		}
		switch {
		case !slices.Contains(allow, o.Column):
			complain(at, "%s cannot be chosen; %s", show(o.Column), hint(o.Column, allow))
		case slices.ContainsFunc(keys, func(k Order) bool { return k.Column == o.Column }):
			complain(at, "%s is named twice", show(o.Column))
		default:
			keys = append(keys, o)
		}
	}
	return keys
}

func columnNames(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// limit is how many rows a caller wants at most.
func (e Endpoint) limit(g Given, at string, found *CallError) int {
	allowed := fmt.Sprintf("an integer from 1 to %d", e.Limit)
	complain := func(format string, args ...any) int {
		found.Add(CallProblem{Pointer: at, Name: limitKey, Message: fmt.Sprintf(format, args...), Allowed: allowed})
		return e.Limit
	}
	switch {
	case g.List || len(g.Items) != 1:
		return complain("it is more than one value")
	case g.Items[0].Instead != "":
		return complain("it is %s", g.Items[0].Instead)
	}
	text := g.Items[0].Text
	n, err := strconv.Atoi(text)
	if err != nil || !integerForm.MatchString(text) {
		return complain("%s is not an integer in plain digits", show(text))
	}
	if n < 1 || n > e.Limit {
		return complain("%d is not among the numbers of rows that may be asked for", n)
	}
	return n
}
