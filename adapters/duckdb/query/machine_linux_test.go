package query_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/adapters/duckdb/query"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// TestMachineRefuses proves that an answer which the machine stands in the way of blames the machine, and that the same answer is
// given once it does not any more.
func TestMachineRefuses(t *testing.T) {
	l := newLake(t)
	for name, c := range map[string]struct {
		kind   fail.Kind
		code   string
		during func(t *testing.T, path string, ask func())
	}{
		"access":     {fail.Unavailable, "file_denied", withoutAccess},
		"open_files": {fail.Limit, "open_files", withoutFiles},
	} {
		scope, path := l.table(t, name)
		q := l.prepare(t, scope, "SELECT count(DISTINCT i) AS n FROM "+name)
		var err error
		refused := l.open(t)
		c.during(t, path, func() { _, err = refused.Answer(t.Context(), q, nil, plenty) })
		if fail.KindOf(err) != c.kind || fail.CodeOf(err) != c.code {
			t.Errorf("%s: the answer says %v", name, err)
		}
		if a, err := l.open(t).Answer(t.Context(), q, nil, plenty); err != nil || string(a.Rows) != "[[20000]]" {
			t.Errorf("%s: afterwards %s, %v", name, a.Rows, err)
		}
	}
}

// withoutAccess calls ask while this process may not open the file.
func withoutAccess(t *testing.T, path string, ask func()) {
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	// Whoever is root may open everything, and is somebody else for the time.
	if os.Geteuid() == 0 {
		if err := syscall.Seteuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	if os.Getuid() == 0 {
		if err := syscall.Seteuid(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// withoutFiles calls ask while this process may open no further file.
func withoutFiles(t *testing.T, _ string, ask func()) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	ask()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk proves that an answer which finds the disk full when it spills says so, and that the next one is given. It runs in a
// process of its own that may mount a small disk for itself.
func TestFullDisk(t *testing.T) {
	if os.Getenv("LEAPVIEW_TEST_MOUNTS") == "" {
		apart(t)
		return
	}
	dir := t.TempDir()
	disk := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Mkdir(disk, 0o700), syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m")); err != nil {
		t.Fatal(err)
	}
	o := enginetest.Options(t, dir)
	o.MemoryBytes, o.TempBytes = 64<<20, 1<<30
	e, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(sql string) (a serving.Answer, err error) {
		reader := query.NewReader(e)
		q, err := reader.Prepare(t.Context(), serving.Scope{Workspace: "w", Snapshot: 1}, project.Statement{SQL: sql}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var r ports.Reading
		if r, err = reader.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		return r.Answer(t.Context(), q, nil, plenty)
	}
	if _, err := answer("SELECT count(DISTINCT i || 'a text that is long enough to fill what memory there is') AS n FROM range(3000000) t(i)"); fail.KindOf(err) != fail.Limit || fail.CodeOf(err) != "disk_full" {
		t.Errorf("the answer says %v", err)
	}
	if a, err := answer("SELECT 1 AS x"); err != nil || string(a.Rows) != "[[1]]" {
		t.Errorf("afterwards %s, %v", a.Rows, err)
	}
	if err := errors.Join(e.Close(), syscall.Unmount(disk, 0)); err != nil {
		t.Error(err)
	}
}

// apart runs the test again in a process with its own mounts, of which nothing is left when it ends.
func apart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), "LEAPVIEW_TEST_MOUNTS=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Skip("this machine lets no process have mounts of its own: ", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
