"""`lakewright manifest resolve`, `skip` and so on, `export`, `import` and `move`: records that people add."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import entity_option, operator_options
from lakewright.cli.group import Command, command
from lakewright.cli.options import Decorator, stacked
from lakewright.cli.page import line, status
from lakewright.errors import LakewrightError, UsageError
from lakewright.manifest.plain_values import document_of
from lakewright.spec.words import counted, first_of

if TYPE_CHECKING:
    from lakewright.upkeep.transfer import Imported
    from lakewright.usecases.items import Row


MOST_NAMED = 10


items_argument = stacked(
    click.argument("items", nargs=-1, metavar="[ITEM]..."),
    entity_option(),
    click.option("--state", "states", multiple=True, metavar="WORD", help="Select by verdict or state."),
    click.option("--all", "is_all", is_flag=True, help="Select all items that it is meant for."),
    click.option("--yes", "-y", is_flag=True, help="Change what is selected; without it, it is only shown."),
)
"""Adds the argument and the options that say which items an action is for."""


def _chosen(
    call: Call, action: str, items: tuple[str, ...], given: Mapping[str, Any], *, is_forced: bool
) -> tuple[str, ...]:
    """Return the items to change; print those that are selected if they are only to be shown.

    Raises:
        UsageError: Items are both named and selected, or neither.
    """
    from lakewright.usecases.operate_items import select_items

    is_selection = bool(given["is_all"] or given["entity"] or given["states"])
    if is_selection == bool(items):
        raise UsageError(
            "items are both named and selected" if items else "no item is named",
            remedy="Name items by ENTITY/SLICE, path or id, or select them with --entity, --state or --all.",
        )
    if items:
        return items
    rows = select_items(call.app, action, given["states"], entity=given["entity"], is_forced=is_forced)
    if given["yes"] and rows:
        return tuple(row.item.item_id for row in rows)
    shown = [line(status(row.verdict.value), f" {row.entity or row.application} {row.slice}") for row in rows]
    what = f"would {action} {counted(len(rows), 'item')}"
    end = f"{what}; nothing was changed: add --yes to do it" if rows else "no item is selected"
    call.output.result([row.as_json() for row in rows], [*shown, line(end)])
    return ()


def _ids(call: Call, action: str, chosen: Iterable[str]) -> Iterable[str]:
    """Return the ids of items, each once. A slice that no run has seen yet can be skipped: it is recorded."""
    from lakewright.usecases.items import find_item, find_or_record_item

    find = find_or_record_item if action == "skip" else find_item
    return dict.fromkeys([find(call.app, text).item_id for text in chosen])


def _action(*options: Decorator) -> Callable[[Callable[[], None]], Command]:
    """Return a decorator that makes a command, which changes the items that are named or selected.

    The function has its name, one of `ACTIONS`, and its help.
    """

    def decorated(function: Callable[[], None]) -> Command:
        name = function.__name__

        @stacked(items_argument, *options, operator_options)
        def run(call: Call, /, items: tuple[str, ...], **given: Any) -> None:
            from lakewright.usecases.operate_items import ACTIONS

            selection = {each: given.pop(each) for each in ("is_all", "entity", "states", "yes")}
            chosen = _chosen(call, name, items, selection, is_forced=given.get("is_forced", False))
            if not chosen:
                return
            rows: list[Row] = []
            try:
                # Requeued items are checked together: if one must not be requeued, none is.
                for each in [chosen] if name == "requeue" else _ids(call, name, chosen):
                    done = ACTIONS[name].act(call.app, each, **given)
                    rows += done.rows
                    if done.later:
                        what = "processed again after it" if given["cascade"] else "in doubt now"
                        call.output.note(f"{what}: {first_of(done.later, MOST_NAMED)}")
                    call.output.labelled("warning", done.notes)
            except LakewrightError:
                if rows:
                    call.output.note(f"{counted(len(rows), 'item')} changed before the error")
                raise
            named = ((row.verdict.value, f" {row.item.item_id} for {row.application}") for row in rows)
            page = [line(status(verdict), text) for verdict, text in named]
            call.output.result([row.as_json() for row in rows], page)

        run.__doc__ = function.__doc__
        return command(run)

    return decorated


@_action()
def resolve() -> None:
    """Make failed items ready again, with the current content of their slices.

    ITEM is `ENTITY/SLICE`, a path or an id.

    Examples:
        lakewright manifest resolve people/2022-01-01.csv --reason 'file sent again'
        lakewright manifest resolve --entity people
        lakewright manifest resolve --all --yes
    """


@_action(
    click.option("--force", "is_forced", is_flag=True, help="Remove the lock even if its holder is alive.")
)
def release() -> None:
    """Remove locks whose holders have ended.

    ITEM is `ENTITY/SLICE`, a path or an id.

    Examples:
        lakewright manifest release people/2022-01-01.csv
        lakewright manifest release --all --yes
    """


@_action(
    click.option("--for", "application", metavar="APP", help="Only for this application; by default for all.")
)
def skip() -> None:
    """Skip items; items that waited for them continue.

    ITEM is `ENTITY/SLICE`, a path or an id.

    Examples:
        lakewright manifest skip people/2022-01-01.csv --reason 'sent twice'
        lakewright manifest skip --entity people --yes
    """


@_action(click.option("--for", "application", metavar="APP", help="Only for this application."))
def unskip() -> None:
    """Undo skips: the items are ready again, as new revisions.

    ITEM is `ENTITY/SLICE`, a path or an id.

    Examples:
        lakewright manifest unskip people/2022-01-01.csv
    """


@_action(
    click.option("--cascade", is_flag=True, help="Process later slices again, too."),
    click.option("--late", is_flag=True, help="Allow it although later slices are processed."),
)
def requeue() -> None:
    """Requeue items, so that they are processed again with the current content of their slices.

    Later slices whose rows may be in doubt are listed.
    ITEM is `ENTITY/SLICE`, a path or an id.

    Examples:
        lakewright manifest requeue people/2022-01-01.csv --reason 'file was corrected'
        lakewright manifest requeue people/2022-01-01.csv --cascade
        lakewright manifest requeue --entity people --state processed
    """


@_action()
def accept() -> None:
    """Accept the present content of changed slices without processing them.

    ITEM is `ENTITY/SLICE`, a path or an id. The options select
    processed items whose slices have changed.

    Examples:
        lakewright manifest accept people/2022-01-01.csv --reason 'only its time has changed'
        lakewright manifest accept --entity people
        lakewright manifest accept --all --yes --reason 'the lake was copied'
    """


_ESCAPED = "backslashreplace"
"""Bytes that are not UTF-8 become escapes that JSON does not allow, so that their line is rejected."""


@command
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def export(call: Call, /, file: Path | None) -> None:
    """Write the manifest as lines of JSON, to FILE or to stdout; with `-o json` stdout gets a list.

    The file has all but leases.

    Examples:
        lakewright manifest export manifest.ndjson
        lakewright manifest export | gzip
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


@command
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-k", "--keep-going", is_flag=True, help="Import what is right, and list what is left out.")
def import_file(call: Call, /, file: Path, *, keep_going: bool) -> int:
    """Import what `export` wrote to FILE, or Snowplow's records, one line of JSON each; - reads stdin.

    Existing entries are kept. If a line is wrong, nothing is imported.

    Examples:
        lakewright manifest import manifest.ndjson
        lakewright manifest import old.ndjson --keep-going
    """
    from lakewright.upkeep.transfer import import_manifest

    app = call.app
    with _opened(file, call) as lines:
        imported = import_manifest(
            app.store, lines, source=str(file), keep_going=keep_going, redactor=app.redactor
        )
    counts = ("records", "documents", "present")
    document = document_of(imported, *counts, refused=imported.is_refused, errors=imported.faults)
    wrong = (line(status("FAILED"), f" {fault}") for fault in imported.faults)
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


@command
@click.argument("old")
@click.argument("new")
def move(call: Call, /, old: str, new: str) -> int:
    """Copy the records of slices below OLD to slices of the same names below NEW.

    For a lake that was moved or copied.

    Examples:
        lakewright manifest move file:///old/lake/bronze file:///new/lake/bronze
    """
    from lakewright.usecases.operate_items import move_items

    moved = move_items(call.app, old, new)
    document = {"items": list(moved.items), "errors": [fault.as_json() for fault in moved.faults]}
    wrong = (line(status("FAILED"), f" {fault.message}") for fault in moved.faults)
    said = line(f"the records of {counted(len(moved.items), 'item')} continue below {moved.goal}")
    call.output.result(document, [*wrong, said])
    return 1 if moved.faults else 0
