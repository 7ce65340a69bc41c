package wire

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// proxyHint follows the refusals of a proxy, which are not about the key of the endpoint.
const proxyHint = "; hint: check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"

// proxyError is the status with which a proxy refused to connect to the endpoint.
type proxyError struct {
	proxy  string
	status int
}

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy %s refuses the connection with status %d %s",
		e.proxy, e.status, http.StatusText(e.status))
}

// checkProxy is called with the answer of a proxy to a CONNECT request.
func checkProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{proxy.Host, resp.StatusCode}
}

// isOfProxy reports whether a proxy rather than the endpoint refused a request without TLS.
func isOfProxy(status int, h http.Header) bool {
	switch status {
	case http.StatusProxyAuthRequired:
		return true
	case http.StatusForbidden, http.StatusUnauthorized:
		return h.Get("X-Squid-Error") != "" || h.Get("Proxy-Status") != ""
	}
	return false
}
