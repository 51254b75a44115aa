package http

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/domain/access"
	"leapview/domain/fail"
)

// requestIDHeader carries the id that ties an answer to its lines in the log.
const requestIDHeader = "X-Request-Id"

// around is what happens to every request, matched by a route or not.
func (r *routes) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		req, header := c.Request(), c.Response().Header()
		id := req.Header.Get(requestIDHeader)
		if !validRequestID(id) {
			id = rand.Text()
		}
		u := &underWay{id, req.Method, c.Path(), time.Now()}
		open := r.enter(u)
		defer r.leave(u)
		header.Set(requestIDHeader, id)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")

		// The connection's deadlines are those of its last answer and of this request's arrival. Neither bounds the work between.
		// A writer without deadlines, as in tests, has nothing to reset.
		control := http.NewResponseController(c.Response())
		_ = control.SetWriteDeadline(time.Time{})
		if req.ContentLength == 0 {
			_ = control.SetReadDeadline(time.Time{})
		}

		route := u.route
		if err := r.guarded(c, open, next); err != nil {
			if errors.Is(err, echo.ErrNotFound) {
				// What matched no route is the caller's text.
				route = ""
			}
			r.refuse(c, err, id)
		}
		r.log.InfoContext(req.Context(), "request", "method", req.Method, "route", route, "status", c.Response().Status,
			"duration_ms", time.Since(u.began).Milliseconds(), "principal", callerOf(c).Principal, "request_id", id)
		return nil
	}
}

// guarded runs the handler if the server is open and the request may be tried, and turns a panic into an error.
func (r *routes) guarded(c echo.Context, open bool, next echo.HandlerFunc) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fail.New(fail.Internal, "panic", "the request met a defect").Because(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if !open {
		return fail.New(fail.Unavailable, "stopping", "the node is stopping")
	}
	action, matched := r.actionOf(c)
	if !matched {
		// What is next then only says that there is nothing, or not for this method.
		if err := r.addressed(c.Request()); err != nil {
			return err
		}
		return next(c)
	}
	if err := r.letIn(c, action); err != nil {
		r.denied(c, action, err)
		return err
	}
	if action == access.Probe {
		return next(c)
	}
	return r.admitted(c, next)
}

// admitted lets a request to the API through once the node's stores were proved, and while not too many are worked on.
func (r *routes) admitted(c echo.Context, next echo.HandlerFunc) error {
	defer r.requests.Add(-1)
	if n := r.requests.Add(1); n > r.maxRequests {
		return fail.New(fail.Busy, "too_many_requests", "%d requests are being worked on already (limit requests = %d)", n-1, r.maxRequests).
			WithFix("try again in a moment; --requests of the node sets how many")
	}
	if err := r.ready.Started(); err != nil {
		return unready(err, askedOf(c).principal.Grant)
	}
	return next(c)
}

// unready refuses because the node cannot be asked. The reason may name workspaces, so it is for those who see all of them.
func unready(why error, told access.Grant) error {
	if told.Role == "" || told.Workspace != "" {
		return fail.New(fail.Unavailable, "not_ready", "the node is not ready").WithFix("on the node's machine, leapview status says why")
	}
	return notReady{why}
}

// notReady is the reason why the node cannot be asked. Whatever kind the reason has, the answer is that the node is unavailable.
type notReady struct{ error }

func (n notReady) Unwrap() error       { return n.error }
func (n notReady) FailKind() fail.Kind { return fail.Unavailable }
func (n notReady) FailCode() string    { return fail.CodeOf(n.error) }

// hostname is the host of host:port or of a host alone, without brackets and in lower case.
func hostname(s string) string {
	if h, _, err := net.SplitHostPort(s); err == nil {
		s = h
	}
	return strings.ToLower(strings.Trim(s, "[]"))
}

func validRequestID(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	return s != "" && len(s) <= 64 && strings.Trim(s, letters) == ""
}
