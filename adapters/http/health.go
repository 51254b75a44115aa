package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"leapview/domain/fail"
)

type healthDoc struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// livez tells that the process lives.
func (r *routes) livez(c echo.Context) error {
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, healthDoc{"live", r.version})
}

// readyz tells whether every workspace with an active snapshot is served, and if not, why.
func (r *routes) readyz(c echo.Context) error {
	if err := r.ready.Ready(); err != nil {
		if !r.local && r.keyring.Required() {
			// Whoever asks has shown no key, and the reason may name workspaces.
			return fail.New(fail.Unavailable, "not_ready", "the node is not ready").WithFix("on the node's machine, leapview status says why")
		}
		return notReady{err}
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, healthDoc{"ready", r.version})
}
