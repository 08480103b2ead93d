"""`lakewright manifest`: the operator's command post over slices, their states and their locks."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lakewright.cli.call import Call
from lakewright.cli.group import LazyGroup
from lakewright.cli.items import Choice, Row, application_named, application_of, choice_of, rows_of
from lakewright.cli.page import Branch, line
from lakewright.cli.render.items import damage_page, item_page, rows_page, stats_page
from lakewright.cli.render.words import status
from lakewright.errors import UsageError
from lakewright.manifest.record import ANYONE

if TYPE_CHECKING:
    from lakewright.manifest.item import Item
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.manifest.store import Query

__all__ = ["manifest"]

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=LazyGroup, examples=["lakewright manifest ls --state failed", "lakewright manifest stats"])
def manifest() -> None:
    """See and change what the manifest knows of slices: what is done, waits, failed or is locked."""


def _operator(function: F) -> F:
    for decorate in (
        click.option(
            "--author", metavar="NAME", default=_user, show_default="your user name", help="Who did it."
        ),
        click.option("--reason", metavar="TEXT", default="none given", help="Why; kept in the record."),
    ):
        function = decorate(function)
    return function


def _user() -> str:
    return getpass.getuser()


@manifest.add(
    name="ls",
    examples=[
        "lakewright manifest ls --entity regions",
        "lakewright manifest ls --state failed --state locked -o json",
        "lakewright manifest ls --stale",
    ],
)
@click.option("--state", "states", multiple=True, metavar="WORD", help="A verdict or a state, in any case.")
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@click.option("--entity", metavar="NAME", help="Only slices of this entity.")
@click.option("--stale", is_flag=True, help="Only locks that nobody stands behind.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@click.pass_obj
def list_items(
    call: Call,
    /,
    *,
    states: tuple[str, ...],
    application: str | None,
    entity: str | None,
    stale: bool,
    limit: int | None,
) -> None:
    """List items with their verdicts: unknown, ready, locked, failed, skipped, processed, invalid."""
    try:
        choice = choice_of(states)
    except ValueError as unknown:
        raise UsageError(
            f"{unknown.args[0]!r} is neither a verdict nor a state",
            remedy="Verdicts: ready, locked, failed, skipped, processed, invalid. "
            "States: new, processing, processed, failed, resolved, skipped.",
        ) from None
    only = application_named(application) if application else None
    if entity is not None:
        only = application_of(call.app, entity)
    found = (
        row for row in _rows(call, _query(only, choice)) if choice.takes(row) and (row.is_stale or not stale)
    )
    rows = list(islice(found, limit))
    call.output.result([row.as_json() for row in rows], rows_page(rows, call.app.store.now()))


@manifest.add(name="show", examples=["lakewright manifest show file:///lake/bronze/regions/2022-01-01"])
@click.argument("item")
@click.pass_obj
def show_item(call: Call, /, item: str) -> None:
    """Show every record of one item, and what it is for each application."""
    found = _known(call, item)
    records = call.app.store.records(found.item_id)
    rows = list(rows_of(found, None, call.app.ledger.lock))
    document = {
        "item_id": found.item_id,
        "verdicts": {str(row.application): row.verdict.value for row in rows},
        "records": [record.as_json() for record in records],
    }
    call.output.result(document, item_page(found, rows, records))


@manifest.add(name="stats", examples=["lakewright manifest stats -o json"])
@click.pass_obj
def stats(call: Call, /) -> None:
    """Count items by application and verdict."""
    counts: dict[str, dict[str, int]] = {}
    for (application, verdict), count in call.app.store.counts().items():
        counts.setdefault(str(application), {})[verdict.value] = count
    call.output.result(counts, stats_page(counts))


@manifest.add(name="resolve", examples=["lakewright manifest resolve ITEM --reason 'file sent anew'"])
@click.argument("item")
@_operator
@click.pass_obj
def resolve(call: Call, /, item: str, *, author: str, reason: str) -> None:
    """Let a failed item be processed again, with its slice as it now is."""
    _did(call, _ledger(call, author).resolve(_known(call, item).item_id, reason))


@manifest.add(
    name="release", examples=["lakewright manifest release ITEM", "lakewright manifest release ITEM --force"]
)
@click.argument("item")
@click.option("--force", is_flag=True, help="Also from a holder whose lease is alive.")
@_operator
@click.pass_obj
def release(call: Call, /, item: str, *, force: bool, author: str, reason: str) -> None:
    """Free an item from a lock whose holder is gone."""
    _did(call, _ledger(call, author).release(_known(call, item).item_id, reason, is_forced=force))


@manifest.add(name="skip", examples=["lakewright manifest skip ITEM --reason 'sent twice'"])
@click.argument("item")
@click.option(
    "--for", "application", metavar="APP", help="Only for this application; without it, for every one."
)
@_operator
@click.pass_obj
def skip(call: Call, /, item: str, *, application: str | None, author: str, reason: str) -> None:
    """Have an item left alone; what waited for it goes on."""
    whom = _for(application)
    _did(call, _ledger(call, author).skip(_known(call, item).item_id, reason, application=whom))


@manifest.add(name="unskip", examples=["lakewright manifest unskip ITEM"])
@click.argument("item")
@click.option("--for", "application", metavar="APP", help="Only for this application.")
@_operator
@click.pass_obj
def unskip(call: Call, /, item: str, *, application: str | None, author: str, reason: str) -> None:
    """Take a skip back: the item is ready again, as a new revision."""
    whom = _for(application)
    _did(call, _ledger(call, author).unskip(_known(call, item).item_id, reason, application=whom))


@manifest.add(
    name="export", examples=["lakewright manifest export records.ndjson", "lakewright manifest export | gzip"]
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(call: Call, /, file: Path | None) -> None:
    """Write every record as one line of JSON, to FILE or to stdout; under `-o json` stdout gets a list."""
    import json

    from lakewright.manifest.transfer import export_records

    lines = export_records(call.app.store)
    if file is not None:
        with file.open("w", encoding="utf-8") as target:
            count = sum(target.write(f"{text}\n") > 0 for text in lines)
        call.output.result(
            {"file": str(file), "records": count}, [line(f"{count} records written to {file}")]
        )
    elif call.output.is_json:
        call.output.document([json.loads(text) for text in lines])
    else:
        for text in lines:
            call.output.out.write(f"{text}\n")


@manifest.add(name="import", examples=["lakewright manifest import records.ndjson"])
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.pass_obj
def import_file(call: Call, /, file: Path) -> int:
    """Take in the records of FILE, one line of JSON each; - reads stdin.

    Those that are there already stay as they are.
    """
    from lakewright.manifest.transfer import import_records

    with _opened(file, call) as lines:
        imported = import_records(call.app.store, lines, source=str(file))
    document = {
        "records": imported.records,
        "present": imported.present,
        "errors": [fault.as_json() for fault in imported.faults],
    }
    said = line(f"{imported.records} records taken in, {imported.present} were there already")
    wrong = (Branch(line(status("FAILED"), f" {fault}")) for fault in imported.faults)
    call.output.result(document, [*wrong, said])
    return 1 if imported.faults else 0


@manifest.add(name="fsck", examples=["lakewright manifest fsck", "lakewright manifest fsck --repair"])
@click.option("--repair", is_flag=True, help="Make what is answered from follow from the records again.")
@click.pass_obj
def check(call: Call, /, *, repair: bool) -> int:
    """Check every record, and what is answered from them; exit 1 where something is damaged.

    Records are never changed: an item with an illegal one waits until somebody skips or requeues it.
    """
    from lakewright.manifest.transfer import fsck

    if repair:
        call.app.store.rebuild()
    damages = list(fsck(call.app.store))
    document = {
        "damaged": [
            {"item_id": damage.item_id, "record_id": damage.record_id, "problem": damage.problem}
            for damage in damages
        ]
    }
    call.output.result(document, damage_page(damages))
    return 1 if damages else 0


def _ledger(call: Call, author: str) -> Ledger:
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Author
    from lakewright.stores.process import is_dead

    app = call.app
    return Ledger(app.store, Author.named(author), ids=app.ids, is_dead=is_dead, redactor=app.redactor)


def _did(call: Call, item: Item) -> None:
    rows = list(rows_of(item, None, call.app.ledger.lock))
    call.output.result(
        [row.as_json() for row in rows],
        [line(status(row.verdict.value), f" {row.item.item_id} for {row.application}") for row in rows],
    )


def _known(call: Call, text: str) -> Item:
    for item_id in dict.fromkeys((text, text.rstrip("/"), f"{text}/", *_as_path(text))):
        item = call.app.ledger.item(item_id)
        if item.sequence:
            return item
    raise UsageError(
        f"the manifest has no item {text}",
        remedy="See what there is with `lakewright manifest ls`; `discover` there records new slices.",
    )


def _rows(call: Call, query: Query) -> Iterator[Row]:
    for item in call.app.store.select(query):
        yield from rows_of(item, query.application, call.app.ledger.lock)


def _query(only: Application | None, choice: Choice) -> Query:
    from lakewright.manifest.store import Query

    # What is asked of both kinds can't be asked of the store at once: either is enough.
    is_single = not (choice.verdicts and choice.states)
    return Query(
        application=only,
        verdicts=choice.verdicts if is_single else frozenset(),
        states=choice.states if is_single else frozenset(),
    )


def _for(application: str | None) -> Application:
    return ANYONE if application is None else application_named(application)


@contextmanager
def _opened(file: Path, call: Call) -> Iterator[Iterable[str]]:
    if str(file) == "-":
        yield call.ask
        return
    try:
        with file.open(encoding="utf-8") as lines:
            yield lines
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from error


def _as_path(text: str) -> tuple[str, ...]:
    return () if ":" in text else (Path(text).absolute().as_uri(),)
