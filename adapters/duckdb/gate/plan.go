package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// operators are the plan's nodes that neither read nor change anything by themselves.
var operators = set("LOGICAL_PROJECTION", "LOGICAL_FILTER", "LOGICAL_AGGREGATE_AND_GROUP_BY", "LOGICAL_WINDOW", "LOGICAL_UNNEST",
	"LOGICAL_LIMIT", "LOGICAL_ORDER_BY", "LOGICAL_TOP_N", "LOGICAL_DISTINCT", "LOGICAL_SAMPLE", "LOGICAL_PIVOT", "LOGICAL_EXPRESSION_GET",
	"LOGICAL_DUMMY_SCAN", "LOGICAL_EMPTY_RESULT", "LOGICAL_CTE_REF", "LOGICAL_MATERIALIZED_CTE", "LOGICAL_RECURSIVE_CTE",
	"LOGICAL_COMPARISON_JOIN", "LOGICAL_DELIM_JOIN", "LOGICAL_DELIM_GET", "LOGICAL_ANY_JOIN", "LOGICAL_CROSS_PRODUCT",
	"LOGICAL_POSITIONAL_JOIN", "LOGICAL_ASOF_JOIN", "LOGICAL_DEPENDENT_JOIN", "LOGICAL_UNION", "LOGICAL_EXCEPT", "LOGICAL_INTERSECT")

// boundExpressions are the expressions of a plan that hold no plan of their own.
var boundExpressions = set("BOUND_REF", "BOUND_COLUMN_REF", "BOUND_CONSTANT", "BOUND_FUNCTION", "BOUND_CAST", "BOUND_COMPARISON",
	"BOUND_CONJUNCTION", "BOUND_OPERATOR", "BOUND_CASE", "BOUND_BETWEEN", "BOUND_AGGREGATE", "BOUND_WINDOW", "BOUND_UNNEST",
	"BOUND_PARAMETER", "BOUND_LAMBDA", "BOUND_LAMBDA_REF")

// Bind has the engine bind the rewritten statement, without running it. What it cannot bind is an *Error at its place in the
// author's text.
func Bind(ctx context.Context, c Querier, t Text) error {
	_, err := plans(ctx, c, t.SQL)
	var bad *bindError
	if !errors.As(err, &bad) {
		return err
	}
	if bad.offset < 0 && bad.name != "" {
		return &Error{t.original.Identifier(bad.name), bad.Message, bad.fix()}
	}
	return bad.at(t.Origin)
}

// Scan is one table that a bound plan reads.
type Scan struct {
	Catalog, Schema, Table string
	Snapshot               int64
}

// Scans binds the text and gives every scan of the plan that comes out. A plan that reads anything but tables of a lake, or that
// holds what the package does not know, is refused.
func Scans(ctx context.Context, c Querier, sql string) ([]Scan, error) {
	found, err := plans(ctx, c, sql)
	var bad *bindError
	switch {
	case errors.As(err, &bad) && strings.Contains(bad.Message, "No snapshot found at version"):
		return nil, fail.New(fail.Missing, "snapshot_missing", "the lake does not have the snapshot that the statement reads").Because(bad)
	case errors.As(err, &bad):
		return nil, unproved("the engine cannot bind it").Because(bad)
	case err != nil:
		return nil, err
	}
	var p proof
	p.check(found)
	if p.wrong != "" {
		return nil, unproved("%s", p.wrong)
	}
	return p.scans, nil
}

// Prove binds the final text and checks the plan that comes out: each scan is the lake's, of one of the tables in the schema, at
// exactly the version; nothing else reads anything. What cannot be proved is refused.
func Prove(ctx context.Context, c Querier, sql string, schema string, tables []string, version int64) error {
	scans, err := Scans(ctx, c, sql)
	if err != nil {
		return err
	}
	for _, s := range scans {
		switch {
		case s.Catalog != engine.Lake || s.Schema != schema:
			return unproved("it reads %s.%s.%s, outside of %s.%s", s.Catalog, s.Schema, s.Table, engine.Lake, schema)
		case !slices.Contains(tables, s.Table):
			return unproved("it reads the table %s, which belongs to none of the models that it names", s.Table)
		case s.Snapshot != version:
			return unproved("it reads the table %s at snapshot %d, not %d", s.Table, s.Snapshot, version)
		}
	}
	return nil
}

// Unproved is the code of a statement whose plan could not be proved.
const Unproved = "unproved_plan"

func unproved(format string, args ...any) *fail.Error {
	return fail.New(fail.Invalid, Unproved, "the statement cannot be proved to read its own snapshot alone: %s", fmt.Sprintf(format, args...))
}

// plans are the bound plans of the text. The error is a *bindError when the engine could not bind it.
func plans(ctx context.Context, c Querier, sql string) ([]any, error) {
	var text string
	const ask = "SELECT json_serialize_plan(?::VARCHAR, skip_null := true, skip_empty := true, skip_default := true)::VARCHAR"
	if err := c.Scan(ctx, ask, []any{sql}, &text); err != nil {
		return nil, err
	}
	answer, err := decode(text)
	if err != nil {
		return nil, err
	}
	if answer["error"] == true {
		return nil, engineError(answer)
	}
	found, _ := answer["plans"].([]any)
	if len(found) != 1 {
		return nil, unproved("the engine gave %d plans for it", len(found))
	}
	return found, nil
}

// proof collects what a plan scans; wrong is the first thing in it that must not be there.
type proof struct {
	scans []Scan
	wrong string
}

func (p *proof) refuse(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}

// check looks at every object within v, wherever it is: a scan that hides in a place nobody thought of is found too.
func (p *proof) check(v any) {
	switch x := v.(type) {
	case []any:
		for _, y := range x {
			p.check(y)
		}
	case tree:
		if kind, _ := x["type"].(string); strings.HasPrefix(kind, "LOGICAL_") {
			switch {
			case kind == "LOGICAL_GET":
				p.scan(x)
			case !operators[kind]:
				p.refuse("its plan holds %s", kind)
			}
		}
		if class, ok := x["expression_class"].(string); ok {
			name, _ := x["name"].(string)
			switch {
			case !boundExpressions[class]:
				p.refuse("its plan holds %s", class)
			case (class == "BOUND_FUNCTION" || class == "BOUND_AGGREGATE" || class == "BOUND_WINDOW") && refusedFunction(name):
				p.refuse("it calls %s", name)
			}
		}
		for _, y := range x {
			p.check(y)
		}
	}
}

// scan judges one node that reads.
func (p *proof) scan(o tree) {
	name, _ := o["name"].(string)
	if tableFunctions[name] {
		return
	}
	if name != "ducklake_scan" {
		p.refuse("it reads through %s", name)
		return
	}
	data, _ := o["function_data"].(tree)
	var found Scan
	found.Catalog, _ = data["catalog_name"].(string)
	found.Schema, _ = data["schema_name"].(string)
	found.Table, _ = data["table_name"].(string)
	snapshot, _ := data["snapshot"].(tree)
	version, _ := snapshot["snapshot_id"].(json.Number)
	n, err := version.Int64()
	if found.Catalog == "" || found.Schema == "" || found.Table == "" || err != nil || n <= 0 {
		p.refuse("one of its scans does not say what it reads")
		return
	}
	found.Snapshot = n
	p.scans = append(p.scans, found)
}

// bindError is what the engine says of a statement that it cannot parse or bind.
type bindError struct {
	Message string
	// offset in the text that the engine was given, or -1.
	offset                    int
	subtype, name, candidates string
}

// Error is the engine's message.
func (e *bindError) Error() string { return e.Message }

func engineError(answer tree) *bindError {
	e := &bindError{offset: -1}
	text, _ := answer["error_message"].(string)
	e.subtype, _ = answer["error_subtype"].(string)
	e.name, _ = answer["name"].(string)
	e.candidates, _ = answer["candidates"].(string)
	if at, ok := answer["position"].(string); ok {
		if n, err := strconv.Atoi(at); err == nil {
			e.offset = n
		}
	}
	// What follows the first line lists candidates and overloads, by the dozen.
	e.Message, _, _ = strings.Cut(text, "\n")
	e.Message = strings.TrimRight(e.Message, "!. ")
	if e.name == "" {
		// Some messages quote the name and carry no place.
		if _, rest, ok := strings.Cut(e.Message, `"`); ok {
			e.name, _, _ = strings.Cut(rest, `"`)
		}
	}
	return e
}

func (e *bindError) fix() string {
	if e.subtype != "COLUMN_NOT_FOUND" && e.subtype != "MISSING_ENTRY" {
		return ""
	}
	return project.Suggest(e.name, strings.Split(e.candidates, ","))
}

// at is the error at its place in the author's text.
func (e *bindError) at(origin func(int) int) *Error {
	offset := 0
	if e.offset >= 0 {
		offset = origin(e.offset)
	}
	return &Error{offset, e.Message, e.fix()}
}
