package redisscript

import (
	"strconv"
	"strings"
	"sync"
)

// The keys of a name are PREFIX{NAME} and a letter. Redis Cluster hashes the text between
// the first { and the next }, so all keys of one name are in one slot if the name has no
// braces. So braces in names are escaped, and the % as well, so that no two names get the
// same keys. All versions use the same keys and channels.
var escaper = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")
var unescaper = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}")

// stateKey returns the key of the state of a name, S.
func stateKey(prefix, name string) string { return prefix + "{" + escaper.Replace(name) + "}s" }

// keyLetters has the last letters of the keys of a name, in the order of the scripts.
const keyLetters = "sdle"

// watchChannel returns the channel for the changes of a name. It is in the slot of the
// name; lua/lib/entry.lua derives the same channel from the key.
func watchChannel(prefix, name string) string {
	k := stateKey(prefix, name)
	return k[:len(k)-1] + "w"
}

// nameOf returns the name whose state is stored at key, or false if key is not the key of
// a state.
func nameOf(prefix, key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, prefix+"{")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, "}s")
	return unescaper.Replace(rest), ok
}

var globEscaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)

// statePattern returns a pattern for the state keys of all names that begin with start.
func statePattern(prefix, start string) string {
	return globEscaper.Replace(prefix) + "{" + globEscaper.Replace(escaper.Replace(start)) + "*}s"
}

const slotCount = 16384

// slot returns the Redis Cluster slot of the keys of a name.
func slot(name string) uint16 { return crc16(escaper.Replace(name)) % slotCount }

// crc16 returns the CRC16 of the cluster specification (XMODEM).
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// slotTags returns a hash tag for each slot. A channel with the tag of a name's slot is
// in the same slot as the name, and there are no more channels than slots.
var slotTags = sync.OnceValue(func() *[slotCount]string {
	all := new([slotCount]string)
	for i, found := int64(0), 0; found < slotCount; i++ {
		tag := strconv.FormatInt(i, 36)
		if at := &all[crc16(tag)%slotCount]; *at == "" {
			*at = tag
			found++
		}
	}
	return all
})
