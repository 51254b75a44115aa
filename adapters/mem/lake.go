package mem

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// CommitFault is what an injected failure does to the next commit of a Store.
type CommitFault uint8

const (
	// CommitsWell is the zero value: no failure.
	CommitsWell CommitFault = iota
	// FailsBefore reports an error and commits nothing.
	FailsBefore
	// FailsAfter commits and then reports an error, as a connection does that breaks before the answer comes back.
	FailsAfter
	// LosesSilently commits nothing and reports success, as the engine's driver does after a cancelled statement.
	LosesSilently
)

// StoreOptions are what a Store needs of the world around it.
type StoreOptions struct {
	Clock ports.Clock
	// Disk receives one file for each table that a commit fills. A table whose file is gone cannot be read any more.
	Disk *Disk
	// Content gives the bytes of a staged artifact.
	Content func(ports.Artifact) ([]byte, error)
	// Readings bounds how many readings may be open at a time; always at least 1.
	Readings int
}

// Store is the in-memory twin of the analytical store: a ports.Lake, ports.Reader and ports.Checker over tables whose every version is
// kept. It outlives whoever uses it, so "closing" a node and opening another over the same Store is how a test restarts one. Its SQL
// is described in sql.go.
type Store struct {
	o       StoreOptions
	lineage string
	// writer holds one token while no build is open.
	writer chan struct{}
	// readings holds one token for each reading that may still be opened.
	readings chan struct{}

	mu sync.Mutex
	// head is the newest snapshot. Every snapshot up to it can be read.
	head    serving.Snapshot
	schemas map[serving.Workspace]map[string]*storedTable
	commits []markedCommit
	fault   CommitFault
}

// storedTable is a physical table. Its versions ascend; version 0 is empty and says when the table was created.
type storedTable struct {
	columns  []project.Column
	versions []storedVersion
}

// storedVersion is a table's rows from a snapshot on; it never changes. path is its file, or empty when there are no rows.
type storedVersion struct {
	from serving.Snapshot
	rows [][]value
	path string
	// gone tells that the table was dropped.
	gone bool
}

// dropped tells that the newest version is none.
func (t *storedTable) dropped() bool { return t.versions[len(t.versions)-1].gone }

type markedCommit struct {
	text string
	mark refresh.Mark
	at   serving.Snapshot
	when time.Time
}

// NewStore makes a store that carries the init mark of this lineage.
func NewStore(lineage string, o StoreOptions) *Store {
	s := &Store{o: o, lineage: lineage, writer: make(chan struct{}, 1), readings: make(chan struct{}, o.Readings),
		schemas: map[serving.Workspace]map[string]*storedTable{}}
	s.writer <- struct{}{}
	for range o.Readings {
		s.readings <- struct{}{}
	}
	init := refresh.Mark{Kind: refresh.MarkInit, Lineage: lineage}
	s.head = 1
	s.commits = []markedCommit{{init.Encode(), init, s.head, o.Clock.Now()}}
	return s
}

// FailNextCommit makes the next commit fail in this way, once.
func (s *Store) FailNextCommit(f CommitFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Begin is ports.Lake's.
func (s *Store) Begin(ctx context.Context, workspace serving.Workspace) (ports.Build, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	select {
	case <-s.writer:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schemas[workspace] == nil {
		s.head++
		s.schemas[workspace] = map[string]*storedTable{}
	}
	return &build{store: s, workspace: workspace, staged: map[string][]relation{}, names: map[string][]string{}}, nil
}

// Find is ports.Lake's.
func (s *Store) Find(ctx context.Context, mark refresh.Mark) (serving.Snapshot, time.Time, bool, error) {
	if err := ended(ctx); err != nil {
		return 0, time.Time{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := mark.Encode()
	for _, c := range s.commits {
		if c.text == text {
			return c.at, c.when, true, nil
		}
	}
	return 0, time.Time{}, false, nil
}

// Files is ports.Lake's.
func (s *Store) Files(ctx context.Context, scope serving.Scope) ([]string, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for _, name := range scope.Tables {
		_, v, err := s.tableAt(scope, name)
		if err != nil {
			return nil, err
		}
		if v.path != "" {
			paths = append(paths, v.path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// Survey is ports.Lake's.
func (s *Store) Survey(ctx context.Context) (ports.LakeSurvey, error) {
	if err := ended(ctx); err != nil {
		return ports.LakeSurvey{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	survey := ports.LakeSurvey{Lineage: s.lineage, Marks: map[serving.Snapshot]refresh.Mark{}}
	for _, c := range s.commits {
		survey.Marks[c.at] = c.mark
		survey.HighestFence = max(survey.HighestFence, c.mark.Fence)
	}
	for n := range s.head + 1 {
		survey.Snapshots = append(survey.Snapshots, n)
	}
	return survey, nil
}

// tableAt is a physical table and its version at the scope's snapshot. The caller holds mu.
func (s *Store) tableAt(scope serving.Scope, name string) (*storedTable, storedVersion, error) {
	var none storedVersion
	if scope.Snapshot < 1 || scope.Snapshot > s.head {
		return nil, none, fail.New(fail.Missing, "snapshot_missing", "the lake has no snapshot %d", scope.Snapshot)
	}
	t := s.schemas[scope.Workspace][name]
	if t == nil || t.versions[0].from > scope.Snapshot {
		return nil, none, fail.New(fail.Missing, "unknown_table", "workspace %q has no table %q at snapshot %d", scope.Workspace, name, scope.Snapshot)
	}
	v := t.versions[0]
	for _, next := range t.versions[1:] {
		if next.from <= scope.Snapshot {
			v = next
		}
	}
	if v.gone {
		return nil, none, fail.New(fail.Missing, "unknown_table", "workspace %q has no table %q at snapshot %d", scope.Workspace, name, scope.Snapshot)
	}
	return t, v, nil
}

// rowsAt are a table's rows at the scope's snapshot, which must still have their file.
func (s *Store) rowsAt(scope serving.Scope, name string) ([][]value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, v, err := s.tableAt(scope, name)
	if err != nil {
		return nil, err
	}
	if v.path != "" {
		if _, found := s.o.Disk.Read(v.path); !found {
			return nil, fail.New(fail.Corrupt, "data_file_missing", "data file %q of table %q is gone", v.path, name)
		}
	}
	return v.rows, nil
}

// ended is the canceled error of a context that has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fail.New(fail.Canceled, "canceled", "the caller went away or its deadline passed").Because(context.Cause(ctx))
}

// relation is rows with their columns.
type relation struct {
	columns []project.Column
	rows    [][]value
}

// build is the store's ports.Build.
type build struct {
	store     *Store
	workspace serving.Workspace
	// staged are the parts of each source, and names the files of each part.
	staged map[string][]relation
	names  map[string][]string
	closed bool
}

// usable refuses a build that was closed and a context that has ended.
func (b *build) usable(ctx context.Context) error {
	if b.closed {
		return fail.New(fail.Internal, "build_closed", "the build was used after it was closed")
	}
	return ended(ctx)
}

// Stage is ports.Build's.
func (b *build) Stage(ctx context.Context, source project.Source, artifacts []ports.Artifact) (ports.Staged, error) {
	if err := b.usable(ctx); err != nil {
		return ports.Staged{}, err
	}
	if problems := unsupportedSource(source); len(problems) > 0 {
		return ports.Staged{}, problems
	}
	staged := relation{columns: source.Columns}
	for _, a := range artifacts {
		if err := ended(ctx); err != nil {
			return ports.Staged{}, err
		}
		content, err := b.store.o.Content(a)
		if err != nil {
			return ports.Staged{}, err
		}
		read := readCSV
		if source.Format != project.CSV {
			read = readJSON
		}
		rows, err := read(source, a.Name, content)
		if err != nil {
			return ports.Staged{}, err
		}
		staged.rows = append(staged.rows, rows...)
	}
	var names []string
	for _, a := range artifacts {
		names = append(names, a.Name)
	}
	b.staged[source.Name] = append(b.staged[source.Name], staged)
	b.names[source.Name] = append(b.names[source.Name], strings.Join(names, ", "))
	return ports.Staged{Rows: int64(len(staged.rows))}, nil
}

// Create is ports.Build's.
func (b *build) Create(ctx context.Context, models []plan.Model, keep []string) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	b.drop(models, keep)
	for _, m := range models {
		if err := b.create(m); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) create(model plan.Model) error {
	for _, c := range model.Columns {
		if !supported(c.Type) {
			return project.Problems{{At: model.Statement.At, Message: fmt.Sprintf("the in-memory store does not have the type %s of column %q", c.Type, c.Name)}}
		}
	}
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.schemas[b.workspace][model.Table]; t != nil {
		if !sameColumns(t.columns, model.Columns) {
			return fail.New(fail.Corrupt, "table_columns_differ", "table %q exists with other columns than model %q has", model.Table, model.Name)
		}
		if t.dropped() {
			s.head++
			t.versions = append(t.versions, storedVersion{from: s.head})
		}
		return nil
	}
	s.head++
	s.schemas[b.workspace][model.Table] = &storedTable{columns: model.Columns, versions: []storedVersion{{from: s.head}}}
	return nil
}

func sameColumns(a, b []project.Column) bool {
	return slices.EqualFunc(a, b, func(x, y project.Column) bool { return x.Name == y.Name && x.Type == y.Type })
}

// drop ends the workspace's tables that are neither a model's nor to be kept. Their versions so far can still be read.
func (b *build) drop(models []plan.Model, keep []string) {
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.schemas[b.workspace] {
		if t.dropped() || slices.Contains(keep, name) || slices.ContainsFunc(models, func(m plan.Model) bool { return m.Table == name }) {
			continue
		}
		s.head++
		t.versions = append(t.versions, storedVersion{from: s.head, gone: true})
	}
}

// Commit is ports.Build's.
func (b *build) Commit(ctx context.Context, steps []plan.Step, mark refresh.Mark, progress func(plan.Progress)) error {
	if err := b.usable(ctx); err != nil {
		return err
	}
	built := map[string]relation{}
	for _, step := range steps {
		m := step.Model
		before, err := b.before(step, mark)
		if err != nil {
			return err
		}
		if step.Action == plan.Keep {
			built[m.Name] = before
			continue
		}
		progress(plan.Progress{Phase: plan.PhaseBuild, Subject: m.Name})
		r, written, err := b.step(step, before, built)
		if err != nil {
			return err
		}
		built[m.Name] = r
		progress(plan.Progress{Phase: plan.PhaseBuild, Subject: m.Name, Done: true, Rows: written})
		if err := ended(ctx); err != nil {
			return err
		}
	}

	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := s.fault
	s.fault = CommitsWell
	switch fault {
	case FailsBefore:
		return fail.New(fail.Internal, "commit_failed", "the commit failed, as a test asked")
	case LosesSilently:
		return nil
	case CommitsWell, FailsAfter:
	}
	for _, c := range s.commits {
		if c.text == mark.Encode() {
			return fail.New(fail.Conflict, "mark_committed", "%s has committed already, as snapshot %d", mark, c.at)
		}
	}
	for _, step := range steps {
		m := step.Model
		t := s.schemas[b.workspace][m.Table]
		if t == nil || t.dropped() || !sameColumns(t.columns, m.Columns) {
			return fail.New(fail.Internal, "table_not_created", "table %q of model %q was not created before the commit", m.Table, m.Name)
		}
	}
	at := s.head + 1
	for _, step := range steps {
		m := step.Model
		t := s.schemas[b.workspace][m.Table]
		v := storedVersion{from: at, rows: built[m.Name].rows}
		if step.Action == plan.Keep {
			_, old, err := s.tableAt(serving.Scope{Workspace: b.workspace, Snapshot: mark.Base}, m.Table)
			if err != nil {
				return err
			}
			if now := t.versions[len(t.versions)-1]; now.from == old.from {
				continue
			}
			v.path = old.path
		} else if len(v.rows) > 0 {
			v.path = fmt.Sprintf("%s/%s/%06d.json", b.workspace, m.Table, at)
			content, err := json.Marshal(v.rows)
			if err != nil {
				return fail.New(fail.Internal, "rows_not_written", "the rows of model %q cannot be written", m.Name).Because(err)
			}
			s.o.Disk.Write(v.path, content)
		}
		t.versions = append(t.versions, v)
	}
	s.head = at
	s.commits = append(s.commits, markedCommit{mark.Encode(), mark, at, s.o.Clock.Now()})
	if fault == FailsAfter {
		return fail.New(fail.UnknownOutcome, "commit_unknown", "the commit's outcome is not known, as a test asked")
	}
	return nil
}

// before is the model's table at the mark's base, for a step that goes on from it.
func (b *build) before(step plan.Step, mark refresh.Mark) (relation, error) {
	out := relation{columns: step.Model.Columns}
	if step.Action == plan.Rebuild {
		return out, nil
	}
	var err error
	out.rows, err = b.store.rowsAt(serving.Scope{Workspace: b.workspace, Snapshot: mark.Base}, step.Model.Table)
	if fail.KindOf(err) == fail.Missing {
		err = fail.New(fail.Corrupt, "table_gone", "snapshot %d of the lake has no table %s to go on from", mark.Base, step.Model.Table).Because(err)
	}
	return out, err
}

// step gives the model's rows after the step, and how many it wrote.
func (b *build) step(step plan.Step, before relation, built map[string]relation) (relation, int64, error) {
	m := step.Model
	if step.Parts == nil {
		r, err := b.model(m, built, b.all(m.Reads))
		return r, int64(len(r.rows)), err
	}
	out := relation{columns: m.Columns, rows: slices.Clone(before.rows)}
	written := map[string]int64{}
	for _, p := range step.Parts {
		if p >= len(b.staged[m.Input]) {
			return out, 0, fail.New(fail.Internal, "part_not_staged", "model %q needs part %d of source %q, of which %d were staged", m.Name, p, m.Input, len(b.staged[m.Input]))
		}
		in := b.all(m.Reads)
		in[m.Input] = b.staged[m.Input][p]
		r, err := b.model(m, built, in)
		if err != nil {
			return out, 0, err
		}
		if err := out.fold(m, r.rows, b.names[m.Input][p], written); err != nil {
			return out, 0, err
		}
	}
	var rows int64
	for _, n := range written {
		rows += n
	}
	return out, rows, nil
}

// all is everything that was staged of the sources among the names.
func (b *build) all(names []string) map[string]relation {
	out := map[string]relation{}
	for _, name := range names {
		for _, part := range b.staged[name] {
			out[name] = relation{columns: part.columns, rows: slices.Concat(out[name].rows, part.rows)}
		}
	}
	return out
}

// fold works rows into the relation as the model's mode says. written counts, by key, the rows that stay of what was folded in.
func (r *relation) fold(m plan.Model, rows [][]value, file string, written map[string]int64) error {
	key := func(row []value) string {
		var parts []any
		for _, k := range m.Filling.Key {
			parts = append(parts, row[slices.IndexFunc(m.Columns, func(c project.Column) bool { return c.Name == k })])
		}
		return fmt.Sprintf("%#v", parts)
	}
	counts := map[string]int64{}
	for _, row := range rows {
		counts[key(row)]++
	}
	switch m.Filling.Mode {
	case project.ModeUpsert:
		for _, row := range rows {
			for i, c := range m.Columns {
				if slices.Contains(m.Filling.Key, c.Name) && row[i] == nil {
					return keyProblem(m, "rows of model %q from %s have no value in their key", m.Name, file)
				}
			}
			if counts[key(row)] > 1 {
				return keyProblem(m, "model %q has several rows of one key from %s", m.Name, file)
			}
		}
	case project.ModeReplace:
	case project.ModeAppend, project.ModeFull:
		r.rows = slices.Concat(r.rows, rows)
		written[""] += int64(len(rows))
		return nil
	}
	r.rows = slices.DeleteFunc(slices.Clone(r.rows), func(row []value) bool { return counts[key(row)] > 0 })
	r.rows = slices.Concat(r.rows, rows)
	for k, n := range counts {
		written[k] = n
	}
	return nil
}

func keyProblem(m plan.Model, format string, args ...any) project.Problems {
	return project.Problems{{At: m.Filling.KeyAt, Message: fmt.Sprintf(format, args...)}}
}

// model computes a model's rows, cast to its columns, from what was staged and what was built before it.
func (b *build) model(m plan.Model, built, staged map[string]relation) (relation, error) {
	parsed, bad := parse(m.Statement.SQL)
	if bad != nil {
		return relation{}, project.Problems{bad.problem(m.Statement)}
	}
	in, found := built[parsed.from.text]
	if !found {
		in, found = staged[parsed.from.text]
	}
	if !found {
		bad := refuse(parsed.from.offset, "model %q reads %q, which was neither staged nor built", m.Name, parsed.from.text)
		return relation{}, project.Problems{bad.problem(m.Statement)}
	}
	q, bad := bind(parsed, in.columns, nil)
	if bad != nil {
		return relation{}, project.Problems{bad.problem(m.Statement)}
	}
	if !slices.EqualFunc(q.columns, m.Columns, func(x, y project.Column) bool { return x.Name == y.Name && castable(x.Type, y.Type) }) {
		return relation{}, fail.New(fail.Internal, "columns_differ", "the statement of model %q does not give the columns it was compiled to", m.Name)
	}
	rows, err := q.run(in.rows, nil)
	if err != nil {
		return relation{}, modelProblem(m, "model %q: %v", m.Name, err)
	}
	out := relation{columns: m.Columns, rows: make([][]value, len(rows))}
	for i, row := range rows {
		out.rows[i] = make([]value, len(row))
		for j, v := range row {
			if out.rows[i][j], err = cast(v, m.Columns[j].Type); err != nil {
				return relation{}, modelProblem(m, "model %q, column %q: %v", m.Name, m.Columns[j].Name, err)
			}
		}
	}
	return out, nil
}

func modelProblem(m plan.Model, format string, args ...any) project.Problems {
	return project.Problems{{At: m.Statement.At, Message: fmt.Sprintf(format, args...)}}
}

// Close is ports.Build's.
func (b *build) Close() error {
	if !b.closed {
		b.closed = true
		b.staged = nil
		b.store.writer <- struct{}{}
	}
	return nil
}
