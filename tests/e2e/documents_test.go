package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSameDocuments proves that --json prints the same documents whether a running node or the command itself made them: the HTTP and the
// command-line rooms each have their own Go types for them, because neither may import the other.
func TestSameDocuments(t *testing.T) {
	printed := func(s shop, args ...string) string {
		t.Helper()
		r := run(t, s.args(append(args, "--json")...)...)
		text := r.out
		if text == "" {
			// Log lines come before the error.
			lines := strings.Split(strings.TrimSpace(r.errOut), "\n")
			text = lines[len(lines)-1]
		}
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, r.out, r.errOut)
		}
		return fmt.Sprintf("exit %d, %s", r.code, shape(doc))
	}
	alone, served := newShop(t), newShop(t)
	n := serve(t, served.data)
	same := func(args ...string) {
		t.Helper()
		if with, without := printed(served, args...), printed(alone, args...); with != without {
			t.Errorf("%q from a node\n%s\nwithout one\n%s", args, with, without)
		}
	}
	// Both deploy the same files; where the sources are is not compared.
	same("deploy", served.dir)
	same("refresh", "shop")
	same("status")
	same("status", "shop")
	same("status", "none")
	// What is only read is the same to the last byte, over one and the same directory.
	with := ok(t, served.args("status", "--json")...).out
	n.stop(t)
	if without := ok(t, served.args("status", "--json")...).out; with != without {
		t.Errorf("from a node\n%s\nwithout one\n%s", with, without)
	}
	n = serve(t, served.data)
	same("refresh", "shop", "--no-wait")
	n.stop(t)
}

// shape is a document with the kinds of its values in their place.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var fields []string
		for name, value := range v {
			fields = append(fields, name+" "+shape(value))
		}
		slices.Sort(fields)
		return "{" + strings.Join(fields, ", ") + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + shape(v[0]) + " …]"
	case nil:
		return "null"
	}
	return fmt.Sprintf("%T", v)
}
