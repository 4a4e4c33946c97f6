package api

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/shardd/shardd/topology"
)

// DefaultAddr is where a server listens and a client looks unless told
// otherwise: this machine only.
const DefaultAddr = "127.0.0.1:7420"

// Limits of requests and answers, in bytes.
const (
	// MaxSpecBody bounds the body of PUT spec: 65,534 nodes of 256 bytes.
	MaxSpecBody = 16 << 20
	// MaxEditBody bounds the bodies of all other edits.
	MaxEditBody = 64 << 10
	// MaxAnswer bounds what a client reads of one answer, and one line of a
	// watch: the largest topology with every field at its limit, in base64.
	MaxAnswer = 128 << 20
	// MaxKey bounds a key in route.
	MaxKey = 8 << 10
)

// Media types.
const (
	TypeJSON   = "application/json"
	TypeBinary = "application/octet-stream" // a saved topology, or an object
	TypeLines  = "application/x-ndjson"     // a watch: one JSON object a line
)

// ClusterHeader is the response header that carries the id of the cluster that
// an answer is about.
const ClusterHeader = "Shardd-Cluster-Id"

// Path returns the path of a cluster's resource: Path("cache", "topology") is
// /v1/clusters/cache/topology. Parts are escaped.
func Path(cluster string, parts ...string) string {
	var b strings.Builder
	b.WriteString("/v1/clusters/")
	b.WriteString(url.PathEscape(cluster))
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// ETag is the entity tag of a cluster: its newest version, zero before the
// first, the generation of its declared state, and its id. Generation and id
// decide whether an edit conflicts (membership.Edit.Expect and Of): a cluster that
// was deleted and made anew under its name begins with generation 1 again.
type ETag struct {
	Version    topology.Version
	Generation uint64
	// Cluster is zero in a tag that somebody wrote by hand, and in those of
	// earlier releases: then only the generation is compared.
	Cluster topology.ClusterID
}

// String returns the tag as a header carries it, with the quotes: `"2.45+17@` and
// the id's 32 hexadecimal digits, or `"2.45+17"` without an id.
func (e ETag) String() string {
	text := `"` + e.Version.String() + "+" + strconv.FormatUint(e.Generation, 10)
	if !e.Cluster.IsZero() {
		text += "@" + e.Cluster.String()
	}
	return text + `"`
}

// ParseETag reads the form of String; the quotes may be missing, because shells
// eat them. Weak tags and lists are refused.
func ParseETag(s string) (ETag, error) {
	bare := s
	if n := len(s); n >= 2 && s[0] == '"' && s[n-1] == '"' {
		bare = s[1 : n-1]
	}
	bare, id, named := strings.Cut(bare, "@")
	version, generation, found := strings.Cut(bare, "+")
	v, err := topology.ParseVersion(version)
	g, err2 := strconv.ParseUint(generation, 10, 64)
	e := ETag{Version: v, Generation: g}
	if named {
		var err3 error
		e.Cluster, err3 = topology.ParseClusterID(id)
		err2 = errors.Join(err2, err3)
		bare += "@" + id
	}
	if !found || err != nil || err2 != nil || g == 0 || e.String() != `"`+bare+`"` {
		return ETag{}, fmt.Errorf(`api: entity tag %q: want the ETag of an answer, such as "2.45+17"`, s)
	}
	return e, nil
}
