package encode

import (
	"math"
	"math/bits"
	"strconv"
)

// plain tells which bytes stand for themselves within a JSON string. The engine's text is always valid UTF-8.
var plain = func() (t [256]bool) {
	for i := range t {
		t[i] = i >= 0x20 && i != '"' && i != '\\'
	}
	return t
}()

// appendString appends s as a JSON string, and stops early once b is longer than limit.
func appendString(b []byte, s string, limit int) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		if plain[s[i]] {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		if len(b) > limit {
			return b
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// limb is the power of ten that 128-bit integers are split by.
const limb = 10_000_000_000_000_000_000

// appendUint128 appends the integer's digits.
func appendUint128(b []byte, hi, lo uint64) []byte {
	if hi == 0 {
		return strconv.AppendUint(b, lo, 10)
	}
	// The value is (q1·2⁶⁴ + q0)·10¹⁹ + low.
	q1, rest := hi/limb, hi%limb
	q0, low := bits.Div64(rest, lo, limb)
	if q1 > 0 {
		var middle uint64
		q0, middle = bits.Div64(q1, q0, limb)
		b = strconv.AppendUint(b, q0, 10)
		b = appendPadded(b, middle, 19)
	} else {
		b = strconv.AppendUint(b, q0, 10)
	}
	return appendPadded(b, low, 19)
}

// appendPadded appends v with zeros in front up to width digits.
func appendPadded(b []byte, v uint64, width int) []byte {
	var d [20]byte
	i := len(d)
	for n := 0; n < width; n++ {
		i--
		d[i] = byte('0' + v%10)
		v /= 10
	}
	return append(b, d[i:]...)
}

// appendInt128 appends the integer hi·2⁶⁴ + lo with its last scale digits behind a point.
func appendInt128(b []byte, hi int64, lo uint64, scale int) []byte {
	high := uint64(hi)
	if hi < 0 {
		b = append(b, '-')
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	start := len(b)
	b = appendUint128(b, high, lo)
	if scale <= 0 {
		return b
	}
	// At least one digit stands in front of the point.
	for missing := scale + 1 - (len(b) - start); missing > 0; missing-- {
		b = append(b, 0)
		copy(b[start+1:], b[start:])
		b[start] = '0'
	}
	point := len(b) - scale
	b = append(b, 0)
	copy(b[point+1:], b[point:])
	b[point] = '.'
	return b
}

// infinite are the engine's marks for infinity, in days and in a timestamp's units.
const (
	infiniteDate = math.MaxInt32
	infiniteTime = math.MaxInt64
)

// date appends the day that is days after 1970-01-01.
func (c *column) date(b []byte, days int64) []byte {
	if days == infiniteDate || days == -infiniteDate {
		c.pending++
		return append(b, "null"...)
	}
	b = append(b, '"')
	return append(appendDay(b, days), '"')
}

// timestamp appends the instant that is v units after 1970-01-01.
func (c *column) timestamp(b []byte, v, perSecond int64, zoned bool) []byte {
	if v == infiniteTime || v == -infiniteTime {
		c.pending++
		return append(b, "null"...)
	}
	perDay := 86_400 * perSecond
	days, rest := v/perDay, v%perDay
	if rest < 0 {
		days, rest = days-1, rest+perDay
	}
	b = append(b, '"')
	b = appendDay(b, days)
	b = append(b, 'T')
	b = appendClock(b, rest, perSecond)
	if zoned {
		b = append(b, 'Z')
	}
	return append(b, '"')
}

// appendDay appends a date of the proleptic Gregorian calendar. It counts in eras of 400 years that begin on 1 March, so that
// leap days come last.
func appendDay(b []byte, days int64) []byte {
	const era = 146_097
	days += 719_468
	n := days / era
	if days < 0 {
		n = (days - era + 1) / era
	}
	day := days - n*era
	year := (day - day/1_460 + day/36_524 - day/146_096) / 365
	day -= 365*year + year/4 - year/100
	month := (5*day + 2) / 153
	day -= (153*month+2)/5 - 1
	year += n * 400
	if month += 3; month > 12 {
		month, year = month-12, year+1
	}
	switch {
	case year >= 0 && year <= 9999:
		b = appendPadded(b, uint64(year), 4)
	case year < 0:
		b = appendYear(append(b, '-'), uint64(-year))
	default:
		b = appendYear(append(b, '+'), uint64(year))
	}
	b = appendPadded(append(b, '-'), uint64(month), 2)
	return appendPadded(append(b, '-'), uint64(day), 2)
}

// appendYear appends at least six digits.
func appendYear(b []byte, year uint64) []byte {
	if year > 999_999 {
		return strconv.AppendUint(b, year, 10)
	}
	return appendPadded(b, year, 6)
}

// appendClock appends a time of day with as many fractional digits as it needs.
func appendClock(b []byte, v, perSecond int64) []byte {
	seconds, fraction := v/perSecond, v%perSecond
	b = appendPadded(b, uint64(seconds/3600), 2)
	b = appendPadded(append(b, ':'), uint64(seconds/60%60), 2)
	b = appendPadded(append(b, ':'), uint64(seconds%60), 2)
	if fraction == 0 {
		return b
	}
	width := 0
	for n := perSecond; n > 1; n /= 10 {
		width++
	}
	b = appendPadded(append(b, '.'), uint64(fraction), width)
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}
