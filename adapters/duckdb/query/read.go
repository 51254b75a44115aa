package query

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"

	"leapview/adapters/duckdb/engine"
	"leapview/adapters/duckdb/gate"
	"leapview/adapters/duckdb/query/encode"
	"leapview/domain/fail"
	"leapview/domain/project"
	"leapview/domain/serving"
	"leapview/ports"
)

// Reader prepares and answers statements at a snapshot. It holds no state: goroutines share it freely.
type Reader struct{ engine *engine.Engine }

var _ ports.Reader = (*Reader)(nil)

// NewReader makes a reader over the engine.
func NewReader(e *engine.Engine) *Reader { return &Reader{e} }

// prepared is the reader's ports.Query.
type prepared struct {
	*pinned
	shape   serving.Shape
	columns []serving.Column
}

// SQL is the statement that runs, below its shape and a bound on its rows, so that a plan can be inspected.
func (q *prepared) SQL() string { return q.sql }

// Columns is ports.Query's.
func (q *prepared) Columns() []serving.Column { return q.columns }

// Shaped is ports.Query's. Nothing of the shape but names of columns that the statement was proved to have becomes SQL.
func (q *prepared) Shaped(shape serving.Shape) (ports.Query, error) {
	columns, err := shape.Of(q.pinned.columns)
	if err != nil {
		return nil, err
	}
	return &prepared{q.pinned, shape, columns}, nil
}

// Prepare is ports.Reader's. It needs one connection for as long as it runs.
func (r *Reader) Prepare(ctx context.Context, scope serving.Scope, statement project.Statement, params []project.Param) (q ports.Query, err error) {
	err = r.transaction(ctx, func(c *engine.Conn) error {
		var p *pinned
		s, err := gate.Parse(ctx, c, statement.SQL)
		if err != nil {
			return located(err, statement, nil)
		}
		if problems := mismatched(s, statement, params); len(problems) > 0 {
			return problems
		}
		if p, err = prove(ctx, c, scope, s, paramTypes(params)); err != nil {
			return located(err, statement, s)
		}
		if p.columns, err = describe(ctx, c, p.sql, p.params); err != nil {
			return located(err, statement, s)
		}
		for i := range p.columns {
			if why := badName(p.columns, i); why != "" {
				return located(&gate.Error{Offset: s.Identifier(p.columns[i].Name), Message: why, Fix: "name it: … AS name"}, statement, s)
			}
		}
		if err := presentable(ctx, c, p.sql, serving.Shape{}, p.params); err != nil {
			return located(err, statement, s)
		}
		q = &prepared{pinned: p, columns: p.columns}
		return nil
	})
	return q, err
}

// transaction runs f on a connection of its own, within one read transaction: the engine then reads the catalog once for all the
// times that f binds.
func (r *Reader) transaction(ctx context.Context, f func(c *engine.Conn) error) error {
	c, err := r.engine.Conn(ctx)
	if err != nil {
		return err
	}
	err = c.Exec(ctx, "BEGIN TRANSACTION READ ONLY")
	if err == nil {
		err = f(c)
	}
	if err == nil {
		err = c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return errors.Join(err, c.Close())
}

// pin writes the statement with every relation at the scope's snapshot, and gives the physical tables that it reads.
func pin(ctx context.Context, c *engine.Conn, scope serving.Scope, s *gate.Statement, types map[string]string) (text gate.Text, tables []string, err error) {
	targets := make(map[string]gate.Target, len(scope.Tables))
	for model, table := range scope.Tables {
		targets[model] = gate.Target{Catalog: engine.Lake, Schema: string(scope.Workspace), Table: table, Version: int64(scope.Snapshot)}
	}
	for _, name := range s.Reads() {
		tables = append(tables, scope.Tables[name])
	}
	if scope.Snapshot <= 0 && len(tables) > 0 {
		return text, nil, fail.New(fail.Internal, "unpinned_scope", "a statement over models was prepared without a snapshot")
	}
	text, err = s.Rewrite(ctx, c, targets, types)
	return text, tables, err
}

// prove pins the statement to the scope and proves it on its bound plan.
func prove(ctx context.Context, c *engine.Conn, scope serving.Scope, s *gate.Statement, types map[string]string) (*pinned, error) {
	text, tables, err := pin(ctx, c, scope, s, types)
	if err != nil {
		return nil, err
	}
	p := &pinned{sql: text.SQL, params: s.Params(), scope: scope, tables: tables, shapes: map[[sha256.Size]byte]bool{}}
	if err := p.prove(ctx, c, serving.Shape{}); err != nil {
		if fail.CodeOf(err) == gate.Unproved {
			// What does not bind at all is the author's mistake, and has a place.
			if mistake := gate.Bind(ctx, c, text); mistake != nil {
				return nil, mistake
			}
		}
		return nil, err
	}
	return p, nil
}

// maxShapes bounds how many proved shapes of one query are remembered.
const maxShapes = 256

// pinned is a statement at a scope, with what was proved of it. Goroutines share it.
type pinned struct {
	sql     string
	params  []string
	columns []serving.Column
	scope   serving.Scope
	// tables are the physical tables that it may read.
	tables []string

	mu sync.Mutex
	// shapes are the digests of those that were proved, at most maxShapes. Guarded by mu.
	shapes map[[sha256.Size]byte]bool
}

// prove proves the statement as it runs in this shape, once for as long as it remembers. What is proved is what runs, but for the
// number behind LIMIT.
func (p *pinned) prove(ctx context.Context, c *engine.Conn, shape serving.Shape) error {
	key := sha256.Sum256([]byte(shaped("", shape)))
	p.mu.Lock()
	done := p.shapes[key]
	p.mu.Unlock()
	if done {
		return nil
	}
	if err := gate.Prove(ctx, c, limited(p.sql, shape, 1), string(p.scope.Workspace), p.tables, int64(p.scope.Snapshot)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.shapes) >= maxShapes {
		clear(p.shapes)
	}
	p.shapes[key] = true
	return nil
}

// located gives an error about the statement its place in the file.
func located(err error, statement project.Statement, s *gate.Statement) error {
	if bad, ok := refusal(err, s); ok {
		return project.Problems{bad.Problem(statement)}
	}
	return err
}

// Open is ports.Reader's.
func (r *Reader) Open(ctx context.Context) (ports.Reading, error) {
	c, err := r.engine.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Exec(ctx, "BEGIN TRANSACTION READ ONLY"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &reading{conn: c}, nil
}

// reading is the reader's ports.Reading.
type reading struct {
	conn   *engine.Conn
	broken bool
	closed bool
}

// Answer is ports.Reading's.
func (r *reading) Answer(ctx context.Context, q ports.Query, args serving.Args, limits serving.Limits) (serving.Answer, error) {
	if r.closed || r.broken {
		return serving.Answer{}, fail.New(fail.Internal, "reading_closed", "the reading was used after it was closed or had failed")
	}
	a, err := r.answer(ctx, q, args, limits)
	if err != nil {
		r.broken = true
		r.conn.Discard()
		return serving.Answer{}, failed(err)
	}
	return a, nil
}

func (r *reading) answer(ctx context.Context, q ports.Query, args serving.Args, limits serving.Limits) (serving.Answer, error) {
	var a serving.Answer
	mine, ok := q.(*prepared)
	switch {
	case !ok:
		return a, fail.New(fail.Internal, "foreign_query", "the query was prepared by another store")
	case limits.Rows < 1 || limits.Bytes < 1:
		return a, fail.New(fail.Internal, "bad_limits", "an answer needs limits of at least one row and one byte, not %d and %d", limits.Rows, limits.Bytes)
	}
	for _, name := range mine.params {
		if _, ok := args[name]; !ok {
			return a, fail.New(fail.Internal, "unbound_parameter", "the parameter %q was given no value", name)
		}
	}
	if !mine.shape.Whole() {
		if err := mine.prove(ctx, r.conn, mine.shape); err != nil {
			return a, err
		}
	}
	reader, err := r.conn.Arrow(ctx, limited(mine.sql, mine.shape, limits.Rows+1), bind(mine.params, args)...)
	if err != nil {
		return a, err
	}
	defer reader.Release()
	rows, err := encode.New(reader.Schema(), limits.Bytes)
	if err != nil {
		return a, err
	}
	for a.TruncationReason == "" && reader.Next() {
		batch := reader.RecordBatch()
		if err := rows.Batch(batch); err != nil {
			return a, err
		}
		for i := 0; i < int(batch.NumRows()) && a.TruncationReason == ""; i++ {
			switch {
			case rows.Count() == limits.Rows:
				a.TruncationReason = serving.RowLimit
			case !rows.Add(i):
				a.TruncationReason = serving.ByteLimit
			}
		}
	}
	if err := reader.Err(); err != nil {
		return a, err
	}
	a.Truncated = a.TruncationReason != ""
	a.Columns, a.Count, a.Rows, a.Warnings = mine.columns, rows.Count(), rows.JSON(), rows.Warnings()
	return a, nil
}

// failed classifies what the engine said about a statement that was prepared and proved before.
func failed(err error) error {
	err = unreadable(err)
	if _, ok := blamable(err); ok {
		return fail.New(fail.Invalid, "query_failed", "the statement failed on the rows it met").Because(err).WithFix("correct the endpoint's SQL, or ask with other parameters")
	}
	return err
}

// blamable gives the engine's error if nobody has classified it yet: the statement may be to blame.
func blamable(err error) (*engine.SQLError, bool) {
	var classified fail.Classified
	e, ok := engine.AsSQLError(err)
	return e, ok && !errors.As(err, &classified)
}

// unreadable classifies those of the engine's errors for which no proved statement is to blame; others stay as they are.
func unreadable(err error) error {
	e, ok := blamable(err)
	switch {
	case !ok:
	case strings.Contains(e.Message, "No snapshot found at version"):
		return fail.New(fail.Missing, "snapshot_missing", "the lake no longer has the snapshot that this answer reads, or not yet").Because(err)
	case e.Type == "Invalid", e.Type == "Permission":
		// The first is an error of the library that reads the headers within Parquet files, which the engine has no class for; the second
		// is a file that a link has taken out of the lake.
		return engine.Damaged(err)
	case e.Type == "IO":
		return fail.New(fail.Unavailable, "file_unusable", "the engine cannot use one of its own files").Because(err).WithFix("look for the file in the log, and check the disk")
	}
	return err
}

// Close is ports.Reading's.
func (r *reading) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.broken {
		return r.conn.Close()
	}
	// The transaction is ended here so that the connection can be handed out again; ending it does not wait for anything.
	return errors.Join(r.conn.Exec(context.Background(), "ROLLBACK"), r.conn.Close())
}
