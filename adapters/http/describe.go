package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"leapview/app"
)

type endpointsDoc struct {
	Meta      originDoc                 `json:"meta"`
	Endpoints []app.EndpointDescription `json:"endpoints"`
}

type oneEndpointDoc struct {
	Meta     originDoc               `json:"meta"`
	Endpoint app.EndpointDescription `json:"endpoint"`
}

// listEndpoints is GET /v1/workspaces/{workspace}/endpoints.
func (r *routes) listEndpoints(c echo.Context) error {
	w := workspaceOf(c)
	asked, endpoints, err := r.asker.Endpoints(w)
	if err != nil {
		return err
	}
	setOrigin(c, asked)
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, endpointsDoc{originOf(asked), endpoints})
}

// describeEndpoint is GET /v1/workspaces/{workspace}/endpoints/{endpoint}/description.
func (r *routes) describeEndpoint(c echo.Context) error {
	w := workspaceOf(c)
	asked, endpoints, err := r.asker.Endpoints(w)
	if err != nil {
		return err
	}
	e, err := app.Described(w, endpoints, c.Param("endpoint"))
	if err != nil {
		return err
	}
	setOrigin(c, asked)
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, oneEndpointDoc{originOf(asked), e})
}
