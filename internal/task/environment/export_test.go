package environment

import "time"

// Hurry shortens all waits that do not depend on the configuration.
func Hurry(s *Server) {
	s.firstWait, s.fullWait = time.Millisecond, time.Millisecond
	s.client.Timeout = 300 * time.Millisecond
}
