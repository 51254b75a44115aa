package http

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// callEndpoint is GET, with everything in the query string, and POST, with everything in the body, of
// /v1/workspaces/{workspace}/endpoints/{endpoint}.
func (r *routes) callEndpoint(c echo.Context) error {
	w := workspaceOf(c)
	call := app.Call{Endpoint: c.Param("endpoint")}
	query, err := queryCall(c.Request().URL)
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodPost {
		if c.Request().URL.RawQuery != "" {
			return fail.New(fail.Invalid, "params_in_query", "a POST takes its parameters from the body, not from the query string").
				WithFix(`send {"params":{…}}, or use GET`)
		}
		err = readObject(c, r.maxBody, func(d *json.Decoder, key string) error {
			if !slices.Contains(callKeys, key) {
				return unknownKey("the body", key, callKeys...)
			}
			return readCall(d, key, &call.Call)
		})
		if err != nil {
			return err
		}
	} else {
		call.Call = query
	}
	asked, err := r.asker.Ask(c.Request().Context(), w, []app.Call{call})
	if err != nil {
		return err
	}
	return sendAnswer(c, asked)
}

// queryCall is the call that a query string makes. What no endpoint can have as a parameter stands beside them.
func queryCall(u *url.URL) (project.Call, error) {
	values, err := queryValues(u)
	if err != nil {
		return project.Call{}, err
	}
	call := project.Call{Params: make(map[string]project.Given, len(values))}
	for name, v := range values {
		switch given := project.Texts(v...); name {
		case "order_by":
			call.OrderBy = given
		case "columns":
			call.Columns = given
		case "limit":
			call.Limit = given
		default:
			call.Params[name] = given
		}
	}
	return call, nil
}

// queryValues are the query string's values by name.
func queryValues(u *url.URL) (url.Values, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fail.New(fail.Invalid, "bad_query_string", "the query string is refused: %s", err).
			WithFix("percent-encode every name and value")
	}
	return values, nil
}

// queryParams are the query string's values by name, each given once.
func queryParams(u *url.URL) (map[string]string, error) {
	values, err := queryValues(u)
	if err != nil {
		return nil, err
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
