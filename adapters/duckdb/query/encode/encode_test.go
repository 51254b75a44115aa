package encode

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestIntegers proves that 128-bit integers have the digits that big.Int gives them, with and without a scale, at every power of
// ten and two and around them.
func TestIntegers(t *testing.T) {
	one := big.NewInt(1)
	top := new(big.Int).Lsh(one, 127)
	var values []*big.Int
	for _, base := range []int64{2, 10} {
		for v := big.NewInt(1); v.Cmp(top) < 0; v = new(big.Int).Mul(v, big.NewInt(base)) {
			values = append(values, new(big.Int).Sub(v, one), v, new(big.Int).Add(v, one))
		}
	}
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for _, v := range values {
		for _, x := range []*big.Int{v, new(big.Int).Neg(v)} {
			if x.CmpAbs(top) >= 0 {
				continue
			}
			n := decimal128.FromBigInt(x)
			if got := string(appendInt128(nil, n.HighBits(), n.LowBits(), 0)); got != x.String() {
				t.Fatalf("%s became %s", x, got)
			}
			for _, scale := range []int{1, 2, 18, 38} {
				digits := new(big.Int).Abs(x).String()
				if missing := scale + 1 - len(digits); missing > 0 {
					digits = strings.Repeat("0", missing) + digits
				}
				want := digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
				if x.Sign() < 0 {
					want = "-" + want
				}
				if got := string(appendInt128(nil, n.HighBits(), n.LowBits(), scale)); got != want {
					t.Fatalf("%s with scale %d became %s, not %s", x, scale, got, want)
				}
			}
		}
		twice := new(big.Int).Add(v, v)
		hi, lo := new(big.Int).Rsh(twice, 64).Uint64(), new(big.Int).And(twice, mask).Uint64()
		if got := string(appendUint128(nil, hi, lo)); got != twice.String() {
			t.Fatalf("%s became %s", twice, got)
		}
	}
}

// TestDays proves that dates agree with the time package on each day of 800 years and at far ones, and that years out of four
// digits are extended.
func TestDays(t *testing.T) {
	from := time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := from; d.Year() < 2400; d = d.AddDate(0, 0, 1) {
		if got := string(appendDay(nil, d.Unix()/86_400-int64(0))); d.Unix()%86_400 == 0 && got != d.Format(time.DateOnly) {
			t.Fatalf("%s became %s", d.Format(time.DateOnly), got)
		}
	}
	for _, x := range []struct {
		day  time.Time
		want string
	}{
		{time.Date(0, 3, 1, 0, 0, 0, 0, time.UTC), "0000-03-01"},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "0000-01-01"},
		{time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC), "-000001-12-31"},
		{time.Date(-43, 3, 15, 0, 0, 0, 0, time.UTC), "-000043-03-15"},
		{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), "9999-12-31"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "+010000-01-01"},
		{time.Date(5881580, 7, 10, 0, 0, 0, 0, time.UTC), "+5881580-07-10"},
	} {
		if got := string(appendDay(nil, x.day.Unix()/86_400)); got != x.want {
			t.Errorf("%v became %s, not %s", x.day, got, x.want)
		}
	}
}

// TestStrings proves that strings read back as they were, whatever bytes they hold.
func TestStrings(t *testing.T) {
	all := make([]rune, 0, 400)
	for r := rune(0); r < 400; r++ {
		all = append(all, r)
	}
	for _, s := range []string{"", "plain", `"`, `\`, "a\nb\tc\r", "\x00\x1f\x7f", "é😀\u2028</script>", string(all), strings.Repeat("\"", 1000)} {
		var back string
		if err := json.Unmarshal(appendString(nil, s, math.MaxInt), &back); err != nil || back != s {
			t.Errorf("%q came back as %q, %v", s, back, err)
		}
	}
}

// TestClock proves that fractions have the digits they need and no more, in every unit.
func TestClock(t *testing.T) {
	for _, x := range []struct {
		v, perSecond int64
		want         string
	}{
		{0, 1, "00:00:00"}, {86_399, 1, "23:59:59"}, {86_400_000_000, 1_000_000, "24:00:00"},
		{45_296_789_000, 1_000_000, "12:34:56.789"}, {1, 1_000_000, "00:00:00.000001"}, {1, 1_000_000_000, "00:00:00.000000001"}, {1_500, 1_000, "00:00:01.5"},
	} {
		if got := string(appendClock(nil, x.v, x.perSecond)); got != x.want {
			t.Errorf("%d became %s, not %s", x.v, got, x.want)
		}
	}
}

// batch builds a batch with one column.
func batch(t testing.TB, f arrow.Field, build func(array.Builder)) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{f}, nil))
	defer b.Release()
	build(b.Field(0))
	r := b.NewRecordBatch()
	t.Cleanup(r.Release)
	return r
}

// TestBound proves that the text never outgrows its bound, that rows which do not fit leave no trace and no warning, and that
// one huge value does not grow the buffer.
func TestBound(t *testing.T) {
	b := batch(t, arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, func(b array.Builder) {
		b.(*array.Float64Builder).AppendValues([]float64{1.5, math.NaN(), math.Inf(1), math.Inf(-1)}, nil)
	})
	for limit, want := range map[int]string{2: `[]`, 6: `[]`, 7: `[[1.5]]`, 13: `[[1.5]]`, 14: `[[1.5],[null]]`, 27: `[[1.5],[null],[null]]`, 28: `[[1.5],[null],[null],[null]]`} {
		r, err := New(b.Schema(), limit)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Batch(b); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < int(b.NumRows()) && r.Add(i); i++ {
		}
		got := string(r.JSON())
		if got != want || len(got) > limit {
			t.Errorf("limit %d: %s", limit, got)
		}
		warnings := strings.Join(r.Warnings(), "; ")
		if n := strings.Count(want, "null"); n == 0 && warnings != "" || n == 1 && !strings.Contains(warnings, "1 value is") || n > 1 && !strings.Contains(warnings, fmt.Sprintf("column x: %d values are NaN or infinite, shown as null", n)) {
			t.Errorf("limit %d: warnings %q", limit, warnings)
		}
	}
	huge := strings.Repeat("\x01", 1<<20)
	for _, s := range []string{huge, strings.Repeat("\x01", 900)} {
		b := batch(t, arrow.Field{Name: "x", Type: arrow.ListOf(arrow.BinaryTypes.String)}, func(b array.Builder) {
			l := b.(*array.ListBuilder)
			l.Append(true)
			for range 100 {
				l.ValueBuilder().(*array.StringBuilder).Append(s)
			}
		})
		r, err := New(b.Schema(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Batch(b); err != nil {
			t.Fatal(err)
		}
		if r.Add(0) || string(r.JSON()) != "[]" || cap(r.out) > 8<<10 {
			t.Errorf("%d bytes grew the buffer to %d", len(s), cap(r.out))
		}
	}
}

// TestAllocations proves that nothing is allocated for a row once the buffer is large enough.
func TestAllocations(t *testing.T) {
	b := wide(t, 100)
	r, err := New(b.Schema(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Batch(b); err != nil {
		t.Fatal(err)
	}
	r.out = append(make([]byte, 0, 1<<20), '[')
	if n := testing.AllocsPerRun(10, func() {
		r.out, r.count = r.out[:1], 0
		for i := range int(b.NumRows()) {
			r.Add(i)
		}
	}); n != 0 {
		t.Errorf("%v allocations for 100 rows", n)
	}
}

// wide is a batch with the columns of an ordinary answer.
func wide(t testing.TB, rows int) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String}, {Name: "price", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}},
		{Name: "share", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "day", Type: arrow.FixedWidthTypes.Date32},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	}, nil))
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 7919)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("customer number %d", i))
		b.Field(2).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i) * 101))
		if i%10 == 0 {
			b.Field(3).AppendNull()
		} else {
			b.Field(3).(*array.Float64Builder).Append(float64(i) / 3)
		}
		b.Field(4).(*array.Date32Builder).Append(arrow.Date32(15_000 + i%1000))
		b.Field(5).(*array.TimestampBuilder).Append(arrow.Timestamp(1_356_998_400_000_000 + int64(i)*1_234_567))
	}
	r := b.NewRecordBatch()
	t.Cleanup(r.Release)
	return r
}

// BenchmarkEncode measures rows of six ordinary columns.
func BenchmarkEncode(b *testing.B) {
	const rows = 2048
	in := wide(b, rows)
	var bytes int
	b.ReportAllocs()
	for b.Loop() {
		r, err := New(in.Schema(), 16<<20)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Batch(in); err != nil {
			b.Fatal(err)
		}
		for i := range rows {
			r.Add(i)
		}
		bytes = len(r.JSON())
	}
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
