"""Slices that a table has and the manifest knows nothing of, as after its loss: taken from the table's log.

Source: `processing-manifest.md`, "State" (Processed); each commit carries its item, fingerprint and metrics.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from lakewright.lake.commit import Commit, LandedCommit, is_superseded, read_commits
from lakewright.lake.observation import last_commit_number
from lakewright.manifest.commit_counter import COUNTER, raise_counter
from lakewright.manifest.item import Item, Verdict
from lakewright.slices.pending import slice_name
from lakewright.slices.reconcile import version_restored
from lakewright.spec.models.places import Address
from lakewright.strategies.summary import Summary

if TYPE_CHECKING:
    from lakewright.lake.lake import Lake
    from lakewright.manifest.ledger import Ledger
    from lakewright.manifest.record import Application
    from lakewright.slices.bench import Bench
    from lakewright.spec.models.entity import Entity, Strategy

__all__ = ["counter_of", "given_number", "has_landed", "numbers_of", "recall", "told_by", "unrecorded"]


def counter_of(silver: Address) -> str:
    """Return the key of the counter that numbers the commits to a table."""
    return f"table {silver}"


def given_number(ledger: Ledger, silver: Address) -> int:
    """Return the last number that the manifest has given to a commit to a table; 0 for none."""
    document = ledger.store.document(COUNTER, counter_of(silver))
    return int(document.value["last"]) if document is not None else 0


def has_landed(lake: Lake, silver: Address, item: Item, application: Application) -> bool:
    """Return whether an earlier attempt at an item committed, or nothing rules out that it did."""
    number, app_id = item.tokens.get(application.key), str(application)
    if number is None:
        return False
    last = last_commit_number(lake, silver, app_id)
    return (
        last is not None and last >= number and not is_superseded(lake, silver, app_id, number, item.item_id)
    )


def recall(bench: Bench, entity: Entity, items: Collection[Item]) -> dict[str, Item]:
    """Record as processed what the table has and the manifest has never begun; return those items, by id.

    Numbers of further commits lie above the table's. The log is read once: afterwards the manifest has
    numbered as many commits as the table has.
    """
    ledger, silver = bench.ledger, entity.places(bench.lake.settings).silver
    unbegun = [item for item in items if _is_unbegun(item, bench.application)]
    last = last_commit_number(bench.lake, silver, str(bench.application)) if unbegun else None
    if last is None or last <= given_number(ledger, silver):
        return {}
    recalled: dict[str, Item] = {}
    for item, commit in unrecorded(bench.lake, silver, unbegun, bench.application):
        summary, content = told_by(LandedCommit(commit.version, commit.content), entity.strategy)
        done = ledger.recover_processed(
            item,
            bench.application,
            token=commit.content["number"],
            content={"slice": slice_name(item), **content, **numbers_of(summary)},
            run_id=bench.holder.run_id,
        )
        recalled[item.item_id] = done
    raise_counter(ledger.store, counter_of(silver), last)
    # Where only the table has moved, its commits are counted anew, and nothing is lost.
    if recalled or not any(bench.application.key in item.tokens for item in items):
        bench.warn(
            f"{entity.name}: the manifest doesn't know what the table's commits up to {last} were for; by "
            f"its log the table has {len(recalled)} of {len(unbegun)} slices as they are: recorded as "
            "processed"
        )
    return recalled


def unrecorded(
    lake: Lake, silver: Address, items: Iterable[Item], application: Application
) -> Iterator[tuple[Item, Commit]]:
    """Yield the items never begun whose slice is in the table as it is now, with its commit, oldest first.

    A slice that has changed since isn't, and neither is one whose rows were removed with all others.
    """
    app = str(application)
    last: dict[str, Commit] = {}
    for commit in _standing(read_commits(lake, silver), app):
        if commit.content.get("app") == app and "item" in commit.content:
            last.setdefault(commit.content["item"], commit)
    found = [
        (item, last[item.item_id])
        for item in items
        if item.item_id in last and _is_unbegun(item, application) and _is_told_of(item, last[item.item_id])
    ]
    yield from sorted(found, key=lambda each: each[1].version)


def told_by(fact: LandedCommit, strategy: Strategy) -> tuple[Summary, dict[str, Any]]:
    """Return what a commit tells of its slice: its numbers, and what a PROCESSED says beside them."""
    metrics = {**fact.content.get("metrics", {}), "deltaVersion": fact.version}
    metrics.setdefault("strategy", strategy.value)
    summary = Summary.from_json(metrics)
    told = {key: fact.content[key] for key in ("fingerprint", "watermarks", "drift") if key in fact.content}
    return summary, {**told, "adopted": True, "commit_run": fact.content.get("run")}


def numbers_of(summary: Summary) -> dict[str, Any]:
    """Return the numbers of a slice as a PROCESSED has them."""
    return {"metrics": summary.as_json(), "delta_version": summary.delta_version}


def _is_unbegun(item: Item, application: Application) -> bool:
    """Whether an item waits for an application that has never had its lock."""
    is_ready = item.verdict(application) is Verdict.READY and item.fingerprint is not None
    return is_ready and application.key not in item.tokens


def _is_told_of(item: Item, commit: Commit) -> bool:
    """Whether a commit is of the slice as it is, and not of what was there before a `requeue`."""
    if commit.content.get("fingerprint") != item.fingerprint:
        return False
    if item.revision == 1 or item.new is None:
        return True
    is_later = commit.at is not None and commit.at.astimezone(UTC) >= item.new.since
    return is_later and commit.content.get("revision") == item.revision


def _standing(log: tuple[Commit, ...], app: str) -> Iterator[Commit]:
    """Yield the commits on which the table's last version rests, newest first."""
    by_version = {commit.version: commit for commit in log}
    commit = log[-1] if log else None
    while commit is not None and not _starts_over(commit, app):
        yield commit
        before = version_restored(commit, log) if commit.operation == "RESTORE" else commit.version - 1
        commit = by_version.get(before) if before is not None and before < commit.version else None


def _starts_over(commit: Commit, app: str) -> bool:
    """Whether a commit of others, or of TRUNCATE, left nothing of the rows before it."""
    if commit.content.get("app") in (app, f"{app}/repair"):
        return False
    parameters: Mapping[str, Any] = commit.parameters
    if commit.operation == "DELETE":
        return parameters.get("predicate") in (None, "", "[]", json.dumps(["true"]))
    is_overwritten = parameters.get("mode") == "Overwrite" and not parameters.get("predicate")
    return is_overwritten or commit.operation in ("TRUNCATE", "CLONE") or "REPLACE TABLE" in commit.operation
