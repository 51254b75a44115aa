package bootstrap

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/goleak"

	"leapview/adapters/cli"
	"leapview/adapters/fs"
	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// extensions is the folder that `make extensions` fills.
func extensions(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".extensions"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ducklake.duckdb_extension")); err != nil {
		t.Fatalf("the engine's extension is missing (%v): run make extensions", err)
	}
	return dir
}

func small(t *testing.T) Config {
	t.Helper()
	return Config{Settings: app.Settings{DataDir: filepath.Join(t.TempDir(), "node"), Extensions: extensions(t), Listen: "127.0.0.1:0", Memory: 128 << 20, TempSpace: 128 << 20, Threads: 1, Limits: app.DefaultLimits()}}
}

// TestGraph proves that every constructor of the node finds what it needs, without running any.
func TestGraph(t *testing.T) {
	err := fx.ValidateApp(graph(context.Background(), Config{}, Real(), &Closers{}, slog.New(slog.DiscardHandler)), fx.Invoke(func(*Node) {}))
	if err != nil {
		t.Fatal(err)
	}
}

// TestStartAndStop proves that a node starts over an empty directory, says that it is ready, and stops when asked, twice in a row,
// leaving no goroutine, no lock and no socket.
func TestStartAndStop(t *testing.T) {
	c := small(t)
	o := cli.NodeOptions{Settings: c.Settings}
	for range 2 {
		ctx, stop := context.WithCancel(context.Background())
		ready, ended := make(chan string, 1), make(chan error, 1)
		go func() { ended <- NewHost().Serve(ctx, o, io.Discard, func(addr string) { ready <- addr }) }()
		select {
		case addr := <-ready:
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get("http://" + addr + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("readyz says %d", resp.StatusCode)
			}
		case err := <-ended:
			t.Fatalf("the node ended before it was ready: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("the node is not ready after a minute")
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(c.DataDir, "leapview.sock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	}
}

// TestListeningTakesAKey proves that a node refuses to be reached from other machines until a key was made, saying how to make one, and
// that from then on only who shows one is answered, on loopback too.
func TestListeningTakesAKey(t *testing.T) {
	c := small(t)
	o := cli.NodeOptions{Settings: c.Settings}
	host := NewHost()
	others := []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"}
	for _, o.Listen = range others {
		err := host.Serve(t.Context(), o, io.Discard, func(string) { t.Error("it serves") })
		if fail.KindOf(err) != fail.Denied || fail.CodeOf(err) != "no_keys" || !strings.Contains(fail.FixOf(err), "leapview key create") {
			t.Errorf("%s: %v", o.Listen, err)
		}
	}
	n, closers, err := Compose(t.Context(), c, Real(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := n.Keyring.Create(t.Context(), access.Local.Caller(""), access.Spec{Grant: access.Grant{Role: access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n.Config.Listen = range others {
		if err := n.listenable(); err != nil {
			t.Errorf("with a key, %s: %v", n.Config.Listen, err)
		}
	}
	if err := closers.Close(); err != nil {
		t.Fatal(err)
	}

	o.Listen = c.Listen
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- host.Serve(ctx, o, io.Discard, func(addr string) { ready <- addr }) }()
	var addr string
	select {
	case addr = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, shown := range []bool{false, true} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/v1/workspaces", nil)
		if err != nil {
			t.Fatal(err)
		}
		want := 401
		if shown {
			want = 200
			req.Header.Set("Authorization", "Bearer "+secret.Reveal())
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with the key shown (%v): %d, want %d", shown, resp.StatusCode, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestReachable proves that a node which listens on every address says one that this machine reaches.
func TestReachable(t *testing.T) {
	for given, want := range map[string]string{"127.0.0.1:80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "[::1]:80": "[::1]:80"} {
		if got := reachable(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(given))); got != want {
			t.Errorf("%s is reached at %s", given, got)
		}
	}
}

// TestFailedStartReleases proves that when a later part cannot be opened, the parts before it are released: the next start finds the
// lock free.
func TestFailedStartReleases(t *testing.T) {
	c := small(t)
	broken := Real()
	broken.Store = func(context.Context, Config, app.Boot, ports.Identity, Control, *Closers) (Store, error) {
		return Store{}, fail.New(fail.Corrupt, "planted", "the store cannot be opened")
	}
	log := slog.New(slog.DiscardHandler)
	if _, _, err := Compose(context.Background(), c, broken, log); fail.CodeOf(err) != "planted" || strings.Contains(err.Error(), "could not build") {
		t.Fatalf("got %v", err)
	}
	_, closers, err := Compose(context.Background(), c, Real(), log)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(closers.Close(), closers.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOneLayout proves that all parts of a node open one and the same data directory, whatever becomes of the link that it was named by.
func TestOneLayout(t *testing.T) {
	c := small(t)
	first, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(first, c.DataDir); err != nil {
		t.Fatal(err)
	}
	parts := Real()
	parts.Layout = func(dir string) (fs.Layout, error) {
		l, err := fs.Prepare(dir)
		return l, errors.Join(err, os.Remove(dir), os.Symlink(other, dir))
	}
	_, closers, err := Compose(context.Background(), c, parts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := closers.Close(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"leapview.db", "leapview.lock", filepath.Join("ducklake", "catalog.duckdb")} {
		if _, err := os.Stat(filepath.Join(first, name)); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
		t.Errorf("in the other directory are %v, %v", left, err)
	}
}

// TestClosers proves that everything is closed once, in the reverse order, whatever fails.
func TestClosers(t *testing.T) {
	var c Closers
	var order []string
	for _, name := range []string{"a", "b", "c"} {
		c.Add(name, func() error {
			order = append(order, name)
			if name == "b" {
				return errors.New("will not")
			}
			return nil
		})
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "close b: will not") {
		t.Errorf("got %v", err)
	}
	if err := c.Close(); err != nil || strings.Join(order, "") != "cba" {
		t.Errorf("closed %v, then %v", order, err)
	}
}

// TestConfig proves that wrong settings are refused all at once, by name, and that missing ones are derived.
func TestConfig(t *testing.T) {
	_, err := Config{Settings: app.Settings{Listen: "data.example.org:80", Hosts: []string{"https://x"}, Memory: 1, TempSpace: 1, Threads: -1}}.complete()
	if fail.KindOf(err) != fail.Invalid || fail.CodeOf(err) != "bad_settings" {
		t.Fatalf("got %v", err)
	}
	for _, want := range strings.Fields("data_dir data.example.org https://x memory temp_space threads query_queue query_time requests bundle_calls answer_bytes body_bytes source_files source_bytes") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	c, err := Config{Settings: app.Settings{DataDir: filepath.Join(t.TempDir(), "not", "there", "yet"), Extensions: "x", Limits: app.DefaultLimits()}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if problems := c.Problems(); len(problems) > 0 || c.Memory == 0 || c.TempSpace == 0 || c.Threads < 1 || c.Limits.QuerySlots != 2*c.Threads || !filepath.IsAbs(c.Extensions) {
		t.Errorf("derived %+v, of which cannot be: %v", c, problems)
	}
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || host != "127.0.0.1" {
		t.Errorf("listens on %q by default", c.Listen)
	}
}

// TestConfigure proves that the file of settings is found in the working directory or where it is named, that what is wrong with it is told
// at its line, and that what the machine tells is computed and said to be.
func TestConfigure(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := NewHost()
	c, err := h.Configure(app.Given{})
	if err != nil || c.File != "" || c.Settings.Threads < 1 || c.Origins["threads"].Source != app.FromMachine || c.Origins["memory"].Source != app.FromMachine ||
		c.Settings.Memory%(1<<20) != 0 || c.Settings.Extensions != "" || c.Origins["extensions"].Source != app.FromDefault {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	write("leapview-node.yaml", "threads: 3\ndata_dir: here\nquery_slots: 0\n")
	c, err = h.Configure(app.Given{})
	if err != nil || c.File != "leapview-node.yaml" || c.Settings.Threads != 3 || c.Settings.DataDir != "here" || c.Settings.Limits.QuerySlots != 6 ||
		c.Origins["threads"].Place != "leapview-node.yaml:1:10" || c.Origins["query_slots"].Place != "twice the 3 threads" {
		t.Errorf("with a file here: %+v, %v", c, err)
	}
	if err := os.Mkdir("etc", 0o700); err != nil {
		t.Fatal(err)
	}
	write("etc/node.yaml", "data_dir: data\nextensions: /x\n")
	c, err = h.Configure(app.Given{Environment: []string{"LEAPVIEW_CONFIG=etc/node.yaml"}})
	if err != nil || c.File != "etc/node.yaml" || c.Settings.DataDir != "etc/data" || c.Settings.Extensions != "/x" || c.Origins["threads"].Source != app.FromMachine {
		t.Errorf("with a named file: %+v, %v", c, err)
	}
	write("leapview-node.yaml", "threads: many\nmemroy: 1GiB\n")
	_, err = h.Configure(app.Given{Flags: map[string][]string{"memory": {"1KiB"}}})
	for _, want := range []string{"leapview-node.yaml:1:10: threads: \"many\" is not a whole number", "leapview-node.yaml:2:1: there is no setting \"memroy\"; did you mean \"memory\"?", "--memory: 1KiB is not at least 64MiB"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	write("leapview-node.yaml", "threads: [\n")
	if _, err = h.Configure(app.Given{}); err == nil || !strings.Contains(err.Error(), "leapview-node.yaml:") {
		t.Errorf("no YAML: %v", err)
	}
	if _, err = h.Configure(app.Given{Flags: map[string][]string{"config": {"none.yaml"}}}); err == nil || !strings.Contains(err.Error(), "--config: ") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestExtensionsAreLookedFor proves that the extension files are found in the working directory when no directory is named, and that the
// refusal says where they were looked for, before a data directory is made.
func TestExtensionsAreLookedFor(t *testing.T) {
	c := small(t)
	named := c.Extensions
	c.Extensions = ""
	t.Chdir(t.TempDir())
	_, _, err := Compose(t.Context(), c, Real(), slog.New(slog.DiscardHandler))
	if fail.KindOf(err) != fail.Missing || fail.CodeOf(err) != "extension_missing" || !strings.Contains(fail.FixOf(err), "make extensions") {
		t.Errorf("got %v", err)
	}
	for _, place := range places() {
		if !strings.Contains(err.Error(), place) {
			t.Errorf("%v does not name %s", err, place)
		}
	}
	if _, err := os.Stat(c.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory: %v", err)
	}
	if err := os.Symlink(named, ".extensions"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.complete(); err != nil || got.Extensions != places()[0] {
		t.Errorf("found %q, %v", got.Extensions, err)
	}
}
