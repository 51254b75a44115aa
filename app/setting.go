package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// units of sizes, the largest binary one last but for the decimal ones.
var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a size such as 512MiB, 4GB or 1000000.
func ParseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is not a size: write a whole number and a unit, such as 512MiB or 4GB", text)
	}
	return n * unit, nil
}

// FormatSize is the size in its largest whole binary unit, so that ParseSize reads it back.
func FormatSize(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; n > 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return strconv.FormatInt(n, 10)
}

// set writes what the texts say into s; only names take more than one text. What the value may be is judged by wrong.
func (s Setting) set(into *Settings, texts []string) error {
	text := ""
	if len(texts) > 0 {
		text = texts[len(texts)-1]
	}
	switch v := s.Value(into).(type) {
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*v = n
	case *int64:
		n, err := ParseSize(text)
		if err != nil {
			return err
		}
		*v = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a time: write a number and a unit, such as 500ms, 30s or 5m", text)
		}
		*v = d
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*v = b
	case *[]string:
		*v = nil
		for _, t := range texts {
			for name := range strings.SplitSeq(t, ",") {
				*v = append(*v, strings.TrimSpace(name))
			}
		}
	case *string:
		*v = text
	}
	return nil
}

// Text is the setting's value in s as an operator would write it.
func (s Setting) Text(in Settings) string {
	switch v := s.Value(&in).(type) {
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return FormatSize(*v)
	case *time.Duration:
		return formatDuration(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *[]string:
		return strings.Join(*v, ",")
	case *string:
		return *v
	}
	return ""
}

// formatDuration leaves out the zeros that time.Duration's own text ends with.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// number is the value of a setting that has bounds.
func (s Setting) number(in *Settings) (n int64, ok bool) {
	switch v := s.Value(in).(type) {
	case *int:
		return int64(*v), true
	case *int64:
		return *v, true
	case *time.Duration:
		return int64(*v), true
	}
	return 0, false
}

// Bounds says what the value may be, for people; it is empty when there is nothing to say.
func (s Setting) Bounds() string {
	if s.Most == 0 {
		return ""
	}
	told := func(n int64) string {
		switch s.Kind {
		case BytesSetting:
			return FormatSize(n)
		case DurationSetting:
			return formatDuration(time.Duration(n))
		}
		return strconv.FormatInt(n, 10)
	}
	if s.Most == mostBytes {
		return "at least " + told(s.Least)
	}
	return "from " + told(s.Least) + " to " + told(s.Most)
}

// wrong says why the value in s cannot be, or nil. What is computed may be missing.
func (s Setting) wrong(in *Settings) error {
	if n, ok := s.number(in); ok {
		if (n < s.Least || n > s.Most) && (n != 0 || s.Computed == "") {
			return fmt.Errorf("%s is not %s", s.Text(*in), s.Bounds())
		}
		return nil
	}
	switch v := s.Value(in).(type) {
	case *[]string:
		for _, name := range *v {
			if !hostName(name) {
				return fmt.Errorf("%q is not a host name or an address, without scheme and port", name)
			}
		}
	case *string:
		switch {
		case s.Kind == AddressSetting:
			return wrongAddress(*v)
		case *v == "" && s.Computed == "":
			return errors.New("it is empty")
		}
	}
	return nil
}

func hostName(h string) bool {
	return h != "" && len(h) <= 253 && strings.Trim(strings.ToLower(h), "abcdefghijklmnopqrstuvwxyz0123456789-.:_") == ""
}

func wrongAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return fmt.Errorf("%q has no port from 0 to 65535", text)
	}
	if _, err := netip.ParseAddr(host); host != "" && host != "localhost" && err != nil {
		return fmt.Errorf("%q is neither an IP address nor localhost; names that the node is reached by are given with --host", text)
	}
	return nil
}

// Problems names every value that cannot be.
func (s *Settings) Problems() SettingProblems {
	var problems SettingProblems
	for _, row := range SettingTable {
		if err := row.wrong(s); err != nil {
			problems = append(problems, SettingProblem{Setting: row.Name, Message: err.Error()})
		}
	}
	return problems
}

// settingNamed finds a row of the table.
func settingNamed(name string) (Setting, bool) {
	i := slices.IndexFunc(SettingTable, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return SettingTable[i], true
}
