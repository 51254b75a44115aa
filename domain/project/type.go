package project

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"leapview/domain/fail"
)

// maxTypeDepth bounds how deep lists, structs and maps nest.
const maxTypeDepth = 16

// scalars maps every spelling that a declared column may use to the engine's own.
var scalars = map[string]Type{
	"BOOLEAN": "BOOLEAN", "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN",
	"TINYINT": "TINYINT", "INT1": "TINYINT",
	"SMALLINT": "SMALLINT", "INT2": "SMALLINT", "INT16": "SMALLINT", "SHORT": "SMALLINT",
	"INTEGER": "INTEGER", "INT": "INTEGER", "INT4": "INTEGER", "INT32": "INTEGER", "SIGNED": "INTEGER",
	"BIGINT": "BIGINT", "INT8": "BIGINT", "INT64": "BIGINT", "LONG": "BIGINT",
	"UTINYINT": "UTINYINT", "UINT8": "UTINYINT", "USMALLINT": "USMALLINT", "UINT16": "USMALLINT",
	"UINTEGER": "UINTEGER", "UINT32": "UINTEGER", "UBIGINT": "UBIGINT", "UINT64": "UBIGINT",
	"DOUBLE": "DOUBLE", "FLOAT8": "DOUBLE", "DOUBLE PRECISION": "DOUBLE",
	"VARCHAR": "VARCHAR", "STRING": "VARCHAR", "TEXT": "VARCHAR", "CHAR": "VARCHAR", "BPCHAR": "VARCHAR", "NVARCHAR": "VARCHAR",
	"CHARACTER VARYING": "VARCHAR",
	"DATE":              "DATE", "TIME": "TIME", "TIME WITHOUT TIME ZONE": "TIME",
	"TIMESTAMP": "TIMESTAMP", "DATETIME": "TIMESTAMP", "TIMESTAMP_US": "TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
	"TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
	"UUID": "UUID", "GUID": "UUID", "BLOB": "BLOB", "BYTEA": "BLOB", "BINARY": "BLOB", "VARBINARY": "BLOB", "JSON": "JSON",
}

// refusedTypes are engine types that the lake cannot keep exactly, or at all.
var refusedTypes = map[string]struct{ why, use string }{
	"HUGEINT":             {"the lake keeps it as DOUBLE, which loses digits", "BIGINT or DECIMAL(38,0)"},
	"INT128":              {"the lake keeps it as DOUBLE, which loses digits", "BIGINT or DECIMAL(38,0)"},
	"FLOAT":               {"the lake keeps its bounds as rounded text, and leaves rows out by them", "DOUBLE"},
	"REAL":                {"the lake keeps its bounds as rounded text, and leaves rows out by them", "DOUBLE"},
	"FLOAT4":              {"the lake keeps its bounds as rounded text, and leaves rows out by them", "DOUBLE"},
	"UHUGEINT":            {"the lake keeps it as DOUBLE, which loses digits", "UBIGINT or DECIMAL(38,0)"},
	"UINT128":             {"the lake keeps it as DOUBLE, which loses digits", "UBIGINT or DECIMAL(38,0)"},
	"TIME WITH TIME ZONE": {"the lake turns it into UTC and loses the offset", "TIME, or VARCHAR to keep the offset"},
	"TIMETZ":              {"the lake turns it into UTC and loses the offset", "TIME, or VARCHAR to keep the offset"},
	"INTERVAL":            {"the lake loses its microseconds", "BIGINT with a unit in the column's name"},
	"TIME_NS":             {"the lake cannot write it", "TIME"},
	"TIMESTAMP_S":         {"only microseconds are supported", "TIMESTAMP"},
	"TIMESTAMP_MS":        {"only microseconds are supported", "TIMESTAMP"},
	"TIMESTAMP_NS":        {"only microseconds are supported", "TIMESTAMP"},
	"ENUM":                {"the lake cannot store it", "VARCHAR"},
	"UNION":               {"the lake cannot store it", "JSON, or one column a member"},
	"BIT":                 {"the lake cannot store it", "VARCHAR or BLOB"},
	"BITSTRING":           {"the lake cannot store it", "VARCHAR or BLOB"},
	"BIGNUM":              {"the lake cannot store it", "DECIMAL(38,0) or VARCHAR"},
	"VARINT":              {"the lake cannot store it", "DECIMAL(38,0) or VARCHAR"},
	"VARIANT":             {"answers cannot carry it", "JSON"},
	"GEOMETRY":            {"answers cannot carry it", "VARCHAR with well-known text"},
	`"NULL"`:              {"the column is always NULL and has no type", "the type it should have"},
}

// ParseType gives the canonical spelling of a type that a column may be declared with. Types that the lake cannot keep exactly
// are refused by name, and so are nested ones: a declared column is a scalar.
func ParseType(s string) (Type, error) {
	if nested(s) {
		return "", fail.New(fail.Invalid, "bad_type", "a column cannot be declared as the nested type %s", clip(s)).
			WithFix("declare it as JSON, or read it in a model, whose columns may be nested")
	}
	t, why, use := scalar(s)
	if why == "" {
		return t, nil
	}
	e := fail.New(fail.Invalid, "bad_type", "a column cannot be declared as %s: %s", clip(s), why)
	if use != "" {
		e = e.WithFix("%s", use)
	}
	return "", e
}

// LakeType gives the canonical spelling of a type that a model's column may have: every type that ParseType accepts, and lists,
// structs and maps of them. engineType is the engine's own spelling.
func LakeType(engineType string) (Type, error) {
	t, why, use := lakeType(engineType)
	if why == "" {
		return t, nil
	}
	e := fail.New(fail.Invalid, "bad_type", "a column of type %s cannot be stored: %s", clip(engineType), why)
	if use != "" {
		return "", e.WithFix("%s: cast it, or declare it under columns:", use)
	}
	return "", e.WithFix("cast it, or declare it under columns:")
}

// parseCast gives the canonical spelling of a type that a model's column is declared with: it may be nested.
func parseCast(s string) (Type, error) {
	if !nested(s) {
		return ParseType(s)
	}
	t, why, use := lakeType(s)
	if why == "" {
		return t, nil
	}
	return "", fail.New(fail.Invalid, "bad_type", "a column cannot be declared as %s: %s", clip(s), why).WithFix("%s", use)
}

// lakeType gives the canonical type, or why it is refused and what to write instead.
func lakeType(s string) (t Type, why, use string) {
	p := typeParser{text: strings.TrimSpace(s)}
	t = p.parse(0)
	if p.why == "" && p.at < len(p.text) {
		p.refuse(fmt.Sprintf("%q does not belong to a type", clip(p.text[p.at:])), "")
	}
	return t, p.why, p.use
}

// nested tells whether s is spelled like a list, an array, a struct or a map.
func nested(s string) bool {
	head, _, _ := strings.Cut(normal(s), "(")
	switch strings.TrimSpace(head) {
	case "STRUCT", "ROW", "MAP", "LIST", "ARRAY":
		return true
	}
	return strings.HasSuffix(normal(s), "]")
}

func normal(s string) string { return strings.Join(strings.Fields(strings.ToUpper(s)), " ") }

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// scalar gives the canonical type, or why it is refused and what to write instead.
func scalar(s string) (t Type, why, use string) {
	name := normal(s)
	if t, ok := scalars[name]; ok {
		return t, "", ""
	}
	head, args, hasArgs := strings.Cut(name, "(")
	head = strings.TrimSpace(head)
	if r, ok := refusedTypes[head]; ok {
		return "", r.why, "use " + r.use
	}
	if head == "DECIMAL" || head == "NUMERIC" || head == "DEC" {
		return decimalType(args, hasArgs)
	}
	if t, ok := scalars[head]; ok && hasArgs {
		return "", fmt.Sprintf("%s takes no arguments, and the engine would ignore them", t), fmt.Sprintf("write %s", t)
	}
	return "", "there is no such type", Suggest(name, slices.Sorted(maps.Keys(scalars)))
}

func decimalType(args string, hasArgs bool) (t Type, why, use string) {
	const example = "write for example DECIMAL(18,2)"
	if !hasArgs || !strings.HasSuffix(args, ")") {
		return "", "a decimal needs its digits and how many of them are fractional", example
	}
	w, f, hasScale := strings.Cut(strings.TrimSuffix(args, ")"), ",")
	width, err := strconv.Atoi(strings.TrimSpace(w))
	if err != nil || width < 1 || width > 38 {
		return "", "a decimal has 1 to 38 digits", example
	}
	scale := 0
	if hasScale {
		scale, err = strconv.Atoi(strings.TrimSpace(f))
		if err != nil || scale < 0 || scale > width {
			return "", fmt.Sprintf("of %d digits, 0 to %d can be fractional", width, width), example
		}
	}
	return Type(fmt.Sprintf("DECIMAL(%d,%d)", width, scale)), "", ""
}

// typeParser reads the engine's spelling of a type. It stops at the first thing that is refused, which why then names.
type typeParser struct {
	text     string
	at       int
	why, use string
}

func (p *typeParser) refuse(why, use string) Type {
	if p.why == "" {
		p.why, p.use = why, use
	}
	return ""
}

// take consumes s, in any case, and the spaces after it, when it comes next.
func (p *typeParser) take(s string) bool {
	if len(p.text)-p.at < len(s) || !strings.EqualFold(p.text[p.at:p.at+len(s)], s) {
		return false
	}
	p.at += len(s)
	p.space()
	return true
}

func (p *typeParser) space() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// expect consumes s, which has to come next.
func (p *typeParser) expect(s string) {
	if p.why == "" && !p.take(s) {
		p.refuse(fmt.Sprintf("%q is missing in it", s), "")
	}
}

func (p *typeParser) parse(depth int) Type {
	if depth > maxTypeDepth {
		return p.refuse(fmt.Sprintf("it nests deeper than %d", maxTypeDepth), "")
	}
	var t Type
	switch {
	case p.take("STRUCT("):
		t = p.members(depth)
	case p.take("MAP("):
		key := p.parse(depth + 1)
		p.expect(",")
		value := p.parse(depth + 1)
		p.expect(")")
		t = "MAP(" + key + ", " + value + ")"
	default:
		var why, use string
		if t, why, use = scalar(p.word()); why != "" {
			return p.refuse(why, use)
		}
	}
	for i := depth; p.why == "" && p.take("["); i++ {
		if !p.take("]") {
			return p.refuse("the lake cannot store arrays of a fixed size", "use a list")
		}
		if i >= maxTypeDepth {
			return p.refuse(fmt.Sprintf("it nests deeper than %d", maxTypeDepth), "")
		}
		t += "[]"
	}
	return t
}

// members reads the names and types of a struct up to its closing parenthesis.
func (p *typeParser) members(depth int) Type {
	var b strings.Builder
	for p.why == "" {
		name := p.identifier()
		if name == "" || p.at == len(p.text) || p.text[p.at] != ' ' {
			return p.refuse("a struct whose members have no names cannot travel in an answer", "name them")
		}
		p.space()
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + " " + string(p.parse(depth+1)))
		if !p.take(",") {
			p.expect(")")
			break
		}
	}
	return Type("STRUCT(" + b.String() + ")")
}

// identifier reads a member's name with its quotes, if it has any.
func (p *typeParser) identifier() string {
	start := p.at
	quoted := strings.HasPrefix(p.text[p.at:], `"`)
	if !quoted {
		for p.at < len(p.text) && !strings.ContainsRune(` ,()[]"`, rune(p.text[p.at])) {
			p.at++
		}
		return p.text[start:p.at]
	}
	for p.at++; p.at < len(p.text); p.at++ {
		if p.text[p.at] != '"' {
			continue
		}
		// A doubled quote is a quote within the name.
		if p.at++; p.at == len(p.text) || p.text[p.at] != '"' {
			return p.text[start:p.at]
		}
	}
	return ""
}

// word reads a scalar type's name with its arguments: up to what can follow a type.
func (p *typeParser) word() string {
	start, open := p.at, 0
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '(':
			open++
		case c == ')' && open > 0:
			open--
		case c == ')' || c == '[' || c == ',' && open == 0:
			return p.text[start:p.at]
		}
		p.at++
	}
	return p.text[start:p.at]
}
