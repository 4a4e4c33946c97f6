package etcdkv

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/shardd/shardd/topology"
)

// Limits of a content.
const (
	// PartSize is the most bytes in one part, of which a request takes two.
	PartSize = 512 << 10
	// MaxParts is the most parts of a content: 16 MiB as stored.
	MaxParts = 32
	// MaxContent is the most bytes of a content before compression.
	MaxContent = 64 << 20
)

// Content is a value addressed by the digest of its bytes.
type Content struct {
	Digest topology.Digest
	Data   []byte
}

// NewContent digests data, which must not be changed any more.
func NewContent(data []byte) Content { return Content{Digest: topology.Sum(data), Data: data} }

// The stored form is a header, then the bytes, raw or compressed, cut into
// parts: magic, codec, number of parts, length of the data.
var contentMagic = []byte("SHC\x01")

const (
	codecRaw  = 0
	codecZstd = 1
)

// pack returns the parts to store. The same data give the same parts within
// one release; another release's compressor may give others (see writer).
func pack(data []byte) ([][]byte, error) {
	if len(data) > MaxContent {
		return nil, fmt.Errorf("%w: a value of %d bytes is over the limit of %d", ErrTooLarge, len(data), MaxContent)
	}
	codec, body := byte(codecRaw), data
	if z, err := compress(data); err != nil {
		return nil, err
	} else if len(z) < len(data) {
		codec, body = codecZstd, z
	}
	header := append(bytes.Clone(contentMagic), codec, 0)
	header = binary.AppendUvarint(header, uint64(len(data)))
	parts := (len(header) + len(body) + PartSize - 1) / PartSize
	if parts > MaxParts {
		return nil, fmt.Errorf("%w: a value of %d bytes, %d compressed, is over the limit of %d stored", ErrTooLarge, len(data), len(body), MaxParts*PartSize)
	}
	header[len(contentMagic)+1] = byte(parts)
	stored := append(header, body...)
	cut := make([][]byte, parts)
	for i := range cut {
		cut[i] = stored[i*PartSize : min((i+1)*PartSize, len(stored))]
	}
	return cut, nil
}

// unpack joins parts and checks the digest. ErrMissing says that parts are
// wanting, ErrCorrupt that they are not what pack writes.
func unpack(parts [][]byte, want topology.Digest) ([]byte, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrMissing, want)
	}
	rest, ok := bytes.CutPrefix(parts[0], contentMagic)
	if !ok || len(rest) < 3 {
		return nil, fmt.Errorf("%w: content %s has no header", ErrCorrupt, want)
	}
	codec, count := rest[0], int(rest[1])
	size, n := binary.Uvarint(rest[2:])
	if n <= 0 || size > MaxContent || count < 1 || count > MaxParts {
		return nil, fmt.Errorf("%w: content %s has a header that names %d parts, %d bytes", ErrCorrupt, want, count, size)
	}
	if len(parts) < count {
		return nil, fmt.Errorf("%w: %s has %d of %d parts", ErrMissing, want, len(parts), count)
	}
	body := bytes.Join(append([][]byte{rest[2+n:]}, parts[1:count]...), nil)
	data, err := decode(codec, body, int(size))
	if err != nil {
		return nil, fmt.Errorf("%w: content %s: %w", ErrCorrupt, want, err)
	}
	if got := topology.Sum(data); got != want {
		return nil, fmt.Errorf("%w: content %s has digest %s", ErrCorrupt, want, got)
	}
	return data, nil
}

// partCount reads the number of parts from a first part that unpack accepted.
func partCount(first []byte) int { return int(first[len(contentMagic)+1]) }

func decode(codec byte, body []byte, size int) ([]byte, error) {
	switch codec {
	case codecRaw:
		if len(body) != size {
			return nil, fmt.Errorf("%d bytes, its header says %d", len(body), size)
		}
		return body, nil
	case codecZstd:
		return decompress(body, size)
	}
	return nil, fmt.Errorf("codec %d is not known to this release", codec)
}

// compress makes an encoder a call: contents are rare, and the smallest window
// that holds the data keeps it cheap.
func compress(data []byte) ([]byte, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("etcdkv: compress: %w", err)
	}
	packed := enc.EncodeAll(data, nil)
	return packed, enc.Close()
}

// decompress yields size bytes or an error, so that a forged content cannot
// take more memory than its header admits to (or the encoder's window).
func decompress(body []byte, size int) ([]byte, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(uint64(max(size, 8<<20))))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	data, err := dec.DecodeAll(body, make([]byte, 0, min(size, 1<<20)))
	if err == nil && len(data) != size {
		err = fmt.Errorf("%d bytes, its header says %d", len(data), size)
	}
	return data, err
}
