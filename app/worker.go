package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/refresh"
	"leapview/domain/serving"
	"leapview/ports"
)

// keptLogs is how many runs' progress is remembered, the newest ones.
const keptLogs = 16

// keptSteps is how many steps of a run's progress are remembered, the newest ones.
const keptSteps = 2000

// Step is a progress report with the time it was made.
type Step struct {
	At time.Time
	plan.Progress
}

// Worker works queued runs one after another, oldest first, and releases generations that nobody reads any more. It remembers the
// newest runs' progress in memory only.
type Worker struct {
	control   ports.Control
	refresher *Refresher
	gens      *Generations
	clock     ports.Clock
	boot      Boot
	log       *slog.Logger

	wake chan struct{}

	mu sync.Mutex
	// steps and order are guarded by mu; order lists the runs in steps, oldest first.
	steps map[refresh.RunID][]Step
	order []refresh.RunID
}

// NewWorker wires the ports that working needs.
func NewWorker(control ports.Control, refresher *Refresher, gens *Generations, clock ports.Clock, boot Boot, log *slog.Logger) *Worker {
	return &Worker{control: control, refresher: refresher, gens: gens, clock: clock, boot: boot, log: log,
		wake: make(chan struct{}, 1), steps: map[refresh.RunID][]Step{}}
}

// Wake tells the worker that a run waits. It never blocks.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// The waits before what could not be done is tried again: the first, doubled each time, up to the longest.
const (
	firstRetry   = time.Second
	longestRetry = time.Minute
)

// Loop works until ctx ends, and then gives nil; the run at work ends too, and when ctx's cause is ErrStopping it is given back for the
// next start. A fatal error ends it at once: the process must not go on.
func (w *Worker) Loop(ctx context.Context) error {
	wait := firstRetry
	for {
		var again <-chan time.Time
		err := w.drain(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case fail.KindOf(err) == fail.Fatal:
			return err
		case err != nil:
			w.log.ErrorContext(ctx, "queued runs could not be worked and will be tried again", "error", err, "wait_ms", wait.Milliseconds())
			again = time.After(wait)
			wait = min(2*wait, longestRetry)
		default:
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again:
		case <-w.wake:
		case <-w.gens.Retirements():
		}
	}
}

// drain retires what can be retired and works every queued run of every workspace. A run whose end could not be written down ends it,
// and is settled by the next one.
func (w *Worker) drain(ctx context.Context) error {
	for {
		w.Retire(ctx)
		workspaces, err := w.control.Workspaces(ctx)
		if err != nil {
			return err
		}
		worked := false
		// What cannot be settled in one workspace keeps no other one waiting.
		var unsettled error
		for _, name := range workspaces {
			s, err := w.control.Load(ctx, refresh.Scope{Workspace: name})
			if err != nil {
				return err
			}
			for _, run := range s.Live {
				if run.Status == refresh.Running {
					// This is the only worker, and it works on nothing now.
					if err := w.refresher.giveBack(ctx, name, run.ID, refresh.State.Interrupted); err != nil {
						if ctx.Err() != nil || fail.KindOf(err) == fail.Fatal {
							return err
						}
						unsettled = errors.Join(unsettled, err)
						break
					}
					worked = true
					continue
				}
				worked = true
				// The run's failure is recorded with the run and logged there.
				_, err := w.WorkOne(ctx, name, run.ID, func(plan.Progress) {})
				var undecided *undecidedError
				if ctx.Err() != nil || errors.As(err, &undecided) || fail.KindOf(err) == fail.Fatal {
					return err
				}
				break
			}
		}
		if !worked {
			return unsettled
		}
	}
}

// WorkOne works one queued run now, remembering its progress and passing it on.
func (w *Worker) WorkOne(ctx context.Context, name serving.Workspace, id refresh.RunID, report func(plan.Progress)) (serving.Pointer, error) {
	return w.refresher.Work(ctx, name, id, func(p plan.Progress) {
		w.remember(id, p)
		report(p)
	})
}

func (w *Worker) remember(id refresh.RunID, p plan.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.steps[id]; !known {
		w.order = append(w.order, id)
		if len(w.order) > keptLogs {
			delete(w.steps, w.order[0])
			w.order = w.order[1:]
		}
	}
	steps := append(w.steps[id], Step{w.clock.Now(), p})
	if len(steps) > keptSteps {
		steps = steps[len(steps)-keptSteps:]
	}
	w.steps[id] = steps
}

// Steps is the remembered progress of a run; empty when it is not remembered.
func (w *Worker) Steps(id refresh.RunID) []Step {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Step(nil), w.steps[id]...)
}

// Retire ends the durable leases of generations that nobody reads any more. One that cannot be ended now is ended at the next
// start.
func (w *Worker) Retire(ctx context.Context) {
	for _, g := range w.gens.TakeRetired() {
		now := w.clock.Now()
		err := w.control.Update(ctx, refresh.Scope{Workspace: g.Workspace}, func(refresh.State) ([]refresh.Event, error) {
			return []refresh.Event{refresh.GenerationRetired{Generation: g.Pointer.Generation, Owner: string(w.boot), At: now}}, nil
		})
		if err != nil {
			w.log.WarnContext(ctx, "generation was not retired", "workspace", g.Workspace, "generation", g.Pointer.Generation, "error", err)
			continue
		}
		w.log.InfoContext(ctx, "generation retired", "workspace", g.Workspace, "generation", g.Pointer.Generation)
	}
}
