package project

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"leapview/domain/fail"
)

// given is a list of texts as a body gives it.
func given(texts ...string) Given {
	g := Texts(texts...)
	g.List = true
	return g
}

// asked is an endpoint that has some of everything.
var asked = Endpoint{Name: "e", Limit: 50, Params: []Param{
	{Name: "day", Type: ParamDate, Default: &Value{Text: "2013-01-01"}},
	{Name: "n", Type: ParamInteger, Required: true, Max: text("9")},
	{Name: "o", Type: ParamString, Enum: []string{"EWR", "JFK"}},
	{Name: "carriers", Type: ParamString, List: true, MaxItems: 3, MaxLength: text(2), Default: &Value{Items: []string{"UA"}}},
	{Name: "ids", Type: ParamInteger, List: true, MaxItems: 2},
}, OrderBy: OrderBy{Allow: []Column{{Name: "day"}, {Name: "n"}, {Name: "a b"}}, Default: []Order{{Column: "day", Descending: true}}, Ties: []Order{{Column: "n"}}},
	Columns: Picking{Allow: []Column{{Name: "day"}, {Name: "n"}}}}

// Proves that a call is completed with defaults, NULLs, the default order and its tie breakers, in canonical text, and that a list may
// be given as one value or several.
func TestBindCompletes(t *testing.T) {
	null, list := Value{Null: true}, func(texts ...string) Value { return Value{Items: texts} }
	for name, c := range map[string]struct {
		call Call
		want Bound
	}{
		"as little as possible": {Call{Params: map[string]Given{"n": Texts("007")}},
			Bound{Args: map[string]Value{"day": {Text: "2013-01-01"}, "n": {Text: "7"}, "o": null, "carriers": list("UA"), "ids": null},
				Order: []Order{{Column: "day", Descending: true}, {Column: "n"}}, Limit: 50}},
		"everything": {Call{Params: map[string]Given{"n": Texts("1"), "o": Texts("EWR"), "day": Texts("2013-02-01"), "carriers": given("AA", "", "AA"), "ids": Texts("1", "-02")},
			OrderBy: Texts("-n,a b"), Columns: Texts("n,day"), Limit: Texts("1")},
			Bound{Args: map[string]Value{"day": {Text: "2013-02-01"}, "n": {Text: "1"}, "o": {Text: "EWR"}, "carriers": list("AA", "", "AA"), "ids": list("1", "-2")},
				Order: []Order{{Column: "n", Descending: true}, {Column: "a b"}}, Columns: []string{"n", "day"}, Limit: 1}},
		"lists in other forms": {Call{Params: map[string]Given{"n": Texts("1"), "carriers": {List: true}, "ids": Texts("5")}, OrderBy: given("day", "-n"), Columns: given("day"), Limit: Texts("50")},
			Bound{Args: map[string]Value{"day": {Text: "2013-01-01"}, "n": {Text: "1"}, "o": null, "carriers": {Items: []string{}}, "ids": list("5")},
				Order: []Order{{Column: "day"}, {Column: "n", Descending: true}}, Columns: []string{"day"}, Limit: 50}},
	} {
		var found CallError
		if got := asked.Bind(c.call, "", &found); found.Found() != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n%+v, want\n%+v", name, found.Found(), got, c.want)
		}
	}
	var found CallError
	if got := (Endpoint{Limit: 1}).Bind(Call{}, "", &found); found.Found() != nil || !reflect.DeepEqual(got, Bound{Args: map[string]Value{}, Limit: 1}) {
		t.Errorf("no parameters: %+v, %v", got, found.Found())
	}
}

// Proves for every way in which a call can be wrong where the problem points, what it says and what would be right.
func TestBindRefuses(t *testing.T) {
	params := func(name string, g Given) Call {
		call := Call{Params: map[string]Given{"n": Texts("1")}}
		call.Params[name] = g
		return call
	}
	odd := func(list bool, items ...Item) Given { return Given{items, list} }
	for _, c := range []struct {
		call                         Call
		pointer, name, says, allowed string
	}{
		{Call{}, "/params/n", "n", "it is required", "integer, at most 9"},
		{params("n", Texts("10")), "/params/n", "n", `"10" is more than the greatest value, 9`, "integer, at most 9"},
		{params("o", Texts("LGA")), "/params/o", "o", `"LGA" is not one of EWR, JFK`, "string, one of EWR, JFK"},
		{params("o", Texts("EWR", "JFK")), "/params/o", "o", "it is given 2 times", "string, one of EWR, JFK"},
		{params("o", given("EWR")), "/params/o", "o", "it is a list", "string, one of EWR, JFK"},
		{params("o", odd(false, Item{Instead: "an object"})), "/params/o", "o", "it is an object", "string, one of EWR, JFK"},
		{params("ids", given("1", "x")), "/params/ids/1", "ids", `"x" is not an integer`, "a list of at most 2 items, each of type integer"},
		{params("ids", odd(true, Item{Text: "1"}, Item{Instead: "null"})), "/params/ids/1", "ids", "it is null", "a list of at most 2 items"},
		{params("ids", Texts("1", "x")), "/params/ids", "ids", `"x" is not an integer`, "a list of at most 2 items"},
		{params("ids", given("1", "2", "3")), "/params/ids", "ids", "it has 3 items (limit max_items = 2)", "a list of at most 2 items"},
		{params("carriers", given("UAX")), "/params/carriers/0", "carriers", `"UAX" has a length of 3, more than 2`, "at most 2 characters"},
		{params("carrier", Texts("UA")), "/params/carrier", "carrier", `there is no parameter "carrier"; did you mean "carriers"?`, "day, n, o, carriers, ids"},
		{params("a/b~c", Texts("1")), "/params/a~1b~0c", "a/b~c", `there is no parameter "a/b~c"`, "day"},
		{params("offset", Texts("1")), "/params/offset", "offset", "rows behind the last one", "day"},
		{params(strings.Repeat("x", 5000), Texts("1")), "/params", "", "there is no parameter", "day"},
		{Call{OrderBy: Texts("nn")}, "/order_by", "order_by", `"nn" cannot be chosen; did you mean "n"?`, "day, n, a b, each at most once, with a minus in front to sort it descending"},
		{Call{OrderBy: Texts("n,-n")}, "/order_by", "order_by", `"n" is named twice`, "day"},
		{Call{OrderBy: Texts("")}, "/order_by", "order_by", `"" cannot be chosen`, "day"},
		{Call{OrderBy: Texts("--n")}, "/order_by", "order_by", `"-n" cannot be chosen`, "day"},
		{Call{OrderBy: Texts("N")}, "/order_by", "order_by", `"N" cannot be chosen`, "day"},
		{Call{OrderBy: Texts(" n")}, "/order_by", "order_by", `" n" cannot be chosen`, "day"},
		{Call{OrderBy: Texts("n", "day,a b,n")}, "/order_by", "order_by", "more columns than there are", "day"},
		{Call{OrderBy: Given{List: true}}, "/order_by", "order_by", "it names no column", "day"},
		{Call{OrderBy: odd(true, Item{Text: "n"}, Item{Instead: "an object"})}, "/order_by/1", "order_by", "it is an object", "day"},
		{Call{Columns: odd(false, Item{Instead: "an object"})}, "/columns", "columns", "it is an object", "day, n"},
		{Call{Columns: Texts("-n")}, "/columns", "columns", `"-n" cannot be chosen`, "day, n, each at most once"},
		{Call{Columns: Texts("a b")}, "/columns", "columns", `"a b" cannot be chosen`, "day, n"},
		{Call{Columns: Texts(`n" FROM x --`)}, "/columns", "columns", "cannot be chosen", "day, n"},
		{Call{Limit: Texts("51")}, "/limit", "limit", "51 is not among", "an integer from 1 to 50"},
		{Call{Limit: Texts("0")}, "/limit", "limit", "0 is not among", "an integer from 1 to 50"},
		{Call{Limit: Texts("+1")}, "/limit", "limit", `"+1" is not an integer`, "an integer from 1 to 50"},
		{Call{Limit: Texts("1; DROP TABLE x")}, "/limit", "limit", "is not an integer", "an integer from 1 to 50"},
		{Call{Limit: Texts("99999999999999999999")}, "/limit", "limit", "is not an integer", "an integer from 1 to 50"},
		{Call{Limit: given("1")}, "/limit", "limit", "more than one value", "an integer from 1 to 50"},
		{Call{Limit: odd(false, Item{Instead: "an object"})}, "/limit", "limit", "it is an object", "an integer from 1 to 50"},
	} {
		if c.call.Params == nil && c.says != "it is required" {
			c.call.Params = map[string]Given{"n": Texts("1")}
		}
		var found CallError
		asked.Bind(c.call, "/queries/3", &found)
		if len(found.Problems) != 1 {
			t.Errorf("%s %s: %d problems: %v", c.pointer, c.says, len(found.Problems), found.Found())
			continue
		}
		p := found.Problems[0]
		if p.Pointer != "/queries/3"+c.pointer || p.Name != c.name || !strings.Contains(p.Message, c.says) || !strings.Contains(p.Allowed, c.allowed) {
			t.Errorf("got %+v, want %s %q, %s; %s", p, c.pointer, c.name, c.says, c.allowed)
		}
	}
	var found CallError
	(Endpoint{Limit: 5}).Bind(Call{OrderBy: Texts("a"), Columns: Texts("a"), Params: map[string]Given{"x": Texts("")}}, "", &found)
	for i, says := range []string{`there is no parameter "x"`, "does not let its callers choose order_by", "does not let its callers choose columns"} {
		if p := found.Problems[i]; !strings.Contains(p.Message, says) || p.Allowed != "" {
			t.Errorf("got %+v, want %s", p, says)
		}
	}
}

// Proves that a list is bounded by its bytes as a whole, by a bound with a name.
func TestBindBoundsLists(t *testing.T) {
	e := Endpoint{Params: []Param{{Name: "l", Type: ParamString, List: true, MaxItems: MaxListItems}}}
	item := strings.Repeat("x", MaxParamBytes)
	for n, refused := range map[int]bool{MaxListBytes / MaxParamBytes: false, MaxListBytes/MaxParamBytes + 1: true} {
		var found CallError
		e.Bind(Call{Params: map[string]Given{"l": given(strings.Fields(strings.Repeat(item+" ", n))...)}}, "", &found)
		if (found.Found() != nil) != refused || refused && !strings.Contains(found.Error(), "limit list_bytes = 65536") {
			t.Errorf("%d items: %v", n, found.Found())
		}
	}
}

// Proves that one error names everything wrong with a call, stays short however wrong the call is, and is found quickly.
func TestBindReportsEverything(t *testing.T) {
	found := CallError{Subject: "the call"}
	asked.Bind(Call{Params: map[string]Given{"o": Texts("ZZ"), "carier": Texts("AA")}, OrderBy: Texts("x"), Columns: Texts("y"), Limit: Texts("z")}, "", &found)
	if err := found.Found(); fail.KindOf(err) != fail.Invalid || fail.CodeOf(err) != "bad_parameters" || len(found.Problems) != 6 ||
		fail.DetailOf(err, false) != "the call cannot be answered: 6 problems were found" {
		t.Errorf("got %v", err)
	}
	many := Call{Params: map[string]Given{"n": Texts("1")}, OrderBy: Texts(strings.Repeat("x,", 1<<20)), Columns: given(strings.Fields(strings.Repeat("x ", 1<<20))...)}
	for i := range 200_000 {
		many.Params[fmt.Sprintf("carrier%d", i)] = Texts("1")
	}
	found = CallError{}
	began := time.Now()
	asked.Bind(many, "", &found)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := found.Found(); len(err.Error()) > 5000 || len(found.Problems) != maxCallProblems || !strings.Contains(err.Error(), "200007 problems were found, of which the first 10 are named") {
		t.Errorf("a very wrong call gives %.5000s", err)
	}
	unknown := CallError{Problems: []CallProblem{{Unknown: true}, {Unknown: true}}}
	if fail.KindOf(&unknown) != fail.Missing || fail.CodeOf(&unknown) != "unknown_endpoint" {
		t.Errorf("endpoints that do not exist are %s, %s", fail.KindOf(&unknown), fail.CodeOf(&unknown))
	}
}
