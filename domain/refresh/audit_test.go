package refresh

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

type strangeEvent struct{}

func (strangeEvent) EventName() string { return "strange" }

// TestAudit proves that every event tells who did what to what and when, through which request, with a JSON object as its detail, and that an event
// the audit does not know is refused.
func TestAudit(t *testing.T) {
	now := time.Date(2025, 3, 1, 10, 0, 0, 0, time.UTC)
	r := project.DigestOf([]byte("release"))
	m := Mark{Kind: MarkRefresh, Lineage: "l", Workspace: "flights", Run: "run1", Attempt: 2, Fence: 7, Base: 3, Release: r, Plan: r}
	b := Begun{attempt{m}}
	c := Committed{b.attempt, 9}
	d := Durable{c, nil}
	v := Validated{d, nil}
	state := State{Workspace: "flights", RequestID: "req1", Run: &Run{ID: "run1", RequestedBy: "ann"}}
	cases := []struct {
		event                      Event
		principal, target, outcome string
		detail                     string
	}{
		{WorkspaceCreated{now, "bob"}, "bob", "flights", "ok", `{}`},
		{ReleaseAccepted{r, 12, now, "bob"}, "bob", "flights/releases/" + string(r), "ok", `{"size":12}`},
		{Deployed{Deployment{4, r, "/src", now, "bob"}}, "bob", "flights/deployments/4", "ok", `"source_root":"/src"`},
		{RunRequested{Run{ID: "run1", RequestedAt: now, RequestedBy: "eve"}}, "eve", "flights/runs/run1", "ok", `{}`},
		{AttemptBegan{b, "boot", now}, "ann", "flights/runs/run1", "ok", `"fence":7`},
		{SourcesAcquired{b, []SourceFile{{"orders", "a.csv", 3, r}, {"orders", "b.csv", 4, r}}, map[string]int64{"orders": 5, "items": 6}, now}, "ann", "flights/runs/run1", "ok", `"bytes":7,"fence":7,"files":2`},
		{SourcesAcquired{b, nil, map[string]int64{"orders": 5, "items": 6}, now}, "ann", "flights/runs/run1", "ok", `"rows":11`},
		{TableRecorded{"t_1", "t", 7, now}, "ann", "flights/tables/t_1", "ok", `"model":"t"`},
		{CandidateCommitted{c, now}, "ann", "flights/runs/run1", "ok", `"snapshot":9`},
		{CandidateSynced{d, now}, "ann", "flights/runs/run1", "ok", `"files":0`},
		{CandidateValidated{v, now}, "ann", "flights/runs/run1", "ok", `"checks":0`},
		{CandidateOrphaned{Candidate: Abandon(c, "why"), Checks: []CheckResult{{}}, At: now}, "ann", "flights/runs/run1", "ok", `"checks":1,"fence":7,"reason":"why"`},
		{Activated{v, serving.Pointer{}, serving.Pointer{Generation: 1, Snapshot: 9, ActivatedAt: now}, "boot"}, "ann", "flights/generations/1", "ok", `"snapshot":9`},
		{GenerationRetired{1, "boot", now}, "ann", "flights/generations/1", "ok", `{"owner":"boot"}`},
		{RunRequeued{"run1", true, "why", now}, "ann", "flights/runs/run1", "ok", `{"reason":"why"}`},
		{RunEnded{"run1", Succeeded, Failure{}, now}, "ann", "flights/runs/run1", "ok", `{}`},
		{RunEnded{"run1", Failed, Failure{"invalid", "checks_failed", "no"}, now}, "ann", "flights/runs/run1", "failed", `"checks_failed"`},
	}
	for _, tc := range cases {
		row, err := Audit(state, tc.event)
		if err != nil {
			t.Fatalf("%s: %v", tc.event.EventName(), err)
		}
		if row.At != now || row.Action != tc.event.EventName() || row.Principal != tc.principal || row.Target != tc.target || row.Outcome != tc.outcome || row.Request != "req1" {
			t.Errorf("%s: got %+v", tc.event.EventName(), row)
		}
		if !strings.Contains(row.Detail, tc.detail) || !json.Valid([]byte(row.Detail)) {
			t.Errorf("%s: detail %s, want %s in it", tc.event.EventName(), row.Detail, tc.detail)
		}
	}
	row, err := Audit(State{Workspace: "flights"}, GenerationRetired{1, "boot", now})
	if err != nil || row.Principal != "system" || row.Request != "" {
		t.Errorf("without a run: %+v, %v", row, err)
	}
	if _, err := Audit(state, strangeEvent{}); fail.CodeOf(err) != "unknown_event" {
		t.Errorf("a strange event gave %v", err)
	}
}
