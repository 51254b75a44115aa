package gate

import (
	"slices"
	"strings"
)

// volatile are the functions that give other values at other times, besides those whose names begin with current_. A test compares the list
// with what the engine says of its functions.
var volatile = set("ago", "gen_random_uuid", "get_current_time", "get_current_timestamp", "localtime", "localtimestamp", "now", "random", "setseed",
	"today", "transaction_timestamp", "uuid", "uuidv4", "uuidv7")

// Volatile tells whether the statement may give other rows at another time although everything that it reads is the same: it asks for the
// time or for a random value, or takes a sample.
func (s *Statement) Volatile() bool { return anyVolatile(s.root) }

func anyVolatile(v any) bool {
	switch x := v.(type) {
	case []any:
		return slices.ContainsFunc(x, anyVolatile)
	case tree:
		if volatileNode(x) {
			return true
		}
		for _, y := range x {
			if anyVolatile(y) {
				return true
			}
		}
	}
	return false
}

func volatileNode(o tree) bool {
	switch o["class"] {
	case "FUNCTION", "WINDOW":
		name, _ := o["function_name"].(string)
		children, _ := o["children"].([]any)
		// age of one value is its distance to today.
		return volatileName(name) || lower(name) == "age" && len(children) == 1
	case "COLUMN_REF":
		// The engine takes these for functions where no column is called like them.
		names, _ := o["column_names"].([]any)
		if len(names) == 1 {
			name, _ := names[0].(string)
			return volatileName(name)
		}
		return false
	}
	return o["sample"] != nil
}

func volatileName(name string) bool {
	name = lower(name)
	return volatile[name] || strings.HasPrefix(name, "current_")
}
