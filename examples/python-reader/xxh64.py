"""XXH64 with seed 0, which the standard library lacks (doc/xxhash_spec.md of github.com/Cyan4973/xxHash)."""
M = 2**64 - 1
P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

def rotate(x, r): return (x << r | x >> 64 - r) & M
def scramble(lane, v): return rotate((lane + v * P2) & M, 31) * P1 & M

def xxh64(b):
    word = lambda at, size: int.from_bytes(b[at:at + size], 'little')
    h, at = P5, 0
    if len(b) >= 32:
        lanes = [(P1 + P2) & M, P2, 0, -P1 & M]
        while at + 32 <= len(b):
            lanes, at = [scramble(lane, word(at + 8 * j, 8)) for j, lane in enumerate(lanes)], at + 32
        h = sum(map(rotate, lanes, (1, 7, 12, 18))) & M
        for lane in lanes: h = ((h ^ scramble(0, lane)) * P1 + P4) & M
    h = h + len(b) & M
    while at + 8 <= len(b): h, at = (rotate(h ^ scramble(0, word(at, 8)), 27) * P1 + P4) & M, at + 8
    if at + 4 <= len(b): h, at = (rotate(h ^ word(at, 4) * P1 & M, 23) * P2 + P3) & M, at + 4
    for c in b[at:]: h = rotate(h ^ c * P5 & M, 11) * P1 & M
    h = (h ^ h >> 33) * P2 & M
    h = (h ^ h >> 29) * P3 & M
    return h ^ h >> 32
