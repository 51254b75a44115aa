package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// set is a closed set of the domain: the constants of one type, or the types of one package that implement one of its interfaces.
type set struct {
	// name is the type or interface, as Go writes it outside of its package.
	name    string
	members []string
}

// memberSets gives, by folder and member, the sets of the domain that a member belongs to.
type memberSets map[string]map[string][]set

// openSet is asked for in part wherever an error is met; what maps all of it is proved complete over its own list.
const openSet = "domain/fail.Kind"

// closedSets finds the sets of the domain. A set of one is none: there is nothing to choose.
func closedSets(sources []source) memberSets {
	found := memberSets{}
	byDir := map[string][]source{}
	for _, s := range sources {
		if within(s.path, "domain") && !s.isTest() {
			byDir[s.dir()] = append(byDir[s.dir()], s)
		}
	}
	for dir, files := range byDir {
		sets := constantSets(files)
		for name, types := range implementations(files) {
			sets[name] = types
		}
		found[dir] = map[string][]set{}
		for name, members := range sets {
			if len(members) < 2 || dir+"."+name == openSet {
				continue
			}
			for _, m := range members {
				found[dir][m] = append(found[dir][m], set{path.Base(dir) + "." + name, members})
			}
		}
	}
	return found
}

// constantSets are the constants by the type that they were declared with, or that they inherit from the line above.
func constantSets(files []source) map[string][]string {
	sets := map[string][]string{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			of := ""
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if v.Type != nil || len(v.Values) > 0 {
					of = ""
				}
				if t, ok := v.Type.(*ast.Ident); ok && !slices.Contains(basicTypes, t.Name) {
					of = t.Name
				}
				for _, name := range v.Names {
					if of != "" {
						sets[of] = append(sets[of], name.Name)
					}
				}
			}
		}
	}
	return sets
}

var basicTypes = []string{"string", "bool", "byte", "rune", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}

// implementations are, by interface of the package, its exported types that have all of the interface's methods, by themselves or from
// what they embed.
func implementations(files []source) map[string][]string {
	methods, embeds, interfaces := map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					name := typeName(d.Recv.List[0].Type)
					methods[name] = append(methods[name], d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					switch body := t.Type.(type) {
					case *ast.InterfaceType:
						for _, m := range body.Methods.List {
							for _, name := range m.Names {
								interfaces[t.Name.Name] = append(interfaces[t.Name.Name], name.Name)
							}
						}
					case *ast.StructType:
						for _, f := range body.Fields.List {
							if len(f.Names) == 0 {
								embeds[t.Name.Name] = append(embeds[t.Name.Name], typeName(f.Type))
							}
						}
					}
				}
			}
		}
	}
	var has func(name, method string) bool
	has = func(name, method string) bool {
		return slices.Contains(methods[name], method) || slices.ContainsFunc(embeds[name], func(e string) bool { return has(e, method) })
	}
	sets := map[string][]string{}
	for i, wanted := range interfaces {
		for name := range methods {
			if ast.IsExported(name) && !slices.ContainsFunc(wanted, func(m string) bool { return !has(name, m) }) {
				sets[i] = append(sets[i], name)
			}
		}
		slices.Sort(sets[i])
	}
	return sets
}

// typeName is the name of a type or of what it points to, without its package.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// overlooked are the switches of a file that name some members of a closed set and not all. A default does not excuse one: it would take
// in a member that is added later, without anybody having thought of it.
func overlooked(s source, sets memberSets) []string {
	var broken []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.SwitchStmt:
			if n.Tag != nil {
				body = n.Body
			}
		case *ast.TypeSwitchStmt:
			body = n.Body
		}
		if body == nil {
			return true
		}
		named, over := map[string]bool{}, map[string]set{}
		for _, c := range body.List {
			for _, e := range c.(*ast.CaseClause).List {
				name, dir := typeName(e), s.dir()
				if star, ok := e.(*ast.StarExpr); ok {
					e = star.X
				}
				if sel, ok := e.(*ast.SelectorExpr); ok {
					dir = s.folderOf(sel.X)
				}
				for _, of := range sets[dir][name] {
					over[of.name] = of
				}
				named[name] = true
			}
		}
		for _, of := range over {
			var missing []string
			for _, m := range of.members {
				if !named[m] {
					missing = append(missing, m)
				}
			}
			if len(missing) > 0 {
				broken = append(broken, fmt.Sprintf("%s: a switch over %s does not say what becomes of %s: name every member, so that a new one is thought of",
					s.path, of.name, strings.Join(missing, ", ")))
			}
		}
		return true
	})
	return broken
}

// folderOf is the folder of this repository whose package x names in the file, or "".
func (s source) folderOf(x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, i := range s.file.Imports {
		importPath := strings.Trim(i.Path.Value, `"`)
		if dir, ours := relative(importPath); ours && slices.Contains(s.importNames(importPath), id.Name) {
			return dir
		}
	}
	return ""
}
