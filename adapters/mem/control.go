package mem

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"leapview/domain/access"
	"leapview/domain/audit"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Control is the twin of the control plane: ports.Control, ports.Registry and ports.Keys over Go values. A transaction works on a copy of
// everything and swaps it in at its commit, so half of one is never seen.
type Control struct {
	// FailCommit, when it is not nil, is asked at each commit, after everything else went well. Its error becomes the commit's,
	// and nothing is written. It is set while nobody uses the handle.
	FailCommit func() error

	disk   *controlDisk
	closed atomic.Bool
}

var (
	_ ports.Control  = (*Control)(nil)
	_ ports.Registry = (*Control)(nil)
	_ ports.Keys     = (*Control)(nil)
)

// controlDisk is what outlives a handle.
type controlDisk struct {
	// writing is held for the whole of a write transaction.
	writing sync.Mutex
	// mu guards the pointer; what it points to is never written after it was stored.
	mu    sync.Mutex
	state *controlState
}

// controlState is everything that is stored. Slices inside the values are never written, so a copy of the maps is a copy of all.
type controlState struct {
	lake        ports.LakeRecord
	fences      map[serving.Workspace]refresh.Fence
	releases    map[controlRelease]bool
	deployments map[serving.Workspace][]refresh.Deployment
	// runs in the order in which they were requested.
	runs     []refresh.Run
	attempts map[refresh.Fence]refresh.Row
	// sources are what the attempts read.
	sources map[refresh.Fence][]refresh.SourceFile
	// rows are how many each of their sources had; the inner maps are never changed.
	rows        map[refresh.Fence]map[string]int64
	pointers    map[serving.Workspace]serving.Pointer
	tables      map[controlTable]string
	protections map[controlHold]serving.Snapshot
	leases      map[controlLease]bool
	audit       []audit.Row
	// keys in the order in which they were created.
	keys []access.Key
}

type controlRelease struct {
	workspace serving.Workspace
	digest    project.Digest
}

type controlTable struct {
	workspace serving.Workspace
	physical  string
}

type controlLease struct {
	workspace  serving.Workspace
	generation serving.GenerationNumber
	owner      string
}

// controlHold identifies a protection. run is the mark of an attempt or candidate; lease is what a leased one belongs to.
type controlHold struct {
	workspace serving.Workspace
	kind      string
	mark      refresh.Mark
	lease     controlLease
}

// Protection is a recorded reason to keep a snapshot, as the twin shows it to tests.
type Protection struct {
	Workspace serving.Workspace
	// Kind is active, candidate, attempt or leased.
	Kind string
	// Snapshot is 0 for an attempt: it protects whatever snapshot carries its mark.
	Snapshot serving.Snapshot
}

// NewControl is an empty control plane.
func NewControl() *Control {
	return &Control{disk: &controlDisk{state: &controlState{
		fences: map[serving.Workspace]refresh.Fence{}, releases: map[controlRelease]bool{}, deployments: map[serving.Workspace][]refresh.Deployment{},
		attempts: map[refresh.Fence]refresh.Row{}, sources: map[refresh.Fence][]refresh.SourceFile{}, rows: map[refresh.Fence]map[string]int64{}, pointers: map[serving.Workspace]serving.Pointer{}, tables: map[controlTable]string{},
		protections: map[controlHold]serving.Snapshot{}, leases: map[controlLease]bool{},
	}}}
}

// Reopen is a new handle over what this one stored, as the next process opens it.
func (c *Control) Reopen() *Control { return &Control{disk: c.disk} }

// Close ends the use of this handle. Twice is once.
func (c *Control) Close() error {
	c.closed.Store(true)
	return nil
}

// Audit is every audit row so far, oldest first.
func (c *Control) Audit() []audit.Row { return slices.Clone(c.disk.now().audit) }

// Protections are the protections that hold now, sorted by workspace, kind and snapshot.
func (c *Control) Protections() []Protection {
	var out []Protection
	for h, at := range c.disk.now().protections {
		out = append(out, Protection{h.workspace, h.kind, at})
	}
	slices.SortFunc(out, func(a, b Protection) int {
		if d := strings.Compare(string(a.Workspace), string(b.Workspace)); d != 0 {
			return d
		}
		if d := strings.Compare(a.Kind, b.Kind); d != 0 {
			return d
		}
		return int(a.Snapshot - b.Snapshot)
	})
	return out
}

// SourceFiles are what the attempt read, sorted by source and name.
func (c *Control) SourceFiles(fence refresh.Fence) []refresh.SourceFile {
	return sortedSources(c.disk.now().sources[fence])
}

// sortedSources is a private copy of the files, sorted by source and name.
func sortedSources(files []refresh.SourceFile) []refresh.SourceFile {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b refresh.SourceFile) int {
		if d := strings.Compare(a.Source, b.Source); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return files
}

// Update implements ports.Control.
func (c *Control) Update(ctx context.Context, scope refresh.Scope, decide func(refresh.State) ([]refresh.Event, error)) error {
	return c.write(ctx, func(s *controlState) (bool, error) {
		state, err := s.load(scope)
		if err != nil {
			return false, err
		}
		events, err := decide(state)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for _, e := range events {
			if err := s.apply(scope.Workspace, e); err != nil {
				return false, err
			}
			row, err := refresh.Audit(state, e)
			if err != nil {
				return false, err
			}
			s.tell(row)
		}
		return true, nil
	})
}

// Load implements ports.Control.
func (c *Control) Load(ctx context.Context, scope refresh.Scope) (refresh.State, error) {
	if err := c.usable(ctx); err != nil {
		return refresh.State{}, err
	}
	return c.disk.now().load(scope)
}

// Workspaces implements ports.Control.
func (c *Control) Workspaces(ctx context.Context) ([]serving.Workspace, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(c.disk.now().fences)), nil
}

// Files implements ports.Control.
func (c *Control) Files(ctx context.Context, workspace serving.Workspace) ([]refresh.File, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	s := c.disk.now()
	p, ok := s.pointers[workspace]
	if !ok {
		return nil, nil
	}
	for _, row := range s.attempts {
		if row.Mark.Workspace == workspace && row.Stage == refresh.StageActivated && row.Snapshot == p.Snapshot {
			return slices.Clone(row.Files), nil
		}
	}
	return nil, fail.New(fail.Corrupt, "pointer_without_candidate", "workspace %q serves snapshot %d, which no stored candidate became", workspace, p.Snapshot)
}

// Runs implements ports.Control.
func (c *Control) Runs(ctx context.Context, workspace serving.Workspace, limit int) ([]refresh.Run, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	var runs []refresh.Run
	for _, r := range slices.Backward(c.disk.now().runs) {
		if r.Workspace == workspace && len(runs) < limit {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// Checks implements ports.Control.
func (c *Control) Checks(ctx context.Context, run refresh.RunID) ([]refresh.CheckResult, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	var newest refresh.Row
	for _, row := range c.disk.now().attempts {
		if row.Mark.Run == run && len(row.Checks) > 0 && row.Mark.Attempt > newest.Mark.Attempt {
			newest = row
		}
	}
	return slices.Clone(newest.Checks), nil
}

// Lake implements ports.Registry.
func (c *Control) Lake(ctx context.Context) (ports.LakeRecord, error) {
	if err := c.usable(ctx); err != nil {
		return ports.LakeRecord{}, err
	}
	return c.disk.now().lake, nil
}

// RecordLake implements ports.Registry.
func (c *Control) RecordLake(ctx context.Context, r ports.LakeRecord) error {
	return c.write(ctx, func(s *controlState) (bool, error) {
		if r.Lineage == "" {
			return false, controlDefect("a lake has a lineage")
		}
		if s.lake.Lineage != "" && s.lake.Lineage != r.Lineage {
			return false, fail.New(fail.Conflict, "lineage_changed", "the control plane belongs to a lake of another lineage than %q", r.Lineage)
		}
		s.lake = r
		return true, nil
	})
}

// ReleaseLeases implements ports.Registry.
func (c *Control) ReleaseLeases(ctx context.Context, owner string) (int, error) {
	ended := 0
	err := c.write(ctx, func(s *controlState) (bool, error) {
		for l := range s.leases {
			if l.owner != owner {
				s.endLease(l)
				ended++
			}
		}
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}

// write runs change on a copy of everything, and stores the copy when change says so.
func (c *Control) write(ctx context.Context, change func(*controlState) (bool, error)) error {
	c.disk.writing.Lock()
	defer c.disk.writing.Unlock()
	if err := c.usable(ctx); err != nil {
		return err
	}
	next := c.disk.now().clone()
	if ok, err := change(next); err != nil || !ok {
		return err
	}
	if err := c.usable(ctx); err != nil {
		return err
	}
	if c.FailCommit != nil {
		if err := c.FailCommit(); err != nil {
			return err
		}
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	c.disk.state = next
	return nil
}

// usable refuses a closed handle and an ended context.
func (c *Control) usable(ctx context.Context) error {
	if c.closed.Load() {
		return fail.New(fail.Unavailable, "control_closed", "the control plane was closed")
	}
	if err := ctx.Err(); err != nil {
		return fail.New(fail.Canceled, "canceled", "given up, nothing was written").Because(err)
	}
	return nil
}

func (d *controlDisk) now() *controlState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

func (s *controlState) clone() *controlState {
	return &controlState{lake: s.lake, fences: maps.Clone(s.fences), releases: maps.Clone(s.releases), deployments: maps.Clone(s.deployments),
		runs: slices.Clone(s.runs), attempts: maps.Clone(s.attempts), sources: maps.Clone(s.sources), rows: maps.Clone(s.rows), pointers: maps.Clone(s.pointers), tables: maps.Clone(s.tables),
		protections: maps.Clone(s.protections), leases: maps.Clone(s.leases), audit: slices.Clip(s.audit), keys: slices.Clone(s.keys)}
}

// load is the state that the scope asks for; nothing in it is shared with what is stored.
func (s *controlState) load(scope refresh.Scope) (refresh.State, error) {
	w := scope.Workspace
	out := refresh.State{Workspace: w, RequestID: scope.RequestID, Lineage: s.lake.Lineage, HighestFence: s.highest()}
	if _, out.Exists = s.fences[w]; !out.Exists {
		return out, nil
	}
	out.Fence = s.fences[w]
	out.Pointer = s.pointers[w]
	out.Pointer.Tables = maps.Clone(out.Pointer.Tables)
	out.Deployment = s.deployment(w)
	for r := range s.releases {
		if r.workspace == w {
			if out.Releases == nil {
				out.Releases = map[project.Digest]bool{}
			}
			out.Releases[r.digest] = true
		}
	}
	for t, model := range s.tables {
		if t.workspace == w {
			if out.Tables == nil {
				out.Tables = map[string]string{}
			}
			out.Tables[t.physical] = model
		}
	}
	for _, r := range s.runs {
		if r.Workspace != w {
			continue
		}
		if !r.Status.Final() {
			out.Live = append(out.Live, r)
		}
		if r.ID == scope.Run {
			out.Run = &r
		}
		if scope.IdempotencyKey != "" && r.IdempotencyKey == scope.IdempotencyKey {
			out.Keyed = &r
		}
	}
	for fence, row := range s.attempts {
		if row.Mark.Workspace != w || row.Stage != refresh.StageActivated || row.Snapshot != out.Pointer.Snapshot {
			continue
		}
		if scope.Ledger {
			out.ActiveFiles = sortedSources(s.sources[fence])
		}
		if out.Run != nil {
			out.ActiveRows = maps.Clone(s.rows[fence])
		}
	}
	if out.Run == nil {
		return out, nil
	}
	row := s.newest(out.Run.ID)
	if row.Stage == "" || row.Stage == refresh.StageActivated {
		return out, nil
	}
	var err error
	out.Candidate, err = refresh.Load(row)
	return out, err
}

func (s *controlState) highest() refresh.Fence {
	var highest refresh.Fence
	for _, f := range s.fences {
		highest = max(highest, f)
	}
	return highest
}

func (s *controlState) deployment(w serving.Workspace) refresh.Deployment {
	d := s.deployments[w]
	if len(d) == 0 {
		return refresh.Deployment{}
	}
	return d[len(d)-1]
}

// newest is the newest attempt of the run; its zero value when there is none.
func (s *controlState) newest(run refresh.RunID) refresh.Row {
	var newest refresh.Row
	for _, row := range s.attempts {
		if row.Mark.Run == run && row.Mark.Attempt > newest.Mark.Attempt {
			newest = row
		}
	}
	return newest
}

// tell adds an audit row.
func (s *controlState) tell(row audit.Row) {
	row.At = stored(row.At)
	s.audit = append(s.audit, row)
}

// run finds a run of the workspace; nil when there is none.
func (s *controlState) run(w serving.Workspace, id refresh.RunID) *refresh.Run {
	for i := range s.runs {
		if s.runs[i].ID == id && s.runs[i].Workspace == w {
			return &s.runs[i]
		}
	}
	return nil
}

// endLease ends a lease and the protection that it carried.
func (s *controlState) endLease(l controlLease) {
	delete(s.leases, l)
	delete(s.protections, controlHold{workspace: l.workspace, kind: "leased", lease: l})
}

// stored is a time as the control plane keeps it.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// controlDefect is a write that no decision of the domain asks for.
func controlDefect(why string) error { return fail.New(fail.Internal, "impossible_write", "%s", why) }

// sortedFiles is a private copy of the files, sorted by path.
func sortedFiles(files []refresh.File) []refresh.File {
	out := slices.Clone(files)
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}
