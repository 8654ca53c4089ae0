package engine

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

// EncodeSignal returns a signal as text: its kind, its token in hexadecimal digits, its
// fence and the number of its fences, separated by spaces.
func EncodeSignal(s driver.Signal) string {
	b := strconv.AppendInt(make([]byte, 0, 64), int64(s.Kind), 10)
	b = hex.AppendEncode(append(b, ' '), s.Token[:])
	b = strconv.AppendUint(append(b, ' '), s.Fence, 10)
	return string(strconv.AppendInt(append(b, ' '), int64(s.Fences), 10))
}

// DecodeSignal reads the text of EncodeSignal. It returns false for any other text.
func DecodeSignal(text string) (s driver.Signal, ok bool) {
	part := strings.Split(text, " ")
	if len(part) != 4 {
		return s, false
	}
	kind, err1 := strconv.ParseUint(part[0], 10, 8)
	token, err2 := hex.DecodeString(part[1])
	fence, err3 := strconv.ParseUint(part[2], 10, 64)
	fences, err4 := strconv.ParseUint(part[3], 10, 31)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || len(token) != len(s.Token) || fences > driver.MaxFences {
		return driver.Signal{}, false
	}
	return driver.Signal{Kind: driver.SignalKind(kind), Token: driver.Token(token), Fence: fence, Fences: int(fences)}, true
}
