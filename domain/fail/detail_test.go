package fail

import (
	"errors"
	"fmt"
	"testing"
)

// DetailOf keeps the words around a classified error, leaves its fix out, and shows causes only when asked to.
func TestDetailOf(t *testing.T) {
	cause := errors.New("disk /secret is gone")
	e := New(Missing, "gone", "the file is gone").WithFix("put it back").Because(cause)
	for name, c := range map[string]struct {
		err           error
		remote, local string
	}{
		"classified": {e, "the file is gone", "the file is gone: disk /secret is gone"},
		"wrapped":    {fmt.Errorf("query %q: %w", "a", e), `query "a": the file is gone`, `query "a": the file is gone: disk /secret is gone`},
		"joined":     {errors.Join(e, cause), "the file is gone", "the file is gone: disk /secret is gone; disk /secret is gone"},
		"plain":      {errors.New("what"), "what", "what"},
	} {
		if got := DetailOf(c.err, false); got != c.remote {
			t.Errorf("%s: remote detail %q, want %q", name, got, c.remote)
		}
		if got := DetailOf(c.err, true); got != c.local {
			t.Errorf("%s: local detail %q, want %q", name, got, c.local)
		}
	}
}
