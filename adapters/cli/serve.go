package cli

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/serving"
)

// exampleTime bounds the search for an example at start.
const exampleTime = 5 * time.Second

func (p *program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node: serve the workspaces and work refreshes",
		Long: `Proves what the data directory holds, serves every workspace's active snapshot over HTTP, and works refreshes one after another.
It prints READY and its address once it answers, and stops on SIGINT or SIGTERM.`,
		Example: `  leapview serve
  leapview serve --listen 127.0.0.1:0 --memory 4GiB
  leapview serve --listen 0.0.0.0:8080 --host data.example.org`,
		Args: arguments(),
		RunE: p.run(func(ctx context.Context, _ []string) error { return p.serve(ctx) }),
	}
	p.settingFlags(cmd.Flags(), app.ReachNode, app.ReachServe, app.ReachRefresh)
	return cmd
}

func (p *program) serve(ctx context.Context) error {
	// The example is looked for beside the node, which may not answer before ready has returned.
	var example sync.WaitGroup
	looking, stop := context.WithCancel(ctx)
	defer example.Wait()
	defer stop()
	return p.host.Serve(ctx, p.options, p.stderr, func(addr string) {
		// A node that cannot say that it is ready still is.
		_ = p.print("READY http://%s\n", addr)
		example.Go(func() {
			looking, stop := context.WithTimeout(looking, exampleTime)
			defer stop()
			_ = p.print("curl %s\n", exampleArguments(looking, "http://"+addr))
		})
	})
}

// exampleArguments are what curl takes to get an answer of the node: the address of an endpoint that needs no parameter or, without one, of
// the list of workspaces. When a key is needed, its place is shown.
func exampleArguments(ctx context.Context, base string) string {
	if key := keyArgument(ctx, base); key != "" {
		return key + base + "/v1/workspaces"
	}
	c := newClient(base, nil)
	defer c.close()
	var all workspacesDoc
	if c.ask(ctx, http.MethodGet, "/v1/workspaces", nil, nil, &all) == nil {
		for _, w := range all.Workspaces {
			if path := examplePath(ctx, c, w.Workspace); path != "" {
				return base + path
			}
		}
	}
	return base + "/v1/workspaces"
}

// keyArgument shows where a key goes when the node answers only who shows one; it is empty when none is needed.
func keyArgument(ctx context.Context, base string) string {
	c := newClient(base, nil)
	defer c.close()
	if fail.CodeOf(c.ask(ctx, http.MethodGet, "/v1/workspaces", nil, nil, &workspacesDoc{})) != "key_required" {
		return ""
	}
	return "-H 'Authorization: Bearer KEY' "
}

func examplePath(ctx context.Context, c *client, w serving.Workspace) string {
	var list endpointsDoc
	// A workspace without an active snapshot has no endpoints yet.
	if c.ask(ctx, http.MethodGet, workspacePath(w, "/endpoints"), nil, nil, &list) != nil {
		return ""
	}
search:
	for _, e := range list.Endpoints {
		for _, param := range e.Params {
			if param.Required {
				continue search
			}
		}
		return workspacePath(w, "/endpoints/"+e.Name)
	}
	return ""
}
