// Package yaml owns the reading of YAML text into nodes with positions.
//
// Invariants: the text is data and nothing else: no anchors, aliases, tags or merge keys, one document, bounded in size, depth
// and number of nodes; a number is written as JSON writes it; no input makes it panic. It does not know which
// keys a project file has, and leaves repeated keys to the decoder that does.
package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"leapview/domain/project"
)

// The bounds of one text.
const (
	MaxBytes = 1 << 20
	MaxDepth = 50
	MaxNodes = 10_000
)

// Documents parses YAML.
type Documents struct{}

// Parse turns text into a tree of nodes. The text's first line is line 1 plus at's line, and its first column is 1 plus at's
// column; at's column counts in the first line only.
func (Documents) Parse(text []byte, at project.Position) (project.Node, project.Problems) {
	p := parser{text: text, at: at, line: 1, column: 1}
	n := p.parse()
	if len(p.problems) > 0 {
		return project.Node{}, p.problems
	}
	return n, nil
}

// parser holds one parse.
type parser struct {
	text     []byte
	at       project.Position
	nodes    int
	stopped  bool
	problems project.Problems
	// offset, line and column are how far tagged has walked; the last two count from 1.
	offset, line, column int
}

// place is the file's position of a line and column of the text, both from 1.
func (p *parser) place(line, column int) project.Position {
	if line == 1 {
		column += p.at.Column
	}
	return project.Position{File: p.at.File, Line: p.at.Line + line, Column: column}
}

// placeOf is the file's position of a byte of the text.
func (p *parser) placeOf(offset int) project.Position {
	before := p.text[:offset]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return p.place(bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[lineStart:])+1)
}

func (p *parser) report(at project.Position, fix, format string, args ...any) {
	p.problems = append(p.problems, project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// stop reports a problem after which looking further is pointless.
func (p *parser) stop(at project.Position, fix, format string, args ...any) {
	p.stopped = true
	p.report(at, fix, format, args...)
}

func (p *parser) parse() (out project.Node) {
	nothing := project.Node{Kind: project.MappingNode, At: p.place(1, 1)}
	if len(p.text) > MaxBytes {
		p.stop(p.place(1, 1), "split the file", "the YAML has %d bytes (limit yaml_bytes = %d)", len(p.text), MaxBytes)
		return nothing
	}
	// The library refuses a line that holds nothing but a tab.
	if !p.readable() || len(bytes.TrimSpace(p.text)) == 0 {
		return nothing
	}
	// The library promises errors and not panics, but it is large and its input is hostile here.
	defer func() {
		if r := recover(); r != nil {
			p.stop(p.place(1, 1), "write it in a simpler way", "the YAML parser failed on this text: %v", r)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(p.text))
	var document yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nothing
	case err != nil:
		p.syntax(err)
		return nothing
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case err == nil:
		p.stop(p.place(second.Line, second.Column), "keep one document, without --- between", "a second YAML document begins here")
		return nothing
	case !errors.Is(err, io.EOF):
		p.syntax(err)
		return nothing
	}
	body := document.Content[0]
	if body.Kind == yaml.ScalarNode && body.Value == "" && body.Style == 0 && body.Anchor == "" {
		return nothing
	}
	return p.node(body, 1)
}

// readable refuses what is no text in UTF-8, where the library would take other encodings and name no line, and the characters
// that only YAML takes for the end of a line: positions would differ from what an editor shows.
func (p *parser) readable() bool {
	for i := 0; i < len(p.text); {
		r, size := utf8.DecodeRune(p.text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			p.stop(p.placeOf(i), "save the file as UTF-8", "the text is not UTF-8")
			return false
		case r == '\r' && !bytes.HasPrefix(p.text[i+size:], []byte("\n")),
			r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', r == '\ufeff', r == '\ufffe', r == '\uffff':
			p.stop(p.placeOf(i), "remove it, or write it as an escape in double quotes", "the character %U cannot stand here", r)
			return false
		}
		i += size
	}
	return true
}

var (
	lineForm = regexp.MustCompile(`^line ([0-9]+): `)
	// parserForm are the errors of the library's parser; all others come from its scanner.
	parserForm = regexp.MustCompile(`^did not find expected (<|node content$|'-' indicator$|key$|',' or )`)
	// indicatorForm finds a value that begins like an alias or an anchor.
	indicatorForm = regexp.MustCompile(`(?:^|[\s,:\[{-])([*&][^\s,\]}]*)`)
)

// syntax turns the library's error into a problem.
func (p *parser) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if name, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "' referenced")
		p.indicator("*"+name, max(0, bytes.Index(p.text, []byte("*"+name))))
		return
	}
	// line counts from 0, as the library does, which names none that is 0. It adds 1 for its scanner's errors and not for its
	// parser's, and those often name the line where the surrounding block begins rather than the one where it breaks.
	line, fromParser := 0, parserForm.MatchString(lineForm.ReplaceAllString(message, ""))
	if m := lineForm.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		// The form holds digits only, and a line that does not fit an int is beyond the text anyway.
		line, _ = strconv.Atoi(m[1])
		if !fromParser {
			line--
		}
	}
	lines := bytes.SplitAfter(p.text, []byte("\n"))
	line = min(max(line, 0), len(lines)-1)
	if message == "did not find expected alphabetic or numeric character" {
		if m := indicatorForm.FindSubmatchIndex(lines[line]); m != nil {
			p.indicator(string(lines[line][m[2]:m[3]]), len(bytes.Join(lines[:line], nil))+m[2])
			return
		}
	}
	where := "this is not YAML: "
	if fromParser {
		where = "this is not YAML, here or in the block that begins here: "
	}
	p.stop(p.place(line+1, 1), "check the indentation, the quotes and the brackets", "%s%s", where, message)
}

// indicator reports text at the offset that YAML takes for an alias or an anchor, most often a pattern that begins with a star.
func (p *parser) indicator(text string, offset int) {
	p.stop(p.placeOf(offset), fmt.Sprintf("put it in quotes if it is text: %q", text), "YAML reads %s as an alias or an anchor, and they are not supported", text)
}

// plainInteger and plainNumber are JSON's numbers. Everything else that YAML reads as a number has a spelling with a second
// meaning somewhere, such as 010.
var (
	plainInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	plainNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// node turns a node of the library into ours.
func (p *parser) node(n *yaml.Node, depth int) project.Node {
	out := project.Node{At: p.place(n.Line, n.Column)}
	p.nodes++
	switch {
	case p.stopped:
		return out
	case depth > MaxDepth:
		p.stop(out.At, "nest less", "the YAML is nested more than %d deep (limit yaml_depth = %d)", MaxDepth, MaxDepth)
		return out
	case p.nodes > MaxNodes:
		p.stop(out.At, "split the file", "the YAML has more than %d values (limit yaml_nodes = %d)", MaxNodes, MaxNodes)
		return out
	case n.Kind == yaml.AliasNode:
		p.report(out.At, "write the value itself, or put *"+n.Value+" in quotes if it is text", "aliases are not supported")
		return out
	case n.Anchor != "":
		p.report(out.At, "remove it, or put the text in quotes", "anchors are not supported: &%s", n.Anchor)
		return out
	case p.tagged(n):
		p.report(out.At, "remove it, or put the text in quotes", "tags are not supported")
		return out
	}
	switch n.Kind {
	case yaml.MappingNode:
		out.Kind = project.MappingNode
		for i := 0; i+1 < len(n.Content) && !p.stopped; i += 2 {
			out.Entries = append(out.Entries, project.Entry{Key: p.node(n.Content[i], depth+1), Value: p.node(n.Content[i+1], depth+1)})
		}
	case yaml.SequenceNode:
		out.Kind = project.ListNode
		for i := 0; i < len(n.Content) && !p.stopped; i++ {
			out.Items = append(out.Items, p.node(n.Content[i], depth+1))
		}
	case yaml.ScalarNode:
		out.Text = n.Value
		out.Kind = p.scalar(n, out.At)
		out.Body, out.Indent = p.body(n)
	case yaml.DocumentNode, yaml.AliasNode:
		p.stop(out.At, "write it in a simpler way", "the YAML parser gave a value that cannot be here")
	}
	return out
}

// tagged tells whether an explicit tag stands before the node. The library forgets the tag "!", so the text is asked. Nodes come
// in the order of the text, so the text is walked once.
func (p *parser) tagged(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle != 0 {
		return true
	}
	for p.offset < len(p.text) && (p.line < n.Line || p.line == n.Line && p.column < n.Column) {
		r, size := utf8.DecodeRune(p.text[p.offset:])
		if p.column++; r == '\n' {
			p.line, p.column = p.line+1, 1
		}
		p.offset += size
	}
	return p.offset < len(p.text) && p.line == n.Line && p.column == n.Column && p.text[p.offset] == '!'
}

// body is where the node's text begins in the file and how far its further lines are indented there, when it stands there as it is. The
// text was walked up to the node.
func (p *parser) body(n *yaml.Node) (at project.Position, indent int) {
	if p.line != n.Line || p.column != n.Column {
		return at, 0
	}
	if n.Style&yaml.LiteralStyle != 0 {
		_, rest, _ := bytes.Cut(p.text[p.offset:], []byte("\n"))
		lines := strings.Split(strings.TrimRight(n.Value, "\n"), "\n")
		for _, line := range lines {
			var written []byte
			written, rest, _ = bytes.Cut(rest, []byte("\n"))
			before, ok := strings.CutSuffix(strings.TrimSuffix(string(written), "\r"), line)
			switch {
			case line == "":
			case !ok || strings.Trim(before, " ") != "" || indent > 0 && indent != len(before):
				return project.Position{}, 0
			default:
				indent = len(before)
			}
		}
		return p.place(n.Line+1, 1+indent), indent
	}
	quote := 0
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		quote = 1
	}
	if strings.Contains(n.Value, "\n") || !bytes.HasPrefix(p.text[p.offset+quote:], []byte(n.Value)) {
		return at, 0
	}
	return p.place(n.Line, n.Column+quote), 0
}

// scalar is the kind of a scalar.
func (p *parser) scalar(n *yaml.Node, at project.Position) project.NodeKind {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return project.StringNode
	}
	switch n.Tag {
	case "!!null":
		return project.NullNode
	case "!!bool":
		return project.BooleanNode
	case "!!int", "!!float":
		// An integer of more than 64 bits is a float to the library; how long an integer may be is the decoder's matter.
		if plainInteger.MatchString(n.Value) {
			return project.IntegerNode
		}
		if n.Tag == "!!float" && plainNumber.MatchString(n.Value) {
			return project.FloatNode
		}
		p.report(at, fmt.Sprintf("write it in plain decimal digits, or put it in quotes if it is text: %q", n.Value), "YAML reads %s as a number that is not written in plain decimal digits", n.Value)
		return project.StringNode
	case "!!merge":
		p.report(at, "write the keys themselves", "merge keys are not supported")
		return project.StringNode
	}
	// Dates stay the text that was written.
	return project.StringNode
}
