#!/usr/bin/env python3
"""Routes keys by a topology that shardd published, with the standard library alone.

    shardd get -o topology > now.topology
    python3 shardd.py now.topology KEY...

prints what `shardd route --file now.topology KEY...` prints: the key, a tab, and the nodes that hold it,
the owner first. It follows docs/spec/mapping.md and is written to be read, not for speed. check.py runs it
over the vectors of that document. Python 3.9 or later.
"""
import binascii, bisect, decimal, itertools, math, os, sys
import codec
from codec import require
from xxh64 import xxh64

M, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15
BIG = decimal.Context(prec=60)
LN2 = int(BIG.multiply(BIG.ln(2), 2**64).to_integral_value())
LN = {i: int(BIG.multiply(BIG.ln(BIG.divide(512, i)), 2**58).to_integral_value()) for i in range(256, 513)}

def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31

def draws(seed): return (mix(seed + i * GOLDEN & M) for i in itertools.count(1))  # SplitMix64
def fold(a, b): return a * b >> 64 ^ a * b & M

def exponential(x):
    m = 2**49 - 2 * x - 1
    k = 64 - m.bit_length()
    m <<= k
    i = (m - 1 >> 55) + 1
    r, p = ((i << 55) - m << 9) // i, 2**64 // 6
    for j in (5, 4, 3, 2): p = 2**64 // j + (p * r >> 64)
    return ((k - 15) * LN2 >> 6) + LN[i] + (r + (r * (r * p >> 64) >> 64) >> 6)

def classic(h, n):
    b, j = -1, 0
    while j < n:
        b, h = j, h * 2862933555777941757 + 1 & M
        j = int((b + 1) * (2.0**31 / ((h >> 33) + 1)))
    return b

def jumpback(h, n):
    random, mask = draws(h), (1 << (n - 1).bit_length()) - 1
    v = next(random)
    def last(u):  # the last change of bucket in the highest range of u
        q = 1 << u.bit_length() >> 1
        return q + ((v >> 32 if bin(u).count('1') % 2 else v) & q - 1) if u else 0
    u = (v ^ v >> 32) & mask
    if last(u) < n: return last(u)
    b = next(b for w in random for b in (w & mask, w >> 32 & mask) if b < n)
    return b if b > mask >> 1 else last(u & mask >> 1)

class Mapping:
    """Who holds a key. Owners are numbered from 0, by id; None is nobody."""
    def __init__(self, topology, tables):
        t = topology if isinstance(topology, dict) else codec.topology(topology)
        self.spec, self.steps = t[7], t.get(14)
        self.digest = codec.digest(topology) if t is not topology else None
        if self.steps: self.before, t, tables = self.split(t, tables)
        require([(b[4], codec.digest(b), len(b)) for b in tables] == t[9], 'not the tables that the topology refers to')
        owners = [n for n in t[8] if n['weight'] and n['state'] in (0, 3)]
        self.ids, self.weights, self.zones = [[n[part] for n in owners] for part in ('id', 'weight', 'zone')]
        self.replicas, self.spread = self.spec[10], 11 in self.spec and self.spec[10] > 1
        self.tables = dict(map(codec.table, tables))
        self.walk, described = getattr(self, self.spec[1].decode().replace('/1', ''))()
        self.mapping = codec.digest(self.header() + b''.join(described))
        if self.steps: self.mapping = codec.digest(b'shardd-steps\x01' + self.before.mapping + self.mapping + b''.join(n.to_bytes(8, 'big') for n in [self.steps[1], self.steps[3][0]]))
        require(t.get(10, self.mapping) == self.mapping, 'the publisher computed another mapping: do not route by this one')

    def split(self, t, tables):
        """The mapping before a transition, and topology and tables of the one after."""
        weights, refs = dict(self.steps[5]), self.steps.get(6, [])
        nodes = [{**n, 'weight': weights[n['id']], 'state': 0} if n['id'] in weights else n for n in t[8]]
        by_reference = {(b[4], codec.digest(b), len(b)): b for b in tables}
        require(set(by_reference) == set(t[9]) | set(refs), 'not the tables that the topology refers to')
        before = Mapping({7: t[7], 8: nodes, 9: refs}, [by_reference[r] for r in refs])
        return before, t, [by_reference[r] for r in t[9]]

    def names(self, h):
        """All owners by name, in the order that is in force for h."""
        m = self.before if self.steps and mix(h ^ self.steps[1]) >= self.steps[3][0] else self
        return [m.ids[o] for o in m.order(h)]

    def hash(self, key):
        tag = self.spec.get(9)
        i = key.find(tag[:1]) if tag else -1
        j = key.find(tag[1:], i + 1) if i >= 0 else -1
        if j > i + 1: key = key[i + 1:j]
        if self.spec[8] == b'xxh64': return xxh64(key)
        crc = binascii.crc_hqx(key, 0)  # CRC-16/XMODEM
        return (crc << 50 | crc >> 14) & M

    def order(self, h):
        """All owners in order of preference."""
        found = {}
        for o in self.walk(h):
            if o is not None: found[o] = True
            if len(found) == len(self.ids): break
        left, chosen = list(found), []
        if self.spread and b'slots/1' != self.spec[1]:  # in slots the rows follow the zone rule
            sizes = [self.zones.count(z) for z in set(self.zones)]
            levels = [level for level in range(max(sizes, default=0)) for size in sizes if size > level]
            for level in levels[:self.replicas]:
                held = [self.zones[o] for o in chosen]
                chosen.append(next(o for o in left if held.count(self.zones[o]) == level))
                left.remove(chosen[-1])
        return chosen + left

    def rows(self, kind, rows, size):
        table = self.tables.get(kind, ())
        require([len(row) for row in table] == [size] * rows, 'no table, or one of another size')
        if kind == 3: table = table[:1]  # the other says who held a bucket last
        number = {None: None, **{id: o for o, id in enumerate(self.ids)}}
        require(all(id in number for row in table for id in row), 'an entry of a node that owns nothing')
        require(kind == 3 or not any(None in row and any(row) for row in table), 'a row that is owned in part')
        require(any(table[0]) == bool(self.ids), 'nobody owns an entry')
        return [[number[id] for id in row] for row in table]

    def ring(self):
        points = sorted((mix(xxh64(id) ^ mix(j + 1)), o) for o, id in enumerate(self.ids) for j in range(self.weights[o] * self.spec[2]))
        places, row = [place for place, _ in points], [o for _, o in points]
        return lambda h: turned(row, bisect.bisect_left(places, h)), [u32(len(points))] + [place.to_bytes(8, 'big') + u16(o) for place, o in points]

    def rendezvous(self):
        seeds, multiple, slots = [mix(xxh64(id)) for id in self.ids], math.lcm(*self.weights), self.spec.get(7)
        def ranked(h):
            g = fold(h, GOLDEN) | 1
            return sorted(range(len(seeds)), key=lambda o: (exponential(fold(seeds[o] ^ h, g) >> 16) * (multiple // self.weights[o]), o))
        weights = [u32(w) for w in self.weights]
        if not slots: return ranked, weights + self.probes(ranked)
        owners = [next(iter(ranked(mix(s + 1))), None) for s in range(slots)]
        return lambda h: ranked(mix((h * slots >> 64) + 1)), weights + [u32(slots)] + [u16(o) for o in owners]

    def maglev(self):
        size = self.spec[3]
        row, = self.rows(2, 1, size)
        return lambda h: turned(row, h * size >> 64), [u32(size)] + [u16(o) for o in row]

    def slots(self):
        count = self.spec[4]
        rows = self.rows(1, self.replicas, count)
        held = [[o for o in slot if o is not None] for slot in zip(*rows)]
        require(all(slot[:len(h)] == tuple(h) and len(set(h)) == len(h) for slot, h in zip(zip(*rows), held)), 'a node twice in a slot, or a row missing')
        cells = [o for slot in zip(*rows) for o in slot]
        return lambda h: turned(cells, (h * count >> 64) * self.replicas), [u32(count)] + [u16(o) for row in rows for o in row]

    def jump(self):
        size = len(self.tables.get(3, ((),))[0])
        (row,), draw = self.rows(3, 2, size), classic if self.spec[6] == b'classic' else jumpback
        def walk(h):
            for k in itertools.islice(itertools.accumulate(itertools.repeat(h), lambda k, _: mix(k + GOLDEN & M)), 128 if size else 0):
                yield row[draw(k, size)]
            yield from (row[b] for b in sorted(range(size), key=lambda b: (-mix(h ^ mix((b + 1) * GOLDEN & M)), b)))
        return walk, [text(self.spec[6]), u32(size)] + [u16(o) for o in row] + self.probes(walk)

    def probes(self, walk):
        return [u16(next((o for o in walk(h) if o is not None), None)) for h in itertools.islice(draws(0x70726F6265), 64)]

    def header(self):
        keys = b'', b'a', b'{b}c', b'd{e}f', b'0123456789abcdef', b'key:000000000001 of the shardd mapping digest'
        return b''.join([text(b'shardd-mapping\x01'), text(self.spec[1][:-2]), text(self.spec[8]), text(self.spec.get(9, b''))] +
                        [self.hash(key).to_bytes(8, 'big') for key in keys] + [u32(self.replicas), u32(self.spread), u32(len(self.ids))] +
                        [text(id) + (text(zone) if self.spread else b'') for id, zone in zip(self.ids, self.zones)])

def turned(row, at): return itertools.chain(itertools.islice(row, at, None), itertools.islice(row, at))
def u16(owner): return (0xFFFF if owner is None else owner).to_bytes(2, 'big')
def u32(n): return int(n).to_bytes(4, 'big')
def text(b): return u32(len(b)) + b

if __name__ == '__main__':
    with open(sys.argv[1], 'rb') as f: mapping = Mapping(*codec.saved(f.read()))
    for key in map(os.fsencode, sys.argv[2:]):
        nodes = mapping.names(mapping.hash(key))[:mapping.replicas]
        sys.stdout.buffer.write(key + b'\t' + b','.join(nodes) + b'\n')
