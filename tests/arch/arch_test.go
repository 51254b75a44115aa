package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository: the nearest folder upward with a go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// listed is what the tests use of a package that go list describes.
type listed struct {
	ImportPath   string
	Name         string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags", "duckdb_arrow", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no packages")
	}
	return all
}

// sources are all Go files of the tree, parsed.
func sources(t *testing.T) []source {
	t.Helper()
	dir := root(t)
	var all []source
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(rel), file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func report(t *testing.T, broken []string) {
	t.Helper()
	for _, b := range broken {
		t.Error(b)
	}
}

// Proves that every package imports only what the rule of its room allows.
func TestDependencyRule(t *testing.T) {
	for _, p := range packages(t) {
		path, ours := relative(p.ImportPath)
		if !ours {
			t.Errorf("%s is not below %s", p.ImportPath, module)
			continue
		}
		report(t, brokenImports(imported{path, p.Imports, append(p.TestImports, p.XTestImports...)}))
	}
}

// Proves that package names and folders say what they hold.
func TestNamesSaySomething(t *testing.T) {
	for _, p := range packages(t) {
		path, _ := relative(p.ImportPath)
		report(t, vagueNames(path, p.Name))
	}
}

// Proves that every package has a package comment.
func TestEveryPackageIsDocumented(t *testing.T) {
	report(t, undocumented(sources(t)))
}

// Proves that the domain reads no clock and starts no goroutine.
func TestDomainIsPure(t *testing.T) {
	for _, s := range sources(t) {
		report(t, impurities(s))
	}
}

// Proves that only cmd ends the process.
func TestOnlyCommandsExit(t *testing.T) {
	for _, s := range sources(t) {
		report(t, exits(s))
	}
}

// Proves that the engine is constructed in exactly one file.
func TestDuckDBIsConstructedInOnePlace(t *testing.T) {
	report(t, constructions(sources(t)))
}

// Proves that a switch over a closed set of the domain names every member of it.
func TestSwitchesAreExhaustive(t *testing.T) {
	all := sources(t)
	sets := closedSets(all)
	for _, s := range all {
		report(t, overlooked(s, sets))
	}
}

// topLevel are the folders of the house. bin holds what make builds and is never committed.
var topLevel = []string{"adapters", "app", "bin", "bootstrap", "cmd", "domain", "examples", "migrations", "ports", "tests"}

// Proves that the tree has no top-level folder besides those of the house.
func TestTopLevelFolders(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("the folder %s is not a room of the house: a new one needs a Decision in ARCHITECTURE.md", e.Name())
		}
	}
}

var quoted = regexp.MustCompile("`([^`\n]+)`")

// namedPaths are the paths of the repository, and the tests, that a document names in backticks. Other paths, of the data directory
// or a URL, begin with no folder of the house.
func namedPaths(text string) (paths, tests []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		word := m[1]
		first, _, slash := strings.Cut(word, "/")
		switch {
		case strings.ContainsAny(word, " {}<>()|"):
		case slash && (slices.Contains(topLevel, first) && first != "bin" || first == ".ci"):
			paths = append(paths, word)
		case regexp.MustCompile(`^Test[A-Z]\w*$`).MatchString(word):
			tests = append(tests, word)
		}
	}
	return paths, tests
}

// Proves that every path and every test that ARCHITECTURE.md names exists.
func TestArchitectureNamesWhatExists(t *testing.T) {
	dir := root(t)
	text, err := os.ReadFile(filepath.Join(dir, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths, tests := namedPaths(string(text))
	for _, p := range paths {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil || len(found) == 0 {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", p)
		}
	}
	known := map[string]bool{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.isTest() && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
	}
	for _, name := range tests {
		if !known[name] {
			t.Errorf("ARCHITECTURE.md names the test %s, which does not exist", name)
		}
	}
}

// Proves that the dependency rule catches what it forbids and lets pass what it allows.
func TestDependencyRuleIsTested(t *testing.T) {
	for _, c := range []struct {
		path, imports string
		inTest, ok    bool
	}{
		{"domain/plan", "leapview/domain/project", false, true},
		{"domain/plan", "sort", false, true},
		{"domain/plan", "leapview/ports", false, false},
		{"domain/plan", "context", false, false},
		{"domain/plan", "log/slog", false, false},
		{"domain/plan", "os", false, false},
		{"domain/plan", "math/rand/v2", false, false},
		{"domain/plan", "go.yaml.in/yaml/v3", false, false},
		{"domain/plan", "testing", true, true},
		{"domain/plan", "leapview/adapters/mem", true, false},
		{"ports", "leapview/app", false, false},
		{"app", "leapview/ports", false, true},
		{"app", "leapview/adapters/sqlite", false, false},
		{"app", "leapview/adapters/mem", false, false},
		{"app", "leapview/adapters/mem", true, true},
		{"app", "leapview/adapters/sqlite", true, false},
		{"app", "go.uber.org/fx", false, false},
		{"adapters/duckdb/lake", "leapview/adapters/duckdb/engine", false, true},
		{"adapters/duckdb/lake", "leapview/adapters/fs", false, false},
		{"adapters/duckdb/lake", "github.com/apache/arrow-go/v18/arrow", false, true},
		{"adapters/duckdb/lake", "github.com/mattn/go-sqlite3", false, false},
		{"adapters/sqlite", "github.com/golang-migrate/migrate/v4/source/iofs", false, true},
		{"adapters/sqlite", "leapview/migrations", false, true},
		{"adapters/sqlite", "github.com/duckdb/duckdb-go/v2", false, false},
		{"adapters/mem", "leapview/adapters/fault", false, false},
		{"adapters/fault", "leapview/adapters/faulty", false, false},
		{"adapters/fs", "leapview/app", false, false},
		{"adapters/http", "leapview/app", false, true},
		{"adapters/http", "leapview/bootstrap", false, false},
		{"adapters/cli", "github.com/labstack/echo/v4", false, false},
		{"bootstrap", "go.uber.org/fx/fxtest", false, true},
		{"bootstrap", "leapview/adapters/http", false, true},
		{"bootstrap", "github.com/duckdb/duckdb-go/v2", false, false},
		{"cmd/leapview", "leapview/bootstrap", false, true},
		{"cmd/leapview", "leapview/app", false, false},
		{"tests/acceptance", "leapview/adapters/duckdb/engine", true, true},
		{"tests/acceptance", "go.uber.org/fx", true, true},
		{"elsewhere", "fmt", false, false},
		{"domainish", "fmt", false, false},
	} {
		p := imported{path: c.path, imports: []string{c.imports}}
		if c.inTest {
			p = imported{path: c.path, testImports: []string{c.imports}}
		}
		if broken := brokenImports(p); (len(broken) == 0) != c.ok {
			t.Errorf("%s importing %s (in a test: %t): allowed should be %t, got %q", c.path, c.imports, c.inTest, c.ok, broken)
		}
	}
}

// Proves that the rules over source text catch what they forbid and let pass what they allow.
func TestSourceRulesAreTested(t *testing.T) {
	for _, c := range []struct {
		path, text string
		broken     int
	}{
		{"domain/x/a.go", `package x; import "time"; func f() time.Time { return time.Now() }`, 1},
		{"domain/x/a.go", `package x; import clock "time"; var since = clock.Since`, 1},
		{"domain/x/a.go", `package x; import "time"; const day = 24 * time.Hour`, 0},
		{"domain/x/a.go", `package x; func f() { go f() }`, 1},
		{"domain/x/a.go", `package x; var c chan int`, 1},
		{"domain/x/a_test.go", `package x; func f() { go f() }`, 0},
		{"app/a.go", `package app; import "time"; var now = time.Now`, 0},
		{"app/a.go", `package app; import "os"; func f() { os.Exit(1) }`, 1},
		{"app/a.go", `package app; import "log"; func f() { log.Fatalf("") }`, 1},
		{"cmd/leapview/main.go", `package main; import "os"; func main() { os.Exit(1) }`, 0},
	} {
		s := parsed(t, c.path, c.text)
		if broken := append(impurities(s), exits(s)...); len(broken) != c.broken {
			t.Errorf("%s: %s\nshould break %d rules, broke %q", c.path, c.text, c.broken, broken)
		}
	}
}

// Proves that a switch which leaves out a member of a closed set is noticed, wherever it is and whether it has a default, and that other
// switches are let pass.
func TestSwitchRuleIsTested(t *testing.T) {
	domain := []source{
		parsed(t, "domain/x/a.go", `package x
			type Status string
			const (A Status = "a"; B Status = "b"; other = 5)
			type Kind int
			const (K0 Kind = iota; K1; K2)
			type Thing interface { Mark() int; sealed() }
			type base struct{}
			func (base) sealed() {}
			type One struct { base }
			func (One) Mark() int { return 1 }
			type Two struct { *One }
			type Three struct{}
			func (Three) Mark() int { return 3 }`),
		parsed(t, "domain/x/b.go", `package x; func (Two) Mark() int { return 2 }`),
	}
	for _, c := range []struct {
		path, text string
		broken     int
	}{
		{"domain/x/c.go", `package x; func f(s Status) { switch s { case A: case B: } }`, 0},
		{"domain/x/c.go", `package x; func f(s Status) { switch s { case A, B: } }`, 0},
		{"domain/x/c.go", `package x; func f(s Status) { switch s { case A: default: } }`, 1},
		{"domain/x/c.go", `package x; func f(k Kind) { switch k { case K0, K2: } }`, 1},
		{"domain/x/c_test.go", `package x; func f(k Kind) { switch k { case K0: } }`, 1},
		{"domain/x/c.go", `package x; func f(s Status) { switch { case s == A: } }`, 0},
		{"domain/x/c.go", `package x; func f(s int) { switch s { case other: } }`, 0},
		{"domain/x/c.go", `package x; func f(t Thing) { switch t.(type) { case One: } }`, 1},
		{"domain/x/c.go", `package x; func f(t Thing) { switch t.(type) { case nil, One, *Two: } }`, 0},
		{"domain/x/c.go", `package x; func f(t any) { switch t.(type) { case Three: } }`, 0},
		{"app/a.go", `package app; import "leapview/domain/x"; func f(t x.Thing) { switch t.(type) { case x.Two: } }`, 1},
		{"app/a.go", `package app; import y "leapview/domain/x"; func f(s y.Status) { switch s { case y.B: } }`, 1},
		{"app/a.go", `package app; import x "elsewhere/x"; func f(s x.Status) { switch s { case x.B: } }`, 0},
		{"app/a.go", `package app; const A = 1; func f(s int) { switch s { case A: } }`, 0},
	} {
		s := parsed(t, c.path, c.text)
		if broken := overlooked(s, closedSets(domain)); len(broken) != c.broken {
			t.Errorf("%s: %s\nshould break the rule %d times, broke %q", c.path, c.text, c.broken, broken)
		}
	}
}

// Proves that a second construction of DuckDB, or none, is noticed, however it is written.
func TestConstructionRuleIsTested(t *testing.T) {
	connector := parsed(t, "adapters/duckdb/engine/a.go", `package engine; import "github.com/duckdb/duckdb-go/v2"; var c, _ = duckdb.NewConnector("", nil)`)
	renamed := parsed(t, "app/a.go", `package app; import d "github.com/duckdb/duckdb-go/v2"; var c, _ = d.NewConnector("", nil)`)
	opened := parsed(t, "app/b.go", `package app; import "database/sql"; var c, _ = sql.Open("duckdb", "")`)
	other := parsed(t, "adapters/sqlite/a.go", `package sqlite; import "database/sql"; var c, _ = sql.Open("sqlite3", "")`)
	inTest := parsed(t, "adapters/duckdb/a_test.go", `package duckdb; import "database/sql"; var c, _ = sql.Open("duckdb", "")`)
	for _, c := range []struct {
		sources []source
		ok      bool
	}{
		{[]source{connector}, true},
		{[]source{connector, other, inTest}, true},
		{[]source{opened}, true},
		{nil, false},
		{[]source{inTest}, false},
		{[]source{connector, renamed}, false},
		{[]source{connector, opened}, false},
	} {
		if broken := constructions(c.sources); (len(broken) == 0) != c.ok {
			t.Errorf("%d sources: allowed should be %t, got %q", len(c.sources), c.ok, broken)
		}
	}
}

// Proves that missing package comments, vague names and named paths are noticed.
func TestNamingRulesAreTested(t *testing.T) {
	bare := parsed(t, "app/a.go", "package app")
	documented := parsed(t, "app/b.go", "// Package app owns the use cases.\npackage app")
	wrong := parsed(t, "app/c.go", "// This package is nice.\npackage app")
	if len(undocumented([]source{bare, wrong})) != 1 || len(undocumented([]source{bare, documented})) != 0 {
		t.Error("a missing package comment was not told from a present one")
	}
	for _, c := range []struct {
		path, name string
		ok         bool
	}{
		{"app", "app", true}, {"adapters/internal/x", "x", false}, {"app/utils", "utils", false}, {"app/x", "helpers_test", false},
	} {
		if broken := vagueNames(c.path, c.name); (len(broken) == 0) != c.ok {
			t.Errorf("%s, package %s: allowed should be %t, got %q", c.path, c.name, c.ok, broken)
		}
	}
	paths, tests := namedPaths("See `domain/plan`, `tests/arch/*.go`, `ducklake/catalog.duckdb`, `go build ./x` and `TestDependencyRule`.")
	if fmt.Sprint(paths, tests) != "[domain/plan tests/arch/*.go] [TestDependencyRule]" {
		t.Errorf("named were %q and %q", paths, tests)
	}
}

func parsed(t *testing.T, path, text string) source {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{path, file}
}
