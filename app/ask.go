package app

import (
	"context"
	"fmt"

	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// Asker answers endpoint calls.
type Asker struct {
	gens   *Generations
	reader ports.Reader
	slots  *Slots
	limits AskLimits
}

// NewAsker wires the ports that asking needs.
func NewAsker(gens *Generations, reader ports.Reader, slots *Slots, limits AskLimits) *Asker {
	return &Asker{gens, reader, slots, limits}
}

// Call is one endpoint call of a query bundle. Params are texts by name, not yet validated.
type Call struct {
	// Name keys the answer within its bundle.
	Name     string
	Endpoint string
	Params   map[string]string
}

// Asked is what a request was answered from, and its answers in the order of its calls.
type Asked struct {
	Workspace serving.Workspace
	Lineage   string
	Pointer   serving.Pointer
	Answers   []serving.Answer
}

// Endpoints lists the endpoints of the workspace's current generation, sorted by name.
func (a *Asker) Endpoints(w serving.Workspace) (Asked, []PreparedEndpoint, error) {
	lease, err := a.gens.Acquire(w)
	if err != nil {
		return Asked{}, nil, err
	}
	defer lease.Release()
	g := lease.Generation
	list := make([]PreparedEndpoint, 0, len(g.Endpoints))
	for _, n := range g.Names() {
		list = append(list, g.Endpoints[n])
	}
	return Asked{Workspace: w, Lineage: g.Lineage, Pointer: g.Pointer}, list, nil
}

// Ask answers all calls from one lease, one connection, one read transaction, one snapshot. Every call is validated before any is
// executed; one that fails fails the request.
func (a *Asker) Ask(ctx context.Context, w serving.Workspace, calls []Call) (Asked, error) {
	if len(calls) == 0 || len(calls) > a.limits.Calls {
		return Asked{}, fail.New(fail.Limit, "bundle_calls", "a request holds %d endpoint calls; it needs at least 1 and at most %d (limit bundle_calls = %d)", len(calls), a.limits.Calls, a.limits.Calls).
			WithFix("split it, or let the node be started with a higher --bundle-calls")
	}
	ctx, cancel := context.WithTimeout(ctx, a.limits.Time)
	defer cancel()
	lease, err := a.gens.Acquire(w)
	if err != nil {
		return Asked{}, err
	}
	defer lease.Release()
	g := lease.Generation

	type bound struct {
		endpoint PreparedEndpoint
		args     serving.Args
	}
	work := make([]bound, len(calls))
	for i, c := range calls {
		e, ok := g.Endpoints[c.Endpoint]
		if !ok {
			return Asked{}, inCall(calls, i, fail.New(fail.Missing, "unknown_endpoint", "workspace %q has no endpoint %q", w, c.Endpoint).
				WithFix("%s", project.Suggest(c.Endpoint, g.Names())))
		}
		given, err := e.Bind(c.Params)
		if err != nil {
			return Asked{}, inCall(calls, i, err)
		}
		args := make(serving.Args, len(given))
		for name, text := range given {
			if text == nil {
				args[name] = serving.Value{Null: true}
			} else {
				args[name] = serving.Value{Text: *text}
			}
		}
		work[i] = bound{e, args}
	}

	if err := a.slots.take(ctx); err != nil {
		return Asked{}, a.late(ctx, err)
	}
	defer a.slots.give()
	// The transaction begins after the generation was leased, so its view of the catalog includes the snapshot.
	reading, err := a.reader.Open(ctx)
	if err != nil {
		return Asked{}, a.late(ctx, err)
	}
	out := Asked{Workspace: w, Lineage: g.Lineage, Pointer: g.Pointer, Answers: make([]serving.Answer, len(work))}
	left := int(a.limits.Bytes)
	for i, b := range work {
		out.Answers[i], err = reading.Answer(ctx, b.endpoint.Query, b.args, serving.Limits{Rows: b.endpoint.Limit, Bytes: max(left, 1)})
		if err != nil {
			_ = reading.Close()
			return Asked{}, inCall(calls, i, a.late(ctx, err))
		}
		left -= len(out.Answers[i].Rows)
	}
	return out, reading.Close()
}

// late turns the end of the request's own time into the bound's error.
func (a *Asker) late(ctx context.Context, err error) error {
	if fail.KindOf(err) == fail.Canceled && ctx.Err() == context.DeadlineExceeded {
		return fail.New(fail.Limit, "query_time", "the query and its waiting took longer than %s (limit query_time = %s), and it was given up", a.limits.Time, a.limits.Time).
			WithFix("ask for less, or let the node be started with a higher --query-time").Because(err)
	}
	return err
}

// inCall says which call of a bundle an error belongs to.
func inCall(calls []Call, i int, err error) error {
	if len(calls) == 1 && calls[i].Name == "" {
		return err
	}
	return fmt.Errorf("query %q (endpoint %q): %w", calls[i].Name, calls[i].Endpoint, err)
}
