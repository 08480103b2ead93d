"""Errors of a slice's text files that can't be read as they are declared to be written."""

from __future__ import annotations

from lakewright.errors import LakewrightError, SchemaDriftError
from lakewright.lake.paths import local_path
from lakewright.manifest.payload import MAY_SKIP
from lakewright.reader.faults import FileFault
from lakewright.reader.form import Form
from lakewright.reader.lines import marked_encoding
from lakewright.reader.source import Source

__all__ = ["error_of"]

_REMEDIES = {
    "open_quote": "Close its quotes, double those inside them",
    "mixed_ends": "Use one kind of line ending",
    "long_header": "Check the separator and the line ends",
    "doubled_name": "Rename one of them in the source, whatever their case",
    "nameless": "Name it in the source, or leave it out (pandas: to_csv(…, index=False))",
}


def error_of(source: Source, fault: FileFault, form: Form) -> LakewrightError:
    """Return the error for a file of a source."""
    if fault.code == "undecodable":
        local = local_path(fault.path)
        marked = None if local is None else marked_encoding(local)
        return source.error(
            str(fault),
            f"Name the encoding of the files in the entity's settings (format: {{kind: {form.kind}, "
            f"encoding: {marked or 'windows-1252'}}}), or deliver the slice again; then resolve the item.",
            encoding=form.encoding,
        )
    remedy = f"{_REMEDIES[fault.code]}, then resolve the item."
    if fault.code in ("doubled_name", "nameless"):
        return SchemaDriftError(f"{source.label} can't be read: {fault}", remedy=remedy)
    return source.error(str(fault), remedy, **{MAY_SKIP: True})
