package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"leapview/domain/access"
	"leapview/domain/serving"
)

func (p *program) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [WORKSPACE]",
		Short: "Show what is served, what is deployed, and which runs are under way",
		Example: `  leapview status
  leapview status flights --json`,
		Args: atMost(1),
		RunE: p.run(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return p.status(ctx, "")
			}
			w, err := serving.ParseWorkspace(args[0])
			if err != nil {
				return err
			}
			return p.status(ctx, w)
		}),
	}
	p.nodeFlags(cmd)
	return cmd
}

// status shows one workspace, or all of them when none is named.
func (p *program) status(ctx context.Context, w serving.Workspace) error {
	all := workspacesDoc{Workspaces: make([]statusDoc, 0, 1)}
	c, running, err := p.node(ctx)
	switch {
	case err != nil:
	case running && w == "":
		defer c.close()
		err = c.ask(ctx, http.MethodGet, "/v1/workspaces", nil, nil, &all)
	case running:
		defer c.close()
		var one statusDoc
		err = c.ask(ctx, http.MethodGet, workspacePath(w, "/status"), nil, nil, &one)
		all.Workspaces = append(all.Workspaces, one)
	default:
		err = p.host.Open(ctx, p.options, p.stderr, func(ctx context.Context, n Node) error {
			if w != "" {
				one, err := n.Status.Workspace(ctx, w)
				all.Workspaces = append(all.Workspaces, statusOf(one))
				return err
			}
			list, err := n.Status.All(ctx, access.Local.Grant.Sees)
			for _, one := range list {
				all.Workspaces = append(all.Workspaces, statusOf(one))
			}
			return err
		})
	}
	switch {
	case err != nil:
		return err
	case p.json && w != "":
		return p.printJSON(all.Workspaces[0])
	case p.json:
		return p.printJSON(all)
	}
	if !running {
		p.hint("no node runs on data directory %s", p.options.DataDir)
	}
	return p.printStatus(all.Workspaces)
}

func (p *program) printStatus(list []statusDoc) error {
	if len(list) == 0 {
		p.hint("there are no workspaces yet: leapview deploy DIR makes one")
		return nil
	}
	rows := make([][]string, len(list))
	for i, s := range list {
		row := []string{string(s.Workspace), "-", "-", "-", "-", "-", strconv.Itoa(len(s.LiveRuns))}
		if a := s.Active; a != nil {
			row[1], row[2], row[3] = fmt.Sprint(a.Generation), fmt.Sprint(a.Snapshot), a.Release.Short()
			row[4] = a.BuiltAt.Format("2006-01-02 15:04:05Z")
		}
		if d := s.Deployed; d != nil {
			row[5] = fmt.Sprintf("#%d %s", d.Number, d.Release.Short())
		}
		rows[i] = row
	}
	header := []string{"WORKSPACE", "GENERATION", "SNAPSHOT", "RELEASE", "BUILT", "DEPLOYED", "RUNS"}
	if err := writeTable(p.stdout, header, []bool{false, true, true, false, false, false, true}, rows); err != nil {
		return err
	}
	for _, s := range list {
		for _, r := range s.LiveRuns {
			if err := p.print("%s: run %s is %s, attempt %d\n", s.Workspace, r.ID, r.Status, r.Attempts); err != nil {
				return err
			}
		}
		if s.Problem != nil {
			if err := p.print("%s: NOT SERVED: %s\n", s.Workspace, *s.Problem); err != nil {
				return err
			}
		}
	}
	return nil
}
