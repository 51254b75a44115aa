package gate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"leapview/domain/project"
)

// tree is a node of the engine's syntax tree as JSON. Numbers stay as text, since some have more digits than a float.
type tree = map[string]any

// expressions are the classes of expressions that a statement may hold, besides those that have a rule of their own.
var expressions = set("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
	"LAMBDA", "LAMBDA_REF", "OPERATOR", "PARAMETER", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "WINDOW")

// tables are the kinds of things that a FROM may hold.
var tables = set("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT")

// queries are the kinds of nodes that give rows.
var queries = set("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")

// modifiers are the kinds of plain nodes: what follows a query, and what they hold.
var modifiers = set("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER", "ORDER_DEFAULT", "ASCENDING", "DESCENDING")

// tableFunctions make rows out of their arguments alone.
var tableFunctions = set("range", "generate_series", "unnest")

// refusedFunctions reach outside the statement: files, catalogs, settings, other SQL, the log, the clock of the process.
var refusedFunctions = set("query", "query_table", "glob", "sniff_csv", "getenv", "getvariable", "current_setting", "nextval", "currval",
	"write_log", "sleep_ms", "which_secret", "list_files", "in_search_path", "current_database", "current_schema", "current_schemas",
	"current_query", "current_connection_id", "current_query_id", "current_transaction_id", "txid_current", "setseed", "from_substrait",
	"from_substrait_json", "get_substrait", "checkpoint", "force_checkpoint", "repeat_row", "summary", "storage_info", "user_agent",
	"json_serialize_sql", "json_deserialize_sql", "json_serialize_plan", "parse_duckdb_log_message", "add_parquet_key")

// refusedFamilies are refused by how the name begins or ends.
var refusedFamilies = []struct{ prefix, suffix string }{
	{"read_", ""}, {"", "_scan"}, {"duckdb_", ""}, {"pragma_", ""}, {"json_execute", ""}, {"ducklake_", ""}, {"parquet_", ""},
	{"postgres_", ""}, {"mysql_", ""}, {"sqlite_", ""}, {"iceberg_", ""}, {"delta_", ""}, {"http_", ""}, {"enable_", ""}, {"disable_", ""},
	{"test_", ""}, {"pg_", ""}, {"has_", "_privilege"},
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// refusedFunction tells whether no statement and no plan may call the function.
func refusedFunction(name string) bool {
	name = lower(name)
	if refusedFunctions[name] {
		return true
	}
	for _, f := range refusedFamilies {
		if strings.HasPrefix(name, f.prefix) && strings.HasSuffix(name, f.suffix) {
			return true
		}
	}
	return false
}

// relation is a name in a FROM that no CTE answers to.
type relation struct {
	name string
	node tree
	// start and end are the bytes of the name in the statement.
	start, end int
}

// scope is the CTEs that a node sees, innermost first.
type scope struct {
	outer *scope
	name  string
	// weight is how many CTE bodies the engine plans for one reference to this one.
	weight int
}

func (s *scope) find(name string) *scope {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return s
		}
	}
	return nil
}

// walk applies the rules to a tree and collects what has to be rewritten. It stops at the first refusal.
type walk struct {
	sql    string
	tokens []token

	err *Error
	// at is the last known place, for nodes that have none.
	at int

	nodes, depth, joins, unions, expansions int

	relations  []relation
	parameters []tree
}

func (w *walk) refuse(offset int, fix, format string, args ...any) {
	if w.err == nil {
		w.err = &Error{offset, fmt.Sprintf(format, args...), fix}
	}
}

// exceed refuses a statement that is over a bound.
func (w *walk) exceed(what, limit string, bound int) {
	w.refuse(w.at, "split it into models", "the statement has more than %d %s (limit %s)", bound, what, limit)
}

// place is the node's offset in the statement, or the last one known.
func (w *walk) place(o tree) int {
	if n, ok := o["query_location"].(json.Number); ok {
		if i, err := strconv.Atoi(n.String()); err == nil && i >= 0 && i < len(w.sql) {
			w.at = i
		}
	}
	return w.at
}

// statement walks what json_serialize_sql calls a statement: the root, a CTE's or a subquery's. The names of its columns matter
// when named is set.
func (w *walk) statement(v any, s *scope, named bool) {
	o, _ := v.(tree)
	node, ok := o["node"].(tree)
	if !ok {
		w.refuse(w.at, "", "the statement has a part without a query, which is not understood")
		return
	}
	w.query(node, s, named)
}

// enter counts a node. leave has to follow when it is true.
func (w *walk) enter() bool {
	w.nodes++
	w.depth++
	switch {
	case w.err != nil:
	case w.nodes > maxNodes:
		w.exceed("parts", "sql_nodes", maxNodes)
	case w.depth > maxDepth:
		w.exceed("levels", "sql_depth", maxDepth)
	default:
		return true
	}
	w.depth--
	return false
}

func (w *walk) leave() { w.depth-- }

func (w *walk) query(o tree, s *scope, named bool) {
	if !w.enter() {
		return
	}
	defer w.leave()
	kind, _ := o["type"].(string)
	if !queries[kind] {
		w.refuse(w.place(o), "write a SELECT", "%s is not allowed", kind)
		return
	}
	if ctes, ok := o["cte_map"].(tree); ok {
		s = w.ctes(ctes, s)
	}
	switch kind {
	case "SELECT_NODE":
		items, _ := o["select_list"].([]any)
		if len(items) > maxItems {
			w.exceed("columns", "sql_columns", maxItems)
		}
		for _, item := range items {
			w.item(item, s, named)
		}
	case "SET_OPERATION_NODE":
		if w.unions++; w.unions >= maxUnions {
			w.exceed("arms of UNION, INTERSECT and EXCEPT", "sql_unions", maxUnions)
		}
		w.arm(o["left"], s, named)
		w.arm(o["right"], s, named)
	case "RECURSIVE_CTE_NODE":
		// Only the repeated arm sees the rows so far: in the first one the name still means what it meant outside.
		name, _ := o["cte_name"].(string)
		w.arm(o["left"], s, named)
		w.arm(o["right"], &scope{s, lower(name), 1}, named)
	}
	w.fields(o, s, "cte_map", "select_list", "left", "right", "type")
}

func (w *walk) arm(v any, s *scope, named bool) {
	o, ok := v.(tree)
	if !ok {
		w.refuse(w.at, "", "the statement has an arm without a query, which is not understood")
		return
	}
	w.query(o, s, named)
}

// ctes walks the bodies in order: each sees the ones before it, and not itself.
func (w *walk) ctes(o tree, s *scope) *scope {
	entries, _ := o["map"].([]any)
	for _, e := range entries {
		entry, _ := e.(tree)
		name, _ := entry["key"].(string)
		info, ok := entry["value"].(tree)
		if !ok || name == "" {
			w.refuse(w.at, "", "the statement has a CTE without a name, which is not understood")
			return s
		}
		before := w.expansions
		w.expansions = 0
		w.statement(info["query"], s, true)
		w.fields(info, s, "query")
		s = &scope{s, lower(name), 1 + w.expansions}
		w.expansions += before
	}
	return s
}

// item walks one entry of a select list. An entry without a name is named after its text, and that text changes when names and
// parameters in it are replaced.
func (w *walk) item(v any, s *scope, named bool) {
	before := len(w.relations) + len(w.parameters)
	w.any(v, s)
	o, _ := v.(tree)
	if !named || w.err != nil || o["alias"] != "" || o["class"] == "STAR" || len(w.relations)+len(w.parameters) == before {
		return
	}
	w.refuse(w.place(o), "name it: … AS name", "a column that is computed from a parameter or a subquery has no name of its own")
}

// any walks a node of whatever kind it turns out to be.
func (w *walk) any(v any, s *scope) {
	if w.err != nil {
		return
	}
	if list, ok := v.([]any); ok {
		for _, x := range list {
			w.any(x, s)
		}
		return
	}
	o, ok := v.(tree)
	if !ok {
		return
	}
	switch {
	case has(o, "class"):
		w.expression(o, s)
	case has(o, "cte_map"):
		w.query(o, s, true)
	case has(o, "node"):
		w.statement(o, s, true)
	case has(o, "alias") && has(o, "sample"):
		w.table(o, s)
	case has(o, "is_null"):
		w.types(o["type"], s)
	case has(o, "id"):
		w.types(o, s)
	default:
		if kind, ok := o["type"].(string); ok && !modifiers[kind] {
			w.refuse(w.place(o), "", "%s is not allowed", kind)
		}
		w.fields(o, s, "type")
	}
}

func has(o tree, key string) bool {
	_, ok := o[key]
	return ok
}

// fields walks the node's fields, in a fixed order so that a statement always gets the same refusal.
func (w *walk) fields(o tree, s *scope, except ...string) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(except, key) {
			w.any(o[key], s)
		}
	}
}

// types walks a type: one that is looked up in a catalog of its own is refused.
func (w *walk) types(v any, s *scope) {
	switch x := v.(type) {
	case []any:
		for _, y := range x {
			w.types(y, s)
		}
	case tree:
		if has(x, "class") {
			w.expression(x, s)
			return
		}
		for _, key := range []string{"catalog", "schema"} {
			if name, _ := x[key].(string); name != "" && name != "main" && name != "system" {
				w.refuse(w.at, "use the engine's own types", "a type of catalog or schema %q is not allowed", name)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(x)) {
			w.types(x[key], s)
		}
	}
}

func (w *walk) expression(o tree, s *scope) {
	if !w.enter() {
		return
	}
	defer w.leave()
	class, _ := o["class"].(string)
	at := w.place(o)
	if !expressions[class] {
		w.refuse(at, "", "the construct %s is not allowed", class)
		return
	}
	switch class {
	case "CONSTANT":
		value, _ := o["value"].(tree)
		w.types(value["type"], s)
		return
	case "PARAMETER":
		w.parameter(o)
		return
	case "SUBQUERY":
		// The columns of a subquery within an expression are never seen by name.
		w.statement(o["subquery"], s, false)
		w.fields(o, s, "subquery", "class", "type")
		return
	case "FUNCTION", "WINDOW":
		w.function(o, at)
	case "CAST":
		w.types(o["cast_type"], s)
		w.fields(o, s, "cast_type", "class", "type")
		return
	case "OPERATOR":
		children, _ := o["children"].([]any)
		if len(children) > maxListed+1 {
			w.exceed("values in one IN list", "sql_list", maxListed)
		}
	}
	w.fields(o, s, "class", "type")
}

func (w *walk) parameter(o tree) {
	name, _ := o["identifier"].(string)
	name = lower(name)
	if !project.ValidName(name) {
		at := w.at
		for _, t := range w.tokens {
			if t.kind == parameterToken && (t.name == "" || lower(t.name) == name) {
				at = t.start
				break
			}
		}
		w.refuse(at, "write $name and declare it under params", "a parameter without a name is not allowed")
		return
	}
	o["identifier"] = name
	w.parameters = append(w.parameters, o)
}

var wideFormat = regexp.MustCompile(`\*|[0-9]{5,}`)

func (w *walk) function(o tree, at int) {
	name, _ := o["function_name"].(string)
	name = lower(name)
	if catalog, _ := o["catalog"].(string); catalog != "" {
		w.refuse(at, "write the function's name alone", "the function %s of catalog %q is not allowed", name, catalog)
		return
	}
	if refusedFunction(name) {
		w.refuse(at, "compute it from columns of models and sources", "the function %s is not allowed: it reaches outside the statement", name)
		return
	}
	arguments, _ := o["children"].([]any)
	// Written as a method, x.lpad(5, '0'), the first argument stands in front: arguments are counted from the end.
	fromEnd := map[string]int{"repeat": 1, "lpad": 2, "rpad": 2}[name]
	switch {
	case fromEnd > 0 && !w.smallConstant(arguments, len(arguments)-fromEnd):
		w.refuse(at, "write the length as a plain number", "%s needs a constant length of at most %d", name, maxWidth)
	case name == "printf" || name == "format":
		format := ""
		if len(arguments) > 0 {
			format, _ = constant(arguments[0]).(string)
		}
		if format == "" || wideFormat.MatchString(format) {
			w.refuse(at, "write the format as a plain string", "%s needs a constant format with widths of at most four digits", name)
		}
	}
}

func (w *walk) smallConstant(arguments []any, i int) bool {
	if i < 0 || i >= len(arguments) {
		return false
	}
	n, _ := constant(arguments[i]).(json.Number)
	v, err := strconv.Atoi(n.String())
	return err == nil && v <= maxWidth
}

// constant is the value of a constant, or nil.
func constant(v any) any {
	o, _ := v.(tree)
	if o["class"] != "CONSTANT" {
		return nil
	}
	value, _ := o["value"].(tree)
	return value["value"]
}

func (w *walk) table(o tree, s *scope) {
	if !w.enter() {
		return
	}
	defer w.leave()
	kind, _ := o["type"].(string)
	at := w.place(o)
	switch {
	case kind == "SHOW_REF":
		w.refuse(at, "write a SELECT over models", "DESCRIBE, SUMMARIZE and SHOW are not allowed")
		return
	case !tables[kind]:
		w.refuse(at, "", "%s is not allowed in FROM", kind)
		return
	}
	switch kind {
	case "BASE_TABLE":
		w.named(o, s, at)
	case "JOIN":
		if w.joins++; w.joins > maxJoins {
			w.exceed("joins", "sql_joins", maxJoins)
		}
	case "TABLE_FUNCTION":
		f, _ := o["function"].(tree)
		name, _ := f["function_name"].(string)
		if !tableFunctions[lower(name)] {
			w.refuse(at, "read models and sources; of table functions only range, generate_series and unnest are allowed",
				"the table function %s is not allowed", name)
		}
	case "PIVOT":
		pivots, _ := o["pivots"].([]any)
		for _, p := range pivots {
			if x, _ := p.(tree); x["pivot_enum"] != nil && x["pivot_enum"] != "" {
				w.refuse(at, "list the values: IN (…)", "PIVOT over an ENUM type is not allowed")
			}
		}
	}
	w.fields(o, s, "type")
}

// named walks a name in FROM: a CTE's, or a relation's.
func (w *walk) named(o tree, s *scope, at int) {
	text, _ := o["table_name"].(string)
	schema, _ := o["schema_name"].(string)
	catalog, _ := o["catalog_name"].(string)
	name := lower(text)
	switch {
	case schema != "" || catalog != "":
		w.refuse(at, "write the name of a model or source alone", "%q is not allowed with a schema or catalog in front", text)
		return
	case o["at_clause"] != nil:
		w.refuse(at, "leave it out: every answer reads one snapshot", "AT is not allowed behind %q", text)
		return
	}
	if cte := s.find(name); cte != nil {
		if w.expansions += cte.weight; w.expansions > maxExpansions {
			w.exceed("expanded references to CTEs", "sql_expansions", maxExpansions)
		}
		return
	}
	if !project.ValidName(name) {
		w.refuse(at, "declare a file as a source and read the source by its name", "%q is neither a model nor a source", text)
		return
	}
	for _, t := range w.tokens {
		if t.start == at && t.kind == identifierToken && lower(t.name) == name {
			w.relations = append(w.relations, relation{name, o, t.start, t.end})
			return
		}
	}
	w.refuse(at, "write the name without single quotes, directly behind FROM or JOIN", "the name %q is not written in a way that is understood", text)
}
