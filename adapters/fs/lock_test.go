package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func acquire(t *testing.T, l Layout) *Lock {
	t.Helper()
	k, err := Acquire(l, "boot-a", start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Release(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// Proves: a second process is refused by the holder's pid and start, and the holder is unharmed; when the holder is killed the
// directory is free at once, whatever its lock file still says.
func TestLockBetweenProcesses(t *testing.T) {
	l := prepare(t)
	h := startProcess(t, "hold", l.Root, -1)
	if h.outcome != "done" {
		t.Fatal(h.outcome)
	}
	_, err := Acquire(l, "boot-a", start)
	refused(t, err, "locked", l.Root, fmt.Sprintf("process %d", h.cmd.Process.Pid), "started 2026-03-04T05:06:07Z", "stop that process")
	h.kill(t)
	if got := names(t, l.TempRoot); len(got) != 1 || got[0] != "other-boot" {
		t.Fatalf("the killed process left %v, want its spill folder", got)
	}
	k := acquire(t, l)
	second := startProcess(t, "hold", l.Root, -1)
	if want := fmt.Sprintf("held by process %d", os.Getpid()); !strings.HasPrefix(second.outcome, "locked: ") || !strings.Contains(second.outcome, want) {
		t.Errorf("got %q, want locked and %q", second.outcome, want)
	}
	if err := k.Sweep(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, l.TempRoot); len(got) != 1 || got[0] != "boot-a" {
		t.Errorf("after the sweep the spill folders are %v", got)
	}
	// The killed process left its socket too.
	listener, err := k.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// Proves: a start is not disturbed by others that only come as far as finding the directory held.
func TestStartsSideBySide(t *testing.T) {
	l := prepare(t)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if _, err := Prepare(l.Root); err != nil {
				ended <- err
				return
			}
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
		}
	}()
	for range 200 {
		k, err := Acquire(l, "boot-a", start)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(k.Sweep(), k.Release()); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Proves: within one process a second hold is refused as well, releasing twice is once, and the lock file says who holds it.
func TestLockOnce(t *testing.T) {
	l := prepare(t)
	k := acquire(t, l)
	_, err := Acquire(l, "boot-b", start)
	refused(t, err, "locked", fmt.Sprintf("process %d", os.Getpid()))
	b, err := os.ReadFile(l.LockFile)
	if err != nil {
		t.Fatal(err)
	}
	var got Holder
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Holder{os.Getpid(), host, start, "boot-a"}); got != want {
		t.Errorf("the lock file says %v, want %v", got, want)
	}
	for range 2 {
		if err := k.Release(); err != nil {
			t.Fatal(err)
		}
	}
	other := acquire(t, l)
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	_, err = k.Listen()
	refused(t, err, "not_locked")
}

// Proves: a lock file that a crash left in any state neither stops a start nor confuses the next holder's entry, and a holder that
// has not written its name yet is still refused.
func TestLockStaleContent(t *testing.T) {
	for _, content := range []string{"", "{", `{"pid":1,"host":"gone"}`, strings.Repeat("x", 10_000)} {
		l := prepare(t)
		write(t, l.LockFile, content)
		k := acquire(t, l)
		if b, err := os.ReadFile(l.LockFile); err != nil || !json.Valid(b) {
			t.Errorf("over %.20q the lock file holds %.40q, %v", content, b, err)
		}
		write(t, l.LockFile, content)
		_, err := Acquire(l, "boot-b", start)
		refused(t, err, "locked", l.Root)
		if err := k.Release(); err != nil {
			t.Fatal(err)
		}
	}
	l := prepare(t)
	for _, boot := range []string{"", "../x", "a/b", ".x", "a b", strings.Repeat("x", 101)} {
		_, err := Acquire(l, boot, start)
		refused(t, err, "bad_segment")
	}
}

// Proves: a sweep removes what earlier processes left and nothing else, does not follow links, and can be repeated; the spill
// folder goes with the release.
func TestSweep(t *testing.T) {
	l := prepare(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "keep"), "x")
	k := acquire(t, l)
	gone := []string{filepath.Join(l.Staged, "run", "s", "f.csv"), filepath.Join(l.Exports, "e.csv"), filepath.Join(l.Runtime, "old", "x"),
		filepath.Join(l.TempRoot, "old-boot", "spill"), filepath.Join(l.Artifacts, "abc.tar"+unfinished)}
	stays := []string{filepath.Join(l.Artifacts, "abc.tar"), filepath.Join(l.DataDir, "w", "t", "f.parquet"), l.ControlDB, l.Fence, filepath.Join(outside, "keep")}
	for _, p := range append(append([]string{}, gone...), stays[:4]...) {
		write(t, p, "x")
	}
	link(t, outside, filepath.Join(l.Staged, "link"))
	for range 2 {
		if err := k.Sweep(); err != nil {
			t.Fatal(err)
		}
		for _, p := range gone {
			if _, err := os.Lstat(p); err == nil {
				t.Errorf("%s is still there", p)
			}
		}
		for _, p := range append(stays, l.Staged, l.Exports, k.Temp()) {
			if _, err := os.Lstat(p); err != nil {
				t.Error(err)
			}
		}
		if got := names(t, l.Staged); len(got) != 0 {
			t.Errorf("staged still holds %v", got)
		}
	}
	write(t, filepath.Join(k.Temp(), "spill"), "x")
	if err := k.Release(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, l.TempRoot); len(got) != 0 {
		t.Errorf("the release leaves %v in the spill folder", got)
	}
}

// deepLayout prepares a data directory whose socket path is longer than the kernel takes.
func deepLayout(t *testing.T) Layout {
	t.Helper()
	l, err := Prepare(filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60)))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Proves: the control socket works at a short and at a too long path, is 0600, takes the place of a dead one, and goes with its
// listener; without a node, dialing says so.
func TestSocket(t *testing.T) {
	for name, l := range map[string]Layout{"short": prepare(t), "long": deepLayout(t)} {
		t.Run(name, func(t *testing.T) {
			k := acquire(t, l)
			if name == "long" && runtime.GOOS != "linux" {
				_, err := k.Listen()
				refused(t, err, "socket_path", l.Socket)
				return
			}
			_, err := Dial(t.Context(), l)
			refused(t, err, "node_not_running", l.Root, "leapview serve")
			for range 2 {
				listener, err := k.Listen()
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Lstat(l.Socket)
				if err != nil {
					t.Fatal(err)
				}
				if info.Mode() != os.ModeSocket|0o600 {
					t.Errorf("the socket has mode %v", info.Mode())
				}
				served := make(chan error, 1)
				go func() {
					conn, err := listener.Accept()
					if err == nil {
						_, err = io.WriteString(conn, "hello")
						_ = conn.Close()
					}
					served <- err
				}()
				conn, err := Dial(t.Context(), l)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(conn)
				if err != nil || string(got) != "hello" {
					t.Errorf("read %q, %v", got, err)
				}
				_ = conn.Close()
				if err := <-served; err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := listener.Close(); err != nil {
						t.Error(err)
					}
				}
				if _, err := os.Lstat(l.Socket); err == nil {
					t.Error("the closed listener leaves its socket")
				}
			}
			// A dead process leaves a socket that nobody listens on.
			listener, err := k.Listen()
			if err != nil {
				t.Fatal(err)
			}
			if err := listener.(*socket).UnixListener.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = Dial(t.Context(), l)
			refused(t, err, "node_not_running")
			if listener, err = k.Listen(); err != nil {
				t.Fatal(err)
			}
			_ = listener.Close()
			write(t, l.Socket, "a file of the user's")
			_, err = k.Listen()
			refused(t, err, "not_a_socket", l.Socket)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = Dial(ctx, l)
			refused(t, err, "canceled")
		})
	}
}
