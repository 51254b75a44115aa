// Package draft owns the first draft of a project: what a look at whole files says about their columns, and the project files that
// follow from it.
//
// Invariants: a column's type is chosen over every one of its values, never over a sample, and is one that holds all of them exactly;
// where a value could mean more than one thing the harmless reading is chosen and the doubt is written beside it; the same files give
// the same draft. The package reads no files: whoever does feeds it the header and the records. A draft is written once, for people to
// change; a refresh never sniffs.
package draft

import (
	"fmt"
	"hash/maphash"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"leapview/domain/project"
)

// The bounds of what is remembered of a column.
const (
	// mostValues is how many different values make a column a list of accepted ones.
	mostValues = 20
	// mostKeys is how many values are told apart when a key is looked for; a longer file gets no unique check.
	mostKeys = 2_000_000
	// mostBytes is the longest value that can be an accepted one.
	mostBytes = 60
)

// Field is one value of a record: its text, whether it stood in quotes, and whether it is there at all.
type Field struct {
	Text   string
	Quoted bool
	Null   bool
}

// nullWords are texts by which files say that there is no value.
var nullWords = []string{"NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-", "?", "."}

// kind is what one text can be read as.
type kind uint8

const (
	isText kind = iota
	isWhole
	isFixed
	isFloat
	isBoolean
	isDay
	isMoment
	isInstant
	// isSlashed is a day whose parts are written as numbers in an order that nobody said.
	isSlashed
)

var (
	wholeForm   = regexp.MustCompile(`^[+-]?[0-9]+$`)
	fixedForm   = regexp.MustCompile(`^[+-]?[0-9]+\.[0-9]+$`)
	floatForm   = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$`)
	dayForm     = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	momentForm  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$`)
	instantForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})$`)
	slashedForm = regexp.MustCompile(`^([0-9]{1,2})([/.-])([0-9]{1,2})([/.-])([0-9]{4})$`)
	zerosForm   = regexp.MustCompile(`^[+-]?0[0-9]+$`)
)

// kindOf reads a text. A day or time that the calendar does not have is text.
func kindOf(s string) kind {
	if s == "" || len(s) > 64 {
		return isText
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9', c == '+', c == '-', c == '.':
	default:
		switch s {
		case "true", "false", "TRUE", "FALSE", "True", "False":
			return isBoolean
		}
		return isText
	}
	switch {
	case wholeForm.MatchString(s):
		return isWhole
	case fixedForm.MatchString(s):
		return isFixed
	case floatForm.MatchString(s):
		return isFloat
	case dayForm.MatchString(s) && onCalendar(s):
		return isDay
	case momentForm.MatchString(s) && onCalendar(s):
		return isMoment
	case instantForm.MatchString(s) && onCalendar(s):
		return isInstant
	case slashedForm.MatchString(s):
		return isSlashed
	}
	return isText
}

// onCalendar tells whether the day, and the time of day behind it, exist.
func onCalendar(s string) bool {
	day, err := time.Parse(time.DateOnly, s[:10])
	if err != nil || day.Year() < 1 {
		return false
	}
	if len(s) < 16 {
		return true
	}
	_, err = time.Parse("15:04", s[11:16])
	return err == nil && (len(s) < 19 || s[16] != ':' || s[17] <= '5')
}

// exists tells whether the calendar has the day.
func exists(year string, month, day int) bool {
	return onCalendar(fmt.Sprintf("%s-%02d-%02d", year, month, day))
}

// Column is what was seen of one column.
type Column struct {
	// Name as the file has it.
	Name string
	// Rows, Nulls and quoted texts that were counted; Nulls are values that are not there at all.
	Rows, Nulls int64
	kinds       [isSlashed + 1]int64
	// words counts the texts that are null words.
	words map[string]int64
	// zeros counts whole numbers with leading zeros; big those beyond 64 bits.
	zeros, big, vast int64
	// digits and scale are the most digits before and behind the point.
	digits, scale int
	// dayFirst and monthFirst count slashed days that can be read in one order only, odd those with other separators than the first one
	// and those that no order makes a day of.
	dayFirst, monthFirst, odd int64
	separator                 byte
	low, high                 *big.Rat
	lowDay, highDay           string
	// values are the different values, until there are too many.
	values map[string]int64
	// example is a text that is of no other kind.
	example string
	// seen are hashes of the values, until one repeats or there are too many.
	seen map[uint64]struct{}
	seed maphash.Seed
	// nested counts JSON objects and lists, strings and bare its strings and its numbers and booleans.
	nested, strings, bare int64
	// declared is a type that the file itself says; empty when it says none.
	declared project.Type
}

// NewColumn begins to look at a column. declared is the type that the file itself gives it, or "".
func NewColumn(name string, declared project.Type) *Column {
	return &Column{Name: name, declared: declared, words: map[string]int64{}, values: map[string]int64{}, seen: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

// Add looks at one value.
func (c *Column) Add(f Field) {
	c.Rows++
	if f.Null || !f.Quoted && f.Text == "" {
		c.Nulls++
		return
	}
	c.remember(f.Text)
	if !f.Quoted && slices.Contains(nullWords, f.Text) {
		c.words[f.Text]++
		return
	}
	k := kindOf(f.Text)
	c.kinds[k]++
	switch k {
	case isWhole, isFixed, isFloat:
		c.number(f.Text, k)
	case isDay, isMoment, isInstant:
		if c.lowDay == "" || f.Text < c.lowDay {
			c.lowDay = f.Text
		}
		c.highDay = max(c.highDay, f.Text)
	case isSlashed:
		m := slashedForm.FindStringSubmatch(f.Text)
		first, _ := strconv.Atoi(m[1])
		second, _ := strconv.Atoi(m[3])
		if c.separator == 0 {
			c.separator = m[2][0]
		}
		switch {
		case m[2] != m[4] || m[2][0] != c.separator || !exists(m[5], second, first) && !exists(m[5], first, second):
			c.odd++
		case !exists(m[5], first, second):
			c.dayFirst++
		case !exists(m[5], second, first):
			c.monthFirst++
		}
	case isText:
		if c.example == "" {
			c.example = f.Text
		}
	case isBoolean:
	}
}

func (c *Column) number(text string, k kind) {
	digits := strings.TrimLeft(text, "+-")
	if k == isWhole && zerosForm.MatchString(text) {
		c.zeros++
	}
	if k != isFloat {
		whole, fraction, _ := strings.Cut(digits, ".")
		c.digits = max(c.digits, len(strings.TrimLeft(whole, "0")))
		c.scale = max(c.scale, len(fraction))
	}
	if k == isWhole {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			c.big++
		} else if len(digits) > 15 {
			c.vast++
		}
	}
	// The form has no fraction bars, and its exponents have two digits.
	x, ok := new(big.Rat).SetString(text)
	if !ok {
		return
	}
	if c.low == nil || x.Cmp(c.low) < 0 {
		c.low = x
	}
	if c.high == nil || x.Cmp(c.high) > 0 {
		c.high = x
	}
}

// remember keeps what tells lists and keys.
func (c *Column) remember(text string) {
	if c.values != nil {
		if c.values[text]++; len(c.values) > mostValues || len(text) > mostBytes {
			c.values = nil
		}
	}
	if c.seen != nil {
		h := maphash.String(c.seed, text)
		if _, twice := c.seen[h]; twice || len(c.seen) == mostKeys {
			c.seen = nil
			return
		}
		c.seen[h] = struct{}{}
	}
}

// present is how many values are there and no null word.
func (c *Column) present() int64 {
	n := int64(0)
	for _, k := range c.kinds {
		n += k
	}
	return n
}

// Choice is what a column is declared as, and why.
type Choice struct {
	Column project.Column
	// Format is how the days of a text column are written, when its values tell; its model turns them into days.
	Format string
	// NullTexts are the null words that the column uses.
	NullTexts []string
	// Doubts are what its author should know, each a sentence.
	Doubts []string
}

// Choose decides.
func (c *Column) Choose() Choice {
	out := Choice{Column: project.Column{Name: c.Name, Type: "VARCHAR"}}
	doubt := func(format string, args ...any) { out.Doubts = append(out.Doubts, fmt.Sprintf(format, args...)) }
	n := c.present()
	all := func(kinds ...kind) bool {
		sum := int64(0)
		for _, k := range kinds {
			sum += c.kinds[k]
		}
		return n > 0 && sum == n
	}
	if c.declared != "" {
		out.Column.Type = c.declared
		return out
	}
	switch {
	case c.nested > 0:
		out.Column.Type = "JSON"
		doubt("%s nested objects or lists: kept as JSON, to be taken apart in the model", counted(c.nested, "value is", "values are"))
	case c.strings > 0 && c.bare > 0:
		out.Column.Type = "JSON"
		doubt("%s and %s: kept as JSON, to be taken apart in the model", counted(c.strings, "value is text", "values are text"), counted(c.bare, "is a number or boolean", "are numbers or booleans"))
	case n == 0 && c.Nulls == c.Rows:
		doubt("it has no value in any row; VARCHAR holds whatever may come")
	case n == 0:
		// Only null words: they may well be texts.
		doubt("it holds nothing but %s, which is kept as text", strings.Join(c.wordList(), ", "))
	case all(isWhole) && c.zeros > 0:
		doubt("%s with leading zeros, such as postal codes have: kept as text", counted(c.zeros, "number"))
	case all(isWhole) && c.big == 0:
		out.Column.Type = "BIGINT"
		if c.vast > 0 {
			doubt("%s longer than 15 digits: JavaScript would round them, and identifiers are better text (VARCHAR)", counted(c.vast, "number is", "numbers are"))
		}
	case all(isWhole) && c.digits <= 38:
		out.Column.Type = project.Type("DECIMAL(38,0)")
		doubt("%s beyond 64 bits: DECIMAL(38,0) holds them exactly; identifiers are better text (VARCHAR)", counted(c.big, "number is", "numbers are"))
	case all(isWhole):
		doubt("some numbers have more than 38 digits, which no number type holds: kept as text")
	case all(isWhole, isFixed) && c.zeros == 0 && c.scale <= 4 && c.digits <= 14:
		out.Column.Type = project.Type(fmt.Sprintf("DECIMAL(18,%d)", c.scale))
		doubt("exact, with %s behind the point, the most that the file has; DOUBLE if it is a measurement", counted(int64(c.scale), "digit"))
	case all(isWhole, isFixed, isFloat) && c.zeros == 0:
		out.Column.Type = "DOUBLE"
		if c.digits+c.scale > 15 {
			doubt("some numbers have more than 15 digits, and DOUBLE rounds them; DECIMAL(38,%d) would keep them", min(c.scale, 20))
		}
	case all(isBoolean):
		out.Column.Type = "BOOLEAN"
	case all(isDay):
		out.Column.Type = "DATE"
	case all(isMoment):
		out.Column.Type = "TIMESTAMP"
		doubt("times without an offset: the file does not say of which place")
	case all(isInstant):
		out.Column.Type = "TIMESTAMP WITH TIME ZONE"
	case all(isSlashed):
		c.slashed(&out, doubt)
	default:
		c.mixed(doubt, n)
	}
	if out.Column.Type != "VARCHAR" {
		out.NullTexts = c.wordList()
	} else if len(c.words) > 0 && n > 0 {
		doubt("it has the text %s, which may mean that there is no value", strings.Join(c.wordList(), ", "))
	}
	return out
}

// slashed decides about days like 01/02/2024.
func (c *Column) slashed(out *Choice, doubt func(string, ...any)) {
	x := string(c.separator)
	switch {
	case c.odd > 0:
		doubt("%s like days, and some that are none or are written in another way: kept as text", counted(c.kinds[isSlashed], "value looks", "values look"))
	case c.dayFirst > 0 && c.monthFirst == 0:
		out.Format = "%d" + x + "%m" + x + "%Y"
	case c.monthFirst > 0 && c.dayFirst == 0:
		out.Format = "%m" + x + "%d" + x + "%Y"
	case c.dayFirst > 0:
		doubt("days in two orders, %d with the day first and %d with the month: kept as text", c.dayFirst, c.monthFirst)
	default:
		doubt("days like 01%s02%s2024, of which no value tells whether the day or the month comes first: kept as text; the model can say strptime(x, '%%d%s%%m%s%%Y')::DATE, or with %%m before %%d", x, x, x, x)
	}
}

// mixed doubts a column of text that is mostly something else.
func (c *Column) mixed(doubt func(string, ...any), n int64) {
	names := []string{"text", "whole number", "decimal number", "number", "boolean", "day", "time", "time with offset", "day"}
	best := isText
	for k := isWhole; k <= isSlashed; k++ {
		if c.kinds[k] > c.kinds[best] || best == isText && c.kinds[k]*2 > n {
			best = k
		}
	}
	if best != isText && c.kinds[best]*2 > n {
		other := c.example
		if other == "" {
			other = "other kinds of values"
		} else {
			other = strconv.Quote(clip(other))
		}
		doubt("%s of %d are a %s, but there is %s too: kept as text", counted(c.kinds[best], "value"), n, names[best], other)
	}
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// wordList are the null words that occur, sorted.
func (c *Column) wordList() []string {
	var out []string
	for w := range c.words {
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}

// counted is a count of things; with two words the second is for any number but one.
func counted(n int64, words ...string) string {
	word := words[0]
	if n != 1 {
		word = words[len(words)-1]
		if len(words) == 1 {
			word += "s"
		}
	}
	return fmt.Sprintf("%d %s", n, word)
}
