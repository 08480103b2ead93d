"""Spark options for CSV slices with line breaks inside quotes.

Source: rules of entities, "Slices"; RFC 4180, section 2.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright.errors import SliceError
from lakewright.lake.file_probe import quoted_line_ends
from lakewright.lake.paths import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakewright.slices.discover import Slice

__all__ = ["quote_options"]


def quote_options(session: SparkSession, slice_: Slice) -> dict[str, str]:
    """Return the CSV options to read line breaks inside quotes.

    Without such line breaks no options are needed, and Spark can read one file in several tasks.

    Raises:
        SliceError: A quote is not closed at the end of its field, or lines have different endings.
    """
    whole = {"multiLine": "true", "unescapedQuoteHandling": "RAISE_ERROR"}
    ends: set[str] = set()
    files = {path: local_path(path) for path in slice_.paths}
    remote = [path for path, local in files.items() if local is None]
    if remote and not _has_odd_lines(session, remote):
        return {}
    for path, local in files.items():
        try:
            own = _far_line_ends(session, path) if local is None else quoted_line_ends(local)
        except ValueError as error:
            raise SliceError(
                f"the slice {slice_.name} can't be read: {path}: {error}",
                remedy="Close its quotes, double those inside them, then resolve the item; "
                "otherwise resolve and skip it.",
            ) from error
        if own is None:
            return whole
        ends |= own
    if len(ends) > 1:
        raise SliceError(
            f"the slice {slice_.name} has line breaks inside quotes, and lines with different endings: "
            f"{', '.join(sorted(map(repr, ends)))}",
            remedy="Use one kind of line ending, then resolve the item; otherwise resolve and skip it.",
        )
    # If Spark knows the line ending, it keeps other line breaks inside quotes.
    return {**whole, "lineSep": ends.pop()} if ends else {}


def _has_odd_lines(session: SparkSession, paths: Sequence[str]) -> bool:
    """Return whether a line of remote files has an odd number of quotes, found by a query."""
    lines = session.read.option("__globPaths__", "false").text(list(paths))
    return not lines.where("length(value) % 2 <> length(replace(value, '\"')) % 2").isEmpty()


def _far_line_ends(session: Any, path: str) -> frozenset[str] | None:
    """Return the line endings in a remote file, of which a temporary copy is made."""
    place = session._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(session._jsc.hadoopConfiguration())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy").with_suffix(Path(path).suffix)
        system.copyToLocalFile(False, place, session._jvm.org.apache.hadoop.fs.Path(f"file://{copy}"), True)
        return quoted_line_ends(copy)
