package clusterfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// field is one "key: value" of a map.
type field struct {
	path  string
	key   *token.Token
	value ast.Node
}

// at returns the token to point to: the value's, or the key's if there is none.
func (f field) at() *token.Token {
	if f.value == nil || f.value.Type() == ast.NullType {
		return f.key
	}
	if m, ok := f.value.(*ast.MappingNode); ok && !m.IsFlowStyle {
		return f.key // a block map's own token is the ':' of its first pair
	}
	return f.value.GetToken()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fields returns the fields of a map in the order of the file, each name at
// most once and among known.
func fields(node ast.Node, path string, known []string) ([]field, error) {
	m, ok := node.(ast.MapNode)
	if !ok {
		return nil, fault(node.GetToken(), path, "want a map of %s, not %s", strings.Join(known, ", "), kindOf(node))
	}
	var out []field
	for it := m.MapRange(); it.Next(); {
		key := it.Key().GetToken()
		name := key.Value
		if s, ok := it.Key().(*ast.StringNode); ok {
			name = s.Value
		}
		if i := slices.IndexFunc(out, func(f field) bool { return f.path == join(path, name) }); i >= 0 {
			return nil, fault(key, join(path, name), "duplicate field; it stands on line %d already", out[i].key.Position.Line)
		}
		if !slices.Contains(known, name) {
			return nil, faultErr(key, path, unknown(fmt.Sprintf("unknown field %q; %s", name, suggest(name, known))))
		}
		out = append(out, field{join(path, name), key, it.Value()})
	}
	return out, nil
}

// suggest names the known field nearest to name, or all of them.
func suggest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}

// distance is Levenshtein's, on bytes, cut off for long names.
func distance(a, b string) int {
	if len(a) > 32 || len(b) > 32 {
		return math.MaxInt
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// kindOf names what a node is, for messages.
func kindOf(node ast.Node) string {
	switch n := node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case ast.MapNode:
		return "a map"
	case ast.ArrayNode:
		return "a list"
	case *ast.BoolNode:
		return "the truth value " + n.GetToken().Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.StringNode:
		return fmt.Sprintf("the text %q", clip(n.Value))
	default:
		return "a " + strings.ToLower(node.Type().YAMLName())
	}
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}

func (f field) text() (string, error) {
	switch n := f.value.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case nil, *ast.NullNode:
		return "", fault(f.at(), f.path, `want text, not nothing; leave the field out or write ""`)
	case ast.ScalarNode:
		return "", fault(f.at(), f.path, "want text, not %s; put it in quotes", kindOf(n))
	default:
		return "", fault(f.at(), f.path, "want text, not %s", kindOf(n))
	}
}

// label is text, or a whole number in plain decimal digits, as HAProxy's server
// ids are: all readers take these for the same characters.
func (f field) label() (string, error) {
	if n, ok := f.value.(*ast.IntegerNode); ok {
		text := n.GetToken().Value
		if v, err := strconv.ParseUint(text, 10, 64); err == nil && text == strconv.FormatUint(v, 10) {
			return text, nil
		}
	}
	return f.text()
}

func (f field) truth() (bool, error) {
	if b, ok := f.value.(*ast.BoolNode); ok {
		return b.Value, nil
	}
	return false, fault(f.at(), f.path, "want true or false, not %s", kindOf(f.value))
}

// whole reads a whole number from least to most. Only plain decimals are
// taken: 010 and 0x10 mean different numbers to different readers.
func (f field) whole(least, most uint32) (uint32, error) {
	if !isNumber(f.value) {
		return 0, fault(f.at(), f.path, "want a whole number from %d to %d, not %s", least, most, kindOf(f.value))
	}
	text := f.value.GetToken().Value
	v, err := strconv.ParseUint(text, 10, 64)
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, fault(f.at(), f.path, "%s is negative; want %d to %d", text, least, most)
	case err != nil && strings.Trim(text, "0123456789") != "":
		return 0, fault(f.at(), f.path, "%s is not a whole number in plain decimal digits; want %d to %d", text, least, most)
	case err == nil && text != strconv.FormatUint(v, 10):
		return 0, fault(f.at(), f.path, "%s has leading zeros; write %d", text, v)
	case err != nil || v > uint64(most):
		return 0, fault(f.at(), f.path, "%s is too large; want %d to %d", text, least, most)
	case v < uint64(least):
		return 0, fault(f.at(), f.path, "%d is too small; want %d to %d, or leave it out for the default", v, least, most)
	}
	return uint32(v), nil
}

func (f field) number() (float64, error) {
	if isNumber(f.value) {
		if v, err := strconv.ParseFloat(f.value.GetToken().Value, 64); err == nil {
			return v, nil
		}
	}
	return 0, fault(f.at(), f.path, "want a number such as 1.25, not %s", kindOf(f.value))
}

func isNumber(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	case *ast.StringNode: // digits beyond 64 bits
		return n.Token.Type == token.StringType && n.Value != "" && strings.Trim(n.Value, "0123456789") == ""
	}
	return false
}
