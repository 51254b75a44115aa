package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/ports"
)

var update = flag.Bool("update", false, "write the golden files")

func lakeRecord(lineage string) ports.LakeRecord {
	return ports.LakeRecord{Lineage: lineage, Ready: true}
}

// exchange is one request; its answer is in the golden file.
type exchange struct {
	// name says what the exchange shows.
	name   string
	method string
	path   string
	header map[string]string
	body   []byte
	local  bool
	// gone callers have left before the answer.
	gone bool
	// before runs ahead of the request.
	before func()
}

func (w *world) send(e exchange) *httptest.ResponseRecorder {
	ctx, leave := context.WithCancel(w.t.Context())
	defer leave()
	if e.gone {
		leave()
	}
	req := httptest.NewRequestWithContext(ctx, e.method, e.path, bytes.NewReader(e.body))
	req.Host = "127.0.0.1:8080"
	req.Header.Set(requestIDHeader, "req-1")
	if len(e.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range e.header {
		if k == "Host" {
			req.Host = v
		} else {
			req.Header.Set(k, v)
		}
	}
	rec := httptest.NewRecorder()
	w.server.Handler(e.local).ServeHTTP(rec, req)
	return rec
}

// The whole API, as one conversation with a node: every route's documents in success and failure, word for word.
func TestConversation(t *testing.T) {
	w := newWorld(t)
	post := func(name, path, body string) exchange {
		return exchange{name: name, method: "POST", path: path, body: []byte(body)}
	}
	get := func(name, path string) exchange { return exchange{name: name, method: "GET", path: path} }
	deploy := func(name, model string) exchange {
		return exchange{name: name, method: "POST", path: "/v1/deployments?source_root=/data/./x", body: w.bundle(model), local: true}
	}
	const v1 = "/v1/workspaces/flights"
	conversation := []exchange{
		get("the process lives", "/livez"),
		get("the node is ready", "/readyz"),
		get("no workspace yet", "/v1/workspaces"),
		get("an unknown workspace", v1+"/status"),
		get("a name that no workspace can have", "/v1/workspaces/Flights/status"),
		get("nothing is active", v1+"/endpoints"),
		post("nothing is deployed", v1+"/refreshes", ""),
		deploy("a project with a mistake", "SELECT day,\n  carier FROM raw"),
		deploy("a project", goodModel),
		{name: "a deployment without source root", method: "POST", path: "/v1/deployments", body: w.bundle(goodModel), local: true},
		{name: "a plan", method: "POST", path: "/v1/plans", body: w.bundle(goodModel), local: true},
		{name: "a plan over TCP", method: "POST", path: "/v1/plans", body: w.bundle(goodModel)},
		{name: "a deployment over TCP", method: "POST", path: "/v1/deployments?source_root=/", body: w.bundle(goodModel)},
		get("deployed, as a remote caller sees it", v1+"/status"),
		{name: "a refresh with a key", method: "POST", path: v1 + "/refreshes", header: map[string]string{"Idempotency-Key": "k 1"}},
		{name: "the same key", method: "POST", path: v1 + "/refreshes", header: map[string]string{"Idempotency-Key": "k 1"}, body: []byte("{}")},
		{name: "a key that is none", method: "POST", path: v1 + "/refreshes", header: map[string]string{"Idempotency-Key": "é"}},
		get("a run that waits", v1+"/runs/id000000000000000000000002"),
		{name: "a run that succeeded, with its steps", method: "GET", path: v1 + "/runs/id000000000000000000000002",
			before: func() { w.work("id000000000000000000000002") }},
		get("a run that does not exist", v1+"/runs/id9"),
		{name: "all workspaces, as a local caller sees them", method: "GET", path: "/v1/workspaces", local: true},
		get("the endpoints", v1+"/endpoints"),
		get("an answer by its defaults", v1+"/endpoints/by_carrier"),
		get("an answer with a parameter", v1+"/endpoints/by_carrier?carrier=AA"),
		post("an answer that was cut at its limit", v1+"/endpoints/all", `{"params": {"least": 1}}`),
		get("a missing parameter", v1+"/endpoints/all"),
		get("a parameter that does not fit", v1+"/endpoints/by_carrier?carrier=XX"),
		get("a repeated parameter", v1+"/endpoints/by_carrier?carrier=AA&carrier=UA"),
		get("a list, sorted by default", v1+"/endpoints/search?carriers=AA&carriers=UA"),
		get("a list of one, sorted, picked and cut by its caller", v1+"/endpoints/search?carriers=UA&order_by=-day,flights&columns=flights,carrier&limit=1"),
		post("the same in a body", v1+"/endpoints/search", `{"params": {"carriers": ["UA"]}, "order_by": "-day,flights", "columns": ["flights", "carrier"], "limit": 1}`),
		get("everything wrong with a query string", v1+"/endpoints/search?carriers=UA&carriers=united&least=-1&lest=1&order_by=dya,flights,day&columns=day&limit=11"),
		post("everything wrong with a body", v1+"/endpoints/search", `{"params": {"carriers": ["UA", null, "united"], "least": {"a": 1}, "a/b": 1}, "order_by": ["flights", "flights"], "columns": [{}], "limit": 0}`),
		get("what an endpoint takes and answers", v1+"/endpoints/search/description"),
		get("the description of an unknown endpoint", v1+"/endpoints/serach/description"),
		get("a broken query string", v1+"/endpoints/by_carrier?carrier=%zz"),
		get("an unknown endpoint", v1+"/endpoints/by_carier"),
		post("parameters in the wrong place", v1+"/endpoints/by_carrier?carrier=AA", ""),
		post("a bundle", v1+"/query-bundles", `{"queries": [{"name": "ua", "endpoint": "by_carrier", "params": {"carrier": null}}, {"name": "all", "endpoint": "all", "params": {"least": "3"}}]}`),
		post("a bundle with one bad query", v1+"/query-bundles", `{"queries": [{"name": "ua", "endpoint": "by_carrier", "params": {"carrier": "XX"}}, {"name": "b", "endpoint": "nope"}, {"name": "c", "endpoint": "search", "params": {"carriers": ["UA", 5]}}]}`),
		post("a bundle whose only mistake is an endpoint that does not exist", v1+"/query-bundles", `{"queries": [{"name": "ua", "endpoint": "by_carrier"}, {"name": "b", "endpoint": "al"}]}`),
		post("a bundle with a list and an order", v1+"/query-bundles", `{"queries": [{"name": "a", "endpoint": "search", "params": {"carriers": ["UA", "AA"]}, "order_by": ["day"], "columns": "carrier"}]}`),
		post("a bundle with too many queries", v1+"/query-bundles", `{"queries": [{"name":"a","endpoint":"all"},{"name":"b","endpoint":"all"},{"name":"c","endpoint":"all"},{"name":"d","endpoint":"all"}]}`),
		deploy("a project whose check fails", "/*---\n{\"checks\": [{\"row_count\": {\"max\": 1}}]}\n---*/\n"+goodModel),
		post("its refresh", v1+"/refreshes", ""),
		{name: "a run that failed", method: "GET", path: v1 + "/runs/id000000000000000000000004", local: true,
			before: func() { w.work("id000000000000000000000004") }},
		get("the runs", v1+"/runs?limit=2"),
		get("a strange list of runs", v1+"/runs?page=2"),
		get("the old answers stay", v1+"/endpoints/by_carrier?carrier=AA"),
		get("an unknown path", "/v2/x"),
		{name: "an impossible method", method: "DELETE", path: v1 + "/status"},
		{name: "a foreign host", method: "GET", path: "/livez", header: map[string]string{"Host": "evil.example"}},
		{name: "a page of another site", method: "POST", path: v1 + "/refreshes", header: map[string]string{"Origin": "https://evil.example"}},
		{name: "a broken workspace, as a remote caller sees it", method: "GET", path: v1 + "/status", before: func() {
			w.gens.MarkBroken("flights", fail.New(fail.Corrupt, "snapshot_missing", "snapshot 2 is gone").Because(errors.New("/secret/path")))
		}},
		{name: "a broken workspace, as a local caller sees it", method: "GET", path: v1 + "/status", local: true},
		get("not ready", "/readyz"),
		{name: "not ready, as a local caller sees it", method: "GET", path: "/readyz", local: true},
	}
	var got strings.Builder
	for _, e := range conversation {
		if e.before != nil {
			e.before()
		}
		rec := w.send(e)
		door := "tcp"
		if e.local {
			door = "socket"
		}
		fmt.Fprintf(&got, "# %s\n%s %s (%s)\n%d\n", e.name, e.method, e.path, door, rec.Code)
		var headers []string
		for k := range rec.Header() {
			if strings.HasPrefix(k, "Leapview-") || k == "Location" || k == "Allow" || k == "Retry-After" || k == "Content-Type" {
				headers = append(headers, k+": "+rec.Header().Get(k))
			}
		}
		sort.Strings(headers)
		body := rec.Body.Bytes()
		if n := rec.Header().Get("Content-Length"); n != fmt.Sprint(len(body)) {
			t.Errorf("%s: Content-Length %s for %d bytes", e.name, n, len(body))
		}
		if rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get(requestIDHeader) != "req-1" {
			t.Errorf("%s: headers %v", e.name, rec.Header())
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, body, "", "  "); err != nil {
			t.Errorf("%s: %v in %s", e.name, err, body)
		}
		fmt.Fprintf(&got, "%s\n%s\n", strings.Join(headers, "\n"), pretty.String())
	}
	golden(t, "conversation.golden", got.String())
	if strings.Contains(got.String(), "(tcp)") && strings.Count(got.String(), "/secret/path") != 2 {
		t.Errorf("the cause is told %d times, want twice: to the two local callers", strings.Count(got.String(), "/secret/path"))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; go test -update writes it anew. Got:\n%s", path, got)
	}
}

// Every kind of failure has a status, and it is an error's.
func TestEveryKindHasAStatus(t *testing.T) {
	for _, k := range fail.Kinds() {
		if s := statusOfKind[k]; s < 400 || http.StatusText(s) == "" {
			t.Errorf("kind %s has status %d", k, s)
		}
	}
	for code, want := range map[string]int{"disk_full": 507, "open_files": 503, "live_runs": 422} {
		if got := statusOf(fail.New(fail.Limit, code, "x")); got != want {
			t.Errorf("%s is told as %d, want %d", code, got, want)
		}
	}
	if len(statusOfKind) != len(fail.Kinds()) {
		t.Errorf("the table has %d kinds, there are %d", len(statusOfKind), len(fail.Kinds()))
	}
}

// Bodies are read strictly: whatever is not exactly the documented object is refused, and nothing is guessed.
func TestStrictBodies(t *testing.T) {
	w := newWorld(t)
	w.activate()
	const call, bundle, refreshes = "/v1/workspaces/flights/endpoints/by_carrier", "/v1/workspaces/flights/query-bundles", "/v1/workspaces/flights/refreshes"
	for name, c := range map[string]struct {
		path, body string
		code       string
	}{
		"no body":                {call, ``, ""},
		"empty object":           {call, `{}`, ""},
		"white space around":     {call, " {\"params\":{}}\n", ""},
		"null param":             {call, `{"params":{"carrier":null}}`, ""},
		"not JSON":               {call, `carrier=AA`, "bad_json"},
		"cut short":              {call, `{"params":{"carrier":"AA"}`, "bad_json"},
		"trailing":               {call, `{} {}`, "bad_json"},
		"list":                   {call, `[]`, "bad_json"},
		"null":                   {call, `null`, "bad_json"},
		"unknown key":            {call, `{"parms":{}}`, "bad_json"},
		"key in other case":      {call, `{"Params":{}}`, "bad_json"},
		"key twice":              {call, `{"params":{},"params":{}}`, "bad_json"},
		"param twice":            {call, `{"params":{"carrier":"AA","carrier":"UA"}}`, "bad_json"},
		"params null":            {call, `{"params":null}`, "bad_json"},
		"param list":             {call, `{"params":{"carrier":["AA"]}}`, "bad_parameters"},
		"param object":           {call, `{"params":{"carrier":{}}}`, "bad_parameters"},
		"param cut short":        {call, `{"params":{"carrier":[1`, "bad_json"},
		"param no JSON":          {call, `{"params":{"carrier":[1,]}}`, "bad_json"},
		"param deep":             {call, `{"params":{"carrier":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`, "bad_parameters"},
		"order_by of nobody":     {call, `{"order_by":"day"}`, "bad_parameters"},
		"columns of nobody":      {call, `{"columns":["day"]}`, "bad_parameters"},
		"all null":               {call, `{"order_by":null,"columns":null,"limit":null}`, ""},
		"limit as a text":        {call, `{"limit":"1"}`, ""},
		"limit twice":            {call, `{"limit":1,"limit":1}`, "bad_json"},
		"offset":                 {call, `{"offset":1}`, "bad_json"},
		"not UTF-8":              {call, "{\"params\":{\"carrier\":\"\xff\"}}", "bad_json"},
		"unknown param":          {call, `{"params":{"x":"1"}}`, "bad_parameters"},
		"too long":               {call, `{"params":{"carrier":"` + strings.Repeat("A", 5000) + `"}}`, "body_too_large"},
		"deep":                   {call, strings.Repeat("[", 4000), "bad_json"},
		"bundle without queries": {bundle, `{}`, "bad_json"},
		"bundle of a call":       {bundle, `{"queries":{"name":"a"}}`, "bad_json"},
		"query without name":     {bundle, `{"queries":[{"endpoint":"by_carrier"}]}`, "bad_query_name"},
		"query name twice":       {bundle, `{"queries":[{"name":"a","endpoint":"by_carrier"},{"name":"a","endpoint":"by_carrier"}]}`, "repeated_query_name"},
		"query name no text":     {bundle, `{"queries":[{"name":1,"endpoint":"by_carrier"}]}`, "bad_json"},
		"query with other key":   {bundle, `{"queries":[{"name":"a","endpont":"by_carrier"}]}`, "bad_json"},
		"refresh with a key":     {refreshes, `{"force":true}`, "bad_json"},
	} {
		rec := w.send(exchange{method: "POST", path: c.path, body: []byte(c.body)})
		var doc struct{ Code string }
		if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || doc.Code != c.code {
			t.Errorf("%s: got code %q (%v), want %q: %s", name, doc.Code, err, c.code, rec.Body)
		}
		if c.code == "body_too_large" && rec.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: status %d", name, rec.Code)
		}
	}
	rec := w.send(exchange{method: "POST", path: call, body: []byte("{}"), header: map[string]string{"Content-Type": "text/plain"}})
	if rec.Code != http.StatusUnsupportedMediaType {
		t.Errorf("a body that is not declared as JSON has status %d", rec.Code)
	}
}

// A body beyond its limit is refused before it is read when it says its length, and where the limit is when it does not.
func TestHugeBodies(t *testing.T) {
	w := newWorld(t)
	w.activate()
	for _, c := range []struct {
		path   string
		length int64
		read   int64
	}{
		{"/v1/workspaces/flights/endpoints/by_carrier", 1 << 40, 0},
		{"/v1/workspaces/flights/endpoints/by_carrier", -1, 4096 + 1},
		{"/v1/deployments?source_root=/x", maxBundle + 1, 0},
	} {
		body := &endless{}
		req := httptest.NewRequest("POST", c.path, body)
		req.ContentLength = c.length
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		w.server.Handler(true).ServeHTTP(rec, req)
		if rec.Code != http.StatusRequestEntityTooLarge || body.read > c.read {
			t.Errorf("%s with length %d: status %d after %d bytes", c.path, c.length, rec.Code, body.read)
		}
	}
}

// endless is a body without an end that counts what was read of it.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) {
	// One byte at a time, so that the count is exact.
	b[0] = ' '
	e.read++
	return 1, nil
}

// Only requests that were addressed to this machine by a loopback name are let in, and no other site's page can change anything.
func TestHostAndOrigin(t *testing.T) {
	w := newWorld(t)
	w.activate()
	for _, c := range []struct {
		host, origin, site string
		method             string
		want               int
	}{
		{"127.0.0.1:8080", "", "", "GET", 200},
		{"localhost:8080", "", "", "GET", 200},
		{"LOCALHOST", "", "", "GET", 200},
		{"[::1]:8080", "", "", "GET", 200},
		{"127.0.0.1.evil.example:8080", "", "", "GET", 421},
		{"evil.example", "", "", "GET", 421},
		{"", "", "", "GET", 421},
		{"localhost:8080", "http://evil.example", "", "GET", 200},
		{"localhost:8080", "http://localhost:8080", "", "POST", 200},
		{"localhost:8080", "http://evil.example", "", "POST", 403},
		{"localhost:8080", "", "cross-site", "POST", 403},
		{"localhost:8080", "null", "", "POST", 403},
	} {
		header := map[string]string{"Host": c.host}
		if c.origin != "" {
			header["Origin"] = c.origin
		}
		if c.site != "" {
			header["Sec-Fetch-Site"] = c.site
		}
		e := exchange{method: c.method, path: "/v1/workspaces/flights/endpoints/by_carrier", header: header}
		if got := w.send(e).Code; got != c.want {
			t.Errorf("%s with host %q, origin %q, site %q: %d, want %d", c.method, c.host, c.origin, c.site, got, c.want)
		}
		e.local = true
		if got := w.send(e).Code; got != 200 {
			t.Errorf("over the socket with host %q: %d", c.host, got)
		}
	}
}

// An internal error's text goes to the log under the request's id and to local callers, never to remote ones; a panic is such an
// error and the server goes on.
func TestInternalCausesStayInside(t *testing.T) {
	w := newWorld(t)
	w.server.status = nil
	for _, local := range []bool{false, true} {
		w.log.Reset()
		rec := w.send(exchange{method: "GET", path: "/v1/workspaces", local: local})
		if rec.Code != 500 {
			t.Fatalf("status %d", rec.Code)
		}
		if told := strings.Contains(rec.Body.String(), "nil pointer"); told != local {
			t.Errorf("local %v, but the answer is %s", local, rec.Body)
		}
		if log := w.log.String(); !strings.Contains(log, "nil pointer") || !strings.Contains(log, "request_id=req-1") || !strings.Contains(log, "level=ERROR") {
			t.Errorf("log: %s", log)
		}
	}
	if rec := w.send(exchange{method: "GET", path: "/livez"}); rec.Code != 200 {
		t.Errorf("after a panic: %d", rec.Code)
	}
}

// The recorded failure of a run that met an internal error is told to local callers only.
func TestInternalFailuresOfRunsStayInside(t *testing.T) {
	run := refresh.Run{Failure: refresh.Failure{Kind: fail.Internal.String(), Code: "x", Message: "secret"}}
	for _, local := range []bool{false, true} {
		r := routes{local: local}
		if got := r.runDoc(run).Failure.Message; (got == "secret") != local {
			t.Errorf("local %v: %q", local, got)
		}
	}
}

// Until the stores are proved every data route refuses with the reason, while the process says that it lives.
func TestNotReady(t *testing.T) {
	w := newWorld(t)
	w.ready.Set(fail.New(fail.Corrupt, "lineage_mismatch", "the catalog is of another lake").WithFix("restore both").Because(errors.New("secret")))
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/v1/workspaces": 503, "/v1/workspaces/flights/endpoints/x": 503} {
		rec := w.send(exchange{method: "GET", path: path})
		if rec.Code != want {
			t.Errorf("%s: %d, want %d", path, rec.Code, want)
		}
		if body := rec.Body.String(); want == 503 && (!strings.Contains(body, `"detail":"the catalog is of another lake","code":"lineage_mismatch","kind":"unavailable","fix":"restore both"`) || strings.Contains(body, "secret")) {
			t.Errorf("%s: %s", path, body)
		}
	}
	w.ready.Set(nil)
	w.health.fatal = func() error { return fail.New(fail.Fatal, "engine_invalidated", "the engine is gone") }
	if rec := w.send(exchange{method: "GET", path: "/v1/workspaces"}); rec.Code != 503 {
		t.Errorf("with a fatal engine: %d", rec.Code)
	}
}

// More requests than the limit are refused at once with a time to come back, and the count is given back.
func TestTooManyRequests(t *testing.T) {
	w := newWorld(t)
	w.server.requests.Store(w.server.maxRequests)
	rec := w.send(exchange{method: "GET", path: "/v1/workspaces"})
	if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || w.server.requests.Load() != w.server.maxRequests {
		t.Errorf("%d, %v, %d counted", rec.Code, rec.Header(), w.server.requests.Load())
	}
}

// A caller's request id is kept when it can stand in a log line, and replaced otherwise.
func TestRequestID(t *testing.T) {
	w := newWorld(t)
	for id, kept := range map[string]bool{"a-B_9.": true, "a b": false, strings.Repeat("x", 65): false, "": false} {
		got := w.send(exchange{method: "GET", path: "/livez", header: map[string]string{requestIDHeader: id}}).Header().Get(requestIDHeader)
		if got == "" || (got == id) != kept {
			t.Errorf("id %q became %q", id, got)
		}
	}
}

// A server over real listeners answers both of them, a HEAD without its body too; when it is told to stop it lets the request under
// way end, and leaves no goroutine behind.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t)
	w.activate()
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(ctx, public, local) }()

	overSocket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	overTCP := &http.Client{Transport: &http.Transport{}}
	defer overSocket.CloseIdleConnections()
	defer overTCP.CloseIdleConnections()
	base := "http://" + public.Addr().String() + "/v1/workspaces/flights/endpoints/by_carrier"
	get := func(c *http.Client, method, url string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		res, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res, string(b)
	}
	res, body := get(overTCP, "GET", base)
	if res.StatusCode != 200 || int(res.ContentLength) != len(body) {
		t.Errorf("GET: %d, %d of %d bytes", res.StatusCode, res.ContentLength, len(body))
	}
	if head, none := get(overTCP, "HEAD", base); head.ContentLength != res.ContentLength || none != "" || head.Header.Get("LeapView-Snapshot") != "4" {
		t.Errorf("HEAD: length %d, body %q, %v", head.ContentLength, none, head.Header)
	}
	if res, _ := get(overSocket, "POST", "http://leapview/v1/deployments"); res.StatusCode != 400 {
		t.Errorf("the deploy route over the socket: %d", res.StatusCode)
	}

	// The engine's health is asked for every request, so a slow one stands for slow work.
	asked, answer := make(chan struct{}), make(chan struct{})
	w.health.fatal = func() error { close(asked); <-answer; return nil }
	slow := make(chan int)
	go func() {
		res, _ := get(overTCP, "GET", base)
		slow <- res.StatusCode
	}()
	<-asked
	stop()
	select {
	case err := <-served:
		t.Fatalf("the server ended before its request: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(answer)
	if code := <-slow; code != 200 {
		t.Errorf("the request under way got %d", code)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if rec := w.send(exchange{method: "GET", path: "/livez"}); rec.Code != 503 {
		t.Errorf("after the end: %d", rec.Code)
	}
}

// A request that goes on although it was canceled holds the end of the server up for a bounded time. One that ends within it leaves
// no trace; one that never ends is abandoned, by its name.
func TestServeIsBounded(t *testing.T) {
	for name, ends := range map[string]bool{"ends late": true, "never ends": false} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			w := newWorld(t)
			w.server.drainTime, w.server.cutTime = 10*time.Millisecond, time.Minute
			if !ends {
				w.server.cutTime = 10 * time.Millisecond
			}
			var listeners [2]net.Listener
			for i := range listeners {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				listeners[i] = l
			}
			asked, answer := make(chan struct{}), make(chan struct{})
			w.health.fatal = func() error { close(asked); <-answer; return nil }
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- w.server.Serve(ctx, listeners[0], listeners[1]) }()
			cut := make(chan error, 1)
			go func() {
				req, err := http.NewRequest("GET", "http://"+listeners[0].Addr().String()+"/v1/workspaces/flights/endpoints/by_carrier", nil)
				if err != nil {
					cut <- err
					return
				}
				req.Header.Set(requestIDHeader, "stuck-1")
				res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
				if err == nil {
					err = res.Body.Close()
				}
				cut <- err
			}()
			<-asked
			stop()
			if err := <-cut; err == nil {
				t.Error("the request was answered")
			}
			if ends {
				close(answer)
			}
			err := <-served
			if !ends {
				close(answer)
			}
			if ends && err != nil {
				t.Errorf("after a request that ended late: %v", err)
			}
			if !ends && (fail.CodeOf(err) != "requests_abandoned" || fail.KindOf(err) != fail.Unavailable ||
				!strings.Contains(err.Error(), "GET /v1/workspaces/:workspace/endpoints/:endpoint (request_id stuck-1, for")) {
				t.Errorf("after a request that never ended: %v", err)
			}
			// Whatever is left of the request ends before the log is read.
			for range 100 {
				if len(w.server.shut()) == 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if told := strings.Contains(w.log.String(), `msg="request abandoned" method=GET route=/v1/workspaces/:workspace/endpoints/:endpoint`); told == ends {
				t.Errorf("the log says %s", w.log)
			}
			if rec := w.send(exchange{method: "GET", path: "/livez"}); rec.Code != 503 {
				t.Errorf("after the end: %d", rec.Code)
			}
		})
	}
}

// A listener that fails ends the whole server, with its error.
func TestServeEndsWithItsListener(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t)
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Serve(t.Context(), public, local); err == nil {
		t.Error("no error")
	}
}

var _ app.Health = (*health)(nil)
