package proxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/backends"
)

func TestSplitAndReplace(t *testing.T) {
	t.Setenv("PGPORT", "")
	const one, two, three = "127.0.0.1:4001", "127.0.0.1:4002", "127.0.0.1:4003"
	for raw, want := range map[string]struct{ targets, replaced string }{
		"redis://":                           {"localhost:6379", "redis://" + one},
		"redis://db.example":                 {"db.example:6379", "redis://" + one},
		"valkey://db.example:7000/3":         {"db.example:7000", "valkey://" + one + "/3"},
		"redis://[::1]:7000/":                {"[::1]:7000", "redis://" + one + "/"},
		"redis://[::1]":                      {"[::1]:6379", "redis://" + one},
		"redis://[fe80::1%25lo]":             {"[fe80::1%lo]:6379", "redis://" + one},
		"REDIS://db.example":                 {"db.example:6379", "REDIS://" + one},
		"redis://db.example?cluster=false":   {"db.example:6379", "redis://" + one + "?cluster=false"},
		"redis://:p%40%2F%3f@h/2?prefix=%20": {"h:6379", "redis://:p%40%2F%3f@" + one + "/2?prefix=%20"},
		"redis://us:e:r@h?push=false&db=1":   {"h:6379", "redis://us:e:r@" + one + "?push=false&db=1"},
		"redis://a@b@h":                      {"h:6379", "redis://a@b@" + one},

		"redis+unix:///run/redis/r%20s.sock":         {"unix:/run/redis/r s.sock", "redis://" + one},
		"redis+unix://u:p%40@/run/r.sock?db=2&push=": {"unix:/run/r.sock", "redis://u:p%40@" + one + "?db=2&push="},

		"redlock://u:p@a,b:7001,[::1]/2?retention=1h": {
			"a:6379 b:7001 [::1]:6379", "redlock://u:p@" + one + "," + two + "," + three + "/2?retention=1h",
		},
		"postgres://app:s%2Fc@db/locks?sslmode=prefer": {"db:5432", "postgres://app:s%2Fc@" + one + "/locks?sslmode=prefer"},
		"postgresql://app@a,b:5433/locks":              {"a:5432 b:5433", "postgresql://app@" + one + "," + two + "/locks"},

		"mysql://app:p%40@db/shop?prefix=a_":        {"db:3306", "mysql://app:p%40@" + one + "/shop?prefix=a_"},
		"mysql:///shop":                             {"localhost:3306", "mysql://" + one + "/shop"},
		"mariadb://app@db:3307/shop?tls=preferred":  {"db:3307", "mariadb://app@" + one + "/shop?tls=preferred"},
		"mysql:///shop?a=%20&socket=%2Frun%2Fm&b=1": {"unix:/run/m", "mysql://" + one + "/shop?a=%20&b=1"},
		"mysql://u:p@h/shop?socket=/run/m.sock":     {"unix:/run/m.sock", "mysql://u:p@" + one + "/shop"},
		"mysql:app:s@/:?@tcp(db:3307)/shop?loc=UTC": {"db:3307", "mysql:app:s@/:?@tcp(" + one + ")/shop?loc=UTC"},
		"mysql:app@tcp([::1])/shop":                 {"[::1]:3306", "mysql:app@tcp(" + one + ")/shop"},
		"mysql://app:secret@tcp(db)/shop":           {"db:3306", "mysql://app:secret@tcp(" + one + ")/shop"},
		"mysql://tcp(db)/shop":                      {"db:3306", "mysql://tcp(" + one + ")/shop"},
		"mysql:app:secret@/shop":                    {"127.0.0.1:3306", "mysql:app:secret@tcp(" + one + ")/shop"},
		"mariadb:app@unix(/run/m.sock)/shop?pool=3": {"unix:/run/m.sock", "mariadb:app@tcp(" + one + ")/shop?pool=3"},
		"mysql:app@unix/shop":                       {"unix:/tmp/mysql.sock", "mysql:app@tcp(" + one + ")/shop"},
		"etcd://root:p@a,b:2380,c/locks?retention=1h": {
			"a:2379 b:2380 c:2379", "etcd://root:p@" + one + "," + two + "," + three + "/locks?retention=1h",
		},
		"etcd:///locks":                {"localhost:2379", "etcd://" + one + "/locks"},
		"nats://token@a,b:4333/bucket": {"a:4222 b:4333", "nats://token@" + one + "," + two + "/bucket"},
		"nats://a?tls=false":           {"a:4222", "nats://" + one + "?tls=false"},

		"mongodb://u:p%3A@h/app?collection=x":                   {"h:27017", "mongodb://u:p%3A@" + one + "/app?collection=x"},
		"mongodb://h:27018/?replicaSet=r&DirectConnection=true": {"h:27018", "mongodb://" + one + "/?replicaSet=r&DirectConnection=true"},
		"mongodb://h?connect=direct&replicaset=r&tls=false":     {"h:27017", "mongodb://" + one + "?connect=direct&replicaset=r&tls=false"},
	} {
		targets, reason := Split(raw)
		if got := strings.Join(targets, " "); got != want.targets || reason != "" {
			t.Errorf("%s: the targets are %q, want %q; the reason is %q", raw, got, want.targets, reason)
			continue
		}
		if got := Replace(raw, []string{one, two, three}[:len(targets)]); got != want.replaced {
			t.Errorf("%s: Replace returns %s, want %s", raw, got, want.replaced)
		}
	}
}

func TestSplitReturnsAReason(t *testing.T) {
	for reason, urls := range map[string][]string{
		sqliteFile: {"sqlite:/hunter2/db", "sqlite:///hunter2.db"},
		ownMemory:  {"mem:", "mem:hunter2"},
		requiresTLS: {
			"redis://:hunter2@h?ca_cert=x", "redis+unix:///hunter2?skip_verify=true",
			"etcd://u:hunter2@h?server_name=x", "nats://hunter2@h?tls=true", "nats://hunter2@h?tls",
			"nats://hunter2@h?client_cert=a&client_key=b", "postgres://u:hunter2@h/d?sslmode=require", "postgres://h/d?a=1&sslmode=verify%2Dfull",
			"mysql://u:hunter2@h/d?tls=true", "mysql://u:hunter2@h/d?tls=skip-verify", "mysql://u:hunter2@h/d?ca_cert=x", "mysql:u:hunter2@tcp(h)/d?tls=true",
			"mongodb://u:hunter2@h/?tls=true", "mongodb://u:hunter2@h/?SSL=true", "mongodb://u:hunter2@h/?tlsCAFile=x",
		},
		sentinels:      {"redis://:hunter2@h?master_set=m", "redis://:hunter2@a,b?master_name=m", "redis+unix:///hunter2?master_set=m"},
		redisCluster:   {"redis://:hunter2@a,b:7000", "valkey://:hunter2@a?addr=b", "redis://hunter2@a?cluster=true", "redis+unix:///hunter2?addr=b"},
		replicaSet:     {"mongodb://u:hunter2@a,b", "mongodb://u:hunter2@a?replicaSet=rs0", "mongodb://h?replicaSet=r&directConnection=false"},
		dnsDiscovery:   {"mongodb+srv://u:hunter2@h/app"},
		noHost:         {"postgres:///d", "postgres://u:hunter2@/d", "mongodb:///app"},
		hostParameter:  {"postgres:///d?host=/var/run/postgresql", "postgres://u:hunter2@h/d?port=5433", "postgres://h/d?service=hunter2"},
		addrParameter:  {"redlock://:hunter2@a,b?addr=c"},
		unknownNetwork: {"mysql:u:hunter2@pipe(x)/d"},
		misplacedAt:    {"redis://:hun/ter2@h", "redis://:hun?ter2@h", "postgres://u:hun#ter2@h/d", "mysql://u:hun/ter2@h/d"},
		unreadable: {
			"", "hunter2", "redis:hunter2", "redis://h#hunter2", "redis://h:hunter2", "redis://h?%zz", "redis://::1", "redis://h%41",
			"redis+unix://h/hunter2", "redis+unix://", "redis+unix:///%zz", "etcd://a,,b", "etcd://a,b:hunter2", "redlock://a,(b),c",
			"mysql://a,b/d", "mysql:hunter2", "mysql:u:hunter2@tcp(h/d", "mysql:u:hunter2@tcp(h)/d?%zz", "mongodb://%2Ftmp%2Fhunter2.sock",
		},
		unknownScheme: {"hunter2://h", "oracle://u:hunter2@h"},
	} {
		if strings.Contains(reason, "hunter2") {
			t.Errorf("a reason shows a password: %s", reason)
		}
		for _, raw := range urls {
			if targets, got := Split(raw); got != reason || targets != nil {
				t.Errorf("%s: the reason is %q, want %q; the targets are %q", raw, got, reason, targets)
			}
			if got := Replace(raw, []string{"127.0.0.1:4001"}); got != raw {
				t.Errorf("%s: Replace returns %s, want it unchanged", raw, got)
			}
		}
	}
}

// For a scheme of backends.All, TLS is the reason only if the scheme always uses TLS.
func TestSplitKnowsEachScheme(t *testing.T) {
	for _, b := range backends.All {
		for _, scheme := range b.Schemes {
			_, reason := Split(scheme + "://u:hunter2@h/d")
			if reason == unknownScheme || (reason == requiresTLS) != slices.Contains(b.TLS, scheme) {
				t.Errorf("%s://: the reason is %q", scheme, reason)
			}
		}
	}
}

func TestPGPORTIsThePortOfOneHostWithoutAPort(t *testing.T) {
	t.Setenv("PGPORT", "5999")
	for raw, want := range map[string][]string{
		"postgres://h/d":      {"h:5999"},
		"postgres://h:5433/d": {"h:5433"},
		"postgres://a,b/d":    {"a:5432", "b:5432"}, // as in pgx
	} {
		if targets, reason := Split(raw); !slices.Equal(targets, want) {
			t.Errorf("%s: the targets are %q, not %q; the reason is %q", raw, targets, want, reason)
		}
	}
}

// FuzzReplace checks that Split finds the replaced addresses, and that it never panics.
func FuzzReplace(f *testing.F) {
	for _, raw := range []string{
		"redis://:p@h/1?x=%20", "redlock://u@a,b:1,[::1]/", "mysql:u:p@tcp(h)/d?x", "mongodb://u:p@h?directConnection=true",
		"redis+unix:///run/x", "postgres://a,b/d?sslmode=prefer", "mysql:///d?socket=/x&y", "nats://[::1%25x]:9",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		targets, reason := Split(raw)
		if reason != "" {
			return
		}
		want := []string{"127.0.0.1:4001", "127.0.0.1:4002", "127.0.0.1:4003", "127.0.0.1:4004"}[:min(4, len(targets))]
		replaced := Replace(raw, want)
		if got, reason := Split(replaced); reason != "" || !slices.Equal(got, want) {
			t.Fatalf("%q became %q, whose targets are %q: %s", raw, replaced, got, reason)
		}
	})
}
