#!/usr/bin/env python3
"""Runs the reader over vectors: python3 check.py ../../docs/spec/*.json ../../docs/spec/vectors/*.json

Prints a line for each file, and for each mistake; exit code 1 if there was one.
"""
import json, sys
import codec, shardd
from codec import require

def mapping(v):
    tables = [bytes.fromhex(b) for b in v['tables']]
    m = shardd.Mapping(bytes.fromhex(v['topology']), tables)
    require(m.digest.hex() == v['digest'], 'content digest')
    require(m.mapping.hex() == v['mapping'] and 10 in codec.topology(bytes.fromhex(v['topology'])), 'mapping digest')
    require([id.decode() for id in m.ids] == v['owners'] and m.replicas == v['replicas'], 'owners or replicas')
    for k in v['keys']:
        key = bytes.fromhex(k['hex']) if 'hex' in k else k['text'].encode()
        require(f'{m.hash(key):016x}' == k['hash'], f'hash of {key}')
        require(m.order(m.hash(key)) == k['order'], f'order of {key}')
    for k in v['hashes']:
        require(m.order(int(k['hash'], 16)) == k['order'], f'order of hash {k["hash"]}')
    require(v['keys'] and v['hashes'], 'nothing to check')
    return len(v['keys']) + len(v['hashes'])

def encodings(v):
    for t in v['topologies']:
        b = bytes.fromhex(t['hex'])
        ids = [n['id'].decode() for n in codec.topology(b)[8]]
        require(codec.digest(b).hex() == t['digest'] and ids == [n['id'] for n in t['view'].get('nodes', [])], t['name'])
    for o in v['objects']:
        b = bytes.fromhex(o['hex'])
        entries = [None if e == 65535 else o['nodes'][e] for e in o['entries']]
        rows = [[e and e.decode() for e in row] for row in codec.table(b)[1]]
        require(codec.digest(b).hex() == o['digest'] and sum(rows, []) == entries and len(rows) == o['rows'], o['name'])
    for r in v['refused']:
        why = 'accepted'
        try: codec.topology(bytes.fromhex(r['hex']))
        except codec.Unknown: why = 'unknown'
        except ValueError: why = 'corrupt'
        require(why == r['why'], f'{r["name"]}: {why}')
    return sum(map(len, v.values()))

def exponential(v):
    for x, e in v['exponential']:
        require(shardd.exponential(int(x, 16)) == int(e, 16), f'exponential of {x}')
    return len(v['exponential'])

def refused(v):
    for r in v['mappings_refused']:
        try: shardd.Mapping(bytes.fromhex(r['topology']), [bytes.fromhex(b) for b in r['tables']])
        except ValueError: continue
        raise ValueError(f'{r["name"]}: accepted')
    return len(v['mappings_refused'])

CHECKS = {'mappings_refused': refused, 'refused': encodings, 'exponential': exponential, 'mapping': mapping}

def main(paths):
    wrong = 0
    for path in paths:
        try:
            with open(path, encoding='utf-8') as f: v = json.load(f)
            known = [check for part, check in CHECKS.items() if isinstance(v, dict) and part in v]
            require(known, f'no vectors that this program knows: none of {", ".join(CHECKS)} is there')
            print(f'{path}: {known[0](v)} cases agree')
        except (ValueError, OSError) as e: wrong, _ = 1, print(f'{path}: {e}')
        except (KeyError, TypeError, IndexError, AttributeError) as e: wrong, _ = 1, print(f'{path}: not of the form of docs/spec: {e!r}')
    return wrong

if __name__ == '__main__': sys.exit(main(sys.argv[1:]))
