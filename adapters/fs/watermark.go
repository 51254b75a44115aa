package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strconv"
	"sync"

	"leapview/domain/fail"
	"leapview/domain/refresh"
)

// Watermark keeps the highest fence in a file of its own: the number in decimal and a line feed, which tells a whole file from
// a cut one.
type Watermark struct {
	path string
	sync func(*os.File) error

	// mu makes comparing and writing one step.
	mu sync.Mutex
}

// NewWatermark keeps the fence in the layout's file.
func NewWatermark(l Layout) *Watermark { return &Watermark{path: l.Fence, sync: (*os.File).Sync} }

// Raise stores the fence durably, unless it or a higher one is stored already.
func (w *Watermark) Raise(ctx context.Context, fence refresh.Fence) error {
	if err := alive(ctx); err != nil {
		return err
	}
	if fence < 1 {
		return fail.New(fail.Invalid, "bad_fence", "fence %d cannot be stored: fences start at 1", fence)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	stored, err := w.read()
	if err != nil {
		return err
	}
	if stored > fence {
		return nil
	}
	// The same fence is written again: a crash may have left its file there without it being durable.
	return writeDurably(w.path, text(fence), w.sync)
}

// Highest is the highest fence stored, or 0 when there is no file.
func (w *Watermark) Highest(ctx context.Context) (refresh.Fence, error) {
	if err := alive(ctx); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read()
}

// read needs mu.
func (w *Watermark) read() (refresh.Fence, error) {
	f, err := os.Open(w.path)
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, storeError(err, "open the fence file %s", w.path)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return 0, storeError(err, "read the fence file %s", w.path)
	}
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(b, []byte("\n"))), 10, 64)
	// Only what text writes is accepted, so that a damaged file is not read as a smaller number.
	if err != nil || n < 1 || !bytes.Equal(b, text(refresh.Fence(n))) {
		return 0, fail.New(fail.Corrupt, "fence_corrupt", "the fence file %s holds %.64q, which is not a fence", w.path, b).
			WithFix("restore it from the same backup as leapview.db")
	}
	return refresh.Fence(n), nil
}

func text(fence refresh.Fence) []byte { return []byte(strconv.FormatInt(int64(fence), 10) + "\n") }
