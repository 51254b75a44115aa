// Package http owns the node's HTTP API: the routes, the documents that travel over them, and which requests are let in at all.
//
// Invariants: everything read for one answer comes from one call of a use case; an answer's rows are passed on as the engine
// encoded them; every refusal is a problem document (RFC 9457) whose status follows from one table; the causes of an error are
// told to the log and to callers on the Unix socket only. The package decides nothing about data: it parses names at the edge,
// calls a use case, and writes what it says. What it leaves to others: who may listen where, and when the node is ready.
package http

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/project"
)

const (
	// maxBundle is the longest deployment body. What exactly a bundle may hold is decided when it is unpacked.
	maxBundle = project.MaxArchiveBytes
	// maxRequests is how many requests to the API are worked on at a time; what each of them holds is bounded by its body.
	maxRequests = 512
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
)

// Options are what the API needs to know of its node.
type Options struct {
	// Listen is the host and port that the node was told to listen on; its host is let in beside the loopback names.
	Listen string
	// MaxBody is the most bytes of a request's body, deployments excepted; 0 means 1 MiB.
	MaxBody int64
	Version string
}

// Server answers requests. Its zero value is of no use; New makes one.
type Server struct {
	asker     *app.Asker
	deployer  *app.Deployer
	refresher *app.Refresher
	worker    *app.Worker
	status    *app.Status
	ready     *app.Readiness
	version   string
	maxBody   int64
	hosts     map[string]bool
	log       *slog.Logger

	// requests counts the requests to the API that are being worked on.
	requests atomic.Int64

	// gate is held for reading while a request is worked on, and for writing to set closed: once Serve has it, no request runs.
	gate   sync.RWMutex
	closed bool
}

// New makes the server of one node.
func New(asker *app.Asker, deployer *app.Deployer, refresher *app.Refresher, worker *app.Worker, status *app.Status, ready *app.Readiness, o Options, log *slog.Logger) *Server {
	s := &Server{asker: asker, deployer: deployer, refresher: refresher, worker: worker, status: status, ready: ready,
		version: o.Version, maxBody: o.MaxBody, log: log,
		hosts: map[string]bool{"127.0.0.1": true, "localhost": true, "::1": true}}
	if s.maxBody == 0 {
		s.maxBody = 1 << 20
	}
	if h := hostname(o.Listen); h != "" {
		s.hosts[h] = true
	}
	return s
}

// routes are the server's handlers as one kind of caller reaches them.
type routes struct {
	*Server
	// local callers came over the Unix socket, which only the node's own user can open.
	local bool
	cross http.CrossOriginProtection
}

// Handler is the API as it is reached over TCP or, when local, over the Unix socket: there a project can be deployed, errors are
// told with their causes, and there is no browser whose requests must be told apart.
func (s *Server) Handler(local bool) http.Handler {
	r := &routes{Server: s, local: local}
	e := echo.New()
	// Every error is written within around; echo's own handler has nothing left to do.
	e.HTTPErrorHandler = func(error, echo.Context) {}
	e.Use(r.around)
	get := func(path string, h echo.HandlerFunc, m ...echo.MiddlewareFunc) {
		e.GET(path, h, m...)
		// net/http sends the same headers and leaves the body out.
		e.HEAD(path, h, m...)
	}
	get("/livez", r.livez)
	get("/readyz", r.readyz)
	get("/v1/workspaces", r.listWorkspaces, r.admit)
	get("/v1/workspaces/:workspace/status", r.workspaceStatus, r.admit)
	get("/v1/workspaces/:workspace/endpoints", r.listEndpoints, r.admit)
	get("/v1/workspaces/:workspace/endpoints/:endpoint", r.callEndpoint, r.admit)
	e.POST("/v1/workspaces/:workspace/endpoints/:endpoint", r.callEndpoint, r.admit)
	e.POST("/v1/workspaces/:workspace/query-bundles", r.queryBundle, r.admit)
	e.POST("/v1/workspaces/:workspace/refreshes", r.requestRefresh, r.admit)
	get("/v1/workspaces/:workspace/runs/:run", r.run, r.admit)
	if local {
		e.POST("/v1/deployments", r.deploy, r.admit)
	}
	return e
}

// Serve answers on both listeners until ctx ends, or until one of them fails. Then it takes no more requests, gives those under
// way drainTime to end, and cancels the rest. No request is being worked on when it returns; it closes both listeners.
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

	stop, cancel := context.WithTimeout(work, drainTime)
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
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	return failure
}
