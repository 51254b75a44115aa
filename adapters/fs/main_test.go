package fs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"leapview/domain/fail"
)

// processTask, when it is in the environment, makes the test binary a second process for one test: it does the task on the data
// directory processDir names, prints one line with the outcome, and waits until its input ends.
const (
	processTask = "LEAPVIEW_FS_TASK"
	processDir  = "LEAPVIEW_FS_DIR"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(processTask); task != "" {
		fmt.Println(doTask(task, os.Getenv(processDir)))
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

func doTask(task, dir string) string {
	if task == "use" {
		l, err := At(dir)
		if err != nil {
			return err.Error()
		}
		return kinds(useStore(l))
	}
	l, err := Prepare(dir)
	if err == nil && task == "hold" {
		var k *Lock
		if k, err = Acquire(l, "other-boot", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)); err == nil {
			if err = k.Sweep(); err == nil {
				_, err = k.Listen()
			}
		}
	}
	if err != nil {
		return fail.CodeOf(err) + ": " + err.Error()
	}
	return "done"
}

// process is a running second process.
type process struct {
	cmd     *exec.Cmd
	outcome string
}

// startProcess runs the task in a second process, as uid when that is not negative, and waits for its outcome. The process is
// killed at the end of the test, if not before.
func startProcess(t *testing.T, task, dir string, uid int) *process {
	t.Helper()
	// The running binary is named through /proc where there is one: its own folder may be closed to uid.
	exe := "/proc/self/exe"
	if _, err := os.Stat(exe); err != nil {
		if exe, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), processTask+"="+task, processDir+"="+dir)
	if uid >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &process{cmd: cmd}
	t.Cleanup(func() {
		_ = in.Close()
		h.kill(t)
	})
	h.outcome, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the second process said nothing: %v", err)
	}
	h.outcome = strings.TrimSpace(h.outcome)
	return h
}

// kill ends the process as a power cut would, by its own id, and waits for it. Twice is once.
func (h *process) kill(t *testing.T) {
	t.Helper()
	if h.cmd.ProcessState != nil {
		return
	}
	_ = h.cmd.Process.Kill()
	var exit *exec.ExitError
	if err := h.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
}

// roomy bounds are met by no test that is not about them.
var roomy = SourcesOptions{MaxFiles: 1000, MaxBytes: 1 << 30}

// prepare makes a data directory for one test.
func prepare(t *testing.T) Layout {
	t.Helper()
	l, err := Prepare(filepath.Join(t.TempDir(), "lv"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// refused checks that err has the code, and that it says each of the words.
func refused(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	if got := fail.CodeOf(err); got != code {
		t.Fatalf("code %s, want %s: %v", got, code, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
