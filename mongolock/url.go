package mongolock

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

const (
	urlArgument = "mongodb URL"
	urlForm     = "mongodb://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]][/DATABASE][?NAME=VALUE], or mongodb+srv://"
)

// The parameters of URLs: Pawl's own parameters, parameters for MongoDB's client, and
// parameters about reads and writes, which the driver ignores.
var (
	ownParameters    = []string{"collection", "retention", "push"}
	clientParameters = strings.Fields(`appName authMechanism authMechanismProperties authSource compressors connect
		directConnection connectTimeoutMS heartbeatFrequencyMS loadBalanced localThresholdMS maxIdleTimeMS maxPoolSize
		minPoolSize maxConnecting replicaSet retryReads retryWrites serverMonitoringMode serverSelectionTimeoutMS
		srvMaxHosts srvServiceName ssl tls tlsCertificateKeyFile tlsCertificateKeyFilePassword tlsCertificateFile
		tlsPrivateKeyFile tlsInsecure tlsCAFile tlsDisableCertificateRevocationCheck tlsDisableOCSPEndpointCheck
		zlibCompressionLevel zstdCompressionLevel`)
	ignoredParameters = strings.Fields("w wTimeoutMS journal readConcernLevel readPreference readPreferenceTags maxStalenessSeconds")
)

type parsedURL struct {
	client   *options.ClientOptions
	options  Options
	database string
}

func invalid(problem, allowed string) error {
	return &driver.InvalidError{Argument: urlArgument, Problem: problem, Allowed: allowed}
}

func parseURL(u *url.URL) (*parsedURL, error) {
	query, err := parameters(u)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "" || u.Opaque != "":
		return nil, invalid("has no host", urlForm)
	case u.Fragment != "":
		return nil, invalid("has a #", urlForm)
	}
	p := &parsedURL{database: strings.TrimPrefix(u.Path, "/"), options: Options{Location: u.Host}}
	if strings.ContainsAny(p.database, "/\\. \"$\x00") || len(p.database) > 63 {
		return nil, invalid("has an invalid name of a database", urlForm)
	}
	if err := p.readOwnParameters(query); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(ownParameters, ignoredParameters) {
		query.Del(name)
	}
	clientURL := *u
	clientURL.RawQuery, clientURL.Path = query.Encode(), "/"+p.database
	p.client = options.Client().ApplyURI(clientURL.String())
	if p.client.Validate() != nil {
		return nil, invalid("cannot be read by MongoDB's client: "+withoutSecrets(p.client.Validate(), u), urlForm)
	}
	rereadFiles(p.client, query)
	p.database = cmp.Or(p.database, "pawl")
	if p.client.AppName == nil {
		p.client.SetAppName("pawl")
	}
	if p.client.ServerSelectionTimeout == nil {
		p.client.SetServerSelectionTimeout(10 * time.Second) // also limits connecting; waiters repeat requests
	}
	return p, nil
}

// parameters returns the parameters. It ignores the case of their names, as MongoDB does.
func parameters(u *url.URL) (url.Values, error) {
	known := slices.Concat(ownParameters, clientParameters, ignoredParameters)
	var parts []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, has := strings.Cut(part, "=")
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 && has {
			part = known[i] + "=" + value
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	plain := *u
	plain.RawQuery = strings.Join(parts, "&")
	return driver.URLParameters(&plain, urlArgument, known, "readPreferenceTags")
}

// readOwnParameters reads the fields of Options.
func (p *parsedURL) readOwnParameters(query url.Values) (err error) {
	if p.options.Collection = query.Get("collection"); query.Has("collection") && p.options.Collection == "" {
		return invalid("has a collection that cannot be read", "a name")
	}
	push := true
	err = cmp.Or(engine.ReadDuration(query, urlArgument, "retention", "24h", &p.options.Retention), engine.ReadBool(query, urlArgument, "push", &push))
	if err != nil {
		return err
	}
	p.options.NoPush = !push
	_, err = p.options.withDefaults()
	return err
}

// withoutSecrets returns the client's error about a URL, unless it may contain a secret.
func withoutSecrets(err error, u *url.URL) string {
	password, _ := u.User.Password()
	secrets := []string{password, u.User.Username(), url.QueryEscape(password), u.Query().Get("tlsCertificateKeyFilePassword")}
	for name, values := range u.Query() {
		if strings.Contains(strings.ToLower(name), "password") || strings.EqualFold(name, "authMechanismProperties") {
			secrets = append(secrets, values...)
		}
	}
	for _, s := range secrets {
		if s != "" && strings.Contains(err.Error(), s) {
			return "it has a part that cannot be read"
		}
	}
	return err.Error()
}
