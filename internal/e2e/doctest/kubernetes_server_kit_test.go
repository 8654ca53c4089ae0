//go:build unix

package doctest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/certtest"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/testservers"
)

// An apiServer is the API server of Kubernetes on an etcd of its own, without the rest of
// a cluster.
type apiServer struct {
	url, token string
	client     *http.Client
}

// apiServerTimeout is the time in which the server has to be ready. Only a server that
// hangs needs more.
const apiServerTimeout = 3 * time.Minute

// startAPIServer starts the server, and waits until it is ready.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	authority, folder, trusted := certtest.NewAuthority(t), t.TempDir(), x509.NewCertPool()
	certificate, err := os.ReadFile(authority.File)
	if err != nil || !trusted.AppendCertsFromPEM(certificate) {
		t.Fatalf("the certificate of the authority: %v", err)
	}
	s := &apiServer{token: rand.Text(), client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
	}}}
	t.Cleanup(s.client.CloseIdleConnections)
	tokens := filepath.Join(folder, "tokens.csv")
	noError(t, os.WriteFile(tokens, []byte(s.token+",operator,1,system:masters\n"), 0o600))
	cert, key := authority.Certify(t, "127.0.0.1")
	etcd := etcdtest.Start(t, 1).Members[0].Addr
	s.url = "https://" + testservers.Start(t, "kubernetes", func(addr string) []string {
		_, port, _ := net.SplitHostPort(addr)
		return []string{
			"--etcd-servers", "http://" + etcd, "--bind-address", "127.0.0.1", "--secure-port", port,
			"--cert-dir", folder, "--tls-cert-file", cert, "--tls-private-key-file", key,
			"--token-auth-file", tokens, "--anonymous-auth=false", "--authorization-mode", "RBAC",
			"--service-account-issuer", "https://127.0.0.1", "--service-account-key-file", cert, "--service-account-signing-key-file", key,
			"--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none",
		}
	})
	for deadline := time.Now().Add(apiServerTimeout); ; time.Sleep(50 * time.Millisecond) {
		_, _, err := s.send(t.Context(), http.MethodGet, "/readyz", "")
		if err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the API server is not ready: %v", err)
		}
	}
}

// send sends a request with a body of YAML. Its error is the server's message.
func (s *apiServer) send(ctx context.Context, method, path, body string) (answer []byte, warnings []string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/yaml")
	r.Header.Set("Accept", "application/json")
	got, err := s.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer got.Body.Close()
	answer, err = io.ReadAll(got.Body)
	if err == nil && got.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s: %s", got.Status, answer)
	}
	return answer, got.Header.Values("Warning"), err
}

// addNamespace creates a namespace.
func (s *apiServer) addNamespace(t *testing.T, name string) {
	t.Helper()
	if _, _, err := s.send(t.Context(), http.MethodPost, "/api/v1/namespaces", "{metadata: {name: "+name+"}}"); err != nil {
		t.Fatal(err)
	}
}

var (
	manifestKind    = regexp.MustCompile(`(?m)^kind: (\w+)$`)
	manifestVersion = regexp.MustCompile(`(?m)^apiVersion: (\S+)$`)
)

// create creates the object of a manifest, and returns it in JSON, as the server has
// completed it. A field that the server does not know is an error, and so is a warning.
func (s *apiServer) create(ctx context.Context, namespace, manifest string) (object []byte, err error) {
	kind, version := manifestKind.FindStringSubmatch(manifest), manifestVersion.FindStringSubmatch(manifest)
	if kind == nil || version == nil {
		return nil, errors.New("the manifest has no kind, or no apiVersion")
	}
	group := "/apis/" + version[1]
	if version[1] == "v1" {
		group = "/api/v1"
	}
	path := group + "/namespaces/" + namespace + "/" + strings.ToLower(kind[1]) + "s?fieldValidation=Strict"
	object, warnings, err := s.send(ctx, http.MethodPost, path, manifest)
	if err == nil && len(warnings) > 0 {
		err = fmt.Errorf("the server warns: %q", warnings)
	}
	return object, err
}
