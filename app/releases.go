package app

import (
	"context"
	"errors"
	"time"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// Releases turns project bundles into compiled releases, and those into generations.
type Releases struct {
	bundles   ports.Bundles
	documents ports.Documents
	compiler  ports.Compiler
	reader    ports.Reader
}

// NewReleases wires the ports that compiling needs.
func NewReleases(bundles ports.Bundles, documents ports.Documents, compiler ports.Compiler, reader ports.Reader) *Releases {
	return &Releases{bundles, documents, compiler, reader}
}

// compile decodes and compiles a bundle whose digest is id.
func (r *Releases) compile(ctx context.Context, id project.Digest, bundle []byte) (plan.Release, error) {
	files, err := project.Unpack(bundle)
	if err != nil {
		return plan.Release{}, err
	}
	p, err := project.Decode(files, r.documents)
	if err != nil {
		return plan.Release{}, err
	}
	rel, err := r.compiler.Compile(ctx, id, p)
	return rel, lined(err, files)
}

// lined gives an error that is a list of problems the text of their lines.
func lined(err error, files []project.File) error {
	var problems project.Problems
	if errors.As(err, &problems) {
		return project.Lined(problems, files)
	}
	return err
}

// load compiles a stored release.
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
