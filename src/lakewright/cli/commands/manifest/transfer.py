"""`lakewright manifest export`, `import` and `move`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import click

from lakewright.cli.call import Call
from lakewright.cli.group import command
from lakewright.cli.page import Branch, line, status
from lakewright.errors import UsageError
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.upkeep.transfer import Imported


_ESCAPED = "backslashreplace"
"""Bytes that are not UTF-8 become escapes that JSON does not allow, so that their line is rejected."""


@command(
    name="export",
    examples=["lakewright manifest export manifest.ndjson", "lakewright manifest export | gzip"],
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(call: Call, /, file: Path | None) -> None:
    """Write the manifest as lines of JSON, to FILE or to stdout; with `-o json` stdout gets a list.

    The file has records, watermarks, counters and runs, but no leases.
    """
    from lakewright.upkeep.transfer import export_manifest

    lines = export_manifest(call.app.store)
    if file is not None:
        try:
            with file.open("w", encoding="utf-8", errors="backslashreplace") as target:
                count = sum(target.write(f"{text}\n") > 0 for text in lines)
        except OSError as error:
            raise UsageError(
                f"{file} can't be written: {error.strerror}", remedy="Name a file in a writable folder."
            ) from error
        said = line(f"{counted(count, 'line')} written to {file}")
        call.output.result({"file": str(file), "lines": count}, [said])
    elif call.output.is_json:
        call.output.document([json.loads(text) for text in lines])
    else:
        for text in lines:
            call.output.out.write(f"{text}\n")


@command(
    name="import",
    examples=[
        "lakewright manifest import manifest.ndjson",
        "lakewright manifest import old.ndjson --keep-going",
    ],
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-k", "--keep-going", is_flag=True, help="Import what is right, and list what is left out.")
@click.pass_obj
def import_file(call: Call, /, file: Path, *, keep_going: bool) -> int:
    """Import what `export` wrote to FILE, or Snowplow's records, one line of JSON each; - reads stdin.

    Existing entries are kept. The whole file is checked first: if a line is wrong, nothing is imported.
    """
    from lakewright.upkeep.transfer import import_manifest

    app = call.app
    with _opened(file, call) as lines:
        imported = import_manifest(
            app.store, lines, source=str(file), keep_going=keep_going, redactor=app.redactor
        )
    document = {
        "records": imported.records,
        "documents": imported.documents,
        "present": imported.present,
        "refused": imported.is_refused,
        "errors": [fault.as_json() for fault in imported.faults],
    }
    wrong = (Branch(line(status("FAILED"), f" {fault}")) for fault in imported.faults)
    call.output.result(document, [*wrong, line(_imported(imported))])
    return 1 if imported.faults else 0


def _imported(imported: Imported) -> str:
    faults = counted(len(imported.faults), "error")
    if imported.is_refused:
        return f"Nothing was imported: {faults}. --keep-going imports what is right."
    said = (
        f"{counted(imported.records, 'record')} and {counted(imported.documents, 'document')} imported, "
        f"{imported.present:,} existed already"
    )
    return f"{said}; {faults}, listed above, left out" if imported.faults else said


@contextmanager
def _opened(file: Path, call: Call) -> Iterator[Iterable[str]]:
    """Yield the lines of a file or of stdin, which can be read several times."""
    if str(file) == "-":
        if isinstance(call.ask, TextIOWrapper):
            call.ask.reconfigure(encoding="utf-8", errors=_ESCAPED)
        with TemporaryFile("w+", encoding="utf-8", errors=_ESCAPED) as copy:
            shutil.copyfileobj(call.ask, copy)
            yield _Lines(copy)
        return
    try:
        opened = file.open(encoding="utf-8", errors=_ESCAPED)
    except OSError as error:
        raise UsageError(
            f"{file} can't be read: {error.strerror}", remedy="Name a file that `manifest export` wrote."
        ) from error
    with opened:
        yield _Lines(opened) if opened.seekable() else list(opened)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of an open file, from its beginning each time."""

    file: IO[str]

    def __iter__(self) -> Iterator[str]:
        self.file.seek(0)
        return iter(self.file)


@command(
    name="move",
    examples=["lakewright manifest move file:///old/lake/bronze file:///new/lake/bronze"],
)
@click.argument("old")
@click.argument("new")
@click.pass_obj
def move(call: Call, /, old: str, new: str) -> int:
    """Copy the records of slices below OLD to slices of the same names below NEW.

    For a lake that was moved or copied. Records below OLD are kept.
    """
    from lakewright.usecases.operate_items import move_items

    moved = move_items(call.app, old, new)
    document = {"items": list(moved.items), "errors": [fault.as_json() for fault in moved.faults]}
    wrong = (Branch(line(status("FAILED"), f" {fault.message}")) for fault in moved.faults)
    said = line(f"the records of {counted(len(moved.items), 'item')} continue below {moved.goal}")
    call.output.result(document, [*wrong, said])
    return 1 if moved.faults else 0
