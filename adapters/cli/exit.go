package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"leapview/domain/fail"
)

// exits is the one table from kinds of failure to exit codes.
var exits = []struct {
	code    int
	kinds   []fail.Kind
	meaning string
}{
	{0, nil, "done"},
	{1, []fail.Kind{fail.Internal}, "an internal error, which is a defect of leapview"},
	{2, []fail.Kind{fail.Invalid}, "the command line, the project, the data or a parameter is wrong"},
	{3, []fail.Kind{fail.Corrupt, fail.UnknownOutcome}, "stored data is corrupt, or cannot be proved to be right"},
	{4, []fail.Kind{fail.Conflict, fail.Fenced}, "the state has moved on, or another process holds the data directory"},
	{5, []fail.Kind{fail.Missing}, "what was named does not exist"},
	{6, []fail.Kind{fail.Busy, fail.Limit}, "the node is busy, or a limit was exceeded"},
	{7, []fail.Kind{fail.Denied}, "not allowed"},
	{70, []fail.Kind{fail.Fatal}, "the engine failed and the process cannot go on"},
	{75, []fail.Kind{fail.Unavailable}, "no node runs, it is not ready, or its machine hinders it: try again later"},
	{130, []fail.Kind{fail.Canceled}, "canceled by a signal, or cut off"},
}

func exitCode(err error) int {
	kind := fail.KindOf(err)
	for _, e := range exits {
		if slices.Contains(e.kinds, kind) {
			return e.code
		}
	}
	return 1
}

// exitCodesTopic is the help topic that prints the table.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit code of leapview says what kind of failure it met:\n\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What each exit code means", Long: strings.TrimRight(b.String(), "\n")}
}
