package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/internal/embedetcd"
	"github.com/shardd/shardd/internal/server"
	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/membership/etcdstore"
)

// serveFlags are the flags of serve and dev.
type serveFlags struct {
	listen   string
	insecure bool
	hosts    []string
	id       string
	dataDir  string

	down, settle time.Duration
	massLoss     float64

	etcd              []string
	etcdListen        string // of the embedded one
	embedded          bool
	cacert, cert, key string
	user              string
}

func (f *serveFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", api.DefaultAddr, "address to listen on; port 0 = any free one")
	fl.BoolVar(&f.insecure, "insecure", false, "allow an address that other machines can reach, though there is no authentication")
	fl.StringSliceVar(&f.hosts, "allowed-host", nil, "further host names under which this server may be addressed")
	fl.StringVar(&f.id, "id", "", "name of this process in elections; default host name and process id")
	fl.DurationVar(&f.down, "down", 2*time.Second, "how long an agent's lease has to be lost before requests go round its node")
	fl.DurationVar(&f.settle, "settle", 30*time.Second, "how long it has to be lost before the node's keys go to others")
	fl.Float64Var(&f.massLoss, "mass-loss", 0.5, "share of the members, 0 to 1, of which no more lose their keys because they are lost at the same time: more of them, and at least two, are held as down; 1 = no limit")
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{Use: "serve (--etcd ENDPOINTS | --embedded-etcd --data-dir DIR)", Short: "Serve the API and publish versions", Args: cobra.NoArgs,
		Long: "serve keeps clusters in etcd, publishes their versions and serves the HTTP API. It prints\nits URL on standard output once it listens. Any number of processes may share an etcd;\none of them publishes at a time.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) }}
	f.register(cmd)
	fl := cmd.Flags()
	f.registerEtcd(cmd)
	fl.BoolVar(&f.embedded, "embedded-etcd", false, "run a single etcd member in this process")
	fl.StringVar(&f.dataDir, "data-dir", "", "directory of the embedded etcd, and of what this server has served last, by which it notices a store that was restored; keep it when the store is restored")
	f.registerListen(cmd)
	return cmd
}

// registerEtcd registers the flags by which an etcd cluster is reached.
func (f *serveFlags) registerEtcd(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.etcd, "etcd", nil, "endpoints of an etcd cluster")
	fl.StringVar(&f.cacert, "etcd-cacert", "", "file of the authority that signed etcd's certificates")
	fl.StringVar(&f.cert, "etcd-cert", "", "file of the certificate to show to etcd")
	fl.StringVar(&f.key, "etcd-key", "", "file of its key")
	fl.StringVar(&f.user, "etcd-user", "", "user of etcd; its password is read from $SHARDD_ETCD_PASSWORD")
}

func (f *serveFlags) registerListen(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.etcdListen, "etcd-listen", "", "loopback address at which agents reach the embedded etcd; default any free port, see the log")
}

// openEtcd returns the store in the etcd cluster that the flags name, and what
// to close after it.
func (a *app) openEtcd(f serveFlags, log hclog.Logger) (*etcdstore.Store, io.Closer, error) {
	tlsConfig, err := f.tls()
	if err != nil {
		return nil, nil, err
	}
	client, err := etcdstore.Dial(etcdstore.Config{Endpoints: f.etcd, TLS: tlsConfig, Username: f.user, Password: a.env.Getenv("SHARDD_ETCD_PASSWORD"), Logger: log})
	if err != nil {
		return nil, nil, err
	}
	store, err := etcdstore.New(client, etcdstore.Options{Logger: log})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return store, client, nil
}

func (a *app) devCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{Use: "dev", Short: "Serve with an embedded etcd and no set-up", Args: cobra.NoArgs,
		Long: "dev is serve with an etcd inside this process that elects itself at once. Without\n--data-dir everything is forgotten at the end. It prints its URL on standard output.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd.Context(), f) }}
	f.register(cmd)
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "keep the data in this directory")
	f.registerListen(cmd)
	return cmd
}

// checkAdmission looks at what serve and dev have in common.
func (f *serveFlags) checkAdmission() error {
	switch {
	case f.down < 0 || f.settle < 0:
		return usagef("--down and --settle: want no negative time")
	case !(f.massLoss >= 0 && f.massLoss <= 1):
		return usagef("--mass-loss %g: want a share from 0 to 1", f.massLoss)
	}
	return nil
}

func (f *serveFlags) check() error {
	if err := f.checkAdmission(); err != nil {
		return err
	}
	switch {
	case f.embedded && len(f.etcd) > 0:
		return usagef("--etcd and --embedded-etcd exclude each other; give one of them")
	case !f.embedded && len(f.etcd) == 0:
		return usagef("no store; give --etcd ENDPOINTS, or --embedded-etcd --data-dir DIR (to try things out: shardd dev)")
	case f.embedded && f.dataDir == "":
		return usagef("--embedded-etcd needs --data-dir")
	case (f.cert == "") != (f.key == ""):
		return usagef("--etcd-cert and --etcd-key go together")
	}
	return nil
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	log := a.logger(hclog.Info)
	if f.embedded {
		return a.serveEmbedded(ctx, f, false, log, a.printURL(log))
	}
	store, client, err := a.openEtcd(f, log)
	if err != nil {
		return err
	}
	defer client.Close()
	ln, err := f.open()
	if err != nil {
		return err
	}
	defer ln.Close()
	return a.serveStore(ctx, f, ln, store, log, a.printURL(log))
}

func (a *app) dev(ctx context.Context, f serveFlags) error {
	if err := f.checkAdmission(); err != nil {
		return err
	}
	if f.dataDir == "" {
		dir, err := os.MkdirTemp("", "shardd-dev-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		f.dataDir = dir
	}
	log := a.logger(hclog.Info)
	return a.serveEmbedded(ctx, f, true, log, a.printURL(log))
}

// serveEmbedded serves with an embedded etcd, and calls ready with the server's
// URL once it listens.
func (a *app) serveEmbedded(ctx context.Context, f serveFlags, dev bool, log hclog.Logger, ready func(url string)) error {
	ln, err := f.open()
	if err != nil {
		return err
	}
	defer ln.Close()
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	etcd, err := embedetcd.Start(starting, embedetcd.Config{Dir: f.dataDir, Dev: dev, Listen: f.etcdListen, Logger: log})
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it had begun
		}
		return err
	}
	defer func() {
		if err := etcd.Close(); err != nil {
			log.Warn("embedded etcd did not stop in order", "error", err)
		}
	}()
	log.Info("embedded etcd listens, for agents", "endpoint", etcd.Endpoint())
	store, err := etcdstore.New(etcd.Client(), etcdstore.Options{Logger: log})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { // ends with etcd, at the latest by the Close above
		<-etcd.Done()
		stop(errEtcdStopped)
	}()
	if err := a.serveStore(ctx, f, ln, store, log, ready); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errEtcdStopped) {
		return errEtcdStopped
	}
	return nil
}

var errEtcdStopped = errors.New("the embedded etcd stopped; see the log above")

// serveStore serves on ln until ctx ends.
func (a *app) serveStore(ctx context.Context, f serveFlags, ln net.Listener, store *etcdstore.Store, log hclog.Logger, ready func(url string)) error {
	s, err := server.New(server.Config{Directory: store, Elector: store, ID: f.id, AllowInsecure: f.insecure, AllowedHosts: f.hosts, Admission: f.admission(), DataDir: f.served(), Logger: log})
	if err != nil {
		return err
	}
	// A store that does not answer at the start is more likely a wrong
	// address than an outage; later on the server waits for it.
	first, cancel := context.WithTimeout(ctx, a.timeout)
	_, err = store.List(first)
	cancel()
	if ctx.Err() != nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = &coded{ExitUnreachable, fmt.Errorf("etcd does not answer at %v: %w", f.etcd, err)}
	}
	if err != nil {
		return err
	}
	ready("http://" + ln.Addr().String())
	return s.Serve(ctx, ln)
}

// printURL writes the server's one line of data. A server whose output nobody
// reads serves all the same.
func (a *app) printURL(log hclog.Logger) func(url string) {
	return func(url string) {
		fmt.Fprintln(a.out, url)
		if err := a.out.Flush(); err != nil {
			log.Warn("address could not be printed", "url", url, "error", err)
			a.out.Reset(io.Discard)
		}
	}
}

// admission says when members are down and gone; 0 means at once here.
func (f *serveFlags) admission() membership.AdmissionConfig {
	c := membership.AdmissionConfig{Down: f.down, Settle: f.settle, MassLoss: max(f.massLoss, 1e-9)}
	for _, d := range []*time.Duration{&c.Down, &c.Settle} {
		if *d == 0 {
			*d = -1
		}
	}
	return c
}

// open listens, unless the address is reachable from elsewhere and that is not
// allowed.
func (f *serveFlags) open() (net.Listener, error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, usagef("--listen %q: %w; want HOST:PORT", f.listen, err)
	}
	if ip := net.ParseIP(host); !f.insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &coded{ExitRefused, fmt.Errorf("--listen %s: other machines can reach this address, and there is no authentication; listen on 127.0.0.1, or allow it with --insecure if the network is trusted", f.listen)}
	}
	ln, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, fmt.Errorf("%w; is another shardd running there? Choose another address with --listen", err)
	}
	return ln, nil
}

// tls returns nil where no file is named: then https endpoints are checked
// against the authorities of the system.
func (f *serveFlags) tls() (*tls.Config, error) {
	if f.cacert == "" && f.cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.cacert != "" {
		pem, err := os.ReadFile(f.cacert)
		if err != nil {
			return nil, usagef("--etcd-cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--etcd-cacert: %s holds no certificate in PEM form", f.cacert)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--etcd-cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// served returns where the newest versions are kept; "" = nowhere.
func (f *serveFlags) served() string {
	if f.dataDir == "" {
		return ""
	}
	return filepath.Join(f.dataDir, "served")
}
