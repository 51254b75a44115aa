// Package http owns the node's HTTP API: the routes, the documents that travel over them, and which requests are let in at all.
//
// Invariants: everything read for one answer comes from one call of a use case; an answer's rows are passed on as the engine
// encoded them; every refusal is a problem document (RFC 9457) whose status follows from one table; the causes of an error are
// told to the log and to callers on the Unix socket only; nothing is done for a request before it is known who sends it and that he
// may. The package decides nothing about data or rights: it parses names at the edge, calls a use case, and writes what it says. What
// it leaves to others: who may listen where, which keys there are, and when the node is ready.
package http

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/project"
)

const (
	// maxBundle is the longest deployment body. What exactly a bundle may hold is decided when it is unpacked.
	maxBundle = project.MaxArchiveBytes
	// maxHeader bounds a request's line and headers.
	maxHeader = 64 << 10

	headerTime = 10 * time.Second
	// bodyTime is how long a request may take to arrive, its headers included.
	bodyTime = time.Minute
	// writeTime is how long one answer may take to leave, from its first byte.
	writeTime = time.Minute
	idleTime  = 2 * time.Minute
	// drainTime is how long requests may go on after the node was told to stop.
	drainTime = 10 * time.Second
	// cutTime is how long requests may take to end after they were canceled: not everything that an engine does can be interrupted.
	cutTime = 5 * time.Second
)

// Options are what the API needs to know of its node.
type Options struct {
	// Hosts are the names that the node answers for beside the loopback names and the address that a request came in at.
	Hosts []string
	// MaxBody is the most bytes of a request's body, deployments excepted; 0 means 1 MiB.
	MaxBody int64
	// MaxRequests is how many requests to the API are worked on at a time; what each of them holds is bounded by its body. 0 means 512.
	MaxRequests int
	Version     string
}

// Server answers requests. Its zero value is of no use; New makes one.
type Server struct {
	asker     *app.Asker
	deployer  *app.Deployer
	refresher *app.Refresher
	worker    *app.Worker
	status    *app.Status
	keyring   *app.Keyring
	ready     *app.Readiness
	version   string
	maxBody   int64
	// maxRequests is Options.MaxRequests.
	maxRequests int64
	hosts       map[string]bool
	log         *slog.Logger

	// drainTime and cutTime are the constants of these names, but for tests.
	drainTime, cutTime time.Duration

	// requests counts the requests to the API that are being worked on.
	requests atomic.Int64

	// left holds a token when a request ended since it was last taken.
	left chan struct{}

	mu sync.Mutex
	// working are the requests under way, also those that are no part of the API; once closed, none comes in. Guarded by mu.
	working map[*underWay]bool
	closed  bool
}

// underWay is a request that is worked on.
type underWay struct {
	id, method, route string
	began             time.Time
}

// enter lets a request in, unless the server was closed.
func (s *Server) enter(u *underWay) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.working[u] = true
	}
	return !s.closed
}

// leave tells that nothing is done for the request any more.
func (s *Server) leave(u *underWay) {
	s.mu.Lock()
	delete(s.working, u)
	s.mu.Unlock()
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// shut lets no more requests in, and gives those that are under way, oldest first.
func (s *Server) shut() []*underWay {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.SortedFunc(maps.Keys(s.working), func(a, b *underWay) int { return a.began.Compare(b.began) })
}

// New makes the server of one node.
func New(asker *app.Asker, deployer *app.Deployer, refresher *app.Refresher, worker *app.Worker, status *app.Status, keyring *app.Keyring, ready *app.Readiness, o Options, log *slog.Logger) *Server {
	s := &Server{asker: asker, deployer: deployer, refresher: refresher, worker: worker, status: status, keyring: keyring, ready: ready,
		version: o.Version, maxBody: o.MaxBody, maxRequests: int64(o.MaxRequests), log: log, drainTime: drainTime, cutTime: cutTime,
		left: make(chan struct{}, 1), working: map[*underWay]bool{},
		hosts: map[string]bool{"127.0.0.1": true, "localhost": true, "::1": true}}
	if s.maxBody == 0 {
		s.maxBody = 1 << 20
	}
	if s.maxRequests == 0 {
		s.maxRequests = 512
	}
	for _, h := range o.Hosts {
		s.hosts[hostname(h)] = true
	}
	return s
}

// routes are the server's handlers as one kind of caller reaches them.
type routes struct {
	*Server
	// local callers came over the Unix socket, which only the node's own user can open.
	local bool
	cross http.CrossOriginProtection
	// actions of all routes, by method and path.
	actions map[string]access.Action
}

// Handler is the API as it is reached over TCP or, when local, over the Unix socket: there a project can be deployed, errors are
// told with their causes, and there is no browser whose requests must be told apart.
func (s *Server) Handler(local bool) http.Handler {
	r := &routes{Server: s, local: local, actions: map[string]access.Action{}}
	e := echo.New()
	// Every error is written within around; echo's own handler has nothing left to do.
	e.HTTPErrorHandler = func(error, echo.Context) {}
	e.Use(r.around)
	for _, route := range table {
		if route.socketOnly && !local {
			continue
		}
		methods := []string{route.method}
		if route.method == http.MethodGet {
			// net/http sends the same headers and leaves the body out.
			methods = append(methods, http.MethodHead)
		}
		for _, method := range methods {
			e.Add(method, route.path, func(c echo.Context) error { return route.handler(r, c) })
			r.actions[method+" "+route.path] = route.action
		}
	}
	return e
}

// Serve answers on both listeners until ctx ends, or until one of them fails. Then it takes no more requests, gives those under
// way drainTime to end, cancels the rest, and gives these cutTime. No request is being worked on when it returns, unless its error
// says which ones it abandoned: the process can then only end. It closes both listeners.
func (s *Server) Serve(ctx context.Context, public, local net.Listener) error {
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	servers := [2]*http.Server{}
	ended := make(chan error, len(servers))
	for i, l := range []net.Listener{public, local} {
		servers[i] = &http.Server{
			Handler:           s.Handler(l == local),
			BaseContext:       func(net.Listener) context.Context { return work },
			ReadHeaderTimeout: headerTime,
			ReadTimeout:       bodyTime,
			IdleTimeout:       idleTime,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		}
		go func() { ended <- servers[i].Serve(l) }()
	}
	running := len(servers)
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-ended:
		running--
	}

	stop, cancel := context.WithTimeout(work, s.drainTime)
	defer cancel()
	var stopping sync.WaitGroup
	for _, srv := range servers {
		stopping.Go(func() {
			if err := srv.Shutdown(stop); err != nil {
				s.log.WarnContext(ctx, "requests were cut off", "error", err)
				abort()
				if err := srv.Close(); err != nil {
					s.log.WarnContext(ctx, "connections were not closed cleanly", "error", err)
				}
			}
		})
	}
	stopping.Wait()
	for ; running > 0; running-- {
		if err := <-ended; failure == nil && !errors.Is(err, http.ErrServerClosed) {
			failure = err
		}
	}
	// A connection may be closed while its handler still runs.
	abort()
	return errors.Join(failure, s.empty())
}

// empty waits for the requests that are under way, until they have to be abandoned.
func (s *Server) empty() error {
	over := time.NewTimer(s.cutTime)
	defer over.Stop()
	for {
		working := s.shut()
		if len(working) == 0 {
			return nil
		}
		select {
		case <-s.left:
		case <-over.C:
			return s.abandoned(working)
		}
	}
}

// abandoned says which requests did not end. The log has all of them, the error the oldest.
func (s *Server) abandoned(working []*underWay) error {
	const named = 5
	var oldest []string
	for i, u := range working {
		took := time.Since(u.began)
		s.log.Error("request abandoned", "method", u.method, "route", u.route, "duration_ms", took.Milliseconds(), "request_id", u.id)
		if i < named {
			oldest = append(oldest, fmt.Sprintf("%s %s (request_id %s, for %s)", u.method, u.route, u.id, took.Round(time.Second)))
		}
	}
	if n := len(working) - named; n > 0 {
		oldest = append(oldest, fmt.Sprintf("and %d more", n))
	}
	return fail.New(fail.Unavailable, "requests_abandoned", "requests did not end within %s of being canceled, and the process ends without them: %s",
		s.cutTime, strings.Join(oldest, ", ")).WithFix("look for what their endpoints compute: the engine cannot interrupt every function")
}
