package project

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The bounds of what checks say.
const (
	MaxChecks         = 200
	MaxAcceptedValues = 300
	// MaxCheckTextBytes is the longest name of a check, and the longest value in one.
	MaxCheckTextBytes = 255
)

func (d *decoder) checks(v Node) []Check {
	var checks []Check
	seen := map[string]bool{}
	items := d.list(v, "checks")
	if len(items) > MaxChecks {
		d.report(v.At, fmt.Sprintf("%d checks are too many (limit checks = %d)", len(items), MaxChecks), "")
		return nil
	}
	for _, item := range items {
		c, ok := d.check(item)
		if !ok {
			continue
		}
		// The same rule may be a warning and, with a greater tolerance, an error.
		same := c
		same.Name, same.MaxFailures, same.MaxPercent = "", 0, ""
		if key := same.Definition(); seen[key] {
			d.report(c.At, fmt.Sprintf("check %s is given twice", c), "remove one")
		} else {
			seen[key] = true
		}
		checks = append(checks, c)
	}
	return checks
}

// check decodes one check: a mapping with one key that is its kind, and options beside it.
func (d *decoder) check(item Node) (c Check, ok bool) {
	options := []string{"name", "severity", "where", "max_failures", "max_failure_percent"}
	if item.Kind != MappingNode {
		d.report(item.At, "a check is a mapping, and is "+item.Kind.String(), "write for example - not_null: carrier")
		return c, false
	}
	var kinds []Entry
	rest := Node{Kind: MappingNode, At: item.At}
	for _, e := range item.Entries {
		if e.Key.Kind == StringNode && slices.Contains(options, e.Key.Text) {
			rest.Entries = append(rest.Entries, e)
		} else {
			kinds = append(kinds, e)
		}
	}
	switch {
	case len(kinds) == 0:
		d.report(item.At, "the check does not say what it checks", "write one of "+strings.Join(checkKinds, ", ")+" as a key")
		return c, false
	case len(kinds) > 1 && slices.Contains(checkKinds, kinds[0].Key.Text) && slices.Contains(checkKinds, kinds[1].Key.Text):
		d.report(kinds[1].Key.At, fmt.Sprintf("the check is %s already, and cannot be %s too", kinds[0].Key.Text, kinds[1].Key.Text), "begin a check of its own with a dash")
		return c, false
	}
	at := slices.IndexFunc(kinds, func(e Entry) bool { return slices.Contains(checkKinds, e.Key.Text) })
	for i, e := range kinds {
		if i == at || at < 0 && i == 0 {
			continue
		}
		d.report(e.Key.At, fmt.Sprintf("a check has no key %s", show(e.Key.Text)), hint(e.Key.Text, append(slices.Clone(options), checkKinds...)))
	}
	entry := kinds[max(at, 0)]
	c = Check{Kind: CheckKind(d.choice(entry.Key, "a check", checkKinds)), At: entry.Key.At, Severity: SeverityError}
	if c.Kind == "" {
		return c, false
	}
	before := len(d.problems)
	d.rule(&c, entry.Value)
	d.checkOptions(&c, rest)
	return c, len(d.problems) == before
}

// checkOptions decodes what stands beside a check's kind.
func (d *decoder) checkOptions(c *Check, n Node) {
	m := d.mapping(n, "a check", []string{"name", "severity", "where", "max_failures", "max_failure_percent"})
	if v, ok := m.get("name"); ok {
		if c.Name, _ = d.scalarText(v, "name"); len(c.Name) > MaxCheckTextBytes || strings.ContainsFunc(c.Name, unicode.IsControl) {
			d.report(v.At, fmt.Sprintf("the check's name holds a control character, or has more than %d bytes (limit check_text_bytes)", MaxCheckTextBytes), "shorten it")
		}
	}
	if v, ok := m.get("severity"); ok {
		c.Severity = Severity(d.choice(v, "severity", []string{string(SeverityError), string(SeverityWarn)}))
	}
	if v, ok := m.get("where"); ok {
		if c.Kind == CustomSQL {
			d.report(v.At, "where does not go with sql, whose own WHERE says which rows are failures", "remove it")
		}
		c.Where = d.fragment(v, "where")
	}
	tolerant := c.Kind != RowCount && c.Kind != Freshness
	if v, ok := m.get("max_failures"); ok {
		if n, ok := d.integer(v, "max_failures"); ok && n < 0 {
			d.report(v.At, fmt.Sprintf("max_failures is %d, and there are no fewer than 0", n), "")
		} else if !tolerant {
			d.report(v.At, fmt.Sprintf("%s judges the table and not its rows, so none can be tolerated", c.Kind), "remove max_failures")
		} else {
			c.MaxFailures = n
		}
	}
	if v, ok := m.get("max_failure_percent"); ok {
		if v.Kind != IntegerNode && v.Kind != FloatNode {
			d.report(v.At, "max_failure_percent must be a number, and is "+v.Kind.String(), "")
			return
		}
		if len(v.Text) > 20 || strings.ContainsAny(v.Text, "eE") {
			d.report(v.At, fmt.Sprintf("max_failure_percent is %s, and must be written in at most 20 plain decimal digits", show(v.Text)), "")
			return
		}
		percent, ok := new(big.Rat).SetString(v.Text)
		switch {
		case !ok || percent.Sign() < 0 || percent.Cmp(big.NewRat(100, 1)) > 0:
			d.report(v.At, fmt.Sprintf("max_failure_percent is %s, and must be 0 to 100", show(v.Text)), "")
		case !tolerant:
			d.report(v.At, fmt.Sprintf("%s judges the table and not its rows, so none can be tolerated", c.Kind), "remove max_failure_percent")
		default:
			c.MaxPercent = v.Text
		}
	}
}

// fragment is SQL inside of YAML. Where YAML writes it otherwise than it is, its place is that of the YAML value.
func (d *decoder) fragment(v Node, what string) Statement {
	sql, ok := d.scalarText(v, what)
	sql = strings.TrimRight(sql, "; \t\r\n")
	s := Statement{SQL: sql, At: v.Body, Indent: v.Indent}
	if v.Body == (Position{}) {
		s.At, s.Indent = v.At, Unplaced
	}
	switch {
	case !ok:
	case strings.TrimSpace(sql) == "":
		d.report(v.At, what+" is empty", "")
	case len(sql) > MaxSQLBytes:
		d.report(v.At, fmt.Sprintf("%s has %d bytes (limit sql_bytes = %d)", what, len(sql), MaxSQLBytes), "")
	case strings.ContainsRune(sql, 0):
		d.report(v.At, what+" has a NUL character", "remove it")
	}
	return s
}

// rule decodes what the check's kind says.
func (d *decoder) rule(c *Check, v Node) {
	switch c.Kind {
	case NotNull, Unique:
		c.Columns, _ = d.checkedColumns(v, string(c.Kind))
	case RowCount:
		c.Min, c.Max, _ = d.rowCount(v)
	case AcceptedValues:
		m := d.mapping(v, "accepted_values", []string{"column", "values"})
		c.Columns = d.oneColumn(m)
		if v, ok := m.required("values"); ok {
			c.Values = d.acceptedValues(v)
		}
	case Range:
		m := d.mapping(v, "range", []string{"column", "min", "max"})
		c.Columns = d.oneColumn(m)
		bound := func(key string) *Literal {
			n, ok := m.get(key)
			if !ok {
				return nil
			}
			text, _ := d.literal(n, key)
			return &Literal{text, n.At}
		}
		c.Low, c.High = bound("min"), bound("max")
		if m.ok && c.Low == nil && c.High == nil {
			d.report(v.At, "range has neither min nor max", "write for example range: {column: month, min: 1, max: 12}")
		}
	case Relationships:
		m := d.mapping(v, "relationships", []string{"column", "columns", "to", "field", "fields"})
		c.Columns = d.oneOrMore(m, "column", "columns")
		c.Fields = d.oneOrMore(m, "field", "fields")
		if len(c.Columns) > 0 && len(c.Fields) > 0 && len(c.Columns) != len(c.Fields) {
			d.report(v.At, fmt.Sprintf("relationships names %d columns and %d fields", len(c.Columns), len(c.Fields)), "name as many of both")
		}
		if v, ok := m.required("to"); ok {
			c.To, _ = d.scalarText(v, "to")
		}
	case Freshness:
		m := d.mapping(v, "freshness", []string{"column", "max_age"})
		c.Columns = d.oneColumn(m)
		if v, ok := m.required("max_age"); ok {
			c.MaxAge = d.duration(v, "max_age")
		}
	case Expression:
		c.Statement = d.fragment(v, "expression")
	case CustomSQL:
		c.Statement = d.fragment(v, "sql")
	}
}

func (d *decoder) oneColumn(m fields) []string {
	v, ok := m.required("column")
	if !ok {
		return nil
	}
	name, ok := d.scalarText(v, "column")
	if !ok || name == "" {
		return nil
	}
	return []string{name}
}

// oneOrMore decodes a key that names one column, or its plural that names several.
func (d *decoder) oneOrMore(m fields, one, more string) []string {
	v, isOne := m.get(one)
	vs, isMore := m.get(more)
	switch {
	case isOne && isMore:
		d.report(vs.At, fmt.Sprintf("%s and %s say the same", one, more), "remove one")
		return nil
	case isMore:
		names, _ := d.checkedColumns(vs, more)
		return names
	case isOne:
		names, _ := d.checkedColumns(v, one)
		return names
	}
	if m.ok {
		d.report(m.at, fmt.Sprintf("%s needs the key %q", m.what, one), "")
	}
	return nil
}

// literal is a scalar's own text: numbers keep their digits.
func (d *decoder) literal(v Node, what string) (string, bool) {
	switch v.Kind {
	case StringNode, IntegerNode, FloatNode, BooleanNode:
		if len(v.Text) <= MaxCheckTextBytes && !strings.ContainsRune(v.Text, 0) {
			return v.Text, true
		}
		d.report(v.At, fmt.Sprintf("%s has a NUL character, or more than %d bytes (limit check_text_bytes)", what, MaxCheckTextBytes), "write it into an expression")
	case NullNode, ListNode, MappingNode:
		d.report(v.At, fmt.Sprintf("%s must be a value, and is %s", what, v.Kind), "")
	}
	return "", false
}

func (d *decoder) acceptedValues(v Node) []Literal {
	items := d.list(v, "values")
	switch {
	case v.Kind == ListNode && len(items) == 0:
		d.report(v.At, "values is empty: no value is accepted", "name the values")
	case len(items) > MaxAcceptedValues:
		d.report(v.At, fmt.Sprintf("%d values are too many (limit accepted_values = %d)", len(items), MaxAcceptedValues), "put them into a model and use relationships")
		return nil
	}
	var values []Literal
	for _, item := range items {
		text, ok := d.literal(item, "a value")
		if ok && slices.ContainsFunc(values, func(l Literal) bool { return l.Text == text }) {
			d.report(item.At, fmt.Sprintf("value %s is given twice", show(text)), "remove one")
		}
		values = append(values, Literal{text, item.At})
	}
	return values
}

// duration is a number with its unit: s, m, h, d or w.
func (d *decoder) duration(v Node, what string) time.Duration {
	text, ok := d.scalarText(v, what)
	if !ok {
		return 0
	}
	const longest = 100 * 366 * 24 * time.Hour
	if n := len(text); n > 1 {
		unit, known := spanUnits[text[n-1:]]
		count, err := strconv.ParseInt(text[:n-1], 10, 64)
		if known && err == nil && count > 0 && count <= int64(longest/unit) {
			return time.Duration(count) * unit
		}
	}
	d.report(v.At, fmt.Sprintf("%s is %s, which is no time span", what, show(text)), "write a whole number with its unit: s, m, h, d or w, such as 36h")
	return 0
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
