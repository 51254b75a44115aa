package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"leapview/domain/fail"
	"leapview/domain/project"
)

func (p *program) schemaCommand() *cobra.Command {
	kinds := strings.Join(project.SchemaKinds(), ", ")
	return &cobra.Command{
		Use:   "schema KIND",
		Short: "Print the JSON Schema of a kind of project file",
		Long: `Prints the JSON Schema of a kind of project file (` + kinds + `), so that editors complete and check it. Of models and
endpoints it describes the YAML in their leading comment. An editor that speaks the YAML language server reads it from a first line like

  # yaml-language-server: $schema=../.schema/source.json`,
		Example:   `  leapview schema source > .schema/source.json`,
		Args:      arguments("a KIND (" + kinds + ")"),
		ValidArgs: project.SchemaKinds(),
		RunE: p.runAnyway(func(_ context.Context, args []string) error {
			s, ok := project.Schema(args[0])
			if !ok {
				e := fail.New(fail.Invalid, "usage", "there is no kind of project file %q", args[0])
				if near := project.Suggest(args[0], project.SchemaKinds()); near != "" {
					return e.WithFix("%s", near)
				}
				return e.WithFix("known are %s", kinds)
			}
			e := json.NewEncoder(p.stdout)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return written(0, e.Encode(s))
		}),
	}
}
