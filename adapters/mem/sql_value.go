package mem

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"leapview/domain/project"
)

// value is NULL (nil), int64, *big.Int (a sum of integers), float64, bool, string or date.
type value any

// date is a day in ISO form, so that days sort as text.
type date string

// integers are the integer types with their number of bits.
var integers = map[project.Type]int{"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}

func isInteger(t project.Type) bool { return integers[t] != 0 }

// supported tells whether the store has columns of this type.
func supported(t project.Type) bool {
	return isInteger(t) || slices.Contains([]project.Type{"VARCHAR", "BOOLEAN", "DATE", "DOUBLE"}, t)
}

var (
	integerForm = regexp.MustCompile(`^[+-]?[0-9]+$`)
	numberForm  = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// parseValue reads text as a value of a supported type. It accepts one spelling where the engine may accept several.
func parseValue(text string, t project.Type) (value, error) {
	switch {
	case isInteger(t):
		if !integerForm.MatchString(text) {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		n, err := strconv.ParseInt(text, 10, integers[t])
		if err != nil {
			return nil, fmt.Errorf("%s is out of the range of %s", text, t)
		}
		return n, nil
	case t == "DOUBLE":
		if !numberForm.MatchString(text) {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is out of the range of DOUBLE", text)
		}
		return f, nil
	case t == "BOOLEAN":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return text == "true", nil
	case t == "DATE":
		if d, err := time.Parse(time.DateOnly, text); err != nil || d.Year() < 1 {
			return nil, fmt.Errorf("%q is not a day written as YYYY-MM-DD", text)
		}
		return date(text), nil
	case t == "VARCHAR":
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, fmt.Errorf("%q is not text in UTF-8", text)
		}
		return text, nil
	}
	return nil, fmt.Errorf("the in-memory store does not have the type %s", t)
}

// compare orders two values of kinds that bind lets meet; neither is NULL.
func compare(a, b value) int {
	switch x := a.(type) {
	case int64:
		return cmp.Compare(x, b.(int64))
	case *big.Int:
		return x.Cmp(b.(*big.Int))
	case float64:
		return cmp.Compare(x, b.(float64))
	case bool:
		switch {
		case x == b.(bool):
			return 0
		case x:
			return 1
		}
		return -1
	case date:
		return strings.Compare(string(x), string(b.(date)))
	}
	return strings.Compare(a.(string), b.(string))
}

// accumulate folds one more value into what sum, min or max has gathered; NULLs do not count.
func accumulate(fn string, gathered, v value) value {
	if v == nil {
		return gathered
	}
	if fn == "sum" {
		if f, ok := v.(float64); ok {
			if gathered != nil {
				f += gathered.(float64)
			}
			return f
		}
		sum := big.NewInt(v.(int64))
		if gathered != nil {
			sum.Add(sum, gathered.(*big.Int))
		}
		return sum
	}
	if gathered == nil || fn == "min" && compare(v, gathered) < 0 || fn == "max" && compare(v, gathered) > 0 {
		return v
	}
	return gathered
}

// castable tells whether the store casts between the types: to itself, from any integer to any other, to DOUBLE and to VARCHAR.
func castable(from, to project.Type) bool {
	if from == to {
		return supported(to)
	}
	return (isInteger(from) || from == hugeint) && (isInteger(to) || to == "DOUBLE" || to == "VARCHAR")
}

// cast turns v into a value of type t, which is castable from v's own.
func cast(v value, t project.Type) (value, error) {
	var n *big.Int
	switch x := v.(type) {
	case int64:
		n = big.NewInt(x)
	case *big.Int:
		n = x
	default:
		return v, nil
	}
	switch {
	case t == "DOUBLE":
		f, _ := new(big.Float).SetInt(n).Float64()
		return f, nil
	case t == "VARCHAR":
		return n.String(), nil
	}
	limit := int64(math.MaxInt64) >> (64 - integers[t])
	if !n.IsInt64() || n.Int64() > limit || n.Int64() < -limit-1 {
		return nil, fmt.Errorf("%s is out of the range of %s", n, t)
	}
	return n.Int64(), nil
}

// encodeRow writes the row as a JSON array by the rules of serving.Answer.
func encodeRow(row []value) []byte {
	b, err := json.Marshal(row)
	if err != nil {
		// Texts, booleans and finite numbers always marshal: parseValue admits no others, and fold refuses a sum that overflows.
		panic(err)
	}
	return b
}
