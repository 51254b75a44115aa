package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"leapview/domain/fail"
)

const codeInternal = "engine_internal"

// SQLError is an engine's error that says something about a statement or about the values it met. Whether that is the author's
// mistake or ours is known only to whoever wrote the statement, so it carries no kind.
type SQLError struct {
	// Type is the engine's own class, for example "Binder" or "Conversion".
	Type string
	// Message is the engine's text, without its class and without the statement.
	Message string
	// Position is the byte offset in the statement that the engine points at, or -1.
	Position int
	cause    *duckdb.Error
}

// Error is the class and the text.
func (e *SQLError) Error() string { return e.Type + " Error: " + e.Message }

// Unwrap gives the driver's error.
func (e *SQLError) Unwrap() error { return e.cause }

// AsSQLError finds the engine's error in err's chain, if err is one that says something about a statement.
func AsSQLError(err error) (*SQLError, bool) {
	var s *SQLError
	ok := errors.As(err, &s)
	return s, ok
}

// Translate classifies a driver's error, once. Cancellation, bounds, a full disk, a held lock, and the engine's own defects get
// their kinds; what is about a statement becomes an SQLError; what is no engine's error stays as it is.
func Translate(err error) error {
	var done *fail.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	if _, ok := AsSQLError(err); ok {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fail.New(fail.Canceled, "deadline", "the statement was stopped at its deadline").Because(err)
	}
	if errors.Is(err, context.Canceled) {
		return fail.New(fail.Canceled, "canceled", "the statement was stopped because its caller went away").Because(err)
	}
	var d *duckdb.Error
	if !errors.As(err, &d) {
		return err
	}
	s := parse(d)
	switch {
	case s.Type == "FATAL" || strings.Contains(s.Message, "database has been invalidated"):
		return fail.New(fail.Fatal, "engine_fatal", "the engine was invalidated by a fatal error and answers nothing any more").Because(s).
			WithFix("restart the process; if it happens again, check the disk and the log")
	case s.Type == "INTERNAL":
		return fail.New(fail.Internal, codeInternal, "the engine met a defect of its own").Because(s)
	case s.Type == "INTERRUPT":
		return fail.New(fail.Canceled, "canceled", "the statement was interrupted").Because(s)
	case strings.Contains(s.Message, "No space left on device"):
		return fail.New(fail.Limit, "disk_full", "the disk is full").Because(s).WithFix("free space on the disk that holds the data directory")
	case s.Type == "Out of Memory" && strings.Contains(s.Message, "max_temp_directory_size"):
		return fail.New(fail.Limit, "spill_limit", "the statement needed more spill space than the engine may use (max_temp_directory_size)").Because(s).
			WithFix("raise the spill limit, or make the statement sort, join or group less at once")
	case s.Type == "Out of Memory":
		return fail.New(fail.Limit, "memory_limit", "the statement needed more memory than the engine may use (memory_limit)").Because(s).
			WithFix("raise the memory limit, or make the statement hold less at once")
	case strings.Contains(s.Message, "Could not set lock on file"), strings.Contains(s.Message, "Unique file handle conflict"):
		return fail.New(fail.Conflict, "catalog_locked", "the lake's catalog is held by another process or instance").Because(s).
			WithFix("stop the process that is named, or use another data directory")
	}
	return s
}

// parse reads the structured text that errors_as_json asks for. The first statements of a start, and some paths of the driver,
// give plain text instead.
func parse(d *duckdb.Error) *SQLError {
	s := &SQLError{Type: "Engine", Message: d.Msg, Position: -1, cause: d}
	if head, rest, ok := strings.Cut(d.Msg, " Error: "); ok && !strings.ContainsAny(head, "{\n") {
		s.Type, s.Message = head, rest
	}
	if i := strings.IndexByte(s.Message, '{'); i == 0 {
		var m struct {
			Type     string `json:"exception_type"`
			Message  string `json:"exception_message"`
			Position string `json:"position"`
		}
		if json.Unmarshal([]byte(s.Message), &m) == nil && m.Message != "" {
			s.Type, s.Message = m.Type, m.Message
			if n, err := strconv.Atoi(m.Position); err == nil {
				s.Position = n
			}
		}
	} else if text, _, ok := strings.Cut(s.Message, "\n\nLINE "); ok {
		s.Message = text
	}
	return s
}
