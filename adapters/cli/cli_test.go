package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"leapview/adapters/mem"
	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/ports"
)

var update = flag.Bool("update", false, "write the golden files")

// testHost is a host whose nodes are made of twins, or whose running node is an HTTP handler of the test.
type testHost struct {
	node Node
	// addr is where the running node listens; empty when none runs.
	addr string
	// model is the text of the project's only model.
	model string
	// tests is the text of the project's test file; empty when it has none.
	tests   string
	options NodeOptions
	// file is what every file of settings holds.
	file string
	// changes tells of changes while a folder is watched.
	changes func(changed func())
	// written is the project that was written last.
	written []project.File
	serve   func(ctx context.Context, ready func(string)) error
}

func (h *testHost) Configure(given app.Given) (app.Configured, error) {
	if path, _ := given.ConfigFile(); path != "" {
		given.FileName, given.FileText = path, h.file
		var problems project.Problems
		if given.File, problems = (mem.Documents{}).Parse([]byte(h.file), project.Position{File: path}); len(problems) > 0 {
			return app.Configured{}, problems
		}
	}
	c, problems := app.Configure(given)
	return c, problems.Err()
}

func (h *testHost) Serve(ctx context.Context, o NodeOptions, _ io.Writer, ready func(string)) error {
	h.options = o
	return h.serve(ctx, ready)
}

func (h *testHost) Open(ctx context.Context, o NodeOptions, _ io.Writer, use func(context.Context, Node) error) error {
	h.options = o
	if h.node.Status == nil {
		return fail.New(fail.Conflict, "locked", "another process holds data directory %s", o.DataDir).WithFix("stop it first")
	}
	return use(ctx, h.node)
}

func (h *testHost) Scratch(ctx context.Context, o NodeOptions, _ io.Writer, use func(context.Context, Node) error) error {
	h.options = o
	return use(ctx, h.node)
}

func (h *testHost) Place(dir string, files []string) (out []app.DataFile, copies []Copied, err error) {
	for _, f := range files {
		out = append(out, app.DataFile{Root: "/" + dir, Name: f, Location: "data/" + f})
		copies = append(copies, Copied{"/" + f, "data/" + f})
	}
	return out, copies, nil
}

func (h *testHost) WriteProject(_ context.Context, _ string, files []project.File, _ []Copied) error {
	h.written = files
	return nil
}

func (h *testHost) Watch(ctx context.Context, _, _ string, changed func()) error {
	if h.changes != nil {
		h.changes(changed)
	}
	<-ctx.Done()
	return nil
}

func (h *testHost) SampleData(use func(path string) error) error { return use("a.csv") }

func (h *testHost) Dial(ctx context.Context, dataDir string) (net.Conn, error) {
	if h.addr == "" {
		return nil, fail.New(fail.Unavailable, "node_not_running", "no node runs on %s", dataDir)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", h.addr)
}

func (h *testHost) Pack(dir string) ([]byte, error) {
	if dir == "missing" {
		return nil, fail.New(fail.Invalid, "no_project", "%s is not a directory", dir)
	}
	files := []project.File{
		{Path: "leapview.yaml", Content: []byte(`{"name": "flights"}`)},
		{Path: "sources/raw.yaml", Content: []byte(`{"location": "*.csv", "format": "csv", "columns": {"carrier": "VARCHAR", "n": "BIGINT"}}`)},
		{Path: "models/daily.sql", Content: []byte(h.model)},
		{Path: "endpoints/all.sql", Content: []byte("SELECT carrier, n FROM daily ORDER BY carrier")},
		{Path: "endpoints/some.sql", Content: []byte(someSQL)},
	}
	if h.tests != "" {
		files = append(files, project.File{Path: "tests/daily.yaml", Content: []byte(h.tests)})
	}
	return project.Pack(files)
}

const goodModel = "SELECT carrier, n FROM raw"

// someSQL is an endpoint that has some of everything.
const someSQL = `/*---
{"description": "The carriers that are asked for", "limit": 50,
 "params": {"carriers": {"type": "string", "list": true, "required": true, "max_items": 3, "pattern": "[A-Z']{1,2}", "description": "IATA codes"},
  "least": {"type": "int", "min": 0, "max": 9, "default": 0}},
 "order_by": {"allow": ["carrier", "n"], "default": ["-n"], "ties": ["carrier"]},
 "columns": {"allow": ["carrier"], "descriptions": {"n": "How many"}},
 "examples": [{"name": "two", "description": "Two of them", "params": {"carriers": ["UA", "B'"], "least": 1}, "order_by": ["-carrier"], "columns": ["carrier"], "limit": 5}]}
---*/
SELECT carrier, n FROM daily WHERE list_contains($carriers, carrier) AND n >= $least`

func twins(t *testing.T) Node {
	t.Helper()
	clock, disk, control, gens := &mem.Clock{}, &mem.Disk{}, mem.NewControl(), app.NewGenerations()
	if err := control.RecordLake(t.Context(), ports.LakeRecord{Lineage: "lake", Ready: true}); err != nil {
		t.Fatal(err)
	}
	sources := &mem.Sources{Files: map[string][]byte{"a.csv": []byte("carrier,n\nUA,1\nAA,2\n" + strings.Repeat("X,0\n", 1234))}}
	store := mem.NewStore("lake", mem.StoreOptions{Clock: clock, Disk: disk, Content: sources.Content, Readings: 2})
	log := slog.New(slog.DiscardHandler)
	releases := app.NewReleases(mem.Bundles{Disk: disk}, mem.Documents{}, mem.Compiler{}, store)
	refresher := app.NewRefresher(control, mem.Watermark{Disk: disk}, sources, store, mem.DataFiles{Disk: disk}, store, releases, gens, clock, &mem.Identity{}, "boot", log)
	keyring, err := app.OpenKeyring(t.Context(), control, clock, &mem.Identity{}, log)
	if err != nil {
		t.Fatal(err)
	}
	return Node{
		Deployer:  app.NewDeployer(control, mem.Bundles{Disk: disk}, releases, clock, log),
		Refresher: refresher,
		Worker:    app.NewWorker(control, refresher, gens, clock, "boot", log),
		Status:    app.NewStatus(control, gens),
		Author:    app.NewAuthor(releases, control, &mem.Identity{}, sources, store, store, mem.Examiner{Content: sources.Content}),
		Keyring:   keyring,
		Describer: app.NewDescriber(control, releases),
	}
}

// A project is judged and its tests are run on a scratch node; durations are taken out of the transcript.
func TestAuthoring(t *testing.T) {
	h := &testHost{node: twins(t), model: "SELECT carrier, m FROM raw"}
	s := &transcript{t: t, host: h}
	s.run("", "validate")
	s.run("", "validate", "missing")
	s.run("", "test")
	h.model = goodModel
	s.run("", "validate", "x")
	s.run("", "validate", "x", "--json")
	s.run("", "test")
	h.tests = `{"model": "daily", "cases": [
 {"name": "a row is a row", "given": {"raw": [{"carrier": "UA", "n": 1}]}, "expect": [{"carrier": "UA", "n": 1}]},
 {"name": "three are not two", "given": {"raw": [{"n": 1}, {"n": 2}, {"n": 2}]}, "expect": [{"n": 2}, {"n": 3}]},
 {"name": "gives what is not read", "given": {"rav": []}, "expect": [{"m": 1}]}]}`
	s.run("", "test")
	s.run("", "test", "--only", "a row")
	s.run("", "test", "--only", "nothing")
	s.run("", "test", "--json")
	text := regexp.MustCompile(`\b[0-9]+ ms\b`).ReplaceAllString(s.text.String(), "N ms")
	text = regexp.MustCompile(`"duration_ms": [0-9]+`).ReplaceAllString(text, `"duration_ms": N`)
	s.text.Reset()
	s.text.WriteString(text)
	s.golden("authoring.golden")
}

// transcript runs command lines and writes down what a user would see.
type transcript struct {
	t    *testing.T
	host *testHost
	text strings.Builder
}

func (s *transcript) run(stdin string, args ...string) {
	var stdout, stderr bytes.Buffer
	code := Run(s.t.Context(), args, s.host, strings.NewReader(stdin), &stdout, &stderr)
	fmt.Fprintf(&s.text, "$ leapview %s\nexit %d\n", strings.Join(args, " "), code)
	show := func(mark string, b *bytes.Buffer) {
		for line := range strings.Lines(b.String()) {
			s.text.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	show("| ", &stdout)
	show("! ", &stderr)
	s.text.WriteString("\n")
}

func (s *transcript) golden(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s.text.String()), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.text.String() != string(want) {
		s.t.Errorf("%s differs; go test -update writes it anew. Got:\n%s", path, s.text.String())
	}
}

// Without a running node the commands open the data directory and do the work, telling progress in plain lines and every failure
// with its exit code. Output lines begin with |, error lines with !.
func TestWithoutNode(t *testing.T) {
	h := &testHost{node: twins(t)}
	s := &transcript{t: t, host: h}
	s.run("", "status")
	s.run("", "refresh", "flights")
	h.model = "SELECT carrier,\n\tm FROM raw"
	s.run("", "deploy", ".", "--source-root", "/data")
	s.run("", "deploy", ".", "--source-root", "/data", "--json")
	h.model = goodModel
	s.run("", "deploy", "x", "--source-root", "/data")
	s.run("", "deploy", "x", "--source-root", "/data", "--json")
	s.run("", "deploy", "missing")
	s.run("", "refresh", "flights", "--idempotency-key", "k")
	s.run("", "refresh", "flights", "--idempotency-key", "k", "--json")
	s.run("", "plan")
	s.run("", "plan", "--all")
	h.model = "SELECT carrier, n FROM raw WHERE n IS NOT NULL"
	s.run("", "plan", "x")
	s.run("", "plan", "x", "--json")
	h.model = goodModel
	s.run("", "refresh", "flights", "--no-wait")
	s.run("", "refresh", "Flights")
	s.run("", "status")
	s.run("", "status", "flights", "--json")
	s.run("", "status", "other")
	s.run("", "runs", "flights")
	s.run("", "runs", "flights", "--json", "--limit", "1")
	s.run("", "history", "flights")
	s.run("", "runs", "flights", "id/../x")
	s.run("", "runs", "flights", "nope")
	s.run("", "runs", "flights", "--limit", "0")
	s.run("", "runs", "other")
	s.run("", "describe", "flights")
	s.run("", "describe", "flights", "some")
	s.run("", "describe", "flights", "some", "--json")
	s.run("", "describe", "flights", "sme")
	s.run("", "describe", "other")
	s.run("", "query", "flights", "all")
	s.run("", "key", "list")
	s.run("", "key", "create", "--role", "viewer", "--workspace", "flihgts")
	s.run("", "key", "create", "--role", "viewer", "--workspace", "flights", "--label", "dashboards", "--expires", "90d")
	s.run("", "key", "create", "--role", "operator", "--json")
	s.run("", "key", "revoke", "00000005")
	s.run("", "key", "revoke", "00000009")
	s.run("", "key", "list")
	s.run("", "key", "list", "--json")
	h.model = "/*---\n{\"checks\": [{\"row_count\": {\"max\": 1}}, {\"unique\": \"carrier\"}]}\n---*/\n" + goodModel
	s.run("", "deploy", "x", "--source-root", "/data")
	s.run("", "refresh", "flights")
	s.run("", "runs", "flights", "id000000000000000000000006")
	h.node = Node{}
	s.run("", "deploy", "x")
	s.golden("without_node.golden")
}

// What a command line cannot be is told with what it could be, in one place and with exit code 2; help is complete.
func TestUsage(t *testing.T) {
	s := &transcript{t: t, host: &testHost{}}
	for _, line := range []string{"", "help deploy", "help refresh", "help serve", "help query", "help describe", "help status", "help init", "help dev", "help validate", "help test", "help plan", "help runs", "help history", "help key", "help key create", "help config", "help config show", "config reference", "config reference --json", "config shwo", "help exit-codes", "key", "key remove", "key create", "key create --role boss", "key create --role viewer --expires soon", "key revoke", "key revoke lvk_x", "version", "version --json",
		"refesh", "xyzzy", "--data-dir x refesh", "refresh", "refresh a b", "deploy --sourceroot x", "deploy --memory 4XB", "query flights", "query flights all --bundle f",
		"query flights all --param x", "query flights --bundle f --limit 5", "describe", "describe flights A", "describe flights a b", "query flights A/../B", "query flights --bundle no-such-file",
		"query flights --bundle f --param a=1", "serve x --json"} {
		s.run("", strings.Fields(line)...)
	}
	s.golden("usage.golden")
}

// answers is a node that gives canned documents, and notes what it was asked.
type answers struct {
	http.ServeMux
	asked []string
}

func (a *answers) on(pattern, answer string, status int) {
	a.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, answer, status) })
}

func (a *answers) answer(w http.ResponseWriter, r *http.Request, answer string, status int) {
	body, _ := io.ReadAll(r.Body)
	if len(body) > 200 {
		body = fmt.Appendf(nil, "%d bytes", len(body))
	}
	a.asked = append(a.asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"), body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func startNode(t *testing.T, h http.Handler) *testHost {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &testHost{addr: server.Listener.Addr().String(), model: goodModel}
}

const (
	receipt = `"generation":3,"snapshot":12,"release":"0123456789abcdef","built_at":"2026-03-01T10:00:00Z"`
	queued  = `{"id":"r1","workspace":"flights","status":"queued","attempts":0}`
)

// With a running node the commands ask it over its socket, show its progress and answers as tables, and give back its refusals with
// their kind's exit code.
func TestWithNode(t *testing.T) {
	node := &answers{}
	node.on("POST /v1/deployments", `{"workspace":"flights","deployment":{"number":2,"release":"0123456789abcdef","at":"2026-03-01T10:00:00Z","by":"local"},"models":3,"endpoints":4}`, 201)
	node.on("POST /v1/workspaces/flights/refreshes", queued, 202)
	polls := 0
	node.HandleFunc("GET /v1/workspaces/flights/runs/r1", func(w http.ResponseWriter, r *http.Request) {
		polls++
		steps := `{"at":"2026-03-01T10:00:00Z","phase":"acquire","subject":"raw","done":false,"rows":null},
			{"at":"2026-03-01T10:00:01Z","phase":"acquire","subject":"raw","done":true,"rows":null},
			{"at":"2026-03-01T10:00:02Z","phase":"stage","subject":"raw","done":true,"rows":336776}`
		if polls == 1 {
			node.answer(w, r, `{"id":"r1","workspace":"flights","status":"running","steps":[`+steps+`]}`, 200)
			return
		}
		node.answer(w, r, `{"id":"r1","workspace":"flights","status":"succeeded","generation":3,"snapshot":12,"steps":[`+steps+`,
			{"at":"2026-03-01T10:00:03Z","phase":"create","done":true,"rows":null},
			{"at":"2026-03-01T10:00:04Z","phase":"build","subject":"stg_flights","done":true,"rows":336776},
			{"at":"2026-03-01T10:00:05Z","phase":"validate","subject":"stg_flights","done":true,"rows":null},
			{"at":"2026-03-01T10:00:06Z","phase":"activate","done":true,"rows":null}]}`, 200)
	})
	node.on("POST /v1/workspaces/other/refreshes", `{"id":"r2","workspace":"other","status":"queued"}`, 202)
	node.on("GET /v1/workspaces/other/runs/r2", `{"id":"r2","workspace":"other","status":"failed","steps":[],"failure":{"kind":"invalid","code":"checks_failed","message":"1 of 2 checks failed"}}`, 200)
	node.on("GET /v1/workspaces", `{"workspaces":[{"workspace":"flights","lineage":"l","active":{`+receipt+`},"deployed":{"number":2,"release":"ffff456789abcdef"},"live_runs":[`+queued+`],"problem":"snapshot 12 is gone"}]}`, 200)
	node.on("GET /v1/workspaces/none/status", `{"code":"unknown_workspace","kind":"missing","detail":"there is no workspace \"none\"","fix":"deploy it"}`, 404)
	node.on("POST /v1/workspaces/flights/endpoints/delays", `{"columns":[{"name":"carrier","type":"VARCHAR"},{"name":"n","type":"DECIMAL(18,2)"},{"name":"list","type":"INTEGER[]"}],
		"rows":[["Über\u001b[2J",12345678901234567890.10,[1, 2]],[null,-1,null]],
		"meta":{`+receipt+`,"rows":2,"truncated":true,"truncation_reason":"rows","warnings":["1 value was NaN"]}}`, 200)
	node.on("POST /v1/workspaces/flights/query-bundles", `{"meta":{`+receipt+`},"results":[
		{"name":"a","endpoint":"delays","columns":[{"name":"n","type":"INTEGER"}],"rows":[[1]],"meta":{"rows":1,"truncated":false,"truncation_reason":null,"warnings":[]}},
		{"name":"b","endpoint":"all","columns":[{"name":"n","type":"INTEGER"}],"rows":[],"meta":{"rows":0,"truncated":false,"truncation_reason":null,"warnings":[]}}]}`, 200)
	node.on("POST /v1/workspaces/flights/endpoints/busy", `{"code":"queue_full","kind":"busy","detail":"2 queries run","fix":"try again in a moment"}`, 503)
	node.on("POST /v1/workspaces/flights/endpoints/wrong", `{"code":"bad_parameters","kind":"invalid","detail":"the call of endpoint \"wrong\" cannot be answered: 2 problems were found",
		"errors":[{"pointer":"/params/carriers/1","detail":"\"x\" is not one of UA, AA","allowed":"a list of at most 3 items, each of type string, one of UA, AA"},{"pointer":"/limit","detail":"9 is too many"}]}`, 400)
	node.on("GET /v1/workspaces/flights/endpoints/one/description", `{"meta":{"workspace":"flights","lineage":"l",`+receipt+`},"endpoint":{"name":"one","description":"","params":[
		{"name":"a","type":"string","list":true,"max_items":2,"default":["x y","z"]},{"name":"b","type":"date","default":null}],
		"columns":[{"name":"n","type":"BIGINT","description":""}],"pick":[],"order_by":null,"limit":1,"examples":[{"name":"x","description":"","params":{"a":["x y","z"],"b":"2013-01-01"},"limit":1}]}}`, 200)
	node.on("GET /v1/workspaces/flights/endpoints", `{"meta":{`+receipt+`},"endpoints":[]}`, 200)
	node.on("POST /v1/workspaces/flights/endpoints/strange", `<html>`, 502)
	const viewer = `"id":"k3v9x2mq","principal":"key:k3v9x2mq","role":"viewer","workspace":"flights","label":"dashboards","created_at":"2026-03-01T10:00:00Z","created_by":"local","expires_at":"2026-05-30T10:00:00Z"`
	node.on("POST /v1/keys", `{"key":"lvk_k3v9x2mq_x",`+viewer+`}`, 201)
	node.on("GET /v1/keys", `{"keys":[{`+viewer+`,"used_at":"2026-03-02T10:00:00Z"},{"id":"aaaaaaaa","role":"operator","created_at":"2026-03-01T10:00:00Z","revoked_at":"2026-03-03T10:00:00Z"}]}`, 200)
	node.on("DELETE /v1/keys/k3v9x2mq", `{`+viewer+`,"revoked_at":"2026-03-03T10:00:00Z"}`, 200)
	h := startNode(t, node)
	s := &transcript{t: t, host: h}
	s.run("", "deploy", "x", "--source-root", "/data dir")
	s.run("", "refresh", "flights", "--idempotency-key", "k")
	s.run("", "refresh", "flights", "--no-wait")
	s.run("", "refresh", "other")
	s.run("", "status")
	s.run("", "status", "none")
	s.run("", "query", "flights", "delays", "--param", "carrier=UA,AA", "-p", "x=a=b")
	s.run("", "query", "flights", "delays", "--json")
	s.run("", "query", "flights", "delays", "-p", "c=1", "-p", "c=2", "-p", "c=3", "--order-by=-n,carrier", "--columns", "n", "--limit", "5", "--json")
	s.run("", "query", "flights", "wrong")
	s.run("", "query", "flights", "wrong", "--json")
	s.run("", "describe", "flights")
	s.run("", "describe", "flights", "one")
	s.run("", "describe", "flights", "one", "--json")
	s.run(`{"queries":[]}`, "query", "flights", "--bundle", "-")
	s.run("", "query", "flights", "busy")
	s.run("", "query", "flights", "busy", "--json")
	s.run("", "query", "flights", "strange")
	s.run("", "key", "create", "--role", "viewer", "--workspace", "flights", "--label", "dashboards", "--expires", "90d")
	s.run("", "key", "create", "--role", "viewer", "--json")
	s.run("", "key", "list")
	s.run("", "key", "revoke", "k3v9x2mq")
	fmt.Fprintf(&s.text, "What the node was asked:\n%s\n", strings.Join(node.asked, "\n"))
	s.golden("with_node.golden")
}

// A project's mistakes look the same whether this process or a running node found them.
func TestProblemsLookTheSameFromANode(t *testing.T) {
	node := &answers{}
	node.on("POST /v1/deployments", `{"code":"invalid_project","kind":"invalid","detail":"1 problem was found","problems":[
		{"file":"models/daily.sql","line":2,"column":2,"message":"\"raw\" has no column \"m\"","fix":"did you mean \"n\"?","text":"\tm FROM raw"}]}`, 400)
	there := startNode(t, node)
	here := &testHost{node: twins(t), model: "SELECT carrier,\n\tm FROM raw"}
	var told []string
	for _, h := range []*testHost{here, there} {
		s := &transcript{t: t, host: h}
		s.run("", "deploy", "x", "--source-root", "/data")
		s.run("", "deploy", "x", "--source-root", "/data", "--json")
		told = append(told, s.text.String())
	}
	if told[0] != told[1] {
		t.Errorf("here:\n%s\nfrom the node:\n%s", told[0], told[1])
	}
	err := problemDoc{Code: "checks_failed", Kind: "invalid", Detail: "1 of 2 checks failed: 1 problem was found", Problems: []mistakeDoc{{File: "a", Line: 1, Column: 1, Message: "m"}}}.err()
	if got := fail.DetailOf(err, true); got != "1 of 2 checks failed: 1 problem was found" {
		t.Errorf("detail %q", got)
	}
}

// A signal ends the waiting for a node's run, not the run; one that ends a command says so in one line. Both exit with 130.
func TestCancel(t *testing.T) {
	defer goleak.VerifyNone(t)
	node := &answers{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	node.on("POST /v1/workspaces/flights/refreshes", queued, 202)
	node.HandleFunc("GET /v1/workspaces/flights/runs/r1", func(http.ResponseWriter, *http.Request) { cancel() })
	server := httptest.NewServer(node)
	defer server.Close()
	h := &testHost{addr: server.Listener.Addr().String()}
	var stdout, stderr bytes.Buffer
	if code := Run(ctx, []string{"refresh", "flights"}, h, nil, &stdout, &stderr); code != 130 || !strings.Contains(stderr.String(), "run r1 of workspace \"flights\" goes on in the node") {
		t.Errorf("exit %d, %s", code, &stderr)
	}
	stderr.Reset()
	if code := Run(ctx, []string{"query", "flights", "all"}, h, nil, &stdout, &stderr); code != 130 || stderr.String() != "leapview: canceled\n" {
		t.Errorf("exit %d, %s", code, &stderr)
	}
}

// Every kind of failure has exactly one exit code, and only success has 0.
func TestEveryKindHasAnExitCode(t *testing.T) {
	count := map[fail.Kind]int{}
	for _, e := range exits {
		if (e.code == 0) != (len(e.kinds) == 0) {
			t.Errorf("code %d has kinds %v", e.code, e.kinds)
		}
		for _, k := range e.kinds {
			count[k]++
		}
	}
	for _, k := range fail.Kinds() {
		if count[k] != 1 {
			t.Errorf("kind %s has %d exit codes", k, count[k])
		}
	}
	if got := exitCode(errors.New("plain")); got != 1 {
		t.Errorf("an unclassified error exits with %d", got)
	}
}

// A setting comes from its flag, else from its environment variable, else it is the default; a variable that does not fit is named.
func TestSettings(t *testing.T) {
	h := &testHost{serve: func(context.Context, func(string)) error { return nil }}
	run := func(args ...string) (NodeOptions, int, string) {
		var stderr bytes.Buffer
		code := Run(t.Context(), append([]string{"serve"}, args...), h, nil, io.Discard, &stderr)
		return h.options, code, stderr.String()
	}
	if got, _, _ := run(); !reflect.DeepEqual(got, NodeOptions{Settings: app.DefaultSettings()}) {
		t.Errorf("defaults: %+v", got)
	}
	t.Setenv("LEAPVIEW_DATA_DIR", "from-env")
	t.Setenv("LEAPVIEW_LISTEN", "127.0.0.1:1")
	t.Setenv("LEAPVIEW_MEMORY", "2GiB")
	t.Setenv("LEAPVIEW_JSON", "true")
	t.Setenv("LEAPVIEW_HOST", "a,b.example")
	t.Setenv("LEAPVIEW_QUERY_TIME", "5s")
	t.Setenv("LEAPVIEW_SOURCE_BYTES", "2GiB")
	got, _, _ := run("--body-bytes", "3MiB", "--query-queue", "7", "--listen", "127.0.0.1:2", "--threads", "3", "--temp-space", "1500MB", "-v")
	limits := app.DefaultLimits()
	limits.Ask.Time, limits.SourceBytes, limits.BodyBytes, limits.QueryQueue = 5*time.Second, 2<<30, 3<<20, 7
	if !reflect.DeepEqual(got, NodeOptions{Settings: app.Settings{DataDir: "from-env", Listen: "127.0.0.1:2", Hosts: []string{"a", "b.example"}, Memory: 2 << 30, TempSpace: 1.5e9, Threads: 3, JSON: true, Verbose: true, Limits: limits}}) {
		t.Errorf("flags over environment: %+v", got)
	}
	t.Setenv("LEAPVIEW_JSON", "")
	t.Setenv("LEAPVIEW_THREADS", "many")
	if _, code, stderr := run(); code != 2 || !strings.Contains(stderr, "LEAPVIEW_THREADS") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// serve says that it is ready on the first line and, below it, a curl line that works as it is printed: an endpoint that needs no
// parameter when there is one. It waits for that before it ends.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, c := range map[string]struct{ endpoints, want string }{
		"an endpoint": {`{"endpoints":[{"name":"needs","params":[{"required":true}]},{"name":"free","params":[{"required":false}]}]}`, "/v1/workspaces/flights/endpoints/free"},
		"none":        {`{"endpoints":[{"name":"needs","params":[{"required":true}]}]}`, "/v1/workspaces"},
	} {
		node := &answers{}
		node.on("GET /v1/workspaces", `{"workspaces":[{"workspace":"empty"},{"workspace":"flights"}]}`, 200)
		node.on("GET /v1/workspaces/empty/endpoints", `{"code":"nothing_active","kind":"missing"}`, 404)
		asked := make(chan struct{})
		node.HandleFunc("GET /v1/workspaces/flights/endpoints", func(w http.ResponseWriter, r *http.Request) {
			node.answer(w, r, c.endpoints, 200)
			close(asked)
		})
		server := httptest.NewServer(node)
		addr := server.Listener.Addr().String()
		out := &firstLines{lines: make(chan string, 2)}
		h := &testHost{serve: func(_ context.Context, ready func(string)) error {
			ready(addr)
			<-asked
			// The node stops only once the line is out, as it is with a user who reads it.
			<-out.lines
			<-out.lines
			return nil
		}}
		if code := Run(t.Context(), []string{"serve"}, h, nil, out, io.Discard); code != 0 {
			t.Errorf("%s: exit %d", name, code)
		}
		server.Close()
		if want := "READY http://" + addr + "\ncurl http://" + addr + c.want + "\n"; out.text.String() != want {
			t.Errorf("%s: printed %q, want %q", name, out.text.String(), want)
		}
	}
	h := &testHost{serve: func(context.Context, func(string)) error { return fail.New(fail.Fatal, "engine", "gone") }}
	if code := Run(t.Context(), []string{"serve"}, h, nil, io.Discard, io.Discard); code != 70 {
		t.Errorf("a fatal engine exits with %d", code)
	}
}

// When the node answers only who shows a key, the curl line shows where the key goes.
func TestServeThatNeedsAKey(t *testing.T) {
	node := &answers{}
	node.on("GET /v1/workspaces", `{"code":"key_required","kind":"denied"}`, 401)
	server := httptest.NewServer(node)
	defer server.Close()
	if got, want := exampleArguments(t.Context(), server.URL), "-H 'Authorization: Bearer KEY' "+server.URL+"/v1/workspaces"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// firstLines tells of every line that was written.
type firstLines struct {
	text  bytes.Buffer
	lines chan string
}

func (f *firstLines) Write(b []byte) (int, error) {
	n, err := f.text.Write(b)
	f.lines <- string(b)
	return n, err
}

// On a terminal the step at work is the last line, which its end writes over.
func TestLiveProgress(t *testing.T) {
	var b bytes.Buffer
	show := &progress{w: &b, live: true}
	show.step(plan.Progress{Phase: plan.PhaseBuild, Subject: "m"})
	show.step(plan.Progress{Phase: plan.PhaseBuild, Subject: "m", Done: true, Rows: 1234567})
	show.step(plan.Progress{Phase: plan.PhaseValidate, Subject: "m"})
	show.close()
	show.close()
	want := "build   m …\r\x1b[Kbuild   m                    1,234,567 rows\ncheck   m …\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Counts have a comma between thousands, whatever their sign.
func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 336776: "336,776", -336776: "-336,776", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}

// With --json an error is one JSON object on one line, so that a program can read it between log lines.
func TestJSONErrorIsOneLine(t *testing.T) {
	var stderr bytes.Buffer
	Run(t.Context(), []string{"refresh", "--json", "Flights"}, &testHost{}, nil, io.Discard, &stderr)
	var doc errorDoc
	if err := json.Unmarshal(stderr.Bytes(), &doc); err != nil || doc.Code != "bad_workspace_name" || doc.ExitCode != 2 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%v: %s", err, &stderr)
	}
}
