// Package encode owns how the engine's values look in an answer's JSON.
//
// Invariants: a number has all its digits, and a value that JSON cannot say exactly is a string or null, never a near miss;
// nothing is allocated for a value; the text never grows beyond its bound, whatever a single value holds.
//
//	BOOLEAN                  true, false
//	integers up to UHUGEINT  a number with all its digits
//	DECIMAL                  a number with all the digits of its scale: 1.10
//	FLOAT, DOUBLE            the shortest number that reads back as the same value; NaN and infinities are null and counted
//	VARCHAR, ENUM, UUID      a string
//	JSON                     a string that holds the document's own text: a nested document would be read as binary floats
//	BLOB                     a string of standard Base64
//	DATE                     "2013-01-31"; infinities are null and counted
//	TIME                     "12:34:56.789"
//	TIMESTAMP                "2013-01-31T12:34:56.789", as many fractional digits as needed; infinities are null and counted
//	TIMESTAMP WITH TIME ZONE the same in UTC with Z
//	LIST, ARRAY              an array
//	STRUCT                   an object
//	MAP                      an object; a key that is no string is named by its text. Keys and values that are BOOLEAN, TINYINT,
//	                         BLOB, UUID or HUGEINT are refused, and so are nested keys
//
// Years outside of 0000 to 9999 have a sign and at least six digits, as ISO 8601 extends them; the year before 0001 is 0000.
// Other types (INTERVAL, BIT, BIGNUM, UNION, VARIANT, GEOMETRY, times with an offset) are refused before a statement runs.
//
// The package knows Arrow's arrays and not the engine: not where batches come from, nor which statement they answer.
package encode

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"leapview/domain/fail"
)

// Rows collects the rows of one answer.
type Rows struct {
	columns []column
	out     []byte
	limit   int
	count   int
	// full tells that the row at work does not fit, so that values stop growing.
	full bool
}

// column writes one column of the batch at work.
type column struct {
	name  string
	write writer
	// odd counts values shown as null because JSON has no word for them; pending are those of the row at work.
	odd, pending int
}

// writer appends the value at i.
type writer func(b []byte, i int) []byte

// New starts an answer of at most limit bytes.
func New(schema *arrow.Schema, limit int) (*Rows, error) {
	if err := Check(schema); err != nil {
		return nil, err
	}
	r := &Rows{columns: make([]column, schema.NumFields()), limit: limit, out: make([]byte, 0, min(limit, 4096))}
	for i, f := range schema.Fields() {
		r.columns[i].name = f.Name
	}
	r.out = append(r.out, '[')
	return r, nil
}

// Check refuses a schema with a column whose values have no form in an answer.
func Check(schema *arrow.Schema) error {
	for _, f := range schema.Fields() {
		if why := unsupported(f, 0); why != "" {
			return &Unsupported{Column: f.Name, Why: why}
		}
	}
	return nil
}

// Unsupported is a column whose values have no form in an answer.
type Unsupported struct {
	Column string
	Why    string
}

// Error names the column and says what to do.
func (u *Unsupported) Error() string {
	return fmt.Sprintf("column %q cannot be part of an answer: %s", u.Column, u.Why)
}

// FailKind is Invalid.
func (u *Unsupported) FailKind() fail.Kind { return fail.Invalid }

// FailCode is unsupported_type.
func (u *Unsupported) FailCode() string { return "unsupported_type" }

// Add appends the batch's row at i. It is false when the row does not fit any more; the rows so far stay as they were.
func (r *Rows) Add(i int) bool {
	mark := len(r.out)
	b := r.out
	if r.count > 0 {
		b = append(b, ',')
	}
	b = append(b, '[')
	for c := range r.columns {
		if c > 0 {
			b = append(b, ',')
		}
		b = r.columns[c].write(b, i)
		if len(b) >= r.limit {
			r.full = true
		}
		if r.full {
			break
		}
	}
	b = append(b, ']')
	fits := !r.full && len(b) < r.limit
	r.full = false
	for c := range r.columns {
		if fits {
			r.columns[c].odd += r.columns[c].pending
		}
		r.columns[c].pending = 0
	}
	if !fits {
		r.out = b[:mark]
		return false
	}
	r.out = b
	r.count++
	return true
}

// Batch makes the batch the one that Add reads. The batch has to stay alive until the next one or the end.
func (r *Rows) Batch(batch arrow.RecordBatch) error {
	schema := batch.Schema()
	for i := range r.columns {
		w, err := r.writer(batch.Column(i), schema.Field(i), &r.columns[i])
		if err != nil {
			return err
		}
		r.columns[i].write = w
	}
	return nil
}

// Count is how many rows were added.
func (r *Rows) Count() int { return r.count }

// JSON closes the array and gives its text.
func (r *Rows) JSON() []byte { return append(r.out, ']') }

// Warnings say which columns hold values that are shown as null.
func (r *Rows) Warnings() []string {
	var out []string
	for _, c := range r.columns {
		switch {
		case c.odd == 1:
			out = append(out, fmt.Sprintf("column %s: 1 value is NaN or infinite, shown as null", c.name))
		case c.odd > 1:
			out = append(out, fmt.Sprintf("column %s: %d values are NaN or infinite, shown as null", c.name, c.odd))
		}
	}
	return out
}

// maxNesting bounds how deep a column's type nests.
const maxNesting = 32

// extension is the name of what the engine exports in another type's clothes, or "".
func extension(f arrow.Field) string {
	name, _ := f.Metadata.GetValue("ARROW:extension:name")
	if name != "arrow.opaque" {
		return name
	}
	text, _ := f.Metadata.GetValue("ARROW:extension:metadata")
	var m struct {
		Type string `json:"type_name"`
	}
	if json.Unmarshal([]byte(text), &m) != nil || m.Type == "" {
		return name
	}
	return m.Type
}

// unsupported says why values of the field cannot be shown, or "".
func unsupported(f arrow.Field, depth int) string {
	if depth > maxNesting {
		return fmt.Sprintf("it nests deeper than %d", maxNesting)
	}
	ext := extension(f)
	switch t := f.Type.(type) {
	case *arrow.Int8Type:
		return known(ext, "arrow.bool8")
	case *arrow.StringType, *arrow.LargeStringType:
		return known(ext, "arrow.json")
	case *arrow.FixedSizeBinaryType:
		if ext != "" {
			return known(ext, "arrow.uuid", "hugeint", "uhugeint")
		}
	case *arrow.BooleanType, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Uint8Type, *arrow.Uint16Type,
		*arrow.Uint32Type, *arrow.Uint64Type, *arrow.Float32Type, *arrow.Float64Type, *arrow.Decimal128Type, *arrow.BinaryType,
		*arrow.LargeBinaryType, *arrow.Date32Type, *arrow.TimestampType, *arrow.NullType:
		return known(ext)
	case *arrow.Time64Type:
		if t.Unit != arrow.Microsecond {
			return "TIME_NS is not supported; cast it to TIME"
		}
		return known(ext)
	case *arrow.DictionaryType:
		if _, ok := t.ValueType.(*arrow.StringType); ok {
			return known(ext)
		}
	case *arrow.MapType:
		if _, nested := t.KeyType().(arrow.NestedType); nested {
			return "a MAP with nested keys is not supported; use map_entries(x), a list of structs"
		}
		// Arrow's Go library drops what tells these apart from each other directly within a map.
		for _, x := range []arrow.DataType{t.KeyType(), t.ItemType()} {
			switch x.(type) {
			case *arrow.Int8Type, *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
				return "a MAP of BOOLEAN, TINYINT, BLOB, UUID, HUGEINT or UHUGEINT is not supported; use map_entries(x), a list of structs"
			}
		}
		if why := unsupported(t.KeyField(), depth+1); why != "" {
			return why
		}
		if why := unsupported(t.ItemField(), depth+1); why != "" {
			return why
		}
		return known(ext)
	case *arrow.StructType:
		for _, m := range t.Fields() {
			if m.Name == "" {
				return "a STRUCT whose members have no names is not supported; name them: {'a': 1}"
			}
			if why := unsupported(m, depth+1); why != "" {
				return why
			}
		}
		return known(ext)
	case arrow.ListLikeType:
		if why := unsupported(t.ElemField(), depth+1); why != "" {
			return why
		}
		return known(ext)
	case *arrow.MonthDayNanoIntervalType:
		return "INTERVAL is not supported; cast it to VARCHAR, or compute a number: epoch(x)"
	}
	return "its type is not supported; cast it to VARCHAR"
}

// known is empty when the extension is none or one of those that can be shown.
func known(ext string, allowed ...string) string {
	if ext == "" {
		return ""
	}
	for _, a := range allowed {
		if ext == a {
			return ""
		}
	}
	return fmt.Sprintf("its type %s is not supported; cast it to VARCHAR", ext)
}

// writer makes the writer of one array. What it closes over is made once a batch, not once a value.
func (r *Rows) writer(a arrow.Array, f arrow.Field, c *column) (writer, error) {
	w, err := r.valid(a, f, c)
	if err != nil || a.NullN() == 0 {
		return w, err
	}
	return func(b []byte, i int) []byte {
		if a.IsNull(i) {
			return append(b, "null"...)
		}
		return w(b, i)
	}, nil
}

// valid makes the writer of an array's values that are not NULL.
func (r *Rows) valid(a arrow.Array, f arrow.Field, c *column) (writer, error) {
	switch x := a.(type) {
	case *array.Null:
		return func(b []byte, _ int) []byte { return append(b, "null"...) }, nil
	case *array.Boolean:
		return func(b []byte, i int) []byte { return strconv.AppendBool(b, x.Value(i)) }, nil
	case *array.Int8:
		if extension(f) == "arrow.bool8" {
			return func(b []byte, i int) []byte { return strconv.AppendBool(b, x.Value(i) != 0) }, nil
		}
		return signed(x), nil
	case *array.Int16:
		return signed(x), nil
	case *array.Int32:
		return signed(x), nil
	case *array.Int64:
		return signed(x), nil
	case *array.Uint8:
		return unsigned(x), nil
	case *array.Uint16:
		return unsigned(x), nil
	case *array.Uint32:
		return unsigned(x), nil
	case *array.Uint64:
		return unsigned(x), nil
	case *array.Float32:
		return func(b []byte, i int) []byte { return c.float(b, float64(x.Value(i)), 32) }, nil
	case *array.Float64:
		return func(b []byte, i int) []byte { return c.float(b, x.Value(i), 64) }, nil
	case *array.Decimal128:
		scale := int(f.Type.(*arrow.Decimal128Type).Scale)
		return func(b []byte, i int) []byte {
			n := x.Value(i)
			return appendInt128(b, n.HighBits(), n.LowBits(), scale)
		}, nil
	case *array.String:
		return func(b []byte, i int) []byte { return r.text(b, x.Value(i)) }, nil
	case *array.LargeString:
		return func(b []byte, i int) []byte { return r.text(b, x.Value(i)) }, nil
	case *array.Binary:
		return func(b []byte, i int) []byte { return r.blob(b, x.Value(i)) }, nil
	case *array.LargeBinary:
		return func(b []byte, i int) []byte { return r.blob(b, x.Value(i)) }, nil
	case *array.FixedSizeBinary:
		return sixteen(x, extension(f)), nil
	case *array.Dictionary:
		values := x.Dictionary().(*array.String)
		return func(b []byte, i int) []byte { return r.text(b, values.Value(x.GetValueIndex(i))) }, nil
	case *array.Date32:
		return func(b []byte, i int) []byte { return c.date(b, int64(x.Value(i))) }, nil
	case *array.Time64:
		return func(b []byte, i int) []byte {
			b = append(b, '"')
			return append(appendClock(b, int64(x.Value(i)), 1_000_000), '"')
		}, nil
	case *array.Timestamp:
		t := f.Type.(*arrow.TimestampType)
		zoned := t.TimeZone != ""
		perSecond := int64(1)
		switch t.Unit {
		case arrow.Millisecond:
			perSecond = 1_000
		case arrow.Microsecond:
			perSecond = 1_000_000
		case arrow.Nanosecond:
			perSecond = 1_000_000_000
		}
		return func(b []byte, i int) []byte { return c.timestamp(b, int64(x.Value(i)), perSecond, zoned) }, nil
	case *array.Map:
		return r.mapping(x, f.Type.(*arrow.MapType), c)
	case *array.Struct:
		return r.structure(x, f.Type.(*arrow.StructType), c)
	case array.ListLike:
		return r.list(x, f.Type.(arrow.ListLikeType), c)
	}
	return nil, fail.New(fail.Internal, "unsupported_type", "column %q arrived as %s, which Check let through", f.Name, a.DataType())
}

// integers is an array of integers of one width.
type integers[T any] interface{ Value(int) T }

func signed[T int8 | int16 | int32 | int64](a integers[T]) writer {
	return func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(a.Value(i)), 10) }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](a integers[T]) writer {
	return func(b []byte, i int) []byte { return strconv.AppendUint(b, uint64(a.Value(i)), 10) }
}

// float appends the shortest text that reads back as v, and null for what JSON cannot say.
func (c *column) float(b []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		c.pending++
		return append(b, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, bits)
}

// sixteen writes what the engine exports as 16 bytes: UUIDs with the first digits first, big integers with the lowest byte first.
func sixteen(a *array.FixedSizeBinary, ext string) writer {
	if ext == "arrow.uuid" {
		return func(b []byte, i int) []byte {
			v := a.Value(i)
			b = append(b, '"')
			for n, part := range [][]byte{v[0:4], v[4:6], v[6:8], v[8:10], v[10:16]} {
				if n > 0 {
					b = append(b, '-')
				}
				b = hex.AppendEncode(b, part)
			}
			return append(b, '"')
		}
	}
	return func(b []byte, i int) []byte {
		v := a.Value(i)
		lo, hi := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
		if ext == "uhugeint" {
			return appendUint128(b, hi, lo)
		}
		return appendInt128(b, int64(hi), lo, 0)
	}
}

func (r *Rows) list(a array.ListLike, t arrow.ListLikeType, c *column) (writer, error) {
	item, err := r.writer(a.ListValues(), t.ElemField(), c)
	if err != nil {
		return nil, err
	}
	return func(b []byte, i int) []byte {
		b = append(b, '[')
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			if j > from {
				b = append(b, ',')
			}
			if b = item(b, int(j)); r.over(b) {
				break
			}
		}
		return append(b, ']')
	}, nil
}

func (r *Rows) structure(a *array.Struct, t *arrow.StructType, c *column) (writer, error) {
	names := make([][]byte, t.NumFields())
	items := make([]writer, t.NumFields())
	for n, f := range t.Fields() {
		names[n] = append(appendString(nil, f.Name, math.MaxInt), ':')
		var err error
		if items[n], err = r.writer(a.Field(n), f, c); err != nil {
			return nil, err
		}
	}
	return func(b []byte, i int) []byte {
		b = append(b, '{')
		for n, item := range items {
			if n > 0 {
				b = append(b, ',')
			}
			b = append(b, names[n]...)
			if b = item(b, i); r.over(b) {
				break
			}
		}
		return append(b, '}')
	}, nil
}

func (r *Rows) mapping(a *array.Map, t *arrow.MapType, c *column) (writer, error) {
	key, err := r.writer(a.Keys(), t.KeyField(), c)
	if err != nil {
		return nil, err
	}
	item, err := r.writer(a.Items(), t.ItemField(), c)
	if err != nil {
		return nil, err
	}
	return func(b []byte, i int) []byte {
		b = append(b, '{')
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			if j > from {
				b = append(b, ',')
			}
			start := len(b)
			b = append(b, '"')
			b = key(b, int(j))
			// A key that is a string brings its own quotes.
			if start+1 < len(b) && b[start+1] == '"' {
				b = append(b[:start], b[start+1:]...)
			} else {
				b = append(b, '"')
			}
			b = append(b, ':')
			if b = item(b, int(j)); r.over(b) {
				break
			}
		}
		return append(b, '}')
	}, nil
}

// over notes that the row at work has outgrown the bound.
func (r *Rows) over(b []byte) bool {
	if len(b) >= r.limit {
		r.full = true
	}
	return r.full
}

// text appends a string, unless it alone outgrows the bound.
func (r *Rows) text(b []byte, s string) []byte {
	if len(b)+len(s)+2 > r.limit {
		r.full = true
		return b
	}
	b = appendString(b, s, r.limit)
	r.over(b)
	return b
}

func (r *Rows) blob(b []byte, v []byte) []byte {
	if len(b)+base64.StdEncoding.EncodedLen(len(v))+2 > r.limit {
		r.full = true
		return b
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, '"')
}
