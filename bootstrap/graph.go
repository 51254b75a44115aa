package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"leapview/app"
	"leapview/ports"
)

// Node is a composed node: its use cases over opened adapters, without listeners.
type Node struct {
	Config     Config
	Asker      *app.Asker
	Deployer   *app.Deployer
	Refresher  *app.Refresher
	Worker     *app.Worker
	Status     *app.Status
	Keyring    *app.Keyring
	Describer  *app.Describer
	Readiness  *app.Readiness
	Recoverer  *app.Recoverer
	Author     *app.Author
	Health     app.Health
	Log        *slog.Logger
	Generation *app.Generations
	listen     func() (net.Listener, error)
}

// graph is every constructor of the node. ctx bounds the opening of the adapters only.
func graph(ctx context.Context, c Config, parts Parts, closers *Closers, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.NopLogger,
		fx.Supply(c, log),
		fx.Provide(
			parts.Documents, parts.Clock, parts.Identity,
			func(id ports.Identity) app.Boot { return app.Boot(id.NewID()) },
			func(c Config, boot app.Boot) (Files, error) { return parts.Files(ctx, c, boot, closers) },
			// The control plane is opened under the lock that opening the files took.
			func(c Config, _ Files) (Control, error) { return parts.Control(ctx, c, closers) },
			func(c Config, boot app.Boot, id ports.Identity, control Control) (Store, error) {
				return parts.Store(ctx, c, boot, id, control, closers)
			},
			func(f Files) (ports.Sources, ports.Bundles, ports.Watermark) {
				return f.Sources, f.Bundles, f.Watermark
			},
			func(c Control) (ports.Control, ports.Registry, ports.Keys) { return c.Control, c.Registry, c.Keys },
			func(keys ports.Keys, clock ports.Clock, id ports.Identity, log *slog.Logger) (*app.Keyring, error) {
				return app.OpenKeyring(ctx, keys, clock, id, log)
			},
			func(s Store) (ports.Lake, ports.DataFiles, ports.Compiler, ports.Reader, ports.Checker, ports.Examiner) {
				return s.Lake, s.Files, s.Compiler, s.Reader, s.Checker, s.Examiner
			},
			func(s Store, c Control) app.Health { return healths{s.Health, c.Health} },
			app.NewReleases, app.NewGenerations, app.NewDeployer, app.NewRefresher, app.NewRecoverer, app.NewWorker, app.NewStatus, app.NewDescriber,
			app.NewReadiness, app.NewAsker, app.NewAuthor,
			func(c Config) *app.Slots { return app.NewSlots(c.Limits.QuerySlots, c.Limits.QueryQueue) },
			func(c Config) app.AskLimits { return c.Limits.Ask },
			func(c Config, a *app.Asker, d *app.Deployer, r *app.Refresher, w *app.Worker, s *app.Status, keyring *app.Keyring, describer *app.Describer, ready *app.Readiness, rec *app.Recoverer,
				h app.Health, log *slog.Logger, g *app.Generations, author *app.Author, f Files) *Node {
				return &Node{c, a, d, r, w, s, keyring, describer, ready, rec, author, h, log, g, f.Listen}
			},
		),
	)
}

// Compose opens a node. The caller closes it; when Compose fails, everything that it opened is released already.
func Compose(ctx context.Context, c Config, parts Parts, log *slog.Logger) (*Node, *Closers, error) {
	c, err := c.complete()
	if err != nil {
		return nil, nil, err
	}
	if c.Layout, err = parts.Layout(c.DataDir); err != nil {
		return nil, nil, err
	}
	closers := &Closers{}
	var n *Node
	if err := fx.New(graph(ctx, c, parts, closers, log), fx.Populate(&n)).Err(); err != nil {
		// Callers want the adapter's error, not the container's story of how it got there.
		return nil, nil, errors.Join(dig.RootCause(err), closers.Close())
	}
	return n, closers, nil
}

// healths are several parts whose fatal errors are the node's.
type healths []app.Health

// Fatal is the first one's, or nil.
func (hs healths) Fatal() error {
	for _, h := range hs {
		if h == nil {
			continue
		}
		if err := h.Fatal(); err != nil {
			return err
		}
	}
	return nil
}
