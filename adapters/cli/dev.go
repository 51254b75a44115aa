package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/serving"
)

func (p *program) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Serve a project, and do it again after every change of its files",
		Long: `Runs a node, and deploys and refreshes the project in DIR (the current directory by default): at once, and again whenever a file below
DIR is saved, data files included. A mistake is printed at its line, and the old answers stay until the new ones are proved. It stops on
SIGINT or SIGTERM. The data directory is the same that leapview serve uses.`,
		Example: `  leapview dev
  leapview dev shop --listen 127.0.0.1:9000`,
		Args: atMost(1),
		RunE: p.run(func(ctx context.Context, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return p.dev(ctx, dir)
		}),
	}
	p.settingFlags(cmd.Flags(), app.ReachNode, app.ReachServe, app.ReachRefresh)
	return cmd
}

func (p *program) dev(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	skip, err := filepath.Abs(p.options.DataDir)
	if err != nil {
		return err
	}
	// A folder that is no project is said before a node is started; one with mistakes is what dev is for.
	if _, err := p.host.Pack(dir); fail.KindOf(err) == fail.Missing {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.options.Quiet, p.brief = !p.options.Verbose, !p.options.Verbose
	ready := make(chan string, 1)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		select {
		case addr := <-ready:
			if err := p.redo(ctx, dir, skip, addr); err != nil && ctx.Err() == nil {
				stop(err)
			}
		case <-ctx.Done():
		}
	}()
	err = p.host.Serve(ctx, p.options, p.stderr, func(addr string) { ready <- addr })
	stop(nil)
	<-worked
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// redo carries the project through, now and after each change, until ctx ends.
func (p *program) redo(ctx context.Context, dir, skip, addr string) error {
	changes := make(chan struct{}, 1)
	changes <- struct{}{}
	watching := make(chan error, 1)
	go func() {
		watching <- p.host.Watch(ctx, dir, skip, func() {
			select {
			case changes <- struct{}{}:
			default:
			}
		})
	}()
	told := ""
	for {
		select {
		case err := <-watching:
			return err
		case <-changes:
		}
		began := time.Now()
		w, err := p.carry(ctx, dir)
		switch {
		case ctx.Err() != nil:
			<-watching
			return nil
		case err != nil:
			p.printError(err)
			p.hint("waiting for a change; what was served before still is")
		default:
			if told == "" {
				_ = p.print("READY http://%s\n", addr)
			}
			p.hint("answers are new, after %s", time.Since(began).Round(10*time.Millisecond))
			// The same addresses are not printed again.
			if now := p.addresses(ctx, w, "http://"+addr); now != told {
				told = now
				_ = p.print("%s", now)
			}
		}
	}
}

// carry deploys the project to the running node and refreshes it.
func (p *program) carry(ctx context.Context, dir string) (serving.Workspace, error) {
	bundle, err := p.host.Pack(dir)
	if err != nil {
		return "", err
	}
	c, running, err := p.node(ctx)
	if err != nil {
		return "", err
	}
	if !running {
		return "", fail.New(fail.Unavailable, "node_gone", "the node stopped answering").WithFix("start leapview dev again")
	}
	defer c.close()
	var done deployedDoc
	if err := c.ask(ctx, http.MethodPost, "/v1/deployments?source_root="+url.QueryEscape(dir), map[string]string{"Content-Type": "application/x-tar"}, bundle, &done); err != nil {
		return "", err
	}
	return done.Workspace, p.refreshOnNode(ctx, c, done.Workspace, "", false)
}

// addresses says where the endpoints are, and when a key is needed where it goes. The socket is asked, which needs none.
func (p *program) addresses(ctx context.Context, w serving.Workspace, base string) string {
	c, running, err := p.node(ctx)
	if err != nil || !running {
		return ""
	}
	defer c.close()
	var list endpointsDoc
	if c.ask(ctx, http.MethodGet, workspacePath(w, "/endpoints"), nil, nil, &list) != nil {
		return ""
	}
	key := keyArgument(ctx, base)
	var b strings.Builder
	for _, e := range list.Endpoints {
		var required []string
		for _, param := range e.Params {
			if param.Required {
				required = append(required, param.Name+"=…")
			}
		}
		address := base + workspacePath(w, "/endpoints/"+e.Name)
		if len(required) > 0 {
			address += "?" + strings.Join(required, "&")
		}
		fmt.Fprintf(&b, "curl %s'%s'\n", key, address)
	}
	return b.String()
}
