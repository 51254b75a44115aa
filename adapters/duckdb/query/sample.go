package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"leapview/adapters/duckdb/engine"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// The bounds of what is kept of a check's failures. One row of so many columns, each with so many characters, always fits into the bytes,
// also when JSON writes each character in six.
const (
	sampleRows    = 5
	sampleColumns = 16
	sampleText    = 60
	sampleBytes   = 6 << 10
)

// shown is a sample as it is stored.
type shown struct {
	Columns []string        `json:"columns"`
	Rows    json.RawMessage `json:"rows"`
	// More counts the columns that were left out.
	More int `json:"more_columns,omitempty"`
}

// sample gives a few of the rule's failures as a JSON object: the columns that the check names first, and long values cut.
func (k *Checker) sample(ctx context.Context, scope serving.Scope, c project.Check, r rule) (string, error) {
	if r.sample == "" {
		return "", nil
	}
	columns := slices.Clone(r.columns)
	if columns == nil {
		whole, err := k.reader.Prepare(ctx, scope, project.Statement{SQL: r.sample, At: c.At, Indent: project.Unplaced}, nil)
		if err != nil {
			return "", err
		}
		columns = slices.Clone(whole.Columns())
	}
	slices.SortStableFunc(columns, func(a, b serving.Column) int { return rank(c, a.Name) - rank(c, b.Name) })
	s := shown{More: max(0, len(columns)-sampleColumns)}
	var selected []string
	for _, column := range columns[:len(columns)-s.More] {
		s.Columns = append(s.Columns, column.Name)
		selected = append(selected, brief(column)+" AS "+engine.Identifier(column.Name))
	}
	q, err := k.reader.Prepare(ctx, scope, project.Statement{SQL: "SELECT " + strings.Join(selected, ", ") + " FROM (" + r.sample + ")", At: c.At, Indent: project.Unplaced}, nil)
	if err != nil {
		return "", err
	}
	reading, err := k.reader.Open(ctx)
	if err != nil {
		return "", err
	}
	a, err := reading.Answer(ctx, q, nil, serving.Limits{Rows: sampleRows, Bytes: sampleBytes})
	err = errors.Join(err, reading.Close())
	if e, ok := engine.AsSQLError(err); ok && fail.KindOf(err) == fail.Invalid {
		// Counting them did not take their values.
		return complaint(e)
	}
	if err != nil {
		return "", err
	}
	s.Rows = a.Rows
	text, err := json.Marshal(s)
	return string(text), err
}

// rank puts the columns that the check names first, in its order.
func rank(c project.Check, column string) int {
	if i := slices.Index(c.Columns, column); i >= 0 {
		return i
	}
	return len(c.Columns)
}

// brief is the column's value, or a text of at most sampleText characters and a sign that it was cut.
func brief(c serving.Column) string {
	name := engine.Identifier(c.Name)
	switch {
	case c.Type == "BLOB":
		// Base64 writes three bytes in four characters.
		return fmt.Sprintf("CASE WHEN octet_length(%s) > %d THEN to_base64((%[1]s)[1:%[2]d]) || '…' ELSE to_base64(%[1]s) END", name, sampleText/4*3)
	case c.Type == "VARCHAR", c.Type == "JSON", strings.ContainsAny(c.Type, "[(") && !strings.HasPrefix(c.Type, "DECIMAL"), strings.HasSuffix(c.Type, "]"):
		return fmt.Sprintf("CASE WHEN length(CAST(%s AS VARCHAR)) > %d THEN left(CAST(%[1]s AS VARCHAR), %[2]d) || '…' ELSE CAST(%[1]s AS VARCHAR) END", name, sampleText)
	}
	return name
}

// complaint is a sample that holds what the engine says instead of rows. It may quote one.
func complaint(e *engine.SQLError) (string, error) {
	message, _, _ := strings.Cut(e.Error(), "\n")
	if len(message) > 5*sampleText {
		message = strings.ToValidUTF8(message[:5*sampleText], "") + "…"
	}
	rows, err := json.Marshal([][]string{{strings.ToValidUTF8(message, "�")}})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(shown{Columns: []string{"error"}, Rows: rows})
	return string(text), err
}
