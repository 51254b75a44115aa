package access

import "time"

const (
	// failuresAtOnce is how many failures of one address are taken before it is slowed down to one every failureTime.
	failuresAtOnce = 10
	failureTime    = 6 * time.Second
	// maxAddresses bounds the addresses that are remembered; all further ones share one allowance.
	maxAddresses = 4096
)

// Throttle counts failures by address, and forgets each in time. Its zero value has seen none. It is used by one goroutine at a time.
type Throttle struct {
	// free is when the address's failures are all forgotten; each one moves it on by failureTime.
	free map[string]time.Time
}

// Failed counts one failure of the address. When it had too many, wait is how long it must be quiet before another one is taken.
func (t *Throttle) Failed(address string, now time.Time) (wait time.Duration) {
	if t.free == nil {
		t.free = map[string]time.Time{}
	}
	if _, known := t.free[address]; !known && len(t.free) >= maxAddresses {
		for a, free := range t.free {
			if !free.After(now) {
				delete(t.free, a)
			}
		}
		if len(t.free) >= maxAddresses {
			address = ""
		}
	}
	free := t.free[address]
	const most = failuresAtOnce * failureTime
	switch {
	case free.Before(now):
		free = now
	case free.Sub(now) > most:
		// The clock was set back.
		free = now.Add(most)
	}
	if free = free.Add(failureTime); free.Sub(now) > most {
		return free.Sub(now) - most
	}
	t.free[address] = free
	return 0
}
