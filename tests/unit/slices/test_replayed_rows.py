"""The quarantine goes with a rewind: it has the bad rows of the slices that the table holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.contexts import make_context
from tests.projects import make_workspace

from lakewright.errors import BadRowsError
from lakewright.lake.commit import Commit
from lakewright.lake.delta_log import ABSENT
from lakewright.schema.fault import Fault, Reason
from lakewright.slices import slice_replay
from lakewright.slices.discovery import Slice
from lakewright.slices.quarantine import save_bad_rows
from lakewright.slices.result import SliceReport
from lakewright.slices.rewind import settlement
from lakewright.slices.slice_replay import KnownSlice
from lakewright.spec.models.entity import Strategy
from lakewright.strategies.bad_rows import BadRow
from lakewright.strategies.slice_load import LoadRequest
from lakewright.strategies.summary import Summary

NOW = datetime(2024, 5, 1, tzinfo=UTC)

PROJECT = """
connections:
  shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", on_bad_rows: quarantine}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
"""


def test_rows_of_slices_that_are_applied_again_replace_the_earlier_ones(tmp_path: Path) -> None:
    """Until the commit they lie aside; a slice that is skipped, or has no bad rows any more, keeps none."""
    workspace = make_context(make_workspace(tmp_path, PROJECT)).workspace
    lake, entity = workspace.lake, workspace.entity("orders")
    context: Any = SimpleNamespace(lake=lake)
    folder = tmp_path / "lake" / "quarantine" / "orders"

    def save(name: str, *columns: str, is_replayed: bool = False) -> None:
        slice_ = Slice(name, str(tmp_path / name), ())
        rows = [BadRow(Fault(Reason.NULL_KEY, column), "f", key={"id": 1}) for column in columns]
        save_bad_rows(lake, entity, slice_, rows, table=ABSENT, records=1, is_replayed=is_replayed)

    def kept() -> dict[str, list[str]]:
        files = sorted(folder.rglob("rows.json"))
        lines = {str(file.parent.relative_to(folder)): file.read_text().splitlines() for file in files}
        return {name: [json.loads(line)["fault"]["column"] for line in each] for name, each in lines.items()}

    for name in ("undone", "same", "mended"):
        save(name, "old")
    save("same", "new", "newer", is_replayed=True)
    save("mended", is_replayed=True)
    assert kept() == {
        "mended": ["old"],
        "same": ["old"],
        "same/_replayed": ["new", "newer"],
        "undone": ["old"],
    }

    content = {"slice": "same", "metrics": {"quarantined": 2}}
    slices = [
        {"item_id": "file:///b/undone", "revision": 0, "is_skipped": True},
        {"item_id": "file:///b/same", "revision": 0, "token": 3, "content": content},
        {"item_id": "file:///b/mended", "revision": 0, "token": 3, "content": {"slice": "mended"}},
    ]
    commit = Commit(3, None, "", {}, {"rewind": {"slices": slices}})
    for _ in range(2):  # a rewind whose process died is settled again
        settlement._settle_quarantine(context, entity, commit)
        assert kept() == {"same": ["new", "newer"]}


def test_a_replay_puts_bad_rows_beside_those_of_the_table_and_says_so(tmp_path: Path) -> None:
    """A rebuild under another declaration may put other rows aside: none goes without a word."""
    workspace = make_context(make_workspace(tmp_path, PROJECT)).workspace
    warnings: list[str] = []
    context: Any = SimpleNamespace(lake=workspace.lake, warn=warnings.append)
    entity = workspace.entity("orders")
    replay = slice_replay._Replay(context, entity, "app", lambda: None, {})
    fault = Fault(Reason.NULL_KEY, "id")
    bad = [BadRow(fault, "f", key={"id": 1})]
    replay._put_aside(Slice("s1", "s1", ()), bad, ABSENT, records=1)
    assert warnings == [f"orders: s1: 1 bad row is put aside: {bad[0].text()}"]
    folder = tmp_path / "lake" / "quarantine" / "orders" / "s1"
    assert [file.name for file in folder.rglob("*.json")] == ["rows.json"]
    assert not (folder / "rows.json").exists()

    many = [BadRow(fault, "f", key={"id": n}) for n in range(entity.settings.max_bad_rows + 1)]
    with pytest.raises(BadRowsError):
        replay._put_aside(Slice("s2", "s2", ()), many, ABSENT, records=1)
    with pytest.raises(BadRowsError, match="every row of the slice is bad") as caught:
        replay._put_aside(Slice("s3", "s3", ()), bad, ABSENT, records=0)
    # An earlier version of Lakewright took such a slice as processed.
    context.is_cut_off = lambda: False
    known: Any = SimpleNamespace(name="s3", fingerprint={})
    failed: Any = slice_replay._failed(context, entity, known, caught.value)
    assert failed.message.startswith("the slice s3 of orders cannot be applied again: every row")
    assert failed.remedy.endswith(
        "To leave it out, type `lakewright manifest skip orders/s3`, then `lakewright apply`."
    )


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_replay_takes_for_the_first_time_is_warned_of_as_a_run_does(*, is_new: bool) -> None:
    """`processing-strategies.md`, "Schema Drift": it is logged. What was logged before is not repeated."""
    warnings: list[str] = []
    reports: list[SliceReport] = []
    context: Any = SimpleNamespace(warn=warnings.append, report=reports.append, clock=lambda: NOW)
    entity: Any = SimpleNamespace(
        name="orders", called="orders", settings=SimpleNamespace(delete_missing=False)
    )
    replay = slice_replay._Replay(context, entity, "app", lambda: None, {})
    request = LoadRequest("s1", Strategy.HISTORIC, NOW)
    load: Any = SimpleNamespace(
        request=request, drift=SimpleNamespace(messages=("column 'b' is new",)), bad_rows=()
    )
    known = KnownSlice("file:///b/s1", "s1", {}, NOW, Strategy.HISTORIC, is_new=is_new)
    replay._report(known, load, Summary(Strategy.HISTORIC, records_in_slice=1, unchanged=1))
    assert warnings == (["orders: s1: column 'b' is new"] if is_new else [])
    (report,) = reports
    assert (report.slice, report.is_beside, bool(report.result and report.result.warnings)) == (
        "s1",
        True,
        is_new,
    )


def test_all_slices_of_a_replay_share_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of Spark for each slice made the undo of an older slice dearer than processing its slices."""
    begun: list[object] = []

    def strict_session(lake: object) -> object:
        begun.append(lake)
        return object()

    monkeypatch.setattr(slice_replay, "strict_session", strict_session)
    context: Any = SimpleNamespace(lake="lake")
    replay = slice_replay._Replay(context, context, "app", lambda: None, {})
    assert begun == []
    assert replay.session is replay.session
    assert begun == ["lake"]
