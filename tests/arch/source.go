package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// source is one parsed file.
type source struct {
	// path is relative to the root, slash-separated.
	path string
	file *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// dir is the folder of the file.
func (s source) dir() string { return filepath.ToSlash(filepath.Dir(s.path)) }

// importNames are the names by which the file knows the package of this import path. An import without a name of its own goes by its
// last element that is no version.
func (s source) importNames(importPath string) []string {
	var names []string
	for _, i := range s.file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil || path != importPath {
			continue
		}
		if i.Name != nil {
			names = append(names, i.Name.Name)
			continue
		}
		elements := strings.Split(path, "/")
		last := elements[len(elements)-1]
		if len(elements) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
			last = elements[len(elements)-2]
		}
		names = append(names, strings.TrimSuffix(last, "-go"))
	}
	return names
}

// uses calls found for every mention of a member of the package importPath.
func (s source) uses(importPath string, found func(member string, node *ast.SelectorExpr)) {
	names := s.importNames(importPath)
	if len(names) == 0 {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(names, x.Name) {
			found(sel.Sel.Name, sel)
		}
		return true
	})
}

// clockMembers are what package time offers that reads the clock or waits for it.
var clockMembers = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// impurities are what a file of the domain does that needs a clock or a second goroutine.
func impurities(s source) []string {
	if !within(s.path, "domain") || s.isTest() {
		return nil
	}
	var broken []string
	s.uses("time", func(member string, _ *ast.SelectorExpr) {
		if slices.Contains(clockMembers, member) {
			broken = append(broken, fmt.Sprintf("%s uses time.%s: the time is an argument in the domain", s.path, member))
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt:
			broken = append(broken, fmt.Sprintf("%s starts a goroutine: the domain is functions over values", s.path))
		case *ast.ChanType:
			broken = append(broken, fmt.Sprintf("%s has a channel: the domain is functions over values", s.path))
		}
		return true
	})
	return broken
}

// exits are the places outside of cmd and of test files where the process is ended.
func exits(s source) []string {
	if within(s.path, "cmd") || s.isTest() {
		return nil
	}
	var broken []string
	add := func(what string) {
		broken = append(broken, fmt.Sprintf("%s calls %s: only cmd ends the process, after everything was closed", s.path, what))
	}
	s.uses("os", func(member string, _ *ast.SelectorExpr) {
		if member == "Exit" {
			add("os.Exit")
		}
	})
	s.uses("log", func(member string, _ *ast.SelectorExpr) {
		if strings.HasPrefix(member, "Fatal") {
			add("log." + member)
		}
	})
	return broken
}

// duckDBDriver is the engine's Go driver.
const duckDBDriver = "github.com/duckdb/duckdb-go/v2"

// constructsDuckDB tells whether the file makes a DuckDB instance.
func constructsDuckDB(s source) bool {
	found := false
	s.uses(duckDBDriver, func(member string, _ *ast.SelectorExpr) {
		found = found || member == "NewConnector"
	})
	for _, name := range s.importNames("database/sql") {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Open" {
				return true
			}
			x, isIdent := sel.X.(*ast.Ident)
			driver, isText := call.Args[0].(*ast.BasicLit)
			found = found || isIdent && x.Name == name && isText && driver.Kind == token.STRING && strings.Trim(driver.Value, "\"`") == "duckdb"
			return true
		})
	}
	return found
}

// constructions says what is wrong with the places that construct DuckDB: there must be exactly one.
func constructions(sources []source) []string {
	var places []string
	for _, s := range sources {
		if !s.isTest() && constructsDuckDB(s) {
			places = append(places, s.path)
		}
	}
	if len(places) == 1 {
		return nil
	}
	return []string{fmt.Sprintf("DuckDB is constructed in %d files (%s), and must be in exactly one: a process has one engine", len(places), strings.Join(places, ", "))}
}

// undocumented are the packages, by folder, in which no file has a package comment that begins as Go's do.
func undocumented(sources []source) []string {
	documented := map[string]bool{}
	for _, s := range sources {
		doc := s.file.Doc.Text()
		ok := strings.HasPrefix(doc, "Package "+s.file.Name.Name+" ") || s.file.Name.Name == "main" && strings.HasPrefix(doc, "Command ")
		documented[s.dir()] = documented[s.dir()] || ok
	}
	var broken []string
	for dir, ok := range documented {
		if !ok {
			broken = append(broken, fmt.Sprintf("%s has no package comment: say what it owns, its invariant, and what it does not know", dir))
		}
	}
	slices.Sort(broken)
	return broken
}
