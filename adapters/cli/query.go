package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"leapview/app"
	"leapview/domain/fail"
	"leapview/domain/serving"
)

// answerDoc is the answer of one call.
type answerDoc struct {
	Name     string              `json:"name"`
	Endpoint string              `json:"endpoint"`
	Columns  []serving.Column    `json:"columns"`
	Rows     [][]json.RawMessage `json:"rows"`
	Meta     struct {
		originDoc
		resultDoc
	} `json:"meta"`
}

type bundleDoc struct {
	Meta    originDoc   `json:"meta"`
	Results []answerDoc `json:"results"`
}

func (p *program) queryCommand() *cobra.Command {
	var a callArguments
	bundle := ""
	cmd := &cobra.Command{
		Use:   "query WORKSPACE (ENDPOINT | --bundle FILE)",
		Short: "Ask a running node",
		Long: `Calls one endpoint, or all the endpoints of a query bundle at one snapshot, and prints the answer as a table, or with --json as the
node sent it. What an endpoint takes is shown by leapview describe. A bundle is JSON:
{"queries":[{"name":…,"endpoint":…,"params":{…}}]}; the file - is standard input.`,
		Example: `  leapview query flights delays --param carrier=UA --limit 5
  leapview query flights delays --param carriers=UA --param carriers=AA --order-by=-flights,carrier
  leapview query flights --bundle dashboard.json --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if bundle == "" {
				return arguments("a WORKSPACE", "an ENDPOINT or --bundle FILE")(cmd, args)
			}
			if flag := a.given(); flag != "" {
				return fmt.Errorf("%s does not go with --bundle, which holds its own", flag)
			}
			return arguments("a WORKSPACE")(cmd, args)
		},
		RunE: p.run(func(ctx context.Context, args []string) error {
			w, err := serving.ParseWorkspace(args[0])
			if err != nil {
				return err
			}
			path, body := workspacePath(w, "/query-bundles"), []byte(nil)
			if bundle != "" {
				body, err = p.readBundle(bundle)
			} else if err = validEndpoint(args[1]); err == nil {
				path = workspacePath(w, "/endpoints/"+args[1])
				body, err = a.body()
			}
			if err != nil {
				return err
			}
			return p.query(ctx, path, body, bundle != "")
		}),
	}
	// Not a slice flag: a value may hold commas.
	cmd.Flags().StringArrayVarP(&a.params, "param", "p", nil, "a parameter as `name=value`; may be repeated, and the same name gives a list")
	cmd.Flags().StringVar(&a.orderBy, "order-by", "", "`columns` to sort by, as a,-b: a minus in front sorts descending")
	cmd.Flags().StringVar(&a.columns, "columns", "", "`columns` of the answer, as a,b")
	cmd.Flags().StringVar(&a.limit, "limit", "", "most `rows` of the answer")
	cmd.Flags().StringVar(&bundle, "bundle", "", "`file` that holds a query bundle; - is standard input")
	return cmd
}

func (p *program) query(ctx context.Context, path string, body []byte, bundle bool) error {
	c, running, err := p.node(ctx)
	if err != nil {
		return err
	}
	if !running {
		return fail.New(fail.Unavailable, "node_not_running", "queries are answered by a running node, and none runs on data directory %s", p.options.DataDir).
			WithFix("start one in another terminal: leapview serve --data-dir %s", p.options.DataDir)
	}
	defer c.close()
	res, err := c.request(ctx, http.MethodPost, path, map[string]string{"Content-Type": "application/json"}, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if p.json {
		if _, err := io.Copy(p.stdout, res.Body); err != nil {
			return broken(ctx, err)
		}
		return nil
	}
	if !bundle {
		var a answerDoc
		if err := decode(ctx, res.Body, &a); err != nil {
			return err
		}
		return p.printAnswer(a, a.Meta.originDoc)
	}
	var b bundleDoc
	if err := decode(ctx, res.Body, &b); err != nil {
		return err
	}
	for i, a := range b.Results {
		if i > 0 {
			if err := p.print("\n"); err != nil {
				return err
			}
		}
		if err := p.print("%s (%s)\n", a.Name, a.Endpoint); err != nil {
			return err
		}
		if err := p.printAnswer(a, b.Meta); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printAnswer(a answerDoc, from originDoc) error {
	header, right := make([]string, len(a.Columns)), make([]bool, len(a.Columns))
	for i, c := range a.Columns {
		header[i], right[i] = printable(c.Name), numeric(c.Type)
	}
	rows := make([][]string, len(a.Rows))
	for i, row := range a.Rows {
		if len(row) != len(header) {
			return fail.New(fail.Internal, "strange_answer", "row %d of the answer has %d values for %d columns", i+1, len(row), len(header))
		}
		rows[i] = make([]string, len(row))
		for j, v := range row {
			rows[i][j] = cell(v)
		}
	}
	if err := writeTable(p.stdout, header, right, rows); err != nil {
		return err
	}
	p.hint("%s from generation %d, snapshot %d, release %s, built %s", counted(a.Meta.Rows, "row"), from.Generation, from.Snapshot,
		from.Release.Short(), from.BuiltAt.Format("2006-01-02 15:04:05 MST"))
	if a.Meta.Truncated {
		p.hint("there are more rows: the answer was cut at its limit (%s)%s", a.Meta.TruncationReason, truncatedBy[a.Meta.TruncationReason])
	}
	for _, w := range a.Meta.Warnings {
		p.hint("warning: %s", printable(w))
	}
	return nil
}

// truncatedBy says who sets the bound that cut an answer.
var truncatedBy = map[string]string{
	"row_limit":  ", the endpoint's own limit",
	"byte_limit": ", which the node's --answer-bytes sets",
}

// cell is a value as a table shows it.
func cell(v json.RawMessage) string {
	var s string
	switch {
	case string(v) == "null":
		return "NULL"
	case len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s) == nil:
		return printable(s)
	}
	return printable(string(v))
}

// numeric tells whether a column of this engine type lines up at the right.
func numeric(engineType string) bool {
	switch name, _, _ := strings.Cut(engineType, "("); name {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL":
		return !strings.HasSuffix(engineType, "[]")
	}
	return false
}

// callArguments are the flags that make a call.
type callArguments struct {
	params                  []string
	orderBy, columns, limit string
}

// given names a flag that was given, or "".
func (a callArguments) given() string {
	switch {
	case len(a.params) > 0:
		return "--param"
	case a.orderBy != "":
		return "--order-by"
	case a.columns != "":
		return "--columns"
	case a.limit != "":
		return "--limit"
	}
	return ""
}

// body is the call; the node judges what is in it. A name that is given several times is a list.
func (a callArguments) body() ([]byte, error) {
	params := map[string]any{}
	for _, pair := range a.params {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fail.New(fail.Invalid, "usage", "--param %q is not name=value", pair)
		}
		switch before := params[name].(type) {
		case nil:
			params[name] = value
		case string:
			params[name] = []string{before, value}
		case []string:
			params[name] = append(before, value)
		}
	}
	doc := map[string]any{"params": params}
	for key, text := range map[string]string{"order_by": a.orderBy, "columns": a.columns, "limit": a.limit} {
		if text != "" {
			doc[key] = text
		}
	}
	return json.Marshal(doc)
}

// readBundle reads a query bundle as it is; the node judges it.
func (p *program) readBundle(name string) (b []byte, err error) {
	from := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fail.New(fail.Invalid, "bad_bundle_file", "the query bundle cannot be read").Because(err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	b, err = io.ReadAll(io.LimitReader(from, app.MostBodyBytes+1))
	if err != nil {
		return nil, fail.New(fail.Invalid, "bad_bundle_file", "the query bundle cannot be read").Because(fmt.Errorf("read %s: %w", name, err))
	}
	if len(b) > app.MostBodyBytes {
		return nil, fail.New(fail.Limit, "body_too_large", "the query bundle %s is longer than %d bytes, which no node takes", name, app.MostBodyBytes).WithFix("split it")
	}
	return b, nil
}
