package cli

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

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
  leapview serve --listen 127.0.0.1:0 --memory 4GiB`,
		Args: arguments(),
		RunE: p.run(func(ctx context.Context, _ []string) error { return p.serve(ctx) }),
	}
	cmd.Flags().StringVar(&p.options.Listen, "listen", "127.0.0.1:8080", "loopback `address` and port to serve on; port 0 takes a free one")
	fillFromEnvironment(cmd.Flags(), "listen")
	p.nodeFlags(cmd)
	p.limitFlags(cmd, false)
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
			_ = p.print("curl %s\n", exampleURL(looking, "http://"+addr))
		})
	})
}

// exampleURL is an address of the node that answers as it is: an endpoint that needs no parameter or, without one, the list of
// workspaces.
func exampleURL(ctx context.Context, base string) string {
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
