"""`lakewright manifest watch`: which records it prints, how, and what it says of stale locks."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from tests.unit.cli.surroundings import NOW, Answered, FakeApp, call_with
from tests.unit.cli.test_manifest import ITEM, claim, slices

from lakewright.manifest.payload import failure
from lakewright.manifest.record import Application
from lakewright.manifest.verdict import Verdict
from lakewright.testing import MemoryStore

Deed = Callable[[FakeApp], object]


@dataclass
class Passing:
    """A clock of which a second passes whenever it is asked."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


CLOCK = Passing()


class Looked(MemoryStore):
    """Something happens before each look at it, and Ctrl-C once all has happened."""

    def __init__(self, app: FakeApp, deeds: Iterator[Deed], clock: Passing) -> None:
        super().__init__(clock)
        self.app, self.deeds, self.is_begun = app, deeds, False

    def counts(self) -> Mapping[tuple[Application, Verdict], int]:
        if self.is_begun:
            deed = next(self.deeds, None)
            if deed is None:
                os.kill(os.getpid(), signal.SIGINT)
            else:
                deed(self.app)
        self.is_begun = True
        return super().counts()


def watched(*deeds: Deed, options: tuple[str, ...] = (), before: Deed = lambda app: None) -> Answered:
    app = FakeApp()
    app.store = Looked(app, iter(deeds), CLOCK)
    before(app)
    return call_with(app, "manifest", "watch", "--every", "0.1", *options)


def fail(app: FakeApp) -> None:
    app.ledger.failed(claim(app, "a"), failure(ValueError("column x is gone\nmore")))


DEEDS: tuple[Deed, ...] = (
    lambda app: slices(app, "a", "b"),
    fail,
    lambda app: app.ledger.skip(ITEM + "b", "twice"),
)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), ["NEW a", "NEW b", "PROCESSING a", "FAILED a", "SKIPPED b"]),
        (("--state", "failed", "--state", "SKIPPED"), ["FAILED a", "SKIPPED b"]),
        (("--entity", "orders", "--state", "new"), ["NEW a", "NEW b"]),
        (("--application", "lakewright/shop/orders:orders", "--state", "failed"), ["FAILED a"]),
        (("--application", "lakewright/shop/orders", "--state", "new"), ["NEW a", "NEW b"]),
    ],
)
def test_records_are_printed_as_they_come_those_that_are_asked_for(
    options: tuple[str, ...], told: list[str]
) -> None:
    answered = watched(*DEEDS, options=(*options, "-o", "json"))
    records = [json.loads(text) for text in answered.out.splitlines()]
    assert [f"{record['state']} {record['itemId'][-1]}" for record in records] == told
    assert answered.code == 0


def test_a_line_says_when_what_of_which_by_whom_and_why() -> None:
    answered = watched(*DEEDS, options=("--state", "failed"))
    assert answered.out == (
        f"{answered.out[:27]} FAILED {ITEM}a for lakewright/shop/orders:orders, run run-1: column x is gone\n"
    )
    assert "Ctrl-C ends it" in answered.err


def test_a_lock_that_became_stale_is_told_once_with_what_to_do() -> None:
    def hold(app: FakeApp) -> None:
        slices(app, "a")
        claim(app, "a")

    def wait(app: FakeApp) -> None:
        CLOCK.now += timedelta(minutes=2)

    def nothing(app: FakeApp) -> None: ...

    answered = watched(nothing, wait, nothing, nothing, before=hold)
    (said, do) = answered.out.splitlines()
    assert said.startswith(f"stale lock: {ITEM}a is locked by ada@elsewhere (process 7, run run-1) since")
    assert "its lease expired at" in said
    assert do == f"  do: run the job again, which takes it over, or `lakewright manifest release {ITEM}a`"
    (document,) = map(
        json.loads, watched(wait, nothing, options=("-o", "json"), before=hold).out.splitlines()
    )
    assert (document["alert"], document["item_id"], document["run_id"]) == ("stale_lock", f"{ITEM}a", "run-1")
    assert watched(wait, nothing, options=("--state", "failed"), before=hold).out == ""


def test_a_lock_whose_holder_lives_is_no_matter() -> None:
    def hold(app: FakeApp) -> None:
        slices(app, "a")
        claim(app, "a")

    assert "stale" not in watched(hold, lambda app: None).out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--state", "lost"), "lost"),
        (("--every", "0"), "0"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_watched(options: tuple[str, ...], said: str) -> None:
    answered = call_with(FakeApp(), "manifest", "watch", *options)
    assert (answered.code, answered.out) == (2, "")
    assert said in answered.err
