// Package access owns who may do what: roles, principals and their grants, keys, and the one decision over them.
//
// Invariants: what a principal may do is decided by Allowed alone; a workspace outside of a grant is told exactly like one that does
// not exist; a key's text is in a Secret, which shows itself to nobody but Reveal, and only its digest is kept. The package knows no
// transport, no store and no clock.
package access

import (
	"slices"
	"strconv"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// Role is how much a principal may do. Each one may do all that the ones before it may.
type Role string

// The roles, from least to most.
const (
	Viewer   Role = "viewer"
	Analyst  Role = "analyst"
	Operator Role = "operator"
)

var roles = []Role{Viewer, Analyst, Operator}

// ParseRole refuses what is no role.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(roles, r) {
		return r, nil
	}
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	fix := "use one of " + strings.Join(names, ", ")
	if near := project.Suggest(s, names); near != "" {
		fix = near
	}
	what := "no role is given"
	if s != "" {
		what = strconv.Quote(s) + " is no role"
	}
	return "", fail.New(fail.Invalid, "bad_role", "%s", what).WithFix("%s", fix)
}

// rank orders roles; no role at all is below the least.
func (r Role) rank() int { return slices.Index(roles, r) }

// Grant is a role in one workspace, or in all of them. Its zero value grants nothing.
type Grant struct {
	Role Role
	// Workspace is empty when the grant is for the whole node.
	Workspace serving.Workspace
}

// Sees tells whether the grant lets anything of the workspace be seen.
func (g Grant) Sees(w serving.Workspace) bool {
	return g.Role.rank() >= 0 && (g.Workspace == "" || g.Workspace == w)
}

// Principal is whoever asks for something. Its zero value may do nothing.
type Principal struct {
	Name  string
	Grant Grant
}

// Local is whoever reaches the node through its socket or its directory, and, as long as there is no key, through loopback.
var Local = Principal{Name: "local", Grant: Grant{Role: Operator}}

// Anonymous names in the audit who gave no key, or no good one.
const Anonymous = "anonymous"

// Caller is who asks for a change, as the audit tells it.
type Caller struct {
	Principal string
	// Request is the id of the request that asks; empty when it came through no request.
	Request string
}

// Caller is the principal as who asks through the request with this id, or through none.
func (p Principal) Caller(request string) Caller { return Caller{Principal: p.Name, Request: request} }

// Action is what a request is about. There is one for every kind of thing that a route does.
type Action string

// The actions.
const (
	// Probe asks whether the node lives and is ready. Nobody needs a key for it.
	Probe Action = "probe"
	// List lists workspaces, those that the principal sees.
	List Action = "list"
	// Query calls endpoints and asks which there are.
	Query Action = "query"
	// ReadStatus reads where a workspace and its runs stand.
	ReadStatus Action = "read_status"
	// ReadRows reads rows that no endpoint gives, such as those that failed a check.
	ReadRows Action = "read_rows"
	// Refresh asks for a run.
	Refresh Action = "refresh"
	// Deploy makes a bundle a workspace's release. It may make the workspace, and it names a folder of the node's machine.
	Deploy Action = "deploy"
	// ListKeys, CreateKey and RevokeKey are about keys.
	ListKeys  Action = "list_keys"
	CreateKey Action = "create_key"
	RevokeKey Action = "revoke_key"
)

// rule is what an action takes.
type rule struct {
	// least is the least role; empty when nobody needs one.
	least Role
	// node asks for a grant over the whole node.
	node bool
	// changes tells that the action changes something, so that its refusal is told to the audit.
	changes bool
}

var rules = map[Action]rule{
	Probe:      {},
	List:       {least: Viewer},
	Query:      {least: Viewer},
	ReadStatus: {least: Viewer},
	ReadRows:   {least: Analyst},
	Refresh:    {least: Operator, changes: true},
	Deploy:     {least: Operator, node: true, changes: true},
	ListKeys:   {least: Operator, node: true},
	CreateKey:  {least: Operator, node: true, changes: true},
	RevokeKey:  {least: Operator, node: true, changes: true},
}

// Changes tells whether the action changes something.
func (a Action) Changes() bool { return rules[a].changes }

// Allowed is nil when the principal may take the action in the workspace, or on the node when w is empty. A workspace that it does
// not see is missing, whether it exists or not; what its role does not reach is denied.
func Allowed(p Principal, a Action, w serving.Workspace) error {
	r, known := rules[a]
	switch {
	case !known:
		return fail.New(fail.Internal, "unknown_action", "there is no rule for the action %q", a)
	case w != "" && !p.Grant.Sees(w):
		// The name is left out: whatever it is, the refusal is the same.
		return fail.New(fail.Missing, "unknown_workspace", "there is no such workspace, or this key may not see it").
			WithFix("GET /v1/workspaces lists those that this key sees")
	case p.Grant.Role.rank() < r.least.rank():
		return fail.New(fail.Denied, "role_too_low", "this takes the role %s, and %s has the role %s", r.least, p.Name, p.Grant.Role).
			WithFix("ask for a key with the role %s", r.least)
	case r.node && p.Grant.Workspace != "":
		return fail.New(fail.Denied, "workspace_key", "this is about the whole node, and %s is only for workspace %q", p.Name, p.Grant.Workspace).
			WithFix("ask for a key that is for all workspaces")
	}
	return nil
}
