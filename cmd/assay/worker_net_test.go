package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
)

// TestWorkersOverTLS serves workers with a certificate that the test makes.
func TestWorkersOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	experiment := file(t, dir, "workers.yaml", workersExperiment+
		"workers: {address: 127.0.0.1:1, cert: "+filepath.Base(cert)+
		", key: "+filepath.Base(key)+"}\n")
	file(t, dir, "providers.yaml", workersProviders)
	c := coordinate(t, experiment, "--store", filepath.Join(dir, "tls.db"), "--sim-latency", "0",
		"--serve", "127.0.0.1:0")
	if !strings.HasPrefix(c.url, "tls://") {
		t.Errorf("workers are told to use %s", c.url)
	}
	stranger := call(t, nil, c.args...)
	if stranger.code != 1 || !strings.Contains(stranger.err, "certificate") ||
		!strings.Contains(stranger.err, "hint: --ca") {
		t.Errorf("a worker that does not know the certificate: exit code %d\n%s",
			stranger.code, stranger.err)
	}
	plain := call(t, nil, append([]string{
		"worker", "--connect", strings.Replace(c.url, "tls:", "nats:", 1),
	}, c.args[4:]...)...)
	if plain.code != 1 {
		t.Errorf("a worker without TLS: exit code %d\n%s", plain.code, plain.err)
	}
	c.worker(t, "--ca", cert)
	c.wait(t)
}

// certificate makes a certificate of 127.0.0.1 that signs itself.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "assay test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return file(t, dir, "cert.pem", text("CERTIFICATE", der)),
		file(t, dir, "key.pem", text("PRIVATE KEY", secret))
}

// natsServer starts the NATS server of its Go module as a separate process, with JetStream and a
// token, and returns its URL.
func natsServer(t *testing.T, token string) string {
	t.Helper()
	start, addr := natsCommand(t, token)
	cmd := start()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	listens(t, addr)
	return "nats://" + addr
}

// natsCommand returns a function that makes the command of such a server, and its address.
func natsCommand(t *testing.T, token string) (start func() *exec.Cmd, addr string) {
	t.Helper()
	path, err := natsBinary()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	dir := t.TempDir()
	return func() *exec.Cmd {
		return exec.Command(path, "-a", "127.0.0.1", "-p", port, "-js", "-sd", dir, "--auth", token)
	}, addr
}

// listens waits until a server accepts connections.
func listens(t *testing.T, addr string) {
	t.Helper()
	waitFor(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

var natsBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "nats-server")
	cmd := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Env = environment
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build nats-server: %w\n%s", err, out)
	}
	return path, nil
})

// TestWorkersOnOwnNATS uses a NATS server that is not ours, with two runs at once that have
// different paths. A provider's key is in no message.
func TestWorkersOnOwnNATS(t *testing.T) {
	t.Parallel()
	const token, canary = "token-of-the-server", "canary-8d1f0e7c"
	url := natsServer(t, token)
	heard := eavesdrop(t, url, token)
	sim := serveProgram(t)
	dir := t.TempDir()
	file(t, dir, "providers.yaml", providersFile(sim, "{concurrency: 8}")+workersProviders)
	text := strings.Replace(workersExperiment, "[sim/optimal, sim/claimer, bot]", "[sim/optimal, bot]", 1)
	at := func(name, path string) string {
		return file(t, dir, name+".yaml", text+"workers: {nats: "+url+path+"}\n")
	}
	var runs []*coordinator
	env := []string{tokenVariable + "=" + token, "SIM_KEY=" + canary}
	for _, path := range []string{"/one", "/two"} {
		c := coordinateAt(t, "", env, at(path[1:], path), "--store", filepath.Join(dir, path[1:]+".db"))
		runs = append(runs, c)
	}
	second := program(t, "run", at("three", "/one"), "--store", filepath.Join(dir, "three.db"),
		"--display", "plain")
	second.Env = append(os.Environ(), env...)
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another run asks for workers there") {
		t.Errorf("two runs share a path: %v\n%s", err, out)
	}
	for _, c := range runs {
		c.env = env[:1] // the worker has no key
		c.worker(t)
	}
	for i, c := range runs {
		c.wait(t)
		if all := attempts(t, filepath.Join(dir, []string{"one.db", "two.db"}[i])); len(all) != 40 {
			t.Errorf("run %d has %d attempts, want 40", i+1, len(all))
		}
	}
	messages, text := heard()
	if messages < 200 || !strings.Contains(text, "sim/optimal") {
		t.Errorf("only %d messages were heard: the test proves nothing", messages)
	}
	if strings.Contains(text, canary) {
		t.Error("the key of a provider is in a message to or from a worker")
	}
}

// eavesdrop listens to all messages of a server.
func eavesdrop(t *testing.T, url, token string) (heard func() (messages int, text string)) {
	t.Helper()
	conn, err := nats.Connect(url, nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	unzip, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all strings.Builder
	n := 0
	_, err = conn.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		n++
		if len(m.Data) > 0 && m.Data[0] == 'z' {
			b, err := unzip.DecodeAll(m.Data[1:], nil)
			if err != nil {
				t.Errorf("a message cannot be read: %v", err)
			}
			all.Write(b)
			return
		}
		all.Write(m.Data)
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() (int, string) {
		mu.Lock()
		defer mu.Unlock()
		return n, all.String()
	}
}

// TestWorkersStartServersOfTools lets a worker carry out attempts with an MCP server that it starts
// itself, and with one at a URL whose key it has. The outcomes are the same as in one process. A
// worker without the program or the key is refused.
func TestWorkersStartServersOfTools(t *testing.T) {
	t.Parallel()
	const here = "{dir}/toolserver" // on the machine of the run, and in another folder of the worker
	for kind, x := range map[string]struct{ config, task, want, env string }{
		"command": {
			config: `command: ["` + here + `", ok], env: [NUMBERS]`, env: "NUMBERS=real",
			task: "{id: a, prompt: Add 42., judge: {calls: [{tool: add, arguments: {n: 42}}]}, " +
				"plan: [{tool: add, arguments: {n: 42}}]}",
			want: "NUMBERS is not set",
		},
		"url": {
			config: `url: "` + echoingServer(t, canary) + `", key: TOOLS_KEY`, env: "TOOLS_KEY=" + canary,
			task: "{id: a, prompt: Who are you?, judge: {calls: [{tool: whoami}]}, " +
				"plan: [{tool: whoami}]}",
			want: "TOOLS_KEY is not set",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, other := t.TempDir(), t.TempDir()
			programIn(t, dir, "toolserver")
			file(t, dir, "tools.yaml", "mcp: {"+x.config+"}\n")
			file(t, dir, "tasks.yaml", "tools: tools.yaml\ntasks: ["+x.task+"]\n")
			experiment := file(t, dir, "e.yaml", "library: tasks.yaml\nmodels: [sim/optimal, sim/listed]\n"+
				"variants: [optimal]\nrepeats: 5\nreliabilities: [0.7]\n")
			alone, fleet := filepath.Join(dir, "alone.db"), filepath.Join(dir, "fleet.db")
			cmd := program(t, "run", experiment, "--store", alone, "--sim-latency", "0")
			cmd.Env = append(os.Environ(), x.env)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			c := coordinateAt(t, dir, []string{x.env}, experiment, "--store", fleet, "--sim-latency", "0",
				"--serve", ":0")
			stranger := call(t, nil, c.args...)
			if stranger.code != 1 || !strings.Contains(stranger.err, x.want) {
				t.Errorf("a worker without the variable: exit code %d\n%s", stranger.code, stranger.err)
			}
			c.env = []string{x.env}
			if kind == "command" {
				cmd := program(t, append(c.args, "--dir", other)...)
				cmd.Env = append(os.Environ(), x.env)
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), filepath.Join(other, "toolserver")) {
					t.Errorf("a worker without the program: %v\n%s", err, out)
				}
				programIn(t, other, "toolserver")
			}
			c.worker(t, "--dir", other)
			c.wait(t)
			noCanary(t, "what the run says", c.String())
			want, got := timeless(t, alone), timeless(t, fleet)
			for id, a := range want {
				if got[id] != a {
					t.Errorf("trial %s\n alone: %s\nworker: %s", id, a, got[id])
				}
			}
			if len(want) != 10 || len(got) != len(want) {
				t.Errorf("%d attempts in one process and %d on a worker, want 10", len(want), len(got))
			}
		})
	}
}
