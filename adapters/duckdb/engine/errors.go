package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"

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
	// errno is what the operating system answered, or 0.
	errno syscall.Errno
	cause *duckdb.Error
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

// Translate classifies a driver's error, once. Cancellation, bounds, what the machine refuses, a held lock, and the engine's own
// defects get their kinds; what is about a statement becomes an SQLError; what is no engine's error stays as it is.
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
	case s.Type == "FATAL" || s.says("database has been invalidated"):
		return fail.New(fail.Fatal, "engine_fatal", "the engine was invalidated by a fatal error and answers nothing any more").Because(s).
			WithFix("restart the process; if it happens again, check the disk and the log")
	case s.Type == "INTERNAL":
		return fail.New(fail.Internal, codeInternal, "the engine met a defect of its own").Because(s)
	case s.Type == "INTERRUPT":
		return fail.New(fail.Canceled, "canceled", "the statement was interrupted").Because(s)
	case s.says("Could not set lock on file"), s.says("Unique file handle conflict"):
		return fail.New(fail.Conflict, "catalog_locked", "the lake's catalog is held by another process or instance").Because(s).
			WithFix("stop the process that is named, or use another data directory")
	case s.met(syscall.ENOSPC, syscall.EDQUOT):
		return fail.New(fail.Limit, "disk_full", "the disk is full").Because(s).WithFix("free space on the disk that holds the data directory")
	case s.met(syscall.EMFILE, syscall.ENFILE):
		return fail.New(fail.Limit, "open_files", "the engine may not open more files").Because(s).
			WithFix("raise the process's limit of open files (ulimit -n)")
	case s.met(syscall.EACCES, syscall.EPERM, syscall.EROFS):
		return fail.New(fail.Unavailable, "file_denied", "the engine may not use one of its files").Because(s).
			WithFix("give this process's user access to the data directory, on a disk that is mounted for writing")
	case s.errno != 0 && !s.met(syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP):
		// Those four say what stands at a path, and whether that is wrong depends on whose path it is.
		return fail.New(fail.Unavailable, "disk_error", "the operating system failed the engine").Because(s).WithFix("check the disk that holds the data directory")
	case s.Type == "Out of Memory" && strings.Contains(s.Message, "max_temp_directory_size"):
		return fail.New(fail.Limit, "spill_limit", "the statement needed more spill space than the engine may use (max_temp_directory_size)").Because(s).
			WithFix("raise --temp-space, or make the statement sort, join or group less at once")
	case s.Type == "Out of Memory":
		return fail.New(fail.Limit, "memory_limit", "the statement needed more memory than the engine may use (memory_limit)").Because(s).
			WithFix("raise --memory, or make the statement hold less at once")
	}
	return s
}

// translate is Translate, and knows besides which files are the lake's: no statement is to blame for what is wrong with them.
func (e *Engine) translate(err error) error {
	err = Translate(err)
	var done *fail.Error
	s, ok := AsSQLError(err)
	if !ok || errors.As(err, &done) {
		return err
	}
	if (s.Type == "IO" || s.Type == "Invalid Input") && strings.Contains(s.Message, folder(e.o.DataDir)) {
		return Damaged(err)
	}
	return err
}

// Damaged says that err comes from a data file which is not as it was written.
func Damaged(err error) *fail.Error {
	return fail.New(fail.Corrupt, "data_unreadable", "a data file of the lake is missing, cut or damaged").Because(err).
		WithFix("look for the file in the log, and restore the data directory from a copy")
}

// says tells whether the engine's message holds the text. The messages of most classes quote values and names that a person
// chose, and are not searched.
func (e *SQLError) says(text string) bool {
	switch e.Type {
	case "Engine", "FATAL", "IO", "Out of Memory", "TransactionContext":
		return strings.Contains(e.Message, text)
	}
	return false
}

// met tells whether the operating system answered with one of the errors. Where one error is told inside of another, as by a
// failed commit, only its text is left.
func (e *SQLError) met(errnos ...syscall.Errno) bool {
	return slices.ContainsFunc(errnos, func(errno syscall.Errno) bool {
		text := errno.Error()
		return e.errno == errno || e.errno == 0 && e.says(strings.ToUpper(text[:1])+text[1:])
	})
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
			Errno    string `json:"errno"`
		}
		if json.Unmarshal([]byte(s.Message), &m) == nil && m.Message != "" {
			s.Type, s.Message = m.Type, m.Message
			if n, err := strconv.Atoi(m.Position); err == nil {
				s.Position = n
			}
			if n, err := strconv.Atoi(m.Errno); err == nil {
				s.errno = syscall.Errno(n)
			}
		}
	} else if text, _, ok := strings.Cut(s.Message, "\n\nLINE "); ok {
		s.Message = text
	}
	return s
}
