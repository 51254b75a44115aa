package ports

import (
	"context"

	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// Checker judges the rows of a candidate.
type Checker interface {
	// Check evaluates one declared check of the model at the scope's snapshot, reading the rows themselves. A check that fails is
	// a result, not an error.
	Check(ctx context.Context, scope serving.Scope, model plan.Model, check project.Check) (refresh.CheckResult, error)
}
