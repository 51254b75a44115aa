package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"leapview/domain/project"
)

// Status says what becomes of a part of a project.
type Status string

// The statuses. A part is affected when it did not change itself but reads what did.
const (
	Added    Status = "added"
	Changed  Status = "changed"
	Affected Status = "affected"
	Removed  Status = "removed"
	Same     Status = "same"
)

// Change is what becomes of one source, model or endpoint.
type Change struct {
	// Part is source, model or endpoint.
	Part   string
	Name   string
	Status Status
	// Reasons say what changed, for people; empty when nothing did.
	Reasons []string
}

// Compare gives what becomes of every part when next takes the place of old: sources first, then models in the order they are built in,
// then endpoints, each with those that go behind those that stay. Without an old release everything is added.
func Compare(old *Release, next Release) []Change {
	var before Release
	if old != nil {
		before = *old
	}
	var changes []Change
	moved := map[string]bool{}
	add := func(part, name string, known bool, reasons []string, reads []string) {
		c := Change{Part: part, Name: name, Status: Same, Reasons: reasons}
		switch {
		case !known:
			c.Status, c.Reasons = Added, nil
		case len(reasons) > 0:
			c.Status = Changed
		}
		var through []string
		for _, r := range reads {
			if moved[r] {
				through = append(through, r)
			}
		}
		if c.Status == Same && len(through) > 0 {
			c.Status, c.Reasons = Affected, []string{"it reads " + strings.Join(through, ", ")}
		}
		if part != "endpoint" {
			// Other checks and bounds find the same rows.
			moved[name] = c.Status != Same && !slices.Equal(c.Reasons, []string{checksChanged}) && !slices.Equal(c.Reasons, []string{boundsChanged})
		}
		changes = append(changes, c)
	}
	gone := func(part string, names []string) {
		for _, n := range names {
			changes = append(changes, Change{Part: part, Name: n, Status: Removed})
		}
	}

	for _, s := range next.Project.Sources {
		i := slices.IndexFunc(before.Project.Sources, func(o project.Source) bool { return o.Name == s.Name })
		var reasons []string
		if i >= 0 {
			reasons = sourceChanges(before.Project.Sources[i], s)
		}
		add("source", s.Name, i >= 0, reasons, nil)
	}
	gone("source", missing(before.Project.Sources, next.Project.Sources, func(s project.Source) string { return s.Name }))
	for _, m := range next.Models {
		i := slices.IndexFunc(before.Models, func(o Model) bool { return o.Name == m.Name })
		var reasons []string
		if i >= 0 {
			reasons = modelChanges(before.Models[i], m)
		}
		add("model", m.Name, i >= 0, reasons, m.Reads)
	}
	gone("model", missing(before.Models, next.Models, func(m Model) string { return m.Name }))
	for _, e := range next.Endpoints {
		i := slices.IndexFunc(before.Endpoints, func(o Endpoint) bool { return o.Name == e.Name })
		var reasons []string
		if i >= 0 {
			reasons = endpointChanges(before.Endpoints[i], e)
		}
		add("endpoint", e.Name, i >= 0, reasons, e.Reads)
	}
	gone("endpoint", missing(before.Endpoints, next.Endpoints, func(e Endpoint) string { return e.Name }))
	return changes
}

// missing are the names that only the old ones have.
func missing[T any](old, next []T, name func(T) string) []string {
	var names []string
	for _, o := range old {
		if !slices.ContainsFunc(next, func(n T) bool { return name(n) == name(o) }) {
			names = append(names, name(o))
		}
	}
	return names
}

const boundsChanged = "its bounds changed"

func sourceChanges(old, next project.Source) []string {
	reasons := columnChanges(old.Columns, next.Columns)
	for _, c := range next.Columns {
		if i := slices.IndexFunc(old.Columns, func(o project.Column) bool { return o.Name == c.Name }); i >= 0 && (old.Columns[i].From != c.From || old.Columns[i].Format != c.Format) {
			reasons = append(reasons, fmt.Sprintf("column %s is read in another way", c.Name))
		}
	}
	old.Columns, next.Columns = nil, nil
	old.At, next.At = project.Position{}, project.Position{}
	old.Description, next.Description = "", ""
	if old.Location != next.Location {
		reasons = append(reasons, fmt.Sprintf("its location is %s instead of %s", next.Location, old.Location))
	}
	old.Location, next.Location = "", ""
	bounded := !reflect.DeepEqual(old.Bounds, next.Bounds)
	old.Bounds, next.Bounds = project.Bounds{}, project.Bounds{}
	if !reflect.DeepEqual(old, next) {
		reasons = append(reasons, "it is read in another way")
	}
	if bounded {
		reasons = append(reasons, boundsChanged)
	}
	return reasons
}

const checksChanged = "its checks changed"

func modelChanges(old, next Model) []string {
	reasons := columnChanges(old.Columns, next.Columns)
	if old.Statement.SQL != next.Statement.SQL {
		reasons = append(reasons, "its SQL changed")
	}
	reasons = append(reasons, fillingChanges(old, next)...)
	rules := func(m Model) (texts []string) {
		for _, c := range m.Checks {
			texts = append(texts, c.Definition())
		}
		return texts
	}
	if !slices.Equal(rules(old), rules(next)) {
		reasons = append(reasons, checksChanged)
	}
	return reasons
}

// fillingChanges says what is other about how the model's table is filled.
func fillingChanges(old, next Model) []string {
	var reasons []string
	mode := func(m Model) project.Mode {
		if !m.Filling.Incremental() {
			return project.ModeFull
		}
		return m.Filling.Mode
	}
	if mode(old) != mode(next) {
		return []string{fmt.Sprintf("its mode is %s instead of %s", mode(next), mode(old))}
	}
	if old.Input != next.Input {
		reasons = append(reasons, fmt.Sprintf("its input is %s instead of %s", next.Input, old.Input))
	}
	if !slices.Equal(old.Filling.Key, next.Filling.Key) {
		reasons = append(reasons, "its key is another one")
	}
	if old.Filling.DeletedWhen.SQL != next.Filling.DeletedWhen.SQL {
		reasons = append(reasons, "which rows are deleted changed")
	}
	return reasons
}

func endpointChanges(old, next Endpoint) []string {
	reasons := columnChanges(old.Columns, next.Columns)
	if old.Statement.SQL != next.Statement.SQL {
		reasons = append(reasons, "its SQL changed")
	}
	if old.Limit != next.Limit {
		reasons = append(reasons, fmt.Sprintf("its limit is %d instead of %d rows", next.Limit, old.Limit))
	}
	bare := func(params []project.Param) []project.Param {
		out := slices.Clone(params)
		for i := range out {
			out[i].At, out[i].Description = project.Position{}, ""
		}
		return out
	}
	if !reflect.DeepEqual(bare(old.Params), bare(next.Params)) {
		reasons = append(reasons, "its parameters changed")
	}
	// Rows may come in another order, or a call that was accepted be refused.
	if !reflect.DeepEqual(old.OrderBy.Unplaced(), next.OrderBy.Unplaced()) {
		reasons = append(reasons, "how it is sorted changed")
	}
	choice := func(e Endpoint) (names []string) {
		for _, c := range e.Endpoint.Columns.Allow {
			names = append(names, c.Name)
		}
		return names
	}
	if !slices.Equal(choice(old), choice(next)) {
		reasons = append(reasons, "which columns can be picked changed")
	}
	return reasons
}

// columnChanges says which columns are new, gone, or of another type.
func columnChanges(old, next []project.Column) []string {
	var reasons []string
	for _, c := range next {
		i := slices.IndexFunc(old, func(o project.Column) bool { return o.Name == c.Name })
		switch {
		case i < 0:
			reasons = append(reasons, fmt.Sprintf("column %s is new", c.Name))
		case old[i].Type != c.Type:
			reasons = append(reasons, fmt.Sprintf("column %s is %s instead of %s", c.Name, c.Type, old[i].Type))
		}
	}
	for _, n := range missing(old, next, func(c project.Column) string { return c.Name }) {
		reasons = append(reasons, fmt.Sprintf("column %s is gone", n))
	}
	same := func(cs []project.Column) (names []string) {
		for _, c := range cs {
			names = append(names, c.Name)
		}
		return names
	}
	if len(reasons) == 0 && !slices.Equal(same(old), same(next)) {
		reasons = append(reasons, "its columns come in another order")
	}
	return reasons
}
