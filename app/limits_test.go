package app

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Proves that the table has a row for every bound, that each row sets a field of its own, that the defaults keep to their bounds, and that a
// value just outside is named while one just inside is not.
func TestLimitTable(t *testing.T) {
	if n := reflect.TypeFor[Limits]().NumField() - 1 + reflect.TypeFor[AskLimits]().NumField(); n != len(LimitTable) {
		t.Errorf("there are %d bounds and %d rows", n, len(LimitTable))
	}
	start := DefaultLimits()
	start.QuerySlots = 1
	if problems := start.Problems(); len(problems) > 0 {
		t.Errorf("the defaults: %q", problems)
	}
	fields := map[any]string{}
	for _, row := range LimitTable {
		l := start
		where := row.Value(&l)
		if other := fields[row.Value(&start)]; other != "" {
			t.Errorf("%s and %s are one field", row.Name, other)
		}
		fields[row.Value(&start)] = row.Name
		for value, ok := range map[int64]bool{row.Least - 1: false, row.Least: true, row.Most: true, row.Most + 1: false, -1: false} {
			switch v := where.(type) {
			case *int:
				*v = int(value)
			case *int64:
				*v = value
			case *time.Duration:
				*v = time.Duration(value)
			default:
				t.Fatalf("%s is a %T, which no flag is made of", row.Name, v)
			}
			problems := l.Problems()
			if ok != (len(problems) == 0) || !ok && (len(problems) != 1 || !strings.HasPrefix(problems[0], row.Flag()+": ")) {
				t.Errorf("%s = %d: %q", row.Name, value, problems)
			}
		}
	}
}
