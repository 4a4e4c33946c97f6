package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs: every block of Go in the documentation compiles. A page may have
// imports and declarations that its blocks go without in a comment,
//
//	<!-- go
//	import "github.com/shardd/shardd/sdk"
//	var client *sdk.Client
//	-->
//
// and each block sees what the blocks before it on the page declare. What is
// declared and not used is no error here, and an error may be returned.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..")
	l := listExports(t)
	t.Run("finds", func(t *testing.T) { testCompile(t, l) })
	blocks := 0
	pages, err := markdown(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pages {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		source, n := program(name, string(text))
		blocks += n
		for _, err := range l.compile(source) {
			t.Error(err)
		}
	}
	if blocks < 10 {
		t.Errorf("only %d blocks found in %d pages", blocks, len(pages))
	}
}

// testCompile: what is wrong in a block is found, and said with the page's line.
func testCompile(t *testing.T, l listing) {
	f := func(text string, want ...string) {
		t.Helper()
		source, _ := program("x.md", text)
		var got []string
		for _, err := range l.compile(source) {
			got = append(got, err.Error())
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q\n%s", got, want, source)
		}
	}
	f("# Page\n```go\nx := 1\n```\ntext\n```go\nx := x + 1\n```\n") // unused, declared again
	f("# Page\n```go\nx := y\n```\n", "x.md:3:6: undefined: y")
	f("```go\nx := 1\n```\n\n\n```go\nvar s string = x\n```\n", "x.md:7:16: cannot use x (variable of type int) as string value in variable declaration")
	f("<!-- go\nimport \"strings\"\n-->\n```go\nstrings.Join()\n```\n", "x.md:5:14: not enough arguments in call to strings.Join\n\thave ()\n\twant ([]string, string)")
	f("```go\nf(...)\n```\n", "x.md:2:3: expected operand, found '...'")
	f("```sh\nnot Go\n```\n")
}

// markdown lists the pages of the documentation, relative to root.
func markdown(root string) (pages []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (path == "bin" || d.Name() != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	return pages, err
}

var (
	goBlock  = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	preamble = regexp.MustCompile(`(?ms)^<!-- go\n(.*?)^-->$`)
)

// program is a Go file of the blocks of a page, each in the scope of the one
// before it.
func program(name, text string) (source string, blocks int) {
	var b strings.Builder
	at := func(offset int) string {
		return fmt.Sprintf("//line %s:%d:1\n", name, 1+strings.Count(text[:offset], "\n"))
	}
	b.WriteString("package docs\n")
	for _, m := range preamble.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(at(m[2]) + text[m[2]:m[3]])
	}
	b.WriteString("func _() error {\n")
	found := goBlock.FindAllStringSubmatchIndex(text, -1)
	for _, m := range found {
		b.WriteString("{\n" + at(m[2]) + text[m[2]:m[3]])
	}
	b.WriteString(strings.Repeat("}\n", len(found)) + "return nil\n}\n")
	return b.String(), len(found)
}

// compile returns what is wrong with source.
func (l listing) compile(source string) (wrong []error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, 0)
	if err != nil {
		if list := (scanner.ErrorList)(nil); errors.As(err, &list) {
			err = list[0] // the others follow from it
		}
		return []error{err}
	}
	conf := types.Config{
		Importer: l.importer(fset, listedPackage{}),
		Error: func(err error) {
			if e := (types.Error{}); !errors.As(err, &e) || !e.Soft {
				wrong = append(wrong, err)
			}
		},
	}
	_, _ = conf.Check("docs", fset, []*ast.File{file}, nil) // its errors were collected
	return wrong
}
