package app

import (
	"math"
	"strings"
	"time"
)

// Settings are the values of everything that an operator sets.
type Settings struct {
	// DataDir holds everything that a node keeps.
	DataDir string
	// Extensions is the directory of the signed engine extensions; when it is empty, it is looked for in a few places.
	Extensions string
	// Config is the file of settings; when it is empty, it is looked for in the working directory.
	Config string
	// JSON asks for results, errors and logs as JSON, Verbose for more of the logs.
	JSON, Verbose bool
	// Listen is the host and port to serve on, Hosts are the names that the node answers for beside its own address.
	Listen string
	Hosts  []string
	// Memory and TempSpace bound the engine, in bytes, Threads counts its threads; 0 derives them from the machine.
	Memory, TempSpace int64
	Threads           int
	// SourceRoot is where the locations of sources start; empty is the project's own folder.
	SourceRoot string
	Limits     Limits
}

// SettingKind is how a setting is written.
type SettingKind uint8

// The kinds of settings.
const (
	CountSetting SettingKind = iota
	BytesSetting
	DurationSetting
	SwitchSetting
	AddressSetting
	DirectorySetting
	FileSetting
	NamesSetting
)

// String is the kind as help names a value of it.
func (k SettingKind) String() string {
	switch k {
	case CountSetting:
		return "number"
	case BytesSetting:
		return "size"
	case DurationSetting:
		return "time"
	case SwitchSetting:
		return "true or false"
	case AddressSetting:
		return "address"
	case DirectorySetting:
		return "directory"
	case FileSetting:
		return "file"
	case NamesSetting:
		return "name"
	}
	return "value"
}

// Reach is which commands a setting means something to.
type Reach uint8

// The reaches of settings.
const (
	// ReachAll is every command.
	ReachAll Reach = iota
	// ReachNode is each command that opens a node when none runs.
	ReachNode
	// ReachDeploy is deploying.
	ReachDeploy
	// ReachRefresh is refreshing, by a command or by a node.
	ReachRefresh
	// ReachServe is serving.
	ReachServe
)

// Setting is one row of the table that flags, environment variables, the file of settings, help, defaults and checks are made of.
type Setting struct {
	// Name is the setting's key in the file of settings, and what errors call it; Flag and Variable follow from it.
	Name string
	Kind SettingKind
	// Doc says in one sentence what it is.
	Doc string
	// Default is the value as an operator would write it. Where it is computed, Computed says from what; zero is then no value.
	Default, Computed string
	// Least and Most bound a count, bytes or nanoseconds. 0 as Most bounds nothing.
	Least, Most int64
	Reach       Reach
	// Personal settings are those of whoever gives a command, and not of the node: the file does not have them.
	Personal bool
	// Short is a letter that stands for the flag.
	Short string
	// Value is where the value is in s: an *int of a count, an *int64 of bytes, a *time.Duration, a *bool of a switch, a *[]string of
	// names, and else a *string.
	Value func(s *Settings) any
}

// Flag is the setting on the command line, without its dashes.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

// Variable is the setting in the environment.
func (s Setting) Variable() string { return variablePrefix + strings.ToUpper(s.Name) }

const variablePrefix = "LEAPVIEW_"

// The least memory and disk that the engine works with, the most threads that it may have, and the most of anything that has no bound of
// its own.
const (
	LeastMemory = 64 << 20
	MostThreads = 512
	mostBytes   = math.MaxInt64 / 2
)

// SettingTable is everything that an operator sets.
var SettingTable = []Setting{
	{Name: "data_dir", Kind: DirectorySetting, Default: ".leapview", Doc: "directory that holds everything the node keeps", Value: func(s *Settings) any { return &s.DataDir }},
	{Name: "extensions", Kind: DirectorySetting, Computed: ".extensions here, or else beside or above the executable", Doc: "directory that holds the engine's extension files",
		Value: func(s *Settings) any { return &s.Extensions }},
	{Name: "config", Kind: FileSetting, Computed: SettingsFile + " here, if there is one", Doc: "file that holds settings", Personal: true, Value: func(s *Settings) any { return &s.Config }},
	{Name: "json", Kind: SwitchSetting, Default: "false", Doc: "print results, errors and logs as JSON, and no progress", Personal: true, Value: func(s *Settings) any { return &s.JSON }},
	{Name: "verbose", Kind: SwitchSetting, Default: "false", Doc: "log more", Short: "v", Value: func(s *Settings) any { return &s.Verbose }},

	{Name: "memory", Kind: BytesSetting, Computed: "half of what this process may use", Least: LeastMemory, Most: mostBytes, Reach: ReachNode, Doc: "memory of the engine, such as 4GiB",
		Value: func(s *Settings) any { return &s.Memory }},
	{Name: "temp_space", Kind: BytesSetting, Computed: "half of what is free on the disk", Least: LeastMemory, Most: mostBytes, Reach: ReachNode, Doc: "disk space for what does not fit in memory, such as 20GiB",
		Value: func(s *Settings) any { return &s.TempSpace }},
	{Name: "threads", Kind: CountSetting, Computed: "one a processor that this process may use", Least: 1, Most: MostThreads, Reach: ReachNode, Doc: "how many threads the engine has",
		Value: func(s *Settings) any { return &s.Threads }},

	{Name: "source_root", Kind: DirectorySetting, Computed: "the project's directory", Reach: ReachDeploy, Doc: "directory that source locations start from", Value: func(s *Settings) any { return &s.SourceRoot }},

	{Name: "listen", Kind: AddressSetting, Default: "127.0.0.1:8080", Reach: ReachServe, Doc: "address and port to serve on; port 0 takes a free one; any but a loopback address takes a key",
		Value: func(s *Settings) any { return &s.Listen }},
	{Name: "host", Kind: NamesSetting, Reach: ReachServe, Doc: "name that the node is reached by, beside localhost and its address; may be repeated", Value: func(s *Settings) any { return &s.Hosts }},

	{Name: "query_slots", Kind: CountSetting, Computed: "twice the threads", Least: 1, Most: 2 * MostThreads, Reach: ReachServe, Doc: "requests that read at once, at most",
		Value: func(s *Settings) any { return &s.Limits.QuerySlots }},
	{Name: "query_queue", Kind: CountSetting, Default: "256", Least: 1, Most: 100_000, Reach: ReachServe, Doc: "requests that wait for their turn to read, at most",
		Value: func(s *Settings) any { return &s.Limits.QueryQueue }},
	{Name: "query_time", Kind: DurationSetting, Default: "30s", Least: int64(100 * time.Millisecond), Most: int64(24 * time.Hour), Reach: ReachServe, Doc: "longest time that one request may take, its waiting included",
		Value: func(s *Settings) any { return &s.Limits.Ask.Time }},
	{Name: "requests", Kind: CountSetting, Default: "512", Least: 1, Most: 100_000, Reach: ReachServe, Doc: "requests that are worked on at once, waiting ones included, at most",
		Value: func(s *Settings) any { return &s.Limits.Requests }},
	{Name: "bundle_calls", Kind: CountSetting, Default: "32", Least: 1, Most: 1000, Reach: ReachServe, Doc: "endpoint calls of one query bundle, at most", Value: func(s *Settings) any { return &s.Limits.Ask.Calls }},
	{Name: "answer_bytes", Kind: BytesSetting, Default: "16MiB", Least: 1 << 10, Most: 1 << 30, Reach: ReachServe, Doc: "most bytes that the rows of one request's answers may take",
		Value: func(s *Settings) any { return &s.Limits.Ask.Bytes }},
	{Name: "body_bytes", Kind: BytesSetting, Default: "1MiB", Least: 1 << 10, Most: MostBodyBytes, Reach: ReachServe, Doc: "most bytes of one request's body",
		Value: func(s *Settings) any { return &s.Limits.BodyBytes }},

	{Name: "source_files", Kind: CountSetting, Default: "1000", Least: 1, Most: 100_000, Reach: ReachRefresh, Doc: "files of one source, at most", Value: func(s *Settings) any { return &s.Limits.SourceFiles }},
	{Name: "source_bytes", Kind: BytesSetting, Default: "16GiB", Least: 1 << 10, Most: mostBytes, Reach: ReachRefresh, Doc: "most bytes of the files of one source together",
		Value: func(s *Settings) any { return &s.Limits.SourceBytes }},
}

// DefaultSettings are the settings of an operator who says nothing. What is computed is zero in them.
func DefaultSettings() Settings {
	var s Settings
	for _, row := range SettingTable {
		if row.Default != "" {
			// The table's own texts are proved to be right by a test.
			_ = row.set(&s, []string{row.Default})
		}
	}
	return s
}
