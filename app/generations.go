// Package app owns the use cases: deploying a project, refreshing a workspace, serving its endpoints, telling where things
// stand. It is the order in which ports are called and domain decisions are taken.
//
// Invariants: every durable change is a decision of domain/refresh written by one Control.Update; from a lake commit on, the
// work goes on although its requester left; a request reads one generation and holds its lease to the end. The package knows no
// engine, no SQL dialect, no file format and no transport.
package app

import (
	"sort"
	"sync"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// Generation is what requests read: one snapshot, and every endpoint of its release pinned to it and proved.
type Generation struct {
	Workspace serving.Workspace
	Lineage   string
	Pointer   serving.Pointer
	// Endpoints by name. The map is never written after the generation was prepared.
	Endpoints map[string]PreparedEndpoint
}

// PreparedEndpoint is an endpoint with its proved query.
type PreparedEndpoint struct {
	plan.Endpoint
	Query ports.Query
}

// shaped is the endpoint's query as a call wants its answer.
func (e PreparedEndpoint) shaped(b project.Bound) (ports.Query, error) {
	if shape := (serving.Shape{Columns: b.Columns, Order: b.Order}); !shape.Whole() {
		return e.Query.Shaped(shape)
	}
	return e.Query, nil
}

// Names lists the generation's endpoints, sorted.
func (g *Generation) Names() []string {
	names := make([]string, 0, len(g.Endpoints))
	for n := range g.Endpoints {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Generations holds the published generation of each workspace and counts the leases on every generation that is still read.
type Generations struct {
	mu sync.Mutex
	// current, broken and retired are guarded by mu.
	current map[serving.Workspace]*held
	// broken says why a workspace that should be serving is not.
	broken map[serving.Workspace]error
	// retired are superseded generations that nobody reads any more, until TakeRetired.
	retired []*Generation
	// wake gets a token when retired grows; it never blocks the releaser.
	wake chan struct{}
}

type held struct {
	generation *Generation
	leases     int
	superseded bool
}

// NewGenerations is an empty registry.
func NewGenerations() *Generations {
	return &Generations{current: map[serving.Workspace]*held{}, broken: map[serving.Workspace]error{}, wake: make(chan struct{}, 1)}
}

// Publish makes g the generation that new requests read. It cannot fail.
func (s *Generations) Publish(g *Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.current[g.Workspace]; old != nil {
		old.superseded = true
		if old.leases == 0 {
			s.retire(old.generation)
		}
	}
	s.current[g.Workspace] = &held{generation: g}
	delete(s.broken, g.Workspace)
}

// MarkBroken says why the workspace's active pointer cannot be served. It ends with the next Publish.
func (s *Generations) MarkBroken(w serving.Workspace, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[w] = why
}

// Broken lists the workspaces that should be serving and are not.
func (s *Generations) Broken() map[serving.Workspace]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[serving.Workspace]error, len(s.broken))
	for w, err := range s.broken {
		out[w] = err
	}
	return out
}

// Lease is a request's hold on a generation. It is released once, by its only owner.
type Lease struct {
	owner      *Generations
	held       *held
	Generation *Generation
}

// Acquire takes a lease on the workspace's current generation.
func (s *Generations) Acquire(w serving.Workspace) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.current[w]
	if h == nil {
		if why := s.broken[w]; why != nil {
			return nil, fail.New(fail.Unavailable, "workspace_not_ready", "workspace %q cannot be served", w).Because(why)
		}
		return nil, nothingActive(w)
	}
	h.leases++
	return &Lease{owner: s, held: h, Generation: h.generation}, nil
}

func nothingActive(w serving.Workspace) error {
	return fail.New(fail.Missing, "nothing_active", "workspace %q does not exist or has no active snapshot", w).
		WithFix("deploy and refresh it first: leapview deploy DIR, leapview refresh WORKSPACE")
}

// Release gives the lease back.
func (l *Lease) Release() {
	s := l.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	l.held.leases--
	if l.held.superseded && l.held.leases == 0 {
		s.retire(l.held.generation)
	}
}

// retire runs under mu.
func (s *Generations) retire(g *Generation) {
	s.retired = append(s.retired, g)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Retirements signals that TakeRetired has something to take.
func (s *Generations) Retirements() <-chan struct{} { return s.wake }

// TakeRetired hands over the generations that nobody reads any more.
func (s *Generations) TakeRetired() []*Generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.retired
	s.retired = nil
	return r
}
