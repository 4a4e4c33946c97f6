package embedetcd

import (
	"strings"

	"github.com/hashicorp/go-hclog"
)

// expected are messages that etcd writes as warnings or errors although they
// belong to every start or stop of a member that is alone: seen with 3.7.3.
// Shown as they are they make newcomers think that it broke.
var expected = []string{
	"setting up serving from embedded etcd failed", // every stop
	"stopping insecure grpc server due to error",   // a stop soon after the start
	"stopped insecure grpc server due to error",
	"since there are still pending configuration changes to apply", // a first start on a busy machine
	"Running http and grpc server on single port",
	"simple token is not cryptographically signed", // there are no users
	"Failed to detect schema version",              // a first start
	"failed to update storage version",
	"failed to update cluster version", // a stop soon after the start; etcd tries again at the next
}

// harmless takes expected messages, and what etcd tells about its normal life,
// down to debug: it writes forty lines a start. Its own debug messages become
// traces.
func harmless(level hclog.Level, message string) hclog.Level {
	switch {
	case level <= hclog.Debug:
		return hclog.Trace
	case level == hclog.Info:
		return hclog.Debug
	}
	for _, m := range expected {
		if strings.Contains(message, m) {
			return hclog.Debug
		}
	}
	return level
}
