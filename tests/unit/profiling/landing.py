"""Folders of files as sources deliver them, and their profiles."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from lakewright.lake.object_storage import ObjectStorage
from lakewright.profiling.places import look_at_place
from lakewright.profiling.profile import EntityProfile, Profile, profile_places


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files; those whose name ends with .gz are packed."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def csv(header: str, rows: Iterable[str]) -> str:
    return "\n".join((header, *rows, ""))


def json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def parquet(columns: Mapping[str, Sequence[Any] | pa.Array]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(columns)), sink)
    return bytes(sink.getvalue())


def profile(folder: Path) -> Profile:
    return profile_places([look_at_place(str(folder), ObjectStorage())])


def only(folder: Path) -> EntityProfile:
    (entity,) = profile(folder).entities
    return entity
