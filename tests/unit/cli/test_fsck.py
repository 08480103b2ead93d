"""What `fsck` finds, and what repairs it: `processing-manifest.md`, "State" (invalid items)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from tests.documents import checked
from tests.unit.cli.surroundings import Answered, FakeApp, call_with

from lakewright.manifest.claim import Claim
from lakewright.manifest.lease import LEASE, Holder, Lease
from lakewright.manifest.record import Application, State
from lakewright.manifest.store import Put, Write
from lakewright.manifest.watermarks import WATERMARK, Watermark
from lakewright.spec.models.places import Address, Places
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.stores.sqlite.database import SqliteStore

# It brings no types.
pa: Any = import_module("pyarrow")

ORDERS = Application.named("lakewright/shop/orders", "orders")
HOLDER = Holder("elsewhere", 7, "then", "run-1", "ada")
MINUTE = timedelta(seconds=60)


@pytest.fixture
def app(tmp_path: Path) -> FakeApp:
    """A lake of two slices, of which the first is processed by commit 1."""
    bronze = tmp_path / "bronze"
    bronze.mkdir()
    for name in ("1.csv", "2.csv"):
        (bronze / name).write_text(name)
    made = FakeApp(bronze=bronze, store=SqliteStore(tmp_path / "manifest.db"))
    silver = Address(location=str(tmp_path / "silver"))
    made.project.entities["orders"].places = lambda _: Places(SliceFolder(str(bronze)), silver, raw="")
    call_with(made, "manifest", "discover")
    made.ledger.processed(taken(made, "1.csv"), {"watermarks": {"day": {"type": "long", "value": 3}}})
    commit(made, 1)
    return made


def item(app: FakeApp, name: str) -> str:
    return (app.bronze / name).as_uri()


def taken(app: FakeApp, name: str) -> Claim:
    counter = f"table {app.bronze.parent}/silver"
    return app.ledger.acquire(item(app, name), ORDERS, HOLDER, duration=MINUTE, token_counter=counter)


def commit(app: FakeApp, number: int) -> None:
    properties = CommitProperties(app_transactions=[Transaction(str(ORDERS), number)])
    rows = pa.table({"id": [number]})
    write_deltalake(app.bronze.parent / "silver", rows, mode="append", commit_properties=properties)


def fsck(app: FakeApp, *options: str) -> tuple[int, Any]:
    answered = call_with(app, "manifest", "fsck", *options, "-o", "json")
    return answered.code, checked(json.loads(answered.out))


def problems(app: FakeApp) -> list[str]:
    code, document = fsck(app)
    assert code == bool(document["damaged"])
    return [damage["problem"] for damage in document["damaged"]]


def edit(app: FakeApp, statement: str) -> None:
    with closing(sqlite3.connect(app.bronze.parent / "manifest.db")) as connection, connection:
        connection.execute(statement)


def test_a_sound_manifest_is_said_to_be_so(app: FakeApp) -> None:
    assert fsck(app) == (0, {"damaged": []})
    assert fsck(app, "--repair", "--yes") == (0, {"damaged": [], "repairs": [], "repaired": 0})
    assert "nothing is damaged" in call_with(app, "manifest", "fsck").out


def test_a_slice_at_work_is_no_damage(app: FakeApp) -> None:
    taken(app, "2.csv")
    assert problems(app) == []
    commit(app, 2)
    assert problems(app) == []


def test_a_slice_that_changed_nothing_is_no_damage_a3(app: FakeApp) -> None:
    app.ledger.processed(taken(app, "2.csv"), {"delta_version": None, "metrics": {}})
    assert problems(app) == []
    assert json.loads(call_with(app, "manifest", "discover", "-o", "json").out)["unrecorded"] == []


def test_what_was_requeued_after_its_commit_is_no_damage(app: FakeApp) -> None:
    app.ledger.requeue(item(app, "1.csv"), "corrected")
    assert problems(app) == []
    found = json.loads(call_with(app, "manifest", "discover", "-o", "json").out)
    assert found["unrecorded"] == []


def test_an_orphaned_lease_is_removed_when_that_is_said_so(app: FakeApp) -> None:
    now = app.store.now()
    lease = Lease(item(app, "2.csv"), HOLDER, "t", now, now + MINUTE)
    app.store.write(Write(puts=(lease.put(expected=0),)))

    code, proposed = fsck(app, "--repair")
    assert code == 1
    assert [each["item_id"] for each in proposed["repairs"]] == [item(app, "2.csv")] * len(
        proposed["repairs"]
    )
    assert app.store.document(LEASE, item(app, "2.csv")) is not None

    code, done = fsck(app, "--repair", "--yes")
    assert (code, done["damaged"], done["repaired"]) == (0, [], 1)
    assert app.store.document(LEASE, item(app, "2.csv")) is None


def test_a_watermark_that_nobody_brought_is_told(app: FakeApp) -> None:
    document = next(iter(app.store.documents(WATERMARK)))
    app.store.write(Write(puts=(Put(WATERMARK, document.key, {**document.value, "value": 9}),)))
    (told,) = problems(app)
    assert "day=9" in told


def test_watermarks_that_are_gone_are_put_down_again(app: FakeApp) -> None:
    day = app.ledger.watermarks.last(ORDERS)
    app.ledger.set_watermark(ORDERS, "hour", Watermark.of(7), "by hand")
    app.ledger.set_watermark(ORDERS, "minute", Watermark.of(1), "by hand")
    app.ledger.processed(taken(app, "2.csv"), {"watermarks": {"minute": {"type": "long", "value": 2}}})
    commit(app, 2)
    standings = list(app.ledger.watermarks.all())
    edit(app, "DELETE FROM lakewright_documents WHERE kind = 'watermark'")
    assert problems(app) == [
        "the watermark day=3 of lakewright/shop/orders:orders that it set is lost",
        f"the watermark hour=7 of lakewright/shop/orders:orders that {standings[1].author} set is lost",
        "the watermark minute=2 of lakewright/shop/orders:orders that it set is lost",
    ]
    code, done = fsck(app, "--repair", "--yes")
    assert (code, done["repaired"], done["repairs"][0]) == (
        0,
        3,
        {
            "item_id": item(app, "1.csv"),
            "does": "restore the watermark day=3 of lakewright/shop/orders:orders",
        },
    )
    assert list(app.ledger.watermarks.all()) == standings
    assert day.items() <= app.ledger.watermarks.last(ORDERS).items()


def test_a_watermark_that_somebody_reset_or_set_back_is_no_damage(app: FakeApp) -> None:
    app.ledger.set_watermark(ORDERS, "day", Watermark.of(1), "read it again")
    assert problems(app) == []
    app.ledger.set_watermark(ORDERS, "day", None, "from the start")
    assert problems(app) == []
    app.ledger.processed(taken(app, "2.csv"), {"watermarks": {"day": {"type": "long", "value": 2}}})
    commit(app, 2)
    assert problems(app) == []
    edit(app, "DELETE FROM lakewright_documents WHERE kind = 'watermark'")
    (told,) = problems(app)
    assert "day=2" in told


def test_an_item_with_an_illegal_record_gets_a_new_revision(app: FakeApp) -> None:
    edit(app, "UPDATE lakewright_records SET state = 'FAILED' WHERE state = 'PROCESSING'")
    answered = call_with(app, "manifest", "fsck", "--repair")
    assert answered.code == 1
    assert "would: " in answered.out
    assert "append NEW, which starts revision 2" in answered.out

    done = call_with(app, "manifest", "fsck", "--repair", "--yes", "--author", "ada")
    assert (done.code, done.last_line) == (0, "nothing is damaged")
    mended = app.ledger.item(item(app, "1.csv"))
    assert (mended.problem, mended.revision, mended.verdict(ORDERS).value) == (None, 2, "ready")
    last = app.store.records(mended.item_id)[-1]
    assert (last.state, last.author.agent.name) == (State.NEW, "ada")
    assert str(last.content["reason"]).startswith("fsck: ")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lakewright_records SET payload = 'no json' WHERE state = 'PROCESSED'",
        "UPDATE lakewright_records SET payload = 'no json' WHERE item_id LIKE '%1.csv' AND state = 'NEW'",
    ],
)
def test_an_invalid_item_is_told_by_its_record_and_keeps_its_names(app: FakeApp, statement: str) -> None:
    edit(app, statement)
    app.store.rebuild()
    (listed,) = json.loads(call_with(app, "manifest", "ls", "--state", "invalid", "-o", "json").out)
    assert (listed["verdict"], listed["stale"], listed["holder"]) == ("invalid", False, None)
    assert "can't be read" in call_with(app, "manifest", "ls", "--state", "invalid").out
    assert fsck(app, "--repair", "--yes")[0] == 0

    mended, _ = json.loads(call_with(app, "manifest", "ls", "--state", "ready", "-o", "json").out)
    assert (mended["entity"], mended["slice"], mended["verdict"]) == ("orders", "1.csv", "ready")
    assert app.ledger.item(item(app, "1.csv")).fingerprint is not None


def test_answers_that_do_not_follow_from_the_records_are_folded_anew(app: FakeApp) -> None:
    edit(app, "UPDATE lakewright_standings SET number = 7")
    code, proposed = fsck(app, "--repair")
    assert code == 1
    assert [each["item_id"] for each in proposed["repairs"]] == ["*"]
    assert fsck(app, "--repair", "--yes")[0] == 0
    assert problems(app) == []


def test_answers_that_can_not_be_read_are_folded_anew(app: FakeApp) -> None:
    edit(app, "UPDATE lakewright_items SET fold = 'no json'")
    assert fsck(app)[0] == 1
    told = call_with(app, "manifest", "fsck").out
    assert "`lakewright manifest fsck --repair --yes` rebuilds verdicts and counts from sound records" in told
    assert told.splitlines()[-1] == "do: `lakewright manifest fsck --repair` shows what it can mend."
    assert fsck(app, "--repair", "--yes")[0] == 0


def test_discovery_names_each_slice_and_the_plan(app: FakeApp) -> None:
    (app.bronze / "1.csv").write_text("corrected")
    (app.bronze / "2.csv").unlink()
    answered: Answered = call_with(app, "manifest", "discover")
    said = [text.strip() for text in answered.out.splitlines()]
    assert said == [
        "new 0: none",
        "changed 1 have changed since they were recorded",
        f"orders 1.csv, processed {item(app, '1.csv')}",
        "missing 1 are recorded, but no longer in bronze",
        f"orders 2.csv, ready {item(app, '2.csv')}",
        "unrecorded 0: none",
        "do: `lakewright plan` shows what is due, and what to decide",
    ]
