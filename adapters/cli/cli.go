// Package cli owns the command line: the verbs, their flags, what they print, and the exit codes.
//
// Invariants: data goes to standard output and everything else to standard error; with --json both are JSON; every error ends in
// one line that says what happened and one that says what to do, and its exit code follows from one table. A running node is
// asked over its socket with the same HTTP API that everyone uses; without one, a verb opens the data directory itself. The
// package does not know how a node is put together, which disk or engine it has, or what a project file looks like.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// Version is the version of the binary; a release build sets it.
var Version = "0.1.0"

// Node is an opened node without listeners.
type Node struct {
	Deployer  *app.Deployer
	Refresher *app.Refresher
	Worker    *app.Worker
	Status    *app.Status
	Author    *app.Author
	Keyring   *app.Keyring
	Describer *app.Describer
}

// NodeOptions are the settings of a node, as they were configured.
type NodeOptions struct {
	app.Settings
	// Quiet leaves out of a serving node's log what is no warning.
	Quiet bool
}

// Copied is a data file that a new project takes along: From is its absolute path, To its place below the project's folder, or "" when it
// lies there already.
type Copied struct{ From, To string }

// Host opens nodes and reaches running ones.
type Host interface {
	// Configure finds the file of settings, and what each setting is. With problems, the settings that have none are right.
	Configure(given app.Given) (app.Configured, error)
	// Serve runs a node until ctx ends, and calls ready once with the host and port that it answers on.
	Serve(ctx context.Context, o NodeOptions, stderr io.Writer, ready func(addr string)) error
	// Open locks the data directory, proves its stores, runs use and closes everything again. While a node runs on the directory
	// the error is of kind conflict, code locked.
	Open(ctx context.Context, o NodeOptions, stderr io.Writer, use func(context.Context, Node) error) error
	// Scratch is Open over a new directory that is removed afterwards.
	Scratch(ctx context.Context, o NodeOptions, stderr io.Writer, use func(context.Context, Node) error) error
	// Dial connects to the node that runs on the data directory; without one the error is of kind unavailable, code
	// node_not_running.
	Dial(ctx context.Context, dataDir string) (net.Conn, error)
	// Pack makes a project bundle of a project directory.
	Pack(dir string) ([]byte, error)
	// Place says where data files are, and what of them a new project in dir takes along.
	Place(dir string, files []string) ([]app.DataFile, []Copied, error)
	// WriteProject writes a new project with its data; nothing that exists is overwritten.
	WriteProject(ctx context.Context, dir string, files []project.File, copies []Copied) error
	// Watch calls changed after each change below dir, until ctx ends; what is below skip does not count.
	Watch(ctx context.Context, dir, skip string, changed func()) error
	// SampleData calls use with the path of a data file that the binary holds.
	SampleData(use func(path string) error) error
}

// program is one run of the command line.
type program struct {
	host           Host
	stdin          io.Reader
	stdout, stderr io.Writer
	// given are the texts of the flags that were given, by the setting's name.
	given map[string][]string
	// configured is what each setting is and why, and misconfigured what is wrong with them; options follow from it.
	configured    app.Configured
	misconfigured error
	options       NodeOptions
	json          bool
	// brief leaves the steps of a refresh out of what is printed.
	brief bool
	// began tells that the command line was understood: errors before that are the user's.
	began bool
}

// Run carries out one command line and gives the exit code. It returns soon after ctx ends.
func Run(ctx context.Context, args []string, host Host, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{host: host, stdin: stdin, stdout: stdout, stderr: stderr, given: map[string][]string{}}
	root := p.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	failed, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var classified fail.Classified
	if !p.began && !errors.As(err, &classified) {
		err = fail.New(fail.Invalid, "usage", "%s", strings.TrimSpace(err.Error())).WithFix("%s --help shows how", failed.CommandPath())
	}
	if ctx.Err() != nil && !errors.Is(err, errStoppedWaiting) && (fail.KindOf(err) == fail.Canceled || errors.Is(err, context.Canceled)) {
		err = fail.New(fail.Canceled, "canceled", "canceled")
	}
	if !p.began {
		p.configure()
	}
	p.printError(err)
	return exitCode(err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "leapview",
		Short: "Versioned analytical tables from declared sources, served over HTTP",
		Long: `LeapView turns declared sources into versioned analytical tables and serves them over HTTP, each answer from one exact snapshot.

Every flag that names an environment variable is a setting: it comes from the flag, else from that variable, else from leapview-node.yaml,
else it has its default. leapview config show says what each of them is. Data is printed on standard output, progress and errors on
standard error. What each exit code means: leapview help exit-codes`,
		Example: `  leapview init shop --from orders.csv
  leapview dev shop
  leapview deploy examples/flights
  leapview refresh flights
  leapview serve
  leapview query flights delays --param carrier=UA`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	p.settingFlags(root.PersistentFlags(), app.ReachAll)
	root.AddCommand(p.deployCommand(), p.refreshCommand(), p.serveCommand(), p.queryCommand(), p.describeCommand(), p.statusCommand(), p.runsCommand(), p.historyCommand(), p.keyCommand(), p.versionCommand(), p.initCommand(), p.devCommand(), p.validateCommand(), p.testCommand(), p.planCommand(), p.schemaCommand(), p.configCommand(), exitCodesTopic())
	return root
}

// unknownCommand refuses what the root command was given that none of its commands took.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	fix := cmd.CommandPath() + " --help lists the commands"
	if near := project.Suggest(args[0], names); near != "" {
		fix = near
	}
	return fail.New(fail.Invalid, "usage", "there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "leapview ")).WithFix("%s", fix)
}

// arguments checks that a command got exactly these.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " and "))
		}
		return atMost(len(names))(cmd, args)
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s does not take the argument %q", cmd.CommandPath(), args[n])
		}
		return nil
	}
}

// workspacePath is the API's path of something in a workspace.
func workspacePath(workspace serving.Workspace, rest string) string {
	return "/v1/workspaces/" + string(workspace) + rest
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(),
		RunE: p.runAnyway(func(context.Context, []string) error {
			if p.json {
				return p.printJSON(map[string]string{"version": Version})
			}
			return p.print("leapview %s\n", Version)
		}),
	}
}

// validEndpoint refuses a name that no endpoint can have, before it becomes part of a path.
func validEndpoint(name string) error {
	if !project.ValidName(name) {
		return fail.New(fail.Invalid, "bad_endpoint_name", "%q cannot name an endpoint", name)
	}
	return nil
}
