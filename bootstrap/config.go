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
	"time"

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
	// QuerySlots is how many readings are open at once; twice the threads when 0.
	QuerySlots int
	// QueryQueue is how many requests wait for a slot.
	QueryQueue int
	// Ask bounds one request.
	Ask app.AskLimits
	// MaxBody bounds a request's body.
	MaxBody int64
	// LogJSON writes logs as JSON; LogDebug adds what only debugging needs.
	LogJSON, LogDebug bool
}

// The defaults that do not depend on the machine.
const (
	defaultListen     = "127.0.0.1:8080"
	defaultQueryQueue = 256
	defaultAskBytes   = 16 << 20
	defaultAskCalls   = 32
	defaultAskTime    = 30 * time.Second
	defaultMaxBody    = 1 << 20
	leastMemory       = 64 << 20
	leastTemp         = 64 << 20
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
	if c.Threads < 1 {
		bad("threads: %d is less than 1", c.Threads)
	}
	if c.QuerySlots == 0 {
		c.QuerySlots = 2 * c.Threads
	}
	if c.QueryQueue == 0 {
		c.QueryQueue = defaultQueryQueue
	}
	if c.Ask == (app.AskLimits{}) {
		c.Ask = app.AskLimits{Bytes: defaultAskBytes, Calls: defaultAskCalls, Time: defaultAskTime}
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
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
