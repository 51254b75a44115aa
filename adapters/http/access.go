package http

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/serving"
)

// route is what the API has at a path, and the action that whoever asks for it takes.
type route struct {
	method, path string
	action       access.Action
	handler      func(*routes, echo.Context) error
	// socketOnly routes are there for callers over the Unix socket.
	socketOnly bool
}

// table is every route. A GET is a HEAD too.
var table = []route{
	{method: http.MethodGet, path: "/livez", action: access.Probe, handler: (*routes).livez},
	{method: http.MethodGet, path: "/readyz", action: access.Probe, handler: (*routes).readyz},
	{method: http.MethodGet, path: "/v1/workspaces", action: access.List, handler: (*routes).listWorkspaces},
	{method: http.MethodGet, path: "/v1/workspaces/:workspace/status", action: access.ReadStatus, handler: (*routes).workspaceStatus},
	{method: http.MethodGet, path: "/v1/workspaces/:workspace/endpoints", action: access.Query, handler: (*routes).listEndpoints},
	{method: http.MethodGet, path: "/v1/workspaces/:workspace/endpoints/:endpoint", action: access.Query, handler: (*routes).callEndpoint},
	{method: http.MethodGet, path: "/v1/workspaces/:workspace/endpoints/:endpoint/description", action: access.Query, handler: (*routes).describeEndpoint},
	{method: http.MethodPost, path: "/v1/workspaces/:workspace/endpoints/:endpoint", action: access.Query, handler: (*routes).callEndpoint},
	{method: http.MethodPost, path: "/v1/workspaces/:workspace/query-bundles", action: access.Query, handler: (*routes).queryBundle},
	{method: http.MethodPost, path: "/v1/workspaces/:workspace/refreshes", action: access.Refresh, handler: (*routes).requestRefresh},
	{method: http.MethodGet, path: "/v1/workspaces/:workspace/runs", action: access.ReadStatus, handler: (*routes).listRuns},
	{method: http.MethodGet, path: "/v1/workspaces/:workspace/runs/:run", action: access.ReadStatus, handler: (*routes).run},
	{method: http.MethodPost, path: "/v1/deployments", action: access.Deploy, handler: (*routes).deploy, socketOnly: true},
	{method: http.MethodPost, path: "/v1/plans", action: access.Deploy, handler: (*routes).plan, socketOnly: true},
	{method: http.MethodGet, path: "/v1/keys", action: access.ListKeys, handler: (*routes).listKeys},
	{method: http.MethodPost, path: "/v1/keys", action: access.CreateKey, handler: (*routes).createKey},
	{method: http.MethodDelete, path: "/v1/keys/:key", action: access.RevokeKey, handler: (*routes).revokeKey},
}

// actionOf is the action of the route that the request matched; ok is false when it matched none.
func (r *routes) actionOf(c echo.Context) (a access.Action, ok bool) {
	a, ok = r.actions[c.Request().Method+" "+c.Path()]
	return a, ok
}

// askedKey is where a request's context keeps who asks for what.
const askedKey = "leapview.asked"

// asked is who asks, and about which workspace; none for what is the node's.
type asked struct {
	principal access.Principal
	workspace serving.Workspace
}

// askedOf is who asks for what: whoever was let in.
func askedOf(c echo.Context) asked {
	a, _ := c.Get(askedKey).(asked)
	return a
}

// workspaceOf is the workspace that the request is about.
func workspaceOf(c echo.Context) serving.Workspace { return askedOf(c).workspace }

// callerOf is who asks, for the audit.
func callerOf(c echo.Context) access.Caller {
	who := askedOf(c).principal
	if who.Name == "" {
		who.Name = access.Anonymous
	}
	return who.Caller(c.Response().Header().Get(requestIDHeader))
}

// letIn finds out who asks and about which workspace, and refuses what that principal may not do. Nothing is looked up before: that a
// workspace exists cannot be told from how long its refusal takes.
func (r *routes) letIn(c echo.Context, a access.Action) error {
	if err := r.addressed(c.Request()); err != nil || a == access.Probe {
		return err
	}
	who, err := r.principal(c)
	if err != nil {
		return err
	}
	var w serving.Workspace
	if slices.Contains(c.ParamNames(), "workspace") {
		w, err = serving.ParseWorkspace(c.Param("workspace"))
	}
	c.Set(askedKey, asked{who, w})
	if err != nil {
		return err
	}
	return access.Allowed(who, a, w)
}

// addressed refuses requests that a browser may have been led to send.
func (r *routes) addressed(req *http.Request) error {
	if r.local {
		return nil
	}
	// A page of another site can make its own name resolve to this machine; the name it used is in the Host header. The port is left
	// open, because a forwarded port has another number.
	if h := hostname(req.Host); !r.hosts[h] && !addressOf(req, h) {
		return fail.New(fail.Denied, "unknown_host", "this node does not answer for host %q", h).
			WithFix("ask for its address, or start it with --host and this name")
	}
	if err := r.cross.Check(req); err != nil {
		return fail.New(fail.Denied, "cross_origin", "a page of another origin may not change anything here").Because(err)
	}
	return nil
}

// addressOf tells whether the host is the address that the request's connection came in at.
func addressOf(req *http.Request, host string) bool {
	given, err := netip.ParseAddr(host)
	at, ok := req.Context().Value(http.LocalAddrContextKey).(interface{ AddrPort() netip.AddrPort })
	return err == nil && ok && given.Unmap() == at.AddrPort().Addr().Unmap()
}

// principal is whoever sends the request. A key counts over the socket too: who shows one is its principal, wherever he comes from.
func (r *routes) principal(c echo.Context) (access.Principal, error) {
	given := c.Request().Header.Values(echo.HeaderAuthorization)
	if len(given) == 0 {
		if r.local || !r.keyring.Required() {
			return access.Local, nil
		}
		return access.Principal{}, fail.New(fail.Denied, "key_required", "this node answers only who shows a key").
			WithFix("send the header Authorization: Bearer KEY")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return access.Principal{}, fail.New(fail.Denied, "bad_authorization", "the request is not authorized by exactly one bearer key").
			WithFix("send the header Authorization: Bearer KEY")
	}
	return r.keyring.Authenticate(c.Request().Context(), strings.TrimSpace(text), r.remote(c.Request()))
}

// remote is whose failures are counted together: an IPv4 address, or the network that an IPv6 address is one of many in.
func (r *routes) remote(req *http.Request) string {
	if r.local {
		return "socket"
	}
	at, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil {
		return req.RemoteAddr
	}
	address := at.Addr().Unmap()
	if address.Is4() {
		return address.String()
	}
	// No address is shorter than the prefix.
	network, _ := address.WithZone("").Prefix(64)
	return network.String()
}

// denied tells the audit of a refused change, unless it could not be one. Stores that were not proved are not written.
func (r *routes) denied(c echo.Context, a access.Action, err error) {
	if !a.Changes() || fail.KindOf(err) == fail.Invalid || r.ready.Started() != nil {
		return
	}
	target := "/keys"
	if a == access.Deploy {
		target = "/deployments"
	}
	// Who showed no good key was let in to no workspace, but asked for one.
	if w, err := serving.ParseWorkspace(c.Param("workspace")); err == nil {
		target = string(w)
	}
	r.keyring.Denied(c.Request().Context(), callerOf(c), a, target, err)
}
