package badprojects

import (
	"bytes"
	"encoding/json"
	"testing"

	"leapview/domain/project"
)

// dashboard gives the calls of a query bundle by endpoint.
func dashboard(t *testing.T, text []byte) map[string]project.Call {
	t.Helper()
	var bundle struct {
		Queries []struct {
			Name     string         `json:"name"`
			Endpoint string         `json:"endpoint"`
			Params   map[string]any `json:"params"`
			OrderBy  any            `json:"order_by"`
			Columns  any            `json:"columns"`
			Limit    any            `json:"limit"`
		} `json:"queries"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&bundle); err != nil {
		t.Fatal(err)
	}
	asked := map[string]project.Call{}
	names := map[string]bool{}
	for _, q := range bundle.Queries {
		if q.Name == "" || names[q.Name] {
			t.Errorf("query %q has no name of its own", q.Name)
		}
		names[q.Name] = true
		call := project.Call{Params: map[string]project.Given{}, OrderBy: given(t, q.OrderBy), Columns: given(t, q.Columns), Limit: given(t, q.Limit)}
		for name, v := range q.Params {
			call.Params[name] = given(t, v)
		}
		asked[q.Endpoint] = call
	}
	return asked
}

// given is a text or a list of texts.
func given(t *testing.T, v any) project.Given {
	t.Helper()
	var g project.Given
	switch x := v.(type) {
	case nil:
	case string:
		g = project.Texts(x)
	case []any:
		g.List = true
		for _, y := range x {
			g.Items = append(g.Items, given(t, y).Items...)
		}
	default:
		t.Fatalf("the dashboard gives %v, which is neither a text nor a list of them", v)
	}
	return g
}
