// Package pgerr is the one error type that carries an SQLSTATE: what a statement, a value or a row did wrong, in PostgreSQL's
// words where PostgreSQL has them. Everything that a client of the PostgreSQL door may see is, or wraps, an *Error.
//
// An *Error is immutable once it has been returned: the With methods copy.
package pgerr

import (
	"errors"
	"fmt"
)

// Error is an SQL error.
type Error struct {
	// Code is the SQLSTATE, five characters.
	Code    string
	Message string
	Detail  string
	Hint    string
	// Position is the byte offset in the statement plus one, 0 when there is none.
	Position int
}

// New makes an error.
func New(code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Newf makes an error with a formatted message.
func Newf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error is the message with its SQLSTATE.
func (e *Error) Error() string {
	s := e.Message
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s + " (SQLSTATE " + e.Code + ")"
}

// Is makes errors.Is compare by SQLSTATE: errors.Is(err, &pgerr.Error{Code: pgerr.DivisionByZero}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Message == "" || t.Message == e.Message)
}

// WithDetail returns a copy with a detail.
func (e *Error) WithDetail(format string, args ...any) *Error {
	c := *e
	c.Detail = sprint(format, args)
	return &c
}

// WithHint returns a copy with a hint: the remedy.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = sprint(format, args)
	return &c
}

// At returns a copy with a position (byte offset plus one), unless the error has one already.
func (e *Error) At(position int) *Error {
	if e.Position != 0 || position == 0 {
		return e
	}
	c := *e
	c.Position = position
	return &c
}

func sprint(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// From returns the *Error in err's chain; any other error becomes an internal error (XX000) with its text. From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: InternalError, Message: err.Error()}
}

// Code is the SQLSTATE of err: "00000" for nil, XX000 for an error without one.
func Code(err error) string {
	if err == nil {
		return SuccessfulCompletion
	}
	return From(err).Code
}

// Unsupported is the error for a feature that Leat does not have (0A000).
func Unsupported(format string, args ...any) *Error {
	return &Error{Code: FeatureNotSupported, Message: sprint(format, args)}
}

// Internal is the error for a broken promise inside Leat (XX000).
func Internal(format string, args ...any) *Error {
	return &Error{Code: InternalError, Message: sprint(format, args)}
}
