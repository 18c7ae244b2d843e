package report

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteJSON writes the result object, indented.
func WriteJSON(w io.Writer, r *Result) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return err
	}
	_, err := w.Write(indent(b.Bytes()))
	return err
}

// indent lays compact JSON out as [json.Indent] does with two spaces. It takes
// for granted what that checks of every byte: b was just encoded.
func indent(b []byte) []byte {
	out := make([]byte, 0, 3*len(b))
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			end := stringEnd(b, i)
			out = append(out, b[i:end]...)
			i = end - 1
		case '{', '[':
			out = append(out, c)
			if b[i+1] == c+2 { // } and ] come two after { and [
				i++
				out = append(out, c+2)
				continue
			}
			depth++
			out = newLine(out, depth)
		case '}', ']':
			depth--
			out = append(newLine(out, depth), c)
		case ',':
			out = newLine(append(out, c), depth)
		case ':':
			out = append(out, ": "...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// stringEnd is where the string that begins at b[i] has ended.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// newLine begins a line that many levels deep.
func newLine(out []byte, depth int) []byte {
	out = append(out, '\n')
	for range depth {
		out = append(out, "  "...)
	}
	return out
}
