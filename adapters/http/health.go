package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"leapview/domain/access"
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
		// Nobody is asked for a key here, so that whoever needs one is nobody.
		var told access.Grant
		if r.local || !r.keyring.Required() {
			told = access.Local.Grant
		}
		return unready(err, told)
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, healthDoc{"ready", r.version})
}
