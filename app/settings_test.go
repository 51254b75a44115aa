package app

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"leapview/adapters/mem"
	"leapview/domain/fail"
	"leapview/domain/project"
)

// Proves that the table has a row for every setting, that each row sets a field of its own, that a default or what it is computed from is told,
// and that a value just outside of its bounds is named while one just inside is not.
func TestSettingTable(t *testing.T) {
	fields := 0
	for f := range reflect.TypeFor[Settings]().Fields() {
		if f.Type.Kind() != reflect.Struct {
			fields++
		}
	}
	if n := fields + reflect.TypeFor[Limits]().NumField() - 1 + reflect.TypeFor[AskLimits]().NumField(); n != len(SettingTable) {
		t.Errorf("there are %d settings and %d rows", n, len(SettingTable))
	}
	start := DefaultSettings()
	if problems := start.Problems(); len(problems) > 0 {
		t.Errorf("the defaults: %v", problems)
	}
	where := map[any]string{}
	for _, row := range SettingTable {
		if other := where[row.Value(&start)]; other != "" {
			t.Errorf("%s and %s are one field", row.Name, other)
		}
		where[row.Value(&start)] = row.Name
		if (row.Default != "") == (row.Computed != "") && row.Kind != NamesSetting {
			t.Errorf("%s has both or neither of a default and what it is computed from", row.Name)
		}
		if row.Default != "" && row.Text(start) != row.Default {
			t.Errorf("the default of %s is written %s and told as %s", row.Name, row.Default, row.Text(start))
		}
		if _, bounded := row.number(&start); bounded == (row.Most == 0) {
			t.Errorf("%s is a number and has no bounds, or the other way round", row.Name)
		}
		for value, ok := range map[int64]bool{row.Least - 1: false, row.Least: true, row.Most: true, row.Most + 1: false, -1: false, 0: row.Computed != ""} {
			s := start
			switch v := row.Value(&s).(type) {
			case *int:
				*v = int(value)
			case *int64:
				*v = value
			case *time.Duration:
				*v = time.Duration(value)
			default:
				continue
			}
			if value == 0 && row.Computed != "" {
				ok = true
			}
			problems := s.Problems()
			if ok != (len(problems) == 0) || !ok && (len(problems) != 1 || problems[0].Setting != row.Name) {
				t.Errorf("%s = %d: %v", row.Name, value, problems)
			}
		}
	}
}

// Proves which layer a setting comes from, and that its origin says where.
func TestLayers(t *testing.T) {
	const file = `{"threads": 3, "memory": "1GiB", "host": ["a", "b"], "query_time": "5s", "data_dir": "d", "verbose": true}`
	tree, problems := (mem.Documents{}).Parse([]byte(file), project.Position{File: "etc/n.yaml"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c, wrong := Configure(Given{
		Flags:       map[string][]string{"memory": {"1MiB", "2GiB"}, "extensions": {"x"}},
		Environment: []string{"LEAPVIEW_MEMORY=3GiB", "LEAPVIEW_THREADS=4", "LEAPVIEW_QUERY_TIME=", "LEAPVIEW_MEMROY=1", "LEAPVIEW_XYZZY_PLUGH=1", "PATH=/bin"},
		File:        tree, FileName: "etc/n.yaml", FileText: file,
	})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	want := DefaultSettings()
	want.Memory, want.Threads, want.Hosts, want.Limits.Ask.Time, want.DataDir, want.Verbose, want.Extensions = 2<<30, 4, []string{"a", "b"}, 5*time.Second, "etc/d", true, "x"
	if !reflect.DeepEqual(c.Settings, want) {
		t.Errorf("got %+v", c.Settings)
	}
	for name, want := range map[string]Origin{"memory": {FromFlag, "--memory"}, "threads": {FromEnvironment, "LEAPVIEW_THREADS"}, "query_time": {FromFile, "etc/n.yaml:1:68"}, "listen": {FromDefault, ""}} {
		if got := c.Origins[name]; got != want {
			t.Errorf("%s is from %+v", name, got)
		}
	}
	if !slices.Equal(c.Warnings, []string{`LEAPVIEW_MEMROY is set in the environment, and is no setting; did you mean "LEAPVIEW_MEMORY"?`, "LEAPVIEW_XYZZY_PLUGH is set in the environment, and is no setting"}) {
		t.Errorf("warnings %q", c.Warnings)
	}
}

// Proves that everything wrong is told at once, each with where it was said and the line of the file, and that what is right is taken.
func TestWrongSettings(t *testing.T) {
	const file = "{\"threads\": 0.5,\n\"memroy\": 1, \"json\": true,\n\"listen\": {}, \"query_queue\": 7, \"query_queue\": 8, \"host\": [], \"body_bytes\": null}"
	tree, problems := (mem.Documents{}).Parse([]byte(file), project.Position{File: "n.yaml"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c, wrong := Configure(Given{
		Flags:       map[string][]string{"memory": {"4XB"}, "host": {"a,https://b"}, "json": {"maybe"}, "data_dir": {""}},
		Environment: []string{"LEAPVIEW_SOURCE_FILES=-1", "LEAPVIEW_QUERY_TIME=soon", "LEAPVIEW_TEMP_SPACE=1"},
		File:        tree, FileName: "n.yaml", FileText: file,
	})
	if c.Settings.Limits.QueryQueue != 7 || c.Settings.Memory != 0 || c.Settings.Limits.SourceFiles != 1000 || c.Origins["memory"].Source != FromDefault {
		t.Errorf("got %+v", c)
	}
	told := wrong.Error()
	for _, want := range []string{
		`--memory: "4XB" is not a size`, `--host: "https://b" is not a host name`, `--json: "maybe" is neither true nor false`, "--data-dir: it is empty",
		"LEAPVIEW_SOURCE_FILES: -1 is not from 1 to 100000", `LEAPVIEW_QUERY_TIME: "soon" is not a time`, "LEAPVIEW_TEMP_SPACE: 1 is not at least 64MiB",
		"n.yaml:1:13: threads: \"0.5\" is not a whole number\n    {\"threads\": 0.5,\n                ^", `n.yaml:2:1: there is no setting "memroy"; did you mean "memory"?`,
		`n.yaml:2:14: "json" is not set in a file; give it as --json, or as LEAPVIEW_JSON`, "n.yaml:3:11: listen: it is a mapping; write an address",
		`"query_queue" is set before already`, "host: it is a list; write a name, or a list of names", "body_bytes: it is nothing; write a size",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("it is not told: %s\n%s", want, told)
		}
	}
	if fail.KindOf(wrong) != fail.Invalid || fail.DetailOf(wrong, true) != "14 settings cannot be used" || len(wrong) != 14 {
		t.Errorf("%d problems: %s", len(wrong), fail.DetailOf(wrong, true))
	}
	tree.Kind = project.ListNode
	if _, wrong := Configure(Given{File: tree, FileName: "n.yaml"}); len(wrong) != 1 || !strings.Contains(wrong.Error(), "must be a mapping") {
		t.Errorf("a list: %v", wrong)
	}
}

// Proves which addresses can be served on.
func TestAddresses(t *testing.T) {
	row, _ := settingNamed("listen")
	for text, ok := range map[string]bool{"127.0.0.1:0": true, ":8080": true, "[::1]:65535": true, "localhost:80": true, "0.0.0.0:1": true,
		"127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:65536": false, "127.0.0.1:-1": false, "127.0.0.1:http": false, "127.0.0.1:+1": false, "example.org:80": false, "::1:80": false} {
		if err := row.wrong(&Settings{Listen: text}); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Sizes are whole numbers with or without a unit, and are printed so that they can be read again.
func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1000": 1000, "512MiB": 512 << 20, "4 GiB": 4 << 30, "3GB": 3e9, "7B": 7, "3TiB": 3 << 40} {
		n, err := ParseSize(text)
		if err != nil || n != want {
			t.Errorf("%q is %d, %v", text, n, err)
		}
		if again, err := ParseSize(FormatSize(n)); err != nil || again != n {
			t.Errorf("%q is printed as %q, which is %d, %v", text, FormatSize(n), again, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5GiB", "GiB", "9999999999GiB", "1 parsec"} {
		if _, err := ParseSize(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
