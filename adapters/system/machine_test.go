package system

import (
	"testing"
	"testing/fstest"
)

// TestMemory proves that the tightest limit wins: the machine's, the group's or a parent group's, in both versions.
func TestMemory(t *testing.T) {
	const gib = int64(1) << 30
	meminfo := &fstest.MapFile{Data: []byte("MemFree: 1 kB\nMemTotal:        8388608 kB\n")}
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, c := range []struct {
		name string
		fs   fstest.MapFS
		want int64
	}{
		{"machine only", fstest.MapFS{}, 8 * gib},
		{"v2 without a limit", fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n")}, 8 * gib},
		{"v2 group", fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("2147483648\n")}, 2 * gib},
		{"v2 parent is tighter", fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("4294967296\n"),
			"sys/fs/cgroup/a/memory.max": file("1073741824\n")}, gib},
		{"v2 in a container, where the mount's top is the group", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n")}, gib / 2},
		{"v1 group", fstest.MapFS{"proc/self/cgroup": file("5:cpu,memory:/x\n2:pids:/x\n"), "sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("3221225472\n")}, 3 * gib},
		{"v1 without a limit", fstest.MapFS{"proc/self/cgroup": file("5:memory:/x\n"), "sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("9223372036854771712\n")}, 8 * gib},
		{"a path that leaves the mount is not read", fstest.MapFS{"proc/self/cgroup": file("0::/../../etc\n"), "sys/fs/cgroup/memory.max": file("max")}, 8 * gib},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fs["proc/meminfo"] = meminfo
			got, err := Memory(c.fs)
			if err != nil || got != c.want {
				t.Fatalf("got %d, %v; want %d", got, err, c.want)
			}
		})
	}
	if _, err := Memory(fstest.MapFS{}); err == nil {
		t.Fatal("a machine that does not tell its memory must be an error")
	}
}

// TestFreeSpace proves that a real directory has room and that a missing one is an error.
func TestFreeSpace(t *testing.T) {
	if n, err := FreeSpace(t.TempDir()); err != nil || n <= 0 {
		t.Fatalf("got %d, %v", n, err)
	}
	if _, err := FreeSpace(t.TempDir() + "/missing"); err == nil {
		t.Fatal("no error")
	}
}
