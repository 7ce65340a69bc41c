package wire

import (
	"net/http"
	"net/url"
)

// UseProxy makes a client of [NewClient] use a proxy.
func UseProxy(c *http.Client, proxy *url.URL) {
	c.Transport.(*guard).next.(*direct).next.Proxy = http.ProxyURL(proxy)
}
