package system

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is how many bytes this process may use: the tightest of the machine's memory and the limits of its control group, version
// 2 or 1, and of that group's parents. root is the file system to read, normally os.DirFS("/").
func Memory(root fs.FS) (int64, error) {
	limit, err := machineMemory(root)
	if err != nil {
		return 0, err
	}
	for _, file := range cgroupFiles(root, "memory", "memory.max", "memory.limit_in_bytes") {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		// "max", and version 1's near-endless number, are no limit.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && n < limit {
			limit = n
		}
	}
	return limit, nil
}

func machineMemory(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil || kib <= 0 || kib > math.MaxInt64/1024 {
				return 0, fmt.Errorf("read the machine's memory: /proc/meminfo says %q", strings.TrimSpace(line))
			}
			return kib * 1024, nil
		}
	}
	return 0, fmt.Errorf("read the machine's memory: /proc/meminfo has no MemTotal")
}

// cgroupFiles lists where a limit of this process's control group and its parents may be written.
func cgroupFiles(root fs.FS, controller, v2, v1 string) []string {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		base, file := "", ""
		switch {
		case part[0] == "0" && part[1] == "":
			base, file = "sys/fs/cgroup", v2
		case strings.Contains(","+part[1]+",", ","+controller+","):
			base, file = "sys/fs/cgroup/"+controller, v1
		default:
			continue
		}
		// Inside a container the group's own path may not exist below the mount, whose top then is the group.
		segments := strings.FieldsFunc(part[2], func(r rune) bool { return r == '/' })
		for i := len(segments); i >= 0; i-- {
			dir := base
			if i > 0 {
				dir += "/" + strings.Join(segments[:i], "/")
			}
			if name := dir + "/" + file; fs.ValidPath(name) {
				files = append(files, name)
			}
		}
	}
	return files
}

// FreeSpace is how many bytes an unprivileged process may still write below dir.
func FreeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
