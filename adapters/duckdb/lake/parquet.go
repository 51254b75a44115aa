package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/project"
	"leapview/ports"
)

// nul is what the engine says of a text with a NUL byte.
const nul = "leapview: a text has a NUL byte"

// readParquet is the table function over one file. Only what the file holds counts: folders named key=value add nothing.
func readParquet(path string) string {
	return "read_parquet(" + engine.Literal(path) + ", hive_partitioning = false, union_by_name = false)"
}

// stageParquet reads columns by name. A file whose columns differ from the declared ones, or whose type would have to lose something,
// is a problem that names both.
func (b *build) stageParquet(ctx context.Context, s *staged, artifacts []ports.Artifact) error {
	source := s.source
	var problems project.Problems
	types := make([]map[string]project.Type, len(artifacts))
	for i, a := range artifacts {
		got, err := b.columns(ctx, "SELECT * FROM "+readParquet(a.Path))
		if err != nil {
			return unreadable(err, a, a.Path)
		}
		types[i] = map[string]project.Type{}
		for _, c := range got {
			types[i][c.Name] = c.Type
		}
		found, err := b.truncated(ctx, source, a)
		if err != nil {
			return unreadable(err, a, a.Path)
		}
		problems = append(problems, found...)
		differences, ignored := compare(a, source, got)
		problems = append(problems, differences...)
		s.ignore(ignored...)
	}
	if len(problems) > 0 {
		return first(problems)
	}
	if err := b.holding(ctx, s); err != nil {
		return err
	}
	for i, a := range artifacts {
		values := join(source.Columns, ", ", func(c project.Column) string {
			return converted(engine.Identifier(c.FileColumn()), types[i][c.FileColumn()], c.Type)
		})
		if err := b.conn.Exec(ctx, "INSERT INTO "+engine.Identifier(s.relation)+" SELECT "+values+" FROM "+readParquet(a.Path)); err != nil {
			if strings.Contains(err.Error(), nul) {
				return project.Problems{{At: project.Position{File: a.Name}, Message: "the file has a text with a NUL byte, which no table keeps", Fix: "deliver the file without it, or declare the column BLOB"}}
			}
			if e := unreadable(err, a, a.Path); !strings.Contains(err.Error(), misfit) {
				return e
			}
			return project.Problems{{At: project.Position{File: a.Name}, Message: "the file has a time with fractions of a microsecond, which no type can keep",
				Fix: "deliver the file with microseconds"}}
		}
	}
	return nil
}

// truncated are the columns whose values the engine cuts to microseconds without a word: times of day in nanoseconds, and the 96 bits that
// older writers used for moments.
func (b *build) truncated(ctx context.Context, source project.Source, a ports.Artifact) (problems project.Problems, err error) {
	rows, err := b.conn.Rows(ctx, "SELECT name, type FROM parquet_schema("+engine.Literal(a.Path)+") WHERE type = 'INT96' OR logical_type LIKE 'TimeType%' AND logical_type LIKE '%NANOS=NanoSeconds%'")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return nil, err
		}
		if source.OnChange == project.ChangeIgnore && !slices.Contains(fileColumns(source), name) {
			continue
		}
		what := "times of day in nanoseconds"
		if kind == "INT96" {
			what = "moments in 96 bits (INT96)"
		}
		problems = append(problems, project.Problem{At: project.Position{File: a.Name}, Message: fmt.Sprintf("column %q holds %s, which would be cut to microseconds", name, what), Fix: "write the file with microseconds in 64 bits"})
	}
	return problems, rows.Err()
}

// converted is the value of a column as the declared type, which holds every value of the file's type but the finest fractions of
// nanosecond times: those stop the statement.
func converted(x string, from, to project.Type) string {
	v := "CAST(" + x + " AS " + string(to) + ")"
	if to == "VARCHAR" {
		// The engine's own file statistics cannot hold a NUL byte.
		return "CASE WHEN contains(" + x + ", chr(0)) THEN error(" + engine.Literal(nul) + ") ELSE " + v + " END"
	}
	if from == nanoseconds && to == "TIMESTAMP" {
		return "CASE WHEN " + x + " IS NULL THEN NULL WHEN CAST(" + v + " AS " + nanoseconds + ") = " + x + " THEN " + v + " ELSE error(" + engine.Literal(misfit) + ") END"
	}
	return v
}

// compare holds a Parquet file's columns against the declared ones, and gives those that may be left out.
func compare(a ports.Artifact, source project.Source, got []project.Column) (problems project.Problems, ignored []string) {
	at := project.Position{File: a.Name}
	declared := map[string]project.Column{}
	for _, c := range source.Columns {
		declared[c.FileColumn()] = c
	}
	seen := map[string]bool{}
	for _, g := range got {
		seen[g.Name] = true
		d, ok := declared[g.Name]
		switch {
		case !ok && source.OnChange == project.ChangeIgnore:
			ignored = append(ignored, g.Name)
		case !ok:
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("the file has a column %s that source %q does not declare", shown(g.Name), source.Name),
				Fix: undeclared(g.Name, fileColumns(source))})
		case source.Types == project.TypesExact && g.Type != d.Type:
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("column %q is %s in the file, which source %q declares as %s, and types is exact", g.Name, g.Type, source.Name, d.Type),
				Fix: "deliver the file with the declared type, declare the file's, or write types: widen"})
		case !widens(g.Type, d.Type):
			fix := "deliver the file with another type"
			if use := holds(g.Type); use != "" {
				fix = fmt.Sprintf("declare it as %s, and cast it in a model", use)
			}
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("column %q is %s in the file, which source %q declares as %s: values could be lost", g.Name, g.Type, source.Name, d.Type), Fix: fix})
		}
	}
	for _, c := range source.Columns {
		if !seen[c.FileColumn()] {
			problems = append(problems, project.Problem{At: at, Message: fmt.Sprintf("the file lacks the column %q that source %q declares", c.FileColumn(), source.Name),
				Fix: "deliver the file with it, or take it out of columns"})
		}
	}
	return problems, ignored
}

// nanoseconds is a type that files have and sources cannot declare.
const nanoseconds = "TIMESTAMP_NS"

// widening lists, for each type, the ones that hold all of its values exactly; of nanoseconds, all that are whole microseconds.
var widening = map[project.Type]string{
	"TINYINT":   "SMALLINT INTEGER BIGINT DOUBLE",
	"SMALLINT":  "INTEGER BIGINT DOUBLE",
	"INTEGER":   "BIGINT DOUBLE",
	"UTINYINT":  "SMALLINT INTEGER BIGINT USMALLINT UINTEGER UBIGINT DOUBLE",
	"USMALLINT": "INTEGER BIGINT UINTEGER UBIGINT DOUBLE",
	"UINTEGER":  "BIGINT UBIGINT DOUBLE",
	"FLOAT":     "DOUBLE",
	"DATE":      "TIMESTAMP",
	nanoseconds: "TIMESTAMP",
}

// wholeDigits is how many decimal digits a type of whole numbers has at most.
var wholeDigits = map[project.Type]int{
	"TINYINT": 3, "UTINYINT": 3, "SMALLINT": 5, "USMALLINT": 5, "INTEGER": 10, "UINTEGER": 10, "BIGINT": 19, "UBIGINT": 20,
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
	q, r, ok := decimalOf(to)
	if !ok {
		return false
	}
	if p, s, ok := decimalOf(from); ok {
		return r >= s && q-r >= p-s
	}
	n, whole := wholeDigits[from]
	return whole && q-r >= n
}

func decimalOf(t project.Type) (width, scale int, ok bool) {
	n, _ := fmt.Sscanf(string(t), "DECIMAL(%d,%d)", &width, &scale)
	return width, scale, n == 2
}

// holds is the type to declare for a file's type, or "" when there is none.
func holds(t project.Type) string {
	if t == nanoseconds {
		return "TIMESTAMP"
	}
	if _, err := project.ParseType(string(t)); err != nil {
		return ""
	}
	return string(t)
}
