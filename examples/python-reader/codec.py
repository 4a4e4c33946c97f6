"""The bytes of docs/spec/topology.md: what is not exactly as a writer would have written it is refused.
Left out are only the limits on names, numbers and totals."""
import hashlib

class Unknown(ValueError): """Written by a later release: keep what you have, and upgrade."""

def require(condition, what):
    if not condition: raise ValueError(what)

def digest(b): return hashlib.sha256(b).digest()[:16]

class Reader:
    def __init__(self, b): self.b, self.at = b, 0
    def left(self): return len(self.b) - self.at
    def take(self, n):
        require(n <= self.left(), 'cut short')
        self.at += n
        return self.b[self.at - n:self.at]
    def rest(self): return self.take(self.left())
    def byte(self): return self.take(1)[0]
    def fixed(self): return int.from_bytes(self.take(8), 'big')
    def digest(self): return self.take(16)
    def number(self):
        v, shift, c = 0, 0, 128
        while c & 128:
            c = self.byte()
            v, shift = v | (c & 127) << shift, shift + 7
        require(v < 2**64 and (c or shift == 7), 'number not in its shortest form')
        return v
    def text(self): return self.take(self.number())
    def list(self, read): return [read(self) for _ in range(self.number())]
    def record(self, known):
        fields, last = {}, 0
        while self.left():
            tag, payload = self.number(), Reader(self.text())
            if tag not in known: raise Unknown(f'field {tag}')
            v = fields[tag] = known[tag](payload)
            require(tag > last and v and v != bytes(16) and not payload.left(), f'field {tag}')
            last = tag
        return fields

def node(r): return {'id': r.text(), 'addr': r.text(), 'zone': r.text(), 'label': r.text(), 'weight': r.number(), 'state': r.byte()}
def reference(r): return r.byte(), r.digest(), r.number()
R = Reader
SPEC = {1: R.rest, 2: R.number, 3: R.number, 4: R.number, 5: R.number, 6: R.rest, 7: R.number, 8: R.rest, 9: R.rest, 10: R.number, 11: R.number, 12: R.fixed}
def fixeds(r): return [r.fixed() for _ in range(r.left() // 8)]
def weight(r): return r.text(), r.number()
def version(r): return r.number(), r.number()
def tenure(r): return r.text(), r.number(), version(r), version(r)
def weights(r): return r.number(), r.number(), r.list(lambda r: (version(r), r.number()))
TENURE = {1: version, 2: lambda r: r.list(tenure), 3: version, 4: lambda r: r.list(weights)}
TRANSITION = {1: R.fixed, 2: R.rest, 3: fixeds, 4: R.number, 5: lambda r: r.list(weight), 6: lambda r: r.list(reference), 7: lambda r: r.record(TENURE), 8: version, 9: version}
CAUSE = {1: R.rest, 2: R.rest, 3: R.rest, 4: R.fixed}
TOPOLOGY = {1: R.rest, 2: R.digest, 3: R.fixed, 4: R.number, 5: R.number, 6: R.digest, 7: lambda r: r.record(SPEC), 8: lambda r: r.list(node),
            9: lambda r: r.list(reference), 10: R.digest, 11: lambda r: r.record(CAUSE), 14: lambda r: r.record(TRANSITION), 15: lambda r: r.record(TENURE)}
PARAMETERS = {b'ring/1': {2}, b'maglev/1': {3}, b'slots/1': {4}, b'jump/1': {5, 6}, b'rendezvous/1': {7}}
VARIANTS, HASHES = (b'classic', b'jumpback'), (b'xxh64', b'crc16')

def topology(b):
    """Fields by tag: 7 is the spec, 8 the nodes, 9 the references, 10 the mapping digest."""
    require(b[:4] == b'SHT\x01', 'no topology')
    t = Reader(b[4:]).record(TOPOLOGY)
    spec, nodes, refs = t.get(7, {}), t.setdefault(8, []), t.setdefault(9, [])
    ids, kinds = [n['id'] for n in nodes], [kind for kind, _, _ in refs]
    for value, known in [(spec.get(1), PARAMETERS), (spec.get(6), VARIANTS), (spec.get(8), HASHES), *((n['state'], range(5)) for n in nodes), *((k, range(1, 6)) for k in kinds)]:
        if value is not None and value not in known: raise Unknown(f'{value}')
    require(t.keys() >= {1, 2, 3, 4, 5, 7} and spec.keys() >= {1, 8, 10}, 'a field is missing')
    exact = {7} if spec[1] == b'rendezvous/1' else set()
    require((spec.keys() | exact) - {9, 11, 12} == PARAMETERS[spec[1]] | {1, 8, 10} and spec.get(11, 1) == 1, 'parameters')
    steps = t.get(14)
    if steps is not None:
        if steps.get(2) not in (None, b'none'): raise Unknown(f'{steps[2]}')
        moving = [id for id, _ in steps.get(5, [])]
        owned = {n['id']: n['weight'] if n['state'] in (0, 3) else 0 for n in nodes}
        require(steps.keys() >= {1, 2, 3, 5} and len(steps[3]) == 1 and moving == sorted(set(moving)), 'transition')
        require(all(id in owned and owned[id] != w for id, w in steps[5]), 'weights before')
        before = [kind for kind, _, _ in steps.get(6, [])]
        require(before == sorted(set(before)), 'tables before')
    since = [n[0] for n in t.get(15, {}).get(2, [])]
    require(since == sorted(set(since)), 'tenures')
    require(ids == sorted(set(ids)) and kinds == sorted(set(kinds)) and all(length < 2**32 for _, _, length in refs), 'lists')
    return t

def table(b):
    """The kind, and rows of node ids; None for nobody."""
    r = Reader(b)
    require(r.take(4) == b'SHO\x01', 'no table')
    kind, rows, size, ids = r.byte(), r.number(), r.number(), r.list(Reader.text)
    width, count, packed = len(ids).bit_length(), rows * size, r.rest()
    require(len(packed) == (count * width + 7) // 8 and ids == sorted(set(ids)), 'table')
    bits = f'{int.from_bytes(packed, "little"):0{8 * len(packed)}b}'[::-1]
    entries = [int('0' + bits[i * width:(i + 1) * width][::-1], 2) for i in range(count)]
    require(max(entries, default=0) <= len(ids) and '1' not in bits[count * width:], 'entries')
    return kind, [[(ids + [None])[e] for e in entries[row * size:(row + 1) * size]] for row in range(rows)]

def saved(b):
    """A saved file's topology and tables."""
    require(b.startswith(b'shardd-topology\n\x01') and digest(b[:-16]) == b[-16:], 'no saved topology, or a damaged one')
    r = Reader(b[17:-16])
    parts = r.text(), r.list(Reader.text)
    require(not r.left(), 'bytes after the last table')
    return parts
