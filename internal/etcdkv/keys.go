package etcdkv

import (
	"fmt"
	"path"
	"strings"

	"github.com/shardd/shardd/topology"
)

// DefaultPrefix is where clusters lie unless told otherwise.
const DefaultPrefix = "/shardd"

// directoryDir is no legal cluster name, so no cluster's keys lie under it.
const directoryDir = ".clusters"

// Keys names the keys of one cluster. Names are checked once, here, so that no
// cluster's keys lie under another's.
type Keys struct{ base string }

// NewKeys returns the keys of a cluster under prefix ("" = DefaultPrefix).
func NewKeys(prefix, cluster string) (Keys, error) {
	prefix, err := cleanPrefix(prefix)
	if err != nil {
		return Keys{}, err
	}
	if err := topology.ValidateClusterName(cluster); err != nil {
		return Keys{}, fmt.Errorf("etcdkv: %w", err)
	}
	return Keys{base: prefix + "/" + cluster + "/"}, nil
}

// cleanPrefix checks prefix: components of letters, digits, '.', '_' and '-',
// each after a '/'.
func cleanPrefix(prefix string) (string, error) {
	if prefix == "" {
		return DefaultPrefix, nil
	}
	for i, part := range strings.Split(prefix, "/") {
		if (i == 0) != (part == "") || i > 0 && topology.ValidateClusterName(part) != nil {
			return "", fmt.Errorf("etcdkv: prefix %q: want /NAME or /NAME/NAME, names of letters, digits, '.', '_', '-'", prefix)
		}
	}
	return prefix, nil
}

// DirectoryPrefix returns the prefix of all directory keys.
func DirectoryPrefix(prefix string) (string, error) {
	prefix, err := cleanPrefix(prefix)
	return prefix + "/" + directoryDir + "/", err
}

// Deleted is the key that remembers deleted clusters of this name: their ids, the
// newest first. It is none of the cluster's own keys.
func (k Keys) Deleted() string {
	base, name := path.Split(strings.TrimSuffix(k.base, "/"))
	return base + ".deleted/" + name
}

// All is the prefix of all keys of the cluster.
func (k Keys) All() string { return k.base }

// Meta is the key of the cluster's identity.
func (k Keys) Meta() string { return k.base + "meta" }

// Declared is the key of the declared state.
func (k Keys) Declared() string { return k.base + "declared" }

// Head is the key of the newest version.
func (k Keys) Head() string { return k.base + "head" }

// Leader is the election key.
func (k Keys) Leader() string { return k.base + "leader" }

// Version is the key of one version's record.
func (k Keys) Version(v topology.Version) string { return k.Versions() + v.String() }

// Versions is the prefix of all versions' records.
func (k Keys) Versions() string { return k.base + "topology/" }

// Chain is the key of one version's digest.
func (k Keys) Chain(v topology.Version) string { return k.base + "chain/" + v.String() }

// Links is the prefix of the digests of one epoch.
func (k Keys) Links(epoch uint64) string { return fmt.Sprintf("%schain/%d.", k.base, epoch) }

// Part is the key of one part of a content.
func (k Keys) Part(d topology.Digest, part int) string {
	return fmt.Sprintf("%s%03d", k.Object(d), part)
}

// Object is the prefix of all parts of a content.
func (k Keys) Object(d topology.Digest) string { return k.Objects() + d.String() + "/" }

// Objects is the prefix of all contents.
func (k Keys) Objects() string { return k.base + "object/" }

// objectOf returns the digest in a key under Objects.
func (k Keys) objectOf(key string) (topology.Digest, bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, k.Objects()), "/")
	d, err := topology.ParseDigest(name)
	return d, err == nil
}
