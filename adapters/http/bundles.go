package http

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// queryBundle is POST /v1/workspaces/{workspace}/query-bundles: several calls, answered from one snapshot.
func (r *routes) queryBundle(c echo.Context) error {
	w := workspaceOf(c)
	var calls []app.Call
	err := readObject(c, r.maxBody, func(d *json.Decoder, key string) error {
		if key != "queries" {
			return unknownKey("the body", key, "queries")
		}
		return walkList(d, `"queries"`, func() error {
			call, err := readQuery(d, fmt.Sprintf("query %d", len(calls)+1))
			calls = append(calls, call)
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		return badJSON("it has no queries").WithFix(`send {"queries":[{"name":…,"endpoint":…,"params":{…}}]}`)
	}
	names := make(map[string]bool, len(calls))
	for i, call := range calls {
		if !project.ValidName(call.Name) {
			return fail.New(fail.Invalid, "bad_query_name", "query %d has the name %q, which cannot name a query", i+1, call.Name).
				WithFix("use a lower-case letter, then at most 62 lower-case letters, digits or underscores")
		}
		if names[call.Name] {
			return fail.New(fail.Invalid, "repeated_query_name", "two queries have the name %q", call.Name).WithFix("give each query a name of its own")
		}
		names[call.Name] = true
	}
	asked, err := r.asker.Ask(c.Request().Context(), w, calls)
	if err != nil {
		return err
	}
	return sendBundle(c, asked, calls)
}

// readQuery reads one query of a bundle.
func readQuery(d *json.Decoder, what string) (app.Call, error) {
	var call app.Call
	err := walkObject(d, what, func(key string) (err error) {
		switch key {
		case "name":
			call.Name, err = readString(d, what+`'s "name"`)
		case "endpoint":
			call.Endpoint, err = readString(d, what+`'s "endpoint"`)
		default:
			if !slices.Contains(callKeys, key) {
				return unknownKey(what, key, append([]string{"name", "endpoint"}, callKeys...)...)
			}
			err = readCall(d, key, &call.Call)
		}
		return err
	})
	return call, err
}
