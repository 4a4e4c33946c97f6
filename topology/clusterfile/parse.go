package clusterfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/shardd/shardd/topology"
)

const (
	// MaxSize is the largest size of a cluster file in bytes: room for
	// topology.MaxNodes nodes.
	MaxSize  = 16 << 20
	maxDepth = 16  // of nested lists and maps; a cluster file needs 3
	maxKeys  = 64  // of one block map; a cluster file has at most 14
	maxBlank = 256 // blank lines one after another
)

// byteOrderMark may stand before a YAML stream (YAML 1.2, section 5.2); some
// editors put it there.
const byteOrderMark = "\uFEFF"

// Parse reads a cluster file. name is used in errors only, "" = "cluster file".
// The result is valid (topology.Declared.Validate) and has at least one node;
// its Spec is normal. Errors are of type *Error. Parse never panics.
func Parse(name string, b []byte) (topology.Declared, error) { return parseNamed(name, b, false) }

// ParseEmpty is Parse for a file that may say "nodes: []", as Format writes a
// declaration without nodes.
func ParseEmpty(name string, b []byte) (topology.Declared, error) { return parseNamed(name, b, true) }

func parseNamed(name string, b []byte, empty bool) (topology.Declared, error) {
	d, err := parse(b, empty)
	if err == nil {
		return d, nil
	}
	if name == "" {
		name = "cluster file"
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.File = name
	return topology.Declared{}, e
}

func parse(b []byte, empty bool) (topology.Declared, error) {
	root, err := document(b)
	if err != nil {
		return topology.Declared{}, err
	}
	d, err := readFile(root, empty)
	if err != nil {
		return topology.Declared{}, err
	}
	if err := d.Validate(); err != nil {
		return topology.Declared{}, locate(root, err)
	}
	return d, nil
}

// document returns the one map that the file must be.
func document(b []byte) (ast.Node, error) {
	if len(b) > MaxSize {
		return nil, fault(nil, "", "%d bytes are more than %d", len(b), MaxSize)
	}
	if !utf8.Valid(b) {
		return nil, fault(nil, "", "not UTF-8 text; is this a cluster file?")
	}
	if strings.ContainsRune(string(b), 0) {
		return nil, fault(nil, "", "contains a zero byte; is this a cluster file?")
	}
	if err := checkLines(b); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(b), byteOrderMark))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	// Duplicate keys are found by the walk, which has the better message.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntax(err)
	}
	if len(file.Docs) > 1 {
		return nil, fault(file.Docs[1].Start, "", "more than one YAML document; put each cluster into its own file")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, fault(nil, "", "empty; want at least cluster, algorithm and nodes")
	}
	return file.Docs[0].Body, nil
}

// checkLines refuses long runs of blank lines: in a block text the lexer takes
// time with the square of their number (9 s for 32,000).
func checkLines(b []byte) error {
	blank, number := 0, 0
	for line := range bytes.Lines(b) {
		number++
		if blank++; len(bytes.TrimSpace(line)) > 0 {
			blank = 0
		}
		if blank > maxBlank {
			return &Error{Line: number, Col: 1, Err: fmt.Errorf("more than %d blank lines one after another; remove them", maxBlank)}
		}
	}
	return nil
}

// checkTokens refuses what could make the parser or the walk work harder than
// the file is long: deep nesting, block maps of many keys (the parser recurses
// for each), and values that stand for other values.
func checkTokens(tokens token.Tokens) error {
	g := guard{keys: map[int]int{}}
	for i, tk := range tokens {
		switch tk.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.DirectiveType, token.MappingKeyType:
			return fault(tk, "", "anchors, aliases, merge keys, tags, directives and '?' keys are not allowed; write the values out")
		}
		isKey := i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType
		if err := g.take(tk, isKey); err != nil {
			return err
		}
	}
	return nil
}

// guard counts nesting and keys along the tokens.
type guard struct {
	depth   int         // of flow lists and maps
	line    int         // of the token before
	entries int         // list dashes on this line
	keys    map[int]int // keys so far of the open block map at each column
}

func (g *guard) take(tk *token.Token, isKey bool) error {
	col := tk.Position.Column
	if tk.Position.Line != g.line {
		g.line, g.entries = tk.Position.Line, 0
		maps.DeleteFunc(g.keys, func(c, _ int) bool { return c > col }) // those maps have ended
	}
	switch tk.Type {
	case token.MappingStartType, token.SequenceStartType:
		g.depth++
	case token.MappingEndType, token.SequenceEndType:
		g.depth--
	case token.SequenceEntryType:
		g.entries++
	}
	if g.depth > maxDepth || g.entries > maxDepth || len(g.keys) > maxDepth {
		return fault(tk, "", "nested too deeply; a cluster file needs three levels")
	}
	if isKey && g.depth == 0 {
		if g.keys[col]++; g.keys[col] > maxKeys {
			return fault(tk, "", "more than %d fields in one map; a cluster file has at most %d", maxKeys, len(topFields)+1)
		}
	}
	return nil
}
