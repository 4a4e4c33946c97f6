package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxDepth = 32   // of nested lists and maps
	maxKeys  = 4096 // of one YAML map: its parser recurses for each
	maxBlank = 256  // blank lines one after another: YAML block texts take their square
)

type kind uint8

const (
	null kind = iota
	text      // numbers and truth values too, as they are written
	list
	object
)

// value is a YAML or JSON value that knows its line.
type value struct {
	line   int
	kind   kind
	text   string
	items  []value
	fields []member
}

type member struct {
	name string
	line int
	value
}

// get returns the field of an object by any of its names.
func (v value) get(names ...string) (value, bool) {
	for _, f := range v.fields {
		if slices.Contains(names, f.name) {
			return f.value, true
		}
	}
	return value{}, false
}

func (v value) kindName() string {
	return [...]string{"nothing", "text", "a list", "a map"}[v.kind]
}

// unique refuses a field that is there twice.
func (v value) unique() error {
	seen := make(map[string]int, len(v.fields))
	for _, f := range v.fields {
		if first, dup := seen[f.name]; dup {
			return fault(f.line, f.name, "stands on line %d already", first)
		}
		seen[f.name] = f.line
	}
	return nil
}

// parseJSON reads one JSON value.
func parseJSON(data []byte) (value, error) {
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data}
	r.dec.UseNumber()
	v, err := r.next(0)
	if err != nil {
		return value{}, err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return value{}, fault(r.line(), "", "text after the JSON value")
	}
	return v, nil
}

type jsonReader struct {
	dec     *json.Decoder
	data    []byte
	offset  int // up to which lines are counted
	counted int
}

// line returns the line of the last token.
func (r *jsonReader) line() int {
	now := min(int(r.dec.InputOffset()), len(r.data))
	if now > r.offset {
		r.counted += bytes.Count(r.data[r.offset:now], []byte{'\n'})
		r.offset = now
	}
	return r.counted + 1
}

func (r *jsonReader) next(depth int) (value, error) {
	t, err := r.dec.Token()
	if err != nil {
		return value{}, fault(r.line(), "", "not JSON: %w", err)
	}
	if depth > maxDepth {
		return value{}, fault(r.line(), "", "nested too deeply")
	}
	v := value{line: r.line()}
	switch t := t.(type) {
	case json.Delim:
		return r.container(v, t, depth)
	case string:
		v.kind, v.text = text, t
	case nil:
	default:
		v.kind, v.text = text, fmt.Sprint(t)
	}
	return v, nil
}

func (r *jsonReader) container(v value, open json.Delim, depth int) (value, error) {
	v.kind = list
	if open == '{' {
		v.kind = object
	}
	for r.dec.More() {
		name, line := "", 0
		if v.kind == object {
			t, err := r.dec.Token()
			if err != nil {
				return v, fault(r.line(), "", "not JSON: %w", err)
			}
			name, line = fmt.Sprint(t), r.line()
		}
		item, err := r.next(depth + 1)
		if err != nil {
			return v, err
		}
		if v.kind == object {
			v.fields = append(v.fields, member{name, line, item})
		} else {
			v.items = append(v.items, item)
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return v, fault(r.line(), "", "not JSON: %w", err)
	}
	return v, nil
}

// parseYAML reads one YAML document without anchors, tags and the like.
func parseYAML(data []byte) (value, error) {
	if err := plainText(data); err != nil {
		return value{}, err
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\uFEFF"))
	if err := checkTokens(tokens); err != nil {
		return value{}, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		return value{}, fault(y.GetToken().Position.Line, "", "not YAML: %s", y.GetMessage())
	}
	if err != nil {
		return value{}, fault(0, "", "not YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return value{}, fault(0, "", "want one YAML document")
	}
	return fromYAML(file.Docs[0].Body, 0)
}

// plainText refuses what is no text, and long runs of blank lines.
func plainText(data []byte) error {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return fault(0, "", "not UTF-8 text")
	}
	blank, number := 0, 0
	for line := range bytes.Lines(data) {
		number++
		if blank++; len(bytes.TrimSpace(line)) > 0 {
			blank = 0
		}
		if blank > maxBlank {
			return fault(number, "", "more than %d blank lines one after another; remove them", maxBlank)
		}
	}
	return nil
}

// checkTokens refuses values that stand for other values, and nesting and maps
// that would make the parser work harder than the file is long.
func checkTokens(tokens token.Tokens) error {
	depth, entries, line := 0, 0, 0
	keys := make(map[int]int)
	for i, tk := range tokens {
		if tk.Position.Line != line {
			line, entries = tk.Position.Line, 0
			for c := range keys {
				if c > tk.Position.Column {
					delete(keys, c)
				}
			}
		}
		switch tk.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.DirectiveType, token.MappingKeyType:
			return fault(line, tk.Value, "anchors, aliases, merge keys, tags, directives and '?' keys are not followed; write the values out")
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			entries++
		}
		if i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType {
			keys[tk.Position.Column]++
		}
		if depth > maxDepth || entries > maxDepth || len(keys) > maxDepth {
			return fault(line, "", "nested too deeply")
		}
		if keys[tk.Position.Column] > maxKeys {
			return fault(line, "", "more than %d fields in one map", maxKeys)
		}
	}
	return nil
}

func fromYAML(n ast.Node, depth int) (value, error) {
	if n == nil {
		return value{}, nil
	}
	v := value{line: lineOf(n)}
	if depth > maxDepth {
		return v, fault(v.line, "", "nested too deeply")
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		v.kind, v.text = text, n.Value
	case *ast.LiteralNode:
		v.kind, v.text = text, n.Value.Value
	case ast.ArrayNode:
		v.kind = list
		for it := n.ArrayRange(); it.Next(); {
			item, err := fromYAML(it.Value(), depth+1)
			if err != nil {
				return v, err
			}
			v.items = append(v.items, item)
		}
	case ast.MapNode:
		v.kind = object
		for it := n.MapRange(); it.Next(); {
			item, err := fromYAML(it.Value(), depth+1)
			if err != nil {
				return v, err
			}
			key := it.Key().GetToken()
			name := key.Value
			if s, ok := it.Key().(*ast.StringNode); ok {
				name = s.Value
			}
			v.fields = append(v.fields, member{name, key.Position.Line, item})
		}
	case ast.ScalarNode:
		v.kind, v.text = text, n.GetToken().Value
	default:
		return v, fault(v.line, "", "a %s is not read", strings.ToLower(n.Type().YAMLName()))
	}
	return v, nil
}

func lineOf(n ast.Node) int {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}
