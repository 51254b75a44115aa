package lake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
)

// task is a step made ready: all that can be parsed, compared and copied before the transaction.
type task struct {
	plan.Step
	table string
	// fills write what the statement gives: one for everything, or one a part into the fold.
	fills []fill
	// parts are the names of the files of each fill, for people; empty when there is one for everything.
	parts []string
	// base, when it is not empty, is the temporary copy of the table at the base, because the newest rows are others.
	base string
	// incoming and fold are temporary tables: what the statement gives of one part, and what the parts make together. Empty when one
	// fill goes straight into the table.
	incoming, fold string
	// judged gives the incoming rows, with deleted behind them: whether their key's row goes. deleted is called like no column of the model.
	judged, deleted string
}

// Commit is ports.Build's.
func (b *build) Commit(ctx context.Context, steps []plan.Step, mark refresh.Mark, progress func(plan.Progress)) error {
	// Nothing of this needs the transaction; and what the base held is copied before anything is changed, since a transaction sees its own
	// changes also in what it reads at an older snapshot.
	tasks, err := b.prepare(ctx, steps, mark)
	if err != nil {
		return err
	}
	if err := b.conn.Exec(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Action == plan.Keep {
			if err := b.revert(ctx, t); err != nil {
				return err
			}
			continue
		}
		progress(plan.Progress{Phase: plan.PhaseBuild, Subject: t.Model.Name})
		rows, err := b.do(ctx, t)
		if err != nil {
			return err
		}
		progress(plan.Progress{Phase: plan.PhaseBuild, Subject: t.Model.Name, Done: true, Rows: rows})
	}
	if err := sign(ctx, b.conn, mark); err != nil {
		return err
	}
	return b.conn.Exec(ctx, "COMMIT")
}

func (b *build) prepare(ctx context.Context, steps []plan.Step, mark refresh.Mark) ([]task, error) {
	targets, err := b.targets(ctx, steps)
	if err != nil {
		return nil, err
	}
	tasks := make([]task, len(steps))
	for i, s := range steps {
		t := task{Step: s, table: tableOf(b.schema, s.Model.Table)}
		if s.Action != plan.Keep {
			if err := b.fills(ctx, &t, targets); err != nil {
				return nil, err
			}
		}
		tasks[i] = t
	}
	return tasks, b.copyBases(ctx, tasks, mark)
}

// targets are what stands behind the names that statements read: tables of the lake for models, and all that was staged of a source.
func (b *build) targets(ctx context.Context, steps []plan.Step) (map[string]gate.Target, error) {
	targets := map[string]gate.Target{}
	readers := map[string]int{}
	for _, s := range steps {
		targets[s.Model.Name] = gate.Target{Catalog: engine.Lake, Schema: b.schema, Table: s.Model.Table}
		if s.Action == plan.Keep {
			continue
		}
		for _, name := range s.Model.Reads {
			if name != s.Model.Input || s.Parts == nil {
				readers[name]++
			}
		}
	}
	for name, parts := range b.staged {
		if readers[name] == 0 {
			continue
		}
		relation, err := b.whole(ctx, parts, readers[name])
		if err != nil {
			return nil, err
		}
		targets[name] = temporary(relation)
	}
	return targets, nil
}

func temporary(relation string) gate.Target {
	return gate.Target{Catalog: "temp", Schema: "main", Table: relation}
}

// fills writes the statements of the step, and makes the temporary tables that they need.
func (b *build) fills(ctx context.Context, t *task, targets map[string]gate.Target) error {
	m := t.Model
	into := t.table
	keyed := m.Filling.Mode == project.ModeUpsert || m.Filling.Mode == project.ModeReplace
	if t.Parts != nil && (keyed || len(t.Parts) > 1) {
		t.fold = "fold " + m.Name
		t.deleted = engine.Identifier(freeName(m, "is deleted"))
		columns := join(m.Columns, ", ", func(c project.Column) string { return engine.Identifier(c.Name) + " " + string(c.Type) })
		if err := b.conn.Exec(ctx, "CREATE TEMP TABLE "+engine.Identifier(t.fold)+" ("+columns+", "+t.deleted+" BOOLEAN DEFAULT false)"); err != nil {
			return err
		}
		into = engine.Identifier(t.fold) + " (" + names(m) + ")"
		if keyed {
			t.incoming = "incoming " + m.Name
			if err := b.conn.Exec(ctx, "CREATE TEMP TABLE "+engine.Identifier(t.incoming)+" ("+columns+")"); err != nil {
				return err
			}
			into = engine.Identifier(t.incoming)
			if err := b.judge(ctx, t); err != nil {
				return err
			}
		}
	}
	write := func(targets map[string]gate.Target) error {
		parsed, err := gate.Parse(ctx, b.conn, m.Statement.SQL)
		if err != nil {
			return gated(err, m)
		}
		text, err := parsed.Rewrite(ctx, b.conn, targets, nil)
		if err != nil {
			return gated(err, m)
		}
		t.fills = append(t.fills, fillOf(into, m, text))
		return nil
	}
	if t.Parts == nil {
		return write(targets)
	}
	own := maps.Clone(targets)
	for _, i := range t.Parts {
		parts := b.staged[m.Input]
		if i >= len(parts) {
			return fail.New(fail.Internal, "part_not_staged", "model %q needs part %d of source %q, of which %d were staged", m.Name, i, m.Input, len(parts))
		}
		own[m.Input] = temporary(parts[i].relation)
		t.parts = append(t.parts, parts[i].names)
		if err := write(own); err != nil {
			return err
		}
	}
	return nil
}

// judge writes the statement that tells which of the incoming rows delete their key's row.
func (b *build) judge(ctx context.Context, t *task) error {
	m := t.Model
	condition := "false"
	if sql := m.Filling.DeletedWhen.SQL; sql != "" {
		condition = "(" + sql + "\n) IS TRUE"
	}
	parsed, err := gate.Parse(ctx, b.conn, "SELECT *, "+condition+" AS "+t.deleted+" FROM "+engine.Identifier(m.Name))
	if err != nil {
		return err
	}
	text, err := parsed.Rewrite(ctx, b.conn, map[string]gate.Target{m.Name: temporary(t.incoming)}, nil)
	t.judged = text.SQL
	return err
}

// names are the model's columns, in order.
func names(m plan.Model) string {
	return join(m.Columns, ", ", func(c project.Column) string { return engine.Identifier(c.Name) })
}

// freeName is a name like this one that no column of the model has.
func freeName(m plan.Model, name string) string {
	for slices.ContainsFunc(m.Columns, func(c project.Column) bool { return strings.EqualFold(c.Name, name) }) {
		name += "_"
	}
	return name
}

// copyBases copies, for every step that goes on from the base, the base's rows of a table whose newest rows are others: after an attempt
// that was given up, or a rollback. Equal files hold equal rows, since nothing of ours writes a file twice.
func (b *build) copyBases(ctx context.Context, tasks []task, mark refresh.Mark) error {
	if !slices.ContainsFunc(tasks, func(t task) bool { return t.Action != plan.Rebuild }) {
		return nil
	}
	before, err := b.lake.catalog.files(ctx, b.conn, b.schema, int64(mark.Base))
	if err != nil {
		return err
	}
	now, err := b.lake.catalog.files(ctx, b.conn, b.schema, newest)
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		if t.Action == plan.Rebuild {
			continue
		}
		old, exists := before[t.Model.Table]
		if !exists {
			return fail.New(fail.Corrupt, "table_gone", "snapshot %d of the lake has no table %s to go on from", mark.Base, t.table)
		}
		if sameFiles(old, now[t.Model.Table]) {
			continue
		}
		t.base = "base " + t.Model.Name
		if err := b.conn.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE %s AS SELECT %s FROM %s AT (VERSION => %d)", engine.Identifier(t.base), names(t.Model), t.table, mark.Base)); err != nil {
			return err
		}
	}
	return nil
}

func sameFiles(a, b []dataFile) bool {
	paths := func(files []dataFile) []string {
		out := make([]string, len(files))
		for i, f := range files {
			out[i] = f.path
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(paths(a), paths(b))
}

// revert brings the table back to what it is at the base.
func (b *build) revert(ctx context.Context, t task) error {
	if t.base == "" {
		return nil
	}
	if err := b.conn.Exec(ctx, "TRUNCATE "+t.table); err != nil {
		return err
	}
	return b.conn.Exec(ctx, "INSERT INTO "+t.table+" FROM "+engine.Identifier(t.base))
}

// do writes the step's rows, and gives how many.
func (b *build) do(ctx context.Context, t task) (int64, error) {
	if t.Action == plan.Rebuild {
		if err := b.conn.Exec(ctx, "TRUNCATE "+t.table); err != nil {
			return 0, err
		}
	}
	for i, f := range t.fills {
		if t.incoming != "" {
			if err := b.conn.Exec(ctx, "TRUNCATE "+engine.Identifier(t.incoming)); err != nil {
				return 0, err
			}
		}
		if t.fold == "" && t.Action != plan.Rebuild {
			if err := b.revert(ctx, t); err != nil {
				return 0, err
			}
		}
		var rows int64
		if err := b.conn.Scan(ctx, f.sql, nil, &rows); err != nil {
			return 0, f.blame(err)
		}
		if t.fold == "" {
			return rows, nil
		}
		if t.incoming != "" {
			if err := b.foldIn(ctx, t, t.parts[i]); err != nil {
				return 0, err
			}
		}
	}
	if t.fold == "" {
		return 0, nil
	}
	return b.merge(ctx, t)
}

// matching is the condition that two relations agree in the model's key.
func matching(m plan.Model, left, right string) string {
	return join(m.Filling.Key, " AND ", func(k string) string {
		return left + "." + engine.Identifier(k) + " IS NOT DISTINCT FROM " + right + "." + engine.Identifier(k)
	})
}

// foldIn puts one part's rows in the place of those of earlier parts with the same key, or in the same partitions.
func (b *build) foldIn(ctx context.Context, t task, file string) error {
	m, incoming, fold := t.Model, engine.Identifier(t.incoming), engine.Identifier(t.fold)
	if m.Filling.Mode == project.ModeUpsert {
		if err := b.proveKey(ctx, t, file); err != nil {
			return err
		}
	}
	if err := b.conn.Exec(ctx, "DELETE FROM "+fold+" AS f WHERE EXISTS (SELECT 1 FROM "+incoming+" AS i WHERE "+matching(m, "f", "i")+")"); err != nil {
		return err
	}
	return deletedBlame(b.conn.Exec(ctx, "INSERT INTO "+fold+" FROM ("+t.judged+")"), m)
}

// proveKey refuses a part in which a key is NULL or there twice: no row could be told to be the newer one.
func (b *build) proveKey(ctx context.Context, t task, file string) (err error) {
	m := t.Model
	key := join(m.Filling.Key, ", ", engine.Identifier)
	missing := join(m.Filling.Key, " OR ", func(k string) string { return engine.Identifier(k) + " IS NULL" })
	var nulls int64
	var repeated []string
	if err := b.conn.Scan(ctx, "SELECT count(*) FILTER (WHERE "+missing+") FROM "+engine.Identifier(t.incoming), nil, &nulls); err != nil {
		return err
	}
	if nulls > 0 {
		return keyProblem(m, fmt.Sprintf("%d rows of model %q from %s have no value in their key (%s)", nulls, m.Name, file, strings.Join(m.Filling.Key, ", ")),
			"leave such rows out in the model's SQL")
	}
	shown := join(m.Filling.Key, ", ", func(k string) string { return "left(CAST(" + engine.Identifier(k) + " AS VARCHAR), 60)" })
	rows, err := b.conn.Rows(ctx, "SELECT concat_ws(', ', "+shown+") FROM "+engine.Identifier(t.incoming)+" GROUP BY "+key+" HAVING count(*) > 1 ORDER BY "+key+" LIMIT 4")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		repeated = append(repeated, text)
	}
	if err := rows.Err(); err != nil || len(repeated) == 0 {
		return err
	}
	return keyProblem(m, fmt.Sprintf("model %q has several rows of one key (%s) from %s, such as %s", m.Name, strings.Join(m.Filling.Key, ", "), file, strings.Join(repeated, "; ")),
		"pick one of them in the model's SQL, such as with QUALIFY row_number() OVER (PARTITION BY "+strings.Join(m.Filling.Key, ", ")+" ORDER BY …) = 1")
}

func keyProblem(m plan.Model, message, fix string) error {
	return project.Problems{{At: m.Filling.KeyAt, Message: message, Fix: fix}}
}

// deletedBlame gives an error about the rows that deleted_when met its place.
func deletedBlame(err error, m plan.Model) error {
	if !stopped(err) {
		return err
	}
	e, _ := engine.AsSQLError(err)
	message, _, _ := strings.Cut(e.Message, "\n")
	return project.Problems{{At: m.Filling.DeletedWhen.At, Message: fmt.Sprintf("deleted_when of model %q failed on the rows it met: %s", m.Name, strings.ToValidUTF8(message[:min(len(message), 300)], "")),
		Fix: "correct the expression"}}
}

// merge works what the parts made together into the table.
func (b *build) merge(ctx context.Context, t task) (int64, error) {
	m, fold := t.Model, engine.Identifier(t.fold)
	into := t.table
	if t.base != "" && t.incoming != "" {
		// The base's rows are changed in their copy, so that the transaction deletes nothing that it wrote itself.
		into = engine.Identifier(t.base)
	}
	if t.Action != plan.Rebuild && t.incoming != "" {
		if err := b.conn.Exec(ctx, "DELETE FROM "+into+" AS t WHERE EXISTS (SELECT 1 FROM "+fold+" AS f WHERE "+matching(m, "f", "t")+")"); err != nil {
			return 0, err
		}
	}
	if t.Action != plan.Rebuild {
		if err := b.revert(ctx, t); err != nil {
			return 0, err
		}
	}
	var rows int64
	err := b.conn.Scan(ctx, "INSERT INTO "+t.table+" SELECT "+names(m)+" FROM "+fold+" WHERE NOT "+t.deleted, nil, &rows)
	return rows, err
}
