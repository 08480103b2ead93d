"""Any program's part of the manifest: `add`, `run`, `state`, and a lock held across processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakewright.cli.call import Call
from lakewright.cli.faults import FAILED, HELD, fault_line
from lakewright.cli.group import command
from lakewright.cli.page import line, status, took
from lakewright.cli.progress import HANG_UP, listening
from lakewright.errors import UsageError
from lakewright.errors.phrase import Command, Phrase
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.bus.claims import WrittenClaim
    from lakewright.bus.command_runs import CommandRun, Worked
    from lakewright.bus.manifest import Manifest
    from lakewright.bus.worklist import Backlog, Demand
    from lakewright.manifest.item import Item


as_option = click.option(
    "--as",
    "application",
    metavar="APP[:INSTANCE]",
    required=True,
    help="The application, and one of its destinations.",
)
after_option = click.option(
    "--after",
    multiple=True,
    metavar="APP[:INSTANCE]",
    help="Only items that this application has processed; may be repeated.",
)
payload_option = click.option(
    "--payload", metavar="JSON|@FILE", help="A JSON object to record; @- reads it from stdin."
)
claim_argument = click.argument("claim", metavar="CLAIM")


@contextmanager
def opened(call: Call) -> Iterator[Manifest]:
    """Yield the project's manifest."""
    from lakewright.bus.manifest import Manifest

    manifest = Manifest.of(call.app)
    try:
        yield manifest
    finally:
        manifest.stop_heartbeat()


def read_text(call: Call, text: str) -> str:
    """Return a text given as it is, as `@FILE`, or as `@-` for stdin.

    Raises:
        UsageError: The file can't be read.
    """
    if not text.startswith("@"):
        return text
    if text == "@-":
        return call.ask.read()
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"{text[1:]} can't be read: {reason}", remedy="Name a file of UTF-8 text."
        ) from error


def warn_of_unknown(call: Call, manifest: Manifest, demand: Demand) -> None:
    """Warn of applications to wait for that have no record yet, naming those that have."""
    from lakewright.manifest.applications import known_names, unknown_warnings
    from lakewright.usecases.items import project_applications

    known = known_names(manifest.store.standings(), project_applications(call.app)) if demand.after else []
    call.output.labelled("warning", unknown_warnings(demand.after, known))


@command
@click.argument("items", nargs=-1, required=True, metavar="ITEM...")
@as_option
@payload_option
def add(call: Call, /, *, items: tuple[str, ...], application: str, payload: str | None) -> None:
    """Record items as NEW; known items are left unchanged.

    A file or folder gets the id of its place. Any other text is the id.

    Examples:
        lakewright manifest add lake/bronze/people/2022-03-01.csv --as acme/landing
        lakewright manifest add 'table orders' --as acme/landing --payload '{"rows": 3}'
    """
    from lakewright.bus.manifest import id_of
    from lakewright.manifest.payload import parse_payload

    content = None if payload is None else parse_payload(read_text(call, payload))
    named = [Path(text) if _is_place(text) else text for text in items]
    with opened(call) as manifest:
        new = set(manifest.add(*named, application=application, payload=content))
    listed = [{"item_id": each, "is_new": each in new} for each in dict.fromkeys(map(id_of, named))]
    call.output.result(
        listed, [line(status("NEW") if one["is_new"] else "known", f" {one['item_id']}") for one in listed]
    )


def _is_place(text: str) -> bool:
    try:
        return bool(text.strip()) and "://" not in text and Path(text).exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False


@command
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@as_option
@after_option
@click.option("--item", metavar="ITEM", help="Only this item.")
@click.option("--match", metavar="GLOB", help="Only items whose id matches; *, ? and [...] are wildcards.")
@click.option("--limit", type=click.IntRange(min=1), help="The largest number of items.")
@click.option(
    "--in-order", "is_in_order", is_flag=True, help="Let each item wait for all that arrived before it."
)
@click.option(
    "--idempotent",
    "is_idempotent",
    is_flag=True,
    help="Take over stale locks: repeating it does no harm.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=1, help="Run this many commands at once.")
@click.option("-k", "--keep-going", is_flag=True, help="Go on after an item has failed.")
def run(call: Call, /, *, arguments: tuple[str, ...], jobs: int, keep_going: bool, **options: Any) -> int:
    """Run a command for each ready item: lock it, run, and record how the command ended.

    {item} in COMMAND is the item's id. Exit code 0 means processed, any other failed.

    Examples:
        lakewright manifest run --as acme/scanner -- ./scan.sh {item}
        lakewright manifest run --as acme/loader:north --after acme/scanner -j 4 -k -- ./load.sh
    """
    from lakewright.bus.command_runs import CommandRun
    from lakewright.bus.worklist import backlog_of

    begin = call.clock()
    with (
        opened(call) as manifest,
        listening(call.output.note, extra=HANG_UP, message=_STOPPING) as stopper,
    ):
        demand = _demand(call, manifest, jobs=jobs, **options)
        warn_of_unknown(call, manifest, demand)
        done = CommandRun(
            manifest=manifest,
            demand=demand,
            arguments=arguments,
            environ=call.environ,
            redactor=call.app.redactor,
            stops=stopper,
            forward=call.output.forward,
            report=lambda worked: _report(call, worked),
            jobs=jobs,
            keeps_going=keep_going,
        )
        done.run()
        left = backlog_of(manifest.ledger, demand)
    _print_end(call, str(demand.application), done, left)
    call.output.last(
        f"Done. PROCESSED={done.count('processed')} FAILED={done.count('failed')} "
        f"RELEASED={done.count('released')} LOST={done.count('lost') + done.count('unrecorded')} "
        f"in {took(begin, call.clock())}"
    )
    if done.error is not None:
        raise done.error
    return 128 + stopper.signal if stopper.signal is not None else _exit_code(done, left)


_STOPPING = "Stopping: the running commands get the signal, too; a second signal kills them."


def _demand(
    call: Call, manifest: Manifest, *, application: str, item: str | None, jobs: int, **given: Any
) -> Demand:
    from dataclasses import replace
    from glob import escape

    from lakewright.bus.worklist import own_application
    from lakewright.usecases.items import find_item

    if item is not None and given["match"] is not None:
        raise UsageError("--item and --match are both given", remedy="Give one of the two.")
    if given["is_in_order"] and jobs > 1:
        raise UsageError("--in-order processes one item after the other", remedy="Leave out -j.")
    demand = manifest.demand(own_application(application), **given)
    if item is None:
        return demand
    # In order, a single item that isn't ready says why.
    found = find_item(call.app, item).item_id
    return replace(demand, match=escape(found), is_in_order=True)


def _report(call: Call, worked: Worked) -> None:
    note = Phrase(": ", worked.note) if worked.note else ""
    if not call.output.is_quiet:
        call.output.note(
            line(status(worked.status), Phrase(f" {worked.item_id} ({worked.seconds:.1f} s)", note))
        )


def _print_end(call: Call, application: str, done: CommandRun, left: Backlog) -> None:
    if call.output.is_json:
        call.output.document(
            {
                "application": application,
                "items": [worked.as_json() for worked in done.worked],
                "left": left.as_json(),
                "obstacle": done.obstacle.as_fault().as_json() if done.obstacle is not None else None,
            }
        )
    if done.obstacle is not None:
        call.output.note(fault_line(done.obstacle.as_fault()))
    for text in _left(left):
        call.output.note(Phrase("left: ", text))


def _left(left: Backlog) -> Iterator[str]:
    if left.ready:
        yield f"{counted(left.ready, 'item')} ready"
    for named, number in sorted(left.waiting.items()):
        yield f"{counted(number, 'item')} waiting for {named}"
    for verdict, number in sorted(left.blocked.items()):
        yield Phrase(f"{counted(number, 'item')} {verdict}: ", Command("manifest", "ls", "--state", verdict))


def _exit_code(done: CommandRun, left: Backlog) -> int:
    if any(done.count(name) for name in ("failed", "lost", "unrecorded")):
        return FAILED
    is_held = any(number and verdict != "locked" for verdict, number in left.blocked.items())
    return HELD if done.obstacle is not None or is_held else 0


@command
@as_option
def state(call: Call, /, *, application: str) -> None:
    """Print what an application has recorded of the items that it has processed: one line of JSON each.

    They come in the order in which the items arrived.

    Examples:
        lakewright manifest state --as acme/loader
        lakewright manifest state --as acme/loader:north | jq .payload.rows
    """
    with opened(call) as manifest:
        found = manifest.state(application)
        if call.output.is_json:
            call.output.document([each.as_json() for each in found])
            return
        for each in found:
            call.output.json_line(each.as_json())


@command
@click.argument("item")
@as_option
@after_option
@click.option("--lease", metavar="TIME", help="How long the lock lasts without `renew`; default as declared.")
@click.option("--idempotent", is_flag=True, help="Take over a stale lock: repeating the work does no harm.")
def acquire(
    call: Call,
    /,
    *,
    item: str,
    application: str,
    after: tuple[str, ...],
    lease: str | None,
    idempotent: bool,
) -> None:
    """Lock an item and print the claim as JSON.

    Examples:
        lakewright manifest acquire ITEM --as acme/loader --lease 10m > claim.json
    """
    from lakewright.bus import claims
    from lakewright.bus.worklist import own_application
    from lakewright.manifest.settings import lease_duration
    from lakewright.usecases.items import find_item

    with opened(call) as manifest:
        demand = manifest.demand(own_application(application), after, is_idempotent=idempotent)
        warn_of_unknown(call, manifest, demand)
        duration = manifest.lease if lease is None else lease_duration({"lease": lease})
        claim = claims.acquire(manifest, demand, find_item(call.app, item).item_id, duration)
    call.output.document(claim.as_json())


@command
@claim_argument
def renew(call: Call, /, *, claim: str) -> None:
    """Let a claim last as long again from now.

    Examples:
        lakewright manifest renew @claim.json
    """
    from lakewright.bus import claims

    with opened(call) as manifest:
        renewed = claims.renew_claim(manifest, _claim(call, claim))
    call.output.document(renewed.as_json())


@command
@claim_argument
@payload_option
def processed(call: Call, /, *, claim: str, payload: str | None) -> None:
    """End a claim: its item is processed. CLAIM is JSON, @FILE, or @- for stdin.

    Examples:
        lakewright manifest processed @claim.json --payload '{"rows": 3}'
    """
    from lakewright.bus import claims
    from lakewright.manifest.payload import parse_payload

    written = _claim(call, claim)
    content = None if payload is None else parse_payload(read_text(call, payload))
    with opened(call) as manifest:
        _report_ended(call, written, claims.finish(manifest, written, content))


@command
@claim_argument
@click.option("--message", metavar="TEXT", default="no reason was given", help="Why; kept in the record.")
def failed(call: Call, /, *, claim: str, message: str) -> None:
    """End a claim: its item has failed and waits for an operator.

    Examples:
        lakewright manifest failed @claim.json --message 'disk full'
    """
    from lakewright.bus import claims

    written = _claim(call, claim)
    with opened(call) as manifest:
        _report_ended(call, written, claims.fail(manifest, written, message))


def _claim(call: Call, text: str) -> WrittenClaim:
    from lakewright.bus.claims import WrittenClaim

    return WrittenClaim.parse(read_text(call, text))


def _report_ended(call: Call, claim: WrittenClaim, item: Item) -> None:
    document = claim.ended_as_json(item)
    about = f" {document['item_id']} for {document['application']}"
    call.output.result(document, [line(status(document["verdict"]), about)])
