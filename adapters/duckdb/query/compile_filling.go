package query

import (
	"context"

	"leapview/domain/plan"
)

// filling settles which source fills the model's table, and reports what is wrong with how it is filled. It gives false when something is.
func (w *compilation) filling(ctx context.Context, m *plan.Model) (bool, error) {
	f := m.Filling
	if !f.Incremental() {
		return true, nil
	}
	before := len(w.problems)
	input, problems := plan.InputOf(*m, w.release.Project)
	m.Input = input
	w.problems = append(w.problems, problems...)
	w.problems = append(w.problems, plan.KeyProblems(*m)...)
	if len(w.problems) == before {
		if err := w.condition(ctx, "deleted_when", f.DeletedWhen, *m); err != nil {
			return false, err
		}
	}
	return len(w.problems) == before, nil
}
