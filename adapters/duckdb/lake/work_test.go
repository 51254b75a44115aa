package lake

import (
	"strings"
	"testing"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// deletions commits files over the base, one part each, into a model whose rows go where op is D, and gives the snapshot.
func deletions(t *testing.T, l *Lake, o engine.Options, m plan.Model, action plan.Action, fence refresh.Fence, base serving.Snapshot, files ...string) (serving.Snapshot, error) {
	t.Helper()
	b, err := l.Begin(t.Context(), "sales")
	must(t, err)
	defer func() { must(t, b.Close()) }()
	step := plan.Step{Model: m, Action: action}
	for i, content := range files {
		_, err := b.Stage(t.Context(), sourceOf(project.CSV, "id INTEGER", "op VARCHAR", "n VARCHAR"), []ports.Artifact{file(t, o, "x.csv", []byte("id,op,n\n"+content))})
		must(t, err)
		step.Parts = append(step.Parts, i)
	}
	must(t, b.Create(t.Context(), []plan.Model{m}, nil))
	mark := markOf(fence)
	mark.Base = base
	if err := b.Commit(t.Context(), []plan.Step{step}, mark, func(plan.Progress) {}); err != nil {
		return 0, err
	}
	return find(t, l, mark), nil
}

// Rows whose deleted_when is true take their key's row away, whichever file of one refresh they come in, and a later row brings the key back;
// a NULL deletes nothing. A model may have a column of any name.
func TestUpsertDeletes(t *testing.T) {
	l, e, o := newLake(t)
	m := modelOf("m", `SELECT id, op, n AS "is deleted" FROM src`, "id INTEGER", "op VARCHAR")
	m.Columns = append(m.Columns, project.Column{Name: "is deleted", Type: "VARCHAR"})
	m.Table, m.Input = plan.PhysicalTable("m", m.Columns), "src"
	m.Filling = project.Filling{Mode: project.ModeUpsert, Key: []string{"id"}, DeletedWhen: project.Statement{SQL: "op = 'D' -- gone"}}
	rows := func(at serving.Snapshot) (text string) {
		t.Helper()
		must(t, enginetest.Conn(t, e).Scan(t.Context(), `SELECT string_agg(id || "is deleted", ' ' ORDER BY id) FROM `+tableOf("sales", m.Table)+" AT (VERSION => ?)", []any{int64(at)}, &text))
		return text
	}
	first, err := deletions(t, l, o, m, plan.Rebuild, 1, 0, "1,I,a\n2,,b\n3,I,c\n4,D,d\n", "3,D,x\n5,I,e\n")
	must(t, err)
	if got := rows(first); got != "1a 2b 5e" {
		t.Errorf("the first files give %q", got)
	}
	second, err := deletions(t, l, o, m, plan.Upsert, 2, first, "1,D,x\n2,D,x\n3,I,again\n9,D,never\n", "2,I,back\n")
	must(t, err)
	if got := rows(second); got != "2back 3again 5e" {
		t.Errorf("the next files give %q", got)
	}
	// Over the first snapshot again, although the newest rows are others.
	third, err := deletions(t, l, o, m, plan.Upsert, 3, first, "5,D,x\n")
	must(t, err)
	if got := rows(third); got != "1a 2b" {
		t.Errorf("over the first snapshot they give %q", got)
	}
	// What the condition cannot be asked of stops the commit and is told at its place.
	m.Filling.DeletedWhen = project.Statement{SQL: "op::INTEGER = 1", At: project.Position{File: "models/m.sql", Line: 2, Column: 15}}
	if _, err := deletions(t, l, o, m, plan.Upsert, 4, third, "7,D,x\n"); err == nil || !strings.Contains(err.Error(), `models/m.sql:2:15: deleted_when of model "m" failed on the rows it met`) {
		t.Errorf("a condition that fails gives %v", err)
	}
	if _, _, found, err := l.Find(t.Context(), markOf(4)); found || err != nil {
		t.Errorf("it was committed: %v", err)
	}
}
