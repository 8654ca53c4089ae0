package natslock_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/natslock"
)

func FuzzKeys(f *testing.F) {
	f.Add("orders/eu.42", "orders/")
	f.Add("*.>\x00 \xff=2E", "*")
	f.Add(strings.Repeat("\xff", 255), "")
	f.Fuzz(func(t *testing.T, name, other string) {
		key := natslock.KeyOf(name)
		if got, ok := natslock.NameOf(key); !ok || got != name {
			t.Fatalf("%q has the key %q, and NameOf returns %q", name, key, got)
		}
		if (natslock.KeyOf(other) == key) != (other == name) {
			t.Fatalf("%q and %q: equal keys must mean equal names", name, other)
		}
		if strings.HasPrefix(name, other) && !strings.HasPrefix(key, natslock.KeyOf(other)) {
			t.Fatalf("the key of %q does not begin with the key of %q", name, other)
		}
		if strings.ContainsAny(key, "*>. \t\r\n\x00") {
			t.Fatalf("the key %q is more than one token", key)
		}
		if got, ok := natslock.NameOf(name); ok && natslock.KeyOf(got) != name {
			t.Fatalf("NameOf takes %q for the key of %q", name, got)
		}
	})
}
