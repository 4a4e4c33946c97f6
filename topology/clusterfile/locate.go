package clusterfile

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/shardd/shardd/topology"
)

// Locate gives an error about the declaration that Parse read from b, such as one
// of package placement, the place in the file that it is about: the result is an
// *Error if err wraps a *topology.FieldError and b is the file, else err itself.
func Locate(name string, b []byte, err error) error {
	root, parseErr := document(b)
	if err == nil || parseErr != nil {
		return err
	}
	var e *Error
	if located := locate(root, err); errors.As(located, &e) {
		e.File = name
		return e
	}
	return err
}

// locate gives an error of validation the position of the field that it names,
// or of the nearest thing around it.
func locate(root ast.Node, err error) error {
	var fe *topology.FieldError
	if !errors.As(err, &fe) {
		return err
	}
	tk, node := start(root), root
	for _, step := range strings.FieldsFunc(fe.Path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next, found := child(node, step)
		if !found {
			break
		}
		tk, node = next.at(), next.value
	}
	return faultErr(tk, fe.Path, fe.Err)
}

// child returns what a name or a list index leads to.
func child(node ast.Node, step string) (field, bool) {
	switch n := node.(type) {
	case ast.MapNode:
		for it := n.MapRange(); it.Next(); {
			if it.Key().GetToken().Value == step {
				return field{key: it.Key().GetToken(), value: it.Value()}, true
			}
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Values) {
			return field{key: start(n.Values[i]), value: n.Values[i]}, true
		}
	}
	return field{}, false
}

// start returns the first token of a node.
func start(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return tokenOf(node)
}

func tokenOf(node ast.Node) *token.Token {
	if node == nil {
		return nil
	}
	return node.GetToken()
}
