package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"leapview/tests/nodetest"
)

// shop is a small project in a folder of its own, with the node's data beside it.
type shop struct {
	dir, data string
	flags     []string
}

func newShop(t *testing.T) shop {
	t.Helper()
	base := t.TempDir()
	s := shop{dir: filepath.Join(base, "project"), data: filepath.Join(base, "data")}
	s.flags = []string{"--data-dir", s.data, "--extensions", nodetest.Extensions(t)}
	for _, f := range nodetest.Files() {
		s.write(t, f.Path, string(f.Content))
	}
	s.write(t, "orders.csv", "id,region,amount\n1,north,10\n2,south,20\n")
	return s
}

func (s shop) write(t *testing.T, path, content string) {
	t.Helper()
	full := filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s shop) args(args ...string) []string { return append(args, s.flags...) }

// TestFailedRefreshes proves that a refresh whose check fails, whose CSV has a bad row, whose column changed, or whose SQL is wrong
// ends with an exit code and a message that names file and line, with and without a running node, and that the old answers stay.
func TestFailedRefreshes(t *testing.T) {
	model := func(text string) string {
		for _, f := range nodetest.Files() {
			if f.Path == "models/stg_orders.sql" {
				return strings.Replace(string(f.Content), "SELECT id, region, amount FROM orders", text, 1)
			}
		}
		return ""
	}
	for _, c := range []struct {
		name       string
		file, text string
		deployed   bool
		says       []string
	}{
		{"check fails", "orders.csv", "id,region,amount\n1,north,10\n1,south,20\n", true, []string{"models/stg_orders.sql:2:", "unique(id)"}},
		{"bad row", "orders.csv", "id,region,amount\n1,north,10\n2,south,many\n", true, []string{"orders.csv:3", "amount", "many"}},
		{"column changed", "orders.csv", "id,area,amount\n1,north,10\n", true, []string{"orders.csv:1", "area", "region"}},
		{"wrong column in SQL", "models/stg_orders.sql", model("SELECT id, regio, amount FROM orders"), false, []string{"models/stg_orders.sql:4", "regio"}},
		{"SQL that does not parse", "models/stg_orders.sql", model("SELECT id region, amount FRM orders"), false, []string{"models/stg_orders.sql:4"}},
		{"a value that no longer fits", "models/stg_orders.sql", model("SELECT (id * 9223372036854775807)::BIGINT AS id, region, amount FROM orders"), true, []string{"models/stg_orders.sql:4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			ok(t, s.args("deploy", s.dir)...)
			ok(t, s.args("refresh", "shop")...)
			fails := func(how string) {
				t.Helper()
				r := run(t, s.args("deploy", s.dir)...)
				if c.deployed {
					if r.code != 0 {
						t.Fatalf("%s: deploy: %s", how, r.errOut)
					}
					r = run(t, s.args("refresh", "shop")...)
				}
				if r.code != 2 {
					t.Errorf("%s: exit code %d, want 2", how, r.code)
				}
				for _, want := range c.says {
					if !strings.Contains(r.errOut, want) {
						t.Errorf("%s: the message does not say %q:\n%s", how, want, r.errOut)
					}
				}
			}
			s.write(t, c.file, c.text)
			fails("without a node")
			n := serve(t, s.data)
			fails("with a running node")
			if a := n.get(t, "shop", "orders"); len(a.Rows) != 2 || a.Meta.Generation != 1 {
				t.Errorf("the old answers are gone: %v %+v", a.Rows, a.Meta)
			}
			for _, f := range nodetest.Files() {
				s.write(t, f.Path, string(f.Content))
			}
			s.write(t, "orders.csv", "id,region,amount\n7,north,70\n")
			ok(t, s.args("deploy", s.dir)...)
			ok(t, s.args("refresh", "shop")...)
			if a := n.get(t, "shop", "orders"); len(a.Rows) != 1 || a.Meta.Generation != 2 {
				t.Errorf("the mended project is not served: %v %+v", a.Rows, a.Meta)
			}
			if code := n.stop(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestRefusals proves that a start which cannot be right is refused, each with its own message and exit code: a second node on one
// directory, a missing or altered extension, and a directory that another user owns.
func TestRefusals(t *testing.T) {
	s := newShop(t)
	ok(t, s.args("deploy", s.dir)...)
	ok(t, s.args("refresh", "shop")...)
	n := serve(t, s.data)
	refused := func(t *testing.T, r ran, code int, says ...string) {
		t.Helper()
		if r.code != code {
			t.Errorf("exit code %d, want %d", r.code, code)
		}
		for _, want := range says {
			if !strings.Contains(r.errOut, want) {
				t.Errorf("the message does not say %q:\n%s", want, r.errOut)
			}
		}
		if strings.Contains(r.errOut, "goroutine ") || strings.Contains(r.errOut, "could not build arguments") {
			t.Errorf("the message shows our insides:\n%s", r.errOut)
		}
	}
	t.Run("second node", func(t *testing.T) {
		r := run(t, s.args("serve", "--listen", "127.0.0.1:0")...)
		refused(t, r, 4, s.data, fmt.Sprintf("process %d", n.cmd.Process.Pid))
		if a := n.get(t, "shop", "orders"); len(a.Rows) != 2 {
			t.Errorf("the first node answers %v", a.Rows)
		}
	})
	if code := n.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Run("missing extension", func(t *testing.T) {
		r := run(t, "serve", "--data-dir", s.data, "--extensions", t.TempDir(), "--listen", "127.0.0.1:0")
		refused(t, r, 5, "ducklake.duckdb_extension", "make extensions")
	})
	t.Run("altered extension", func(t *testing.T) {
		dir := t.TempDir()
		b, err := os.ReadFile(filepath.Join(nodetest.Extensions(t), "ducklake.duckdb_extension"))
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(filepath.Join(dir, "ducklake.duckdb_extension"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		r := run(t, "serve", "--data-dir", s.data, "--extensions", dir, "--listen", "127.0.0.1:0")
		refused(t, r, 3, filepath.Join(dir, "ducklake.duckdb_extension"), "make extensions")
	})
	t.Run("directory of another user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("running the binary under another uid needs root; TestPrepareOtherOwner in adapters/fs covers the same refusal without it")
		}
		c := exec.Command(binary, "serve", "--data-dir", s.data, "--extensions", nodetest.Extensions(t), "--listen", "127.0.0.1:0")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		var out, errOut bytes.Buffer
		c.Stdout, c.Stderr = &out, &errOut
		c.Dir = "/"
		// The folders above belong to this test; they must let the other user through to the one that is refused.
		for dir := filepath.Dir(s.data); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		err := c.Run()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		refused(t, ran{c.ProcessState.ExitCode(), out.String(), errOut.String()}, 7, s.data, "uid 65534")
	})
	t.Run("control plane of a newer version", func(t *testing.T) {
		s := newShop(t)
		ok(t, s.args("deploy", s.dir)...)
		db, err := sql.Open("sqlite3", filepath.Join(s.data, "leapview.db"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec("UPDATE schema_migrations SET version = 4711")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		r := run(t, s.args("serve", "--listen", "127.0.0.1:0")...)
		refused(t, r, 4, "4711", "leapview.db", "newer")
	})
	t.Run("not ready when the lake lost a file", func(t *testing.T) {
		s := newShop(t)
		ok(t, s.args("deploy", s.dir)...)
		ok(t, s.args("refresh", "shop")...)
		files, err := filepath.Glob(filepath.Join(s.data, "data", "shop", "*", "*.parquet"))
		if err != nil || len(files) == 0 {
			t.Fatal("no data files", err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		n := start(t, s.data)
		socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.data, "leapview.sock"))
		}}}
		var resp *http.Response
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			// Until the stores were proved the node says that it is starting.
			if resp, err = socket.Get("http://node/v1/workspaces"); err == nil {
				_ = resp.Body.Close()
				if resp.StatusCode == 200 {
					break
				}
			}
			if time.Now().After(deadline) {
				t.Fatal("the node did not start", err)
			}
		}
		if resp, err = socket.Get("http://node/readyz"); err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 503 || !strings.Contains(b.String(), filepath.Base(files[0])) {
			t.Errorf("readyz says %d %s", resp.StatusCode, b.String())
		}
		if code := n.stop(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestStopIsBounded proves that a node which answers a query that the engine cannot interrupt still stops: it names the request, ends
// with the exit code of a node that is not there, and leaves a directory that the next node starts from.
func TestStopIsBounded(t *testing.T) {
	s := newShop(t)
	// Without a value for its parameter, as it is run while it is prepared, the endpoint computes nothing.
	s.write(t, "endpoints/stuck.sql", "/*---\n{\"params\": {\"n\": {\"type\": \"integer\", \"required\": true}}}\n---*/\n"+
		"SELECT max(levenshtein(repeat('a', 10000) || range, repeat('b', 10000))) AS d FROM range(2000) WHERE range < $n")
	ok(t, s.args("deploy", s.dir)...)
	ok(t, s.args("refresh", "shop")...)
	n := serve(t, s.data)
	ended := make(chan error, 1)
	go func() {
		req, err := http.NewRequest("GET", n.url+"/v1/workspaces/shop/endpoints/stuck?n=2000", nil)
		if err == nil {
			req.Header.Set("X-Request-Id", "stuck-1")
			_, err = http.DefaultClient.Do(req)
		}
		ended <- err
	}()
	// Once a second has passed, the engine is at work.
	select {
	case err := <-ended:
		t.Fatalf("the query ended: %v", err)
	case <-time.After(time.Second):
	}
	if code := n.stop(t); code != 75 {
		t.Errorf("exit code %d", code)
	}
	if err := <-ended; err == nil {
		t.Error("the query was answered")
	}
	for _, says := range []string{"request abandoned", "request_id stuck-1"} {
		if !strings.Contains(n.errOut.String(), says) {
			t.Errorf("the node does not say %q", says)
		}
	}
	n = serve(t, s.data)
	if a := n.get(t, "shop", "orders"); len(a.Rows) != 2 {
		t.Errorf("the next node answers %v", a.Rows)
	}
	if code := n.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
