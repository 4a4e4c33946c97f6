package topology

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// ClusterID names one cluster for its whole life: 128 random bits drawn when
// the cluster is created. Two clusters of the same name have different ids.
// The zero value means "none" and is never valid in a topology.
type ClusterID [16]byte

// NewClusterID draws a fresh id from the operating system's randomness.
func NewClusterID() ClusterID {
	var id ClusterID
	_, _ = rand.Read(id[:]) // crypto/rand.Read never fails: it ends the program instead
	return id
}

// String returns the id as 32 hexadecimal digits.
func (id ClusterID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether the id is the zero value, "none".
func (id ClusterID) IsZero() bool { return id == ClusterID{} }

// MarshalText writes the hexadecimal form.
func (id ClusterID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the hexadecimal form.
func (id *ClusterID) UnmarshalText(b []byte) error { return unhex(id[:], b, "cluster id") }

// ParseClusterID reads the 32 hexadecimal digits written by String.
func ParseClusterID(s string) (ClusterID, error) {
	var id ClusterID
	err := id.UnmarshalText([]byte(s))
	return id, err
}

// Digest is the first 128 bits of a SHA-256. The zero value means "none".
type Digest [16]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest {
	full := sha256.Sum256(b)
	return Digest(full[:16])
}

// String returns the digest as 32 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether the digest is the zero value, "none".
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText writes the hexadecimal form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the hexadecimal form.
func (d *Digest) UnmarshalText(b []byte) error { return unhex(d[:], b, "digest") }

// ParseDigest reads the 32 hexadecimal digits written by String.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	err := d.UnmarshalText([]byte(s))
	return d, err
}

func unhex(dst, text []byte, what string) error {
	if len(text) != 2*len(dst) {
		return fmt.Errorf("topology: %s %q: want %d hexadecimal digits", what, text, 2*len(dst))
	}
	if _, err := hex.Decode(dst, text); err != nil {
		return fmt.Errorf("topology: %s %q: want hexadecimal digits: %w", what, text, err)
	}
	return nil
}

// History names one epoch's line of versions: 64 random bits drawn when the
// epoch begins, so that two stores that both began "epoch 3" are told apart.
type History uint64

// NewHistory draws a fresh history, never 0.
func NewHistory() History {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:])
		if h := binary.BigEndian.Uint64(b[:]); h != 0 {
			return History(h)
		}
	}
}

// String returns the history as 16 hexadecimal digits.
func (h History) String() string { return fmt.Sprintf("%016x", uint64(h)) }

// MarshalText writes the hexadecimal form.
func (h History) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the hexadecimal form.
func (h *History) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil || len(b) != 16 {
		return fmt.Errorf("topology: history %q: want 16 hexadecimal digits", b)
	}
	*h = History(v)
	return nil
}

// Version orders the topologies of one cluster: first by Epoch, then by Seq.
// It prints as "epoch.seq". Both count from 1; the zero value means "none".
type Version struct {
	Epoch uint64 // raised only when the store was seen to have gone back
	Seq   uint64 // raised by one with every published version of an epoch
}

// String returns "epoch.seq", such as "2.45".
func (v Version) String() string {
	return strconv.FormatUint(v.Epoch, 10) + "." + strconv.FormatUint(v.Seq, 10)
}

// IsZero reports whether the version is the zero value, "none".
func (v Version) IsZero() bool { return v == Version{} }

// Compare returns -1, 0 or +1 as v is before, equal to or after w.
func (v Version) Compare(w Version) int {
	switch {
	case v == w:
		return 0
	case v.Epoch < w.Epoch || v.Epoch == w.Epoch && v.Seq < w.Seq:
		return -1
	default:
		return 1
	}
}

// MarshalText writes "epoch.seq".
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads "epoch.seq".
func (v *Version) UnmarshalText(b []byte) error {
	w, err := ParseVersion(string(b))
	if err == nil {
		*v = w
	}
	return err
}

// ParseVersion reads "epoch.seq" in decimal, without signs or leading zeros.
func ParseVersion(s string) (Version, error) {
	epoch, seq, found := strings.Cut(s, ".")
	e, err1 := strconv.ParseUint(epoch, 10, 64)
	q, err2 := strconv.ParseUint(seq, 10, 64)
	v := Version{e, q}
	if !found || err1 != nil || err2 != nil || v.String() != s {
		return Version{}, fmt.Errorf("topology: version %q: want EPOCH.SEQ, such as 1.17", s)
	}
	return v, nil
}

// Ref says exactly which topology somebody holds. The zero value means
// "nothing held".
type Ref struct {
	ClusterID ClusterID
	History   History
	Version   Version
	Digest    Digest // content digest
}

// IsZero reports whether the ref is the zero value, "nothing held".
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns "version@digest", for logs and messages.
func (r Ref) String() string {
	if r.IsZero() {
		return "none"
	}
	return r.Version.String() + "@" + r.Digest.String()[:8]
}
