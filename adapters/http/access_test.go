package http

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// sample is how a route is asked with success, and the least that it takes, said once more and independently of the code: the role,
// and whether the grant must be over the whole node.
type sample struct {
	query, body string
	header      map[string]string
	success     int
	least       access.Role
	node        bool
}

// samples are of every route that there is.
var samples = map[string]sample{
	"GET /livez":                                                    {success: 200},
	"GET /readyz":                                                   {success: 200},
	"GET /v1/workspaces":                                            {success: 200, least: access.Viewer},
	"GET /v1/workspaces/:workspace/status":                          {success: 200, least: access.Viewer},
	"GET /v1/workspaces/:workspace/endpoints":                       {success: 200, least: access.Viewer},
	"GET /v1/workspaces/:workspace/endpoints/:endpoint":             {success: 200, least: access.Viewer},
	"POST /v1/workspaces/:workspace/endpoints/:endpoint":            {success: 200, least: access.Viewer},
	"POST /v1/workspaces/:workspace/query-bundles":                  {body: `{"queries":[{"name":"a","endpoint":"by_carrier"}]}`, success: 200, least: access.Viewer},
	"GET /v1/workspaces/:workspace/runs":                            {success: 200, least: access.Viewer},
	"GET /v1/workspaces/:workspace/runs/:run":                       {success: 200, least: access.Viewer},
	"POST /v1/workspaces/:workspace/refreshes":                      {header: map[string]string{"Idempotency-Key": "matrix"}, success: 202, least: access.Operator},
	"POST /v1/plans":                                                {body: "bundle", success: 200, least: access.Operator, node: true},
	"POST /v1/deployments":                                          {query: "?source_root=/data", body: "bundle", success: 201, least: access.Operator, node: true},
	"GET /v1/keys":                                                  {success: 200, least: access.Operator, node: true},
	"POST /v1/keys":                                                 {body: `{"role":"viewer"}`, success: 201, least: access.Operator, node: true},
	"DELETE /v1/keys/:key":                                          {success: 200, least: access.Operator, node: true},
	"GET /v1/workspaces/:workspace/endpoints/:endpoint/description": {success: 200, least: access.Viewer},
}

var rank = map[access.Role]int{"": 0, access.Viewer: 1, access.Analyst: 2, access.Operator: 3}

// door is one kind of caller.
type door struct {
	name  string
	role  access.Role
	only  serving.Workspace
	key   string
	local bool
	// code is that of the refusal that this caller meets whatever it asks; empty when its rights decide.
	code string
}

// doors are the callers of the matrix, each with its key.
func (w *world) doors() []door {
	w.t.Helper()
	make := func(role access.Role, only serving.Workspace, lifetime time.Duration) (access.Key, string) {
		key, secret, err := w.keyring.Create(context.Background(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: role, Workspace: only}, Lifetime: lifetime})
		if err != nil {
			w.t.Fatal(err)
		}
		return key, secret.Reveal()
	}
	doors := []door{{name: "no key", code: "key_required"}, {name: "no key, over the socket", local: true, role: access.Operator}}
	for _, role := range []access.Role{access.Viewer, access.Analyst, access.Operator} {
		for _, only := range []serving.Workspace{"", "flights", "other"} {
			_, key := make(role, only, 0)
			name := fmt.Sprintf("%s of %q", role, only)
			doors = append(doors, door{name: name, role: role, only: only, key: key}, door{name: name + ", over the socket", role: role, only: only, key: key, local: true})
		}
	}
	revoked, revokedKey := make(access.Operator, "", 0)
	if _, err := w.keyring.Revoke(context.Background(), access.Local.Caller(""), revoked.ID); err != nil {
		w.t.Fatal(err)
	}
	_, expiredKey := make(access.Operator, "", time.Hour)
	w.clock.Set(w.clock.Now().Add(2 * time.Hour))
	for _, local := range []bool{false, true} {
		doors = append(doors,
			door{name: "revoked", key: revokedKey, code: "key_revoked", local: local},
			door{name: "expired", key: expiredKey, code: "key_expired", local: local},
			door{name: "mistyped", key: expiredKey[:60] + "x" + expiredKey[61:], code: "key_mistyped", local: local},
			door{name: "unknown", key: access.NewSecret("abcdefgh", [32]byte{1}).Reveal(), code: "key_unknown", local: local},
			door{name: "no key at all", key: "password", code: "key_malformed", local: local})
	}
	return doors
}

// TestMatrix proves what every route answers every caller, about the workspace of its key, another one and one that does not exist. The
// routes are those that the router has: a route without an action, or without a sample here, fails it.
func TestMatrix(t *testing.T) {
	w := newWorld(t)
	w.activate()
	w.activateNamed("other")
	doors := w.doors()
	spare, _, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	w.spare = spare.ID
	for _, local := range []bool{false, true} {
		routes := w.server.Handler(local).(*echo.Echo).Routes()
		if len(routes) < 10 {
			t.Fatalf("the router has %d routes", len(routes))
		}
		for _, route := range routes {
			declared := access.Action("")
			for _, r := range table {
				if r.path == route.Path && (r.method == route.Method || r.method == "GET" && route.Method == "HEAD") {
					declared = r.action
				}
			}
			if declared == "" {
				t.Errorf("%s %s has no action", route.Method, route.Path)
				continue
			}
			s, known := samples[strings.Replace(route.Method, "HEAD", "GET", 1)+" "+route.Path]
			if !known {
				t.Errorf("%s %s has no sample in this test: say what it takes", route.Method, route.Path)
				continue
			}
			for _, d := range doors {
				if d.local != local {
					continue
				}
				if !strings.Contains(route.Path, ":workspace") {
					w.expect(route, s, d, "")
					continue
				}
				for _, about := range []serving.Workspace{"flights", "other", "nowhere"} {
					w.expect(route, s, d, about)
				}
			}
		}
	}
}

// want is the status and the code that the caller must get; no code is success.
func want(s sample, d door, about serving.Workspace) (int, string) {
	switch {
	case s.least == "":
		return s.success, ""
	case d.code != "":
		return 401, d.code
	case about != "" && d.only != "" && d.only != about:
		return 404, "unknown_workspace"
	case rank[d.role] < rank[s.least]:
		return 403, "role_too_low"
	case s.node && d.only != "":
		return 403, "workspace_key"
	case about == "nowhere":
		// Whoever sees all workspaces is told by the use case that this one is not there; which code it has is its matter.
		return 0, ""
	}
	return s.success, ""
}

// expect asks once.
func (w *world) expect(route *echo.Route, s sample, d door, about serving.Workspace) {
	w.t.Helper()
	status, code := want(s, d, about)
	run := w.runs[about]
	if run == "" {
		run = w.runs["flights"]
	}
	path := strings.NewReplacer(":workspace", string(about), ":endpoint", "by_carrier", ":run", run, ":key", string(w.spare)).Replace(route.Path) + s.query
	body := []byte(s.body)
	if s.body == "bundle" {
		body = w.bundle(goodModel)
	}
	header := map[string]string{}
	for k, v := range s.header {
		header[k] = v
	}
	if d.key != "" {
		header["Authorization"] = "Bearer " + d.key
	}
	// How failures are slowed down is not what this is about: time passes, and nobody waits to be told of one.
	w.clock.Set(w.clock.Now().Add(time.Minute))
	rec := w.send(exchange{method: route.Method, path: path, header: header, body: body, local: d.local, gone: d.code != ""})
	what := fmt.Sprintf("%s %s about %q by %s (local %v)", route.Method, route.Path, about, d.name, d.local)
	if status == 0 {
		if rec.Code != 404 && rec.Code != 409 {
			w.t.Errorf("%s: %d, want 404 or 409", what, rec.Code)
		}
		return
	}
	if rec.Code != status {
		w.t.Errorf("%s: %d, want %d: %s", what, rec.Code, status, rec.Body)
	}
	if (rec.Header().Get("WWW-Authenticate") != "") != (status == 401) {
		w.t.Errorf("%s: WWW-Authenticate %q", what, rec.Header().Get("WWW-Authenticate"))
	}
	var doc struct{ Code string }
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || doc.Code != code {
		w.t.Errorf("%s: code %q, want %q (%v)", what, doc.Code, code, err)
	}
}

// TestForbiddenIsLikeUnknown proves, for every route of a workspace, that a key which sees only another one is answered byte for byte
// the same about a workspace that exists and one that does not, and that nothing is looked up for either.
func TestForbiddenIsLikeUnknown(t *testing.T) {
	w := newWorld(t)
	w.activate()
	w.activateNamed("other")
	w.gens.MarkBroken("other", fail.New(fail.Corrupt, "snapshot_missing", "snapshot 2 is gone"))
	_, secret, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Operator, Workspace: "flights"}})
	if err != nil {
		t.Fatal(err)
	}
	// Neither the control plane nor any generation may be asked: with both gone, whoever asks them meets a defect.
	w.server.status, w.server.asker, w.server.refresher = nil, nil, nil
	for _, r := range table {
		if !strings.Contains(r.path, ":workspace") {
			continue
		}
		ask := func(workspace string) *httptest.ResponseRecorder {
			path := strings.NewReplacer(":workspace", workspace, ":endpoint", "by_carrier", ":run", w.runs["other"]).Replace(r.path)
			return w.send(exchange{method: r.method, path: path, body: []byte(samples[r.method+" "+r.path].body), header: map[string]string{"Authorization": "bearer  " + secret.Reveal()}})
		}
		forbidden, unknown := ask("other"), ask("nowhere")
		if forbidden.Code != 404 || forbidden.Code != unknown.Code || forbidden.Body.String() != unknown.Body.String() || !reflect.DeepEqual(forbidden.Header(), unknown.Header()) {
			t.Errorf("%s %s: forbidden %d %v\n%s\nunknown %d %v\n%s", r.method, r.path, forbidden.Code, forbidden.Header(), forbidden.Body, unknown.Code, unknown.Header(), unknown.Body)
		}
	}
}

// TestViewersSeeNoRows proves that rows which failed a check, and messages that may quote rows, are told to analysts and operators, and
// not to viewers, who are told that the run failed and with which code.
func TestViewersSeeNoRows(t *testing.T) {
	w := newWorld(t)
	w.activateNamed("other")
	if _, err := w.deployer.Deploy(t.Context(), w.bundle("/*---\n{\"checks\": [{\"accepted_values\": {\"column\": \"carrier\", \"values\": [\"AA\"]}}]}\n---*/\n"+goodModel), "/data", access.Local.Caller("")); err != nil {
		t.Fatal(err)
	}
	run, err := w.refresher.Request(t.Context(), "flights", "", access.Local.Caller(""))
	if err != nil {
		t.Fatal(err)
	}
	w.work(run.ID)
	for _, d := range w.doors() {
		if d.code != "" || d.only == "other" {
			continue
		}
		var doc struct {
			Failure struct{ Code, Message string }
		}
		rec := w.send(exchange{method: "GET", path: "/v1/workspaces/flights/runs/" + string(run.ID), local: d.local, header: d.header()})
		if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || doc.Failure.Code != "checks_failed" {
			t.Fatalf("%s: %v %s", d.name, err, rec.Body)
		}
		if told, want := strings.Contains(doc.Failure.Message, "daily"), d.role != access.Viewer; told != want {
			t.Errorf("%s is told why: %v, want %v: %s", d.name, told, want, rec.Body)
		}
	}
	doc := runStepsDoc{Checks: []checkDoc{{Model: "daily", Sample: json.RawMessage(`{}`)}}, Steps: []stepDoc{{Warning: "the file has a column", Reason: "x.csv is new"}}}
	if doc.hideRows(); doc.Checks[0].Sample != nil || doc.Steps[0].Warning != "" || doc.Steps[0].Reason != "" || doc.Checks[0].Model != "daily" || doc.Failure != nil {
		t.Errorf("hidden: %+v", doc)
	}
}

// TestListIsFiltered proves that a key lists the workspaces that it sees and no other.
func TestListIsFiltered(t *testing.T) {
	w := newWorld(t)
	w.activate()
	w.activateNamed("other")
	for _, d := range w.doors() {
		if d.code != "" {
			continue
		}
		rec := w.send(exchange{method: "GET", path: "/v1/workspaces", local: d.local, header: d.header()})
		for _, name := range []serving.Workspace{"flights", "other"} {
			if listed := strings.Contains(rec.Body.String(), string(name)); listed != (d.only == "" || d.only == name) {
				t.Errorf("%s is told of %s: %v", d.name, name, listed)
			}
		}
	}
}

func (d door) header() map[string]string {
	if d.key == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + d.key}
}

// TestRefusedChangesAreTold proves that the audit tells of each refused change by whom, what, to what and through which request it was,
// that a refused question is not told, and that the requests that were let in are told under their principals.
func TestRefusedChangesAreTold(t *testing.T) {
	w := newWorld(t)
	w.activate()
	key, secret, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	operator, operatorSecret, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Operator}})
	if err != nil {
		t.Fatal(err)
	}
	before := len(w.control.Audit())
	viewer := map[string]string{"Authorization": "Bearer " + secret.Reveal()}
	const refreshes = "/v1/workspaces/flights/refreshes"
	for _, e := range []exchange{
		{method: "POST", path: refreshes, header: viewer},
		{method: "POST", path: refreshes},
		{method: "POST", path: refreshes, header: map[string]string{"Authorization": "Bearer lvk_x"}},
		{method: "POST", path: refreshes, header: map[string]string{"Origin": "https://evil.example"}},
		{method: "POST", path: refreshes, header: map[string]string{"Host": "evil.example"}},
		{method: "POST", path: "/v1/workspaces/" + strings.Repeat("x", 70) + "/refreshes", header: viewer},
		{method: "DELETE", path: "/v1/keys/" + string(key.ID), header: viewer},
		{method: "POST", path: "/v1/keys", header: viewer},
		{method: "POST", path: "/v1/deployments?source_root=/", header: viewer, local: true},
		{method: "GET", path: "/v1/keys", header: viewer},
		{method: "GET", path: "/v1/workspaces"},
		{method: "POST", path: refreshes, header: map[string]string{"Authorization": "Bearer " + operatorSecret.Reveal()}},
	} {
		w.send(e)
	}
	viewerName := key.Principal().Name
	var got []string
	for _, row := range w.control.Audit()[before:] {
		if row.Request != "req-1" {
			t.Errorf("%+v names another request", row)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %s", row.Principal, row.Action, row.Target, row.Outcome, row.Detail))
	}
	want := []string{
		viewerName + ` refresh flights denied {"code":"role_too_low"}`,
		`anonymous refresh flights denied {"code":"key_required"}`,
		`anonymous refresh flights denied {"code":"key_mistyped"}`,
		`anonymous refresh flights denied {"code":"cross_origin"}`,
		`anonymous refresh flights denied {"code":"unknown_host"}`,
		viewerName + ` revoke_key /keys denied {"code":"role_too_low"}`,
		viewerName + ` create_key /keys denied {"code":"role_too_low"}`,
		viewerName + ` deploy /deployments denied {"code":"role_too_low"}`,
		operator.Principal().Name + ` run_requested flights/runs/id000000000000000000000006 ok {}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(w.log.String(), "principal="+viewerName) || !strings.Contains(w.log.String(), "principal=anonymous") {
		t.Errorf("the log names no principals:\n%s", w.log)
	}
}

// TestNoAuditBeforeProof proves that a refused change is not written into stores that were not proved.
func TestNoAuditBeforeProof(t *testing.T) {
	w := newWorld(t)
	w.ready.Set(fail.New(fail.Corrupt, "lineage_mismatch", "the catalog is of another lake"))
	w.send(exchange{method: "POST", path: "/v1/workspaces/flights/refreshes", header: map[string]string{"Origin": "https://evil.example"}})
	if rows := w.control.Audit(); len(rows) != 0 {
		t.Errorf("told %+v", rows)
	}
}

// TestAuthorization proves how a key is shown: one header, the scheme in any case, and nothing else.
func TestAuthorization(t *testing.T) {
	w := newWorld(t)
	w.activate()
	get := func(headers ...string) int {
		req := httptest.NewRequest("GET", "/v1/workspaces", nil)
		req.Host = "localhost"
		for _, h := range headers {
			req.Header.Add("Authorization", h)
		}
		rec := httptest.NewRecorder()
		w.server.Handler(false).ServeHTTP(rec, req)
		return rec.Code
	}
	if got := get(); got != 200 {
		t.Errorf("while there is no key: %d", got)
	}
	if got := get("Bearer lvk_x"); got != 401 {
		t.Errorf("a bad key while there is none: %d", got)
	}
	_, secret, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	k := secret.Reveal()
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{[]string{"Bearer " + k}, 200}, {[]string{"bearer " + k}, 200}, {[]string{"Bearer  " + k + " "}, 200},
		{nil, 401}, {[]string{""}, 401}, {[]string{k}, 401}, {[]string{"Basic " + k}, 401}, {[]string{"Bearer"}, 401},
		{[]string{"Bearer " + k, "Bearer " + k}, 401}, {[]string{"Bearer " + k + " " + k}, 401},
	} {
		if got := get(c.headers...); got != c.want {
			t.Errorf("%q: %d, want %d", c.headers, got, c.want)
		}
	}
}

// TestTooManyFailures proves that an address which shows too many bad keys is refused with 429 and the time to come back, counted by
// IPv4 address and by IPv6 network, while others are not.
func TestTooManyFailures(t *testing.T) {
	w := newWorld(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// Who went away is not waited for, which makes this quick.
	try := func(from string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(ended, "GET", "/v1/workspaces", nil)
		req.Host, req.RemoteAddr = "localhost", from
		req.Header.Set("Authorization", "Bearer lvk_x")
		rec := httptest.NewRecorder()
		w.server.Handler(false).ServeHTTP(rec, req)
		return rec
	}
	for range 12 {
		try("192.0.2.1:1000")
		try("[2001:db8::1]:1000")
	}
	for from, want := range map[string]int{"192.0.2.1:2000": 429, "[::ffff:192.0.2.1]:5": 429, "192.0.2.2:1000": 401, "[2001:db8::2]:1": 429, "[2001:db8:0:1::1]:1": 401} {
		rec := try(from)
		if rec.Code != want {
			t.Errorf("from %s: %d, want %d", from, rec.Code, want)
		}
		if want == 429 && (rec.Header().Get("Retry-After") == "" || rec.Header().Get("Retry-After") == "0" || !strings.Contains(rec.Body.String(), "too_many_failures")) {
			t.Errorf("from %s: Retry-After %q, %s", from, rec.Header().Get("Retry-After"), rec.Body)
		}
	}
}

// TestHosts proves that beside the loopback names a node answers for the address that a request came in at and for the names that it
// was given, and for nothing else.
func TestHosts(t *testing.T) {
	w := newWorld(t)
	w.server = New(w.server.asker, w.deployer, w.refresher, w.worker, w.server.status, w.keyring, w.ready, Options{Hosts: []string{"Data.example.org", "192.0.2.9"}}, w.server.log)
	for host, want := range map[string]int{"data.example.org": 200, "DATA.example.org:443": 200, "192.0.2.9:8080": 200, "192.0.2.1:8080": 200, "[::ffff:192.0.2.1]:8080": 200,
		"localhost": 200, "192.0.2.2:8080": 421, "example.org": 421, "data.example.org.evil.example": 421, "0.0.0.0:8080": 421, "": 421} {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:8080"))
		req := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at), "GET", "/livez", nil)
		req.Host = host
		rec := httptest.NewRecorder()
		w.server.Handler(false).ServeHTTP(rec, req)
		if rec.Code != want {
			t.Errorf("host %q: %d, want %d", host, rec.Code, want)
		}
	}
}

// TestUnreadinessIsNotToldToAll proves that why a node is not ready, which may name workspaces, is told to whoever sees all of them: over
// TCP neither to who shows no key once keys are needed, nor to who shows one that is for another workspace.
func TestUnreadinessIsNotToldToAll(t *testing.T) {
	w := newWorld(t)
	w.activate()
	w.activateNamed("other")
	_, limited, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Operator, Workspace: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	_, whole, err := w.keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	w.ready.Set(fail.New(fail.Corrupt, "pointer_lost", "workspace flights lost its snapshot"))
	for _, c := range []struct {
		path, key   string
		local, told bool
	}{
		{"/readyz", "", false, false}, {"/readyz", whole.Reveal(), false, false}, {"/readyz", "", true, true},
		{"/v1/workspaces", limited.Reveal(), false, false}, {"/v1/workspaces", whole.Reveal(), false, true}, {"/v1/workspaces", "", true, true},
	} {
		rec := w.send(exchange{method: "GET", path: c.path, local: c.local, header: door{key: c.key}.header()})
		if rec.Code != 503 || strings.Contains(rec.Body.String(), "flights") != c.told {
			t.Errorf("%+v: %d %s", c, rec.Code, rec.Body)
		}
	}
}

// TestKeysOverHTTP proves the life of a key over the API, word for word: made, listed without its text, used, revoked, refused.
func TestKeysOverHTTP(t *testing.T) {
	w := newWorld(t)
	w.activate()
	var got strings.Builder
	say := func(name string, e exchange) *httptest.ResponseRecorder {
		rec := w.send(e)
		var pretty map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &pretty); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(pretty, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "# %s\n%s %s %s\n%d %s\n%s\n\n", name, e.method, e.path, e.body, rec.Code, rec.Header().Get("WWW-Authenticate"), text)
		return rec
	}
	post := func(body string) exchange {
		return exchange{method: "POST", path: "/v1/keys", body: []byte(body), local: true}
	}
	say("a misspelt role", post(`{"role":"operater"}`))
	say("a misspelt workspace", post(`{"role":"viewer","workspace":"flight"}`))
	say("a workspace that cannot be", post(`{"role":"viewer","workspace":""}`))
	say("a misspelt key", post(`{"role":"viewer","expire":"1d"}`))
	say("a lifetime that is none", post(`{"role":"viewer","expires":"soon"}`))
	rec := say("a key", post(`{"role":"viewer","workspace":"flights","label":"dashboards","expires":"90d"}`))
	var made struct{ ID, Key string }
	if err := json.Unmarshal(rec.Body.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	with := map[string]string{"Authorization": "Bearer " + made.Key}
	say("no key", exchange{method: "GET", path: "/v1/workspaces"})
	say("the key may not list keys", exchange{method: "GET", path: "/v1/keys", header: with})
	say("nor refresh", exchange{method: "POST", path: "/v1/workspaces/flights/refreshes", header: with})
	say("nor see another workspace", exchange{method: "GET", path: "/v1/workspaces/other/status", header: with})
	if rec := w.send(exchange{method: "GET", path: "/v1/workspaces/flights/endpoints/by_carrier", header: with}); rec.Code != 200 {
		t.Errorf("the key is refused: %d", rec.Code)
	}
	if rec := say("the keys", exchange{method: "GET", path: "/v1/keys", local: true}); strings.Contains(rec.Body.String(), made.Key[13:]) {
		t.Error("the list shows the key")
	}
	say("an id that is none", exchange{method: "DELETE", path: "/v1/keys/x", local: true})
	say("an unknown id", exchange{method: "DELETE", path: "/v1/keys/zzzzzzzz", local: true})
	revoke := exchange{method: "DELETE", path: "/v1/keys/" + made.ID, local: true}
	say("revoked", revoke)
	say("the revoked key", exchange{method: "GET", path: "/v1/workspaces", header: with})
	if rec := w.send(revoke); rec.Code != 200 {
		t.Errorf("revoked again: %d", rec.Code)
	}
	golden(t, "keys.golden", got.String())
}

// activateNamed deploys and refreshes the example project under another name.
func (w *world) activateNamed(name string) {
	w.t.Helper()
	files, err := project.Unpack(w.bundle(goodModel))
	if err != nil {
		w.t.Fatal(err)
	}
	for i, f := range files {
		if f.Path == "leapview.yaml" {
			files[i].Content = []byte(`{"name": "` + name + `"}`)
		}
	}
	bundle, err := project.Pack(files)
	if err != nil {
		w.t.Fatal(err)
	}
	w.activateBundle(serving.Workspace(name), bundle)
}
