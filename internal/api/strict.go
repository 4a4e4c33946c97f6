package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// DecodeStrict reads exactly one JSON value from r into v: no unknown and no
// doubled field, nothing behind it, at most limit bytes. The error is an *Error
// (bad_request, invalid or too_large) that names line and column where it can.
func DecodeStrict(r io.Reader, limit int64, v any) error {
	body, err := ReadBody(r, limit)
	if err != nil {
		return err
	}
	return UnmarshalStrict(body, v)
}

// ReadBody reads all of r, or returns an *Error (too_large, bad_request).
func ReadBody(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, Errorf(CodeBadRequest, "send it again", "body: %v", err)
	}
	if int64(len(body)) > limit {
		return nil, Errorf(CodeTooLarge, "", "body is larger than %d bytes", limit)
	}
	return body, nil
}

// UnmarshalStrict is DecodeStrict of bytes.
func UnmarshalStrict(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return Errorf(CodeBadRequest, "send one JSON object", "body is empty")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return jsonError(body, err)
	}
	if rest := bytes.TrimLeft(body[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return Errorf(CodeBadRequest, "send one JSON object", "body%s: more than one JSON value", at(body, int64(len(body)-len(rest))))
	}
	if key := miscased(body); key != "" {
		return unknownField(body, key)
	}
	if key, offset := doubled(body); key != "" {
		return Errorf(CodeBadRequest, "name each field once", "body%s: field %q stands there twice", at(body, offset), key)
	}
	return nil
}

const hintJSON = "nothing was changed; correct the JSON"

// jsonError says where in body the decoder failed. encoding/json has the offset
// of syntax and type errors, but of an unknown field only the name, and nothing
// of either when a type decodes itself; then the field is looked up.
func jsonError(body []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	const hint = hintJSON
	switch {
	case errors.As(err, &syntax):
		return Errorf(CodeBadRequest, hint, "body%s: %v", at(body, syntax.Offset-1), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Errorf(CodeBadRequest, hint, "body%s: JSON is cut short", at(body, int64(len(body))))
	case errors.As(err, &kind):
		return Errorf(CodeBadRequest, hint, "body%s: %s", at(body, valueStart(body, kind.Offset, kind.Value)), kindMessage(kind))
	}
	if _, quoted, found := strings.Cut(err.Error(), "unknown field "); found {
		name, err := strconv.Unquote(quoted)
		if err != nil {
			name = quoted
		}
		return unknownField(body, name)
	}
	return &Error{Code: CodeInvalid, Message: "body: " + err.Error(), Hint: hint}
}

func unknownField(body []byte, name string) error {
	return Errorf(CodeBadRequest, hintJSON, "body%s: unknown field %q", at(body, find(body, name)), name)
}

// valueStart returns where the value begins that a type error is about: the
// decoder names the offset behind a number or a string, and behind the bracket
// of anything else.
func valueStart(body []byte, offset int64, kind string) int64 {
	switch {
	case kind == "string":
		return keyStart(body, offset)
	case strings.HasPrefix(kind, "number"):
		for offset > 0 && strings.IndexByte("+-.eE0123456789", body[offset-1]) >= 0 {
			offset--
		}
		return offset
	case kind == "bool":
		for offset > 0 && body[offset-1] >= 'a' && body[offset-1] <= 'z' {
			offset--
		}
		return offset
	}
	return offset - 1
}

func kindMessage(e *json.UnmarshalTypeError) string {
	field := e.Field
	if field == "" {
		field = "value"
	}
	return fmt.Sprintf("%s: a JSON %s, want %s", field, e.Value, wanted(e.Type.String()))
}

// wanted puts a Go type in words.
func wanted(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "a whole number from 0 on"
	case strings.Contains(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "string":
		return "a string"
	}
	return "an object"
}

// at returns ", line L, column C" of the byte at offset, or "" if that is
// unknown (negative). Columns count bytes from 1.
func at(body []byte, offset int64) string {
	if offset < 0 {
		return ""
	}
	before := body[:min(int(offset), len(body))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	return fmt.Sprintf(", line %d, column %d", line, column)
}

// find returns the offset of the first field of that name, or -1.
func find(body []byte, name string) int64 {
	found := int64(-1)
	walk(body, func(_ int, key string, offset int64) bool {
		if key == name {
			found = offset
		}
		return found < 0
	})
	return found
}

// miscased returns the first field that is not in lower-case ASCII, as all of
// this API are, or "". encoding/json takes "Weight" for "weight", and other
// letters that fold to the same, so that a field could stand there twice.
func miscased(body []byte) (name string) {
	walk(body, func(_ int, key string, _ int64) bool {
		if strings.ContainsFunc(key, func(r rune) bool { return r >= 0x80 || r >= 'A' && r <= 'Z' }) {
			name = key
		}
		return name == ""
	})
	return name
}

// doubled returns the first field that stands twice in one object, or "".
func doubled(body []byte) (key string, offset int64) {
	var seen []map[string]bool // by depth
	walk(body, func(depth int, k string, at int64) bool {
		if k == "" && at < 0 { // a new object
			seen = append(seen[:depth], map[string]bool{})
			return true
		}
		if seen[depth][k] {
			key, offset = k, at
			return false
		}
		seen[depth][k] = true
		return true
	})
	return key, offset
}

// walk calls fn for every field with the number of objects around its own, its
// name and the offset of the name, until fn returns false. For the beginning of
// an object it calls fn with an empty name and offset -1. body is valid JSON, or
// the walk ends where it is not.
func walk(body []byte, fn func(depth int, key string, offset int64) bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	type level struct{ object, value bool } // value: an object's next token is one
	var stack []level
	depth := -1
	for {
		tok, err := dec.Token()
		if err != nil {
			return
		}
		top := len(stack) - 1
		if name, ok := tok.(string); ok && top >= 0 && stack[top].object && !stack[top].value {
			if !fn(depth, name, keyStart(body, dec.InputOffset())) {
				return
			}
			stack[top].value = true
			continue
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{object: true})
			depth++
			if !fn(depth, "", -1) {
				return
			}
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			continue
		case json.Delim('}'):
			depth--
			stack = stack[:top]
		case json.Delim(']'):
			stack = stack[:top]
		}
		if n := len(stack) - 1; n >= 0 {
			stack[n].value = false
		}
	}
}

// keyStart returns the offset of the opening quote of the string that ends at
// end.
func keyStart(body []byte, end int64) int64 {
	for i := end - 2; i >= 0; i-- {
		if body[i] != '"' {
			continue
		}
		slashes := 0
		for j := i - 1; j >= 0 && body[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}
