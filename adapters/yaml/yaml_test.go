package yaml

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"leapview/domain/project"
)

// show writes a tree in one line: kind, text and position of each node.
func show(n project.Node) string {
	var b strings.Builder
	at := fmt.Sprintf("@%d:%d", n.At.Line, n.At.Column)
	switch n.Kind {
	case project.MappingNode:
		b.WriteString("{")
		for _, e := range n.Entries {
			b.WriteString(show(e.Key) + "=" + show(e.Value) + " ")
		}
		b.WriteString("}" + at)
	case project.ListNode:
		b.WriteString("[")
		for _, i := range n.Items {
			b.WriteString(show(i) + " ")
		}
		b.WriteString("]" + at)
	case project.NullNode, project.StringNode, project.IntegerNode, project.FloatNode, project.BooleanNode:
		fmt.Fprintf(&b, "%s(%s)%s", strings.TrimPrefix(strings.TrimPrefix(n.Kind.String(), "a "), "an "), n.Text, at)
	}
	return b.String()
}

// Proves: how each plain scalar is read, so that no spelling silently changes its meaning.
func TestScalars(t *testing.T) {
	for text, want := range map[string]string{
		`1`: "integer(1)", `-7`: "integer(-7)", `0`: "integer(0)", `123456789012345678901234567890`: "integer(123456789012345678901234567890)",
		`1.5`: "number(1.5)", `-1e3`: "number(-1e3)", `true`: "boolean(true)", `False`: "boolean(False)",
		`yes`: "string(yes)", `no`: "string(no)", `on`: "string(on)", `off`: "string(off)", `NO`: "string(NO)",
		`2013-01-01`: "string(2013-01-01)", `2013-01-01 10:00:00`: "string(2013-01-01 10:00:00)", `2013-01-01T10:00:00Z`: "string(2013-01-01T10:00:00Z)",
		`null`: "nothing(null)", `~`: "nothing(~)", ``: "nothing()", `"1"`: "string(1)", `'true'`: "string(true)", `12:30:45`: "string(12:30:45)",
		`"a\nb"`: "string(a\nb)", `flights/*.csv`: "string(flights/*.csv)", `a <<`: "string(a <<)", `=`: "string(=)",
	} {
		n, problems := Documents{}.Parse([]byte("k: "+text+"\n"), project.Position{File: "f"})
		if len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
			continue
		}
		if got, _, _ := strings.Cut(show(n.Entries[0].Value), "@"); got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
}

// Proves: every feature that could give one text two meanings is refused, by name, at its place.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 010":                    "f:2:4: YAML reads 010 as a number that is not written in plain decimal digits",
		"a: 0x1F":                         "f:1:4: YAML reads 0x1F",
		"a: 0o17":                         "f:1:4: YAML reads 0o17",
		"a: 0b11":                         "f:1:4: YAML reads 0b11",
		"a: 1_000":                        "f:1:4: YAML reads 1_000",
		"a: +5":                           "f:1:4: YAML reads +5",
		"a: .5":                           "f:1:4: YAML reads .5",
		"a: .inf":                         "f:1:4: YAML reads .inf",
		"a: .NaN":                         "f:1:4: YAML reads .NaN",
		"a: &x 1":                         "f:1:4: anchors are not supported: &x",
		"a: &x 1\nb: *x":                  "f:1:4: anchors are not supported: &x; remove it, or put the text in quotes\nf:2:4: aliases are not supported",
		"a: 1\nb: [x, *y]":                `f:2:8: YAML reads *y as an alias or an anchor`,
		"a: 1\nb: [é, &]":                 `f:2:8: YAML reads & as an alias or an anchor`,
		"location: *.csv":                 `f:1:11: YAML reads *.csv as an alias or an anchor, and they are not supported; put it in quotes if it is text: "*.csv"`,
		"a: !foo b":                       "f:1:4: tags are not supported",
		"a: !!str 1":                      "f:1:4: tags are not supported",
		"a: ! 12":                         "f:1:4: tags are not supported",
		"é: [x, ! 12]":                    "f:1:8: tags are not supported",
		"a: ! [1]":                        "f:1:4: tags are not supported",
		"<<: {a: 1}":                      "f:1:1: merge keys are not supported",
		"a: 1\n---\nb: 2":                 "f:2:1: a second YAML document begins here",
		"a: 1\n---\n":                     "f:2:1: a second YAML document begins here",
		"a: b: c":                         "f:1:1: this is not YAML: mapping values are not allowed in this context",
		"a: 1\nb: 2\n  c: 3":              "f:3:1: this is not YAML: mapping values are not allowed in this context",
		"a: 1\nb: [1,\nc: 3\n":            "f:2:1: this is not YAML, here or in the block that begins here: did not find expected ',' or ']'",
		"- a\nb: c":                       "f:2:1: this is not YAML, here or in the block that begins here: did not find expected '-' indicator",
		"a: 1\n\tb: 2":                    "f:2:1: this is not YAML: found a tab character",
		"a: 1\nb: \"x":                    "f:2:1: this is not YAML: found unexpected end of stream",
		"a: @x":                           "f:1:1: this is not YAML: found character that cannot start any token",
		"a: 1\nb: \xff":                   "f:2:4: the text is not UTF-8",
		"\xff\xfea\x00:\x00":              "f:1:1: the text is not UTF-8",
		"a: x\x01":                        "f:1:5: the character U+0001 cannot stand here",
		"a: x\x00":                        "f:1:5: the character U+0000 cannot stand here",
		"\xef\xbb\xbfa: 1":                "f:1:1: the character U+FEFF cannot stand here",
		"a: 1\rb: 2":                      "f:1:5: the character U+000D cannot stand here",
		"a: x\u2028b: 2":                  "f:1:5: the character U+2028 cannot stand here",
		"[a, b]]":                         "f:1:1: this is not YAML, here or in the block that begins here: did not find expected <document start>",
		"a: 1\n... foo":                   "f:2:1: this is not YAML, here or in",
		"%YAML 3.0\n---\na: 1":            "f:1:1: this is not YAML: found incompatible YAML document",
		strings.Repeat("[", 51):           "f:1:1: this is not YAML",
		strings.Repeat("- ", 51):          "f:1:101: the YAML is nested more than 50 deep (limit yaml_depth = 50)",
		strings.Repeat("- 1\n", MaxNodes): fmt.Sprintf("f:%d:3: the YAML has more than 10000 values (limit yaml_nodes = 10000)", MaxNodes),
		strings.Repeat("#", MaxBytes+1):   "f:1:1: the YAML has 1048577 bytes (limit yaml_bytes = 1048576)",
	} {
		_, problems := Documents{}.Parse([]byte(text), project.Position{File: "f"})
		if len(problems) == 0 {
			t.Errorf("%.40q is accepted", text)
		} else if got := problems.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%.40q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// Proves: all problems of a well-formed text are reported at once.
func TestEveryProblem(t *testing.T) {
	_, problems := Documents{}.Parse([]byte("a: &x 1\nb: !t 2\nc: 010\n"), project.Position{File: "f"})
	if len(problems) != 3 {
		t.Fatalf("%d problems, want 3: %v", len(problems), problems)
	}
}

// Proves: positions are exact in nested and non-ASCII text, and repeated keys stay for the decoder to refuse.
func TestPositions(t *testing.T) {
	n, problems := Documents{}.Parse([]byte("é: [x, {y: 1}]\r\na:\r\n  - z\r\na: 2\r\n"), project.Position{File: "f", Line: 10, Column: 4})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	const want = "{string(é)@11:5=[string(x)@11:9 {string(y)@11:13=integer(1)@11:16 }@11:12 ]@11:8 string(a)@12:1=[string(z)@13:5 ]@13:3 string(a)@14:1=integer(2)@14:4 }@11:5"
	if got := show(n); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Proves: where a text stands in the file as it is, is known to the character, whatever its style; and that where YAML writes it otherwise,
// nothing is claimed.
func TestBody(t *testing.T) {
	for text, want := range map[string]string{
		"k: a > b":                     "11:8+0",
		"k: 'a > b'":                   "11:9+0",
		"é: \"a > b\"":                 "11:9+0",
		"k: \"a \\u003e b\"":           "none",
		"k: 'it''s'":                   "none",
		"k: \"a\n  b\"":                "none",
		"k: a\n  b":                    "none",
		"k: >\n  a\n  b\n":             "none",
		"k: |\n  a\n    b\n  c\n":      "12:3+2",
		"k: |-\n      a\n\n      b":    "12:7+6",
		"k: |2\n    a\n  b\n":          "12:3+2",
		"k: | # why\r\n  a\r\n  b\r\n": "12:3+2",
		"k: |\n\n\n  a\n":              "12:3+2",
		"k: |\n  a\nl: b\n":            "12:3+2",
		"k:\n  \n  a > b":              "13:3+0",
	} {
		n, problems := Documents{}.Parse([]byte(text), project.Position{File: "f", Line: 10, Column: 4})
		if len(problems) > 0 {
			t.Fatalf("%q: %v", text, problems)
		}
		v, got := n.Entries[0].Value, "none"
		if v.Body != (project.Position{}) {
			got = fmt.Sprintf("%d:%d+%d", v.Body.Line, v.Body.Column, v.Indent)
		}
		if got != want {
			t.Errorf("%q: the text %q begins at %s, want %s", text, v.Text, got, want)
		}
	}
}

// Proves: texts of the largest size that are nothing but structure end in an answer, not in a deep stack or an endless search.
func TestHostileSize(t *testing.T) {
	for _, unit := range []string{"[", "- ", "a:\n"} {
		if _, problems := (Documents{}).Parse([]byte(strings.Repeat(unit, MaxBytes/len(unit))), project.Position{File: "f"}); len(problems) == 0 {
			t.Errorf("1 MiB of %q is accepted", unit)
		}
	}
}

// FuzzParse proves that no text makes Parse panic, that a problem has a place inside the text, and that a tree keeps the bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a: 1", "- a\n- b", "{\"a\": [1, 2.5, null]}", "a: |\n  x\n y", "a: &x [*x]", "---\n---", "! a", "? [a]\n: b", "%TAG ! x", "\t", "a: 'b", "*.csv", "a:\r\n  b", "é: ü # ö", "... x", "!!binary x", "<<: *a"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, problems := Documents{}.Parse(text, project.Position{File: "f"})
		lines := bytes.Count(text, []byte("\n")) + 2
		for _, p := range problems {
			if p.At.Line < 1 || p.At.Line > lines || p.At.Column < 1 || p.Message == "" {
				t.Errorf("%q: problem %v has no place", text, p)
			}
			if strings.Contains(p.Message, "the YAML parser failed") {
				t.Errorf("%q: %v", text, p)
			}
		}
		if len(problems) == 0 {
			measure(t, n, 1)
			bodies(t, strings.Split(string(text), "\n"), n)
		}
	})
}

// bodies proves that each text stands where its node says, line by line.
func bodies(t *testing.T, lines []string, n project.Node) {
	if n.Body != (project.Position{}) {
		for i, line := range strings.Split(strings.TrimRight(n.Text, "\n"), "\n") {
			at, column := n.Body.Line+i, n.Body.Column
			if i > 0 {
				column = 1 + n.Indent
			}
			if line == "" {
				continue
			}
			if written := []rune(lines[at-1]); column-1 > len(written) || !strings.HasPrefix(string(written[column-1:]), line) {
				t.Errorf("%q: %q does not stand at %d:%d", lines, line, at, column)
			}
		}
	}
	for _, i := range n.Items {
		bodies(t, lines, i)
	}
	for _, e := range n.Entries {
		bodies(t, lines, e.Key)
		bodies(t, lines, e.Value)
	}
}

func measure(t *testing.T, n project.Node, depth int) {
	if depth > MaxDepth || n.At.Line < 1 || n.At.Column < 1 {
		t.Errorf("node %v at depth %d", n.At, depth)
	}
	for _, i := range n.Items {
		measure(t, i, depth+1)
	}
	for _, e := range n.Entries {
		measure(t, e.Key, depth+1)
		measure(t, e.Value, depth+1)
	}
}
