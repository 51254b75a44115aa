package bootstrap

import (
	"context"
	"errors"
	"fmt"
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
	return Config{DataDir: filepath.Join(t.TempDir(), "node"), Extensions: extensions(t), Listen: "127.0.0.1:0", MemoryBytes: 128 << 20, TempBytes: 128 << 20, Threads: 1, Limits: app.DefaultLimits()}
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
	o := cli.NodeOptions{DataDir: c.DataDir, Extensions: c.Extensions, Listen: c.Listen, Memory: c.MemoryBytes, TempSpace: c.TempBytes, Threads: c.Threads, Limits: c.Limits}
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
	o := cli.NodeOptions{Limits: app.DefaultLimits(), DataDir: c.DataDir, Extensions: c.Extensions, Memory: c.MemoryBytes, TempSpace: c.TempBytes, Threads: c.Threads}
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
	_, err := Config{Listen: "data.example.org:80", Hosts: []string{"https://x", "x:80/", "ok.example.org", "192.0.2.1", "::1"}, MemoryBytes: 1, TempBytes: 1, Threads: -1, Limits: app.DefaultLimits()}.complete()
	if fail.KindOf(err) != fail.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"data-dir", "extensions", "data.example.org", "https://x", "x:80/", "memory", "temp-space", "threads"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	for _, right := range []string{"ok.example.org", "192.0.2.1", "::1"} {
		if strings.Contains(err.Error(), right) {
			t.Errorf("the error names %s: %v", right, err)
		}
	}
	const all = "data-dir extensions memory temp-space threads query-queue query-time bundle-calls answer-bytes body-bytes source-files source-bytes"
	absurd := app.Limits{Ask: app.AskLimits{Bytes: 1 << 40, Calls: -1, Time: time.Hour * 1000}, QuerySlots: -1, QueryQueue: 1 << 30, SourceBytes: 1}
	for want, limits := range map[string]app.Limits{all: {}, all + " query-slots": absurd} {
		names := strings.Fields(want)
		_, err := Config{MemoryBytes: 1, TempBytes: 1, Threads: -1, Limits: limits}.complete()
		if fail.KindOf(err) != fail.Invalid || !strings.Contains(err.Error(), fmt.Sprintf("%d settings", len(names))) {
			t.Errorf("got %v, want %d settings refused", err, len(names))
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("the error does not name %s: %v", name, err)
			}
		}
	}
	c, err := Config{DataDir: filepath.Join(t.TempDir(), "not", "there", "yet"), Extensions: "x", Limits: app.DefaultLimits()}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if c.MemoryBytes < leastMemory || c.TempBytes < leastTemp || c.Threads < 1 || c.Limits.QuerySlots != 2*c.Threads || c.Limits.Ask.Bytes == 0 || !filepath.IsAbs(c.Extensions) {
		t.Errorf("derived %+v", c)
	}
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || host != "127.0.0.1" {
		t.Errorf("listens on %q by default", c.Listen)
	}
}
