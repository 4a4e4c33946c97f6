package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/shardd/shardd/membership"
	"github.com/shardd/shardd/topology"
)

// levelAgent is the least level of an agent's log lines by default.
const levelAgent = hclog.Info

// agentFlags are the flags of agent.
type agentFlags struct {
	etcd         serveFlags // only what concerns etcd
	id, addr     string
	zone, weight string
	stateFile    string
	ttl          time.Duration
	check        checkFlags
	noDrain      bool
	grace        time.Duration
	drainTimeout time.Duration
	metrics      string // where /metrics is served; "" = nowhere
	insecure     bool
}

func (a *app) agentCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{Use: "agent --id ID --addr HOST:PORT --etcd ENDPOINTS --cluster NAME", Short: "Keep a node registered while this process runs", Args: cobra.NoArgs,
		Long: "agent runs beside a node and registers it in etcd under a lease: the node joins the\ncluster, and is out of it again when the lease is lost for long. A check that fails\nshows as bad health, which moves no key. On SIGTERM the agent drains the node: it\nwaits until a version shows that it owns nothing, and the grace period after, before\nit leaves; a second signal ends it at once.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.agent(cmd.Context(), f) }}
	fl := cmd.Flags()
	fl.StringVar(&f.id, "id", "", "id of the node, for life; required")
	fl.StringVar(&f.addr, "addr", "", "where the node serves, such as 10.0.0.4:11211")
	fl.StringVar(&f.zone, "zone", "", "failure domain; default the declared one")
	fl.StringVar(&f.weight, "weight", "", "share relative to the other nodes, 0 to 1000000, 0 = owns nothing; default the declared one, else 1")
	fl.StringVar(&f.stateFile, "state-file", "", "keep the node's identity and its cluster's id in this file, so that it keeps its place at another address and joins no other cluster")
	fl.DurationVar(&f.ttl, "ttl", membership.DefaultTTL, "time of the lease: so long after its last sign the node counts as gone; at least 1s")
	fl.StringVar(&f.check.kind, "check", "none", "check of the node: tcp, http, redis, memcached, exec or none")
	fl.StringVar(&f.check.target, "check-target", "", "what to check: HOST:PORT, a URL, or the command of exec; default --addr")
	fl.DurationVar(&f.check.interval, "check-interval", 2*time.Second, "time between two checks, give or take a tenth")
	fl.DurationVar(&f.check.timeout, "check-timeout", time.Second, "how long a check may take")
	fl.IntVar(&f.check.threshold, "check-threshold", 3, "results in a row that change the health")
	fl.BoolVar(&f.noDrain, "no-drain", false, "leave without draining: for a restart in place, which moves no key if it is quick")
	fl.DurationVar(&f.grace, "drain-grace", 5*time.Second, "how long to stay after the node owns nothing, for requests in flight and clients that are behind")
	fl.DurationVar(&f.drainTimeout, "drain-timeout", time.Minute, "how long to wait until the node owns nothing")
	fl.StringVar(&f.metrics, "metrics", "", "serve /metrics at this HOST:PORT; default nowhere")
	fl.BoolVar(&f.insecure, "insecure", false, "allow a --metrics address that other machines can reach")
	f.etcd.registerEtcd(cmd)
	return cmd
}

// registration says what the flags ask for.
func (f agentFlags) registration(s agentState) (membership.Registration, error) {
	r := membership.Registration{ID: f.id, Addr: f.addr, Zone: f.zone, TTL: f.ttl, Identity: s.Identity, Cluster: s.Cluster, Incarnation: s.Incarnation}
	if f.weight != "" {
		w, err := parseWeight("--weight", f.weight)
		if err != nil {
			return r, err
		}
		r.Weight = &w
	}
	return r, nil
}

// checkAgent says what is wrong with the flags.
func (a *app) checkAgent(f agentFlags) error {
	if err := topology.ValidateNodeID(f.id); err != nil {
		return usagef("--id: %w", err)
	}
	if a.cluster == "" {
		return usagef("no cluster; name it with --cluster or $SHARDD_CLUSTER")
	}
	if err := topology.ValidateClusterName(a.cluster); err != nil {
		return usagef("--cluster: %w", err)
	}
	switch {
	case len(f.etcd.etcd) == 0:
		return usagef("no etcd; give --etcd ENDPOINTS")
	case (f.etcd.cert == "") != (f.etcd.key == ""):
		return usagef("--etcd-cert and --etcd-key go together")
	case f.ttl < time.Second:
		return usagef("--ttl %s: want at least 1s", f.ttl)
	case f.grace < 0 || f.drainTimeout <= 0:
		return usagef("--drain-grace and --drain-timeout: want no negative time")
	}
	return nil
}

func (a *app) agent(ctx context.Context, f agentFlags) error {
	if err := a.checkAgent(f); err != nil {
		return err
	}
	check, err := f.check.check(f.id, f.addr)
	if err != nil {
		return err
	}
	state, err := loadAgentState(f.stateFile, f.id)
	if err != nil {
		return err
	}
	metrics, err := listenMetrics(f.metrics, f.insecure)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	log := a.logger(levelAgent).Named("agent").With("cluster", a.cluster)
	directory, client, err := a.openEtcd(f.etcd, log)
	if err != nil {
		return err
	}
	defer client.Close()
	store := directory.Open(a.cluster)
	m, err := f.register(ctx, store, state, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it had begun
		}
		return err
	}
	defer m.Close()
	counts, registry := newAgentMetrics(f.id, m.Status)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer serveMetrics(serving, metrics, registry, log)()
	defer stop()
	return attend(ctx, f, check, m, counts, store, log)
}

// register registers the node, with its state file before and after. The
// identity is on disk before it is used: one that was used and lost would shut
// the node out.
func (f agentFlags) register(ctx context.Context, store membership.ClusterStore, state agentState, log hclog.Logger) (*membership.Member, error) {
	registrar, ok := store.(membership.Registrar)
	if !ok {
		return nil, errors.New("the store keeps no leases")
	}
	reg, err := f.registration(state)
	if err != nil {
		return nil, err
	}
	if err := state.save(f.stateFile); err != nil {
		return nil, &coded{ExitUsage, err}
	}
	reg.Logger = log
	m, err := membership.Register(ctx, registrar, reg)
	if err != nil {
		return nil, err
	}
	st := m.Status()
	state.Cluster, state.Incarnation = st.Cluster, st.Incarnation
	if err := state.save(f.stateFile); err != nil {
		log.Warn("the cluster's id is not on disk", "error", err)
	}
	return m, nil
}

// attend checks the node until ctx ends, then drains it and leaves.
func attend(ctx context.Context, f agentFlags, c check, m *membership.Member, counts *agentMetrics, store membership.Store, log hclog.Logger) error {
	var checks sync.WaitGroup
	defer checks.Wait()
	leaving, left := context.WithCancel(context.WithoutCancel(ctx)) // checks go on while it drains
	defer left()
	if c != nil {
		checks.Go(func() { checkUntil(leaving, f.check, c, m, counts, log.With("node", f.id)) })
	}
	<-ctx.Done()
	var err error
	if !f.noDrain {
		err = drain(leaving, f, m, store, log)
	}
	if closed := m.Close(); closed != nil {
		log.Warn("the registration could not be given up, it ends with its lease", "error", closed)
	}
	return err
}

// drain publishes the wish, waits until a version shows that the node owns
// nothing, and for the grace period.
func drain(ctx context.Context, f agentFlags, m *membership.Member, store membership.Store, log hclog.Logger) error {
	log.Info("draining", "node", f.id, "at-most", f.drainTimeout)
	waiting, cancel := context.WithTimeout(ctx, f.drainTimeout)
	defer cancel()
	err := m.Drain(waiting)
	if err == nil {
		err = store.Watch(waiting, func(s membership.State) error {
			if owns(s.Head, f.id) {
				return nil
			}
			return errDrained
		})
	}
	if !errors.Is(err, errDrained) {
		return &coded{ExitFailed, fmt.Errorf("node %s left without being drained: no version without its keys within %s: %w", f.id, f.drainTimeout, err)}
	}
	log.Info("drained, leaving after the grace period", "node", f.id, "grace", f.grace)
	t := time.NewTimer(f.grace)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}

// errDrained ends the wait.
var errDrained = errors.New("drained")

// owns reports whether the node may own keys in t.
func owns(t *topology.Topology, id string) bool {
	if t == nil {
		return false
	}
	i := t.Index(id)
	return i >= 0 && t.Node(i).OwnerWeight() > 0
}
