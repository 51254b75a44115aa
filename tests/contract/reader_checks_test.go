package contract

import (
	"testing"

	"leapview/domain/fail"
	"leapview/domain/project"
)

func TestCheckerMem(t *testing.T) { checkerSuite(t, memStore) }

// checkerSuite is the contract of ports.Checker.
func checkerSuite(t *testing.T, open opener) {
	s := open(t)
	r := compile(t, s, projectOf(everyFlight()))
	scope := refreshed(t, s, "sales", r, 1, flightRows)
	// A newer commit must not change what was found at the older snapshot.
	refreshed(t, s, "sales", r, 2, oneFlight)
	n := func(n int64) *int64 { return &n }
	at := project.Position{File: "models/trips.sql", Line: 2, Column: 5}
	for _, c := range []struct {
		check project.Check
		ok    bool
	}{
		{project.Check{Kind: project.NotNull, Columns: []string{"id"}}, true},
		{project.Check{Kind: project.NotNull, Columns: []string{"carrier"}}, false},
		{project.Check{Kind: project.NotNull, Columns: []string{"id", "late"}}, false},
		{project.Check{Kind: project.Unique, Columns: []string{"id"}}, true},
		{project.Check{Kind: project.Unique, Columns: []string{"carrier"}}, false},
		{project.Check{Kind: project.Unique, Columns: []string{"late"}}, false},
		{project.Check{Kind: project.Unique, Columns: []string{"carrier", "delay"}}, true},
		{project.Check{Kind: project.RowCount, Min: n(4), Max: n(4)}, true},
		{project.Check{Kind: project.RowCount, Min: n(5)}, false},
		{project.Check{Kind: project.RowCount, Max: n(3)}, false},
		{project.Check{Kind: project.RowCount, Min: n(1)}, true},
	} {
		c.check.At = at
		got, err := s.checker.Check(t.Context(), scope, r.Models[0], c.check)
		mustLake(t, err)
		if got.OK != c.ok || got.Model != "trips" || got.Check != c.check.String() || got.At != at || got.Detail == "" {
			t.Errorf("%s gave %+v, want OK %t", c.check, got, c.ok)
		}
	}
	_, err := s.checker.Check(canceled(t), scope, r.Models[0], project.Check{Kind: project.NotNull, Columns: []string{"id"}})
	wantKind(t, err, fail.Canceled)
}
