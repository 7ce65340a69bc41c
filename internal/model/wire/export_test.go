package wire

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
)

// Trust makes a client of [NewClient] trust a certificate.
func Trust(c *http.Client, cert *x509.Certificate) {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	c.Transport.(*guard).next.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
}

// UseProxy makes a client of [NewClient] use a proxy.
func UseProxy(c *http.Client, proxy *url.URL) {
	c.Transport.(*guard).next.(*http.Transport).Proxy = http.ProxyURL(proxy)
}
