package bootstrap

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.uber.org/fx"

	"leapview"
	"leapview/adapters/cli"
	"leapview/adapters/fs"
	"leapview/adapters/http"
	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// Host runs nodes for the command line.
type Host struct{ parts Parts }

// NewHost runs nodes made of the real parts.
func NewHost() *Host { return &Host{Real()} }

// stopTime bounds an orderly stop.
const stopTime = 20 * time.Second

// healthInterval is how often a serving node asks whether its engine was invalidated.
const healthInterval = 250 * time.Millisecond

func logger(w io.Writer, c Config, level slog.Level) *slog.Logger {
	if c.Verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if c.JSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// Open opens a node without listeners for one piece of work: it takes the lock, proves the stores, runs use, and closes. What goes
// wrong is in its error, so it logs nothing unless the log was asked for.
func (h *Host) Open(ctx context.Context, o cli.NodeOptions, stderr io.Writer, use func(context.Context, cli.Node) error) error {
	c := Config{Settings: o.Settings}
	n, closers, err := Compose(ctx, c, h.parts, logger(stderr, c, slog.LevelError+4))
	if err != nil {
		return err
	}
	err = func() error {
		if err := n.Recoverer.Prove(ctx); err != nil {
			return err
		}
		return use(ctx, cli.Node{Deployer: n.Deployer, Refresher: n.Refresher, Worker: n.Worker, Status: n.Status, Author: n.Author, Keyring: n.Keyring, Describer: n.Describer})
	}()
	return errors.Join(err, closers.Close())
}

// Scratch opens a node over a new directory of its own, which is removed afterwards. It shares nothing with any other node but the
// extension files.
func (h *Host) Scratch(ctx context.Context, o cli.NodeOptions, stderr io.Writer, use func(context.Context, cli.Node) error) (err error) {
	if o.DataDir, err = os.MkdirTemp("", "leapview-scratch-"); err != nil {
		return fail.New(fail.Unavailable, "scratch_folder", "no folder for scratch work can be made").Because(err).WithFix("set TMPDIR to a folder that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.DataDir)) }()
	return h.Open(ctx, o, stderr, use)
}

// Place is fs.Place for every file.
func (h *Host) Place(dir string, files []string) ([]app.DataFile, []cli.Copied, error) {
	var out []app.DataFile
	var copies []cli.Copied
	for _, f := range files {
		root, name, location, c, err := fs.Place(dir, f)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, app.DataFile{Root: root, Name: name, Location: location})
		copies = append(copies, cli.Copied(c))
	}
	return out, copies, nil
}

// WriteProject is fs.WriteProject.
func (h *Host) WriteProject(ctx context.Context, dir string, files []project.File, copies []cli.Copied) error {
	var cs []fs.Copy
	for _, c := range copies {
		cs = append(cs, fs.Copy(c))
	}
	return fs.WriteProject(ctx, dir, files, cs)
}

// Watch is fs.Watch.
func (h *Host) Watch(ctx context.Context, dir, skip string, changed func()) error {
	return fs.Watch(ctx, dir, skip, changed)
}

// SampleData gives the planes of the flights example as a file.
func (h *Host) SampleData(use func(path string) error) (err error) {
	dir, err := os.MkdirTemp("", "leapview-sample-")
	if err != nil {
		return fail.New(fail.Unavailable, "scratch_folder", "no folder for scratch work can be made").Because(err).WithFix("set TMPDIR to a folder that can be written")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "planes.csv")
	if err := os.WriteFile(path, leapview.SamplePlanes, 0o600); err != nil {
		return err
	}
	return use(path)
}

// Serve runs a node until ctx ends or it meets a fatal error. ready is called once with the HTTP address when every active workspace is
// served; a node that starts with one that it cannot serve says so in its log, and serves the others.
func (h *Host) Serve(ctx context.Context, o cli.NodeOptions, stderr io.Writer, ready func(addr string)) error {
	c := Config{Settings: o.Settings}
	level := slog.LevelInfo
	if o.Quiet {
		level = slog.LevelWarn
	}
	n, closers, err := Compose(ctx, c, h.parts, logger(stderr, c, level))
	if err != nil {
		return err
	}
	err = n.serve(ctx, ready)
	return errors.Join(err, closers.Close())
}

// serve owns three goroutines: the HTTP server, the worker, and recovery before it. It returns when all have ended.
func (n *Node) serve(ctx context.Context, ready func(addr string)) error {
	if err := n.listenable(); err != nil {
		return err
	}
	public, err := net.Listen("tcp", n.Config.Listen)
	if err != nil {
		return fail.New(fail.Unavailable, "cannot_listen", "cannot listen on %s", n.Config.Listen).Because(err).WithFix("choose another address with --listen")
	}
	local, err := n.listen()
	if err != nil {
		return errors.Join(err, public.Close())
	}
	server := http.New(n.Asker, n.Deployer, n.Refresher, n.Worker, n.Status, n.Keyring, n.Readiness, http.Options{Hosts: n.Config.Hosts, MaxBody: n.Config.Limits.BodyBytes, MaxRequests: n.Config.Limits.Requests, Version: cli.Version}, n.Log)

	n.Log.InfoContext(ctx, "listening", "address", public.Addr().String())
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	working, stopWorking := context.WithCancelCause(context.WithoutCancel(ctx))
	served, worked := make(chan error, 1), make(chan error, 1)
	lifecycle := fx.New(fx.NopLogger, fx.Invoke(func(l fx.Lifecycle) {
		l.Append(fx.Hook{
			OnStart: func(context.Context) error {
				go func() { served <- server.Serve(serving, public, local) }()
				return nil
			},
			OnStop: func(context.Context) error { stopServing(); return <-served },
		})
		l.Append(fx.Hook{
			OnStart: func(context.Context) error {
				go func() { worked <- n.work(working, func() { ready(reachable(public.Addr())) }) }()
				return nil
			},
			OnStop: func(context.Context) error {
				stopWorking(app.ErrStopping)
				if err := <-worked; err != nil && !errors.Is(context.Cause(working), app.ErrStopping) {
					return err
				}
				return nil
			},
		})
	}))
	if err := lifecycle.Start(ctx); err != nil {
		stopServing()
		stopWorking(app.ErrStopping)
		return err
	}

	var fatal error
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for fatal == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case err := <-served:
			// The server ended by itself; its owner below still waits for one result.
			served <- err
			fatal = fail.New(fail.Fatal, "http_ended", "the HTTP server ended").Because(err)
		case err := <-worked:
			worked <- err
			fatal = err
			if fatal == nil {
				fatal = fail.New(fail.Fatal, "worker_ended", "the worker ended")
			}
		case <-tick.C:
			fatal = n.Health.Fatal()
		}
	}
	n.Readiness.Set(fail.New(fail.Unavailable, "stopping", "the node is stopping"))
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	// Both are told at once, so that a slow one does not take the other's time.
	stopServing()
	stopWorking(errors.Join(app.ErrStopping, fatal))
	stopErr := lifecycle.Stop(stop)
	if errors.Is(stopErr, context.DeadlineExceeded) {
		stopErr = fail.New(fail.Unavailable, "stop_timeout", "not everything under way ended within %s; the process ends without it", stopTime).Because(stopErr)
	}
	if fatal != nil {
		return errors.Join(fatal, stopErr)
	}
	return stopErr
}

// listenable refuses to be reached from other machines while nobody needs a key.
func (n *Node) listenable() error {
	host, _, err := net.SplitHostPort(n.Config.Listen)
	if err != nil {
		return err
	}
	if at, err := netip.ParseAddr(host); host == "localhost" || err == nil && at.Unmap().IsLoopback() {
		return nil
	}
	if !n.Keyring.Required() {
		return fail.New(fail.Denied, "no_keys", "%s can be reached from other machines, and there is no key yet: whoever reached it could do everything", n.Config.Listen).
			WithFix("make a key first: leapview key create --role operator; or listen on 127.0.0.1")
	}
	n.Log.Warn("keys and answers travel unencrypted: put a proxy that speaks TLS before this address", "address", n.Config.Listen)
	return nil
}

// reachable is an address that this machine reaches the listener at: one that listens on every address is reached on loopback too.
func reachable(listener net.Addr) string {
	if at, err := netip.ParseAddrPort(listener.String()); err == nil && at.Addr().IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(at.Port())))
	}
	return listener.String()
}

// work proves the stores, publishes what is active, says that the node is ready, and then works runs until ctx ends. Stores that do
// not belong together keep the node alive and not ready, so that whoever looks is told why.
func (n *Node) work(ctx context.Context, ready func()) error {
	err := n.Recoverer.Prove(ctx)
	if err == nil {
		err = n.Recoverer.PublishAll(ctx)
	}
	if err != nil {
		if fail.KindOf(err) == fail.Fatal || ctx.Err() != nil {
			return err
		}
		n.Log.ErrorContext(ctx, "not ready", "code", fail.CodeOf(err), "error", err)
		n.Readiness.Set(err)
		<-ctx.Done()
		return nil
	}
	n.Readiness.Set(nil)
	if err := n.Readiness.Ready(); err != nil {
		n.Log.ErrorContext(ctx, "not ready", "code", fail.CodeOf(err), "error", err)
	} else {
		ready()
	}
	return n.Worker.Loop(ctx)
}

// Dial connects to the node that runs on the data directory.
func (h *Host) Dial(ctx context.Context, dataDir string) (net.Conn, error) {
	layout, err := fs.At(dataDir)
	if err != nil {
		return nil, err
	}
	return fs.Dial(ctx, layout)
}

// Pack reads a project's files and packs them into a project bundle.
func (h *Host) Pack(dir string) ([]byte, error) {
	files, err := fs.ReadProject(dir)
	if err != nil {
		return nil, err
	}
	return project.Pack(files)
}
