package foreign

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardd/shardd/topology"
	"github.com/shardd/shardd/topology/clusterfile"
)

// ParseMapping reads a foreign mapping as a cluster file has it behind compat:
// "{mode: libmemcached, distribution: modula}", the same without braces, or the
// mode alone.
func ParseMapping(text string) (topology.Foreign, error) {
	fields := strings.TrimSpace(text)
	if strings.HasPrefix(fields, "{") && strings.HasSuffix(fields, "}") {
		fields = fields[1 : len(fields)-1]
	}
	if !strings.Contains(fields, ":") {
		fields = "mode: " + fields
	}
	if strings.ContainsAny(fields, "\n\r") {
		return topology.Foreign{}, fmt.Errorf("mapping %q: want one line", text)
	}
	d, err := clusterfile.Parse("mapping", []byte("cluster: x\nnodes: [{id: a, addr: \"a:1\"}]\ncompat: {"+fields+"}\n"))
	var e *clusterfile.Error
	if errors.As(err, &e) {
		return topology.Foreign{}, fmt.Errorf("mapping %q: %w", text, e.Err)
	}
	return d.Spec.Compat, err
}
