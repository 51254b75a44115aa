package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"leapview/tests/nodetest"
)

// binary is the path of the built command.
var binary string

// TestMain builds the binary once.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "leapview-e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		// Another user must be able to run it, to prove that another user's directory is refused.
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		binary = filepath.Join(dir, "leapview")
		build := exec.Command("go", "build", "-tags", "duckdb_arrow", "-o", binary, "leapview/cmd/leapview")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			return 1
		}
		return m.Run()
	}())
}

// ran is a finished command.
type ran struct {
	code        int
	out, errOut string
}

// run runs the binary to its end, within two minutes.
func run(t *testing.T, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, binary, args...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	if c.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("leapview %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// ok is run that must succeed.
func ok(t *testing.T, args ...string) ran {
	t.Helper()
	r := run(t, args...)
	if r.code != 0 {
		t.Fatalf("leapview %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.errOut)
	}
	return r
}

// node is a serving process.
type node struct {
	url     string
	hint    string
	cmd     *exec.Cmd
	errOut  *bytes.Buffer
	lines   chan string
	stopped bool
}

// start starts a node and gives what it writes to its standard output, a line at a time.
func start(t *testing.T, dataDir string, flags ...string) *node {
	t.Helper()
	n := &node{errOut: &bytes.Buffer{}, lines: make(chan string)}
	n.cmd = exec.Command(binary, append([]string{"serve", "--data-dir", dataDir, "--extensions", nodetest.Extensions(t), "--listen", "127.0.0.1:0"}, flags...)...)
	n.cmd.Stderr = n.errOut
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !n.stopped {
			_ = n.cmd.Process.Kill()
			_ = n.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("the node wrote:\n%s", n.errOut.String())
		}
	})
	go func() {
		defer close(n.lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			n.lines <- s.Text()
		}
	}()
	return n
}

// serve starts a node and waits for its READY line and the curl line below it.
func serve(t *testing.T, dataDir string, flags ...string) *node {
	t.Helper()
	n := start(t, dataDir, flags...)
	deadline := time.After(time.Minute)
	for n.hint == "" {
		select {
		case line, open := <-n.lines:
			if !open {
				n.stopped = true
				err := n.cmd.Wait()
				t.Fatalf("the node ended before it was ready: %v\n%s", err, n.errOut.String())
			}
			if url, found := strings.CutPrefix(line, "READY "); found {
				n.url = url
			} else if strings.HasPrefix(strings.TrimSpace(line), "curl ") {
				n.hint = strings.TrimSpace(line)
			}
		case <-deadline:
			t.Fatalf("the node is not ready after a minute\n%s", n.errOut.String())
		}
	}
	go func() {
		for range n.lines {
		}
	}()
	return n
}

// stop ends the node as a supervisor does and gives its exit code.
func (n *node) stop(t *testing.T) int {
	t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = n.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(40 * time.Second):
		t.Fatalf("the node does not stop\n%s", n.errOut.String())
	}
	n.stopped = true
	return n.cmd.ProcessState.ExitCode()
}

// answer is what endpoints send.
type answer struct {
	Columns []struct{ Name, Type string }
	Rows    [][]any
	Meta    meta
	Results []struct {
		Name, Endpoint string
		Rows           [][]any
	}
}

type meta struct {
	Workspace, Lineage, Release string
	Generation, Snapshot        int64
	BuiltAt                     time.Time `json:"built_at"`
	Rows                        int
	Truncated                   bool
}

// fetch sends a request and decodes its answer with exact numbers.
func fetch(t *testing.T, method, url, body string) (answer, *http.Response) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
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
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s\n%s", method, url, resp.Status, text)
	}
	var a answer
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		t.Fatalf("%s: %v\n%.500s", url, err, text)
	}
	return a, resp
}

// get calls an endpoint of a workspace.
func (n *node) get(t *testing.T, workspace, endpoint string) answer {
	t.Helper()
	a, _ := fetch(t, "GET", n.url+"/v1/workspaces/"+workspace+"/endpoints/"+endpoint, "")
	return a
}
