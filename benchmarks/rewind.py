"""An undo compared with a RESTORE by hand, and with processing the later slices, in one warm process.

python -m benchmarks Rewind
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.fold import ENTITY, MODULE, PROJECT, processor_seconds, write_slices
from benchmarks.report import Row
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.places import Address

__all__ = ["run"]

SLICES, LATER, UNDONE = 8, 4, 3
"""Slices of each table, those after the older one that is undone, and newest ones undone one by one."""

NAMES = ("warm", "warm_by_hand", "undone", "by_hand", "warm_older", "older")


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the processor time of undos beside that of what they are compared with."""
    del rounds  # both ways are measured in one process
    command = [sys.executable, "-m", "benchmarks.rewind", str(folder)]
    spent = json.loads(time_command(command).output.splitlines()[-1])
    return [
        Row(
            "the newest slice undone : a RESTORE by hand",
            _ratio(spent["undo"], spent["restore"]),
            "<= 1.2",
        ),
        Row(
            f"the slice before the last {LATER} undone : those {LATER} processed",
            _ratio(spent["older"], spent["later"]),
            "<= 1.1",
        ),
    ]


def _ratio(one: float, other: float) -> str:
    return f"{one:.2f} s : {other:.2f} s of processor time, ratio {one / other:.2f}"


def measure(folder: Path) -> dict[str, float]:
    """Return the processor seconds of each way."""
    from lakewright.app import App
    from lakewright.usecases.process_slices import process_slices

    _write_project(folder)
    app = App.open(folder)
    for name in NAMES:
        if "older" not in name:
            assert process_slices(app, name).error is None
    _by_turns(app, "warm", "warm_by_hand")
    undone, restored = _by_turns(app, "undone", "by_hand")

    # Processing is warm by now; this way of an undo is warmed up as that of the newest slice is.
    _older(app, folder, "warm_older")
    older, later = _older(app, folder, "older")
    app.close()
    return {"undo": median(undone), "restore": median(restored), "older": older, "later": later}


def _older(app: App, folder: Path, entity: str) -> tuple[float, float]:
    """Return the seconds of undoing the slice before the last ones, and of processing these."""
    from lakewright.usecases.process_slices import process_slices

    bronze = folder / "lake" / "bronze" / entity
    slices = sorted(path.name for path in bronze.iterdir())
    late = [bronze / name for name in slices[-LATER:]]
    for path in late:
        path.rename(folder / path.name)
    assert process_slices(app, entity).error is None
    for path in late:
        (folder / path.name).rename(path)
    later = _spent(lambda: process_slices(app, entity))
    return _spent(lambda: _undo(app, entity, slices[-LATER - 1])), later


def _by_turns(app: App, entity: str, by_hand: str) -> tuple[list[float], list[float]]:
    """Return the seconds of undoing the newest slices of one table, and of restoring its twin."""
    silver = app.project.entity(by_hand).places(app.project.lake).silver
    names = sorted(
        path.name for path in Path(app.project.entity(entity).places(app.project.lake).bronze).iterdir()
    )
    undone, restored = [], []
    for number in range(1, UNDONE + 1):
        restored.append(_spent(partial(_restore, app, silver, len(names) - number - 1)))
        undone.append(_spent(partial(_undo, app, entity, names[-number])))
    return undone, restored


def _restore(app: App, silver: Address, version: int) -> None:
    app.lake.spark.sql(f"RESTORE TABLE {silver.sql} TO VERSION AS OF {version}").collect()


def _undo(app: App, entity: str, name: str) -> None:
    from lakewright.usecases.undo_slice import undo_slice

    app.begin_run()
    undo_slice(app, entity, name, author="benchmark", reason="measured")


def _spent(do: Callable[[], object]) -> float:
    before = processor_seconds()
    do()
    return processor_seconds() - before


def _write_project(folder: Path) -> None:
    (folder / "project.yml").write_text(PROJECT)
    (folder / "model").mkdir()
    text = MODULE
    for name in NAMES:
        text += ENTITY.format(name=name, strategy="merge", fold="false")
        write_slices(folder / "lake" / "bronze" / name, SLICES)
    (folder / "model" / "entities.yml").write_text(text)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
