"""Text files whose bytes are not what their names say: compressed under another name, or an archive.

Spark decompresses by names alone; under another one it takes the bytes for text, or finds no rows.

Source: the rules of reading, "Places".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from lakewright.lake.file_probe import ARCHIVES, PROBE, compression_of, named_compression
from lakewright.manifest.payload import MAY_SKIP
from lakewright.reader.source import Source, SourceFile

__all__ = ["Begin", "check_compression", "compression_fault", "first_bytes"]

Begin = Callable[[str, int], bytes]
"""Returns the first bytes of a file, by its path and their number."""

_SUFFIXES: Mapping[str, str] = {"gzip": ".gz", "bzip2": ".bz2", "zstd": ".zst"}
_BLOCKS = frozenset({"snappy", "lz4"})
_REQUESTS = 32
_LARGEST_BLOCK = 1 << 26


def first_bytes(source: Source, begin: Begin, size: int = PROBE) -> dict[str, bytes]:
    """Return the first bytes of the files of a source that aren't empty, by their names."""
    wanted = [file for file in source.files if file.size]

    def first(file: SourceFile) -> bytes:
        try:
            return begin(source.path(file), size)
        except OSError:
            return b""  # Spark reports the error when it reads the file

    if source.is_local or len(wanted) < 2:
        return {file.name: first(file) for file in wanted}
    with ThreadPoolExecutor(min(_REQUESTS, len(wanted))) as pool:
        return {file.name: found for file, found in zip(wanted, pool.map(first, wanted), strict=True)}


def check_compression(source: Source, firsts: Mapping[str, bytes]) -> None:
    """Raise the source's error if Spark would not decompress a text file as it is compressed.

    Args:
        source: The source.
        firsts: The first bytes of its files, by their names.
    """
    for file in source.files:
        fault = compression_fault(file, firsts.get(file.name, b""))
        if fault is not None:
            why, remedy = fault
            path = source.path(file)
            raise source.error(f"{path} {why}", f"{remedy}, then resolve the item.", **{MAY_SKIP: True})


def compression_fault(file: SourceFile, first: bytes) -> tuple[str, str] | None:
    """Return what a file is in spite of its name, and how it must be delivered; None if it is as named."""
    found, named = compression_of(first), named_compression(file.name)
    if found in ARCHIVES:
        return f"is a {found} archive", "Deliver the files in it instead of the archive"
    if found == named and found not in _BLOCKS:
        return None
    own = file.name.rpartition("/")[2]
    if found is not None:
        suffix = _SUFFIXES.get(found)
        if suffix is None:
            return f"is compressed with {found}, which can't be read", "Deliver it compressed with gzip"
        plain = own.rpartition(".")[0] if named is not None else own
        return (
            f"is compressed with {found}, which its name does not say",
            f"Deliver it as {plain}{suffix}",
        )
    if named is None or not first or not _is_plain(first, named, file.size):
        return None
    return f"is not compressed with {named}, as its name says", f"Deliver it as {own.rpartition('.')[0]}"


def _is_plain(first: bytes, named: str, size: int) -> bool:
    """Return whether bytes without a known mark aren't compressed in a way that has none."""
    if named == "deflate":
        return first[0] & 0x0F != 8 or int.from_bytes(first[:2]) % 31 != 0
    if named in _BLOCKS:  # Hadoop's own blocks begin with their lengths
        whole, part = int.from_bytes(first[:4]), int.from_bytes(first[4:8])
        return len(first) < 8 or whole > _LARGEST_BLOCK or part > size - 8
    return True
