package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// size is a flag value: a count of bytes, written with or without a unit.
type size int64

var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1},
}

// Set reads a size such as 512MiB, 4GB or 1000000.
func (s *size) Set(text string) error {
	number, unit := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a size: write a whole number and a unit, such as 512MiB or 4GB", text)
	}
	*s = size(n * unit)
	return nil
}

// String is the size in its largest whole binary unit.
func (s *size) String() string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; *s > 0 && int64(*s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(*s)/u.bytes, u.suffix)
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type names the value in help.
func (s *size) Type() string { return "size" }
