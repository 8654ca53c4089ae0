package driver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestTokensAreDrawnAtRandom(t *testing.T) {
	seen := map[driver.Token]bool{}
	for range 1000 {
		token := driver.NewToken()
		if token.IsZero() || seen[token] {
			t.Fatal("a token is zero, or was drawn twice")
		}
		seen[token] = true
	}
	if !(driver.Token{}).IsZero() {
		t.Error("the zero token is not zero")
	}
}

// secret is a token whose bytes hasSecret recognizes in every notation.
var secret = driver.Token([]byte("SECRETSECRETSECR"))

// hasSecret reports whether s has a part of the secret: as text, hex, numbers, or base64.
func hasSecret(s string) bool {
	decimals := strings.Trim(fmt.Sprint(secret[:3]), "[]") // 83 69 67
	for _, form := range []string{
		"SECR", hex.EncodeToString(secret[:3]), strings.ToUpper(hex.EncodeToString(secret[:3])),
		decimals, strings.ReplaceAll(decimals, " ", ","), strings.ReplaceAll(decimals, " ", ", "), "0x53, 0x45", "0x53 0x45",
		"123 105", "1010011 1000101", "U+0053 U+0045", base64.StdEncoding.EncodeToString(secret[:3]),
	} {
		if strings.Contains(s, form) {
			return true
		}
	}
	return false
}

// tokenValues are values of this package that contain a token, and values that a program
// may make of them.
func tokenValues() map[string]any {
	claim := driver.Claim{Name: "job", Token: secret, Weight: 1, Limit: 1}
	lease := driver.LeaseRef{Name: "job", Token: secret}
	signal := driver.Signal{Kind: driver.SignalLost, Token: secret}
	return map[string]any{
		"token": secret, "pointer": &secret, "list": []driver.Token{secret}, "array": [1]driver.Token{secret},
		"key": map[driver.Token]int{secret: 1}, "value": map[string]driver.Token{"a": secret},
		"claim": claim, "claim pointer": &claim, "claims": []driver.Claim{claim},
		"lease": lease, "leases": []driver.LeaseRef{lease}, "signal": signal, "signals": []driver.Signal{signal},
		"deep": struct{ A []map[string]driver.LeaseRef }{[]map[string]driver.LeaseRef{{"x": lease}}},
		"any":  struct{ A any }{secret},
	}
}

func TestNoVerbPrintsAToken(t *testing.T) {
	for name, v := range tokenValues() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#x", "no verb", "%d", "%o", "%b", "%c", "%U", "%t", "%e", "%20v", "%-8.3s", "%!"} {
			if s := fmt.Sprintf(verb, v); hasSecret(s) {
				t.Errorf("%s of %s prints %q", verb, name, s)
			}
		}
		for how, s := range map[string]string{"Sprint": fmt.Sprint(v), "Sprintln": fmt.Sprintln(v)} {
			if hasSecret(s) {
				t.Errorf("%s of %s prints %q", how, name, s)
			}
		}
	}
	if s := fmt.Sprintf("%v %x %d", secret, secret, &secret); s != "[token] [token] [token]" {
		t.Errorf("a token prints as %q", s)
	}
}

func TestNoEncoderWritesAToken(t *testing.T) {
	for name, v := range tokenValues() {
		if b, err := json.Marshal(v); err != nil || hasSecret(string(b)) {
			t.Errorf("JSON of %s is %s, %v", name, b, err)
		}
		if b, _ := xml.Marshal(v); hasSecret(string(b)) {
			t.Errorf("XML of %s is %s", name, b)
		}
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, nil)).Info("text", "v", v)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("json", "v", v, slog.Group("g", "v", v))
		if hasSecret(b.String()) {
			t.Errorf("slog of %s writes %s", name, b.String())
		}
	}
}

func TestATokenCannotBeReadBackFromJSON(t *testing.T) {
	b, err := json.Marshal(secret)
	if err != nil || string(b) != `"[token]"` {
		t.Fatalf("JSON is %s, %v", b, err)
	}
	var decoded driver.Token
	if json.Unmarshal(b, &decoded) == nil {
		t.Errorf("JSON was read back as %q", decoded[:])
	}
}
