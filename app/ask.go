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

// Call is one endpoint call, not yet validated.
type Call struct {
	// Name keys the answer within its bundle; empty for a call that is no part of one.
	Name     string
	Endpoint string
	project.Call
}

// Asked is what a request was answered from, and its answers in the order of its calls.
type Asked struct {
	Workspace serving.Workspace
	Lineage   string
	Pointer   serving.Pointer
	Answers   []serving.Answer
}

// Endpoints describes the endpoints of the workspace's current generation, sorted by name.
func (a *Asker) Endpoints(w serving.Workspace) (Asked, []EndpointDescription, error) {
	lease, err := a.gens.Acquire(w)
	if err != nil {
		return Asked{}, nil, err
	}
	defer lease.Release()
	g := lease.Generation
	list := make([]EndpointDescription, 0, len(g.Endpoints))
	for _, n := range g.Names() {
		list = append(list, describe(g.Endpoints[n].Endpoint))
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

	work, err := bind(g, calls)
	if err != nil {
		return Asked{}, err
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
		out.Answers[i], err = reading.Answer(ctx, b.query, b.args, serving.Limits{Rows: b.rows, Bytes: max(left, 1)})
		if err != nil {
			_ = reading.Close()
			return Asked{}, inCall(calls, i, a.late(ctx, err))
		}
		left -= len(out.Answers[i].Rows)
	}
	return out, reading.Close()
}

// boundCall is a call that may be executed.
type boundCall struct {
	query ports.Query
	args  serving.Args
	rows  int
}

// bind validates all calls. What is wrong with any of them is one error, a project.CallError, unless a call that is no part of a
// bundle names an endpoint that does not exist.
func bind(g *Generation, calls []Call) ([]boundCall, error) {
	bundled := calls[0].Name != ""
	found := &project.CallError{Subject: "the query bundle"}
	bound := make([]project.Bound, len(calls))
	for i, c := range calls {
		at := ""
		if bundled {
			at = fmt.Sprintf("/queries/%d", i)
		}
		e, ok := g.Endpoints[c.Endpoint]
		switch {
		case ok:
			if !bundled {
				found.Subject = fmt.Sprintf("the call of endpoint %q", e.Name)
			}
			bound[i] = e.Bind(c.Call, at, found)
		case bundled:
			found.Add(project.CallProblem{Pointer: at + "/endpoint", Unknown: true, Message: unknownEndpoint(g.Workspace, c.Endpoint, g.Names()).Error()})
		default:
			return nil, unknownEndpoint(g.Workspace, c.Endpoint, g.Names())
		}
	}
	if err := found.Found(); err != nil {
		return nil, err
	}
	work := make([]boundCall, len(calls))
	for i, b := range bound {
		q, err := g.Endpoints[calls[i].Endpoint].shaped(b)
		if err != nil {
			return nil, inCall(calls, i, err)
		}
		work[i] = boundCall{q, b.Args, b.Limit}
	}
	return work, nil
}

func unknownEndpoint(w serving.Workspace, name string, known []string) *fail.Error {
	return fail.New(fail.Missing, "unknown_endpoint", "workspace %q has no endpoint %q", w, name).WithFix("%s", project.Suggest(name, known))
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
	if calls[i].Name == "" {
		return err
	}
	return fmt.Errorf("query %q (endpoint %q): %w", calls[i].Name, calls[i].Endpoint, err)
}
