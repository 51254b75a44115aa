package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/ports"
)

// mostProblems is how many misfits of one source are reported; the rest of a broken file says nothing new.
const mostProblems = 20

// misfit is what the engine says when a value does not have its declared form. Where it stands is found by reading the file again.
const misfit = "leapview: value does not fit"

// Stage is ports.Build's.
func (b *build) Stage(ctx context.Context, source project.Source, artifacts []ports.Artifact) (ports.Staged, error) {
	s := staged{source: source, relation: stagedName(source, len(b.staged[source.Name])), names: join(artifacts, ", ", func(a ports.Artifact) string { return a.Name })}
	var err error
	switch source.Format {
	case project.CSV:
		err = b.stageCSV(ctx, &s, artifacts)
	case project.Parquet:
		err = b.stageParquet(ctx, &s, artifacts)
	case project.JSON, project.NDJSON:
		err = b.stageJSON(ctx, &s, artifacts)
	default:
		err = fail.New(fail.Internal, "unknown_format", "source %q has format %q", source.Name, source.Format)
	}
	if err != nil {
		return ports.Staged{}, err
	}
	if !s.view {
		if err := b.conn.Scan(ctx, "SELECT count(*) FROM "+engine.Identifier(s.relation), nil, &s.rows); err != nil {
			return ports.Staged{}, err
		}
	}
	b.staged[source.Name] = append(b.staged[source.Name], s)
	return ports.Staged{Rows: s.rows, Ignored: s.ignored}, nil
}

// staged is a part of a source as a temporary relation: a table that holds its rows, or a view of files that are proved to be readable.
type staged struct {
	source   project.Source
	relation string
	// names are the part's files, for people.
	names string
	view  bool
	rows  int64
	// ignored are the columns of its files that were left out, sorted.
	ignored []string
}

// ignore remembers columns that were left out.
func (s *staged) ignore(names ...string) {
	s.ignored = append(s.ignored, names...)
	slices.Sort(s.ignored)
	s.ignored = slices.Compact(s.ignored)
}

// stagedName is no relation that a statement can reach but by our own rewriting.
func stagedName(source project.Source, part int) string {
	return fmt.Sprintf("stage %s %d", source.Name, part)
}

// holding makes the empty table that is to hold the source's rows.
func (b *build) holding(ctx context.Context, s *staged) error {
	columns := join(s.source.Columns, ", ", func(c project.Column) string { return engine.Identifier(c.Name) + " " + string(c.Type) })
	return b.conn.Exec(ctx, "CREATE TEMP TABLE "+engine.Identifier(s.relation)+" ("+columns+")")
}

// whole gives the relation of all of a source's parts. A single view stays one when it is read once; everything else is put together in a
// table, so that files are read once for all of their readers.
func (b *build) whole(ctx context.Context, parts []staged, readers int) (string, error) {
	if len(parts) == 1 && (!parts[0].view || readers <= 1) {
		return parts[0].relation, nil
	}
	held := staged{source: parts[0].source, relation: "held " + parts[0].source.Name}
	if err := b.holding(ctx, &held); err != nil {
		return "", err
	}
	for _, p := range parts {
		if err := b.conn.Exec(ctx, "INSERT INTO "+engine.Identifier(held.relation)+" FROM "+engine.Identifier(p.relation)); err != nil {
			return "", err
		}
	}
	return held.relation, nil
}

// form is the exact text that a declared type accepts, as a regular expression for a whole value; "" when the engine's own cast is
// strict enough. The engine alone would round 1.5 to an INTEGER, cut the time off a DATE, and drop an offset. expected says the
// same to people.
func form(t project.Type) (pattern, expected string) {
	const (
		date  = `[0-9]{4}-[0-9]{2}-[0-9]{2}`
		clock = `[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?`
	)
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
		return `[+-]?[0-9]+`, "a whole number within its range, in digits alone"
	case "DOUBLE":
		return `[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?`, "a number within its range, like -1.5 or 1e9"
	case "BOOLEAN":
		return `(?i:true|false|t|f|1|0)`, "true or false, t or f, 1 or 0"
	case "DATE":
		return date, "a day like 2024-02-29"
	case "TIME":
		return clock, "a time of day like 23:59:59.999999"
	case "TIMESTAMP":
		return date + `[ T]` + clock, "a day and time without an offset, like 2024-02-29 23:59:59.999999"
	case "TIMESTAMP WITH TIME ZONE":
		return date + `[ T]` + clock + `(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)`, "a day and time with its offset, like 2024-02-29T23:59:59Z or 2024-02-29 23:59:59+02"
	case "VARCHAR":
		return "", "text without NUL bytes"
	case "BLOB":
		return "", `ASCII text, with other bytes as \xFF`
	}
	if digits, found := strings.CutPrefix(string(t), "DECIMAL("); found {
		width, scale, _ := strings.Cut(strings.TrimSuffix(digits, ")"), ",")
		expected = fmt.Sprintf("a number of at most %s digits, at most %s of them behind the point", width, scale)
		if scale == "0" {
			return `[+-]?[0-9]+([.]0*)?`, expected
		}
		return `[+-]?([0-9]+([.][0-9]{0,` + scale + `}0*)?|[.][0-9]{1,` + scale + `}0*)`, expected
	}
	return "", string(t) + " text"
}

// value is the expression of the text x as the type, NULL when the engine cannot read it.
func value(x string, t project.Type) string {
	if t == "VARCHAR" {
		return x
	}
	return "TRY_CAST(" + x + " AS " + string(t) + ")"
}

// ownText is the condition under which the text x is already the very text of its value: it is exact then, whatever its form, and most
// texts are. It is not true for NULL.
func ownText(x string, t project.Type) string { return "CAST(" + value(x, t) + " AS VARCHAR) = " + x }

// formed is the condition under which the text x, which is not NULL, has the form of its type.
func formed(x string, t project.Type) string {
	pattern, _ := form(t)
	match := "regexp_full_match(" + x + ", " + engine.Literal(pattern) + ")"
	switch {
	case t == "VARCHAR":
		// The engine's own file statistics cannot hold a NUL byte.
		return "NOT contains(" + x + ", chr(0))"
	case t == "DOUBLE":
		// A number beyond the range would become infinite.
		return "CASE WHEN isfinite(" + value(x, t) + ") THEN " + match + " ELSE regexp_full_match(" + x + ", '(?i:nan|[+-]?inf(inity)?)') END"
	case pattern == "":
		return "true"
	}
	return match
}

// typed is the expression that turns the text x into the declared type, exactly, or stops the statement. Its order is the cheapest
// one measured.
func typed(x string, t project.Type) string {
	if t == "VARCHAR" {
		return "CASE WHEN " + formed(x, t) + " THEN " + x + " WHEN " + x + " IS NULL THEN NULL ELSE error(" + engine.Literal(misfit) + ") END"
	}
	return "CASE WHEN " + ownText(x, t) + " THEN " + value(x, t) + " WHEN " + x + " IS NULL THEN NULL WHEN " + formed(x, t) + " THEN CAST(" + x + " AS " + string(t) +
		") ELSE error(" + engine.Literal(misfit) + ") END"
}

// misfitting is the condition under which typed would stop at the text x.
func misfitting(x string, t project.Type) string {
	if t == "VARCHAR" {
		return "NOT " + formed(x, t)
	}
	return x + " IS NOT NULL AND (" + ownText(x, t) + " OR " + value(x, t) + " IS NOT NULL AND " + formed(x, t) + ") IS NOT TRUE"
}

// texts are delimited files with the same columns in the same order. Every field is read as text first: typed decides what
// becomes of it.
type texts struct {
	columns   []project.Column
	header    bool
	delimiter string
	nulls     []string
	// quote, when it is not 0, is a further character that no plain file has: the files' own quote.
	quote byte
}

// read is the table function over the files, with columns c0, c1, ….
func (t texts) read(parallel bool, paths ...string) string {
	return t.readAs(func(project.Column) project.Type { return "VARCHAR" }, parallel, paths...)
}

// readAs is read with columns of the types that as gives them.
func (t texts) readAs(as func(project.Column) project.Type, parallel bool, paths ...string) string {
	columns := make([]string, len(t.columns))
	for i, c := range t.columns {
		columns[i] = fmt.Sprintf("'c%d': '%s'", i, as(c))
	}
	return fmt.Sprintf("read_csv([%s], auto_detect = false, header = %t, columns = {%s}, delim = %s, quote = '\"', escape = '\"', nullstr = [%s], allow_quoted_nulls = false, "+
		"strict_mode = true, null_padding = false, new_line = '\\n', compression = 'none', hive_partitioning = false, parallel = %t)",
		join(paths, ", ", engine.Literal), t.header, strings.Join(columns, ", "), engine.Literal(t.delimiter), join(t.nulls, ", ", engine.Literal), parallel)
}

// insert is the statement that adds all of the files' records to the table. parallel lets several threads read one file, which the engine
// does right only when no record goes over several lines: a thread that begins within a quoted field takes it for something else.
func (t texts) insert(table string, parallel bool, paths ...string) string {
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = typed(fmt.Sprintf("c%d", i), c.Type)
	}
	return t.into(table) + " SELECT " + strings.Join(values, ", ") + " FROM " + t.read(parallel, paths...)
}

// typedQuery gives the records of files that are plain, with the columns in this order.
func (t texts) typedQuery(columns []project.Column, paths ...string) string {
	return "SELECT " + join(columns, ", ", func(c project.Column) string {
		return fmt.Sprintf("c%d AS %s", slices.Index(t.columns, c), engine.Identifier(c.Name))
	}) +
		" FROM " + t.readAs(func(c project.Column) project.Type { return c.Type }, true, paths...)
}

func (t texts) into(table string) string {
	return "INSERT INTO " + engine.Identifier(table) + " (" + join(t.columns, ", ", func(c project.Column) string { return engine.Identifier(c.Name) }) + ")"
}

// misplaced is a value that does not fit its column.
type misplaced struct {
	// record counts the file's records from 1, without the header.
	record int64
	column int
	text   string
}

// misfits asks the engine, which alone knows what it can read, for the first values of the file that do not fit.
func (b *build) misfits(ctx context.Context, t texts, path string) (_ []misplaced, err error) {
	bad := make([]string, len(t.columns))
	for i, c := range t.columns {
		x := fmt.Sprintf("c%d", i)
		bad[i] = fmt.Sprintf("CASE WHEN %s THEN {'i': %d, 'x': %s} END", misfitting(x, c.Type), i, x)
	}
	rows, err := b.conn.Rows(ctx, "SELECT n, u.i, left(u.x, 100) FROM (SELECT n, unnest(l) AS u FROM (SELECT row_number() OVER () AS n, ["+strings.Join(bad, ", ")+"] AS l FROM "+
		t.read(false, path)+")) WHERE u IS NOT NULL ORDER BY n, u.i LIMIT "+strconv.Itoa(mostProblems+1))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var found []misplaced
	for rows.Next() {
		var m misplaced
		if err := rows.Scan(&m.record, &m.column, &m.text); err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, rows.Err()
}

// problem is the value's problem, at its place.
func (t texts) problem(m misplaced, at project.Position) project.Problem {
	c := t.columns[m.column]
	_, expected := form(c.Type)
	return project.Problem{At: at, Message: fmt.Sprintf("column %q is declared %s, which %s is not: it has to be %s", c.Name, c.Type, shown(m.text), expected),
		Fix: "mend the file, or declare the column VARCHAR and convert it in a model"}
}

// shown is a value for people, cut when it is long.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// stopped tells whether the engine stopped at a value or at the file's shape, rather than at a bound or a defect.
func stopped(err error) bool {
	var classified *fail.Error
	_, ok := engine.AsSQLError(err)
	return ok && !errors.As(err, &classified)
}

// unreadable names the artifact that the engine could not read; bounds, cancellation and defects stay as they are. path is what
// the engine read, the artifact's own staged copy or something made of it.
func unreadable(err error, a ports.Artifact, path string) error {
	if !stopped(err) {
		return err
	}
	e, _ := engine.AsSQLError(err)
	message, _, _ := strings.Cut(strings.NewReplacer(path, a.Name, a.Path, a.Name).Replace(e.Message), "\n")
	return project.Problems{{At: project.Position{File: a.Name}, Message: "the file cannot be read as declared: " + strings.ToValidUTF8(message[:min(len(message), 300)], ""),
		Fix: "mend or replace the file, or correct the source's declaration"}}
}

// first is as many of the problems as are worth reporting.
func first(problems project.Problems) error {
	if len(problems) > mostProblems {
		at := problems[mostProblems].At
		problems = append(problems[:mostProblems:mostProblems], project.Problem{At: at, Message: "problems like these go on from here and were left out"})
	}
	return problems
}
