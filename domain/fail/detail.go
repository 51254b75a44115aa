package fail

import (
	"errors"
	"strings"
)

// Summarized is what an error implements whose parts are shown apart from it, such as a list of problems.
type Summarized interface {
	error
	// FailSummary says in one line what the parts are.
	FailSummary() string
}

// DetailOf is what err says without its fixes, which FixOf gives. Without causes it leaves out what classified errors only pass
// on: that text is not for remote callers.
func DetailOf(err error, causes bool) string {
	switch e := err.(type) {
	case *Error:
		if causes && e.Cause != nil {
			return e.Message + ": " + DetailOf(e.Cause, causes)
		}
		return e.Message
	case Summarized:
		return e.FailSummary()
	case interface{ Unwrap() []error }:
		var parts []string
		for _, x := range e.Unwrap() {
			// An unclassified error beside a classified one is a cause in all but place.
			if causes || KindOf(x) != Internal {
				parts = append(parts, DetailOf(x, causes))
			}
		}
		return strings.Join(parts, "; ")
	}
	inner := errors.Unwrap(err)
	if inner == nil {
		return err.Error()
	}
	return strings.Replace(err.Error(), inner.Error(), DetailOf(inner, causes), 1)
}
