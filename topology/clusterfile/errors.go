package clusterfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"

	"github.com/shardd/shardd/topology"
)

// Error says what is wrong with a cluster file and where. Unwrap gives the
// reason, which counts as topology.ErrUnknown where the file names something
// that another release may know.
type Error struct {
	File string // as given to Parse
	Line int    // from 1; 0 = the file as a whole
	Col  int    // from 1
	Path string // such as "nodes[2].weight"; "" = not in a field
	Err  error
}

// Error returns "file:line:col: path: reason".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// fault is an error before the file's name is known.
func fault(tk *token.Token, path, format string, args ...any) error {
	return faultErr(tk, path, fmt.Errorf(format, args...))
}

func faultErr(tk *token.Token, path string, err error) error {
	e := &Error{Path: path, Err: err}
	if tk != nil && tk.Position != nil {
		e.Line, e.Col = tk.Position.Line, tk.Position.Column
	}
	return e
}

// syntax turns an error of the YAML parser into one line with a position.
func syntax(err error) error {
	var y yaml.Error
	if errors.As(err, &y) {
		return fault(y.GetToken(), "", "not YAML: %s", y.GetMessage())
	}
	return fault(nil, "", "not YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
}

// unknown is a reason that counts as topology.ErrUnknown.
type unknown string

func (u unknown) Error() string { return string(u) }

func (u unknown) Is(target error) bool { return target == topology.ErrUnknown }
