package contract

import (
	"testing"
	"time"

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
	// The newest day is 2024-03-10.
	now := time.Date(2024, 3, 11, 0, 0, 0, 0, time.UTC)
	n := func(n int64) *int64 { return &n }
	text := func(s string) *project.Literal { return &project.Literal{Text: s} }
	at := project.Position{File: "models/trips.sql", Line: 2, Column: 5}
	all := r.Models[0]
	all.Checks = nil
	var wanted []bool
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
		// Two of the four rows share a carrier: rows are tolerated, and not keys.
		{project.Check{Kind: project.Unique, Columns: []string{"carrier"}, MaxFailures: 1}, false},
		{project.Check{Kind: project.Unique, Columns: []string{"carrier"}, MaxFailures: 2}, true},
		{project.Check{Kind: project.Unique, Columns: []string{"carrier"}, MaxPercent: "49.99"}, false},
		{project.Check{Kind: project.Unique, Columns: []string{"carrier"}, MaxPercent: "50"}, true},
		{project.Check{Kind: project.Freshness, Columns: []string{"day"}, MaxAge: 24 * time.Hour}, true},
		{project.Check{Kind: project.Freshness, Columns: []string{"day"}, MaxAge: 24*time.Hour - time.Microsecond}, false},
		{project.Check{Kind: project.RowCount, Min: n(4), Max: n(4)}, true},
		{project.Check{Kind: project.RowCount, Min: n(5)}, false},
		{project.Check{Kind: project.RowCount, Max: n(3)}, false},
		{project.Check{Kind: project.RowCount, Min: n(1)}, true},
		{project.Check{Kind: project.AcceptedValues, Columns: []string{"carrier"}, Values: []project.Literal{{Text: "Aa"}, {Text: "B'b"}}}, true},
		{project.Check{Kind: project.AcceptedValues, Columns: []string{"carrier"}, Values: []project.Literal{{Text: "Aa"}}}, false},
		{project.Check{Kind: project.AcceptedValues, Columns: []string{"id"}, Values: []project.Literal{{Text: "1"}, {Text: "2"}, {Text: "3"}, {Text: "4"}}}, true},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, Low: text("1"), High: text("4")}, true},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, Low: text("2")}, false},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, High: text("3")}, false},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, High: text("3"), MaxFailures: 1}, true},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, High: text("3"), MaxPercent: "24.9"}, false},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, High: text("3"), MaxPercent: "25"}, true},
		{project.Check{Kind: project.Range, Columns: []string{"id"}, High: text("3"), Severity: project.SeverityWarn}, false},
		{project.Check{Kind: project.Relationships, Columns: []string{"id"}, To: "trips", Fields: []string{"id"}}, true},
		{project.Check{Kind: project.Relationships, Columns: []string{"carrier"}, To: "trips", Fields: []string{"carrier"}}, true},
	} {
		c.check.At = at
		m := r.Models[0]
		m.Checks = []project.Check{c.check}
		results, err := s.checker.Check(t.Context(), scope, m, now)
		mustLake(t, err)
		if len(results) != 1 {
			t.Fatalf("%s gave %+v", c.check, results)
		}
		got := results[0]
		wanted = append(wanted, c.ok)
		all.Checks = append(all.Checks, c.check)
		if got.OK != c.ok || got.Model != "trips" || got.Check != c.check.String() || got.At != at || got.Detail == "" || got.Severity != c.check.Severity || got.Judged != 4 || got.OK != c.check.Allows(got.Failures, 4) {
			t.Errorf("%s gave %+v, want OK %t", c.check, got, c.ok)
		}
	}
	together, err := s.checker.Check(t.Context(), scope, all, now)
	mustLake(t, err)
	for i, got := range together {
		if got.OK != wanted[i] || got.Check != all.Checks[i].String() {
			t.Errorf("among all checks %s gave %+v, want OK %t", all.Checks[i], got, wanted[i])
		}
	}
	if len(together) != len(wanted) {
		t.Errorf("%d checks gave %d results", len(wanted), len(together))
	}
	other := r.Models[0]
	other.Columns = append([]project.Column(nil), other.Columns...)
	other.Columns[0].Type = "DOUBLE"
	_, err = s.checker.Check(t.Context(), scope, other, now)
	wantKind(t, err, fail.Corrupt)
	_, err = s.checker.Check(canceled(t), scope, r.Models[0], now)
	wantKind(t, err, fail.Canceled)
}
