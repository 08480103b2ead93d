"""Small files with wrong bytes: what a disk, a network or a program has damaged."""

from __future__ import annotations

import random

SIGNS = [*(bytes([each]) for each in b'",;\n\r\\{}[]:\0 01-e\x7f\x80\xff'), b"\r\n", b"\xef\xbb\xbf", b"\xc3"]


def mutated(content: bytes, rng: random.Random, most: int = 3) -> bytes:
    """Return a content with one or more changes: bytes set, taken out, put in, doubled or cut off."""
    found = bytearray(content)
    for _ in range(rng.randint(1, most)):
        place, size = rng.randrange(len(found) + 1), rng.choice((1, 1, 1, 2, 7, 40))
        change = rng.choice(("set", "flip", "flip", "remove", "insert", "insert", "double", "cut"))
        if change == "set":
            found[place : place + 1] = bytes([rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))])
        elif change == "flip" and place < len(found):
            found[place] ^= 1 << rng.randrange(8)
        elif change == "remove":
            del found[place : place + size]
        elif change == "insert":
            found[place:place] = rng.choice(SIGNS)
        elif change == "double":
            found[place:place] = found[place : place + size]
        elif change == "cut" and rng.random() < 0.3:
            del found[place:]
    return bytes(found)
