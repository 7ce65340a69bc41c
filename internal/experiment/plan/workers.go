package plan

import "time"

// Workers holds the settings by which workers find a run. The paths are absolute.
type Workers struct {
	Address string `yaml:"address"`
	Cert    string `yaml:"cert"`
	Key     string `yaml:"key"`
	// NATS is the URL of a server that is used instead of an address.
	NATS        string   `yaml:"nats"`
	Credentials string   `yaml:"credentials"`
	CA          string   `yaml:"ca"`
	Lease       Duration `yaml:"lease"`
}

// On reports whether workers carry out the attempts.
func (s *Workers) On() bool { return s.Address != "" || s.NATS != "" }

// checkWorkers checks the fields for workers and logs, and makes their paths absolute.
func (e *Experiment) checkWorkers() error {
	s := &e.Workers
	for _, path := range []*string{&s.Cert, &s.Key, &s.Credentials, &s.CA, &e.Logs} {
		if *path != "" && *path != NoLogs {
			*path = relative(e.doc.Dir, *path)
		}
	}
	switch {
	case s.Address != "" && s.NATS != "":
		return e.FieldError("workers", "address and nats exclude each other", "remove one of them")
	case (s.Cert == "") != (s.Key == ""):
		return e.FieldError("workers", "cert and key belong together", "write both or none")
	case e.has("workers.lease") && time.Duration(s.Lease) < time.Second:
		return e.FieldError("workers.lease", "workers are heard only once a second",
			"10s is short, 30s is the default")
	}
	return nil
}
