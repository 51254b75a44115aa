package badprojects

import (
	"bytes"
	"encoding/json"
	"testing"
)

// dashboard gives the parameters of a query bundle by endpoint.
func dashboard(t *testing.T, text []byte) map[string]map[string]string {
	t.Helper()
	var bundle struct {
		Queries []struct {
			Name     string            `json:"name"`
			Endpoint string            `json:"endpoint"`
			Params   map[string]string `json:"params"`
		} `json:"queries"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&bundle); err != nil {
		t.Fatal(err)
	}
	asked := map[string]map[string]string{}
	names := map[string]bool{}
	for _, q := range bundle.Queries {
		if q.Name == "" || names[q.Name] {
			t.Errorf("query %q has no name of its own", q.Name)
		}
		names[q.Name] = true
		asked[q.Endpoint] = q.Params
	}
	return asked
}
