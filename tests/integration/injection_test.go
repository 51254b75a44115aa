package integration

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"leapview/adapters/http"
	"leapview/bootstrap"
	"leapview/domain/project"
	"leapview/tests/nodetest"
)

// TestInjection proves on a node of real parts that no text of a caller becomes SQL: whatever stands in any place of a call, the answer is
// that of a value or a refusal that the caller is to blame for, it is short, and the rows stay as they were.
func TestInjection(t *testing.T) {
	n := nodetest.Open(t, nodetest.Config(t, filepath.Join(t.TempDir(), "node")), bootstrap.Real())
	n.Write(t, nodetest.Order(1, "north", 10), nodetest.Order(2, "south", 20))
	files := append(nodetest.Files(), project.File{Path: "endpoints/free.sql", Content: []byte(`/*---
limit: 10
params:
  region: {type: string}
  regions: {type: string, list: true}
  at_least: {type: integer, default: 0}
  prices: {type: decimal, list: true}
order_by: {allow: [id, region], default: [-id]}
columns: {allow: [id, region]}
---*/
SELECT id, region FROM stg_orders
WHERE ($region IS NULL OR region = $region) AND ($regions IS NULL OR region IN (SELECT unnest($regions)))
  AND amount >= $at_least AND ($prices IS NULL OR list_contains($prices, amount))`)})
	n.Deploy(t, files)
	n.Refresh(t)
	server := http.New(n.Asker, n.Deployer, n.Refresher, n.Worker, n.Status, n.Keyring, n.Readiness, http.Options{}, slog.New(slog.DiscardHandler)).Handler(false)
	ask := func(method, path string, query url.Values, body any) (int, string) {
		var text []byte
		if body != nil {
			var err error
			if text, err = json.Marshal(body); err != nil {
				t.Fatal(err)
			}
		}
		req := httptest.NewRequest(method, "/", strings.NewReader(string(text)))
		req.Host = "127.0.0.1"
		req.URL.Path, req.URL.RawQuery = path, query.Encode()
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		rec := httptest.NewRecorder()
		server.ServeHTTP(rec, req)
		return rec.Code, rec.Body.String()
	}
	const workspace = "/v1/workspaces/shop"
	const free = workspace + "/endpoints/free"
	type object = map[string]any
	values := []string{
		`' OR 1=1 --`, `north' UNION SELECT 9, 'x' --`, `'; DROP TABLE lake.shop.stg_orders; --`, `id" DESC; DELETE FROM lake.shop.stg_orders; --`, `id" FROM stg_orders --`,
		`id DESC`, `id, (SELECT 1)`, `(SELECT id)`, `1`, `*`, `ALL`, `"id"`, `id;`, `-`, `--`, `--id`, `-"id"`, `/*`, `$region`, `$1`, `?`, `id' AS region`, "id\x00", "id\n", `ID`, ` id`,
		`read_text('/etc/passwd')`, `1)) OR ((1=1`, `{"id": 1}`, `[id]`, `\`, `\u0000`, `%27`, "\u202e", strings.Repeat("(", 4000), strings.Repeat("id,", 1000),
	}
	for _, v := range values {
		for place, send := range map[string]func() (int, string){
			"parameter in a query string": func() (int, string) { return ask("GET", free, url.Values{"region": {v}}, nil) },
			"list in a query string":      func() (int, string) { return ask("GET", free, url.Values{"regions": {v, v}}, nil) },
			"integer in a query string":   func() (int, string) { return ask("GET", free, url.Values{"at_least": {v}}, nil) },
			"decimals in a query string":  func() (int, string) { return ask("GET", free, url.Values{"prices": {"1", v}}, nil) },
			"name in a query string":      func() (int, string) { return ask("GET", free, url.Values{v: {"1"}}, nil) },
			"order_by in a query string":  func() (int, string) { return ask("GET", free, url.Values{"order_by": {v}}, nil) },
			"columns in a query string":   func() (int, string) { return ask("GET", free, url.Values{"columns": {v}}, nil) },
			"limit in a query string":     func() (int, string) { return ask("GET", free, url.Values{"limit": {v}}, nil) },
			"parameter in a body":         func() (int, string) { return ask("POST", free, nil, object{"params": object{"region": v}}) },
			"list in a body":              func() (int, string) { return ask("POST", free, nil, object{"params": object{"regions": []string{v}}}) },
			"name in a body":              func() (int, string) { return ask("POST", free, nil, object{"params": object{v: []string{v}}}) },
			"key of a body":               func() (int, string) { return ask("POST", free, nil, object{v: v}) },
			"order_by in a body":          func() (int, string) { return ask("POST", free, nil, object{"order_by": []string{"id", v}}) },
			"columns in a body":           func() (int, string) { return ask("POST", free, nil, object{"columns": []string{v}}) },
			"limit in a body":             func() (int, string) { return ask("POST", free, nil, object{"limit": v}) },
			"endpoint":                    func() (int, string) { return ask("GET", workspace+"/endpoints/"+v, nil, nil) },
			"described endpoint":          func() (int, string) { return ask("GET", workspace+"/endpoints/"+v+"/description", nil, nil) },
			"workspace":                   func() (int, string) { return ask("GET", "/v1/workspaces/"+v+"/endpoints/free", nil, nil) },
			"query of a bundle": func() (int, string) {
				return ask("POST", workspace+"/query-bundles", nil, object{"queries": []object{{"name": v, "endpoint": "free"}}})
			},
			"endpoint of a bundle": func() (int, string) {
				return ask("POST", workspace+"/query-bundles", nil, object{"queries": []object{{"name": "a", "endpoint": v}}})
			},
			"call of a bundle": func() (int, string) {
				return ask("POST", workspace+"/query-bundles", nil, object{"queries": []object{{"name": "a", "endpoint": "free", "params": object{"region": v, "regions": []string{v}}, "order_by": v, "columns": v}}})
			},
		} {
			code, body := send()
			nothing := strings.Contains(body, `"rows":[]`)
			asText := v == "1" && (strings.HasPrefix(place, "integer") || strings.HasPrefix(place, "decimals") || strings.HasPrefix(place, "limit"))
			// Only an answer without rows, or one that was asked for properly, is no refusal.
			if code == 200 && !nothing && !asText || code >= 500 || code < 400 && code != 200 || len(body) > 20_000 {
				t.Errorf("%.60q as %s: %d, %.300s", v, place, code, body)
			}
			if strings.Contains(body, "passwd") && strings.Contains(body, "root:") {
				t.Errorf("%q as %s reads a file", v, place)
			}
		}
	}
	if got := n.Ask(t, "orders", nil); got != `[[1,"north",10],[2,"south",20]]` {
		t.Errorf("the rows are %s", got)
	}
	if code, body := ask("GET", free, url.Values{"regions": {"south", "north"}, "order_by": {"region,-id"}, "columns": {"region"}, "limit": {"1"}}, nil); code != 200 || !strings.Contains(body, `"rows":[["north"]]`) {
		t.Errorf("%d, %s", code, body)
	}
}
