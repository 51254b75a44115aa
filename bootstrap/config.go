// Package bootstrap composes the node: it turns settings into adapters, adapters into use cases, and those into a process that
// starts, proves its stores, serves and ends. It holds the only fx in the tree.
//
// Invariants: everything opened is released in the reverse order, also when a later part fails to open; one engine is constructed
// at composition and lives to the end of the process. The package takes no decision of the domain.
package bootstrap

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"leapview/adapters/fs"
	"leapview/adapters/system"
	"leapview/app"
	"leapview/domain/fail"
)

// Config is every setting of a node. Zero values are derived from the machine by complete.
type Config struct {
	// DataDir holds everything that the node keeps.
	DataDir string
	// Extensions is the directory of the signed engine extensions.
	Extensions string
	// Listen is the address that HTTP is served on. Any other than a loopback one takes a key, see Node.listenable.
	Listen string
	// Hosts are the names that the node answers for beside the loopback names and its own address.
	Hosts []string
	// MemoryBytes bounds the engine; half of the process's memory when 0.
	MemoryBytes int64
	// TempBytes bounds the engine's spill files; half of the free disk when 0.
	TempBytes int64
	// Threads of the engine; the processors that this process may use when 0.
	Threads int
	// Limits are the bounds of what it takes on; none of them has a zero value that means something but QuerySlots.
	Limits app.Limits
	// Layout is where the things of DataDir are. Compose finds it once, so that all parts open the same places.
	Layout fs.Layout
	// LogJSON writes logs as JSON; LogDebug adds what only debugging needs.
	LogJSON, LogDebug bool
}

// The defaults that do not depend on the machine.
const (
	defaultListen = "127.0.0.1:8080"
	leastMemory   = 64 << 20
	leastTemp     = 64 << 20
	mostThreads   = 512
)

// complete fills in what was not set and refuses what cannot be, all at once.
func (c Config) complete() (Config, error) {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var err error
	if c.DataDir == "" {
		bad("data-dir is empty")
	} else if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		bad("data-dir: %v", err)
	}
	if c.Extensions == "" {
		bad("extensions is empty")
	} else if c.Extensions, err = filepath.Abs(c.Extensions); err != nil {
		bad("extensions: %v", err)
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if host, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("listen: %q is not HOST:PORT", c.Listen)
	} else if _, err := netip.ParseAddr(host); host != "" && host != "localhost" && err != nil {
		bad("listen: %q is neither an IP address nor localhost; names that the node is reached by are given with --host", host)
	}
	for _, h := range c.Hosts {
		if h == "" || len(h) > 253 || strings.Trim(strings.ToLower(h), "abcdefghijklmnopqrstuvwxyz0123456789-.:_") != "" || strings.Contains(h, "://") {
			bad("host: %q is not a host name or an address, without scheme and port", h)
		}
	}
	if c.MemoryBytes == 0 {
		all, err := system.Memory(os.DirFS("/"))
		if err != nil {
			bad("memory: %v; set it", err)
		}
		c.MemoryBytes = max(all/2, leastMemory)
	}
	if c.MemoryBytes < leastMemory {
		bad("memory: %d bytes are too few, at least %d are needed", c.MemoryBytes, leastMemory)
	}
	if c.TempBytes == 0 && c.DataDir != "" {
		free, err := system.FreeSpace(existing(c.DataDir))
		if err != nil {
			bad("temp-space: %v; set it", err)
		}
		c.TempBytes = max(free/2, leastTemp)
	}
	if c.TempBytes < leastTemp {
		bad("temp-space: %d bytes are too few, at least %d are needed", c.TempBytes, leastTemp)
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	if c.Threads < 1 || c.Threads > mostThreads {
		bad("threads: %d is not from 1 to %d", c.Threads, mostThreads)
	}
	if c.Limits.QuerySlots == 0 {
		// Threads that were refused must not have their bound refused as well.
		c.Limits.QuerySlots = min(max(2*c.Threads, 1), 2*mostThreads)
	}
	problems = append(problems, c.Limits.Problems()...)
	if len(problems) > 0 {
		e := fail.New(fail.Invalid, "bad_settings", "%d settings cannot be used", len(problems))
		return c, e.Because(fmt.Errorf("%s", joinLines(problems)))
	}
	return c, nil
}

// existing is dir or its nearest parent that exists, so that free space can be asked before the directory is made.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func joinLines(lines []string) string {
	s := lines[0]
	for _, l := range lines[1:] {
		s += "\n" + l
	}
	return s
}
