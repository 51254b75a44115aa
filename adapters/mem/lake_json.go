package mem

import (
	"bytes"
	"encoding/json"
	"fmt"

	"leapview/domain/project"
)

// readJSON reads one flat object a line, or, unless the source wants lines, an empty list.
func readJSON(s project.Source, name string, content []byte) ([][]value, error) {
	if s.Format == project.JSON && string(bytes.TrimSpace(content)) == "[]" {
		return nil, nil
	}
	var rows [][]value
	n := 0
	for line := range bytes.Lines(content) {
		n++
		wrong := func(format string, args ...any) error {
			return project.Problems{{At: project.Position{File: name, Line: n, Column: 1}, Message: fmt.Sprintf(format, args...)}}
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var object map[string]any
		if err := d.Decode(&object); err != nil {
			return nil, wrong("the line is not a JSON object: %v", err)
		}
		row := make([]value, len(s.Columns))
		for i, c := range s.Columns {
			var err error
			switch v := object[c.FileColumn()].(type) {
			case nil:
				continue
			case string:
				if c.Type != "VARCHAR" {
					err = fmt.Errorf("%q is a string", v)
				} else {
					row[i], err = parseValue(v, c.Type)
				}
			case json.Number:
				row[i], err = parseValue(v.String(), c.Type)
			default:
				err = fmt.Errorf("the in-memory store does not read %v", v)
			}
			if err != nil {
				return nil, wrong("column %q: %v", c.Name, err)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
