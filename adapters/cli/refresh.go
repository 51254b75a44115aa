package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

// pollTime is how often a running node is asked how far a run has come.
const pollTime = 200 * time.Millisecond

// errStoppedWaiting tells that a signal ended the waiting for a run, and not the run.
var errStoppedWaiting = errors.New("stopped waiting")

func (p *program) refreshCommand() *cobra.Command {
	key, noWait := "", false
	cmd := &cobra.Command{
		Use:   "refresh WORKSPACE",
		Short: "Build a workspace's tables from its sources and serve them",
		Long: `Reads the sources of the workspace's deployed project, builds its models as one new snapshot, runs every check, and serves the
new snapshot. When anything fails, the old one stays. A running node does the work; without one, this command does.`,
		Example: `  leapview refresh flights
  leapview refresh flights --idempotency-key nightly-2026-03-01 --no-wait`,
		Args: arguments("a WORKSPACE"),
		RunE: p.run(func(ctx context.Context, args []string) error {
			w, err := serving.ParseWorkspace(args[0])
			if err != nil {
				return err
			}
			c, running, err := p.node(ctx)
			if err != nil {
				return err
			}
			if running {
				defer c.close()
				return p.refreshOnNode(ctx, c, w, key, noWait)
			}
			return p.host.Open(ctx, p.options, p.stderr, func(ctx context.Context, n Node) error {
				return p.refreshHere(ctx, n, w, key, noWait)
			})
		}),
	}
	cmd.Flags().StringVar(&key, "idempotency-key", "", "the same `key` gives the run that was requested with it before")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "print the run's id and do not wait for its end")
	p.settingFlags(cmd.Flags(), app.ReachNode, app.ReachRefresh)
	return cmd
}

// refreshOnNode lets the running node work, and shows its progress.
func (p *program) refreshOnNode(ctx context.Context, c *client, w serving.Workspace, key string, noWait bool) error {
	header := map[string]string{}
	if key != "" {
		header["Idempotency-Key"] = key
	}
	var requested runDoc
	if err := c.ask(ctx, http.MethodPost, workspacePath(w, "/refreshes"), header, nil, &requested); err != nil {
		return err
	}
	if noWait {
		return p.requested(requested)
	}
	show := p.progress()
	defer show.close()
	// The node remembers the newest steps only, so they are told apart by what they say and when.
	seen := map[string]bool{}
	path := workspacePath(w, "/runs/"+string(requested.ID))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return fail.New(fail.Canceled, "stopped_waiting", "stopped waiting; run %s of workspace %q goes on in the node", requested.ID, w).
				WithFix("leapview status %s shows how it stands", w).Because(errStoppedWaiting)
		case <-timer.C:
		}
		var run runStepsDoc
		err := c.ask(ctx, http.MethodGet, path, nil, nil, &run)
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			return err
		}
		for _, s := range run.Steps {
			if id := fmt.Sprint(s.At, s.Phase, s.Subject, s.Done); !seen[id] {
				seen[id] = true
				step := plan.Progress{Phase: s.Phase, Subject: s.Subject, Done: s.Done, Rows: -1, Action: s.Action, Reason: s.Reason, Warning: s.Warning}
				if s.Rows != nil {
					step.Rows = *s.Rows
				}
				show.step(step)
			}
		}
		if run.Status.Final() {
			return p.ended(show, run.checkedRunDoc)
		}
		timer.Reset(pollTime)
	}
}

// refreshHere works the run in this process.
func (p *program) refreshHere(ctx context.Context, n Node, w serving.Workspace, key string, noWait bool) error {
	run, err := n.Refresher.Request(ctx, w, key, access.Local.Caller(""))
	if err != nil {
		return err
	}
	if noWait {
		if err := p.requested(runOf(run)); err != nil {
			return err
		}
		p.hint("no node runs: the next leapview serve works the run")
		return nil
	}
	show := p.progress()
	defer show.close()
	// The run of an earlier request with the same key may have ended already.
	if !run.Status.Final() {
		if _, err := n.Worker.WorkOne(ctx, w, run.ID, show.step); err != nil {
			if checks, e := n.Refresher.Checks(context.WithoutCancel(ctx), run.ID); e == nil {
				p.warn(show, checksOf(checks))
			}
			return err
		}
		if run, err = n.Refresher.Run(ctx, w, run.ID); err != nil {
			return err
		}
	}
	checks, err := n.Refresher.Checks(ctx, run.ID)
	if err != nil {
		return err
	}
	return p.ended(show, checkedRunDoc{runOf(run), checksOf(checks)})
}

// requested prints a run that was not waited for.
func (p *program) requested(run runDoc) error {
	if p.json {
		return p.printJSON(run)
	}
	return p.print("%s\n", run.ID)
}

// ended prints a run that has ended, or gives its failure.
func (p *program) ended(show *progress, run checkedRunDoc) error {
	p.warn(show, run.Checks)
	if run.Status != refresh.Succeeded {
		f := refresh.Failure{Kind: fail.Internal.String(), Code: "no_reason", Message: "no reason was recorded"}
		if run.Failure != nil {
			f = *run.Failure
		}
		return fail.New(kindNamed(f.Kind), f.Code, "run %s of workspace %q %s: %s", run.ID, run.Workspace, run.Status, f.Message)
	}
	if run.Generation != nil && run.Snapshot != nil && !show.brief {
		show.line("activated generation %d, snapshot %d", *run.Generation, *run.Snapshot)
	}
	if p.json {
		return p.printJSON(run)
	}
	return nil
}

// warn tells of the checks that found something, with a few of the rows that they found.
func (p *program) warn(show *progress, checks []checkDoc) {
	for _, c := range checks {
		// What failed is said by the run's own error, at its line.
		switch {
		case c.Outcome == "warned":
			show.line("warning: %s:%d: check %s of model %q: %s", c.File, c.Line, printable(c.Check), c.Model, c.Detail)
		case c.Outcome == "failed" && len(c.Sample) > 0:
			show.line("rows that break check %s of model %q:", printable(c.Check), c.Model)
		default:
			continue
		}
		var sample struct {
			Columns []string            `json:"columns"`
			Rows    [][]json.RawMessage `json:"rows"`
			More    int                 `json:"more_columns"`
		}
		if json.Unmarshal(c.Sample, &sample) != nil {
			continue
		}
		for _, row := range sample.Rows[:min(len(sample.Rows), shownRows)] {
			cells := make([]string, len(row))
			for i, v := range row {
				cells[i] = sample.Columns[i] + "=" + printable(cut(string(v)))
			}
			if sample.More > 0 {
				cells = append(cells, fmt.Sprintf("… and %d more columns", sample.More))
			}
			show.line("    %s", strings.Join(cells, " "))
		}
	}
}

// shownRows is how many failing rows are printed; the run keeps a few more.
const shownRows = 2

// cut is text for one line of many cells.
func cut(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
