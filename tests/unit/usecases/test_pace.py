"""What tells how long the slices of a step will take. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.usecases.slice_times.test_blocking_times import shop_with
from tests.unit.usecases.slice_times.test_requeued_times import app_of

from lakewright.due.facts import Slice, Subject
from lakewright.due.plan import Action, Code, Reason, Step
from lakewright.due.time_left import TimedSlice
from lakewright.slices.application import application_of
from lakewright.usecases.due.work_done import pace_of


@pytest.mark.parametrize(
    ("due", "settings", "recorded", "is_known"),
    [
        (1, "{}", {}, True),
        (1, "{}", {"folded": 4}, False),  # it took its share of a commit of several
        (4, "{}", {}, False),  # they will be folded
        (4, "{}", {"folded": 4}, True),
        (4, "{fold: false}", {}, True),
        (4, "{fold: false}", {"folded": 4}, False),
    ],
)
def test_slices_count_that_were_processed_in_the_same_way(
    tmp_path: Path, due: int, settings: str, recorded: Mapping[str, Any], is_known: bool
) -> None:
    names = [f"2024-05-{number + 1:02}.csv" for number in range(due + 1)]
    shop = shop_with(tmp_path, "description: none", *names)
    model = tmp_path / "m.yml"
    model.write_text(model.read_text().replace("processtype:", f"settings: {settings}\n    processtype:"))
    folder = tmp_path / "lake/bronze/orders"
    shop.json("manifest", "discover")
    with app_of(tmp_path) as app:
        application = application_of("shop", app.project.entity("orders"))
        claim = app.ledger.acquire(
            (folder / names[0]).as_uri(),
            application,
            app.holder,
            duration=timedelta(seconds=60),
            token_counter="orders",
        )
        content = {"metrics": {"seconds": 2.5}, "fingerprint": {"size": 5}, **recorded}
        app.ledger.processed(claim, content)
        slices = tuple(Slice(name, "", size=7) for name in names[1:])
        step = Step("1", Action.FORWARD, Subject("orders"), Reason(Code.NEW_SLICES), slices=slices)
        found = pace_of(app, step)
    assert found.sizes == {(folder / name).as_uri(): 7 for name in names[1:]}
    assert found.known == ((TimedSlice(5, 2.5),) if is_known else ())
