package bootstrap

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	"leapview"
	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/examine"
	"leapview/adapters/duckdb/lake"
	"leapview/adapters/duckdb/query"
	"leapview/adapters/fs"
	"leapview/adapters/sqlite"
	"leapview/adapters/system"
	"leapview/adapters/yaml"
	"leapview/app"
	"leapview/domain/fail"
	"leapview/ports"
)

// Files is the side of the node that keeps plain files.
type Files struct {
	Sources   ports.Sources
	Bundles   ports.Bundles
	Watermark ports.Watermark
	// Listen opens the control socket of the data directory.
	Listen func() (net.Listener, error)
}

// Control is the side of the node that keeps the control plane.
type Control struct {
	Control  ports.Control
	Registry ports.Registry
	Keys     ports.Keys
	// Health is nil for a control plane that does not fail.
	Health app.Health
}

// Store is the side of the node that keeps and reads the lake.
type Store struct {
	Lake     ports.Lake
	Files    ports.DataFiles
	Compiler ports.Compiler
	Reader   ports.Reader
	Checker  ports.Checker
	Examiner ports.Examiner
	Health   app.Health
}

// Parts opens the adapters. Tests put twins in the place of some of them; the order of opening and everything above stays.
type Parts struct {
	// Layout finds the data directory's places, before anything is opened in it. The real one makes the directory and resolves its link.
	Layout func(dir string) (fs.Layout, error)
	// Files is opened first: the real one takes the data directory's lock.
	Files     func(ctx context.Context, c Config, boot app.Boot, closers *Closers) (Files, error)
	Control   func(ctx context.Context, c Config, closers *Closers) (Control, error)
	Store     func(ctx context.Context, c Config, boot app.Boot, identity ports.Identity, control Control, closers *Closers) (Store, error)
	Documents func() ports.Documents
	Clock     func() ports.Clock
	Identity  func() ports.Identity
}

// Real are the parts of a node as users run it.
func Real() Parts {
	return Parts{
		Layout:    fs.Prepare,
		Files:     openFiles,
		Control:   openControl,
		Store:     openStore,
		Documents: func() ports.Documents { return yaml.Documents{} },
		Clock:     func() ports.Clock { return system.Clock{} },
		Identity:  func() ports.Identity { return system.Identity{} },
	}
}

func openFiles(_ context.Context, c Config, boot app.Boot, closers *Closers) (Files, error) {
	lock, err := fs.Acquire(c.Layout, string(boot), time.Now())
	if err != nil {
		return Files{}, err
	}
	closers.Add("lock", lock.Release)
	if err := lock.Sweep(); err != nil {
		return Files{}, err
	}
	return Files{
		Sources:   fs.NewSources(c.Layout, fs.SourcesOptions{MaxFiles: c.Limits.SourceFiles, MaxBytes: c.Limits.SourceBytes}),
		Bundles:   fs.NewBundles(c.Layout),
		Watermark: fs.NewWatermark(c.Layout),
		Listen:    lock.Listen,
	}, nil
}

func openControl(ctx context.Context, c Config, closers *Closers) (Control, error) {
	s, err := sqlite.Open(ctx, sqlite.Options{Path: c.Layout.ControlDB})
	if err != nil {
		return Control{}, err
	}
	closers.Add("control plane", s.Close)
	return Control{s, s, s, s}, nil
}

func openStore(ctx context.Context, c Config, boot app.Boot, identity ports.Identity, control Control, closers *Closers) (Store, error) {
	layout := c.Layout
	record, err := control.Registry.Lake(ctx)
	if err != nil {
		return Store{}, err
	}
	if record.Lineage == "" {
		found, err := layout.HasCatalog()
		if err != nil {
			return Store{}, err
		}
		if found {
			return Store{}, fail.New(fail.Corrupt, "control_plane_missing", "%s exists, but the control plane %s belongs to no lake", layout.Catalog, layout.ControlDB).
				WithFix("leapview.db was lost or replaced: restore the whole data directory from one backup, or start with an empty one")
		}
		record.Lineage = identity.NewID()
		if err := control.Registry.RecordLake(ctx, record); err != nil {
			return Store{}, err
		}
	}
	e, err := engine.Open(ctx, engine.Options{
		Catalog: layout.Catalog, DataDir: layout.DataDir, StagedDir: layout.Staged, ExportsDir: layout.Exports,
		TempDir:       filepath.Join(layout.Temp(string(boot)), "engine"),
		ExtensionsDir: c.Extensions, ExtensionsLock: leapview.ExtensionsLock,
		MemoryBytes: c.Memory, Threads: c.Threads, TempBytes: c.TempSpace,
		// Besides the readings of requests: the build, the refresh's own readings, compiling, and looking things up.
		Connections: c.Limits.QuerySlots + 8,
		Create:      !record.Ready,
	})
	if err != nil {
		return Store{}, err
	}
	closers.Add("engine", e.Close)
	l := lake.New(e, lake.Options{DataDir: layout.DataDir})
	if !record.Ready {
		if err := l.Init(ctx, record.Lineage); err != nil {
			return Store{}, err
		}
		record.Ready = true
		if err := control.Registry.RecordLake(ctx, record); err != nil {
			return Store{}, err
		}
	}
	reader := query.NewReader(e)
	return Store{Lake: l, Files: fs.NewDataFiles(layout, (*os.File).Sync), Compiler: query.NewCompiler(e), Reader: reader, Checker: query.NewChecker(reader), Examiner: examine.New(e), Health: e}, nil
}
