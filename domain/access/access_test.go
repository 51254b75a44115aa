package access

import (
	"fmt"
	"testing"

	"leapview/domain/fail"
	"leapview/domain/serving"
)

// TestAllowed proves the decision over the whole small world of grants, actions and workspaces, against a table written by hand.
func TestAllowed(t *testing.T) {
	// Each cell is what the role may do in a workspace that its grant sees; N asks for a grant over the whole node.
	want := map[Action]map[Role]string{
		Probe:      {"": "yes", Viewer: "yes", Analyst: "yes", Operator: "yes"},
		List:       {"": "no", Viewer: "yes", Analyst: "yes", Operator: "yes"},
		Query:      {"": "no", Viewer: "yes", Analyst: "yes", Operator: "yes"},
		ReadStatus: {"": "no", Viewer: "yes", Analyst: "yes", Operator: "yes"},
		ReadRows:   {"": "no", Viewer: "no", Analyst: "yes", Operator: "yes"},
		Refresh:    {"": "no", Viewer: "no", Analyst: "no", Operator: "yes"},
		Deploy:     {"": "no", Viewer: "no", Analyst: "no", Operator: "node"},
		ListKeys:   {"": "no", Viewer: "no", Analyst: "no", Operator: "node"},
		CreateKey:  {"": "no", Viewer: "no", Analyst: "no", Operator: "node"},
		RevokeKey:  {"": "no", Viewer: "no", Analyst: "no", Operator: "node"},
	}
	if len(want) != len(rules) {
		t.Fatalf("%d actions are in the table, there are %d", len(want), len(rules))
	}
	for action, byRole := range want {
		for role, cell := range byRole {
			for _, granted := range []serving.Workspace{"", "flights"} {
				for _, about := range []serving.Workspace{"", "flights", "other"} {
					err := Allowed(Principal{"p", Grant{role, granted}}, action, about)
					code := ""
					switch sees := role != "" && (granted == "" || granted == about); {
					case about != "" && !sees:
						code = "unknown_workspace"
					case cell == "no":
						code = "role_too_low"
					case cell == "node" && granted != "":
						code = "workspace_key"
					}
					if got := codeOf(err); got != code {
						t.Errorf("%s, role %q in %q, about %q: %q, want %q", action, role, granted, about, got, code)
					}
				}
			}
		}
	}
	if err := Allowed(Local, "dance", ""); fail.KindOf(err) != fail.Internal {
		t.Errorf("an action without a rule: %v", err)
	}
	a, b := Allowed(Principal{"p", Grant{Viewer, "flights"}}, Query, "other"), Allowed(Principal{"p", Grant{Viewer, "flights"}}, Query, "nowhere")
	if a.Error() != b.Error() {
		t.Errorf("two workspaces that are not seen are told apart: %v, %v", a, b)
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fail.CodeOf(err)
}

// TestChanges proves that exactly the actions which change something say so.
func TestChanges(t *testing.T) {
	changing := map[Action]bool{Refresh: true, Deploy: true, CreateKey: true, RevokeKey: true}
	for a := range rules {
		if a.Changes() != changing[a] {
			t.Errorf("%s changes: %v", a, a.Changes())
		}
	}
}

// TestParseRole proves that only roles are roles, and that a misspelt one is told with the one that was meant.
func TestParseRole(t *testing.T) {
	for _, r := range roles {
		if got, err := ParseRole(string(r)); err != nil || got != r {
			t.Errorf("%s is %q, %v", r, got, err)
		}
	}
	for given, fix := range map[string]string{"": "use one of viewer, analyst, operator", "operater": `did you mean "operator"?`, "Viewer": `did you mean "viewer"?`} {
		if _, err := ParseRole(given); fail.CodeOf(err) != "bad_role" || fail.FixOf(err) != fix {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// TestCaller proves that a principal's name and the request go into what the audit tells.
func TestCaller(t *testing.T) {
	if got := fmt.Sprint(Local.Caller("r1")); got != "{local r1}" {
		t.Errorf("got %s", got)
	}
}
