package contract

import (
	"fmt"
	"strings"
	"testing"

	"leapview/adapters/mem"
	"leapview/adapters/yaml"
	"leapview/domain/project"
	"leapview/ports"
)

// TestDocumentsMem proves the contract of ports.Documents for the twin.
func TestDocumentsMem(t *testing.T) { documentsSuite(t, mem.Documents{}) }

// TestDocumentsYAML proves the contract of ports.Documents for the real parser.
func TestDocumentsYAML(t *testing.T) { documentsSuite(t, yaml.Documents{}) }

// nodeText writes a tree in one line, with the position of each node.
func nodeText(n project.Node) string {
	at := fmt.Sprintf("@%d:%d", n.At.Line, n.At.Column)
	var parts []string
	switch n.Kind {
	case project.MappingNode:
		for _, e := range n.Entries {
			parts = append(parts, nodeText(e.Key)+"="+nodeText(e.Value))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	case project.ListNode:
		for _, i := range n.Items {
			parts = append(parts, nodeText(i))
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	case project.NullNode, project.StringNode, project.IntegerNode, project.FloatNode, project.BooleanNode:
	}
	return fmt.Sprintf("%s(%s)%s", n.Kind, n.Text, at)
}

// documentsSuite is the contract of ports.Documents, over JSON, which is YAML too and all that the twin reads.
func documentsSuite(t *testing.T, d ports.Documents) {
	t.Run("values have their kinds, their texts and their places", func(t *testing.T) {
		for text, want := range map[string]string{
			"":           "{}@1:1",
			" \n\t\n":    "{}@1:1",
			"{}":         "{}@1:1",
			"[]":         "[]@1:1",
			`"a"`:        "a string(a)@1:1",
			"  7":        "an integer(7)@1:3",
			"{\"a\": 1}": "{a string(a)@1:2=an integer(1)@1:7}@1:1",
			"{\"é\": [1, -2.5, 1e3, true,\n  false, null, \"\", \"1\"],\n \"b\": {\"c\": \"x \\\"y\\\"\\n\\u00e9\"}}": "{a string(é)@1:2=[an integer(1)@1:8 a number(-2.5)@1:11 a number(1e3)@1:17 a boolean(true)@1:22 a boolean(false)@2:3 nothing(null)@2:10 a string()@2:16 a string(1)@2:20]@1:7 a string(b)@3:2={a string(c)@3:8=a string(x \"y\"\né)@3:13}@3:7}@1:1",
			`{"a": 123456789012345678901234567890}`: "{a string(a)@1:2=an integer(123456789012345678901234567890)@1:7}@1:1",
		} {
			n, problems := d.Parse([]byte(text), project.Position{File: "f"})
			if len(problems) > 0 {
				t.Errorf("%q: %v", text, problems)
			} else if got := nodeText(n); got != want || n.At.File != "f" {
				t.Errorf("%q in %s is\n     %s\nwant %s", text, n.At.File, got, want)
			}
		}
	})
	t.Run("repeated keys stay for the decoder", func(t *testing.T) {
		n, problems := d.Parse([]byte(`{"a": 1, "a": 2}`), project.Position{File: "f"})
		if got, want := nodeText(n), "{a string(a)@1:2=an integer(1)@1:7 a string(a)@1:10=an integer(2)@1:15}@1:1"; got != want || len(problems) > 0 {
			t.Errorf("got %s, %v, want %s", got, problems, want)
		}
	})
	t.Run("positions are counted from where the text stands in its file", func(t *testing.T) {
		n, problems := d.Parse([]byte("[1,\n 2]"), project.Position{File: "f", Line: 10, Column: 4})
		if got, want := nodeText(n), "[an integer(1)@11:6 an integer(2)@12:2]@11:5"; got != want || len(problems) > 0 {
			t.Errorf("got %s, %v, want %s", got, problems, want)
		}
		n, _ = d.Parse(nil, project.Position{File: "f", Line: 10, Column: 4})
		if got, want := nodeText(n), "{}@11:5"; got != want {
			t.Errorf("empty text: got %s, want %s", got, want)
		}
	})
	t.Run("what is not one document is a problem with a place", func(t *testing.T) {
		deep, wide := strings.Repeat("[", 51)+strings.Repeat("]", 51), "["+strings.Repeat("1,", 10_000)+"1]"
		for text, want := range map[string]string{
			"[1, 2":                          "",
			`{"a": `:                         "",
			`{"a": "b`:                       "",
			"[1]]":                           "",
			"[1\xff]":                        "not UTF-8",
			deep:                             "limit yaml_depth = 50",
			wide:                             "limit yaml_nodes = 10000",
			strings.Repeat(" ", 1<<20) + "1": "limit yaml_bytes = 1048576",
		} {
			_, problems := d.Parse([]byte(text), project.Position{File: "f"})
			if len(problems) == 0 {
				t.Errorf("%.40q is accepted", text)
			} else if p := problems[0]; p.At.File != "f" || p.At.Line != 1 || p.At.Column < 1 || p.Message == "" || !strings.Contains(p.Message, want) {
				t.Errorf("%.40q gives %v, want %q", text, p, want)
			}
		}
	})
}
