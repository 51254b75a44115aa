package ports

import (
	"context"

	"leapview/domain/access"
)

// Keys is the durable record of who may call.
type Keys interface {
	// Keys lists every key that is kept, those that were revoked or have expired too, oldest first.
	Keys(ctx context.Context) ([]access.Key, error)
	// UpdateKeys loads the keys, lets decide choose events over them, and writes all of them, with one audit row each that names by,
	// in one transaction. decide is pure and may run twice. An error from decide is returned as it is and nothing is written; no
	// events is no write. After a crash midway either all of the events are there or none. Errors: as Control.Update.
	UpdateKeys(ctx context.Context, by access.Caller, decide func(access.State) ([]access.Event, error)) error
}
