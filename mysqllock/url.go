package mysqllock

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const (
	urlForm     = "mysql://USER:PASSWORD@HOST[:PORT]/DATABASE, or mysql:USER:PASSWORD@tcp(HOST:PORT)/DATABASE, a DSN of go-sql-driver"
	urlArgument = "mysql URL"
)

type parsedURL struct {
	config   *mysql.Config
	options  Options
	poolSize int         // the largest number of connections
	tls      *engine.TLS // nil without a TLS parameter of Pawl's
}

func invalid(problem, allowed string) error {
	return &driver.InvalidError{Argument: urlArgument, Problem: problem, Allowed: allowed}
}

// parse reads a URL, or a DSN with or without mysql:. An error about a parameter has only
// its name, because the value may be a password.
func parse(raw string) (*parsedURL, error) {
	scheme, rest, _ := strings.Cut(raw, ":")
	if scheme != "mysql" && scheme != "mariadb" {
		return parseDSN(raw)
	}
	dsn, slashes := strings.CutPrefix(rest, "//")
	if !slashes || strings.Contains(dsn, ")/") {
		return parseDSN(dsn)
	}
	u, err := driver.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	return parseURL(u)
}

func parseURL(u *url.URL) (*parsedURL, error) {
	switch {
	case u.Fragment != "":
		return nil, invalid("has a #", urlForm)
	case u.Opaque != "":
		dsn := u.Opaque
		if u.RawQuery != "" {
			dsn += "?" + u.RawQuery
		}
		return parseDSN(dsn)
	}
	p, query, rest, err := readParameters(u)
	if err != nil {
		return nil, err
	}
	if p.config, err = mysql.ParseDSN("/?" + rest.Encode()); err != nil {
		return nil, invalid("has a parameter that cannot be read", "what go-sql-driver/mysql documents")
	}
	c := p.config
	if u.User != nil {
		c.User = u.User.Username()
		c.Passwd, _ = u.User.Password()
	}
	c.DBName = strings.Trim(u.Path, "/")
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return nil, invalid("has an invalid port", "1 to 65535")
	}
	if strings.ContainsAny(u.Hostname(), ",()") {
		return nil, invalid("has several hosts, or an invalid host", urlForm)
	}
	if socket := query.Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	} else {
		c.Net, c.Addr = "tcp", net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(port, "3306"))
	}
	return p, p.finish()
}

// parseDSN reads a DSN of go-sql-driver that may have Pawl's own parameters.
func parseDSN(dsn string) (*parsedURL, error) {
	slash := strings.LastIndexByte(dsn, '/')
	database, raw, _ := strings.Cut(dsn[slash+1:], "?")
	if slash < 0 {
		return nil, invalid("cannot be read", urlForm)
	}
	p, query, rest, err := readParameters(&url.URL{RawQuery: raw})
	if err != nil {
		return nil, err
	}
	if query.Has("socket") {
		return nil, invalid("has socket, which is for the form with //", "USER:PASSWORD@unix(/PATH)/DATABASE")
	}
	if p.config, err = mysql.ParseDSN(dsn[:slash+1] + database + "?" + rest.Encode()); err != nil {
		return nil, invalid("cannot be read", urlForm+"; in a parameter write / as %2F")
	}
	return p, p.finish()
}

// dsnParameters are the accepted parameters of go-sql-driver, which takes any other name,
// even a misspelled one, as a variable of the session.
var dsnParameters = []string{
	"allowCleartextPasswords", "allowFallbackToPlaintext", "allowNativePasswords", "allowOldPasswords",
	"charset", "checkConnLiveness", "clientFoundRows", "collation", "columnsWithAlias", "compress",
	"connectionAttributes", "interpolateParams", "loc", "maxAllowedPacket", "multiStatements", "parseTime",
	"readTimeout", "rejectReadOnly", "serverPubKey", "timeTruncate", "timeout", "tls", "writeTimeout",
}

// ownParameters are Pawl's own parameters.
var ownParameters = []string{"create", "pool", "prefix", "retention", "socket"}

// readParameters reads Pawl's parameters of a URL. rest has the other ones.
func readParameters(u *url.URL) (p *parsedURL, query, rest url.Values, err error) {
	pawlParameters := slices.Concat(ownParameters, engine.TLSParameters)
	if query, err = driver.URLParameters(u, urlArgument, slices.Concat(pawlParameters, dsnParameters)); err != nil {
		return nil, nil, nil, err
	}
	p, rest = &parsedURL{poolSize: defaultPoolSize}, maps.Clone(query)
	for _, name := range pawlParameters {
		rest.Del(name)
	}
	if p.tls, err = engine.ParseTLS(query, urlArgument); err == nil {
		err = p.readOwn(query)
	}
	return p, query, rest, err
}

func (p *parsedURL) readOwn(query url.Values) (err error) {
	create := true
	err = cmp.Or(engine.ReadBool(query, urlArgument, "create", &create), engine.ReadDuration(query, urlArgument, "retention", "24h", &p.options.Retention))
	if err != nil {
		return err
	}
	p.options.MustExist = !create
	if query.Has("pool") {
		if p.poolSize, err = strconv.Atoi(query.Get("pool")); err != nil || p.poolSize < 2 || p.poolSize > 1000 {
			return invalid("has an invalid pool", "2 to 1000 connections")
		}
	}
	if p.options.Prefix = query.Get("prefix"); query.Has("prefix") && !goodPrefix.MatchString(p.options.Prefix) {
		return invalid("has an invalid prefix", "1 to 32 letters, digits and underscores")
	}
	return nil
}

// defaultPoolSize is the default of the URL's parameter pool. A step keeps a connection
// while it runs.
const defaultPoolSize = 16

// finish checks and sets fields that depend on several parts of the URL.
func (p *parsedURL) finish() error {
	c := p.config
	if c.DBName == "" || strings.Contains(c.DBName, "/") {
		return invalid("has no database", urlForm)
	}
	if p.tls != nil {
		if c.TLSConfig != "" && c.TLSConfig != "true" {
			return invalid("has "+strings.Join(engine.TLSParameters, ", ")+" or one of these, but tls is not true", "tls=true")
		}
		host, _, _ := net.SplitHostPort(c.Addr)
		c.TLS = p.tls.Config()
		c.TLS.ServerName = cmp.Or(c.TLS.ServerName, host)
	}
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, driver.MaxRequest) // ends a connection without answers
	c.ConnectionAttributes = cmp.Or(c.ConnectionAttributes, "program_name:pawl")
	c.Logger = &mysql.NopLogger{}
	p.options.Location = c.Addr + "/" + c.DBName
	return c.Apply(mysql.BeforeConnect(func(ctx context.Context, connConfig *mysql.Config) error {
		if p.tls != nil {
			connConfig.TLS = p.tls.Config() // read the files again
			connConfig.TLS.ServerName = c.TLS.ServerName
		}
		if log, ok := ctx.Value(connectLogKey{}).(*connectLog); ok {
			connConfig.Logger = log
		}
		return nil
	}))
}
