package app

import (
	"context"
	"sync/atomic"

	"leapview/domain/fail"
)

// Slots bound how many readings are open at once and how many callers wait for one. A caller takes a slot before it opens a
// reading, so the store underneath needs no queue of its own.
type Slots struct {
	free    chan struct{}
	waiting atomic.Int64
	queue   int64
}

// NewSlots allows open readings at once, and queue callers that wait.
func NewSlots(open, queue int) *Slots {
	return &Slots{free: make(chan struct{}, open), queue: int64(queue)}
}

// take waits for a slot until ctx ends. The caller gives it back with give.
func (s *Slots) take(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	default:
	}
	defer s.waiting.Add(-1)
	if n := s.waiting.Add(1); n > s.queue {
		return fail.New(fail.Busy, "queue_full", "%d queries run and %d wait already (limits query_slots = %d, query_queue = %d)", cap(s.free), s.queue, cap(s.free), s.queue).
			WithFix("try again in a moment; --query-slots and --query-queue of the node set how many run and wait")
	}
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fail.New(fail.Canceled, "canceled_waiting", "the query was given up while it waited for a slot").Because(ctx.Err())
	}
}

func (s *Slots) give() { <-s.free }
