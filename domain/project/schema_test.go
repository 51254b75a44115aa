package project

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestSchemasAreTheDecoders proves that each object of the schemas has exactly the keys that the decoder knows there: the decoder is asked
// for a key that nobody has, and names the ones it knows.
func TestSchemasAreTheDecoders(t *testing.T) {
	const odd = `"qqqqqqqqqqqqqqqqqqqq": 1`
	sql := func(head string) string { return "/*---\n" + head + "\n---*/\nSELECT 1 AS a" }
	at := func(kind string, path ...string) map[string]any {
		s, ok := Schema(kind)
		if !ok {
			t.Fatalf("no schema of %s", kind)
		}
		var v any = s
		for _, p := range path {
			switch p {
			case "items", "additionalProperties":
				v = v.(map[string]any)[p]
			case "object":
				// The object among alternatives.
				for _, x := range v.(map[string]any)["anyOf"].([]map[string]any) {
					if x["type"] == "object" {
						v = x
					}
				}
			default:
				v = v.(map[string]any)["properties"].(properties)[p]
			}
		}
		return v.(map[string]any)
	}
	check := func(body string) string { return sql(`{"checks": [{` + body + `}]}`) }
	for name, tc := range map[string]struct {
		path, content string
		schema        map[string]any
		// but are keys that the decoder knows there only sometimes.
		but []string
	}{
		"project":          {"leapview.yaml", `{` + odd + `}`, at("project"), nil},
		"source":           {"sources/s.yaml", `{` + odd + `}`, at("source"), nil},
		"source bounds":    {"sources/s.yaml", `{"bounds": {` + odd + `}}`, at("source", "bounds"), nil},
		"source column":    {"sources/s.yaml", `{"columns": {"a": {` + odd + `}}}`, at("source", "columns", "additionalProperties", "object"), nil},
		"model":            {"models/m.sql", sql(`{` + odd + `}`), at("model"), nil},
		"model column":     {"models/m.sql", sql(`{"columns": {"a": {` + odd + `}}}`), at("model", "columns", "additionalProperties", "object"), nil},
		"check":            {"models/m.sql", check(`"not_null": "a", ` + odd), at("model", "checks", "items"), nil},
		"row_count":        {"models/m.sql", check(`"row_count": {` + odd + `}`), at("model", "checks", "items", "row_count"), nil},
		"accepted_values":  {"models/m.sql", check(`"accepted_values": {` + odd + `}`), at("model", "checks", "items", "accepted_values"), nil},
		"range":            {"models/m.sql", check(`"range": {` + odd + `}`), at("model", "checks", "items", "range"), nil},
		"relationships":    {"models/m.sql", check(`"relationships": {` + odd + `}`), at("model", "checks", "items", "relationships"), nil},
		"freshness":        {"models/m.sql", check(`"freshness": {` + odd + `}`), at("model", "checks", "items", "freshness"), nil},
		"endpoint":         {"endpoints/e.sql", sql(`{` + odd + `}`), at("endpoint"), nil},
		"param":            {"endpoints/e.sql", sql(`{"params": {"p": {` + odd + `}}}`), at("endpoint", "params", "additionalProperties"), nil},
		"order_by":         {"endpoints/e.sql", sql(`{"order_by": {` + odd + `}}`), at("endpoint", "order_by"), nil},
		"endpoint columns": {"endpoints/e.sql", sql(`{"columns": {` + odd + `}}`), at("endpoint", "columns"), nil},
		"example":          {"endpoints/e.sql", sql(`{"examples": [{` + odd + `}]}`), at("endpoint", "examples", "items"), nil},
		"test":             {"tests/t.yaml", `{` + odd + `}`, at("test"), nil},
		"case of a model":  {"tests/t.yaml", `{"model": "m", "cases": [{` + odd + `}]}`, at("test", "cases", "items"), []string{"params", "ordered", "order_by", "columns", "limit"}},
		"case":             {"tests/t.yaml", `{"endpoint": "e", "cases": [{` + odd + `}]}`, at("test", "cases", "items"), nil},
	} {
		_, err := Decode([]File{{tc.path, []byte(tc.content)}}, jsonDocuments{})
		problems, _ := err.(Problems)
		var known []string
		for _, p := range problems {
			if strings.Contains(p.Message, "qqqqqqqqqqqqqqqqqqqq") {
				known = strings.Split(strings.TrimPrefix(p.Fix, "known are "), ", ")
			}
		}
		keys := slices.Collect(maps.Keys(tc.schema["properties"].(properties)))
		keys = slices.DeleteFunc(keys, func(k string) bool { return slices.Contains(tc.but, k) })
		slices.Sort(keys)
		slices.Sort(known)
		if !slices.Equal(keys, known) {
			t.Errorf("%s: the schema has %v, the decoder %v (%v)", name, keys, known, err)
		}
	}
	for _, kind := range SchemaKinds() {
		if s, ok := Schema(kind); !ok {
			t.Errorf("no schema of %s", kind)
		} else if _, err := json.Marshal(s); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, ok := Schema("poem"); ok {
		t.Error("there is a schema of poems")
	}
}
