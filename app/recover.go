package app

import (
	"context"
	"log/slog"

	"leapview/domain/fail"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// Recoverer proves at start that what the control plane points at is really there, and publishes it.
type Recoverer struct {
	control   ports.Control
	registry  ports.Registry
	watermark ports.Watermark
	lake      ports.Lake
	files     ports.DataFiles
	releases  *Releases
	refresher *Refresher
	gens      *Generations
	boot      Boot
	log       *slog.Logger
}

// NewRecoverer wires the ports that recovery needs.
func NewRecoverer(control ports.Control, registry ports.Registry, watermark ports.Watermark, lake ports.Lake, files ports.DataFiles,
	releases *Releases, refresher *Refresher, gens *Generations, boot Boot, log *slog.Logger) *Recoverer {
	return &Recoverer{control, registry, watermark, lake, files, releases, refresher, gens, boot, log}
}

// Prove checks the stores against each other and settles what a dead process left. An error means that
// nothing may be served or written: the stores do not belong together, or one of them went back in time. It can run again after a
// crash within it.
func (r *Recoverer) Prove(ctx context.Context) error {
	record, err := r.registry.Lake(ctx)
	if err != nil {
		return err
	}
	survey, err := r.lake.Survey(ctx)
	if err != nil {
		return err
	}
	if survey.Lineage != record.Lineage {
		return fail.New(fail.Corrupt, "lineage_mismatch", "the control plane belongs to lake %q, but the catalog is of lake %q", record.Lineage, survey.Lineage).
			WithFix("leapview.db and ducklake/catalog.duckdb must come from one backup: restore both together")
	}
	witnessed, err := r.watermark.Highest(ctx)
	if err != nil {
		return err
	}
	state, err := r.control.Load(ctx, refresh.Scope{})
	if err != nil {
		return err
	}
	if seen := max(survey.HighestFence, witnessed); seen > state.HighestFence {
		return fail.New(fail.Corrupt, "control_plane_went_back", "fence %d was issued, but the control plane knows none above %d: it is older than the lake", seen, state.HighestFence).
			WithFix("leapview.db was replaced or lost its newest transactions: restore the whole data directory from one backup")
	}
	if err := r.provePointers(ctx, survey); err != nil {
		return err
	}
	if n, err := r.registry.ReleaseLeases(ctx, string(r.boot)); err != nil {
		return err
	} else if n > 0 {
		r.log.InfoContext(ctx, "leases of ended processes released", "leases", n)
	}
	return r.settle(ctx)
}

// provePointers checks that the commit behind every active pointer is the one that its run made. A catalog that went back in time
// hands out the ids of its lost commits again, so nothing may be written to it either.
func (r *Recoverer) provePointers(ctx context.Context, survey ports.LakeSurvey) error {
	workspaces, err := r.control.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		s, err := r.control.Load(ctx, refresh.Scope{Workspace: w})
		if err != nil {
			return err
		}
		if !s.Pointer.Active() {
			continue
		}
		m := survey.Marks[s.Pointer.Snapshot]
		if m.Workspace != w || string(m.Run) != s.Pointer.Run || m.Release != s.Pointer.Release || m.Lineage != s.Lineage {
			return fail.New(fail.Corrupt, "lake_went_back", "workspace %q serves snapshot %d, which in this lake is not the commit of run %s: the catalog is older than the control plane, or another one", w, s.Pointer.Snapshot, s.Pointer.Run).
				WithFix("ducklake/catalog.duckdb was replaced or lost its newest commits: restore the whole data directory from one backup")
		}
	}
	return nil
}

// settle gives every run that a dead process held back to the queue, or ends it.
func (r *Recoverer) settle(ctx context.Context) error {
	workspaces, err := r.control.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		s, err := r.control.Load(ctx, refresh.Scope{Workspace: w})
		if err != nil {
			return err
		}
		for _, run := range s.Live {
			if run.Status != refresh.Running || run.Owner == string(r.boot) {
				continue
			}
			if err := r.refresher.giveBack(ctx, w, run.ID, refresh.State.Interrupted); err != nil {
				return err
			}
		}
	}
	return nil
}

// PublishAll proves every workspace's active pointer and publishes its generation. A workspace that cannot be proved is marked
// broken by name; the others are served.
func (r *Recoverer) PublishAll(ctx context.Context) error {
	workspaces, err := r.control.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		if err := r.publish(ctx, w); err != nil {
			if k := fail.KindOf(err); k == fail.Fatal || k == fail.Canceled {
				return err
			}
			r.log.ErrorContext(ctx, "workspace cannot be served", "workspace", w, "error", err)
			r.gens.MarkBroken(w, err)
		}
	}
	return nil
}

func (r *Recoverer) publish(ctx context.Context, w serving.Workspace) error {
	s, err := r.control.Load(ctx, refresh.Scope{Workspace: w})
	if err != nil {
		return err
	}
	p := s.Pointer
	if !p.Active() {
		return nil
	}
	files, err := r.control.Files(ctx, w)
	if err != nil {
		return err
	}
	if err := r.files.Prove(ctx, files); err != nil {
		return err
	}
	rel, err := r.releases.load(ctx, p.Release)
	if err != nil {
		return err
	}
	g, err := r.releases.prepare(ctx, w, s.Lineage, rel, p)
	if err != nil {
		return err
	}
	if err := r.releases.warm(ctx, g); err != nil {
		return err
	}
	r.gens.Publish(g)
	return nil
}
