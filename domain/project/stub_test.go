package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// jsonDocuments parses JSON, which is enough YAML for tests of this package and keeps positions.
type jsonDocuments struct{}

func (jsonDocuments) Parse(text []byte, at Position) (Node, Problems) {
	p := &jsonParser{text: text, at: at, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	if len(bytes.TrimSpace(text)) == 0 {
		return Node{Kind: MappingNode, At: p.place(0)}, nil
	}
	n, err := p.node()
	if err == nil {
		if _, err = p.dec.Token(); errors.Is(err, io.EOF) {
			return n, nil
		}
	}
	return Node{}, Problems{{At: p.place(int(p.dec.InputOffset())), Message: "this is no JSON"}}
}

type jsonParser struct {
	text []byte
	at   Position
	dec  *json.Decoder
}

func (p *jsonParser) place(offset int) Position {
	from := Position{File: p.at.File, Line: p.at.Line + 1, Column: p.at.Column + 1}
	return Statement{SQL: string(p.text), At: from}.PositionOf(offset)
}

func (p *jsonParser) node() (Node, error) {
	start := int(p.dec.InputOffset())
	for start < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[start]) >= 0 {
		start++
	}
	n := Node{At: p.place(start)}
	token, err := p.dec.Token()
	if err != nil {
		return n, err
	}
	switch v := token.(type) {
	case nil:
		n.Kind = NullNode
	case string:
		n.Kind, n.Text = StringNode, v
	case bool:
		n.Kind, n.Text = BooleanNode, map[bool]string{true: "true", false: "false"}[v]
	case json.Number:
		n.Kind, n.Text = IntegerNode, v.String()
		if strings.ContainsAny(n.Text, ".eE") {
			n.Kind = FloatNode
		}
	case json.Delim:
		n.Kind = ListNode
		if v == '{' {
			n.Kind = MappingNode
		}
		for p.dec.More() {
			first, err := p.node()
			if err != nil {
				return n, err
			}
			if n.Kind == ListNode {
				n.Items = append(n.Items, first)
				continue
			}
			second, err := p.node()
			if err != nil {
				return n, err
			}
			n.Entries = append(n.Entries, Entry{first, second})
		}
		_, err = p.dec.Token()
	}
	return n, err
}
