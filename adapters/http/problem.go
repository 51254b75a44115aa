package http

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// statusOfKind is the one table from kinds of failure to HTTP statuses.
var statusOfKind = map[fail.Kind]int{
	fail.Internal:       http.StatusInternalServerError,
	fail.Invalid:        http.StatusBadRequest,
	fail.Denied:         http.StatusForbidden,
	fail.Missing:        http.StatusNotFound,
	fail.Conflict:       http.StatusConflict,
	fail.Fenced:         http.StatusConflict,
	fail.Busy:           http.StatusServiceUnavailable,
	fail.Limit:          http.StatusUnprocessableEntity,
	fail.UnknownOutcome: http.StatusInternalServerError,
	fail.Corrupt:        http.StatusInternalServerError,
	// Another node, or this one after a restart, may answer.
	fail.Fatal: http.StatusServiceUnavailable,
	// The caller that went away does not read it; whoever reads it was cut off by the node's stop.
	fail.Canceled:    http.StatusServiceUnavailable,
	fail.Unavailable: http.StatusServiceUnavailable,
}

// statusOfCode names the failures for which HTTP has a status that says more than their kind's.
var statusOfCode = map[string]int{
	"body_too_large":     http.StatusRequestEntityTooLarge,
	"bundle_too_large":   http.StatusRequestEntityTooLarge,
	"query_time":         http.StatusGatewayTimeout,
	"method_not_allowed": http.StatusMethodNotAllowed,
	"not_json":           http.StatusUnsupportedMediaType,
	"unknown_host":       http.StatusMisdirectedRequest,
	"key_required":       http.StatusUnauthorized,
	"bad_authorization":  http.StatusUnauthorized,
	"key_malformed":      http.StatusUnauthorized,
	"key_mistyped":       http.StatusUnauthorized,
	"key_unknown":        http.StatusUnauthorized,
	"key_expired":        http.StatusUnauthorized,
	"key_revoked":        http.StatusUnauthorized,
	"too_many_failures":  http.StatusTooManyRequests,
	// These bounds are the machine's, and not the request's to keep.
	"disk_full":  http.StatusInsufficientStorage,
	"open_files": http.StatusServiceUnavailable,
}

func statusOf(err error) int {
	if s, ok := statusOfCode[fail.CodeOf(err)]; ok {
		return s
	}
	return statusOfKind[fail.KindOf(err)]
}

// problemDoc is a problem document.
type problemDoc struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	Kind      string       `json:"kind"`
	Fix       string       `json:"fix,omitempty"`
	RequestID string       `json:"request_id"`
	Problems  []mistakeDoc `json:"problems,omitempty"`
	Errors    []errorDoc   `json:"errors,omitempty"`
}

// errorDoc is one thing wrong with a call. It has a pointer into the request's body or, for a GET, the name of a query parameter.
type errorDoc struct {
	Pointer   string `json:"pointer,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	Detail    string `json:"detail"`
	// Allowed says what would be accepted.
	Allowed string `json:"allowed,omitempty"`
}

// mistakeDoc is one mistake in a project file or in a source's data.
type mistakeDoc struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Text is the line that the mistake is in, when it is known.
	Text string `json:"text,omitempty"`
}

// refuse writes err as a problem document, and into the log when it is the node's own trouble.
func (r *routes) refuse(c echo.Context, err error, id string) {
	switch {
	case errors.Is(err, echo.ErrNotFound):
		err = fail.New(fail.Missing, "unknown_route", "there is nothing at this path").WithFix("GET /v1/workspaces lists what can be asked")
	case errors.Is(err, echo.ErrMethodNotAllowed):
		err = fail.New(fail.Invalid, "method_not_allowed", "%s is not possible here", c.Request().Method).WithFix("use one of the methods of the Allow header")
	}
	status, kind := statusOf(err), fail.KindOf(err)
	level := slog.LevelDebug
	if status >= http.StatusInternalServerError && kind != fail.Busy && kind != fail.Canceled {
		level = slog.LevelError
	}
	// The request's context may have ended; the log line must not depend on it.
	ctx := context.WithoutCancel(c.Request().Context())
	r.log.Log(ctx, level, "request failed", "request_id", id, "code", fail.CodeOf(err), "error", err)
	if c.Response().Committed {
		// The answer was under way: it stays short of its Content-Length, which tells the caller, and net/http closes the connection.
		return
	}
	var throttled *app.ThrottledError
	switch {
	case errors.As(err, &throttled):
		c.Response().Header().Set("Retry-After", strconv.FormatInt(int64((throttled.After+time.Second-1)/time.Second), 10))
	case kind == fail.Busy || kind == fail.Unavailable:
		c.Response().Header().Set("Retry-After", "1")
	}
	if status == http.StatusUnauthorized {
		challenge := `Bearer realm="leapview"`
		if fail.CodeOf(err) != "key_required" {
			challenge += `, error="invalid_token"`
		}
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
	}
	doc := problemDoc{Type: "urn:leapview:problem:" + fail.CodeOf(err), Title: http.StatusText(status), Status: status,
		Detail: fail.DetailOf(err, r.local), Code: fail.CodeOf(err), Kind: kind.String(), Fix: fail.FixOf(err), RequestID: id}
	if kind == fail.Internal && !r.local {
		doc.Detail = "the node met an internal error"
		doc.Fix = "look for this request_id in the node's log"
	}
	var mistakes project.Problems
	if errors.As(err, &mistakes) {
		for _, p := range mistakes {
			doc.Problems = append(doc.Problems, mistakeDoc{p.At.File, p.At.Line, p.At.Column, p.Message, p.Fix, p.Line})
		}
	}
	var wrong *project.CallError
	if errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			e := errorDoc{Pointer: p.Pointer, Detail: p.Message, Allowed: p.Allowed}
			if c.Request().Method != http.MethodPost {
				e.Pointer, e.Parameter = "", p.Name
			}
			doc.Errors = append(doc.Errors, e)
		}
	}
	if err := sendJSON(c, status, "application/problem+json", doc); err != nil {
		r.log.DebugContext(ctx, "answer was not delivered", "request_id", id, "error", err)
	}
}
