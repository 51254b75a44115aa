package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// canary is a text that is given wherever a caller may put a secret, and must come out nowhere.
const canary = "canary7secret7canary7"

// outputs is all that anybody was told, by the place where it was.
type outputs map[string]string

// TestSecretsAreNowhere proves that neither a key nor a text given in a key's place is anywhere afterwards: not in what a command printed
// but for the one that made the key, not in an answer, the log, the audit, the bundle, nor any file of the data directory, while the
// node runs and after its end. The run has deploys, refreshes that succeed and fail, questions, refusals, and keys made and revoked,
// with and without a running node.
func TestSecretsAreNowhere(t *testing.T) {
	s := newShop(t)
	said := outputs{}
	command := func(name string, args ...string) ran {
		r := run(t, s.args(args...)...)
		said["leapview "+name+" "+strings.Join(args, " ")] = r.out + r.errOut
		return r
	}
	create := func(args ...string) string {
		r := ok(t, s.args(append([]string{"key", "create", "--json"}, args...)...)...)
		said["stderr of leapview key create"] += r.errOut
		var made struct{ Key string }
		if err := json.Unmarshal([]byte(r.out), &made); err != nil || !strings.HasPrefix(made.Key, "lvk_") {
			t.Fatalf("%v: %s", err, r.out)
		}
		return made.Key
	}
	command("before", "deploy", s.dir)
	command("before", "refresh", "shop")
	keys := []string{create("--role", "operator", "--label", "before the node"), create("--role", "viewer", "--workspace", "shop")}

	n := serve(t, s.data, "-v")
	keys = append(keys, create("--role", "analyst", "--expires", "1h"))
	operator, viewer, analyst := keys[0], keys[1], keys[2]
	ask := func(what, method, path, body string, headers ...string) int {
		t.Helper()
		req, err := http.NewRequest(method, n.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Add(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var header bytes.Buffer
		if err := resp.Header.Write(&header); err != nil {
			t.Fatal(err)
		}
		said["answer to "+what+" "+method+" "+path[:min(len(path), 40)]] = header.String() + string(text)
		return resp.StatusCode
	}
	const auth, endpoint = "Authorization", "/v1/workspaces/shop/endpoints/orders"
	refreshes, bundles := "/v1/workspaces/shop/refreshes", "/v1/workspaces/shop/query-bundles"
	for _, c := range []struct {
		what, method, path, body string
		want                     int
		headers                  []string
	}{
		{"operator", "GET", endpoint, "", 200, []string{auth, "Bearer " + operator}},
		{"viewer", "GET", endpoint, "", 200, []string{auth, "Bearer " + viewer}},
		{"analyst", "POST", bundles, `{"queries":[{"name":"a","endpoint":"orders"}]}`, 200, []string{auth, "Bearer " + analyst}},
		{"analyst, wrongly", "POST", bundles, `{"queries":1}`, 400, []string{auth, "Bearer " + analyst}},
		{"viewer", "POST", refreshes, "", 403, []string{auth, "Bearer " + viewer}},
		{"viewer", "GET", "/v1/workspaces/other/status", "", 404, []string{auth, "Bearer " + viewer}},
		{"operator", "POST", refreshes, "", 202, []string{auth, "Bearer " + operator}},
		{"operator", "GET", "/v1/keys", "", 200, []string{auth, "Bearer " + operator}},
		{"no key", "POST", refreshes, "", 401, nil},
		{"canary as key", "POST", refreshes, "", 401, []string{auth, "Bearer lvk_" + canary}},
		{"canary as password", "POST", refreshes, "", 401, []string{auth, "Basic " + canary}},
		{"a mistyped key", "POST", refreshes, "", 401, []string{auth, "Bearer " + operator[:len(operator)-1] + "x"}},
		{"two keys", "POST", refreshes, "", 401, []string{auth, "Bearer " + operator, auth, "Bearer " + canary}},
		{"a key in a cookie", "GET", endpoint, "", 401, []string{"Cookie", "key=" + canary}},
		{"a key in the query string", "GET", endpoint + "?key=" + canary, "", 401, nil},
		{"a key of an unknown path", "DELETE", "/v1/keys/" + canary, "", 400, []string{auth, "Bearer " + operator}},
	} {
		if got := ask(c.what, c.method, c.path, c.body, c.headers...); got != c.want {
			t.Errorf("%s: %s %s: %d, want %d", c.what, c.method, c.path, got, c.want)
		}
	}
	s.write(t, "orders.csv", "id,region,amount\n1,north,10\n1,south,20\n")
	if r := command("failing", "refresh", "shop"); r.code != 2 {
		t.Errorf("the refresh that fails exits with %d", r.code)
	}
	command("listing", "key", "list")
	command("mistaken", "key", "revoke", canary)
	command("revoking", "key", "revoke", viewer[4:12])
	if got := ask("revoked", "GET", endpoint, "", auth, "Bearer "+viewer); got != 401 {
		t.Errorf("the revoked key is answered with %d", got)
	}
	said.search(t, "while the node runs", s, keys)
	if code := n.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	said["the node's log"], said["the node's curl line"] = n.errOut.String(), n.hint
	if !strings.Contains(said["the node's log"], "request failed") || !strings.Contains(said["the node's log"], "key:"+operator[4:12]) {
		t.Errorf("the log tells too little to prove anything:\n%s", said["the node's log"])
	}
	command("after", "key", "list", "--json")
	command("after", "key", "revoke", operator[4:12])
	command("after", "status", "-v", "--json")
	said.search(t, "after the node's end", s, keys)
}

// search looks for every secret in all outputs and in every file below the shop's data.
func (o outputs) search(t *testing.T, when string, s shop, keys []string) {
	t.Helper()
	secrets := []string{canary}
	for _, k := range keys {
		// A key's id is no secret; every part of what follows it is.
		body := k[len("lvk_12345678_"):]
		secrets = append(secrets, body[:20], body[20:40])
	}
	look := func(where string, text []byte) {
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s, %s holds the secret %q", when, where, secret)
			}
		}
	}
	for where, text := range o {
		look(where, []byte(text))
	}
	files := 0
	err := filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			files++
			look(path, text)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%s: %d files were read, %v", when, files, err)
	}
}
