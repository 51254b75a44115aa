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
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// NodeOptions are the settings of a node that the command line gives.
type NodeOptions struct {
	// DataDir and Extensions are directories.
	DataDir, Extensions string
	// Listen is the host and port to serve on, Hosts are the names that it is reached by.
	Listen string
	Hosts  []string
	// Memory and TempSpace are in bytes, Threads a count; 0 derives them from the machine.
	Memory, TempSpace int64
	Threads           int
	// Limits are the bounds of what the node takes on.
	Limits app.Limits
	// LogJSON asks for log lines as JSON, Verbose for more of them.
	LogJSON bool
	Verbose bool
	// Quiet leaves out of a serving node's log what is no warning.
	Quiet bool
}

// Copied is a data file that a new project takes along: From is its absolute path, To its place below the project's folder, or "" when it
// lies there already.
type Copied struct{ From, To string }

// Host opens nodes and reaches running ones.
type Host interface {
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
	options        NodeOptions
	json           bool
	// brief leaves the steps of a refresh out of what is printed.
	brief bool
	// began tells that the command line was understood: errors before that are the user's.
	began bool
}

// Run carries out one command line and gives the exit code. It returns soon after ctx ends.
func Run(ctx context.Context, args []string, host Host, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{host: host, stdin: stdin, stdout: stdout, stderr: stderr, options: NodeOptions{Limits: app.DefaultLimits()}}
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
	p.printError(err)
	return exitCode(err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "leapview",
		Short: "Versioned analytical tables from declared sources, served over HTTP",
		Long: `LeapView turns declared sources into versioned analytical tables and serves them over HTTP, each answer from one exact snapshot.

Every flag that names an environment variable takes its value from there when it is not given: flag, then environment, then
default. Data is printed on standard output, progress and errors on standard error. What each exit code means:
leapview help exit-codes`,
		Example: `  leapview init shop --from orders.csv
  leapview dev shop
  leapview deploy examples/flights
  leapview refresh flights
  leapview serve
  leapview query flights delays --param carrier=UA`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags())
		},
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.options.DataDir, "data-dir", ".leapview", "`directory` that holds everything the node keeps")
	flags.StringVar(&p.options.Extensions, "extensions", ".extensions", "`directory` that holds the engine's extension files")
	flags.BoolVar(&p.json, "json", false, "print results, errors and logs as JSON, and no progress")
	flags.BoolVarP(&p.options.Verbose, "verbose", "v", false, "log more")
	fillFromEnvironment(flags, "data-dir", "extensions", "json", "verbose")
	root.AddCommand(p.deployCommand(), p.refreshCommand(), p.serveCommand(), p.queryCommand(), p.describeCommand(), p.statusCommand(), p.runsCommand(), p.historyCommand(), p.keyCommand(), p.versionCommand(), p.initCommand(), p.devCommand(), p.validateCommand(), p.testCommand(), p.planCommand(), p.schemaCommand(), exitCodesTopic())
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

// run makes a command's action out of a method. Errors before it are the command line's.
func (p *program) run(action func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p.began = true
		p.options.LogJSON = p.json
		return action(cmd.Context(), args)
	}
}

// nodeFlags are the settings of commands that may open a node.
func (p *program) nodeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var((*size)(&p.options.Memory), "memory", "memory of the engine, such as 4GiB; 0 derives it from the machine")
	f.Var((*size)(&p.options.TempSpace), "temp-space", "disk space for what does not fit in memory, such as 20GiB; 0 derives it")
	f.IntVar(&p.options.Threads, "threads", 0, "`number` of the engine's threads; 0 means one a CPU")
	fillFromEnvironment(f, "memory", "temp-space", "threads")
}

// limitFlags are the bounds that the operator may set of a node, or of a refresh alone.
func (p *program) limitFlags(cmd *cobra.Command, refreshOnly bool) {
	f := cmd.Flags()
	for _, l := range app.LimitTable {
		if refreshOnly && !l.Refresh {
			continue
		}
		switch v := l.Value(&p.options.Limits).(type) {
		case *int:
			f.IntVar(v, l.Flag(), *v, "`number` of "+l.Meaning)
		case *int64:
			f.Var((*size)(v), l.Flag(), l.Meaning)
		case *time.Duration:
			f.DurationVar(v, l.Flag(), *v, l.Meaning)
		}
		fillFromEnvironment(f, l.Flag())
	}
}

const environmentKey = "leapview_environment"

// fillFromEnvironment lets the flags take their values from the environment, and says so in their help.
func fillFromEnvironment(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		variable := "LEAPVIEW_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		f.Usage += " (env " + variable + ")"
		f.Annotations = map[string][]string{environmentKey: {variable}}
	}
}

// fromEnvironment gives every flag that was not given its value from the environment.
func fromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := f.Annotations[environmentKey]
		if f.Changed || len(variable) == 0 || err != nil {
			return
		}
		if text := os.Getenv(variable[0]); text != "" {
			if bad := f.Value.Set(text); bad != nil {
				err = fail.New(fail.Invalid, "bad_environment", "environment variable %s is refused: %s", variable[0], bad)
			}
		}
	})
	return err
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
		RunE: p.run(func(context.Context, []string) error {
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
