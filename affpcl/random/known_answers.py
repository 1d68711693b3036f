#!/usr/bin/env python3
"""Writes known_answers.txt: streams.h by its definition, from nothing but the standard library.

usage: known_answers.py > known_answers.txt

Philox4x32-10 (Salmon et al. 2011, the constants of Random123). The counter is (agent, step, replicate,
purpose << 24 | index // 2), the key is (seed's low word, seed's high word). The four words x0..x3 make two uniforms:
an even index takes the 52 high bits of x1:x0, an odd one those of x3:x2; a uniform is (bits + 1/2) / 2^52. The
normals of such a pair (u, v) are sqrt(-2 ln u) times cos(2 pi v) and sin(2 pi v), here with 50 digits.
"""
import decimal
from decimal import Decimal

WORD = 0xFFFFFFFF
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def philox(counter, key):
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x0, 0xCD9E8D57 * x2
        x0, x1, x2, x3 = p1 >> 32 ^ x1 ^ k0, p1 & WORD, p0 >> 32 ^ x3 ^ k1, p0 & WORD
        k0, k1 = k0 + 0x9E3779B9 & WORD, k1 + 0xBB67AE85 & WORD
    return x0, x1, x2, x3


def pair(seed, replicate, agent, step, purpose, index):
    """The two uniforms of an index's block, exactly."""
    x = philox((agent, step, replicate, purpose << 24 | index // 2), (seed & WORD, seed >> 32))
    return [(Decimal((x[i + 1] << 32 | x[i]) >> 12) + Decimal("0.5")) / 2**52 for i in (0, 2)]


def cos_sin(angle):
    """Taylor's series; the angle is below 2 pi."""
    total, term, n = [Decimal(0), Decimal(0)], Decimal(1), 0
    while abs(term) > Decimal("1e-70") or n < 8:
        total[n % 2] += term if n % 4 < 2 else -term
        n += 1
        term *= angle / n
    return total


def line(*meaning):
    u, v = pair(*meaning)
    odd = meaning[-1] % 2
    normal = (-2 * u.ln()).sqrt() * cos_sin(2 * PI * v)[odd]
    return ",".join([*map(str, meaning), float((u, v)[odd]).hex(), float(normal).hex()])


# The published vectors of Random123 (kat_vectors, philox4x32 10), before anything is written.
assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
assert philox((WORD,) * 4, (WORD,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == (
    0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)

decimal.getcontext().prec = 80
print("# Made by known_answers.py. Published results depend on these numbers: a change is a new kind of stream.")
print("seed,replicate,agent,step,purpose,index,uniform,normal")
for purpose in range(8):
    for index in range(4):
        print(line(1, 0, 0, 0, purpose, index))
for meaning in (
    (0, 0, 0, 0, 0, 0), (2, 0, 0, 0, 0, 0), (2**32, 0, 0, 0, 0, 0), (2**63 - 1, 0, 0, 0, 0, 1),
    (2**64 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1, 7, 2**25 - 1), (0x299F31D0A4093822, 1, 2, 3, 4, 5),
    (1, 1, 0, 0, 0, 0), (1, 9999999, 0, 0, 0, 0), (1, 0, 1, 0, 0, 0), (1, 0, 63, 0, 0, 0), (1, 0, 64, 0, 0, 0),
    (1, 0, 65, 0, 0, 1), (1, 0, 2**31, 0, 0, 0), (1, 0, 3999999999, 0, 0, 0), (1, 0, 0, 1, 0, 0), (1, 0, 0, 59, 0, 4),
    (1, 0, 0, 2**32 - 1, 0, 0), (1, 0, 0, 0, 0, 83), (1, 0, 0, 0, 0, 9999), (1, 0, 0, 0, 7, 2**25 - 2),
    (7, 3, 19, 42, 0, 2), (7, 3, 19, 42, 6, 3), (12345678901234567890, 17, 1000003, 271828, 5, 31415),
):
    print(line(*meaning))
