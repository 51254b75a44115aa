package app

import (
	"context"
	"log/slog"
	"slices"

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
	gens      *Generations
	clock     ports.Clock
	boot      Boot
	log       *slog.Logger
}

// NewRecoverer wires the ports that recovery needs.
func NewRecoverer(control ports.Control, registry ports.Registry, watermark ports.Watermark, lake ports.Lake, files ports.DataFiles,
	releases *Releases, gens *Generations, clock ports.Clock, boot Boot, log *slog.Logger) *Recoverer {
	return &Recoverer{control, registry, watermark, lake, files, releases, gens, clock, boot, log}
}

// Prove checks the stores against each other, settles what a dead process left, and gives the lake's survey. An error means that
// nothing may be served or written: the stores do not belong together, or one of them went back in time. It can run again after a
// crash within it.
func (r *Recoverer) Prove(ctx context.Context) (ports.LakeSurvey, error) {
	record, err := r.registry.Lake(ctx)
	if err != nil {
		return ports.LakeSurvey{}, err
	}
	survey, err := r.lake.Survey(ctx)
	if err != nil {
		return ports.LakeSurvey{}, err
	}
	if survey.Lineage != record.Lineage {
		return survey, fail.New(fail.Corrupt, "lineage_mismatch", "the control plane belongs to lake %q, but the catalog is of lake %q", record.Lineage, survey.Lineage).
			WithFix("leapview.db and ducklake/catalog.duckdb must come from one backup: restore both together")
	}
	witnessed, err := r.watermark.Highest(ctx)
	if err != nil {
		return survey, err
	}
	state, err := r.control.Load(ctx, refresh.Scope{})
	if err != nil {
		return survey, err
	}
	if seen := max(survey.HighestFence, witnessed); seen > state.HighestFence {
		return survey, fail.New(fail.Corrupt, "control_plane_went_back", "fence %d was issued, but the control plane knows none above %d: it is older than the lake", seen, state.HighestFence).
			WithFix("leapview.db was replaced or lost its newest transactions: restore the whole data directory from one backup")
	}
	if n, err := r.registry.ReleaseLeases(ctx, string(r.boot)); err != nil {
		return survey, err
	} else if n > 0 {
		r.log.InfoContext(ctx, "leases of ended processes released", "leases", n)
	}
	return survey, r.settle(ctx)
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
			scope := refresh.Scope{Workspace: w, Run: run.ID}
			// Whether an attempt that only began has committed is written in the lake alone, under its mark.
			full, err := r.control.Load(ctx, scope)
			if err != nil {
				return err
			}
			var at serving.Snapshot
			if b, ok := full.Candidate.(refresh.Begun); ok {
				if at, _, _, err = r.lake.Find(ctx, b.Mark()); err != nil {
					return err
				}
			}
			now := r.clock.Now()
			if err := r.control.Update(ctx, scope, func(s refresh.State) ([]refresh.Event, error) {
				return s.Interrupted(string(r.boot), at, now)
			}); err != nil {
				return err
			}
			r.log.InfoContext(ctx, "interrupted run settled", "workspace", w, "run", run.ID, "orphan_snapshot", at)
		}
	}
	return nil
}

// PublishAll proves every workspace's active pointer and publishes its generation. A workspace that cannot be proved is marked
// broken by name; the others are served.
func (r *Recoverer) PublishAll(ctx context.Context, survey ports.LakeSurvey) error {
	workspaces, err := r.control.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		if err := r.publish(ctx, w, survey); err != nil {
			if k := fail.KindOf(err); k == fail.Fatal || k == fail.Canceled {
				return err
			}
			r.log.ErrorContext(ctx, "workspace cannot be served", "workspace", w, "error", err)
			r.gens.MarkBroken(w, err)
		}
	}
	return nil
}

func (r *Recoverer) publish(ctx context.Context, w serving.Workspace, survey ports.LakeSurvey) error {
	s, err := r.control.Load(ctx, refresh.Scope{Workspace: w})
	if err != nil {
		return err
	}
	p := s.Pointer
	if !p.Active() {
		return nil
	}
	if _, found := slices.BinarySearch(survey.Snapshots, p.Snapshot); !found {
		return fail.New(fail.Corrupt, "snapshot_missing", "workspace %q serves snapshot %d, which the lake does not have", w, p.Snapshot).
			WithFix("restore the data directory from a backup, or refresh the workspace")
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
