package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"leapview/domain/fail"
	"leapview/domain/project"
)

// SettingsFile is the file of settings that is read from the working directory when no other is named.
const SettingsFile = "leapview-node.yaml"

// Given is what was said of settings, the strongest first.
type Given struct {
	// Flags are the texts of each flag that was given, by the setting's name.
	Flags map[string][]string
	// Environment is the process's environment, as NAME=value.
	Environment []string
	// File is the file of settings as a tree, and FileName its path; empty when there is none.
	File     project.Node
	FileName string
	// FileText is what the file holds, for showing the line of a mistake.
	FileText string
}

// Source is the layer that a setting came from.
type Source string

// The layers that settings come from.
const (
	FromFlag        Source = "flag"
	FromEnvironment Source = "environment"
	FromFile        Source = "file"
	FromDefault     Source = "default"
	FromMachine     Source = "computed"
)

// Origin is where the value of a setting came from: the layer, and the place in it.
type Origin struct {
	Source Source
	// Place is the flag, the variable, the file with its line and column, or what a value was computed from.
	Place string
}

// String is the origin for people.
func (o Origin) String() string {
	switch {
	case o.Place == "":
		return string(o.Source)
	case o.Source == FromMachine:
		return string(o.Source) + ": " + o.Place
	}
	return o.Place
}

// Configured are settings with their origins.
type Configured struct {
	Settings Settings
	// Origins are by the setting's name; every setting has one.
	Origins map[string]Origin
	// File is the file of settings that was read, or empty.
	File string
	// Warnings tell of what was said to no setting.
	Warnings []string
}

// SettingProblem is why something that was said of settings cannot be used.
type SettingProblem struct {
	// Setting is the setting's name; empty when it is not about one.
	Setting string
	Origin  Origin
	Message string
	Fix     string
	// Line is the text of the file's line, with the column that Origin names.
	Line   string
	Column int
}

// String is the problem after the place of its origin, followed by the line of the file.
func (p SettingProblem) String() string {
	problem := project.Problem{At: project.Position{File: p.Origin.Place}, Message: p.Message, Fix: p.Fix}
	if p.Origin.Source == FromFile && p.Setting != "" {
		problem.Message = p.Setting + ": " + p.Message
	}
	if p.Origin.Place == "" || p.Origin.Source == FromMachine {
		problem.At.File = p.Setting
	}
	problem.Line, problem.At.Column = p.Line, p.Column
	return problem.String()
}

// SettingProblems is everything that is wrong with settings, all at once.
type SettingProblems []SettingProblem

// Error lists the problems, one after another.
func (ps SettingProblems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// FailKind is Invalid.
func (ps SettingProblems) FailKind() fail.Kind { return fail.Invalid }

// FailCode is bad_settings.
func (ps SettingProblems) FailCode() string { return "bad_settings" }

// FailSummary counts the problems, for where they are listed apart.
func (ps SettingProblems) FailSummary() string {
	if len(ps) == 1 {
		return "1 setting cannot be used"
	}
	return fmt.Sprintf("%d settings cannot be used", len(ps))
}

// Err is the problems as an error, or nil when there are none.
func (ps SettingProblems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// said is what one layer says of a setting.
type said struct {
	texts  []string
	origin Origin
	line   string
	column int
}

// ConfigFile is the file of settings that a flag or the environment names, with where it was named.
func (g Given) ConfigFile() (path string, named Origin) {
	row, _ := settingNamed("config")
	if s, ok := g.outside(row); ok {
		return s.texts[len(s.texts)-1], s.origin
	}
	return "", Origin{Source: FromDefault}
}

// outside is what the flag or else the environment says. A variable that is empty says nothing.
func (g Given) outside(row Setting) (said, bool) {
	if texts := g.Flags[row.Name]; len(texts) > 0 {
		return said{texts: texts, origin: Origin{FromFlag, "--" + row.Flag()}}, true
	}
	for _, pair := range g.Environment {
		if text, ok := strings.CutPrefix(pair, row.Variable()+"="); ok && text != "" {
			return said{texts: []string{text}, origin: Origin{FromEnvironment, row.Variable()}}, true
		}
	}
	return said{}, false
}

// Configure takes each setting from its flag, else the environment, else the file, else its default. A value that cannot be is a
// problem, and its setting keeps the default. Relative paths in the file start from the file's folder.
func Configure(g Given) (Configured, SettingProblems) {
	c := Configured{Settings: DefaultSettings(), Origins: map[string]Origin{}, File: g.FileName, Warnings: g.strays()}
	file, problems := g.file()
	for _, row := range SettingTable {
		s, ok := g.outside(row)
		if !ok {
			s, ok = file[row.Name]
		}
		c.Origins[row.Name] = Origin{Source: FromDefault}
		if !ok {
			continue
		}
		c.Origins[row.Name] = s.origin
		try := c.Settings
		err := row.set(&try, s.texts)
		if err == nil {
			err = row.wrong(&try)
		}
		if err != nil {
			problems = append(problems, SettingProblem{Setting: row.Name, Origin: s.origin, Message: err.Error(), Line: s.line, Column: s.column})
			c.Origins[row.Name] = Origin{Source: FromDefault}
			continue
		}
		c.Settings = try
	}
	return c, problems
}

// strays warn of variables that look like settings and are none.
func (g Given) strays() []string {
	var known, warnings []string
	for _, row := range SettingTable {
		known = append(known, row.Variable())
	}
	for _, pair := range g.Environment {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) {
			continue
		}
		warning := name + " is set in the environment, and is no setting"
		if near := project.Suggest(name, known); near != "" {
			warning += "; " + near
		}
		warnings = append(warnings, warning)
	}
	slices.Sort(warnings)
	return warnings
}

// file is what the file says of each setting, and what in it is said of none.
func (g Given) file() (map[string]said, SettingProblems) {
	settings := map[string]said{}
	if g.FileName == "" {
		return settings, nil
	}
	var problems SettingProblems
	lines := strings.Split(g.FileText, "\n")
	at := func(p project.Position) said {
		s := said{origin: Origin{FromFile, p.String()}, column: p.Column}
		if p.Line > 0 && p.Line <= len(lines) {
			s.line = strings.TrimSuffix(lines[p.Line-1], "\r")
		}
		return s
	}
	bad := func(s said, setting, message, fix string) {
		problems = append(problems, SettingProblem{setting, s.origin, message, fix, s.line, s.column})
	}
	if g.File.Kind != project.MappingNode {
		bad(at(g.File.At), "", "the file is "+g.File.Kind.String()+", and must be a mapping of settings", "write one a line, as memory: 4GiB")
		return settings, problems
	}
	var known []string
	for _, row := range SettingTable {
		if !row.Personal {
			known = append(known, row.Name)
		}
	}
	for _, e := range g.File.Entries {
		key, value := at(e.Key.At), at(e.Value.At)
		row, ok := settingNamed(e.Key.Text)
		_, twice := settings[e.Key.Text]
		switch {
		case !ok:
			bad(key, "", fmt.Sprintf("there is no setting %q", e.Key.Text), project.Suggest(e.Key.Text, known))
			continue
		case row.Personal:
			bad(key, "", fmt.Sprintf("%q is not set in a file", e.Key.Text), "give it as --"+row.Flag()+", or as "+row.Variable())
			continue
		case twice:
			bad(key, "", fmt.Sprintf("%q is set before already", e.Key.Text), "keep one of them")
			continue
		}
		texts, ok := scalars(e.Value, row.Kind == NamesSetting)
		if !ok {
			bad(value, row.Name, "it is "+e.Value.Kind.String(), "write "+article(row.Kind))
			continue
		}
		if row.Kind == DirectorySetting && texts[0] != "" && !filepath.IsAbs(texts[0]) {
			texts[0] = filepath.Join(filepath.Dir(g.FileName), texts[0])
		}
		value.texts = texts
		settings[row.Name] = value
	}
	return settings, problems
}

// scalars are the texts of a value, or of a list of them where that is allowed.
func scalars(n project.Node, list bool) (texts []string, ok bool) {
	switch n.Kind {
	case project.StringNode, project.IntegerNode, project.FloatNode, project.BooleanNode:
		return []string{n.Text}, true
	case project.ListNode:
		if !list {
			return nil, false
		}
		for _, item := range n.Items {
			text, ok := scalars(item, false)
			if !ok {
				return nil, false
			}
			texts = append(texts, text...)
		}
		return texts, len(texts) > 0
	case project.NullNode, project.MappingNode:
	}
	return nil, false
}

// article is a value of the kind, as it is asked for.
func article(k SettingKind) string {
	switch k {
	case AddressSetting:
		return "an " + k.String()
	case SwitchSetting:
		return k.String()
	case NamesSetting:
		return "a name, or a list of names"
	}
	return "a " + k.String()
}
