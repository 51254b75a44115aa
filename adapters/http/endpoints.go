package http

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

type endpointDoc struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Params      []paramDoc       `json:"params"`
	Columns     []serving.Column `json:"columns"`
	Limit       int              `json:"limit"`
}

type paramDoc struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        project.ParamType `json:"type"`
	Required    bool              `json:"required"`
	Default     *string           `json:"default"`
	Enum        []string          `json:"enum,omitempty"`
	Min         *string           `json:"min,omitempty"`
	Max         *string           `json:"max,omitempty"`
}

type endpointsDoc struct {
	Meta      originDoc     `json:"meta"`
	Endpoints []endpointDoc `json:"endpoints"`
}

// listEndpoints is GET /v1/workspaces/{workspace}/endpoints.
func (r *routes) listEndpoints(c echo.Context) error {
	w := workspaceOf(c)
	asked, endpoints, err := r.asker.Endpoints(w)
	if err != nil {
		return err
	}
	doc := endpointsDoc{originOf(asked), make([]endpointDoc, len(endpoints))}
	for i, e := range endpoints {
		d := endpointDoc{e.Name, e.Description, make([]paramDoc, len(e.Params)), e.Query.Columns(), e.Limit}
		for j, p := range e.Params {
			d.Params[j] = paramDoc{p.Name, p.Description, p.Type, p.Required, p.Default, p.Enum, p.Min, p.Max}
		}
		doc.Endpoints[i] = d
	}
	setOrigin(c, asked)
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, doc)
}

// callEndpoint is GET, with the parameters in the query string, and POST, with the parameters in the body, of
// /v1/workspaces/{workspace}/endpoints/{endpoint}.
func (r *routes) callEndpoint(c echo.Context) error {
	w := workspaceOf(c)
	call := app.Call{Endpoint: c.Param("endpoint")}
	query, err := queryParams(c.Request().URL)
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodPost {
		if len(query) > 0 {
			return fail.New(fail.Invalid, "params_in_query", "a POST takes its parameters from the body, not from the query string").
				WithFix(`send {"params":{…}}, or use GET`)
		}
		err = readObject(c, r.maxBody, func(d *json.Decoder, key string) error {
			if key != "params" {
				return unknownKey("the body", key, "params")
			}
			call.Params, err = readParams(d)
			return err
		})
		if err != nil {
			return err
		}
	} else {
		call.Params = query
	}
	asked, err := r.asker.Ask(c.Request().Context(), w, []app.Call{call})
	if err != nil {
		return err
	}
	return sendAnswer(c, asked)
}

// queryParams are the query string's values by name.
func queryParams(u *url.URL) (map[string]string, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fail.New(fail.Invalid, "bad_query_string", "the query string is refused: %s", err).
			WithFix("percent-encode every name and value")
	}
	params := make(map[string]string, len(values))
	for name, v := range values {
		if len(v) > 1 {
			return nil, fail.New(fail.Invalid, "repeated_param", "parameter %q is given %d times", name, len(v)).WithFix("give it once")
		}
		params[name] = v[0]
	}
	return params, nil
}
