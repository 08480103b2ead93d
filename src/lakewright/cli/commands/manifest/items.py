"""`lakewright manifest ls`, `show`, `stats`, `discover`, `fsck` and `watch`: what the manifest says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.commands.arguments import author_option, entity_option
from lakewright.cli.faults import FAILED, fault_line, remedy_lines
from lakewright.cli.group import command
from lakewright.cli.options import despite_faults
from lakewright.cli.page import Block, Line, Span, ago, labelled, line, status, table_of
from lakewright.cli.progress import Stopper, listening
from lakewright.cli.render.run import slice_line
from lakewright.errors import UsageError
from lakewright.errors.fault import remedy_of
from lakewright.errors.phrase import Command, Phrase
from lakewright.manifest.lock import LONGEST_SAID, Lock, failure_words, locked_error, stale_advice
from lakewright.manifest.plain_values import document_of
from lakewright.manifest.record import Record, State, format_instant
from lakewright.manifest.settings import is_taken_over
from lakewright.manifest.store import Damage
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.slices.audit import Repair
    from lakewright.usecases.items import ItemHistory, Row
    from lakewright.usecases.operate_items import ManifestCheck


@command
@click.option("--state", "words", multiple=True, metavar="WORD", help="A verdict or a state, in any case.")
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@click.option(
    "--for",
    "applicant",
    metavar="APP",
    help="What this application has before it, and what each item waits for.",
)
@click.option("--after", multiple=True, metavar="APP", help="With --for: an application to wait for.")
@entity_option()
@click.option("--stale", "is_stale", is_flag=True, help="Only items with a stale lock.")
@click.option("--limit", type=click.IntRange(min=1), help="The largest number of rows.")
@despite_faults
def list_items(
    call: Call, /, *, applicant: str | None, after: tuple[str, ...], limit: int | None, **chosen: Any
) -> None:
    """List items with their verdicts: ready, locked, failed, skipped, processed, invalid.

    Examples:
        lakewright manifest ls --entity regions
        lakewright manifest ls --state failed --state locked -o json
        lakewright manifest ls --stale
        lakewright manifest ls --for acme/loader --after acme/scanner
    """
    from lakewright.usecases.items import list_backlog
    from lakewright.usecases.items import list_items as find_items

    if applicant is not None:
        if any(chosen.values()):
            raise UsageError(
                "--for lists what one application has before it, without other choices",
                remedy="Leave out --state, --application, --entity and --stale.",
            )
        rows, warnings = list_backlog(call.app, applicant, after, limit=limit)
        call.output.labelled("warning", warnings)
    elif after:
        raise UsageError("--after is given without --for", remedy="Name the application that waits: --for.")
    else:
        rows = find_items(call.app, **chosen, limit=limit)
    call.output.answer([row.as_json() for row in rows], rows_page(rows, call.app.store.now()))


@command
@click.argument("item")
@despite_faults
def show_item(call: Call, /, item: str) -> None:
    """Show every record of one item, and its verdict for each application.

    ITEM is `ENTITY/SLICE`, a path or an id.

    Examples:
        lakewright manifest show regions/2022-01-01
        lakewright manifest show file:///lake/bronze/regions/2022-01-01
    """
    from lakewright.usecases.items import show_item as find_history

    found = find_history(call.app, item)
    call.output.answer(found.as_json(), item_page(found))


@command
def stats(call: Call, /) -> None:
    """Count items by application and verdict.

    Examples:
        lakewright manifest stats -o json
    """
    from lakewright.usecases.items import count_items

    counts = count_items(call.app)
    call.output.answer(counts, stats_page(counts))


@command
@entity_option("entities", multiple=True)
@despite_faults
def discover(call: Call, /, *, entities: tuple[str, ...]) -> int:
    """Record new slices, and list where bronze and silver differ from the manifest.

    The exit code is 1 if a folder or table can't be read.

    Examples:
        lakewright manifest discover
        lakewright manifest discover --entity regions
    """
    from lakewright.usecases.items import discover_slices

    found = discover_slices(call.app, entities)
    document = found.as_json()
    call.output.answer(document, difference_page(document))
    call.output.note(*(fault_line(error.as_fault()) for _, error in found.unreadable))
    return FAILED if found.unreadable else 0


@command
@click.option("--repair", is_flag=True, help="Show what would repair it; only --yes writes anything.")
@click.option("--yes", "-y", is_flag=True, help="With --repair: repair it, then check again.")
@author_option
def fsck(call: Call, /, *, repair: bool, yes: bool, author: str) -> int:
    """Check all records, the verdicts derived from them, leases and watermarks.

    Exits with 1 if something is damaged. Nothing else should write meanwhile.

    Examples:
        lakewright manifest fsck
        lakewright manifest fsck --repair
        lakewright manifest fsck --repair --yes
    """
    from lakewright.usecases.operate_items import check_manifest

    checked = check_manifest(call.app, repairs_it=repair and yes, author=author)
    damaged = [document_of(each, "item_id", "record_id", "problem") for each in checked.left]
    document: dict[str, Any] = {"damaged": damaged}
    if repair:
        document["repairs"] = [document_of(each, "item_id", "does") for each in checked.repairs]
    if yes:
        document["repaired"] = len(checked.found) - len(checked.left)
    call.output.result(document, _page(checked, is_shown=repair))
    return 1 if checked.left else 0


def _page(checked: ManifestCheck, *, is_shown: bool) -> Iterator[Block]:
    """Yield the damage and what repairs it; of planned repairs only that there are some, unless shown."""
    yield from damage_page(checked.found)
    if checked.found and not checked.repairs:
        what = "this fault" if len(checked.found) == 1 else "any of these faults"
        yield labelled("do", f"what is said above; --repair can't mend {what}.")
    elif checked.found and not is_shown:
        yield labelled("do", Phrase(Command("manifest", "fsck", "--repair"), " shows what it can mend."))
    elif is_shown:
        yield from repair_page(checked.repairs, is_done=checked.is_repaired)
    if checked.is_repaired:
        yield from damage_page(checked.left)


POLL = 0.1
"""Seconds between two checks whether to stop, so that Ctrl-C ends a long pause immediately."""

STATES = [state.value.lower() for state in State]


@command
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only records of this state.",
)
@click.option("--application", metavar="NAME", help="Only for this application: name, or name:instance.")
@entity_option()
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to read the manifest.",
)
def watch(
    call: Call, /, *, states: tuple[str, ...], application: str | None, entity: str | None, every: float
) -> None:
    """Print records as they are added, until Ctrl-C.

    A lock that becomes stale is reported once.

    Examples:
        lakewright manifest watch
        lakewright manifest watch --state failed --state resolved -o json
    """
    from lakewright.usecases.operate_items import ManifestWatch

    wanted = frozenset(State(state.upper()) for state in states) or frozenset(State)
    watched = ManifestWatch(call.app, wanted, application=application, entity=entity)
    with listening(lambda _: None) as stopper:
        call.output.note("Watching the manifest; Ctrl-C ends it.")
        while stopper.signal is None:
            for found in watched.news():
                _print_news(call, found)
            _pause(stopper, every)


def _pause(stopper: Stopper, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while stopper.signal is None and time.monotonic() < deadline:
        time.sleep(POLL)


def _print_news(call: Call, found: Record | Lock) -> None:
    is_lock = isinstance(found, Lock)
    if call.output.is_json:
        call.output.json_line({**({"alert": "stale_lock"} if is_lock else {}), **found.as_json()})
    elif isinstance(found, Record):
        call.output.page([record_line(found)])
    else:
        taken = is_taken_over(call.app.project.manifest)
        call.output.page(stale_lock_page(found, is_taken_over=taken))


MOST_SHOWN = 50


def rows_page(rows: Sequence[Row], now: datetime) -> Iterator[Block]:
    """Yield a table of rows, and how many there are."""
    if rows:
        yield table_of([_cells(row, now) for row in rows], "")
    yield line(Span(counted(len(rows), "item"), "dim"))


def _cells(row: Row, now: datetime) -> dict[str, object]:
    return {
        "verdict": status(row.verdict.value),
        "entity": row.owner,
        "slice": Span(row.slice),
        "since": ago(row.since, now) if row.since else "",
        "rev": row.item.revision,
        "item": Span(row.item.item_id, "dim"),
        "note": Span(_note(row)),
    }


def _note(row: Row) -> str:
    if row.lock is not None:
        return f"stale: {row.lock.stale_reason}" if row.lock.stale_reason else f"held by {row.lock.holder}"
    if (failure := failure_words(row.item)) is not None:
        return failure
    if row.waits_for:
        return f"waits for {row.waits_for}"
    return f"begun by {row.trigger}" if row.trigger else ""


def item_page(found: ItemHistory) -> Iterator[Block]:
    """Yield an item with its verdicts and all its records, in order."""
    yield line(Span(found.item.item_id, "bold"), f" revision {found.item.revision}")
    for row in found.rows:
        note = _note(row)
        yield line("  ", status(row.verdict.value), f" for {row.application}", f": {note}" if note else "")
    yield from map(_record, found.records)
    for typed in dict.fromkeys(row.next_command for row in found.rows if row.next_command):
        yield labelled("do", Phrase(typed))


def _record(record: Record) -> Line:
    run = f" run {record.run_id}" if record.run_id else ""
    return line(
        f"{record.sequence} ",
        status(record.state.value),
        f" {format_instant(record.timestamp)} for {record.application}{run}",
        Span(_by(record) + _begun_by(record), "dim"),
        below=_content(record),
    )


def _by(record: Record) -> str:
    """Return who wrote a record; nothing if that is the run that it names."""
    is_of_run = record.run_id is not None and record.author.agent.name == "lakewright"
    return "" if is_of_run else f" by {record.author.agent.name}"


def _begun_by(record: Record) -> str:
    """Return which trigger started the run of a record; nothing if none did."""
    trigger = None if record.is_foreign else record.content.get("trigger")
    return f", begun by {trigger}" if trigger else ""


def _content(record: Record) -> Iterator[Line]:
    content = record.content
    if record.is_foreign:
        if content:
            yield labelled("payload", json.dumps(content, ensure_ascii=False))
        return
    if record.state is State.PROCESSED and isinstance(metrics := content.get("metrics"), Mapping):
        yield slice_line({**metrics, "slice": content.get("slice", "")})
    error = content.get("error")
    if isinstance(error, Mapping):
        yield labelled("error", str(error.get("message")))
        yield from remedy_lines(remedy_of(error))
    for key in ("reason", "entity", "watermarks", "drift"):
        if content.get(key):
            yield labelled(key, str(content[key]))


def record_line(record: Record) -> Line:
    """Return a record as one line: its time, state and item, its author and the reason."""
    error, reason = record.content.get("error"), record.content.get("reason")
    said = error.get("message") if isinstance(error, Mapping) else error or reason
    first = next(iter(str(said or "").splitlines()), "")[:LONGEST_SAID]
    run = f", run {record.run_id}" if record.run_id else ""
    return line(
        Span(f"{format_instant(record.timestamp)} ", "dim"),
        status(record.state.value),
        f" {record.item_id} for {record.application}",
        Span(f"{_by(record)}{run}{_begun_by(record)}", "dim"),
        f": {first}" if first else "",
    )


def stale_lock_page(lock: Lock, *, is_taken_over: bool) -> Iterator[Block]:
    """Yield the notice that a lock has become stale, which runs may take over, with its remedy."""
    yield line(Span("stale lock", "bold yellow"), f": {locked_error(lock).message}")
    yield line(Span("  do: ", "dim"), stale_advice(lock, is_taken_over=is_taken_over))


def stats_page(stats: Mapping[str, Mapping[str, int]]) -> Iterator[Block]:
    """Yield the number of items by application and verdict."""
    if not stats:
        yield line("the manifest is empty")
    for application, counts in stats.items():
        numbers = [part for verdict, count in counts.items() for part in (f" {count:,} ", status(verdict))]
        yield line(Span(application, "bold"), ":", *numbers)


def damage_page(damages: Sequence[Damage]) -> Iterator[Block]:
    """Yield one line for each piece of damage."""
    for damage in damages:
        where = damage.item_id if damage.record_id is None else f"{damage.item_id} record {damage.record_id}"
        yield line(status("FAILED"), Phrase(f" {where}: ", damage.problem))
    text = f"{counted(len(damages), 'fault')} found" if damages else "nothing is damaged"
    yield line(Span(text, "bold" if damages else "green"))


def repair_page(repairs: Sequence[Repair], *, is_done: bool) -> Iterator[Block]:
    """Yield one line for each repair that was made, or would be."""
    for repair in repairs:
        yield labelled("did" if is_done else "would", f"{repair.item_id}: {repair.does}")
    if repairs and not is_done:
        yield line(Span("Nothing was written; --repair --yes does this.", "dim"))


def difference_page(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Block]:
    """Yield the differences by kind: new, changed, missing, unrecorded.

    What could not be read is left out: it is reported as errors.
    """
    for kind, items in ((kind, found[kind]) for kind in _MEANING):
        what = "" if items else ": none"
        shown = [_difference(item) for item in items[:MOST_SHOWN]]
        if len(items) > MOST_SHOWN:
            shown.append(line(Span(f"{len(items) - MOST_SHOWN} more: see -o json", "dim")))
        meaning = Span(f" {_meaning(kind, items)}" if items else "", "dim")
        yield line(Span(kind, "bold"), f" {len(items)}{what}", meaning, below=shown)
    done = ("processed", "skipped")
    if found["changed"] or any(each["verdict"] not in done for each in found["missing"]):
        yield labelled("do", Phrase(Command("plan"), " shows what is due, and what to decide"))


def _difference(item: Mapping[str, Any]) -> Line:
    named = " ".join(str(part) for part in (item["entity"], item["slice"]) if part) or "of no known item"
    number = f", commit {item['number']}" if "number" in item else ""
    place = Span(f" {item['item_id']}", "dim") if item["item_id"] else ""
    verdict = item.get("verdict")
    number += f", {verdict}" if verdict else ""
    number += f", to be recorded as {item['recovered']}" if item.get("recovered") else ""
    return line(f"{named}{number}", place)


def _meaning(kind: str, items: Sequence[Mapping[str, Any]]) -> str:
    recovered = sum(1 for item in items if item.get("recovered"))
    if kind != "new" or not recovered:
        return _MEANING[kind]
    log = "as the table's log shows, without processing them"
    if recovered == len(items):
        return f"recorded now; the next run records what became of them {log}"
    return f"recorded now; the next run records {recovered} of them {log}, and processes the others"


_MEANING = {
    "new": "recorded now; the next run processes them",
    "changed": "have changed since they were recorded",
    "missing": "are recorded, but no longer in bronze",
    "unrecorded": "commits that the manifest does not have; the next run records them",
}
