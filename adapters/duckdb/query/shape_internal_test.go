package query

import (
	"fmt"
	"testing"

	"leapview/adapters/duckdb/engine/enginetest"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
)

// TestShapesAreProved proves that a shape does not run before the plan of exactly that text was proved, that it is proved once, and that
// what is remembered of it is bounded.
func TestShapesAreProved(t *testing.T) {
	e, _ := enginetest.Open(t)
	c, err := e.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"CREATE SCHEMA lake.w", "CREATE TABLE lake.w.numbers__1 AS SELECT i FROM range(3) t(i)"} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	scope := serving.Scope{Workspace: "w", Tables: map[string]string{"numbers": "numbers__1"}}
	if err := c.Scan(t.Context(), "SELECT max(snapshot_id)::BIGINT FROM lake.snapshots()", nil, &scope.Snapshot); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(e)
	q, err := r.Prepare(t.Context(), scope, project.Statement{SQL: "SELECT i AS a, i AS b, i AS c, i AS d, i AS e, i AS f FROM numbers"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine := q.(*prepared)
	answer := func(shape serving.Shape) error {
		shaped, err := q.Shaped(shape)
		if err != nil {
			t.Fatal(err)
		}
		reading, err := r.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = reading.Answer(t.Context(), shaped, nil, serving.Limits{Rows: 10, Bytes: 1000})
		if err := reading.Close(); err != nil {
			t.Error(err)
		}
		return err
	}
	// What may be read is taken away: from now on, no further proof succeeds.
	proved := serving.Shape{Order: []project.Order{{Column: "a"}}}
	if err := answer(proved); err != nil {
		t.Fatal(err)
	}
	tables := mine.tables
	mine.tables = nil
	if err := answer(serving.Shape{Order: []project.Order{{Column: "a", Descending: true}}}); fail.CodeOf(err) != "unproved_plan" {
		t.Errorf("a shape that cannot be proved: %v", err)
	}
	for _, shape := range []serving.Shape{{}, proved} {
		if err := answer(shape); err != nil {
			t.Errorf("%v was proved before: %v", shape, err)
		}
	}
	mine.tables = tables
	names := []string{"a", "b", "c", "d", "e", "f"}
	for i := range maxShapes + 20 {
		shape := serving.Shape{}
		for j, name := range names {
			shape.Order = append(shape.Order, project.Order{Column: name, Descending: i>>j&1 == 1})
		}
		shape.Columns = names[:1+i/64]
		if err := answer(shape); err != nil {
			t.Fatal(fmt.Sprint(shape), err)
		}
	}
	if n := len(mine.shapes); n > maxShapes || n < 10 {
		t.Errorf("%d shapes are remembered", n)
	}
}
