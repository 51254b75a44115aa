package mem

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/refresh"
)

// Watermark keeps the highest fence on a Disk, in the file fence.
type Watermark struct {
	Disk *Disk
}

const fencePath = "fence"

// Raise stores the fence, unless it or a higher one is stored already.
func (w Watermark) Raise(ctx context.Context, fence refresh.Fence) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if fence < 1 {
		return fail.New(fail.Invalid, "bad_fence", "fence %d cannot be stored: fences start at 1", fence)
	}
	w.Disk.mu.Lock()
	defer w.Disk.mu.Unlock()
	stored, err := w.read()
	if err != nil || stored >= fence {
		return err
	}
	w.Disk.write(fencePath, fmt.Appendf(nil, "%d\n", fence), true)
	return nil
}

// Highest is the highest fence stored, or 0.
func (w Watermark) Highest(ctx context.Context) (refresh.Fence, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	w.Disk.mu.Lock()
	defer w.Disk.mu.Unlock()
	return w.read()
}

// read needs the disk's mu.
func (w Watermark) read() (refresh.Fence, error) {
	f, ok := w.Disk.files[fencePath]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(string(f.content), "\n"), 10, 64)
	if err != nil || n < 1 || string(f.content) != fmt.Sprintf("%d\n", n) {
		return 0, fail.New(fail.Corrupt, "fence_corrupt", "the fence file holds %.64q, which is not a fence", f.content)
	}
	return refresh.Fence(n), nil
}
