"""The manifest as a whole: `export`, `import`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Branch, line
from lakewright.cli.render.words import status
from lakewright.errors import UsageError

__all__ = ["export", "import_file"]

_ESCAPED = "backslashreplace"
"""Bytes that are no text come out as an escape that JSON doesn't have: their line is refused, and named."""


@command(
    name="export",
    examples=["lakewright manifest export manifest.ndjson", "lakewright manifest export | gzip"],
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(call: Call, /, file: Path | None) -> None:
    """Write all of the manifest as lines of JSON, to FILE or to stdout; under `-o json` stdout gets a list.

    That is every readable record, then watermarks, counters and the history of runs; leases are left out.
    """
    from lakewright.manifest.transfer import export_manifest

    lines = export_manifest(call.app.store)
    if file is not None:
        try:
            with file.open("w", encoding="utf-8", errors="backslashreplace") as target:
                count = sum(target.write(f"{text}\n") > 0 for text in lines)
        except OSError as error:
            raise UsageError(
                f"{file} can't be written: {error.strerror}", remedy="Name a file in a folder that takes it."
            ) from error
        call.output.result({"file": str(file), "lines": count}, [line(f"{count} lines written to {file}")])
    elif call.output.is_json:
        call.output.document([json.loads(text) for text in lines])
    else:
        for text in lines:
            call.output.out.write(f"{text}\n")


@command(name="import", examples=["lakewright manifest import manifest.ndjson"])
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.pass_obj
def import_file(call: Call, /, file: Path) -> int:
    """Take in what `export` wrote to FILE, or records of Snowplow's, one line of JSON each; - reads stdin.

    What is there already stays as it is.
    """
    from lakewright.manifest.transfer import import_manifest

    with _opened(file, call) as lines:
        imported = import_manifest(call.app.store, lines, source=str(file))
    document = {
        "records": imported.records,
        "documents": imported.documents,
        "present": imported.present,
        "errors": [fault.as_json() for fault in imported.faults],
    }
    said = line(
        f"{imported.records} records and {imported.documents} documents taken in, "
        f"{imported.present} were there already"
    )
    wrong = (Branch(line(status("FAILED"), f" {fault}")) for fault in imported.faults)
    call.output.result(document, [*wrong, said])
    return 1 if imported.faults else 0


@contextmanager
def _opened(file: Path, call: Call) -> Iterator[Iterable[str]]:
    if str(file) == "-":
        if isinstance(call.ask, TextIOWrapper):
            call.ask.reconfigure(encoding="utf-8", errors=_ESCAPED)
        yield call.ask
        return
    try:
        lines = file.open(encoding="utf-8", errors=_ESCAPED)
    except OSError as error:
        raise UsageError(
            f"{file} can't be read: {error.strerror}", remedy="Name a file that `manifest export` wrote."
        ) from error
    with lines:
        yield lines
