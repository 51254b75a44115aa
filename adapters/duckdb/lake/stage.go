package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// mostProblems is how many misfits of one source are reported; the rest of a broken file says nothing new.
const mostProblems = 20

// misfit is what the engine says when a value does not have its declared form. Where it stands is found by reading the file again.
const misfit = "leapview: value does not fit"

// Stage is ports.Build's.
func (b *build) Stage(ctx context.Context, source project.Source, artifacts []ports.Artifact) (int64, error) {
	// The name is no relation that a statement can reach but by our own rewriting.
	table := "stage " + source.Name
	columns := join(source.Columns, ", ", func(c project.Column) string { return quote(c.Name) + " " + string(c.Type) })
	if err := b.conn.Exec(ctx, "CREATE TEMP TABLE "+quote(table)+" ("+columns+")"); err != nil {
		return 0, err
	}
	var err error
	switch source.Format {
	case project.CSV:
		err = b.stageCSV(ctx, table, source, artifacts)
	case project.Parquet:
		err = b.stageParquet(ctx, table, source, artifacts)
	case project.JSON:
		err = b.stageJSON(ctx, table, source, artifacts)
	default:
		err = fail.New(fail.Internal, "unknown_format", "source %q has format %q", source.Name, source.Format)
	}
	if err != nil {
		return 0, err
	}
	var rows int64
	if err := b.conn.Scan(ctx, "SELECT count(*) FROM "+quote(table), nil, &rows); err != nil {
		return 0, err
	}
	if b.staged == nil {
		b.staged = map[string]gate.Target{}
	}
	b.staged[source.Name] = gate.Target{Catalog: "temp", Schema: "main", Table: table}
	return rows, nil
}

// form is the exact text that a declared type accepts, as a regular expression for a whole value; "" when the engine's own cast is
// strict enough. The engine alone would round 1.5 to an INTEGER, cut the time off a DATE, and drop an offset.
func form(t project.Type) string {
	const (
		date  = `[0-9]{4}-[0-9]{2}-[0-9]{2}`
		clock = `[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?`
	)
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
		return `[+-]?[0-9]+`
	case "FLOAT", "DOUBLE":
		return `[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|[+-]?inf(inity)?)`
	case "BOOLEAN":
		return `(?i:true|false|t|f|1|0)`
	case "DATE":
		return date
	case "TIME":
		return clock
	case "TIMESTAMP":
		return date + `[ T]` + clock
	case "TIMESTAMP WITH TIME ZONE":
		return date + `[ T]` + clock + `(Z|[+-][0-9]{2}(:?[0-9]{2})?)`
	}
	if digits, found := strings.CutPrefix(string(t), "DECIMAL("); found {
		_, scale, _ := strings.Cut(strings.TrimSuffix(digits, ")"), ",")
		return `[+-]?([0-9]+([.][0-9]{0,` + scale + `}0*)?|[.][0-9]{1,` + scale + `}0*)`
	}
	return ""
}

// typed is the expression that turns the text in column x into the declared type, exactly, or stops the statement. A text that is
// already the value's own text needs no look at its form, which is the usual case and the cheap one.
func typed(x string, t project.Type) string {
	stop := "error(" + literal(misfit) + ")"
	switch t {
	case "VARCHAR":
		// The engine's own file statistics cannot hold a NUL byte.
		return "CASE WHEN contains(" + x + ", chr(0)) THEN " + stop + " ELSE " + x + " END"
	case "FLOAT", "DOUBLE":
		v := "TRY_CAST(" + x + " AS " + string(t) + ")"
		return "CASE WHEN " + x + " IS NULL THEN NULL WHEN isfinite(" + v + ") AND regexp_full_match(" + x + ", " + literal(form(t)) + ") THEN " + v +
			" WHEN NOT isfinite(" + v + ") AND regexp_full_match(" + x + ", '(?i:nan|[+-]?inf(inity)?)') THEN " + v + " ELSE " + stop + " END"
	}
	v := "TRY_CAST(" + x + " AS " + string(t) + ")"
	fits := v + " IS NOT NULL"
	if f := form(t); f != "" {
		fits = v + "::VARCHAR = " + x + " OR (" + fits + " AND regexp_full_match(" + x + ", " + literal(f) + "))"
		return "CASE WHEN " + x + " IS NULL THEN NULL WHEN " + v + "::VARCHAR = " + x + " THEN " + v +
			" WHEN " + v + " IS NOT NULL AND regexp_full_match(" + x + ", " + literal(f) + ") THEN " + v + " ELSE " + stop + " END"
	}
	return "CASE WHEN " + x + " IS NULL THEN NULL WHEN " + fits + " THEN " + v + " ELSE " + stop + " END"
}

// stageParquet reads columns by name. A file whose columns differ from the declared ones, or whose type would have to lose something,
// is a problem that names both.
func (b *build) stageParquet(ctx context.Context, table string, source project.Source, artifacts []ports.Artifact) error {
	var problems project.Problems
	for _, a := range artifacts {
		got, err := b.columns(ctx, "SELECT * FROM read_parquet("+literal(a.Path)+")")
		if err != nil {
			return unreadable(err, a)
		}
		problems = append(problems, compare(a, source, got)...)
	}
	if len(problems) > 0 {
		return first(problems)
	}
	for _, a := range artifacts {
		values := join(source.Columns, ", ", func(c project.Column) string { return "CAST(" + quote(c.Name) + " AS " + string(c.Type) + ")" })
		if err := b.conn.Exec(ctx, "INSERT INTO "+quote(table)+" SELECT "+values+" FROM read_parquet("+literal(a.Path)+")"); err != nil {
			return unreadable(err, a)
		}
	}
	return nil
}

// compare holds a Parquet file's columns against the declared ones.
func compare(a ports.Artifact, source project.Source, got []project.Column) project.Problems {
	at := project.Position{File: a.Name}
	var problems project.Problems
	declared := map[string]project.Column{}
	for _, c := range source.Columns {
		declared[c.Name] = c
	}
	seen := map[string]bool{}
	for _, g := range got {
		seen[g.Name] = true
		d, ok := declared[g.Name]
		switch {
		case !ok:
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("the file has a column %q that source %q does not declare", g.Name, source.Name),
				Fix: "declare it under columns, or deliver the file without it"})
		case !widens(g.Type, d.Type):
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("column %q is %s in the file, which source %q declares as %s: values could be lost", g.Name, g.Type, source.Name, d.Type),
				Fix: fmt.Sprintf("declare it as %s, and cast it in a model", g.Type)})
		}
	}
	for _, c := range source.Columns {
		if !seen[c.Name] {
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("the file lacks the column %q that source %q declares", c.Name, source.Name)})
		}
	}
	return problems
}

// widening lists, for each type, the ones that hold all of its values exactly.
var widening = map[project.Type]string{
	"TINYINT":   "SMALLINT INTEGER BIGINT FLOAT DOUBLE",
	"SMALLINT":  "INTEGER BIGINT FLOAT DOUBLE",
	"INTEGER":   "BIGINT DOUBLE",
	"UTINYINT":  "SMALLINT INTEGER BIGINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE",
	"USMALLINT": "INTEGER BIGINT UINTEGER UBIGINT FLOAT DOUBLE",
	"UINTEGER":  "BIGINT UBIGINT DOUBLE",
	"FLOAT":     "DOUBLE",
	"DATE":      "TIMESTAMP",
}

// widens tells whether every value of one type is a value of the other.
func widens(from, to project.Type) bool {
	if from == to {
		return true
	}
	for _, t := range strings.Fields(widening[from]) {
		if project.Type(t) == to {
			return true
		}
	}
	var p, s, q, r int
	if n, _ := fmt.Sscanf(string(from), "DECIMAL(%d,%d)", &p, &s); n == 2 {
		if n, _ := fmt.Sscanf(string(to), "DECIMAL(%d,%d)", &q, &r); n == 2 {
			return r >= s && q-r >= p-s
		}
	}
	return false
}

// stageJSON reads an array of objects, or one object a line. Each value is taken as the text it was written in, so that none is
// rounded on the way.
func (b *build) stageJSON(ctx context.Context, table string, source project.Source, artifacts []ports.Artifact) error {
	names := join(source.Columns, ", ", func(c project.Column) string { return literal(c.Name) })
	for _, a := range artifacts {
		format, err := jsonFormat(a)
		if err != nil {
			return err
		}
		values := join(source.Columns, ", ", func(c project.Column) string {
			path := literal("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(c.Name))
			x := "json_extract_string(j, " + path + ")"
			if c.Type == "JSON" {
				return "json_extract(j, " + path + ")"
			}
			kinds := "'UBIGINT', 'BIGINT', 'DOUBLE', 'HUGEINT', 'UHUGEINT'"
			switch c.Type {
			case "BOOLEAN":
				kinds = "'BOOLEAN'"
			case "VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "UUID", "BLOB":
				kinds = "'VARCHAR'"
			}
			// A missing key and a JSON null are both NULL.
			return "CASE WHEN " + x + " IS NULL THEN NULL WHEN json_type(j, " + path + ") NOT IN (" + kinds + ") THEN error(" + literal(misfit) + ") ELSE " + typed(x, c.Type) + " END"
		})
		from := "(SELECT CASE WHEN json_type(json) <> 'OBJECT' OR NOT list_has_all([" + names + "], json_keys(json)) THEN error(" + literal(misfit) + ") ELSE json END AS j FROM read_json_objects(" +
			literal(a.Path) + ", format = " + literal(format) + ", compression = " + literal(compression(a)) + "))"
		if err := b.conn.Exec(ctx, "INSERT INTO "+quote(table)+" SELECT "+values+" FROM "+from); err != nil {
			return b.explainJSON(err, source, a)
		}
	}
	return nil
}

func compression(a ports.Artifact) string {
	if strings.HasSuffix(a.Name, ".gz") {
		return "gzip"
	}
	return "none"
}

// explainJSON finds, by reading the file once more, the objects that the engine stopped at.
func (b *build) explainJSON(err error, source project.Source, a ports.Artifact) error {
	if !stopped(err) {
		return unreadable(err, a)
	}
	f, openErr := openArtifact(a)
	if openErr != nil {
		return openErr
	}
	defer f.Close()
	problems := misfitsInJSON(f, source, a)
	if len(problems) == 0 {
		return unreadable(err, a)
	}
	return first(problems)
}

// stopped tells whether the engine stopped at a value or at the file's shape, rather than at a bound or a defect.
func stopped(err error) bool {
	var classified *fail.Error
	_, ok := engine.AsSQLError(err)
	return ok && !errors.As(err, &classified)
}

// unreadable names the artifact that the engine could not read; bounds, cancellation and defects stay as they are.
func unreadable(err error, a ports.Artifact) error {
	if !stopped(err) {
		return err
	}
	e, _ := engine.AsSQLError(err)
	message, _, _ := strings.Cut(e.Message, "\n")
	return project.Problems{{At: project.Position{File: a.Name}, Message: "the file cannot be read as declared: " + strings.ReplaceAll(message, a.Path, a.Name),
		Fix: "mend or replace the file, or correct the source's declaration"}}
}

// first is as many of the problems as are worth reporting.
func first(problems project.Problems) error {
	if len(problems) > mostProblems {
		more := len(problems) - mostProblems
		problems = append(problems[:mostProblems:mostProblems], project.Problem{At: problems[mostProblems].At, Message: fmt.Sprintf("%d more problems like these were left out", more)})
	}
	return problems
}

// jsonFormat tells an array from one object a line by the first byte that is no space.
func jsonFormat(a ports.Artifact) (string, error) {
	f, err := openArtifact(a)
	if err != nil {
		return "", err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	t, err := d.Token()
	if err != nil {
		return "", project.Problems{{At: project.Position{File: a.Name, Line: 1, Column: 1}, Message: "the file holds no JSON", Fix: "deliver an array of objects, or one object a line"}}
	}
	if t == json.Delim('[') {
		return "array", nil
	}
	return "newline_delimited", nil
}

// remove deletes a file of ours that may be gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a staged file: %w", err)
	}
	return nil
}
