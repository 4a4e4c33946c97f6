package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/shardd/shardd/internal/api"
	"github.com/shardd/shardd/topology"
)

// client returns a client of the servers that were named.
func (a *app) client() (*api.Client, error) {
	c, err := api.NewClient(api.ClientConfig{Servers: a.servers, Timeout: a.timeout, By: a.user(), Logger: a.logger(hclog.Warn)})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return c, nil
}

// clusterName returns the cluster that was named, else the only one there is.
func (a *app) clusterName(ctx context.Context, c *api.Client) (string, error) {
	if a.cluster != "" {
		if err := topology.ValidateClusterName(a.cluster); err != nil {
			return "", usagef("--cluster: %w", err)
		}
		return a.cluster, nil
	}
	all, err := c.Clusters(ctx)
	if err != nil {
		return "", err
	}
	switch len(all.Clusters) {
	case 0:
		return "", fmt.Errorf("the server has no cluster yet; create one with: shardd apply -f cluster.yaml")
	case 1:
		return all.Clusters[0].Name, nil
	}
	names := make([]string, len(all.Clusters))
	for i, e := range all.Clusters {
		names[i] = e.Name
	}
	return "", usagef("the server has several clusters; name one with --cluster: %s", strings.Join(names, ", "))
}

// onCluster runs fn with a client and the name of the cluster.
func (a *app) onCluster(ctx context.Context, fn func(c *api.Client, cluster string) error) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	name, err := a.clusterName(ctx, c)
	if err != nil {
		return err
	}
	return fn(c, name)
}

// user names whoever runs the program, as USER@HOST; "" = not known.
func (a *app) user() string {
	name := cmp.Or(a.env.Getenv("USER"), a.env.Getenv("LOGNAME"))
	host, err := os.Hostname()
	if name == "" || err != nil {
		return name
	}
	return name + "@" + host
}
