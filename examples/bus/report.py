"""Tells what the loader has put into the database, from its records alone: the database isn't asked."""

from collections import Counter
from pathlib import Path

from lakewright import Manifest

with Manifest.open(Path(__file__).parent) as manifest:
    slices: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for loaded in manifest.state("acme/loader"):
        slices[loaded.payload["table"]] += 1
        rows[loaded.payload["table"]] += loaded.payload["rows"]
for table, number in slices.items():
    print(f"{table}: {number} slices with {rows[table]} rows")
