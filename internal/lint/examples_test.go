package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notPublic are the trees that nobody imports, besides those named internal.
var notPublic = []string{"cmd", "test", "bench", "examples"}

func public(rel string) bool {
	return !slices.Contains(strings.Split(rel, "/"), "internal") && !inTree(rel, notPublic)
}

func inTree(rel string, trees []string) bool {
	return slices.ContainsFunc(trees, func(dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") })
}

// TestExamples: every exported type of a public package is used in an Example
// of that package: by name, as the type of a value, or, for interfaces and
// functions, as the type of a parameter that gets a value.
func TestExamples(t *testing.T) {
	shown := map[string]map[string]bool{}  // package -> types that its examples use
	listed := map[string]map[string]bool{} // package -> exported types
	l := listExports(t, "-test")
	for _, p := range l.packages {
		of := p.of()
		rel := strings.TrimPrefix(of, module+"/")
		if !public(rel) || l.tested[p.ImportPath] || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		checked := l.check(t, p)
		if listed[of] == nil {
			listed[of], shown[of] = map[string]bool{}, map[string]bool{}
		}
		if !strings.HasSuffix(checked.pkg.Name(), "_test") {
			maps.Copy(listed[of], exportedTypes(checked))
		}
		maps.Copy(shown[of], typesInExamples(checked, of))
	}
	if len(listed) < 50 {
		t.Fatalf("only %d public packages found", len(listed))
	}
	for _, of := range slices.Sorted(maps.Keys(listed)) {
		for _, name := range slices.Sorted(maps.Keys(listed[of])) {
			if !shown[of][name] {
				t.Errorf("%s.%s: no Example of the package uses this type", strings.TrimPrefix(of, module+"/"), name)
			}
		}
	}
}

// A checked package has its syntax and types.
type checked struct {
	pkg   *types.Package
	files []*ast.File
	tests []*ast.File // those of files whose name ends in _test.go
	info  *types.Info
}

// exportedTypes are those of the package itself, test files left out.
func exportedTypes(c checked) map[string]bool {
	names := map[string]bool{}
	for _, f := range c.files {
		if slices.Contains(c.tests, f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if ok && spec.Name.IsExported() {
				names[spec.Name.Name] = true
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	return names
}

// typesInExamples are the types of package path that the examples in c use.
func typesInExamples(c checked, path string) map[string]bool {
	used := map[string]bool{}
	add := func(typ types.Type) {
		for _, obj := range named(typ) {
			if obj.Pkg() != nil && obj.Pkg().Path() == path {
				used[obj.Name()] = true
			}
		}
	}
	for _, example := range doc.Examples(c.tests...) {
		ast.Inspect(example.Code, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if obj := c.info.ObjectOf(n); obj != nil {
					add(obj.Type())
				}
			case *ast.CallExpr:
				addParameters(c.info.TypeOf(n.Fun), add)
			}
			if e, ok := n.(ast.Expr); ok {
				add(c.info.TypeOf(e))
			}
			return true
		})
	}
	return used
}

// addParameters adds the interfaces and function types that fun takes.
func addParameters(fun types.Type, add func(types.Type)) {
	if fun == nil {
		return
	}
	sig, ok := fun.Underlying().(*types.Signature)
	if !ok {
		return
	}
	for v := range sig.Params().Variables() {
		switch v.Type().Underlying().(type) {
		case *types.Interface, *types.Signature:
			add(v.Type())
		}
	}
}

// named returns the names that typ has, and those of what it points to or holds.
func named(typ types.Type) []*types.TypeName {
	switch typ := typ.(type) {
	case *types.Alias:
		return append(named(typ.Rhs()), typ.Obj())
	case *types.Named:
		return []*types.TypeName{typ.Obj()}
	case *types.Pointer:
		return named(typ.Elem())
	case *types.Slice:
		return named(typ.Elem())
	case *types.Array:
		return named(typ.Elem())
	case *types.Chan:
		return named(typ.Elem())
	case *types.Map:
		return append(named(typ.Key()), named(typ.Elem())...)
	}
	return nil
}

type listedPackage struct {
	ImportPath, ForTest, Name, Dir, Export string
	GoFiles                                []string
	ImportMap                              map[string]string
	DepOnly                                bool
	Error                                  *struct{ Err string }
}

// of is the path of the package that p is, or is the tests of.
func (p listedPackage) of() string {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return strings.TrimSuffix(path, "_test")
}

type listing struct {
	packages []listedPackage // of the module, with their tests
	exports  map[string]string
	tested   map[string]bool // those that are listed again with their test files
}

// listExports lists the module's packages and where the compiler left what each
// of them, and all that they import, exports; with the flag -test their tests too.
func listExports(t *testing.T, flags ...string) listing {
	t.Helper()
	fields := "-json=ImportPath,ForTest,Name,Dir,Export,GoFiles,ImportMap,DepOnly,Error"
	args := append([]string{"list", "-e", "-export", "-deps", fields}, append(flags, module+"/...")...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, talk.Bytes())
	}
	l := listing{exports: map[string]string{}, tested: map[string]bool{}}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return l
		} else if err != nil {
			t.Fatalf("go list output: %v", err)
		}
		l.exports[p.ImportPath] = p.Export
		if p.ImportPath == p.ForTest+" ["+p.ForTest+".test]" {
			l.tested[p.ForTest] = true
		}
		if !p.DepOnly {
			l.packages = append(l.packages, p)
		}
	}
}

// check parses p and checks its types against what its imports export.
func (l listing) check(t *testing.T, p listedPackage) checked {
	t.Helper()
	c := checked{info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	fset := token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, f)
		if strings.HasSuffix(name, "_test.go") {
			c.tests = append(c.tests, f)
		}
	}
	conf := types.Config{Importer: l.importer(fset, p), Error: func(error) {}}
	var err error
	if c.pkg, err = conf.Check(p.of(), fset, c.files, c.info); err != nil {
		t.Errorf("%s: %v", p.ImportPath, err)
	}
	return c
}

func (l listing) importer(fset *token.FileSet, p listedPackage) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if as, ok := p.ImportMap[path]; ok {
			path = as
		}
		if l.exports[path] == "" {
			return nil, fmt.Errorf("%s exports nothing", path)
		}
		return os.Open(l.exports[path])
	})
}
