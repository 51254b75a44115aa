package lake

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"leapview/domain/project"
	"leapview/ports"
)

// noText is a byte that UTF-8 never has. It stands for what a file holds in the place of a character, so that it is found where it stands.
const noText = 0xFF

// windows1252 are the characters of the bytes from 0x80 to 0x9F; the five that have none are written as spaces.
var windows1252 = []rune("€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ")

// recoded reads a text file as UTF-8, behind its byte order mark.
func recoded(a ports.Artifact, source project.Source, in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 1<<16)
	head, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var order binary.ByteOrder
	switch {
	case len(head) < 2:
	case head[0] == 0xFF && head[1] == 0xFE:
		order = binary.LittleEndian
	case head[0] == 0xFE && head[1] == 0xFF:
		order = binary.BigEndian
	}
	bad := func(fix, message string) error {
		return project.Problems{{At: project.Position{File: a.Name, Line: 1, Column: 1}, Message: message, Fix: fix}}
	}
	switch source.Dialect.Encoding {
	case project.UTF16:
		if order == nil && len(head) > 0 {
			return nil, bad("deliver it with one, or correct the source's encoding", "the file does not begin with the byte order mark of utf-16")
		}
		_, _ = b.Discard(len(head))
		return recoding(b, 2, func(unit []byte) rune { return rune(order.Uint16(unit)) }), nil
	case project.Latin1:
		return recoding(b, 1, func(unit []byte) rune { return rune(unit[0]) }), nil
	case project.Windows1252:
		return recoding(b, 1, func(unit []byte) rune {
			c := rune(unit[0])
			if c >= 0x80 && c < 0xA0 {
				if c = windows1252[c-0x80]; c == ' ' {
					return none
				}
			}
			return c
		}), nil
	case project.UTF8, "":
		if order != nil {
			return nil, bad("declare encoding: utf-16, or deliver the file as UTF-8", "the file is no UTF-8 text: it begins with the byte order mark of utf-16")
		}
	}
	return skipBOM(b), nil
}

func skipBOM(r io.Reader) *bufio.Reader {
	b := bufio.NewReaderSize(r, 1<<16)
	if head, err := b.Peek(3); err == nil && bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}) {
		_, _ = b.Discard(3)
	}
	return b
}

// none is no character.
const none = rune(-1)

// recoding reads characters of this many bytes. The buffer around it asks for many at once, as the recoder needs it.
func recoding(in *bufio.Reader, unit int, one func([]byte) rune) io.Reader {
	return bufio.NewReaderSize(&recoder{in, unit, one}, 1<<16)
}

// recoder writes characters of one or two bytes as UTF-8.
type recoder struct {
	in   *bufio.Reader
	unit int
	// one is the character of a unit, or none; of two bytes, it may be half of one.
	one func(unit []byte) rune
}

// Read is io.Reader's, for at least as many bytes as a character has.
func (r *recoder) Read(p []byte) (int, error) {
	n := 0
	var unit [2]byte
	for n+utf8.UTFMax <= len(p) {
		// What is already read is given before waiting for more.
		if n > 0 && r.in.Buffered() < 2*r.unit {
			return n, nil
		}
		switch _, err := io.ReadFull(r.in, unit[:r.unit]); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			p[n] = noText
			return n + 1, nil
		case err != nil:
			return n, err
		}
		c := r.one(unit[:r.unit])
		if utf16.IsSurrogate(c) {
			pair, err := r.in.Peek(2)
			if err != nil && !errors.Is(err, io.EOF) {
				return n, err
			}
			c = none
			if len(pair) == 2 {
				if whole := utf16.DecodeRune(r.one(unit[:2]), r.one(pair)); whole != utf8.RuneError {
					c = whole
					_, _ = r.in.Discard(2)
				}
			}
		}
		if c == none {
			p[n] = noText
			n++
			continue
		}
		n += utf8.EncodeRune(p[n:], c)
	}
	return n, nil
}
