package natslock

import "strings"

// The key of a name is the name, except that = and two digits replace each byte that is
// no letter, digit, dash, underscore or slash. So people can read keys, the key of a
// prefix begins the keys of its names, and no two names have the same key.

const digits = "0123456789ABCDEF"

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func keyOf(name string) string {
	var b strings.Builder
	b.Grow(len(name) + 8)
	for i := range len(name) {
		if c := name[i]; alphanumeric(c) || c == '-' || c == '_' || c == '/' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// nameOf returns the name of a key. The key of another program may have none.
func nameOf(key string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] != '=' {
			b.WriteByte(key[i])
			continue
		}
		if i+2 >= len(key) {
			return "", false
		}
		high, low := strings.IndexByte(digits, key[i+1]), strings.IndexByte(digits, key[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	name = b.String()
	return name, keyOf(name) == key
}
