package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/project"
)

// Statement is one SELECT that passed the rules. It is rewritten at most once.
type Statement struct {
	sql string
	// end is where its last token but semicolons ends.
	end    int
	root   tree
	tokens []token

	relations  []relation
	parameters []tree
	// params are the parameters' names, sorted and without repetition.
	params []string
}

// Parse applies the rules to the text. What they refuse is an *Error.
func Parse(ctx context.Context, c Querier, sql string) (*Statement, error) {
	switch {
	case len(sql) > maxBytes:
		return nil, &Error{0, fmt.Sprintf("the statement has %d bytes (limit sql_bytes = %d)", len(sql), maxBytes), "split it into models"}
	case !utf8.ValidString(sql) || strings.ContainsRune(sql, 0):
		return nil, &Error{0, "the statement is not UTF-8 text without NUL", ""}
	}
	tokens, bad := tokens(sql)
	switch {
	case bad != nil:
		return nil, bad
	case len(tokens) > maxTokens:
		// The engine's own parser takes a second for 64 KiB of ANDs, and does not stop when it is told to.
		return nil, &Error{tokens[maxTokens].start, fmt.Sprintf("the statement has more than %d words and signs (limit sql_tokens)", maxTokens), "split it into models"}
	}
	root, err := parse(ctx, c, sql)
	if err != nil {
		return nil, err
	}
	w := walk{sql: sql, tokens: tokens}
	w.statement(root, nil, true)
	if w.err != nil {
		return nil, w.err
	}
	s := &Statement{sql: sql, root: root, tokens: tokens, relations: w.relations, parameters: w.parameters}
	for _, p := range w.parameters {
		name, _ := p["identifier"].(string)
		s.params = append(s.params, name)
	}
	slices.Sort(s.params)
	s.params = slices.Compact(s.params)
	for _, t := range tokens {
		if sql[t.start:t.end] != ";" {
			s.end = t.end
		}
	}
	return s, nil
}

// parse asks the engine for the tree of exactly one SELECT.
func parse(ctx context.Context, c Querier, sql string) (tree, error) {
	var text string
	if err := c.Scan(ctx, "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", []any{sql}, &text); err != nil {
		return nil, err
	}
	answer, err := decode(text)
	if err != nil {
		return nil, err
	}
	if answer["error"] == true {
		e := engineError(answer)
		if e.subtype == "" && strings.Contains(e.Message, "Only SELECT statements") {
			return nil, &Error{0, "only a SELECT is allowed", "write one SELECT statement"}
		}
		return nil, e.at(func(offset int) int { return offset })
	}
	statements, _ := answer["statements"].([]any)
	switch len(statements) {
	case 1:
		root, ok := statements[0].(tree)
		if !ok {
			return nil, &Error{0, "the statement's tree is not understood", ""}
		}
		return root, nil
	case 0:
		return nil, &Error{0, "there is no statement", "write one SELECT statement"}
	}
	return nil, &Error{0, fmt.Sprintf("there are %d statements", len(statements)), "write one SELECT statement"}
}

// decode reads the engine's JSON. The engine writes infinite and NaN constants as bare words, which are no JSON.
func decode(text string) (tree, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var o tree
	if err := d.Decode(&o); err != nil {
		return nil, &Error{0, "the statement holds a constant that is not a number", "write it as a text with a cast: 'inf'::DOUBLE"}
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, &Error{0, "the statement's tree is not understood", ""}
	}
	return o, nil
}

// Reads are the names of the relations that the statement reads, sorted, in lower case and without repetition.
func (s *Statement) Reads() []string {
	names := make([]string, len(s.relations))
	for i, r := range s.relations {
		names[i] = r.name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Params are the names of the parameters that the statement uses, sorted and without repetition.
func (s *Statement) Params() []string { return s.params }

// Relation is the offset of the first place where the relation is read, or 0.
func (s *Statement) Relation(name string) int {
	for _, r := range s.relations {
		if r.name == name {
			return r.start
		}
	}
	return 0
}

// Param is the offset of the first place where the parameter is used, or 0.
func (s *Statement) Param(name string) int {
	for _, t := range s.tokens {
		if t.kind == parameterToken && lower(t.name) == name {
			return t.start
		}
	}
	return 0
}

// Identifier is the offset of the last place where the identifier is written, or 0: a column's alias stands behind the columns
// that it may be named after.
func (s *Statement) Identifier(name string) int {
	offset := 0
	for _, t := range s.tokens {
		if t.kind == identifierToken && lower(t.name) == lower(name) {
			offset = t.start
		}
	}
	return offset
}

// Text is a rewritten statement.
type Text struct {
	SQL string
	// original is the author's statement, and edits are the pieces replaced in it, in order.
	original *Statement
	edits    []edit
}

// edit replaces the bytes from start to end by text.
type edit struct {
	start, end int
	text       string
}

// Origin is where in the author's statement the rewritten one's byte comes from.
func (t Text) Origin(offset int) int {
	shift := 0
	for _, e := range t.edits {
		at := e.start + shift
		if offset < at {
			break
		}
		if offset < at+len(e.text) {
			return e.start
		}
		shift += len(e.text) - (e.end - e.start)
	}
	return min(max(offset-shift, 0), len(t.original.sql))
}

// Rewrite puts each relation's target in the place of its name, which stays as its alias, and casts each parameter to its engine
// type, which ends in [] for a list. to and types have to hold all that the statement reads and uses. Every target is read through a subquery of all columns, so
// that the table's hidden ones, which name its files, stay out of reach.
func (s *Statement) Rewrite(ctx context.Context, c Querier, to map[string]Target, types map[string]string) (Text, error) {
	t := Text{original: s}
	for _, r := range s.relations {
		target, ok := to[r.name]
		if !ok {
			return Text{}, &Error{r.start, fmt.Sprintf("there is no model or source %q", r.name), project.Suggest(r.name, slices.Sorted(maps.Keys(to)))}
		}
		text := target.sql()
		if r.node["alias"] == "" {
			text += " AS " + s.sql[r.start:r.end]
		}
		t.edits = append(t.edits, edit{r.start, r.end, text})
		target.replace(r.node)
	}
	for _, token := range s.tokens {
		if token.kind != parameterToken {
			continue
		}
		name := lower(token.name)
		engineType, ok := types[name]
		switch {
		case types == nil:
			return Text{}, &Error{token.start, fmt.Sprintf("the parameter $%s is not allowed: only endpoints have parameters", name), "write the value itself"}
		case !ok:
			return Text{}, Undeclared(token.start, name, slices.Sorted(maps.Keys(types)))
		}
		t.edits = append(t.edits, edit{token.start, token.end, castSQL("$"+name, engineType)})
	}
	for _, p := range s.parameters {
		name, _ := p["identifier"].(string)
		cast(p, types[name])
	}
	slices.SortFunc(t.edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	from := 0
	for _, e := range t.edits {
		b.WriteString(s.sql[from:e.start])
		b.WriteString(e.text)
		from = e.end
	}
	b.WriteString(s.sql[from:s.end])
	t.SQL = b.String()
	return t, s.verify(ctx, c, t.SQL)
}

// Undeclared is the refusal of a parameter that is not among the declared ones.
func Undeclared(offset int, name string, declared []string) *Error {
	fix := project.Suggest(name, declared)
	if fix == "" {
		fix = "declare it under params"
	}
	return &Error{offset, fmt.Sprintf("the parameter $%s is not declared", name), fix}
}

// verify parses the new text and compares it with the tree that the old one's became.
func (s *Statement) verify(ctx context.Context, c Querier, sql string) error {
	root, err := parse(ctx, c, sql)
	if err == nil && same(s.root, root) {
		return nil
	}
	if refused := new(Error); err != nil && !errors.As(err, &refused) {
		return err
	}
	return &Error{0, "a name or parameter in the statement is written where it cannot be replaced", "write SELECT … FROM name AS alias"}
}

// same compares trees without their places.
func same(a, b any) bool {
	switch x := a.(type) {
	case tree:
		y, ok := b.(tree)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, v := range x {
			other, ok := y[key]
			// A statement's map of parameters has no order; the parameters themselves are compared.
			if !ok || key != "query_location" && key != "named_param_map" && !same(v, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	}
	return reflect.DeepEqual(a, b)
}

// sql is the target as a subquery.
func (t Target) sql() string {
	s := "(SELECT * FROM " + engine.Identifier(t.Catalog) + "." + engine.Identifier(t.Schema) + "." + engine.Identifier(t.Table)
	if t.Version > 0 {
		s += " AT (VERSION => " + strconv.FormatInt(t.Version, 10) + ")"
	}
	return s + ")"
}

// nowhere is the place of nodes that are compared without it.
const nowhere = json.Number("0")

// replace turns the node of a name into that of its target.
func (t Target) replace(o tree) {
	var pin any
	if t.Version > 0 {
		engineType := "INTEGER"
		if t.Version > 1<<31-1 {
			engineType = "BIGINT"
		}
		pin = tree{"unit": "VERSION", "expr": tree{"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
			"value": tree{"type": tree{"id": engineType, "type_info": nil}, "is_null": false, "value": json.Number(strconv.FormatInt(t.Version, 10))}}}
	}
	alias := o["alias"]
	if alias == "" {
		alias = o["table_name"]
	}
	node := tree{"type": "SELECT_NODE", "modifiers": []any{}, "cte_map": tree{"map": []any{}},
		"select_list": []any{tree{"class": "STAR", "type": "STAR", "alias": "", "query_location": nowhere, "relation_name": "",
			"exclude_list": []any{}, "replace_list": []any{}, "columns": false, "expr": nil, "qualified_exclude_list": []any{}, "rename_list": []any{}}},
		"from_table": tree{"type": "BASE_TABLE", "alias": "", "sample": nil, "query_location": nowhere, "schema_name": t.Schema,
			"table_name": t.Table, "column_name_alias": []any{}, "catalog_name": t.Catalog, "at_clause": pin},
		"where_clause": nil, "group_expressions": []any{}, "group_sets": []any{}, "aggregate_handling": "STANDARD_HANDLING",
		"having": nil, "sample": nil, "qualify": nil}
	columns, sample := o["column_name_alias"], o["sample"]
	clear(o)
	o["type"], o["alias"], o["sample"], o["query_location"] = "SUBQUERY", alias, sample, nowhere
	o["subquery"] = tree{"node": node, "named_param_map": []any{}}
	o["column_name_alias"] = columns
}

// texts is what a list is bound as, whatever its items are: the driver gives an engine's list of texts, and the engine casts each one.
const texts = "VARCHAR[]"

// castSQL is the expression cast to the engine type.
func castSQL(expression, engineType string) string {
	if strings.HasSuffix(engineType, "[]") {
		expression = "CAST(" + expression + " AS " + texts + ")"
	}
	return "CAST(" + expression + " AS " + engineType + ")"
}

// cast turns the node of a parameter into that of castSQL.
func cast(o tree, engineType string) {
	child := maps.Clone(o)
	alias := o["alias"]
	child["alias"] = ""
	if strings.HasSuffix(engineType, "[]") {
		child = castNode(child, texts, "")
	}
	clear(o)
	maps.Copy(o, castNode(child, engineType, alias))
}

func castNode(child tree, engineType string, alias any) tree {
	return tree{"class": "CAST", "type": "OPERATOR_CAST", "alias": alias, "query_location": nowhere, "child": child,
		"cast_type": typeNode(engineType), "try_cast": false}
}

// typeNode is the node of a type's name.
func typeNode(engineType string) tree {
	if item, ok := strings.CutSuffix(engineType, "[]"); ok {
		return tree{"id": "LIST", "type_info": tree{"type": "LIST_TYPE_INFO", "alias": "", "extension_info": nil, "child_type": typeNode(item)}}
	}
	head, args, ok := strings.Cut(strings.TrimSuffix(engineType, ")"), "(")
	if !ok {
		return tree{"id": engineType, "type_info": nil}
	}
	width, scale, _ := strings.Cut(args, ",")
	return tree{"id": head, "type_info": tree{"type": "DECIMAL_TYPE_INFO", "alias": "", "extension_info": nil, "width": json.Number(width), "scale": json.Number(scale)}}
}
