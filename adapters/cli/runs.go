package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/domain/serving"
)

type runsDoc struct {
	Runs []runDoc `json:"runs"`
}

func (p *program) runsCommand() *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "runs WORKSPACE [RUN]",
		Short: "List a workspace's runs, or show one with what its checks found",
		Long: `Lists the newest runs of a workspace, the newest first. With a RUN it shows that one: when it ran, what it activated or why it did not,
and every check that warned or failed, with a few of the rows that broke it.`,
		Example: `  leapview runs flights
  leapview runs flights 4f1c --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs a WORKSPACE", cmd.CommandPath())
			}
			return atMost(2)(cmd, args)
		},
		RunE: p.run(func(ctx context.Context, args []string) error {
			w, err := serving.ParseWorkspace(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return p.showRun(ctx, w, args[1])
			}
			return p.listRuns(ctx, w, limit, func(runDoc) bool { return true })
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, fmt.Sprintf("most runs to list, up to %d", app.MostRuns))
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) historyCommand() *cobra.Command {
	limit := 100
	cmd := &cobra.Command{
		Use:   "history WORKSPACE",
		Short: "List what was activated in a workspace, the newest first",
		Long: `Lists the generations that a workspace served, the newest first: each with its snapshot, the run that activated it, and who asked for
that. Runs that activated nothing are listed by leapview runs.`,
		Example: `  leapview history flights`,
		Args:    arguments("a WORKSPACE"),
		RunE: p.run(func(ctx context.Context, args []string) error {
			w, err := serving.ParseWorkspace(args[0])
			if err != nil {
				return err
			}
			return p.listRuns(ctx, w, limit, func(r runDoc) bool { return r.Generation != nil })
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, fmt.Sprintf("how many of the newest runs to look at, up to %d", app.MostRuns))
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) listRuns(ctx context.Context, w serving.Workspace, limit int, keep func(runDoc) bool) error {
	var all runsDoc
	err := p.answered(ctx, inquiry{method: http.MethodGet, path: workspacePath(w, "/runs?limit="+strconv.Itoa(limit))}, &all, func(ctx context.Context, n Node) error {
		runs, err := n.Status.Runs(ctx, w, limit)
		for _, r := range runs {
			all.Runs = append(all.Runs, runOf(r))
		}
		return err
	})
	if err != nil {
		return err
	}
	kept := runsDoc{Runs: []runDoc{}}
	for _, r := range all.Runs {
		if keep(r) {
			kept.Runs = append(kept.Runs, r)
		}
	}
	if p.json {
		return p.printJSON(kept)
	}
	if len(kept.Runs) == 0 {
		p.hint("there are none yet: leapview refresh %s makes one", w)
		return nil
	}
	rows := make([][]string, len(kept.Runs))
	for i, r := range kept.Runs {
		rows[i] = []string{string(r.ID), string(r.Status), "-", "-", when(&r.RequestedAt), took(r), r.RequestedBy, ""}
		if r.Generation != nil && r.Snapshot != nil {
			rows[i][2], rows[i][3] = fmt.Sprint(*r.Generation), fmt.Sprint(*r.Snapshot)
		}
		if r.Failure != nil {
			rows[i][7] = r.Failure.Code
		}
	}
	return writeTable(p.stdout, []string{"RUN", "STATUS", "GENERATION", "SNAPSHOT", "REQUESTED", "TOOK", "BY", "FAILURE"},
		[]bool{false, false, true, true, false, true, false, false}, rows)
}

// when is a time for people, in UTC.
func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// took is how long a run was worked on.
func took(r runDoc) string {
	if r.StartedAt == nil || r.EndedAt == nil {
		return "-"
	}
	return r.EndedAt.Sub(*r.StartedAt).Round(10 * time.Millisecond).String()
}

// validRun refuses an id that no run can have, before it becomes part of a path.
func validRun(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == ""
}

func (p *program) showRun(ctx context.Context, w serving.Workspace, id string) error {
	if !validRun(id) {
		return fail.New(fail.Missing, "unknown_run", "workspace %q has no run %q", w, id).WithFix("leapview runs %s lists them", w)
	}
	var run runStepsDoc
	err := p.answered(ctx, inquiry{method: http.MethodGet, path: workspacePath(w, "/runs/"+id)}, &run, func(ctx context.Context, n Node) error {
		r, err := n.Refresher.Run(ctx, w, refresh.RunID(id))
		if err != nil {
			return err
		}
		checks, err := n.Refresher.Checks(ctx, r.ID)
		run.checkedRunDoc = checkedRunDoc{runOf(r), checksOf(checks)}
		return err
	})
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(run.checkedRunDoc)
	}
	if err := p.print("run        %s\nstatus     %s, attempt %d\nrequested  %s by %s\nstarted    %s\nended      %s (%s)\n", run.ID, run.Status, run.Attempts, when(&run.RequestedAt),
		run.RequestedBy, when(run.StartedAt), when(run.EndedAt), took(run.runDoc)); err != nil {
		return err
	}
	if run.Generation != nil && run.Snapshot != nil {
		if err := p.print("activated  generation %d, snapshot %d\n", *run.Generation, *run.Snapshot); err != nil {
			return err
		}
	}
	if f := run.Failure; f != nil {
		if err := p.print("failure    %s: %s\n", f.Code, f.Message); err != nil {
			return err
		}
	}
	counts := map[string]int{}
	for _, c := range run.Checks {
		counts[c.Outcome]++
	}
	if err := p.print("checks     %d passed, %d warned, %d failed\n", counts["passed"], counts["warned"], counts["failed"]); err != nil {
		return err
	}
	p.warn(&progress{w: p.stdout}, run.Checks)
	return nil
}
