package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"leapview/domain/project"
)

func artifact(name string, content ...int) Artifact {
	return Artifact{name, project.DigestOf([]byte(fmt.Sprint(content)))}
}

// workRelease has a full model over two sources, a model of each mode over the first, and a full one over the appended one.
func workRelease() Release {
	model := func(name string, mode project.Mode, reads ...string) Model {
		m := Model{Model: project.Model{Name: name, Statement: project.Statement{SQL: "SELECT " + name}}, Reads: reads, Table: name + "__1"}
		if m.Filling.Mode = mode; mode != "" {
			m.Input = "s"
		}
		if mode == project.ModeUpsert || mode == project.ModeReplace {
			m.Filling.Key = []string{"k"}
		}
		return m
	}
	return Release{
		Project: project.Project{Sources: []project.Source{{Name: "s", Location: "s*.csv"}, {Name: "t", Location: "t.csv"}}},
		Models: []Model{model("full", "", "s", "t"), model("appended", project.ModeAppend, "s"), model("upserted", project.ModeUpsert, "s", "t"),
			model("parts", project.ModeReplace, "s"), model("above", "", "appended"), model("other", "", "t")},
	}
}

// Proves which action each change asks for, the reason that is said, and what is read for it.
func TestDecide(t *testing.T) {
	base := func() (Base, Release, map[string][]Artifact) {
		old, next := workRelease(), workRelease()
		files := map[string][]Artifact{"s": {artifact("s1.csv", 1), artifact("s2.csv", 2)}, "t": {artifact("t.csv", 9)}}
		return Base{Release: &old, Files: maps.Clone(files)}, next, files
	}
	for name, tc := range map[string]struct {
		change func(b *Base, r *Release, files map[string][]Artifact)
		want   string
	}{
		"nothing": {func(*Base, *Release, map[string][]Artifact) {}, ""},
		"the first build": {func(b *Base, _ *Release, _ map[string][]Artifact) { *b = Base{Lost: "nothing is active yet"} },
			`rebuild full: nothing is active yet
rebuild appended [0 1]: nothing is active yet
rebuild upserted [0 1]: nothing is active yet
rebuild parts [0 1]: nothing is active yet
rebuild above: nothing is active yet
rebuild other: nothing is active yet
s whole: s1.csv | s2.csv
t whole: t.csv
`},
		"a new file": {func(_ *Base, _ *Release, f map[string][]Artifact) { f["s"] = append(f["s"], artifact("s3.csv", 3)) },
			`rebuild full: s3.csv of s is new
append appended [2]: s3.csv of s is new
upsert upserted [2]: s3.csv of s is new
replace_partitions parts [2]: s3.csv of s is new
rebuild above: it reads appended, which gets other rows
s whole: s1.csv | s2.csv | s3.csv
t whole: t.csv
`},
		"a new file, and nothing that needs the others": {func(b *Base, r *Release, f map[string][]Artifact) {
			r.Models, b.Release.Models = r.Models[1:4], b.Release.Models[1:4]
			f["s"] = append(f["s"], artifact("s3.csv", 3), artifact("s4.csv", 4))
		},
			`append appended [0 1]: 2 files of s are new
upsert upserted [0 1]: 2 files of s are new
replace_partitions parts [0 1]: 2 files of s are new
s: s3.csv | s4.csv
t whole: t.csv
`},
		"a file that is gone": {func(_ *Base, _ *Release, f map[string][]Artifact) { f["s"] = f["s"][:1] },
			`rebuild full: s2.csv of s is gone
rebuild appended [0]: s2.csv of s is gone or changed, and its rows go with it
rebuild above: it reads appended, which is built anew
s whole: s1.csv
t whole: t.csv
`},
		"a file that changed": {func(_ *Base, _ *Release, f map[string][]Artifact) {
			f["s"] = []Artifact{artifact("s1.csv", 1), artifact("s2.csv", 22)}
		},
			`rebuild full: s2.csv of s changed
rebuild appended [0 1]: s2.csv of s is gone or changed, and its rows go with it
upsert upserted [1]: s2.csv of s is new
replace_partitions parts [1]: s2.csv of s is new
rebuild above: it reads appended, which is built anew
s whole: s1.csv | s2.csv
t whole: t.csv
`},
		"a file that has another name": {func(_ *Base, _ *Release, f map[string][]Artifact) {
			f["s"] = []Artifact{artifact("s1.csv", 1), artifact("z.csv", 2)}
		}, ""},
		"a file delivered twice": {func(_ *Base, _ *Release, f map[string][]Artifact) {
			f["s"] = append(f["s"], artifact("z.csv", 2))
		}, "z.csv of s repeats s2.csv\n"},
		"a source that another one is looked up in": {func(_ *Base, _ *Release, f map[string][]Artifact) { f["t"] = []Artifact{artifact("t.csv", 8)} },
			`rebuild full: t.csv of t changed
rebuild upserted [0 1]: t.csv of t changed
rebuild other: t.csv of t changed
s whole: s1.csv | s2.csv
t whole: t.csv
`},
		"a source's declaration": {func(_ *Base, r *Release, _ map[string][]Artifact) { r.Project.Sources[0].Delimiter = ";" },
			`rebuild full: it reads s, which changed: it is read in another way
rebuild appended [0 1]: it reads s, which changed: it is read in another way
rebuild upserted [0 1]: it reads s, which changed: it is read in another way
rebuild parts [0 1]: it reads s, which changed: it is read in another way
rebuild above: it reads appended, which is built anew
s whole: s1.csv | s2.csv
t whole: t.csv
`},
		"bounds and checks": {func(_ *Base, r *Release, _ map[string][]Artifact) {
			r.Project.Sources[0].Bounds.MinRows = 1
			r.Models[1].Checks = []project.Check{{Kind: project.NotNull, Columns: []string{"k"}}}
		}, ""},
		"SQL, mode, key": {func(b *Base, r *Release, _ map[string][]Artifact) {
			r.Models[1].Statement.SQL = "SELECT 2"
			r.Models[2].Filling.Key = []string{"l"}
			r.Models[3].Filling, r.Models[3].Input = project.Filling{}, ""
			b.Release.Models = b.Release.Models[:5]
		},
			`rebuild appended [0 1]: its SQL changed
rebuild upserted [0 1]: its key is another one
rebuild parts: its mode is full instead of replace_partitions
rebuild above: it reads appended, which is built anew
rebuild other: it is a new model
s whole: s1.csv | s2.csv
t whole: t.csv
`},
		"volatile": {func(_ *Base, r *Release, _ map[string][]Artifact) {
			r.Models[1].Volatile, r.Models[5].Volatile = true, true
		},
			"rebuild other: its statement gives other values at other times\nt whole: t.csv\n"},
		"an endpoint": {func(_ *Base, r *Release, _ map[string][]Artifact) { r.Endpoints = []Endpoint{{}} }, ""},
	} {
		b, next, files := base()
		tc.change(&b, &next, files)
		w := Decide(b, next, files)
		if got := described(w); got != tc.want {
			t.Errorf("%s:\n%swant\n%s", name, got, tc.want)
		}
		if idle := !strings.Contains(described(w), ": ") || tc.want == ""; w.Idle() != idle {
			t.Errorf("%s: idle is %t", name, w.Idle())
		}
	}
}

func described(w Work) string {
	var b strings.Builder
	for _, s := range w.Steps {
		if s.Action == Keep {
			continue
		}
		fmt.Fprintf(&b, "%s %s", s.Action, s.Model.Name)
		if s.Parts != nil {
			fmt.Fprint(&b, " ", s.Parts)
		}
		fmt.Fprintf(&b, ": %s\n", s.Reason)
	}
	for _, s := range w.Stages {
		parts := make([]string, len(s.Parts))
		for i, p := range s.Parts {
			var names []string
			for _, a := range p {
				names = append(names, a.Name)
			}
			parts[i] = strings.Join(names, " ")
		}
		whole := ""
		if s.Whole {
			whole = " whole"
		}
		fmt.Fprintf(&b, "%s%s: %s\n", s.Source.Name, whole, strings.Join(parts, " | "))
	}
	for _, r := range w.Repeats {
		fmt.Fprintf(&b, "%s of %s repeats %s\n", r.Name, r.Source, r.Same)
	}
	return b.String()
}

// The world of TestDecideKeepsTruth: a row is key × 1000 + value, a file holds rows, and a model's statement adds its version to each row's value.
type world struct {
	content map[project.Digest][]int
	// arrived are, by model, the files that its table was made from since it was built anew, in their order.
	arrived map[string][]project.Digest
	tables  map[string][]int
	base    Base
}

// Proves, over random histories of files that come, change, go and come back, of models and modes that change, and of refreshes that are
// given up, that doing what is decided leaves in each table exactly what building it from the files in the order of their arrival gives.
func TestDecideKeepsTruth(t *testing.T) {
	actions := map[Action]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := world{content: map[project.Digest][]int{}, arrived: map[string][]project.Digest{}, tables: map[string][]int{}, base: Base{Lost: "nothing is active yet"}}
		next := workRelease()
		files := map[string][]Artifact{"s": nil, "t": {w.file(r, "t.csv")}}
		for range 8 {
			switch r.IntN(7) {
			case 0:
				files["t"] = []Artifact{w.file(r, "t.csv")}
			case 1:
				m := &next.Models[r.IntN(len(next.Models))]
				m.Statement.SQL += "+"
			case 2:
				if n := len(files["s"]); n > 0 {
					files["s"] = slices.Delete(slices.Clone(files["s"]), r.IntN(n), n)
				}
			case 3:
				m := &next.Models[1+r.IntN(3)]
				m.Filling.Mode = []project.Mode{project.ModeAppend, project.ModeUpsert, project.ModeReplace}[r.IntN(3)]
			default:
			}
			for range r.IntN(3) {
				name := fmt.Sprintf("s%d.csv", r.IntN(6))
				files["s"] = append(slices.DeleteFunc(slices.Clone(files["s"]), func(a Artifact) bool { return a.Name == name }), w.file(r, name))
			}
			slices.SortFunc(files["s"], func(a, b Artifact) int { return strings.Compare(a.Name, b.Name) })
			work := Decide(w.base, next, files)
			for _, s := range work.Steps {
				actions[s.Action]++
			}
			after := w.do(t, work, next)
			if r.IntN(4) == 0 {
				// The attempt is given up: nothing of it counts.
				continue
			}
			for _, m := range next.Models {
				want := w.truth(m, next, files)
				if got := after[m.Name]; !slices.Equal(sorted(got), sorted(want)) {
					t.Fatalf("seed %d: %s has %v, want %v\n%s", seed, m.Name, got, want, described(work))
				}
			}
			old := next
			old.Models = slices.Clone(next.Models)
			w.commit(after, Base{Release: &old, Files: map[string][]Artifact{"s": files["s"], "t": files["t"]}}, next, files)
		}
	}
	for _, a := range []Action{Keep, Rebuild, Append, Upsert, Replace} {
		if actions[a] < 100 {
			t.Errorf("%s was decided %d times: the histories prove little", a, actions[a])
		}
	}
}

func sorted(rows []int) []int { return slices.Sorted(slices.Values(rows)) }

// file makes a file of few possible contents, so that contents repeat.
func (w *world) file(r *rand.Rand, name string) Artifact {
	n := r.IntN(4)
	rows := []int{1000*n + r.IntN(3), 1000*(n+1) + 5}
	a := artifact(name, rows...)
	w.content[a.SHA256] = rows
	return a
}

func version(m Model) int { return strings.Count(m.Statement.SQL, "+") }

// run is the model's statement over rows.
func run(m Model, rows []int) []int {
	out := make([]int, len(rows))
	for i, row := range rows {
		out[i] = row + 10*version(m)
	}
	return out
}

// fold works one file's rows into the table.
func fold(mode project.Mode, table, rows []int) []int {
	if mode != project.ModeAppend {
		table = slices.DeleteFunc(slices.Clone(table), func(row int) bool {
			return slices.ContainsFunc(rows, func(x int) bool { return x/1000 == row/1000 })
		})
	}
	return append(slices.Clone(table), rows...)
}

// do is what the lake does with the work: it sees nothing but the work and the base's tables.
func (w *world) do(t *testing.T, work Work, next Release) map[string][]int {
	t.Helper()
	staged := map[string][][]int{}
	for _, s := range work.Stages {
		parts := [][]int{}
		for _, p := range s.Parts {
			var rows []int
			for _, a := range p {
				rows = append(rows, w.content[a.SHA256]...)
			}
			parts = append(parts, rows)
		}
		staged[s.Source.Name] = parts
	}
	after := map[string][]int{}
	for _, s := range work.Steps {
		m := s.Model
		switch {
		case s.Action == Keep:
			after[m.Name] = w.tables[m.Name]
		case m.Input == "":
			var rows []int
			for _, name := range m.Reads {
				if table, built := after[name]; built {
					rows = append(rows, table...)
				} else {
					rows = append(rows, slices.Concat(staged[name]...)...)
				}
			}
			after[m.Name] = run(m, rows)
		default:
			table := w.tables[m.Name]
			if s.Action == Rebuild {
				table = nil
			}
			for _, p := range s.Parts {
				rows := run(m, staged[m.Input][p])
				for _, name := range m.Reads {
					if name != m.Input {
						rows = looked(rows, slices.Concat(staged[name]...))
					}
				}
				table = fold(m.Filling.Mode, table, rows)
			}
			after[m.Name] = table
		}
	}
	return after
}

// looked adds what is found in another source.
func looked(rows, other []int) []int {
	out := slices.Clone(rows)
	for i := range out {
		out[i] += 100 * (len(other) + other[0]%10)
	}
	return out
}

// arrivals are the files that the model's table is made of after a refresh, told from history alone.
func (w *world) arrivals(m Model, next Release, files map[string][]Artifact) []project.Digest {
	var now []project.Digest
	for _, a := range files["s"] {
		if !slices.Contains(now, a.SHA256) {
			now = append(now, a.SHA256)
		}
	}
	if m.Filling.Mode == project.ModeAppend || w.base.Release == nil {
		return now
	}
	i := slices.IndexFunc(w.base.Release.Models, func(o Model) bool { return o.Name == m.Name })
	old := w.base.Release.Models[i]
	other := func(files []Artifact) string { return fmt.Sprint(files) }
	if old.Statement.SQL != m.Statement.SQL || old.Filling.Mode != m.Filling.Mode || slices.Contains(m.Reads, "t") && other(w.base.Files["t"]) != other(files["t"]) {
		return now
	}
	arrived := slices.Clone(w.arrived[m.Name])
	for _, d := range now {
		if !slices.ContainsFunc(w.base.Files["s"], func(a Artifact) bool { return a.SHA256 == d }) {
			arrived = append(arrived, d)
		}
	}
	return arrived
}

// truth is what the model's table has to hold.
func (w *world) truth(m Model, next Release, files map[string][]Artifact) []int {
	all := func(source string) (rows []int) {
		var seen []project.Digest
		for _, a := range files[source] {
			if !slices.Contains(seen, a.SHA256) {
				seen = append(seen, a.SHA256)
				rows = append(rows, w.content[a.SHA256]...)
			}
		}
		return rows
	}
	if m.Input == "" {
		var rows []int
		for _, name := range m.Reads {
			if i := slices.IndexFunc(next.Models, func(o Model) bool { return o.Name == name }); i >= 0 {
				rows = append(rows, w.truth(next.Models[i], next, files)...)
			} else {
				rows = append(rows, all(name)...)
			}
		}
		return run(m, rows)
	}
	var table []int
	for _, d := range w.arrivals(m, next, files) {
		rows := run(m, w.content[d])
		if slices.Contains(m.Reads, "t") {
			rows = looked(rows, all("t"))
		}
		table = fold(m.Filling.Mode, table, rows)
	}
	return table
}

func (w *world) commit(after map[string][]int, base Base, next Release, files map[string][]Artifact) {
	arrived := map[string][]project.Digest{}
	for _, m := range next.Models {
		if m.Input != "" {
			arrived[m.Name] = w.arrivals(m, next, files)
		}
	}
	w.tables, w.base, w.arrived = after, base, arrived
}
