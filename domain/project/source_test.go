package project

import (
	"strings"
	"testing"
	"time"

	"leapview/domain/fail"
)

// Proves that each bound of a source refuses just what is beyond it, and names limit, value and setting.
func TestSourceBounds(t *testing.T) {
	percent := func(n int64) *int64 { return &n }
	s := func(b Bounds) Source {
		return Source{Name: "orders", Location: "o*.csv", At: Position{File: "sources/orders.yaml"}, Bounds: b}
	}
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		err  error
		code string
		says []string
	}{
		"as many files":         {s(Bounds{MaxFiles: 2}).AcceptCount(2), "", nil},
		"a file too many":       {s(Bounds{MaxFiles: 2}).AcceptCount(3), "source_files", []string{"3 files", "bounds.max_files = 2", "sources/orders.yaml"}},
		"as many bytes":         {s(Bounds{MaxBytes: 10}).AcceptBytes(10, "a"), "", nil},
		"a byte too many":       {s(Bounds{MaxBytes: 10}).AcceptBytes(11, "o1.csv"), "source_bytes", []string{"11 bytes", "o1.csv", "bounds.max_bytes = 10"}},
		"as old as may be":      {s(Bounds{Freshness: 36 * time.Hour}).AcceptAge(now.Add(-36*time.Hour), now), "", nil},
		"older":                 {s(Bounds{Freshness: 36 * time.Hour}).AcceptAge(now.Add(-37*time.Hour), now), "source_stale", []string{"37h0m0s ago", "2026-03-02T23:00:00Z", "bounds.freshness = 36h0m0s"}},
		"from the future":       {s(Bounds{Freshness: time.Hour}).AcceptAge(now.Add(time.Hour), now), "", nil},
		"as many rows":          {s(Bounds{MaxRows: 5}).AcceptRows(5, 0), "", nil},
		"a row too many":        {s(Bounds{MaxRows: 5}).AcceptRows(6, 0), "source_rows", []string{"6 rows", "bounds.max_rows = 5"}},
		"as few rows":           {s(Bounds{MinRows: 5}).AcceptRows(5, 0), "", nil},
		"a row too few":         {s(Bounds{MinRows: 5}).AcceptRows(4, 0), "source_too_few_rows", []string{"4 rows", "bounds.min_rows = 5"}},
		"nothing before":        {s(Bounds{MaxShrink: percent(10)}).AcceptRows(0, 0), "", nil},
		"shrunk as may be":      {s(Bounds{MaxShrink: percent(10)}).AcceptRows(90, 100), "", nil},
		"shrunk":                {s(Bounds{MaxShrink: percent(10)}).AcceptRows(899, 1000), "source_shrank", []string{"899 rows", "built from 1000", "10.1%", "bounds.max_shrink_percent = 10"}},
		"grown":                 {s(Bounds{MaxShrink: percent(0)}).AcceptRows(101, 100), "", nil},
		"one of a million":      {s(Bounds{MaxShrink: percent(0)}).AcceptRows(999_999, 1_000_000), "source_shrank", []string{"bounds.max_shrink_percent = 0"}},
		"a source that ran dry": {s(Bounds{MaxShrink: percent(50)}).AcceptRows(0, 1_000_000), "source_shrank", []string{"100.0%"}},
		"no bounds":             {s(Bounds{}).AcceptRows(0, 1_000_000), "", nil},
	} {
		if (tc.err == nil) != (tc.code == "") || tc.err != nil && fail.CodeOf(tc.err) != tc.code {
			t.Errorf("%s: %v", name, tc.err)
		}
		for _, x := range tc.says {
			if !strings.Contains(tc.err.Error(), x) {
				t.Errorf("%s: %v does not say %q", name, tc.err, x)
			}
		}
	}
}
