package driver

import (
	"crypto/rand"
	"fmt"
	"io"
)

// Token is the secret of one claim: 128 random bits. Anyone who knows it can release the
// lease. So every verb prints it as "[token]", and so does every marshaler.
type Token [16]byte

// NewToken draws a token from crypto/rand. Without randomness crypto/rand ends the
// program, which is better than a token that can be guessed.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:])
	return t
}

// IsZero reports whether t is the zero token, which no claim has.
func (t Token) IsZero() bool { return t == Token{} }

// Format implements fmt.Formatter: no verb prints the secret.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText implements encoding.TextMarshaler, for JSON and logs.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

const redacted = "[token]"
