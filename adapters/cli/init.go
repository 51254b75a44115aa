package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/draft"
	"leapview/domain/fail"
	"leapview/domain/project"
)

type initDoc struct {
	Project string   `json:"project"`
	Dir     string   `json:"dir"`
	Files   []string `json:"files"`
	Rows    int64    `json:"rows"`
	Doubts  int      `json:"doubts"`
	Next    string   `json:"next"`
}

func (p *program) initCommand() *cobra.Command {
	var from []string
	sample := false
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a project from data files, without typing any of it",
		Long: `Looks at every row of the files and writes a project over them into DIR: a declaration of each file, a table over it with the checks
that hold today, and a first endpoint. Files outside of DIR are copied into DIR/data. Whatever could be read in two ways (leading zeros,
ambiguous days, mixed values, big numbers) is kept in the harmless way, under a comment that begins with DOUBT. Nothing that exists is
overwritten, and nothing is written when a file cannot be read.`,
		Example: `  leapview init shop --from orders.csv
  leapview init shop --from orders.csv --from customers.parquet
  leapview init hello --sample`,
		Args: arguments("a DIR"),
		RunE: p.run(func(ctx context.Context, args []string) error {
			switch {
			case sample == (len(from) > 0):
				return fail.New(fail.Invalid, "usage", "init takes either --from FILE or --sample").WithFix("leapview init --help shows how")
			case sample:
				return p.initSample(ctx, args[0])
			}
			return p.init(ctx, args[0], from)
		}),
	}
	cmd.Flags().StringArrayVar(&from, "from", nil, "a data `FILE`: CSV (also gzipped), Parquet or JSON; may be repeated")
	cmd.Flags().BoolVar(&sample, "sample", false, "write a small project with data of its own")
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) init(ctx context.Context, dir string, from []string) error {
	name, err := projectName(dir)
	if err != nil {
		return err
	}
	files, copies, err := p.host.Place(dir, from)
	if err != nil {
		return err
	}
	var drafted app.Drafted
	err = p.host.Scratch(ctx, p.options, p.stderr, func(ctx context.Context, n Node) error {
		drafted, err = n.Author.Draft(ctx, name, files)
		return err
	})
	if err != nil {
		return err
	}
	return p.written(ctx, dir, drafted, copies)
}

// initSample drafts from data that the binary holds, like from any other file.
func (p *program) initSample(ctx context.Context, dir string) error {
	return p.host.SampleData(func(path string) error { return p.init(ctx, dir, []string{path}) })
}

// projectName names a project by its folder.
func projectName(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return draft.Name(filepath.Base(full), "project"), nil
}

func (p *program) written(ctx context.Context, dir string, d app.Drafted, copies []Copied) error {
	files := append(d.Files, project.File{Path: "README.md", Content: []byte(d.Readme)})
	if err := p.host.WriteProject(ctx, dir, files, copies); err != nil {
		return err
	}
	doc := initDoc{Project: d.Name, Dir: dir, Doubts: draft.Doubts(d.Sources), Next: "leapview dev " + dir}
	for _, s := range d.Sources {
		doc.Rows += s.Rows
	}
	for _, f := range files {
		doc.Files = append(doc.Files, f.Path)
	}
	if p.json {
		return p.printJSON(doc)
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(dir, "/") + "/\n")
	for _, f := range doc.Files {
		b.WriteString("  " + f + "\n")
	}
	if err := p.print("%s", b.String()); err != nil {
		return err
	}
	p.hint("read %s of %s; all of them fit what was declared", counted(doc.Rows, "row"), counted(int64(len(d.Sources)), "file"))
	if doc.Doubts > 0 {
		p.hint("%s could be read in another way: look for the comments that begin with DOUBT", counted(int64(doc.Doubts), "thing"))
	}
	p.hint("next: %s", doc.Next)
	return nil
}
