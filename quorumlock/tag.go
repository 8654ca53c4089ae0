package quorumlock

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/driver"
)

// A tag identifies a claim on all nodes. A fence cannot, because it may differ between
// nodes, and a token cannot, because it is secret. The driver puts the tag in front of
// the owner's client id in each claim, and removes it before it returns an owner. A tag
// also has the claim's ticket, which orders claims in a split vote. All clients of a
// quorum must use the same form of tags.
type tag struct {
	ticket uint64 // when the claim was first tried, on the client's clock, in microseconds, minus quorum.ticketLead
	digest string // digestSize bytes of a hash of the token
}

const (
	digestSize = 10
	tagSize    = 26 // 'q', 8 bytes of the ticket and the digest in base64, ':'
)

func newTag(token driver.Token, ticket uint64) tag {
	sum := sha256.Sum256(append([]byte("pawl quorum "), token[:]...))
	return tag{ticket, string(sum[:digestSize])}
}

// compare compares the tickets. Digests decide between equal tickets.
func (t tag) compare(u tag) int {
	return cmp.Or(cmp.Compare(t.ticket, u.ticket), cmp.Compare(t.digest, u.digest))
}

func (t tag) before(u tag) bool { return t.compare(u) < 0 }

// addTo returns the owner with the tag. It cuts a client id of more than 230 bytes,
// because ids are only for people.
func (t tag) addTo(o driver.Owner) driver.Owner {
	b := binary.BigEndian.AppendUint64(nil, t.ticket)
	o.Client = "q" + base64.RawURLEncoding.EncodeToString(append(b, t.digest...)) + ":" + o.Client
	for len(o.Client) > driver.MaxLabelSize {
		_, size := utf8.DecodeLastRuneInString(o.Client)
		o.Client = o.Client[:len(o.Client)-size]
	}
	return o
}

// untag returns the tag, and the owner without it. If the claim did not come from a
// quorum, it has no tag, and untag makes one from the owner.
func untag(o driver.Owner) (tag, driver.Owner) {
	if len(o.Client) >= tagSize && o.Client[0] == 'q' && o.Client[tagSize-1] == ':' {
		if b, err := base64.RawURLEncoding.DecodeString(o.Client[1 : tagSize-1]); err == nil {
			o.Client = strings.Clone(o.Client[tagSize:])
			return tag{binary.BigEndian.Uint64(b), string(b[8:])}, o
		}
	}
	sum := sha256.Sum256([]byte(o.String() + "\x00" + o.Client))
	return tag{digest: string(sum[:digestSize])}, o
}
