package quorumlock

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/driver"
)

// A tag identifies a claim on all nodes, because fences may differ and tokens are secret.
// The driver puts it in front of the owner's client id in each claim, and removes it
// before it returns an owner. A tag also has the claim's ticket, which orders claims in a
// split vote.
type tag struct {
	ticket uint64   // when the claim was first made, in microseconds on its client's clock
	digest [10]byte // a hash of the token
}

const tagSize = 26 // 'q', 18 bytes in base64, ':'

func newTag(token driver.Token, ticket uint64) tag {
	t := tag{ticket: ticket}
	sum := sha256.Sum256(append([]byte("pawl quorum "), token[:]...))
	copy(t.digest[:], sum[:])
	return t
}

// before reports whether t has the earlier ticket. Digests decide between equal tickets.
func (t tag) before(u tag) bool {
	if t.ticket != u.ticket {
		return t.ticket < u.ticket
	}
	return string(t.digest[:]) < string(u.digest[:])
}

// on returns the owner with the tag. It cuts a client id of more than 230 bytes, because
// ids are only for people.
func (t tag) on(o driver.Owner) driver.Owner {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 18), t.ticket)
	s := "q" + base64.RawURLEncoding.EncodeToString(append(b, t.digest[:]...)) + ":" + o.Client
	for len(s) > driver.MaxLabel {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	o.Client = s
	return o
}

// untag returns the tag, and the owner without it. If the claim did not come from a
// quorum, it has no tag, and untag makes one from the owner.
func untag(o driver.Owner) (tag, driver.Owner) {
	var t tag
	if len(o.Client) >= tagSize && o.Client[0] == 'q' && o.Client[tagSize-1] == ':' {
		if b, err := base64.RawURLEncoding.DecodeString(o.Client[1 : tagSize-1]); err == nil {
			t.ticket = binary.BigEndian.Uint64(b)
			copy(t.digest[:], b[8:])
			o.Client = strings.Clone(o.Client[tagSize:])
			return t, o
		}
	}
	sum := sha256.Sum256([]byte(o.String() + "\x00" + o.Client))
	copy(t.digest[:], sum[:])
	return t, o
}
