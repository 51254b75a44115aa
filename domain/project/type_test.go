package project

import (
	"strings"
	"testing"

	"leapview/domain/fail"
)

// Proves the canonical spelling of every declared type and its common aliases, and that a canonical spelling stays as it is.
func TestParseTypeIsCanonical(t *testing.T) {
	for in, want := range map[string]Type{
		"int": "INTEGER", "Int8": "BIGINT", "string": "VARCHAR", "TEXT": "VARCHAR", "bool": "BOOLEAN", "float8": "DOUBLE",
		"double  precision": "DOUBLE", "timestamptz": "TIMESTAMP WITH TIME ZONE", " timestamp with\ttime zone ": "TIMESTAMP WITH TIME ZONE",
		"datetime": "TIMESTAMP", "numeric( 10 , 2 )": "DECIMAL(10,2)", "decimal(38,38)": "DECIMAL(38,38)", "dec(5)": "DECIMAL(5,0)",
		"uint64": "UBIGINT", "bytea": "BLOB", "json": "JSON", "guid": "UUID",
	} {
		if got, err := ParseType(in); got != want || err != nil {
			t.Errorf("ParseType(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for alias, want := range scalars {
		for _, s := range []string{alias, string(want)} {
			if got, err := ParseType(s); got != want || err != nil {
				t.Errorf("ParseType(%q) = %q, %v; want %q", s, got, err, want)
			}
			if got, err := LakeType(s); got != want || err != nil {
				t.Errorf("LakeType(%q) = %q, %v; want %q", s, got, err, want)
			}
		}
	}
}

// Proves that a type which cannot be kept exactly is refused with the reason and what to use, and nonsense with a suggestion.
func TestParseTypeRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"HUGEINT": "use BIGINT or DECIMAL(38,0)", "uhugeint": "loses digits", "TIMETZ": "loses the offset", "TIME WITH TIME ZONE": "loses the offset",
		"INTERVAL": "microseconds", "real": "use DOUBLE", "FLOAT": "leaves rows out", "TIME_NS": "use TIME", "ENUM('a', 'b')": "use VARCHAR", "UNION(a INT)": "use JSON", "BIT": "cannot store",
		"BIGNUM": "cannot store", "TIMESTAMP_NS": "use TIMESTAMP", "INTEGER[]": "declare it as JSON", "INTEGER[3]": "declare it as JSON",
		"struct(a int)": "declare it as JSON", "MAP(VARCHAR, INT)": "declare it as JSON", "INTEGR": `did you mean "INTEGER"?`, "": "no such type",
		"DECIMAL": "needs its digits", "DECIMAL(": "needs its digits", "DECIMAL(39,2)": "1 to 38 digits", "DECIMAL(0)": "1 to 38 digits", "DECIMAL(5,6)": "0 to 5 can be fractional",
		"DECIMAL(5,-1)": "fractional", "DECIMAL(5,1,1)": "fractional", "VARCHAR(10)": "would ignore them", "INT; DROP TABLE x": "no such type",
		strings.Repeat("x", 10_000): "no such type",
	} {
		got, err := ParseType(in)
		if got != "" || fail.KindOf(err) != fail.Invalid || fail.CodeOf(err) != "bad_type" || !strings.Contains(err.Error(), says) || len(err.Error()) > 400 {
			t.Errorf("ParseType(%.40q) = %q, %v; want %q", in, got, err, says)
		}
	}
}

// Proves that a model's columns may nest what the lake keeps exactly, and that what it does not keep is found at any depth.
func TestLakeType(t *testing.T) {
	for in, want := range map[string]Type{
		"INTEGER[]": "INTEGER[]", "INTEGER[][]": "INTEGER[][]", "DECIMAL(10,2)[]": "DECIMAL(10,2)[]", "MAP(VARCHAR, DECIMAL(10,2))": "MAP(VARCHAR, DECIMAL(10,2))",
		`STRUCT(a INTEGER, "b c" VARCHAR, "q""x" DATE)`:                                          `STRUCT(a INTEGER, "b c" VARCHAR, "q""x" DATE)`,
		`STRUCT("a, b) INTEGER" TIMESTAMP WITH TIME ZONE[], m MAP(VARCHAR, STRUCT(x JSON)[]))[]`: `STRUCT("a, b) INTEGER" TIMESTAMP WITH TIME ZONE[], m MAP(VARCHAR, STRUCT(x JSON)[]))[]`,
		"struct( a int ,b text )": "STRUCT(a INTEGER, b VARCHAR)",
	} {
		if got, err := LakeType(in); got != want || err != nil {
			t.Errorf("LakeType(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"HUGEINT": "use BIGINT or DECIMAL(38,0): cast it, or declare it under columns:", "HUGEINT[]": "loses digits", "STRUCT(a INTEGER, b INTERVAL)": "microseconds",
		"MAP(VARCHAR, TIME_NS)": "cannot write", "INTEGER[3]": "fixed size", "ENUM('a', 'b')[]": "VARCHAR", "UNION(a INTEGER, b VARCHAR)": "cannot store",
		"STRUCT(INTEGER, VARCHAR)": "no names", "STRUCT()": "no names", `STRUCT("a INTEGER)`: "no names", `"NULL"`: "always NULL", "STRUCT(a INTEGER": `")" is missing`,
		"MAP(VARCHAR)": `"," is missing`, "MAP(VARCHAR, INTEGER": `")" is missing`, "INTEGER[]x": "does not belong", "INTEGER[": "fixed size", "STRUCT(a INTEGER))": "does not belong",
		"INTEGER" + strings.Repeat("[]", 40): "nests deeper", strings.Repeat("STRUCT(a ", 5000): "nests deeper",
	} {
		got, err := LakeType(in)
		if got != "" || fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("LakeType(%.40q) = %q, %v; want %q", in, got, err, says)
		}
	}
}

// Proves that no text makes the parsers panic, and that what they accept is canonical already.
func FuzzType(f *testing.F) {
	for _, s := range []string{"INTEGER[]", `STRUCT("a""b" MAP(VARCHAR, DECIMAL(3,1)))[]`, "timestamp with time zone", "ENUM('a)')", "STRUCT("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseType(s); err == nil {
			if again, err := ParseType(string(c)); again != c {
				t.Errorf("ParseType(%q) = %q, and again %q, %v", s, c, again, err)
			}
		}
		if c, err := LakeType(s); err == nil {
			if again, err := LakeType(string(c)); again != c {
				t.Errorf("LakeType(%q) = %q, and again %q, %v", s, c, again, err)
			}
		}
	})
}
