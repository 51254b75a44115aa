package cli

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
)

type planDoc struct {
	Workspace serving.Workspace `json:"workspace"`
	Release   project.Digest    `json:"release"`
	Active    *project.Digest   `json:"active"`
	Changes   []changeDoc       `json:"changes"`
}

type changeDoc struct {
	Part    string      `json:"part"`
	Name    string      `json:"name"`
	Status  plan.Status `json:"status"`
	Reasons []string    `json:"reasons"`
}

func planOf(p app.Planned) planDoc {
	doc := planDoc{p.Workspace, p.Release, unlessZero(p.Active), make([]changeDoc, len(p.Changes))}
	for i, c := range p.Changes {
		doc.Changes[i] = changeDoc{c.Part, c.Name, c.Status, append([]string{}, c.Reasons...)}
	}
	return doc
}

func (p *program) planCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "plan [DIR]",
		Short: "Say what a deploy and a refresh would change, and why",
		Long: `Checks the project in DIR (the current directory by default) as a deploy would, compares it with what its workspace serves, and changes
nothing. What is affected did not change itself, but reads something that did. A refresh also works in files that are new, and builds models
anew whose files changed: it says so, model by model.`,
		Example: `  leapview plan
  leapview plan examples/flights --all --json`,
		Args: atMost(1),
		RunE: p.run(func(ctx context.Context, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return p.plan(ctx, dir, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list what stays the same too")
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) plan(ctx context.Context, dir string, all bool) error {
	bundle, err := p.host.Pack(dir)
	if err != nil {
		return err
	}
	var doc planDoc
	err = p.answered(ctx, inquiry{method: http.MethodPost, path: "/v1/plans", header: map[string]string{"Content-Type": "application/x-tar"}, body: bundle}, &doc, func(ctx context.Context, n Node) error {
		planned, err := n.Deployer.Plan(ctx, bundle)
		doc = planOf(planned)
		return err
	})
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(doc)
	}
	return p.printPlan(doc, all)
}

func (p *program) printPlan(doc planDoc, all bool) error {
	counts := map[plan.Status]int64{}
	var rows [][]string
	for _, c := range doc.Changes {
		counts[c.Status]++
		if all || c.Status != plan.Same {
			rows = append(rows, []string{string(c.Status), c.Part, c.Name, strings.Join(c.Reasons, "; ")})
		}
	}
	if len(rows) > 0 {
		if err := writeTable(p.stdout, []string{"CHANGE", "PART", "NAME", "WHY"}, make([]bool, 4), rows); err != nil {
			return err
		}
	}
	over := "nothing is served yet"
	if doc.Active != nil {
		over = "release " + doc.Active.Short() + " is served"
	}
	p.hint("workspace %s: %s; %d added, %d changed, %d affected, %d removed, %d the same", doc.Workspace, over, counts[plan.Added], counts[plan.Changed],
		counts[plan.Affected], counts[plan.Removed], counts[plan.Same])
	return nil
}
