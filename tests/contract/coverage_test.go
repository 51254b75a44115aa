// Package contract holds the contract suite of every port, run against the in-memory twin and the real adapter alike.
//
// Invariant: a suite is a function whose name ends in Suite and whose comment names its ports ("… is the contract of ports.Lake and
// ports.Build."). A test whose name ends in Mem runs it against the twin, any other against a real adapter; coverage_test.go fails when a
// port lacks one of the two. What a case needs beside its port is opened for it alone and ends with it.
package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// No case leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Proves that every interface of ports has a contract suite which calls each of its methods, and which runs against both the twin and
// a real adapter.
func TestEveryPortHasASuiteOnBothSides(t *testing.T) {
	for _, missing := range uncovered(parseDir(t, filepath.Join("..", "..", "ports")), parseDir(t, ".")) {
		t.Error(missing)
	}
}

// uncovered says what each interface of ports lacks.
func uncovered(ports, suites []*ast.File) []string {
	methods := map[string][]string{}
	for _, f := range ports {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				methods[spec.Name.Name] = nil
				for _, m := range i.Methods.List {
					for _, name := range m.Names {
						methods[spec.Name.Name] = append(methods[spec.Name.Name], name.Name)
					}
				}
			}
			return true
		})
	}
	functions := map[string]*ast.FuncDecl{}
	for _, f := range suites {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				functions[fn.Name.Name] = fn
			}
		}
	}
	var missing []string
	for port, names := range methods {
		suite := suiteOf(port, functions)
		if suite == "" {
			missing = append(missing, fmt.Sprintf("no suite says that it is the contract of ports.%s", port))
			continue
		}
		used := mentioned(suite, functions)
		for _, name := range names {
			if !used[name] {
				missing = append(missing, fmt.Sprintf("%s never calls %s of ports.%s", suite, name, port))
			}
		}
		var twin, real bool
		for name := range functions {
			if strings.HasPrefix(name, "Test") && mentioned(name, functions)[suite] {
				isTwin := strings.HasSuffix(name, "Mem")
				twin, real = twin || isTwin, real || !isTwin
			}
		}
		if !twin {
			missing = append(missing, fmt.Sprintf("no test whose name ends in Mem runs %s, the contract of ports.%s", suite, port))
		}
		if !real {
			missing = append(missing, fmt.Sprintf("no test runs %s, the contract of ports.%s, against a real adapter", suite, port))
		}
	}
	slices.Sort(missing)
	return missing
}

// suiteOf is the suite whose comment names the port, or "".
func suiteOf(port string, functions map[string]*ast.FuncDecl) string {
	named := regexp.MustCompile(`\bports\.` + port + `\b`)
	for name, f := range functions {
		if strings.HasSuffix(name, "Suite") && named.MatchString(f.Doc.Text()) {
			return name
		}
	}
	return ""
}

// mentioned are all names in the function and in those of the package that it reaches.
func mentioned(function string, functions map[string]*ast.FuncDecl) map[string]bool {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		f := functions[name]
		if f == nil {
			return
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !seen[id.Name] {
				seen[id.Name] = true
				visit(id.Name)
			}
			return true
		})
	}
	visit(function)
	return seen
}

func parseDir(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s (%v)", dir, err)
	}
	var files []*ast.File
	for _, p := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// Proves that the rule notices a port without a suite, a suite on one side only, and a method that no suite calls.
func TestCoverageRuleIsTested(t *testing.T) {
	parse := func(text string) []*ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return []*ast.File{f}
	}
	ports := parse("type Lake interface { Begin() error; Find() bool }\ntype plain struct{}")
	const suite = "// lakeSuite is the contract of ports.Lake.\nfunc lakeSuite(l Lake) { l.Begin(); deeper(l) }\nfunc deeper(l Lake) { l.Find() }\n"
	for _, c := range []struct {
		suites  string
		missing int
	}{
		{"", 1},
		{suite, 2},
		{suite + "func TestLakeMem() { lakeSuite() }", 1},
		{suite + "func TestLakeDuckDB() { lakeSuite() }", 1},
		{suite + "func TestLakeMem() { lakeSuite() }\nfunc TestLakeDuckDB() { lakeSuite() }", 0},
		{suite + "func TestLakeMem() { lakeSuite() }\nfunc TestLakeDuckDB() { otherSuite() }", 1},
		{strings.Replace(suite, "l.Find()", "l.Begin()", 1) + "func TestLakeMem() { lakeSuite() }\nfunc TestLakeDuckDB() { lakeSuite() }", 1},
		{strings.Replace(suite, "ports.Lake", "ports.Lakes", 1) + "func TestLakeMem() { lakeSuite() }\nfunc TestLakeDuckDB() { lakeSuite() }", 1},
	} {
		if missing := uncovered(ports, parse(c.suites)); len(missing) != c.missing {
			t.Errorf("%q: missing are %q, want %d", c.suites, missing, c.missing)
		}
	}
}
