package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"leapview/app"
)

// settingFlag takes down what a flag was given. What the text may be is judged with what the other layers say, so that all mistakes are
// told at once.
type settingFlag struct {
	p   *program
	row app.Setting
}

// Set takes down one text.
func (f settingFlag) Set(text string) error {
	f.p.given[f.row.Name] = append(f.p.given[f.row.Name], text)
	return nil
}

// String is empty: the default is told from the table.
func (f settingFlag) String() string { return "" }

// Type names the value in help; a switch has none.
func (f settingFlag) Type() string {
	if f.row.Kind == app.SwitchSetting {
		return "bool"
	}
	return f.row.Kind.String()
}

// settingFlags makes flags of the table's rows that have one of the reaches.
func (p *program) settingFlags(flags *pflag.FlagSet, reaches ...app.Reach) {
	for _, row := range app.SettingTable {
		if !slices.Contains(reaches, row.Reach) {
			continue
		}
		f := flags.VarPF(settingFlag{p, row}, row.Flag(), row.Short, row.Doc+" (env "+row.Variable()+")")
		f.DefValue = row.Default
		if row.Computed != "" {
			f.DefValue = row.Computed
		}
		if row.Kind == app.SwitchSetting {
			f.NoOptDefVal = "true"
		}
	}
}

// nodeFlags are the settings of commands that may open a node.
func (p *program) nodeFlags(cmd *cobra.Command) { p.settingFlags(cmd.Flags(), app.ReachNode) }

// configure finds out every setting. Mistakes are kept, for whoever needs settings that are right.
func (p *program) configure() {
	p.configured, p.misconfigured = p.host.Configure(app.Given{Flags: p.given, Environment: os.Environ()})
	p.options = NodeOptions{Settings: p.configured.Settings}
	p.json = p.options.JSON
}

// run makes a command's action out of a method. Errors before it are the command line's.
func (p *program) run(action func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return p.runAnyway(func(ctx context.Context, args []string) error {
		for _, w := range p.configured.Warnings {
			p.hint("warning: %s", w)
		}
		if p.misconfigured != nil {
			return p.misconfigured
		}
		return action(ctx, args)
	})
}

// runAnyway is run for commands that do not need settings which are right.
func (p *program) runAnyway(action func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p.configure()
		p.began = true
		return action(cmd.Context(), args)
	}
}

type originOfDoc struct {
	// From is the layer: flag, environment, file, default or computed. Place is where in it.
	From  app.Source `json:"from"`
	Place string     `json:"place,omitempty"`
}

type settingDocument struct {
	Name   string      `json:"name"`
	Value  string      `json:"value"`
	Origin originOfDoc `json:"origin"`
}

type configDoc struct {
	File     *string           `json:"file"`
	Settings []settingDocument `json:"settings"`
	Warnings []string          `json:"warnings"`
}

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show what each setting is and where it came from, or what settings there are",
		Long: `Every setting comes from its flag, else from its environment variable, else from a file, else it has its default. The file is the one
that --config or LEAPVIEW_CONFIG names, else leapview-node.yaml in the working directory, if there is one. It holds one setting a line:

  data_dir: /var/lib/leapview      # paths start from the file's own directory
  memory: 4GiB
  host: [data.example.org]`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.configShowCommand(), p.configReferenceCommand())
	return cmd
}

func (p *program) configShowCommand() *cobra.Command {
	origin := false
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what each setting is",
		Long: `Shows what each setting is for a command that is given the same flags in the same place, and with --origin where that came from. When
something is wrong with settings, it is told as every command would tell it, below what the others are.`,
		Example: `  leapview config show
  leapview config show --origin --memory 4GiB
  leapview config show --json`,
		Args: arguments(),
		RunE: p.runAnyway(func(context.Context, []string) error { return p.configShow(origin) }),
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "show where each value came from")
	p.settingFlags(cmd.Flags(), app.ReachNode, app.ReachDeploy, app.ReachRefresh, app.ReachServe)
	return cmd
}

func (p *program) configShow(origin bool) error {
	doc := configDoc{File: unlessZero(p.configured.File), Settings: []settingDocument{}, Warnings: append([]string{}, p.configured.Warnings...)}
	header, rows := []string{"SETTING", "VALUE"}, [][]string{}
	if origin {
		header = append(header, "ORIGIN")
	}
	for _, row := range app.SettingTable {
		from, text := p.configured.Origins[row.Name], row.Text(p.configured.Settings)
		doc.Settings = append(doc.Settings, settingDocument{row.Name, text, originOfDoc{from.Source, from.Place}})
		if text == "" {
			text = "-"
		}
		cells := []string{row.Name, printable(text)}
		if origin {
			cells = append(cells, printable(from.String()))
		}
		rows = append(rows, cells)
	}
	var err error
	if p.json {
		err = p.printJSON(doc)
	} else {
		err = writeTable(p.stdout, header, make([]bool, len(header)), rows)
	}
	for _, w := range doc.Warnings {
		p.hint("warning: %s", w)
	}
	if err != nil {
		return err
	}
	return p.misconfigured
}

type referenceDoc struct {
	Name     string  `json:"name"`
	Flag     string  `json:"flag"`
	Variable string  `json:"variable"`
	InFile   bool    `json:"in_file"`
	Kind     string  `json:"kind"`
	Default  *string `json:"default"`
	Computed *string `json:"computed"`
	Bounds   *string `json:"bounds"`
	Doc      string  `json:"doc"`
	Commands string  `json:"commands"`
}

// reachWords are the commands that take the flags of a reach.
var reachWords = map[app.Reach]string{
	app.ReachAll:     "all commands",
	app.ReachNode:    "serve, dev, and commands that open the data directory when no node runs",
	app.ReachDeploy:  "deploy",
	app.ReachRefresh: "serve, dev, refresh",
	app.ReachServe:   "serve, dev",
}

func (p *program) configReferenceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reference",
		Short: "Print what settings there are, as a page of Markdown",
		Example: `  leapview config reference
  leapview config reference --json`,
		Args: arguments(),
		RunE: p.runAnyway(func(context.Context, []string) error { return p.configReference() }),
	}
}

func (p *program) configReference() error {
	docs := []referenceDoc{}
	for _, row := range app.SettingTable {
		docs = append(docs, referenceDoc{row.Name, "--" + row.Flag(), row.Variable(), !row.Personal, row.Kind.String(), unlessZero(row.Default), unlessZero(row.Computed),
			unlessZero(row.Bounds()), row.Doc, reachWords[row.Reach]})
	}
	if p.json {
		return p.printJSON(map[string]any{"settings": docs})
	}
	var b strings.Builder
	b.WriteString(`# Settings

Each comes from its flag, else from its environment variable, else from the file of settings, else it has its default. The file is the one
that --config or LEAPVIEW_CONFIG names, else leapview-node.yaml in the working directory. Sizes have a unit (KiB, MiB, GiB, TiB, or KB, MB,
GB, TB), times too (ms, s, m, h). What is computed is computed anew by each command; 0 asks for it.
`)
	for _, d := range docs {
		b.WriteString("\n## " + d.Name + "\n\n" + strings.ToUpper(d.Doc[:1]) + d.Doc[1:] + ".\n\n")
		b.WriteString("- " + d.Flag + " of " + d.Commands + "\n- " + d.Variable + "\n")
		if !d.InFile {
			b.WriteString("- not in the file\n")
		}
		switch {
		case d.Computed != nil:
			b.WriteString("- computed: " + *d.Computed + "\n")
		case d.Default != nil:
			b.WriteString("- default: " + *d.Default + "\n")
		}
		if d.Bounds != nil {
			b.WriteString("- " + *d.Bounds + "\n")
		}
	}
	return p.print("%s", b.String())
}

// settingProblemDoc is one thing wrong with settings.
type settingProblemDoc struct {
	Setting string      `json:"setting,omitempty"`
	Origin  originOfDoc `json:"origin"`
	Message string      `json:"message"`
	Fix     string      `json:"fix,omitempty"`
}

func settingProblemsOf(problems app.SettingProblems) (docs []settingProblemDoc) {
	for _, x := range problems {
		docs = append(docs, settingProblemDoc{x.Setting, originOfDoc{x.Origin.Source, x.Origin.Place}, x.Message, x.Fix})
	}
	return docs
}
