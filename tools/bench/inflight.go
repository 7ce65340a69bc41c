package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
)

// certificateVariable names a file with the certificates that Go programs trust on Linux.
const certificateVariable = "SSL_CERT_FILE"

// ownTLS returns the settings of a server with a certificate for this machine, which it makes and
// writes to a file.
func ownTLS(path string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, os.WriteFile(path, text, 0o600)
}

// trusting returns a client that trusts the certificate in a file.
func trusting(path string) (*http.Client, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots}
	return &http.Client{Transport: transport}, nil
}

// inFlight is measurement 2j: the memory of a run whose episodes all wait for their model at once,
// over HTTP/2 and over plain HTTP.
func (b *bench) inFlight(ctx context.Context) ([]row, error) {
	var rows []row
	for _, l := range []struct {
		what    string
		trials  int
		latency time.Duration
		tls     bool
		most    float64 // MB
	}{
		{"over HTTP/2", b.size(100_000, 500), 90 * time.Second, true, 4096},
		{"over HTTP", b.size(10_000, 500), 15 * time.Second, false, 500},
	} {
		if b.quick {
			l.latency = time.Second
		}
		s := scenario{
			plain: l.latency, model: sim.Claimer, trials: l.trials, limits: concurrency(l.trials),
			text: "limits: {request: 10m}",
		}
		if l.tls {
			s.certificate = b.path("certificate.pem")
		}
		m, err := b.runScenario(ctx, s)
		if err != nil {
			return rows, err
		}
		what := fmt.Sprintf("%d at once %s: ", l.trials, l.what)
		rows = append(rows,
			newRow(what+"peak resident memory", megabytes, m.peakMB).below(l.most).because(
				"replies after %v; at most %d requests at once; %s", l.latency,
				m.stats.MaxInFlight, m.phases()),
			countRow(what+"trials not done", m.undone()).zero())
	}
	return rows, nil
}
