package ports

import (
	"context"
	"time"

	"leapview/domain/plan"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// Checker judges the rows of a candidate.
type Checker interface {
	// Check evaluates every declared check of the model at the scope's snapshot, reading the rows themselves, and gives the results
	// in the order of the checks. A check that fails is a result, not an error. A table whose columns are not the compiled ones is
	// corrupt. now is the time that freshness is measured against. A few of what breaks a rule are in its result.
	Check(ctx context.Context, scope serving.Scope, model plan.Model, now time.Time) ([]refresh.CheckResult, error)
}
