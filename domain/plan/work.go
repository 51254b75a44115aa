package plan

import (
	"fmt"
	"slices"
	"strings"

	"leapview/domain/project"
)

// Action is what a refresh does to a model's table.
type Action string

// The actions.
const (
	// Keep leaves the table as it is at the base.
	Keep Action = "keep"
	// Rebuild empties the table and fills it from everything that the statement reads.
	Rebuild Action = "rebuild"
	// Append, Upsert and Replace work what the statement gives of new files into the table as it is at the base.
	Append  Action = "append"
	Upsert  Action = "upsert"
	Replace Action = "replace_partitions"
)

// Artifact is a source file as work is decided over it: what it is, is its digest; its name orders and tells.
type Artifact struct {
	Name   string
	SHA256 project.Digest
}

// Base is what a refresh builds on: the active snapshot.
type Base struct {
	// Release is what the snapshot was built by; nil when nothing is active, or when it is not known any more. Lost then says why.
	Release *Release
	Lost    string
	// Files are, by source, those that the snapshot was built from.
	Files map[string][]Artifact
}

// Step is what becomes of one model.
type Step struct {
	Model  Model
	Action Action
	// Reason says why, for people; empty for Keep.
	Reason string
	// Parts are the parts of the staged input that the statement is run for one after another; nil when it is run once for everything.
	Parts []int
}

// Stage is what has to be read of one source. The files of one part stand together.
type Stage struct {
	Source project.Source
	Parts  [][]Artifact
	// Whole tells that all of the source's files are read, and not only those that are new.
	Whole bool
}

// Repeat is a file that is not read, because another one of the source has the same content.
type Repeat struct{ Source, Name, Same string }

// Work is what one refresh does.
type Work struct {
	// Steps has one entry a model, in the release's order.
	Steps []Step
	// Stages are in the order of the project's sources; a source that nothing needs is not among them.
	Stages []Stage
	// Unread are the sources of which nothing is read, because every model that reads them is kept, or none does.
	Unread  []project.Source
	Repeats []Repeat
}

// Idle tells that every table stays as it is.
func (w Work) Idle() bool {
	return !slices.ContainsFunc(w.Steps, func(s Step) bool { return s.Action != Keep })
}

// Decide gives the work that turns the base into what next makes of the files: every table is in the end what it would be if it had been
// built from the same files in the order of their arrival. files are, by source, those that are there now, sorted by name.
func Decide(base Base, next Release, files map[string][]Artifact) Work {
	var w Work
	news := map[string]delta{}
	for _, s := range next.Project.Sources {
		distinct, repeats := distinctOf(s.Name, files[s.Name])
		w.Repeats = append(w.Repeats, repeats...)
		news[s.Name] = deltaOf(base.Files[s.Name], distinct)
	}
	moved := sourcesMoved(base, next)
	for _, m := range next.Models {
		step := Step{Model: m, Action: Keep}
		if reason := rebuilds(base, m, moved, news); reason != "" {
			step.Action, step.Reason = Rebuild, reason
		} else if d := news[m.Input]; m.Input != "" && len(d.fresh) > 0 {
			step.Action, step.Reason = incremental(m.Filling.Mode), told(d.fresh, m.Input)+" new"
		}
		if step.Action != Keep {
			moved[m.Name] = "it reads " + m.Name + ", which " + becomes(step.Action)
		}
		w.Steps = append(w.Steps, step)
	}
	w.stage(next, news)
	return w
}

// incremental is the action of a mode that works new files in.
func incremental(m project.Mode) Action {
	switch m {
	case project.ModeAppend:
		return Append
	case project.ModeUpsert:
		return Upsert
	case project.ModeReplace:
		return Replace
	case project.ModeFull:
	}
	return Rebuild
}

// becomes says to people what an action does to what reads the model.
func becomes(a Action) string {
	if a == Rebuild {
		return "is built anew"
	}
	return "gets other rows"
}

// delta is how a source's files differ from those that the base was built from.
type delta struct {
	// all are those that are there now, and fresh those of them whose content the base has not read.
	all, fresh []Artifact
	// gone are contents that the base has read and that are not there any more.
	gone []Artifact
	// read are the contents that the base has read.
	read map[project.Digest]bool
}

func deltaOf(old, now []Artifact) delta {
	d := delta{all: now, read: contents(old)}
	for _, a := range now {
		if !d.read[a.SHA256] {
			d.fresh = append(d.fresh, a)
		}
	}
	there := contents(now)
	for _, a := range old {
		if !there[a.SHA256] {
			d.gone = append(d.gone, a)
		}
	}
	return d
}

func contents(files []Artifact) map[project.Digest]bool {
	set := make(map[project.Digest]bool, len(files))
	for _, f := range files {
		set[f.SHA256] = true
	}
	return set
}

// distinctOf leaves out files with the content of an earlier one.
func distinctOf(source string, files []Artifact) (distinct []Artifact, repeats []Repeat) {
	first := map[project.Digest]string{}
	for _, a := range files {
		if same, ok := first[a.SHA256]; ok {
			repeats = append(repeats, Repeat{source, a.Name, same})
			continue
		}
		first[a.SHA256] = a.Name
		distinct = append(distinct, a)
	}
	return distinct, repeats
}

// sourcesMoved gives, for each source that is read otherwise than for the base, what to say of a model that reads it.
func sourcesMoved(base Base, next Release) map[string]string {
	moved := map[string]string{}
	if base.Release == nil {
		return moved
	}
	for _, s := range next.Project.Sources {
		i := slices.IndexFunc(base.Release.Project.Sources, func(o project.Source) bool { return o.Name == s.Name })
		if i < 0 {
			moved[s.Name] = fmt.Sprintf("it reads %s, which is a new source", s.Name)
			continue
		}
		reasons := slices.DeleteFunc(sourceChanges(base.Release.Project.Sources[i], s), func(r string) bool { return r == boundsChanged })
		if len(reasons) > 0 {
			moved[s.Name] = fmt.Sprintf("it reads %s, which changed: %s", s.Name, strings.Join(reasons, "; "))
		}
	}
	return moved
}

// rebuilds says why the model's table is built anew; "" when it is not.
func rebuilds(base Base, m Model, moved map[string]string, news map[string]delta) string {
	if base.Release == nil {
		return base.Lost
	}
	i := slices.IndexFunc(base.Release.Models, func(o Model) bool { return o.Name == m.Name })
	if i < 0 {
		return "it is a new model"
	}
	reasons := slices.DeleteFunc(modelChanges(base.Release.Models[i], m), func(r string) bool { return r == checksChanged })
	if len(reasons) > 0 {
		return strings.Join(reasons, "; ")
	}
	for _, name := range m.Reads {
		if why, ok := moved[name]; ok {
			return why
		}
		d, isSource := news[name]
		switch {
		case !isSource:
		case name != m.Input:
			if why := d.says(name); why != "" {
				return why
			}
		case m.Filling.Mode == project.ModeAppend && len(d.gone) > 0:
			return told(d.gone, name) + " gone or changed, and " + rowsGo(d.gone)
		}
	}
	if m.Volatile && !m.Filling.Incremental() {
		return "its statement gives other values at other times"
	}
	return ""
}

// says what is other about the files; "" when nothing is.
func (d delta) says(source string) string {
	switch {
	case len(d.fresh) == 1 && len(d.gone) == 1 && d.fresh[0].Name == d.gone[0].Name:
		return d.fresh[0].Name + " of " + source + " changed"
	case len(d.fresh) > 0 && len(d.gone) > 0:
		return told(d.fresh, source) + " new, and " + told(d.gone, "") + " gone"
	case len(d.fresh) > 0:
		return told(d.fresh, source) + " new"
	case len(d.gone) > 0:
		return told(d.gone, source) + " gone"
	}
	return ""
}

// told names the one file, or counts them, with the verb.
func told(files []Artifact, source string) string {
	of := ""
	if source != "" {
		of = " of " + source
	}
	if len(files) == 1 {
		return files[0].Name + of + " is"
	}
	return fmt.Sprintf("%d files%s are", len(files), of)
}

func rowsGo(files []Artifact) string {
	if len(files) == 1 {
		return "its rows go with it"
	}
	return "their rows go with them"
}

// stage adds what the steps have to read, and tells each step which parts are its own.
func (w *Work) stage(next Release, news map[string]delta) {
	for _, s := range next.Project.Sources {
		d := news[s.Name]
		whole, needed, apart := false, false, false
		for _, step := range w.Steps {
			if !slices.Contains(step.Model.Reads, s.Name) {
				continue
			}
			// Its files are worked in one by one, so that each of them is a part.
			apart = apart || step.Model.Input == s.Name
			// How many rows the files that stay have is known only together with those that are gone, so that all are counted again.
			recount := len(d.gone) > 0
			needed = needed || recount || step.Action != Keep
			whole = whole || recount || step.Action == Rebuild || step.Action != Keep && step.Model.Input != s.Name
		}
		if !needed {
			w.Unread = append(w.Unread, s)
			continue
		}
		stage := Stage{Source: s, Whole: whole}
		read := d.all
		if !whole {
			read = d.fresh
		}
		switch {
		case apart:
			for _, a := range read {
				stage.Parts = append(stage.Parts, []Artifact{a})
			}
		case len(read) > 0:
			stage.Parts = [][]Artifact{read}
		}
		w.Stages = append(w.Stages, stage)
		for i := range w.Steps {
			step := &w.Steps[i]
			if step.Model.Input != s.Name || step.Action == Keep {
				continue
			}
			step.Parts = []int{}
			for p, part := range stage.Parts {
				if step.Action == Rebuild || !d.read[part[0].SHA256] {
					step.Parts = append(step.Parts, p)
				}
			}
		}
	}
}

// Explained is report with what is done to a model, and why, beside the progress of building it.
func (w Work) Explained(report func(Progress)) func(Progress) {
	return func(p Progress) {
		i := slices.IndexFunc(w.Steps, func(s Step) bool { return s.Model.Name == p.Subject })
		if p.Phase == PhaseBuild && i >= 0 {
			p.Action, p.Reason = w.Steps[i].Action, w.Steps[i].Reason
		}
		report(p)
	}
}

// Anew are the steps that build every table once from everything that is staged, for those who have no files of their own.
func Anew(models []Model) []Step {
	steps := make([]Step, len(models))
	for i, m := range models {
		steps[i] = Step{Model: m, Action: Rebuild}
		if m.Input != "" {
			steps[i].Parts = []int{0}
		}
	}
	return steps
}
