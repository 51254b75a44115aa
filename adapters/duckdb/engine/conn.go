package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"

	"leapview/domain/fail"
)

// Conn is one borrowed connection. It is used by one goroutine at a time.
type Conn struct {
	e *Engine
	c *sql.Conn
	// spent connections are closed for good instead of being handed out again.
	spent  bool
	closed bool
}

// Conn borrows a connection. It never waits for one: admission counts permits, and there are as many connections, so running
// out of them is a defect of ours.
func (e *Engine) Conn(ctx context.Context) (*Conn, error) {
	if err := e.Fatal(); err != nil {
		return nil, err
	}
	if err := e.borrow(); err != nil {
		return nil, err
	}
	c, err := e.db.Conn(ctx)
	if err != nil {
		e.giveBack()
		err = Translate(err)
		e.note(err)
		return nil, err
	}
	return &Conn{e: e, c: c}, nil
}

func (e *Engine) borrow() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fail.New(fail.Unavailable, "engine_closed", "the engine is closed")
	}
	if e.borrowed >= e.o.Connections {
		return fail.New(fail.Internal, "pool_exhausted", "all %d connections are borrowed: something asked for one without a permit", e.o.Connections)
	}
	e.borrowed++
	return nil
}

func (e *Engine) giveBack() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.borrowed--
}

// saw classifies an error of this connection and marks the connection as spent: what state an error leaves behind is not worth
// knowing. An internal error may have taken the whole instance down without saying so; the next statement tells.
func (c *Conn) saw(err error) error {
	if err == nil {
		return nil
	}
	c.spent = true
	err = c.e.translate(err)
	c.e.note(err)
	if fail.CodeOf(err) == codeInternal {
		if _, probe := c.c.ExecContext(context.Background(), "SELECT 1"); probe != nil {
			c.e.note(Translate(probe))
		}
	}
	return err
}

// Exec runs the statement and drops its rows. args are positional.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) error {
	_, err := c.c.ExecContext(ctx, query, args...)
	return c.saw(err)
}

// Rows runs the query. The caller closes the rows before it uses or closes the connection again. The driver holds the whole
// result in memory before the first row: the query has to bound it.
func (c *Conn) Rows(ctx context.Context, query string, args ...any) (*Rows, error) {
	rows, err := c.c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, c.saw(err)
	}
	return &Rows{rows, c}, nil
}

// Rows are a query's rows, with the methods of sql.Rows. Every error that they meet is classified and spends the connection,
// whether anybody asks for it or not.
type Rows struct {
	rows *sql.Rows
	c    *Conn
}

// Columns are the names of the columns.
func (r *Rows) Columns() ([]string, error) {
	names, err := r.rows.Columns()
	return names, r.c.saw(err)
}

// Next goes to the next row, and is false after the last one and at an error, which Err then tells.
func (r *Rows) Next() bool {
	more := r.rows.Next()
	if !more {
		_ = r.Err()
	}
	return more
}

// Scan reads the row.
func (r *Rows) Scan(dest ...any) error { return r.c.saw(r.rows.Scan(dest...)) }

// Err is the classified error that ended the rows.
func (r *Rows) Err() error { return r.c.saw(r.rows.Err()) }

// Close gives the rows' memory back. Twice is once.
func (r *Rows) Close() error { return r.c.saw(r.rows.Close()) }

// Scan runs a query for one row. No row is sql.ErrNoRows, which leaves the connection as it was.
func (c *Conn) Scan(ctx context.Context, query string, args []any, dest ...any) error {
	err := c.c.QueryRowContext(ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return c.saw(err)
}

// Arrow runs the query and gives its result as record batches. The caller releases the reader before it uses or closes the
// connection again. As with Rows, the query has to bound its result.
func (c *Conn) Arrow(ctx context.Context, query string, args ...any) (array.RecordReader, error) {
	var reader array.RecordReader
	err := c.c.Raw(func(raw any) error {
		a, err := duckdb.NewArrowFromConn(raw.(driver.Conn))
		if err != nil {
			return err
		}
		reader, err = a.QueryContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return nil, c.saw(err)
	}
	return &arrowReader{RecordReader: reader, c: c}, nil
}

// arrowReader watches a reader as Rows watches rows.
type arrowReader struct {
	array.RecordReader
	c *Conn
}

// Next goes to the next batch, and is false after the last one and at an error, which Err then tells.
func (r *arrowReader) Next() bool {
	more := r.RecordReader.Next()
	if !more {
		_ = r.Err()
	}
	return more
}

// Err is the classified error that ended the reading.
func (r *arrowReader) Err() error { return r.c.saw(r.RecordReader.Err()) }

// Release gives the reader's memory back.
func (r *arrowReader) Release() {
	r.RecordReader.Release()
	_ = r.Err()
}

// Discard makes Close end the connection for good, with the temporary tables and variables it holds.
func (c *Conn) Discard() { c.spent = true }

// Close gives the connection back. One that met an error, was left inside a transaction, or was discarded is rolled back and
// ended instead. Twice is once.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	defer c.e.giveBack()
	// Outside a transaction the engine refuses a rollback, and that is the only way to ask it.
	_, err := c.c.ExecContext(context.Background(), "ROLLBACK")
	err = Translate(err)
	c.e.note(err)
	if s, ok := AsSQLError(err); !ok || s.Type != "TransactionContext" {
		c.spent = true
	}
	if c.spent {
		// The pool drops a connection whose driver calls it bad.
		if err := c.c.Raw(func(any) error { return driver.ErrBadConn }); err != nil && !errors.Is(err, driver.ErrBadConn) {
			return fmt.Errorf("discard a connection: %w", Translate(err))
		}
		return nil
	}
	if err := c.c.Close(); err != nil {
		return fmt.Errorf("give a connection back: %w", Translate(err))
	}
	return nil
}
