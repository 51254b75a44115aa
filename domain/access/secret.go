package access

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"leapview/domain/fail"
)

// A key's text is the prefix, the key's id, an underscore, 256 random bits in base 32, and the CRC-32 of all that in hexadecimal. The
// checksum tells a mistyped or cut key from one that the node does not know; it protects nothing.
const (
	secretPrefix = "lvk_"
	idLength     = 8
	randomLength = 52
	sumLength    = 8
	secretLength = len(secretPrefix) + idLength + 1 + randomLength + sumLength
)

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// KeyID names a key. It is no secret.
type KeyID string

// ParseKeyID refuses what cannot name a key.
func ParseKeyID(s string) (KeyID, error) {
	if len(s) != idLength || strings.Trim(s, lettersAndDigits) != "" {
		return "", fail.New(fail.Invalid, "bad_key_id", "this cannot name a key: an id has %d lower-case letters and digits", idLength).
			WithFix("leapview key list shows the ids")
	}
	return KeyID(s), nil
}

// NewKeyID takes an id out of a random one, as long as that has at least as many lower-case letters and digits.
func NewKeyID(random string) KeyID { return KeyID(random[len(random)-idLength:]) }

// Secret is a key's text. However it is printed, logged or encoded it shows its prefix only.
type Secret struct{ text string }

// NewSecret makes the text of the key with this id out of 256 random bits.
func NewSecret(id KeyID, random [32]byte) Secret {
	text := secretPrefix + string(id) + "_" + base32Lower.EncodeToString(random[:])
	return Secret{text + sum(text)}
}

// ParseSecret refuses what cannot be a key's text, without repeating it.
func ParseSecret(text string) (Secret, error) {
	if !strings.HasPrefix(text, secretPrefix) {
		return Secret{}, fail.New(fail.Denied, "key_malformed", "what was given is no key: keys begin with %s", secretPrefix).
			WithFix("leapview key create makes one")
	}
	body := len(text) - sumLength
	if len(text) != secretLength || sum(text[:body]) != text[body:] {
		return Secret{}, fail.New(fail.Denied, "key_mistyped", "the key was cut or mistyped: its checksum does not fit").
			WithFix("copy it again, whole: %d characters", secretLength)
	}
	return Secret{text}, nil
}

// sum is the checksum of a key's text before it.
func sum(text string) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

// Reveal is the key's text, for the one who is to keep it.
func (s Secret) Reveal() string { return s.text }

// Digest is what is kept of the key.
func (s Secret) Digest() Digest { return sha256.Sum256([]byte(s.text)) }

const redacted = secretPrefix + "…"

// Format makes every verb print the prefix only.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText makes every encoder write the prefix only.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Digest is the SHA-256 of a key's text. Looking a key up by it takes no longer for one that is nearly right.
type Digest [sha256.Size]byte

// ParseDigest refuses whatever is not 64 lower-case hexadecimal digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) || strings.Trim(s, "0123456789abcdef") != "" {
		return d, fail.New(fail.Invalid, "bad_digest", "the digest of a key is not 64 hexadecimal digits")
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err
}

// String is the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }
