// Package arch owns the rules of the house: which room may import what, and what no room may do. Its tests hold the tree to them.
//
// Invariant: a rule is a pure function from what was read of the tree to the violations it found, each with its reason, so that
// every rule is itself tested with a tree that breaks it. The package knows names and imports; it does not know what code does.
package arch

import (
	"fmt"
	"slices"
	"strings"
)

// module is this repository's import path.
const module = "leapview"

// room is a part of the tree: a folder and all that is below it, unless a deeper room is in the table.
type room struct {
	// path is the folder, relative to the root; "." is the root package alone.
	path string
	// rooms may be imported besides the room itself; "*" is any.
	rooms []string
	// modules are import path prefixes outside of this repository that may be imported; "*" is any.
	modules []string
	reason  string
}

const adapterReason = "an adapter speaks to the world for the domain and knows no other adapter, so that each can be replaced alone"

// rooms is the dependency rule.
var rooms = []room{
	{".", nil, nil, "the root package only embeds files that lie beside it"},
	{"domain", nil, nil, "the domain is pure: everything else depends on it, and it depends on nothing"},
	{"ports", []string{"domain"}, nil, "a port names domain types only"},
	{"app", []string{"domain", "ports"}, nil, "a use case meets the world through ports"},
	{"adapters/duckdb", []string{"domain", "ports", "."}, []string{"github.com/duckdb/duckdb-go/v2", "github.com/apache/arrow-go/v18"}, adapterReason},
	{"adapters/sqlite", []string{"domain", "ports", "migrations"}, []string{"github.com/mattn/go-sqlite3", "github.com/golang-migrate/migrate/v4"}, adapterReason},
	{"adapters/fs", []string{"domain", "ports"}, []string{"golang.org/x/sys", "golang.org/x/sync"}, adapterReason},
	{"adapters/system", []string{"domain", "ports"}, []string{"golang.org/x/sys"}, adapterReason},
	{"adapters/http", []string{"domain", "ports", "app"}, []string{"github.com/labstack/echo/v4"}, adapterReason + "; http drives the use cases"},
	{"adapters/cli", []string{"domain", "ports", "app"}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/mattn/go-isatty"}, adapterReason + "; cli drives the use cases"},
	{"adapters/yaml", []string{"domain", "ports"}, []string{"go.yaml.in/yaml/v3"}, adapterReason},
	{"adapters", []string{"domain", "ports"}, nil, adapterReason},
	{"bootstrap", []string{"*"}, []string{"go.uber.org/fx", "go.uber.org/dig"}, "bootstrap composes everything, and is the only room that knows fx and the dig below it"},
	{"cmd", []string{"bootstrap", "adapters/cli"}, nil, "a command only runs the command line over what bootstrap composes"},
	{"migrations", nil, nil, "migrations are SQL files and the embedding of them"},
	{"examples", nil, nil, "examples are project files"},
	{"tests", []string{"*"}, []string{"*"}, "tests may look everywhere"},
}

// testModules may be imported by the test files of every room.
var testModules = []string{"go.uber.org/goleak", "github.com/rogpeppe/go-internal", "github.com/stretchr/testify"}

// roomOf is the deepest room that holds the folder. Each adapter that the table does not name is a room of its own, under the rule of
// adapters.
func roomOf(path string) (room, bool) {
	var best room
	found := false
	for _, r := range rooms {
		if within(path, r.path) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	if best.path == "adapters" {
		best.path = strings.Join(strings.SplitN(path, "/", 3)[:min(2, strings.Count(path, "/")+1)], "/")
	}
	return best, found
}

// within tells whether path is dir or below it. Nothing but the root itself is within ".".
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// relative is an import path of this repository as a folder; ok is false for any other.
func relative(importPath string) (path string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// standard tells whether the import path is the standard library's: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// imported is what a package imports, its test files apart.
type imported struct {
	// path is the package's folder.
	path        string
	imports     []string
	testImports []string
}

// brokenImports are the imports of the package that the dependency rule forbids.
func brokenImports(p imported) []string {
	r, ok := roomOf(p.path)
	if !ok {
		return []string{fmt.Sprintf("%s is in no room of the table in tests/arch: a new room needs a Decision in ARCHITECTURE.md", p.path)}
	}
	var broken []string
	for _, i := range p.imports {
		if !allowed(r, i) {
			broken = append(broken, fmt.Sprintf("%s imports %s: %s", p.path, i, r.reason))
		}
	}
	for _, i := range p.testImports {
		if !allowed(r, i) && !allowedInTests(r, i) {
			broken = append(broken, fmt.Sprintf("a test in %s imports %s: %s; a test across rooms belongs in tests/", p.path, i, r.reason))
		}
	}
	return broken
}

func allowed(r room, importPath string) bool {
	if path, ours := relative(importPath); ours {
		if within(path, r.path) || slices.Contains(r.rooms, "*") {
			return true
		}
		return slices.ContainsFunc(r.rooms, func(other string) bool { return within(path, other) })
	}
	if standard(importPath) {
		return r.path != "domain" || !impure(importPath)
	}
	return slices.Contains(r.modules, "*") || slices.ContainsFunc(r.modules, func(m string) bool { return within(importPath, m) })
}

// allowedInTests are the further imports of a room's own test files: the twins, a few test modules, and for the domain whatever the
// standard library has.
func allowedInTests(r room, importPath string) bool {
	if path, ours := relative(importPath); ours {
		return r.path != "domain" && r.path != "ports" && within(path, "adapters/mem")
	}
	return standard(importPath) || slices.ContainsFunc(testModules, func(m string) bool { return within(importPath, m) })
}

// impureRoots are the parts of the standard library, with all below them, that the domain may not use.
var impureRoots = []string{"context", "log", "os", "net", "database", "math/rand", "crypto/rand", "sync", "runtime", "syscall", "unsafe",
	"plugin", "expvar", "io/ioutil", "testing"}

func impure(importPath string) bool {
	return slices.ContainsFunc(impureRoots, func(root string) bool { return within(importPath, root) })
}

// forbiddenNames say nothing about what a package is for.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "pkg", "internal", "misc", "shared", "base"}

// vagueNames are the folders on the package's path, or its name, that nobody could guess the contents of.
func vagueNames(path, name string) []string {
	var broken []string
	for _, element := range append(strings.Split(path, "/"), name) {
		if slices.Contains(forbiddenNames, strings.TrimSuffix(element, "_test")) {
			broken = append(broken, fmt.Sprintf("%s (package %s): %q does not say what it holds", path, name, element))
		}
	}
	return slices.Compact(broken)
}
