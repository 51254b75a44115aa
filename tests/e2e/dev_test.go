package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestDev proves the loop: a project is served as it is; a mistake is explained at its line while the old answers stay; its correction,
// and new data, give new answers; and a signal ends it all.
func TestDev(t *testing.T) {
	s := newShop(t)
	cmd := exec.Command(binary, s.args("dev", s.dir, "--listen", "127.0.0.1:0")...)
	var errOut syncBuffer
	cmd.Stderr = &errOut
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	lines := make(chan string, 100)
	go func() {
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			lines <- scan.Text()
		}
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within a minute; it said:\n%s", what, errOut.String())
			}
		}
	}
	line := func() string {
		t.Helper()
		select {
		case l := <-lines:
			return l
		case <-time.After(time.Minute):
			t.Fatalf("no line within a minute; it said:\n%s", errOut.String())
			return ""
		}
	}
	url, ok := strings.CutPrefix(line(), "READY ")
	if !ok {
		t.Fatalf("the first line is not READY")
	}
	if got := line(); got != "curl '"+url+"/v1/workspaces/shop/endpoints/orders'" {
		t.Errorf("the next line is %q", got)
	}
	n := &node{url: url}
	rows := func() string { return fmt.Sprint(n.get(t, "shop", "orders").Rows) }
	if got := rows(); got != "[[1 north 10] [2 south 20]]" {
		t.Fatalf("at first: %s", got)
	}

	model := filepath.Join(s.dir, "models/stg_orders.sql")
	right, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "models/stg_orders.sql", strings.Replace(string(right), "region, amount FROM", "regio, amount FROM", 1))
	until("the mistake", func() bool { return strings.Contains(errOut.String(), "models/stg_orders.sql:4:12: ") })
	if got := rows(); got != "[[1 north 10] [2 south 20]]" {
		t.Errorf("with the mistake: %s", got)
	}
	s.write(t, "models/stg_orders.sql", strings.Replace(string(right), "region, amount FROM", "region, amount + 1 AS amount FROM", 1))
	until("the correction", func() bool { return rows() == "[[1 north 11] [2 south 21]]" })
	s.write(t, "orders.csv", "id,region,amount\n3,west,30\n")
	until("the new data", func() bool { return rows() == "[[3 west 31]]" })
	s.write(t, "orders.csv", "id,region,amount\n3,west,many\n")
	until("the bad row", func() bool { return strings.Contains(errOut.String(), "orders.csv:2:8: ") })
	if got := rows(); got != "[[3 west 31]]" {
		t.Errorf("with the bad row: %s", got)
	}

	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v:\n%s", err, errOut.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not stop")
	}
}

// TestDevRefusals proves that dev says at once what it cannot work on.
func TestDevRefusals(t *testing.T) {
	s := newShop(t)
	for dir, says := range map[string]string{t.TempDir(): "holds no leapview.yaml", filepath.Join(s.dir, "missing"): "is not a folder"} {
		if r := run(t, s.args("dev", dir, "--listen", "127.0.0.1:0")...); r.code != 5 || !strings.Contains(r.errOut, says) {
			t.Errorf("%s: exit code %d: %s", dir, r.code, r.errOut)
		}
	}
}

// syncBuffer is a buffer that is written while it is read.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
