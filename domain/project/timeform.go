package project

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"leapview/domain/fail"
)

// TimeForm is how days and times are written, from a format in strptime's letters. It reads one text in one way or not at all.
type TimeForm struct {
	kind  Type
	parts []timePart
}

// timePart is a letter of a format, or a character that stands for itself.
type timePart struct {
	verb, literal byte
	// width is how many digits a number has: exactly, when other digits may follow it, and at most otherwise.
	width int
	exact bool
}

// timeVerbs are the letters of formats.
const timeVerbs = "Y y m d b B a A H I p M S f z"

// timeWidths are the most digits of the letters that are numbers.
var timeWidths = map[byte]int{'Y': 4, 'y': 2, 'm': 2, 'd': 2, 'H': 2, 'I': 2, 'M': 2, 'S': 2, 'f': 6}

// ParseTimeForm reads a format for values of the type, and refuses one that leaves open what a text means.
func ParseTimeForm(format string, t Type) (TimeForm, error) {
	bad := func(why, fix string) (TimeForm, error) {
		return TimeForm{}, fail.New(fail.Invalid, "bad_time_format", "format %s cannot be used: %s", show(format), why).WithFix("%s", fix)
	}
	needs, allowed := "", ""
	switch t {
	case "DATE":
		needs, allowed = "Ymd", "YymdbBaA"
	case "TIME":
		needs, allowed = "HM", "HIpMSf"
	case "TIMESTAMP":
		needs, allowed = "YmdH", "YymdbBaAHIpMSf"
	case "TIMESTAMP WITH TIME ZONE":
		needs, allowed = "YmdHz", "YymdbBaAHIpMSfz"
	default:
		return bad(fmt.Sprintf("a column of type %s is no day and no time", t), "remove it, or declare DATE, TIME, TIMESTAMP or TIMESTAMP WITH TIME ZONE")
	}
	if len(format) > MaxColumnNameBytes {
		return bad(fmt.Sprintf("it is longer than %d bytes", MaxColumnNameBytes), "shorten it")
	}
	f := TimeForm{kind: t}
	var seen []byte
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			f.parts = append(f.parts, timePart{literal: c})
			continue
		}
		if i++; i == len(format) {
			return bad("it ends with a single %", "write %% for a percent sign")
		}
		c = format[i]
		switch {
		case c == '%':
			f.parts = append(f.parts, timePart{literal: '%'})
			continue
		case strings.IndexByte(timeVerbs, c) < 0 || c == ' ':
			fix := "known are %" + strings.Join(strings.Fields(timeVerbs), " %")
			if c == '-' {
				fix = "leave the minus out: %d takes one digit and two, where no other digit follows"
			}
			return bad(fmt.Sprintf("%%%c is not known", c), fix)
		case strings.IndexByte(allowed, c) < 0:
			return bad(fmt.Sprintf("%%%c has no place in a %s", c, t), "remove it, or declare the column otherwise")
		case slices.Contains(seen, c):
			return bad(fmt.Sprintf("%%%c stands in it twice", c), "write each part once")
		}
		seen = append(seen, c)
		f.parts = append(f.parts, timePart{verb: c, width: timeWidths[c]})
	}
	has := func(c byte) bool { return slices.Contains(seen, c) }
	// Names and short forms say the same.
	for _, same := range []string{"Yy", "mbB", "aA", "HI"} {
		var both []string
		for _, c := range []byte(same) {
			if has(c) {
				both = append(both, "%"+string(c))
			}
		}
		if len(both) > 1 {
			return bad(fmt.Sprintf("%s say the same", strings.Join(both, " and ")), "write one of them")
		}
		if len(both) > 0 {
			seen = append(seen, same[0])
		}
	}
	words := map[byte]string{'Y': "the year (%Y)", 'm': "the month (%m)", 'd': "the day (%d)", 'H': "the hour (%H)", 'M': "the minute (%M)", 'z': "the offset (%z)"}
	for _, c := range []byte(needs) {
		if !has(c) {
			return bad(fmt.Sprintf("a %s needs %s", t, words[c]), "add it, or declare the column otherwise")
		}
	}
	switch {
	case has('I') != has('p'):
		return bad("%I and %p mean an hour only together", "write both, or %H for hours from 0 to 23")
	case has('S') && !has('M'), has('f') && !has('S'):
		return bad("it leaves out a part between two others", "write %H, %M, %S and %f in full, from the left")
	}
	for i := range f.parts {
		if i+1 < len(f.parts) {
			next := f.parts[i+1]
			f.parts[i].exact = next.width > 0 || next.verb == 0 && next.literal >= '0' && next.literal <= '9'
		}
	}
	return f, nil
}

var weekdays = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

// Append reads the text and appends it in the engine's own form. ok is false when the text is not of the form, or no such moment exists.
func (f TimeForm) Append(dst, text []byte) (_ []byte, ok bool) {
	year, month, day, hour, minute, second, micros, offset := 0, 1, 1, 0, 0, 0, 0, 0
	weekday, half := -1, -1
	for _, p := range f.parts {
		if p.verb == 0 {
			if len(text) == 0 || text[0] != p.literal {
				return dst, false
			}
			text = text[1:]
			continue
		}
		n := 0
		if p.width > 0 {
			if n, text, ok = p.digits(text); !ok {
				return dst, false
			}
		}
		switch p.verb {
		case 'Y':
			year = n
		case 'y':
			// As POSIX has it.
			if year = 2000 + n; n > 68 {
				year = 1900 + n
			}
		case 'm':
			month = n
		case 'd':
			day = n
		case 'H':
			hour = n
		case 'I':
			if hour = n; n < 1 || n > 12 {
				return dst, false
			}
		case 'M':
			minute = n
		case 'S':
			second = n
		case 'f':
			micros = n
		case 'b', 'B':
			month, text = word(text, p.verb == 'b', 12, func(i int) string { return time.Month(i + 1).String() })
			if month++; month == 0 {
				return dst, false
			}
		case 'a', 'A':
			if weekday, text = word(text, p.verb == 'a', 7, func(i int) string { return weekdays[i] }); weekday < 0 {
				return dst, false
			}
		case 'p':
			if half, text = word(text, false, 2, func(i int) string { return "AMPM"[2*i : 2*i+2] }); half < 0 {
				return dst, false
			}
		case 'z':
			if offset, text, ok = zone(text); !ok {
				return dst, false
			}
		}
	}
	if half >= 0 {
		hour = hour%12 + 12*half
	}
	if f.kind == "TIME" {
		year = 1
	}
	at := time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)
	// What time.Date carries over, which changes the month or the part itself, does not exist.
	if len(text) > 0 || year < 1 || int(at.Month()) != month || at.Hour() != hour || at.Minute() != minute || at.Second() != second ||
		weekday >= 0 && int(at.Weekday()) != weekday {
		return dst, false
	}
	at = at.Add(-time.Duration(offset) * time.Minute)
	if at.Year() < 1 || at.Year() > 9999 {
		return dst, false
	}
	layout := "2006-01-02 15:04:05"
	if micros != 0 {
		layout += ".000000"
	}
	switch f.kind {
	case "DATE":
		layout = layout[:10]
	case "TIME":
		layout = layout[11:]
	case "TIMESTAMP WITH TIME ZONE":
		layout += "Z"
	}
	return at.AppendFormat(dst, layout), true
}

// digits reads the part's number. Of a fraction, zeros behind its last digit say nothing.
func (p timePart) digits(text []byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(text) && i < p.width && text[i] >= '0' && text[i] <= '9' {
		n = n*10 + int(text[i]-'0')
		i++
	}
	if i == 0 || i < p.width && (p.exact || p.verb == 'Y' || p.verb == 'y') {
		return 0, text, false
	}
	if p.verb == 'f' {
		for range p.width - i {
			n *= 10
		}
		for !p.exact && i < len(text) && text[i] == '0' {
			i++
		}
	}
	return n, text[i:], true
}

// word reads one of the names, in any case, and gives its index, or -1. short names are of three letters.
func word(text []byte, short bool, count int, name func(int) string) (int, []byte) {
	for i := range count {
		w := name(i)
		if short {
			w = w[:3]
		}
		if len(text) >= len(w) && strings.EqualFold(string(text[:len(w)]), w) {
			return i, text[len(w):]
		}
	}
	return -1, text
}

// zone reads Z, +HH, +HHMM or +HH:MM, in minutes.
func zone(text []byte) (minutes int, rest []byte, ok bool) {
	if len(text) > 0 && text[0] == 'Z' {
		return 0, text[1:], true
	}
	if len(text) < 3 || text[0] != '+' && text[0] != '-' {
		return 0, text, false
	}
	two := timePart{verb: 'z', width: 2, exact: true}
	hours, rest, ok := two.digits(text[1:])
	if !ok {
		return 0, text, false
	}
	after := rest
	if len(after) > 0 && after[0] == ':' {
		after = after[1:]
	}
	if m, more, ok := two.digits(after); ok {
		minutes, rest = m, more
	} else if len(after) < len(rest) {
		return 0, text, false
	}
	minutes += 60 * hours
	if minutes%60 != minutes-60*hours || minutes > 15*60+59 {
		return 0, text, false
	}
	if text[0] == '-' {
		minutes = -minutes
	}
	return minutes, rest, true
}
