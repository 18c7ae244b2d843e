package wire

import (
	"errors"
	"fmt"
)

// Causes of a decoding error; test with errors.Is.
var (
	ErrShort       = errors.New("too short")
	ErrVersion     = errors.New("wrong version")
	ErrLength      = errors.New("length field does not fit the frame")
	ErrUnsupported = errors.New("not supported")
)

// Error tells at which layer and byte of a frame decoding stopped, and why.
type Error struct {
	Layer string // header by its standard name: "IPv4", "BTH"
	Off   int    // offset of the header from the destination MAC, or from the header's own start when parsed alone
	Field string // offending field, "" when bytes are missing
	Got   int    // its value, or the bytes present
	Want  string // what is allowed
	Cause error  // one of the Err… values
}

// Error formats one line: layer, offset, field, value, allowed.
func (e *Error) Error() string {
	field := e.Field
	if field == "" {
		field = "bytes"
	}
	return fmt.Sprintf("wire: %s at byte %d: %v: %s is %d, allowed: %s", e.Layer, e.Off, e.Cause, field, e.Got, e.Want)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// short reports a header that needs n bytes and has fewer.
func short(layer string, have, n int) error {
	return &Error{Layer: layer, Got: have, Want: fmt.Sprintf("at least %d", n), Cause: ErrShort}
}

// at moves the offset of err from the header's start to the frame's.
func at(err error, off int) error {
	var e *Error
	if errors.As(err, &e) {
		e.Off += off
	}
	return err
}
