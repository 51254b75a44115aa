// Package fail owns the vocabulary of failure: the kinds that every layer agrees on, and one error type that says what
// happened, why, and what to do about it.
//
// Invariant: a Kind is chosen once, where the failure is understood (a domain rule, or the adapter that met the driver's
// error), and is only read afterwards. HTTP statuses and exit codes are derived from it in one table each, in their adapters;
// this package knows neither.
package fail

import (
	"errors"
	"fmt"
)

// Kind classifies a failure by what its reader can do about it.
type Kind uint8

const (
	// Internal is the zero value: a failure nobody classified, which is a defect of ours.
	Internal Kind = iota
	// Invalid: the caller's input is wrong and stays wrong when sent again.
	Invalid
	// Denied: the caller may not do this.
	Denied
	// Missing: the thing named does not exist.
	Missing
	// Conflict: the state has moved on, or a key was used for something else.
	Conflict
	// Fenced: a newer attempt owns what this one tried to change.
	Fenced
	// Busy: a bounded resource is taken; trying later may work.
	Busy
	// Limit: a bound was exceeded; the error names it, its setting and the value.
	Limit
	// UnknownOutcome: an effect may or may not have happened.
	UnknownOutcome
	// Corrupt: stored state cannot be what we wrote.
	Corrupt
	// Fatal: the process cannot go on, for example an invalidated engine.
	Fatal
	// Canceled: the caller went away, or its deadline passed.
	Canceled
	// Unavailable: not ready, draining, not running, or kept from its own files by the machine.
	Unavailable
)

// Kinds lists every kind, so that tables over them can be proved complete.
func Kinds() []Kind {
	return []Kind{Internal, Invalid, Denied, Missing, Conflict, Fenced, Busy, Limit, UnknownOutcome, Corrupt, Fatal, Canceled, Unavailable}
}

// String is the kind's stable name, as logs and problem documents show it.
func (k Kind) String() string {
	switch k {
	case Internal:
		return "internal"
	case Invalid:
		return "invalid"
	case Denied:
		return "denied"
	case Missing:
		return "missing"
	case Conflict:
		return "conflict"
	case Fenced:
		return "fenced"
	case Busy:
		return "busy"
	case Limit:
		return "limit"
	case UnknownOutcome:
		return "unknown-outcome"
	case Corrupt:
		return "corrupt"
	case Fatal:
		return "fatal"
	case Canceled:
		return "canceled"
	case Unavailable:
		return "unavailable"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Error is a classified failure.
type Error struct {
	Kind Kind
	// Code is stable, lower_snake_case, and names the case more exactly than Kind does.
	Code string
	// Message says what happened and why, for a person.
	Message string
	// Fix says what to do about it; empty when there is nothing to do.
	Fix string
	// Cause is the underlying error, if any. Its text is not repeated to remote callers.
	Cause error
}

// New makes a classified error; the message follows fmt.Sprintf.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithFix returns a copy of e that says what to do.
func (e *Error) WithFix(format string, args ...any) *Error {
	c := *e
	c.Fix = fmt.Sprintf(format, args...)
	return &c
}

// Because returns a copy of e with its cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// Error is the message, then the cause, then the fix.
func (e *Error) Error() string {
	s := e.Message
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// FailKind makes Error a Classified.
func (e *Error) FailKind() Kind { return e.Kind }

// FailCode makes Error a Classified.
func (e *Error) FailCode() string { return e.Code }

// Classified is what an error type implements to carry a kind and a code of its own.
type Classified interface {
	error
	FailKind() Kind
	FailCode() string
}

// KindOf is the kind of the outermost classified error in err's chain, or Internal.
func KindOf(err error) Kind {
	var c Classified
	if errors.As(err, &c) {
		return c.FailKind()
	}
	return Internal
}

// CodeOf is the code of the outermost classified error in err's chain, or "internal".
func CodeOf(err error) string {
	var c Classified
	if errors.As(err, &c) && c.FailCode() != "" {
		return c.FailCode()
	}
	return "internal"
}

// FixOf is the first fix that an error in err's chain offers, or "".
func FixOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Fix != "" {
			return e.Fix
		}
		err = e.Cause
	}
	return ""
}
