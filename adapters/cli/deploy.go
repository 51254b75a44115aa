package cli

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/access"
)

func (p *program) deployCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy [DIR]",
		Short: "Check a project and make it the one that refreshes build",
		Long: `Packs the project in DIR (the current directory by default), checks all of it, and makes it the release that the next refresh of
its workspace builds. What is served stays as it is until that refresh has succeeded. A project with mistakes changes nothing.`,
		Example: `  leapview deploy
  leapview deploy examples/flights --source-root /data/flights`,
		Args: atMost(1),
		RunE: p.run(func(ctx context.Context, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			root := p.options.SourceRoot
			if root == "" {
				root = dir
			}
			return p.deploy(ctx, dir, root)
		}),
	}
	p.settingFlags(cmd.Flags(), app.ReachNode, app.ReachDeploy)
	return cmd
}

func (p *program) deploy(ctx context.Context, dir, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	bundle, err := p.host.Pack(dir)
	if err != nil {
		return err
	}
	var done deployedDoc
	err = p.answered(ctx, inquiry{method: http.MethodPost, path: "/v1/deployments?source_root=" + url.QueryEscape(root), header: map[string]string{"Content-Type": "application/x-tar"}, body: bundle}, &done, func(ctx context.Context, n Node) error {
		d, err := n.Deployer.Deploy(ctx, bundle, root, access.Local.Caller(""))
		done = deployedDoc{d.Workspace, deploymentOf(d.Deployment), d.Models, d.Endpoints}
		return err
	})
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(done)
	}
	if err := p.print("deployed %s: deployment %d, release %s, %s, %s\n", done.Workspace, done.Deployment.Number,
		done.Deployment.Release.Short(), counted(int64(done.Models), "model"), counted(int64(done.Endpoints), "endpoint")); err != nil {
		return err
	}
	p.hint("next: leapview refresh %s", done.Workspace)
	return nil
}
