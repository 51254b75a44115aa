package bootstrap

import (
	"errors"
	"fmt"
	"sync"
)

// Closers releases what was opened, in the reverse order. Every one is tried, whatever the others say.
type Closers struct {
	mu   sync.Mutex
	list []closer
}

type closer struct {
	name  string
	close func() error
}

// Add remembers how to release something just opened.
func (c *Closers) Add(name string, close func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, closer{name, close})
}

// Close releases everything once.
func (c *Closers) Close() error {
	c.mu.Lock()
	list := c.list
	c.list = nil
	c.mu.Unlock()
	var all []error
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].close(); err != nil {
			all = append(all, fmt.Errorf("close %s: %w", list[i].name, err))
		}
	}
	return errors.Join(all...)
}
