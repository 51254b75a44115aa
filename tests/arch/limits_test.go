package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leapview/app"
)

// fixedLimits are the bounds that errors name and no operator sets: what a project, a call or a key may be is the same on every node, and
// so are the bounds that keep the node's own work finite.
var fixedLimits = strings.Fields(`yaml_bytes yaml_depth yaml_nodes sql_bytes project_files project_file_bytes path_bytes file_bytes files archive_bytes bundle_bytes
	checks accepted_values examples params max_items list_bytes parameter_bytes pattern_bytes skip_lines location_bytes null_texts test_cases test_rows
	live_runs keys key_lifetime key_columns columns connections
	max_files max_bytes max_rows min_rows max_shrink_percent freshness system`)

var (
	limitsNamed = regexp.MustCompile(`\(limits? ([^)]*)\)`)
	limitNamed  = regexp.MustCompile(`(\w+) = `)
)

// limitsOf are the bounds that a text of code names in errors.
func limitsOf(text string) (names []string) {
	for _, in := range limitsNamed.FindAllStringSubmatch(text, -1) {
		for _, name := range limitNamed.FindAllStringSubmatch(in[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// TestLimitsAreSettings proves that every bound that an error names is a setting, whose flag the same file names as the fix, or one of those
// that are the same on every node.
func TestLimitsAreSettings(t *testing.T) {
	if got := limitsOf(`"%d (limits a_b = %d, c = %d) and (limit d = 3650d)"`); !slices.Equal(got, []string{"a_b", "c", "d"}) {
		t.Fatalf("found %q", got)
	}
	flags, found := map[string]string{}, map[string]bool{}
	for _, row := range app.SettingTable {
		flags[row.Name] = "--" + row.Flag()
	}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "tests/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(t), s.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range limitsOf(string(text)) {
			found[name] = true
			flag, setting := flags[name]
			switch {
			case setting == slices.Contains(fixedLimits, name):
				t.Errorf("%s names the limit %s, which is neither a setting nor fixed, or both", s.path, name)
			// The twins' errors are read by tests only.
			case setting && !strings.Contains(string(text), flag) && !strings.HasPrefix(s.path, "adapters/mem/"):
				t.Errorf("%s names the limit %s, and not the flag %s that sets it", s.path, name, flag)
			}
		}
	}
	for _, name := range fixedLimits {
		if !found[name] {
			t.Errorf("no error names the limit %s", name)
		}
	}
}
