package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/serving"
)

type endpointsDoc struct {
	Meta      originDoc                 `json:"meta"`
	Endpoints []app.EndpointDescription `json:"endpoints"`
}

type oneEndpointDoc struct {
	Meta     originDoc               `json:"meta"`
	Endpoint app.EndpointDescription `json:"endpoint"`
}

func (p *program) describeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe WORKSPACE [ENDPOINT]",
		Short: "Show what the endpoints of a workspace take and answer",
		Long: `Shows the endpoints of the workspace's active release, or everything about one of them: parameters with what they accept, the
columns of its answers, how they can be sorted, and examples.`,
		Example: `  leapview describe flights
  leapview describe flights delays_by_day --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return atMost(2)(cmd, args)
			}
			return arguments("a WORKSPACE")(cmd, args)
		},
		RunE: p.run(func(ctx context.Context, args []string) error {
			w, err := serving.ParseWorkspace(args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return p.describeAll(ctx, w)
			}
			if err := validEndpoint(args[1]); err != nil {
				return err
			}
			return p.describeOne(ctx, w, args[1])
		}),
	}
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) describeAll(ctx context.Context, w serving.Workspace) error {
	var doc endpointsDoc
	err := p.described(ctx, workspacePath(w, "/endpoints"), &doc, func(ctx context.Context, d *app.Describer) error {
		asked, list, err := d.Endpoints(ctx, w)
		doc = endpointsDoc{originOf(asked), list}
		return err
	})
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(doc)
	case len(doc.Endpoints) == 0:
		p.hint("workspace %q has no endpoints", w)
		return nil
	}
	rows := make([][]string, len(doc.Endpoints))
	for i, e := range doc.Endpoints {
		params := make([]string, len(e.Params))
		for j, x := range e.Params {
			params[j] = x.Name
		}
		rows[i] = []string{e.Name, strings.Join(params, " "), printable(e.Description)}
	}
	return writeTable(p.stdout, []string{"ENDPOINT", "PARAMETERS", "DESCRIPTION"}, make([]bool, 3), rows)
}

func (p *program) describeOne(ctx context.Context, w serving.Workspace, name string) error {
	var doc oneEndpointDoc
	err := p.described(ctx, workspacePath(w, "/endpoints/"+name+"/description"), &doc, func(ctx context.Context, d *app.Describer) error {
		asked, list, err := d.Endpoints(ctx, w)
		if err != nil {
			return err
		}
		e, err := app.Described(w, list, name)
		doc = oneEndpointDoc{originOf(asked), e}
		return err
	})
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(doc)
	}
	return p.printEndpoint(w, doc.Endpoint)
}

// described asks the running node for a description or, without one, opens the data directory.
func (p *program) described(ctx context.Context, path string, doc any, here func(context.Context, *app.Describer) error) error {
	return p.answered(ctx, inquiry{method: http.MethodGet, path: path}, doc, func(ctx context.Context, n Node) error { return here(ctx, n.Describer) })
}

func (p *program) printEndpoint(w serving.Workspace, e app.EndpointDescription) error {
	if err := p.print("%s\n", strings.TrimSuffix(e.Name+": "+printable(e.Description), ": ")); err != nil {
		return err
	}
	if err := p.print("at most %s\n", counted(int64(e.Limit), "row")); err != nil {
		return err
	}
	if len(e.Params) > 0 {
		rows := make([][]string, len(e.Params))
		for i, x := range e.Params {
			rows[i] = []string{x.Name, accepts(x), otherwise(x), printable(x.Description)}
		}
		if err := p.section([]string{"PARAMETER", "ACCEPTS", "DEFAULT", "DESCRIPTION"}, rows); err != nil {
			return err
		}
	}
	rows := make([][]string, len(e.Columns))
	for i, c := range e.Columns {
		rows[i] = []string{printable(c.Name), string(c.Type), printable(c.Description)}
	}
	if err := p.section([]string{"COLUMN", "TYPE", "DESCRIPTION"}, rows); err != nil {
		return err
	}
	var choices [][]string
	if o := e.OrderBy; o != nil {
		choices = append(choices, []string{"order_by", names(o.Allow)})
		if len(o.Default) > 0 {
			choices = append(choices, []string{"", "by default " + names(o.Default)})
		}
		if len(o.Ties) > 0 {
			choices = append(choices, []string{"", "ties by " + names(o.Ties)})
		}
	}
	if len(e.Pick) > 0 {
		choices = append(choices, []string{"columns", names(e.Pick)})
	}
	if len(choices) > 0 {
		if err := p.section([]string{"CHOICE", "AMONG"}, choices); err != nil {
			return err
		}
	}
	if len(e.Examples) == 0 {
		return nil
	}
	rows = make([][]string, len(e.Examples))
	for i, x := range e.Examples {
		rows[i] = []string{x.Name, printable(x.Description), command(x, w, e.Name)}
	}
	return p.section([]string{"EXAMPLE", "DESCRIPTION", "COMMAND"}, rows)
}

// section writes a table below an empty line.
func (p *program) section(header []string, rows [][]string) error {
	if err := p.print("\n"); err != nil {
		return err
	}
	return writeTable(p.stdout, header, make([]bool, len(header)), rows)
}

func names(list []string) string { return printable(strings.Join(list, ", ")) }

// accepts is what the parameter takes.
func accepts(d app.ParamDescription) string {
	s := string(d.Type)
	if d.List {
		s = fmt.Sprintf("list of %s, at most %d", d.Type, d.MaxItems)
	}
	if len(d.Enum) > 0 {
		s += ": " + strings.Join(d.Enum, " | ")
	}
	if d.Min != nil {
		s += ", from " + *d.Min
	}
	if d.Max != nil {
		s += ", to " + *d.Max
	}
	if d.MinLength != nil {
		s += fmt.Sprintf(", at least %d characters", *d.MinLength)
	}
	if d.MaxLength != nil {
		s += fmt.Sprintf(", at most %d characters", *d.MaxLength)
	}
	if d.Pattern != "" {
		s += ", matching " + d.Pattern
	}
	return printable(s)
}

// otherwise is what holds when the parameter is not given.
func otherwise(d app.ParamDescription) string {
	switch {
	case d.Required:
		return "required"
	case d.Default == nil:
		return "NULL"
	}
	return names(texts(d.Default))
}

// texts are the texts of a value that is a text or a list of them.
func texts(v any) []string {
	switch x := v.(type) {
	case string:
		return []string{x}
	case []string:
		return x
	case []any:
		list := make([]string, len(x))
		for i, y := range x {
			list[i] = fmt.Sprint(y)
		}
		return list
	}
	return nil
}

// command is the example as a command line.
func command(d app.ExampleDescription, w serving.Workspace, endpoint string) string {
	words := []string{"leapview query", string(w), endpoint}
	for _, name := range slices.Sorted(maps.Keys(d.Params)) {
		for _, text := range texts(d.Params[name]) {
			words = append(words, "--param", shellWord(name+"="+text))
		}
	}
	for _, flag := range []struct {
		name  string
		value any
	}{{"--order-by", d.OrderBy}, {"--columns", d.Columns}} {
		if list := texts(flag.value); len(list) > 0 {
			words = append(words, flag.name+"="+shellWord(strings.Join(list, ",")))
		}
	}
	if d.Limit > 0 {
		words = append(words, fmt.Sprintf("--limit=%d", d.Limit))
	}
	return printable(strings.Join(words, " "))
}

// shellWord is s as one word of a POSIX shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:=/") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func originOf(a app.Asked) originDoc {
	return originDoc{a.Workspace, a.Lineage, a.Pointer.Generation, a.Pointer.Snapshot, a.Pointer.Release, a.Pointer.BuiltAt.UTC()}
}
