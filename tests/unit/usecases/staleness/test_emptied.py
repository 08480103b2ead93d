"""Targets that keep rows of before are emptied before they are built again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.unit.usecases.staleness.test_downstream import lake as new_lake

from lakewright.app import App
from lakewright.manifest.journal import KeptRows, TargetPhase
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.usecases.staleness.emptied import forget_emptied

ADDS = KeptRows("went back, and a build adds its rows")
KEEPS = KeptRows("went back, and a build keeps rows")


def lake(path: Path) -> App:
    """Return a lake in which the tables that keep rows are there."""
    for name in ("added", "merged"):
        (path / "gold" / name).mkdir(parents=True)
    return new_lake(path)


def emptied_by(app: App, *days: str, targets: Sequence[str], by: Phase = Phase.TRUNCATE) -> Any:
    """Return a run of TRUNCATE or DESTROY, as far as its taints follow from it."""
    phase = SimpleNamespace(
        phase=by,
        targets=[SimpleNamespace(name=name, is_undone=False) for name in targets],
    )
    instances = [SimpleNamespace(parameters={"day": day}, phases=[phase]) for day in days]
    return SimpleNamespace(job="daily", run_id="emptying", phase=by, instances=instances)


def test_an_append_that_was_emptied_has_no_identity_any_more(tmp_path: Path) -> None:
    app = lake(tmp_path)
    place = TargetPhase("shop", "added", "BUILD", {"day": "2022-01-01"})
    app.store.write(Write(puts=(place.tainted("was left undone", "r1", append_id="a"),)))
    forget_emptied(app, tuple(app.journal.taints("shop")), emptied_by(app, "2022-01-03", targets=("added",)))
    (taint,) = (each for each in app.journal.taints("shop") if each.run_id == "r1")
    assert taint.append_id is None
    app.close()


def test_a_run_that_destroys_a_table_in_one_instance_has_emptied_it_for_all(tmp_path: Path) -> None:
    app = lake(tmp_path)
    (tmp_path / "gold/names/day=2022-01-02").mkdir(parents=True)
    place = TargetPhase("shop", "names", "BUILD", {"day": "2022-01-02"})
    app.store.write(Write(puts=(place.tainted("went back", kept=KEEPS),)))
    before = tuple(app.journal.taints("shop"))
    forget_emptied(app, before, emptied_by(app, "2022-01-01", targets=("names",)))
    assert [each.kept is None for each in app.journal.taints("shop")] == [False]  # the other partition
    forget_emptied(app, before, emptied_by(app, "2022-01-01", targets=("names",), by=Phase.DESTROY))
    assert [each.kept is None for each in app.journal.taints("shop")] == [True]
    app.close()
