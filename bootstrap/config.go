// Package bootstrap composes the node: it turns settings into adapters, adapters into use cases, and those into a process that
// starts, proves its stores, serves and ends. It holds the only fx in the tree.
//
// Invariants: everything opened is released in the reverse order, also when a later part fails to open; one engine is constructed
// at composition and lives to the end of the process. The package takes no decision of the domain.
package bootstrap

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"leapview"
	"leapview/adapters/duckdb/engine"
	"leapview/adapters/fs"
	"leapview/adapters/system"
	"leapview/adapters/yaml"
	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// Config is every setting of a node, and what follows from them. What is computed from the machine may be missing; complete computes it.
type Config struct {
	app.Settings
	// Layout is where the things of DataDir are. Compose finds it once, so that all parts open the same places.
	Layout fs.Layout
}

// Configure finds the file of settings and what each setting is, what is computed from the machine included. What the machine does not
// tell stays missing: only what opens a node needs it, and says so.
func (h *Host) Configure(given app.Given) (app.Configured, error) {
	unread := readSettings(&given)
	c, problems := app.Configure(given)
	for name, place := range derive(&c.Settings).computed {
		c.Origins[name] = app.Origin{Source: app.FromMachine, Place: place}
	}
	return c, append(unread, problems...).Err()
}

// readSettings reads the file of settings that is named or, when none is, the one in the working directory, if there is one.
func readSettings(given *app.Given) app.SettingProblems {
	path, named := given.ConfigFile()
	if path == "" {
		path = app.SettingsFile
	}
	text, err := readBounded(path, yaml.MaxBytes+1)
	switch {
	case errors.Is(err, iofs.ErrNotExist) && named.Source == app.FromDefault:
		return nil
	case err != nil:
		if named.Source == app.FromDefault {
			named.Place = path
		}
		return app.SettingProblems{{Setting: "config", Origin: named, Message: fmt.Sprintf("the file of settings cannot be read: %v", err)}}
	}
	tree, mistakes := yaml.Documents{}.Parse(text, project.Position{File: path})
	if len(mistakes) == 0 {
		given.File, given.FileName, given.FileText = tree, path, string(text)
		return nil
	}
	var problems app.SettingProblems
	for _, m := range project.Lined(mistakes, []project.File{{Path: path, Content: text}}) {
		problems = append(problems, app.SettingProblem{Origin: app.Origin{Source: app.FromFile, Place: m.At.String()}, Message: m.Message, Fix: m.Fix, Line: m.Line, Column: m.At.Column})
	}
	return problems
}

// readBounded reads a file, and nothing behind its first most bytes.
func readBounded(path string, most int64) (text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, most))
}

// derived is what derive computed, by the setting's name and from what, and what the machine did not tell.
type derived struct {
	computed map[string]string
	problems app.SettingProblems
}

// computedUnit is what computed sizes are whole multiples of, so that people can read them.
const computedUnit = 1 << 20

// derive computes every setting that is missing and that the machine tells.
func derive(s *app.Settings) derived {
	d := derived{computed: map[string]string{}}
	bytes := func(name string, value *int64, from string, ask func() (int64, error)) {
		if *value != 0 {
			return
		}
		all, err := ask()
		if err != nil {
			d.problems = append(d.problems, app.SettingProblem{Setting: name, Message: err.Error(), Fix: "set it"})
			return
		}
		// A machine that has less is told so by the engine itself.
		*value = max(all/2/computedUnit*computedUnit, app.LeastMemory)
		d.computed[name] = fmt.Sprintf("half of the %s %s", app.FormatSize(all/computedUnit*computedUnit), from)
	}
	bytes("memory", &s.Memory, "that this process may use", func() (int64, error) { return system.Memory(os.DirFS("/")) })
	bytes("temp_space", &s.TempSpace, "that are free on the data directory's disk", func() (int64, error) { return system.FreeSpace(existing(s.DataDir)) })
	if s.Threads == 0 {
		s.Threads = min(runtime.GOMAXPROCS(0), app.MostThreads)
		d.computed["threads"] = "one a processor that this process may use"
	}
	if s.Limits.QuerySlots == 0 && s.Threads > 0 {
		s.Limits.QuerySlots = 2 * s.Threads
		d.computed["query_slots"] = fmt.Sprintf("twice the %d threads", s.Threads)
	}
	if s.Extensions == "" {
		if i := slices.IndexFunc(places(), func(dir string) bool { return engine.HasExtensions(leapview.ExtensionsLock, dir) }); i >= 0 {
			s.Extensions = places()[i]
			d.computed["extensions"] = "the first of the usual places that has them"
		}
	}
	return d
}

// places are where the extension files are looked for when no directory is named.
func places() []string {
	dirs := []string{".extensions"}
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dirs = append(dirs, filepath.Join(filepath.Dir(exe), ".extensions"), filepath.Join(filepath.Dir(exe), "..", ".extensions"))
	}
	for i, dir := range dirs {
		if full, err := filepath.Abs(dir); err == nil {
			dirs[i] = full
		}
	}
	return slices.Compact(dirs)
}

// complete computes what was not set and refuses what cannot be, all at once.
func (c Config) complete() (Config, error) {
	if c.Listen == "" {
		c.Listen = app.DefaultSettings().Listen
	}
	problems := append(c.Settings.Problems(), derive(&c.Settings).problems...)
	if len(problems) > 0 {
		return c, problems
	}
	var err error
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return c, fail.New(fail.Unavailable, "no_working_directory", "the data directory %s cannot be found", c.DataDir).Because(err)
	}
	if c.Extensions == "" {
		return c, fail.New(fail.Missing, "extension_missing", "the engine's extension files are in none of %s", strings.Join(places(), ", ")).
			WithFix("run make extensions, or name their directory with --extensions")
	}
	if c.Extensions, err = filepath.Abs(c.Extensions); err != nil {
		return c, fail.New(fail.Unavailable, "no_working_directory", "the directory %s cannot be found", c.Extensions).Because(err)
	}
	return c, nil
}

// existing is dir or its nearest parent that exists, so that free space can be asked before the directory is made.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
