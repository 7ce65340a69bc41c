package dashboard

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/assay-eval/assay"
)

// policy allows a page only its own files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'self'; " +
	"base-uri 'none'"

// guard lets a request pass if it is meant for this server, comes from its pages and has the token.
//
//   - A name as the host is refused unless it is localhost, so that a site cannot reach the server
//     by a name that it lets point to this machine.
//   - An address with the token sets a cookie and leads to the address without it, so that the
//     token stays out of the history and of copies from the address bar.
//   - A cookie is sent to all ports of a host, so its name has the port.
func (s *Server) guard(addr string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(addr)
	cookie := "assay-" + port
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // forms would lose their Origin without one
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !isOwnHost(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "this server does not answer to that name; "+
				"open it by its address, such as "+addr)
			return
		}
		origin := r.Header.Get("Origin")
		if origin != "" && origin != "http://"+r.Host || crossOrigin.Check(r) != nil {
			refuse(w, http.StatusForbidden, "requests from other sites are refused")
			return
		}
		if token := r.URL.Query().Get("token"); token != "" && r.Method == http.MethodGet {
			s.signIn(w, r, cookie, token)
			return
		}
		if c, err := r.Cookie(cookie); err != nil || !s.opens(c.Value) {
			s.refuseToken(w, "these pages need the token of their server")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) opens(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) == 1
}

// signIn turns the token of an address into a cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, cookie, token string) {
	if !s.opens(token) {
		s.refuseToken(w, "that is not the token of this server")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	v := r.URL.Query()
	v.Del("token")
	to := *r.URL
	to.RawQuery, to.Scheme, to.Host = v.Encode(), "", ""
	to.Path = "/" + strings.TrimLeft(to.Path, "/\\") // never another host
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func (s *Server) refuseToken(w http.ResponseWriter, why string) {
	refuse(w, http.StatusUnauthorized, why+"; "+s.options.Words.Hint(assay.HintToken))
}

func refuse(w http.ResponseWriter, status int, why string) { http.Error(w, "assay: "+why, status) }

// isOwnHost reports whether a Host header has an address or localhost.
func isOwnHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if name == "localhost" {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil
}
