package natslock

import (
	"cmp"
	"crypto/x509"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const urlForm = "nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/BUCKET], nats+tls:// for TLS from the start"

type parsedURL struct {
	servers       []string
	options       []nats.Option
	driverOptions Options
	tls           *engine.TLS
}

func badURL(problem string) error { return invalid("nats URL", problem, urlForm) }

// parseURL reads a URL. An error about a parameter has only its name, because the value
// may be a password. An error about TLS also has the name of the file.
func parseURL(u *url.URL) (*parsedURL, error) {
	query, err := driver.URLParameters(u, "nats URL", slices.Concat(slices.Collect(maps.Keys(parameters)), engine.TLSParameters))
	if err != nil {
		return nil, err
	}
	if u.Opaque != "" || u.Fragment != "" {
		return nil, badURL("has a #, or no // after the scheme")
	}
	p := &parsedURL{driverOptions: Options{Bucket: strings.Trim(u.Path, "/")}}
	if p.tls, err = engine.ParseTLS(query, "nats URL"); err != nil {
		return nil, err
	}
	if u.Scheme == "nats+tls" {
		p.tls = cmp.Or(p.tls, engine.NewTLS())
		p.options = append(p.options, nats.TLSHandshakeFirst())
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		server, ok := engine.Address(host, "4222")
		if !ok {
			return nil, badURL("has a port that is not 1 to 65535")
		}
		p.servers = append(p.servers, server)
	}
	p.driverOptions.Location = strings.Join(p.servers, ",")
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			p.options = append(p.options, nats.UserInfo(u.User.Username(), password))
		} else {
			p.options = append(p.options, nats.Token(u.User.Username()))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		if set := parameters[key]; set != nil { // engine.ParseTLS has set the others
			if err := set(p, query.Get(key)); err != nil {
				return nil, err
			}
		}
	}
	if p.driverOptions, err = p.driverOptions.withDefaults(); err != nil {
		return nil, err
	}
	if p.tls != nil {
		p.options = append(p.options, nats.Secure(p.tls.Config()), func(o *nats.Options) error {
			o.RootCAsCB = func() (*x509.CertPool, error) { return p.tls.Roots(), nil }
			return nil
		})
	}
	return p, nil
}

var parameters = map[string]func(p *parsedURL, v string) error{
	"replicas": func(p *parsedURL, v string) (err error) {
		if p.driverOptions.Replicas, err = strconv.Atoi(v); err != nil || p.driverOptions.Replicas < 1 {
			return badURL("has replicas that is not a positive number")
		}
		return nil
	},
	"storage": func(p *parsedURL, v string) error {
		if p.driverOptions.Memory = v == "memory"; v != "memory" && v != "file" {
			return badURL("has storage that is neither file nor memory")
		}
		return nil
	},
	"create": boolean("create", func(p *parsedURL, on bool) { p.driverOptions.MustExist = !on }),
	"push":   boolean("push", func(p *parsedURL, on bool) { p.driverOptions.NoPush = !on }),
	"domain": func(p *parsedURL, v string) error { p.driverOptions.Domain = v; return nil },
	"retention": func(p *parsedURL, v string) (err error) {
		if p.driverOptions.Retention, err = time.ParseDuration(v); err != nil || p.driverOptions.Retention <= 0 {
			return badURL("has a retention that is not a positive duration")
		}
		return nil
	},
	"tls": boolean("tls", func(p *parsedURL, on bool) {
		if on {
			p.tls = cmp.Or(p.tls, engine.NewTLS())
		}
	}),
	"creds": func(p *parsedURL, v string) error {
		if _, err := os.ReadFile(v); err != nil {
			return badURL("has creds that name no file that can be read")
		}
		p.options = append(p.options, nats.UserCredentials(v))
		return nil
	},
	"nkey": func(p *parsedURL, v string) error {
		option, err := nats.NkeyOptionFromSeed(v)
		if err != nil {
			return badURL("has an nkey that names no file with a seed")
		}
		p.options = append(p.options, option)
		return nil
	},
	"inbox": func(p *parsedURL, v string) error {
		if strings.ContainsAny(v, "*> \t") || strings.Trim(v, ".") != v || v == "" {
			return badURL("has an inbox that is not a prefix of subjects")
		}
		p.options = append(p.options, nats.CustomInboxPrefix(v))
		return nil
	},
}

// boolean returns the function that sets a parameter that is true or false.
func boolean(key string, set func(p *parsedURL, on bool)) func(*parsedURL, string) error {
	return func(p *parsedURL, v string) error {
		on, err := strconv.ParseBool(v)
		if err != nil && v != "" {
			return badURL("has " + key + " that is neither true nor false")
		}
		set(p, on || v == "")
		return nil
	}
}
