package migrate

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/shardd/shardd/placement"
)

// MaxKey is the largest length of a key in a list, in bytes.
const MaxKey = 1 << 20

// Keys reads a list of keys, one a line, each exactly the bytes of its line; an
// empty line is the empty key. With hexadecimal set, lines are hexadecimal
// digits, for keys that contain line ends. It yields (nil, err) and ends where
// r fails, a line is longer than MaxKey, is not hexadecimal, or ends in a
// carriage return, or the first begins with a byte order mark: these are the
// marks of a file from elsewhere rather than parts of a key. The slice is only
// valid until the next one.
func Keys(r io.Reader, hexadecimal bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		for number := 1; ; number++ {
			line, err := readLine(lines)
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && number == 1 {
				err = checkMark(line)
			}
			if err == nil {
				line, err = parseKey(line, hexadecimal)
			}
			if err != nil {
				yield(nil, fmt.Errorf("migrate: keys, line %d: %w", number, err))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// checkMark refuses the byte order marks of UTF-8 and UTF-16.
func checkMark(first []byte) error {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(first, []byte(mark)) {
			return errors.New("begins with a byte order mark; convert the file to UTF-8 without one, or give the keys in hexadecimal")
		}
	}
	return nil
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(long)+len(part) > 2*MaxKey+1 {
			return nil, fmt.Errorf("longer than %d bytes", MaxKey)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if long != nil {
			part = append(long, part...)
		}
		if errors.Is(err, io.EOF) && len(part) > 0 {
			err = nil // a last line without its end
		}
		return bytes.TrimSuffix(part, []byte("\n")), err
	}
}

func parseKey(line []byte, hexadecimal bool) ([]byte, error) {
	if bytes.HasSuffix(line, []byte("\r")) {
		return nil, errors.New("ends in a carriage return; convert the file to plain line ends, or give the keys in hexadecimal")
	}
	if hexadecimal {
		n, err := hex.Decode(line, line) // in place: it never writes ahead of what it reads
		if err != nil {
			return nil, fmt.Errorf("not hexadecimal: %w", err)
		}
		line = line[:n]
	}
	if len(line) > MaxKey {
		return nil, fmt.Errorf("longer than %d bytes", MaxKey)
	}
	return line, nil
}

// KeyCount is what moves of a list of keys.
type KeyCount struct {
	// Total is the number of keys in the list.
	Total uint64 `json:"total"`
	// Moved is how many have a node after the change that they did not have
	// before. As in a report, none where nobody owned anything before, and all
	// where nobody owns anything after.
	Moved uint64 `json:"moved"`
	// Ratio is Copies / (Total x replicas after): beside a movement's ratio.
	// With one replica it is Moved / Total. 0 for an empty list; 1 where
	// nobody owns anything after.
	Ratio float64 `json:"ratio"`
	// Copies is how many copies have to be made: Moved with one replica.
	Copies uint64 `json:"copies"`
}

// CountKeys counts what moves of keys from one mapping to another. It stops at
// the first error of keys. Two lookups a key, no allocation that grows.
func CountKeys(from, to *placement.Table, keys iter.Seq2[[]byte, error]) (KeyCount, error) {
	c := counter{from: from, to: to, replicas: int(to.Topology().Spec().Replicas),
		wasReplicas: int(from.Topology().Spec().Replicas)}
	c.replicas = min(c.replicas, to.Owners())
	for key, err := range keys {
		if err != nil {
			return KeyCount{}, err
		}
		c.count(key)
	}
	switch copies := c.sum.Total * uint64(max(1, c.replicas)); {
	case copies == 0:
	case from.Owners() == 0: // nothing was anywhere, so nothing moves
		c.sum.Moved, c.sum.Copies = 0, 0
	case to.Owners() == 0: // every key leaves, for nowhere
		c.sum.Moved, c.sum.Ratio = c.sum.Total, 1
	default:
		c.sum.Ratio = float64(c.sum.Copies) / float64(copies)
	}
	return c.sum, nil
}

type counter struct {
	from, to              *placement.Table
	wasReplicas, replicas int
	was, is               []int
	sum                   KeyCount
}

func (c *counter) count(key []byte) {
	c.was = c.from.AppendNodes(c.was[:0], key, c.wasReplicas)
	c.is = c.to.AppendNodes(c.is[:0], key, c.replicas)
	copies := 0
	for _, i := range c.is {
		id := c.to.Topology().Node(i).ID
		if !slices.ContainsFunc(c.was, func(j int) bool { return c.from.Topology().Node(j).ID == id }) {
			copies++
		}
	}
	c.sum.Total++
	c.sum.Copies += uint64(copies)
	if copies > 0 {
		c.sum.Moved++
	}
}
