package server

import (
	"context"
	"errors"

	"github.com/shardd/shardd/membership"
)

// control runs the cluster's controller until ctx ends or the cluster is gone.
func (s *Server) control(ctx context.Context, cluster string, store membership.ClusterStore) {
	c, err := membership.NewController(membership.ControllerConfig{Store: store, Elector: s.cfg.Elector, Cluster: cluster,
		ID: s.cfg.ID, Logger: s.logger})
	if err == nil {
		err = c.Run(ctx)
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, membership.ErrNoCluster):
		s.logger.Info("cluster is gone, its controller ends", "cluster", cluster)
	default:
		s.logger.Error("controller ended", "cluster", cluster, "error", err)
	}
}
