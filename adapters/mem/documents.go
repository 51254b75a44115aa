package mem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"leapview/domain/project"
)

// Documents parses JSON, which is the part of YAML that it supports, with the same bounds as the real adapter.
type Documents struct{}

const (
	maxDocumentBytes = 1 << 20
	maxDocumentDepth = 50
	maxDocumentNodes = 10_000
)

// Parse turns JSON text into a tree of nodes.
func (Documents) Parse(text []byte, at project.Position) (project.Node, project.Problems) {
	p := documentParser{text: text, at: at, tokens: json.NewDecoder(bytes.NewReader(text))}
	p.tokens.UseNumber()
	n, problem := p.document()
	if problem != nil {
		return project.Node{}, project.Problems{*problem}
	}
	return n, nil
}

// documentParser holds one parse.
type documentParser struct {
	text   []byte
	at     project.Position
	tokens *json.Decoder
	nodes  int
}

func (p *documentParser) problem(at project.Position, format string, args ...any) *project.Problem {
	return &project.Problem{At: at, Message: fmt.Sprintf(format, args...), Fix: "this twin reads JSON only"}
}

// here is the position of the next token.
func (p *documentParser) here() project.Position {
	offset := int(p.tokens.InputOffset())
	for offset < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[offset]) >= 0 {
		offset++
	}
	before := p.text[:offset]
	pos := project.Position{File: p.at.File, Line: p.at.Line + 1 + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])}
	if pos.Line == p.at.Line+1 {
		pos.Column += p.at.Column
	}
	return pos
}

func (p *documentParser) document() (project.Node, *project.Problem) {
	start := project.Position{File: p.at.File, Line: p.at.Line + 1, Column: p.at.Column + 1}
	if len(p.text) > maxDocumentBytes {
		return project.Node{}, p.problem(start, "the YAML has %d bytes (limit yaml_bytes = %d)", len(p.text), maxDocumentBytes)
	}
	// The library would replace what is not UTF-8 in silence.
	if !utf8.Valid(p.text) {
		return project.Node{}, p.problem(start, "the text is not UTF-8")
	}
	if len(bytes.TrimSpace(p.text)) == 0 {
		return project.Node{Kind: project.MappingNode, At: start}, nil
	}
	n, problem := p.value(1)
	if problem != nil {
		return project.Node{}, problem
	}
	at := p.here()
	if _, err := p.tokens.Token(); !errors.Is(err, io.EOF) {
		return project.Node{}, p.problem(at, "more follows the end of the document")
	}
	return n, nil
}

// value reads the next value.
func (p *documentParser) value(depth int) (project.Node, *project.Problem) {
	n := project.Node{At: p.here()}
	if p.nodes++; p.nodes > maxDocumentNodes {
		return n, p.problem(n.At, "the YAML has more than %d values (limit yaml_nodes = %d)", maxDocumentNodes, maxDocumentNodes)
	}
	if depth > maxDocumentDepth {
		return n, p.problem(n.At, "the YAML is nested more than %d deep (limit yaml_depth = %d)", maxDocumentDepth, maxDocumentDepth)
	}
	token, err := p.tokens.Token()
	if err != nil {
		return n, p.problem(n.At, "this is not JSON: %v", err)
	}
	switch token := token.(type) {
	case nil:
		n.Kind, n.Text = project.NullNode, "null"
	case string:
		n.Kind, n.Text = project.StringNode, token
	case bool:
		n.Kind, n.Text = project.BooleanNode, fmt.Sprint(token)
	case json.Number:
		n.Kind, n.Text = project.IntegerNode, token.String()
		if strings.ContainsAny(n.Text, ".eE") {
			n.Kind = project.FloatNode
		}
	case json.Delim:
		n.Kind = project.ListNode
		if token == '{' {
			n.Kind = project.MappingNode
		}
		for p.tokens.More() {
			first, problem := p.value(depth + 1)
			if problem != nil {
				return n, problem
			}
			if n.Kind == project.ListNode {
				n.Items = append(n.Items, first)
				continue
			}
			second, problem := p.value(depth + 1)
			if problem != nil {
				return n, problem
			}
			n.Entries = append(n.Entries, project.Entry{Key: first, Value: second})
		}
		at := p.here()
		if _, err := p.tokens.Token(); err != nil {
			return n, p.problem(at, "this is not JSON: %v", err)
		}
	}
	return n, nil
}
