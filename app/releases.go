package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// keptReleases bounds the compiled releases that are kept in memory.
const keptReleases = 16

// Releases turns project bundles into compiled releases, and those into generations.
type Releases struct {
	bundles   ports.Bundles
	documents ports.Documents
	compiler  ports.Compiler
	reader    ports.Reader
	// compiled are the releases used last, the last one first. A release is a function of its id in one process, and nobody changes one,
	// so that a refresh or a description need not bind every statement of the project again.
	mu       sync.Mutex
	compiled []plan.Release
}

// NewReleases wires the ports that compiling needs.
func NewReleases(bundles ports.Bundles, documents ports.Documents, compiler ports.Compiler, reader ports.Reader) *Releases {
	return &Releases{bundles: bundles, documents: documents, compiler: compiler, reader: reader}
}

// kept gives the compiled release when it is among those used last.
func (r *Releases) kept(id project.Digest) (plan.Release, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.compiled, func(rel plan.Release) bool { return rel.ID == id })
	if i < 0 {
		return plan.Release{}, false
	}
	rel := r.compiled[i]
	r.compiled = slices.Insert(slices.Delete(r.compiled, i, i+1), 0, rel)
	return rel, true
}

func (r *Releases) keep(rel plan.Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	others := slices.DeleteFunc(r.compiled, func(x plan.Release) bool { return x.ID == rel.ID })
	r.compiled = append([]plan.Release{rel}, others[:min(len(others), keptReleases-1)]...)
}

// compile decodes and compiles a bundle whose digest is id.
func (r *Releases) compile(ctx context.Context, id project.Digest, bundle []byte) (plan.Release, error) {
	if rel, ok := r.kept(id); ok {
		return rel, nil
	}
	files, err := project.Unpack(bundle)
	if err != nil {
		return plan.Release{}, err
	}
	p, err := project.Decode(files, r.documents)
	if err != nil {
		return plan.Release{}, err
	}
	rel, err := r.compiler.Compile(ctx, id, p)
	if err != nil {
		return plan.Release{}, lined(err, files)
	}
	r.keep(rel)
	return rel, nil
}

// lined gives an error that is a list of problems the text of their lines.
func lined(err error, files []project.File) error {
	var problems project.Problems
	if errors.As(err, &problems) {
		return project.Lined(problems, files)
	}
	return err
}

// load compiles a stored release. Its bundle is read and proved every time: what is activated has to be there for the next start.
func (r *Releases) load(ctx context.Context, id project.Digest) (plan.Release, error) {
	bundle, err := r.bundles.Get(ctx, id)
	if err != nil {
		return plan.Release{}, err
	}
	return r.compile(ctx, id, bundle)
}

// prepare proves every endpoint of the release at the pointer's snapshot.
func (r *Releases) prepare(ctx context.Context, w serving.Workspace, lineage string, rel plan.Release, p serving.Pointer) (*Generation, error) {
	g := &Generation{Workspace: w, Lineage: lineage, Pointer: p, Endpoints: make(map[string]PreparedEndpoint, len(rel.Endpoints))}
	for _, e := range rel.Endpoints {
		q, err := r.reader.Prepare(ctx, p.Scope(w), e.Statement, e.Params)
		if err != nil {
			return nil, err
		}
		g.Endpoints[e.Name] = PreparedEndpoint{e, q}
	}
	return g, nil
}

// warmTime bounds the warming of one endpoint.
const warmTime = 2 * time.Second

// warm runs every endpoint once, so that the first requests after the swap meet opened files and filled caches. An endpoint that
// cannot answer its defaults, or not soon, is its callers' matter, not the refresh's; only a broken engine or an ended context stops it.
func (r *Releases) warm(ctx context.Context, g *Generation) error {
	reading, err := r.reader.Open(ctx)
	if err != nil {
		return err
	}
	// A reading that met an error answers nothing more, so each failure gets a fresh one.
	defer func() { _ = reading.Close() }()
	for _, name := range g.Names() {
		e := g.Endpoints[name]
		// A call that gives nothing: required parameters stay NULL.
		b := e.Bind(project.Call{}, "", &project.CallError{})
		q, err := e.shaped(b)
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, warmTime)
		_, err = reading.Answer(short, q, b.Args, serving.Limits{Rows: 1, Bytes: 1 << 20})
		cancel()
		if err == nil {
			continue
		}
		if fail.KindOf(err) == fail.Fatal || ctx.Err() != nil {
			return err
		}
		_ = reading.Close()
		if reading, err = r.reader.Open(ctx); err != nil {
			return err
		}
	}
	return nil
}
