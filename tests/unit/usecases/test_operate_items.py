"""Two operators act on the same item at once: the loser learns what the item is now. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright.app import App
from lakewright.errors import SequenceConflict, UsageError
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.store import Store, Write
from lakewright.serve.http.faults import status_of
from lakewright.slices.application import application_of
from lakewright.usecases.items import find_item
from lakewright.usecases.operate_items import (
    accept_item,
    release_item,
    requeue_items,
    resolve_item,
    skip_item,
    unskip_item,
)

NAME = "orders/2024-05-03.csv"
WHO: Mapping[str, Any] = {"author": "ann", "reason": "mended"}
OTHER: Mapping[str, Any] = {"author": "bob", "reason": "was first"}


def shop_of(folder: Path) -> App:
    processed(folder, "historic", BY_SLICE)
    return App.open(folder, environ={})


def fail(app: App) -> None:
    """Make the last slice a failed one."""
    requeue_items(app, [NAME], **OTHER)
    application = application_of("shop", app.project.entity("orders"))
    claim = app.ledger.acquire(
        find_item(app, NAME).item_id,
        application,
        app.holder,
        duration=timedelta(seconds=60),
        token_counter="orders",
    )
    app.ledger.failed(claim, {"error": {"message": "no"}})


def before_writes(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Let others act just before each of the next writes, after the item was read for it."""
    real, left = Ledger._write, list(acts)

    def write(ledger: Ledger, *appends: Any, **told: Any) -> Any:
        if left:
            left.pop(0)()
        return real(ledger, *appends, **told)

    monkeypatch.setattr(Ledger, "_write", write)


def test_who_resolves_an_item_that_another_operator_just_resolved_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = shop_of(tmp_path)
    fail(app)
    before_writes(monkeypatch, lambda: resolve_item(app, NAME, **OTHER))
    with pytest.raises(UsageError, match="has no unresolved failure") as caught:
        resolve_item(app, NAME, **WHO)
    assert "`lakewright manifest show" in (caught.value.remedy or "")
    with pytest.raises(UsageError, match="has no unresolved failure") as later:
        resolve_item(app, NAME, **WHO)
    assert status_of(caught.value) == status_of(later.value) == 400


def test_every_action_reads_an_item_again_that_has_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = shop_of(tmp_path)
    changed = tmp_path / "lake/bronze/orders/2024-05-03.csv"

    def touch() -> None:
        """Append records that leave the verdict as it is."""
        changed.write_text(changed.read_text() + "2\n")
        accept_item(app, NAME, **OTHER)

    changed.write_text("id\n7\n")
    before_writes(monkeypatch, lambda: accept_item(app, NAME, **OTHER))
    with pytest.raises(UsageError, match="has not changed since it was recorded"):
        accept_item(app, NAME, **WHO)
    monkeypatch.undo()

    before_writes(monkeypatch, touch)
    assert requeue_items(app, [NAME], **WHO).rows
    monkeypatch.undo()

    before_writes(monkeypatch, lambda: requeue_items(app, [NAME], **OTHER))
    assert {row.verdict.value for row in skip_item(app, NAME, **WHO).rows} == {"skipped"}
    monkeypatch.undo()

    before_writes(monkeypatch, lambda: unskip_item(app, NAME, **OTHER))
    with pytest.raises(UsageError, match="isn't skipped for everyone"):
        unskip_item(app, NAME, **WHO)
    monkeypatch.undo()

    application = application_of("shop", app.project.entity("orders"))
    item = find_item(app, NAME).item_id
    duration = timedelta(seconds=60)
    claim = app.ledger.acquire(item, application, app.holder, duration=duration, token_counter="orders")
    before_writes(monkeypatch, lambda: app.ledger.processed(claim, {}))
    with pytest.raises(UsageError, match="isn't locked"):
        release_item(app, NAME, is_forced=True, **WHO)


def test_an_item_that_changes_all_the_time_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = shop_of(tmp_path)
    fail(app)
    tries: list[Write] = []

    def conflict(_: Store, write: Write) -> None:
        tries.append(write)
        raise SequenceConflict("it is at 7, not at 6 as it was when last seen")

    monkeypatch.setattr(type(app.store), "write", conflict)
    with pytest.raises(SequenceConflict) as caught:
        resolve_item(app, NAME, **WHO)
    assert len(tries) == 2
    assert (caught.value.remedy or "").endswith("shows its state; then try again.")


def test_a_slice_that_is_gone_from_bronze_is_not_requeued(tmp_path: Path) -> None:
    """It was, and the next run failed it, so that it had to be resolved and skipped."""
    app = shop_of(tmp_path)
    (tmp_path / "lake/bronze/orders/2024-05-01.csv").unlink()
    with pytest.raises(UsageError, match=r"2024-05-01.csv of orders is not in .*, or not complete there"):
        requeue_items(app, [NAME, "orders/2024-05-01.csv"], late=True, **WHO)
    assert find_item(app, NAME).revision == 1, "none was requeued"
    app.close()


def test_later_slices_that_are_gone_are_left_out_by_cascade(tmp_path: Path) -> None:
    """Slices are archived: what `status` names for a changed one must not be refused because of them."""
    app = shop_of(tmp_path)
    (tmp_path / "lake/bronze/orders/2024-05-02.csv").unlink()
    done = requeue_items(app, ["orders/2024-05-01.csv"], cascade=True, **WHO)
    revisions = {day: find_item(app, f"orders/2024-05-0{day}.csv").revision for day in (1, 2, 3)}
    assert revisions == {1: 2, 2: 1, 3: 2}
    (told,) = (note for note in done.notes if "2024-05-02.csv" in note)
    assert told.endswith("so it is not processed again; records of it may get the rows of earlier slices")
    app.close()
