package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/project"
)

type validDoc struct {
	Project   string         `json:"project"`
	Release   project.Digest `json:"release"`
	Sources   int            `json:"sources"`
	Models    int            `json:"models"`
	Endpoints int            `json:"endpoints"`
	Tests     int            `json:"tests"`
}

func (p *program) validateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [DIR]",
		Short: "Check a project and say everything that is wrong with it",
		Long: `Reads the project in DIR (the current directory by default), checks all of it as a deploy would, and changes nothing. Every mistake
is printed at its line. It needs no node and no data: sources are taken at their declared word.`,
		Example: `  leapview validate
  leapview validate examples/flights --json`,
		Args: atMost(1),
		RunE: p.run(func(ctx context.Context, args []string) error {
			return p.draft(ctx, args, func(_ context.Context, _ Node, d app.Draft) error {
				doc := validDoc{d.Project.Name, d.ID, len(d.Project.Sources), len(d.Models), len(d.Endpoints), len(d.Project.Tests)}
				if p.json {
					return p.printJSON(doc)
				}
				return p.print("%s is valid: %s, %s, %s, %s\n", doc.Project, counted(int64(doc.Sources), "source"), counted(int64(doc.Models), "model"),
					counted(int64(doc.Endpoints), "endpoint"), counted(int64(doc.Tests), "test"))
			})
		}),
	}
	p.nodeFlags(cmd)
	return cmd
}

// draft compiles the project in the directory that the arguments name, on a scratch node.
func (p *program) draft(ctx context.Context, args []string, use func(context.Context, Node, app.Draft) error) error {
	dir := "."
	if len(args) == 1 {
		dir = args[0]
	}
	bundle, err := p.host.Pack(dir)
	if err != nil {
		return err
	}
	return p.host.Scratch(ctx, p.options, p.stderr, func(ctx context.Context, n Node) error {
		d, err := n.Author.Validate(ctx, bundle)
		if err != nil {
			return err
		}
		return use(ctx, n, d)
	})
}

type testDoc struct {
	File       string       `json:"file"`
	Name       string       `json:"name"`
	Subject    string       `json:"subject"`
	OK         bool         `json:"ok"`
	Columns    []string     `json:"columns,omitempty"`
	Missing    []string     `json:"missing,omitempty"`
	Unexpected []string     `json:"unexpected,omitempty"`
	Misordered bool         `json:"misordered,omitempty"`
	Detail     string       `json:"detail,omitempty"`
	Fix        string       `json:"fix,omitempty"`
	Problems   []mistakeDoc `json:"problems,omitempty"`
	DurationMS int64        `json:"duration_ms"`
}

func (p *program) testCommand() *cobra.Command {
	only := ""
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run a project's tests: rows that are given, and rows that must come out",
		Long: `Runs every case in tests/*.yaml of the project in DIR (the current directory by default) on a lake of its own, which is removed
afterwards: no node is asked and no source is read. A case gives the rows that a model's or an endpoint's relations hold, and the rows
that it expects. The exit code is 2 when a case fails.

  model: daily_delays            # or endpoint: NAME, then params: {…} in each case
  cases:
    - name: a flight without an arrival is cancelled
      given:
        stg_flights:
          - {flight_date: "2013-01-01", carrier: UA, arr_delay: null}
      expect:
        - {flight_date: "2013-01-01", cancelled: 1}

Columns that a given row leaves out are NULL; columns that no expected row names are not compared. Rows may come in any order unless the
case says ordered: true.`,
		Example: `  leapview test
  leapview test examples/flights --only daily_delays`,
		Args: atMost(1),
		RunE: p.run(func(ctx context.Context, args []string) error {
			return p.draft(ctx, args, func(ctx context.Context, n Node, d app.Draft) error { return p.test(ctx, n, d, only) })
		}),
	}
	cmd.Flags().StringVar(&only, "only", "", "run only the cases whose `FILE: NAME` holds this text")
	p.nodeFlags(cmd)
	return cmd
}

func (p *program) test(ctx context.Context, n Node, d app.Draft, only string) error {
	docs := []testDoc{}
	failed := 0
	for _, t := range d.Project.Tests {
		title := t.File + ": " + t.Name
		if !strings.Contains(title, only) {
			continue
		}
		began := time.Now()
		r, err := n.Author.Test(ctx, d, t)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if !r.OK() {
			failed++
		}
		docs = append(docs, testDocOf(r, took))
		if !p.json {
			if err := p.printTest(title, r, took); err != nil {
				return err
			}
		}
	}
	if p.json {
		if err := p.printJSON(map[string]any{"tests": docs, "failed": failed}); err != nil {
			return err
		}
	}
	switch {
	case len(docs) == 0 && only != "":
		return fail.New(fail.Missing, "no_tests", "no case's name holds %q", only).WithFix("leapview test runs all %d", len(d.Project.Tests))
	case failed > 0:
		return fail.New(fail.Invalid, "tests_failed", "%d of %s failed", failed, counted(int64(len(docs)), "test"))
	case len(docs) == 0:
		p.hint("the project has no tests; leapview test --help shows how to write one")
		return nil
	}
	p.hint("%s passed", counted(int64(len(docs)), "test"))
	return nil
}

// printTest shows how one case came out.
func (p *program) printTest(title string, r app.TestResult, took time.Duration) error {
	word := "ok"
	if !r.OK() {
		word = "FAILED"
	}
	if err := p.print("%-7s %s  %d ms\n", word, printable(title), took.Milliseconds()); err != nil || r.OK() {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "        %s\n", r.Test.At)
	if r.Err != nil {
		fmt.Fprintf(&b, "        %s\n", fail.DetailOf(r.Err, true))
		var problems project.Problems
		if errors.As(r.Err, &problems) {
			for _, x := range problems {
				fmt.Fprintf(&b, "        %s\n", strings.ReplaceAll(x.String(), "\n", "\n        "))
			}
		} else if fix := fail.FixOf(r.Err); fix != "" {
			fmt.Fprintf(&b, "        fix: %s\n", fix)
		}
	}
	if r.Differences > 0 {
		fmt.Fprintf(&b, "        columns: %s\n", strings.Join(r.Columns, ", "))
	}
	for _, row := range r.Missing {
		fmt.Fprintf(&b, "        - %s  was expected and did not come out\n", row)
	}
	for _, row := range r.Unexpected {
		fmt.Fprintf(&b, "        + %s  came out and was not expected\n", row)
	}
	if more := r.Differences - len(r.Missing) - len(r.Unexpected); more > 0 {
		fmt.Fprintf(&b, "        … and %d more differences\n", more)
	}
	if r.Differences == 0 && r.Misordered {
		b.WriteString("        the rows are the expected ones, in another order\n")
	}
	return p.print("%s", b.String())
}

func testDocOf(r app.TestResult, took time.Duration) testDoc {
	doc := testDoc{File: r.Test.File, Name: r.Test.Name, Subject: r.Test.Model + r.Test.Endpoint, OK: r.OK(), Columns: r.Columns, Missing: r.Missing, Unexpected: r.Unexpected,
		Misordered: r.Misordered, DurationMS: took.Milliseconds()}
	if r.Err != nil {
		doc.Detail, doc.Fix = fail.DetailOf(r.Err, true), fail.FixOf(r.Err)
		var problems project.Problems
		if errors.As(r.Err, &problems) {
			for _, m := range problems {
				doc.Problems = append(doc.Problems, mistakeDoc{m.At.File, m.At.Line, m.At.Column, m.Message, m.Fix, m.Line})
			}
		}
	}
	return doc
}
