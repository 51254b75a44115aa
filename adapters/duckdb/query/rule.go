package query

import (
	"fmt"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// rule is a check as SQL over its model's table.
type rule struct {
	// judged counts the rows that are judged, and failures what breaks the rule.
	judged, failures string
	// sample selects the failures; "" when there is nothing to show. columns are what it gives, nil when only the engine knows.
	sample  string
	columns []serving.Column
}

// fragment is SQL of the author's between brackets. The line break ends a comment that it may end with.
func fragment(sql string) string { return "(" + sql + "\n)" }

// other is the name of the model that relationships point to. No model is called like that.
const other = `"the other"`

// ruleOf writes the check in the engine's dialect. now is in microseconds since 1970.
func ruleOf(c project.Check, m plan.Model, now int64) (rule, error) {
	table := engine.Identifier(m.Name)
	columns := make([]string, len(c.Columns))
	missing := make([]string, len(c.Columns))
	for i, name := range c.Columns {
		columns[i] = engine.Identifier(name)
		missing[i] = columns[i] + " IS NULL"
	}
	r := rule{judged: "count(*)"}
	// among is the condition for those rows that where lets through. Nothing else is computed of the others, which AND would not promise;
	// and a bare comparison would be left to the statistics of the files, which pass over those with a NaN in them.
	among := func(condition string) string { return condition }
	if c.Where.SQL != "" {
		among = func(condition string) string {
			return "CASE WHEN " + fragment(c.Where.SQL) + " THEN (" + condition + ") ELSE false END"
		}
		r.judged = "count(*) FILTER (WHERE " + among("true") + ")"
	}
	all := make([]serving.Column, len(m.Columns))
	for i, x := range m.Columns {
		all[i] = serving.Column{Name: x.Name, Type: string(x.Type)}
	}
	// Rules over single rows say when a row breaks them.
	rows := func(breaks string) {
		broken := among(breaks)
		r.failures = "count(*) FILTER (WHERE " + broken + ")"
		r.sample, r.columns = "SELECT * FROM "+table+" WHERE "+broken, all
	}
	switch c.Kind {
	case project.NotNull:
		rows(strings.Join(missing, " OR "))
	case project.AcceptedValues:
		values := make([]string, len(c.Values))
		for i, v := range c.Values {
			values[i] = value(v.Text, m, c.Columns[0])
		}
		rows(columns[0] + " NOT IN (" + strings.Join(values, ", ") + ")")
	case project.Range:
		var out []string
		if c.Low != nil {
			out = append(out, columns[0]+" < "+value(c.Low.Text, m, c.Columns[0]))
		}
		if c.High != nil {
			out = append(out, columns[0]+" > "+value(c.High.Text, m, c.Columns[0]))
		}
		if typeOf(m, c.Columns[0]) == "DOUBLE" {
			// To the engine NaN is the greatest number; to people it is within no range.
			out = append(out, "isnan("+columns[0]+")")
		}
		rows(strings.Join(out, " OR "))
	case project.Expression:
		rows(fragment(c.Statement.SQL) + " IS NOT TRUE")
	case project.Unique:
		// A key that holds a NULL repeats nothing, as in SQL's UNIQUE.
		key := strings.Join(columns, ", ")
		repeated := " FROM " + table + " WHERE " + among("NOT ("+strings.Join(missing, " OR ")+")") + " GROUP BY " + key + " HAVING count(*) > 1"
		r.failures = "(SELECT coalesce(sum(occurrences), 0)::BIGINT FROM (SELECT count(*) AS occurrences" + repeated + "))"
		// A column may be called like the count.
		r.sample = "SELECT " + key + ", count(*) AS " + occurrences(c) + repeated
		for _, name := range c.Columns {
			r.columns = append(r.columns, serving.Column{Name: name, Type: string(typeOf(m, name))})
		}
		r.columns = append(r.columns, serving.Column{Name: occurrences(c), Type: "BIGINT"})
	case project.Relationships:
		same := make([]string, len(columns))
		for i, f := range c.Fields {
			same[i] = other + "." + engine.Identifier(f) + " = " + table + "." + columns[i]
		}
		lost := " FROM " + table + " WHERE " + among("NOT ("+strings.Join(missing, " OR ")+")") + " AND NOT EXISTS (SELECT 1 FROM " + engine.Identifier(c.To) + " AS " + other +
			" WHERE " + strings.Join(same, " AND ") + ")"
		r.failures = "(SELECT count(*)" + lost + ")"
		r.sample, r.columns = "SELECT *"+lost, all
	case project.RowCount:
		// What is too many or too few is the domain's to say.
		r.failures = "0"
	case project.Freshness:
		// An infinite time has no age; it often stands for a time that is not known yet.
		newest := "max(" + columns[0] + ") FILTER (WHERE " + among("isfinite("+columns[0]+")") + ")"
		r.failures = fmt.Sprintf("CASE WHEN epoch_us(%s) >= %d THEN 0 ELSE 1 END", newest, now-c.MaxAge.Microseconds())
		r.sample, r.columns = "SELECT "+newest+" AS newest FROM "+table, []serving.Column{{Name: "newest", Type: string(typeOf(m, c.Columns[0]))}}
	case project.CustomSQL:
		r.failures = "(SELECT count(*) FROM " + fragment(c.Statement.SQL) + ")"
		r.sample = "SELECT * FROM " + fragment(c.Statement.SQL)
	default:
		return r, fail.New(fail.Internal, "unknown_check", "there is no check %q", c.Kind)
	}
	return r, nil
}

// occurrences names the column that counts how often a key occurs.
func occurrences(c project.Check) string {
	name := "occurrences"
	for slices.ContainsFunc(c.Columns, func(column string) bool { return strings.EqualFold(column, name) }) {
		name += "_"
	}
	return name
}

// typeOf is the type of a model's column.
func typeOf(m plan.Model, column string) project.Type {
	if i := slices.IndexFunc(m.Columns, func(c project.Column) bool { return c.Name == column }); i >= 0 {
		return m.Columns[i].Type
	}
	return ""
}

// value is a text as a value of the column's type.
func value(text string, m plan.Model, column string) string {
	return "CAST(" + engine.Literal(text) + " AS " + string(typeOf(m, column)) + ")"
}

// detail says what was observed.
func detail(c project.Check, judged, failures int64) string {
	switch c.Kind {
	case project.NotNull:
		return fmt.Sprintf("%d of %d rows have a NULL", failures, judged)
	case project.Unique:
		return fmt.Sprintf("%d of %d rows share their key with another", failures, judged)
	case project.RowCount:
		return fmt.Sprintf("the table has %d rows", judged)
	case project.AcceptedValues:
		return fmt.Sprintf("%d of %d rows have a value that is not accepted", failures, judged)
	case project.Range:
		return fmt.Sprintf("%d of %d rows are out of the range", failures, judged)
	case project.Relationships:
		return fmt.Sprintf("%d of %d rows point to nothing in %s", failures, judged, c.To)
	case project.Freshness:
		if failures == 0 {
			return "the newest value is not older than " + project.Span(c.MaxAge)
		}
		return "the newest value is older than " + project.Span(c.MaxAge) + ", or there is none"
	case project.Expression:
		return fmt.Sprintf("for %d of %d rows it is not true", failures, judged)
	case project.CustomSQL:
		return fmt.Sprintf("it gave %d rows", failures)
	}
	return ""
}
