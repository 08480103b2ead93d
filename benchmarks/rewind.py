"""An undo compared with a RESTORE by hand, and with processing the later slices, in one warm process.

An undo of an older slice applies the later ones again: each by itself where `fold: false` is declared, and
otherwise four and more in one pass. Both are compared with processing them one by one, as they came. Beside
the slices it has a cost of its own, which does not grow with them: the clone and the swap.

python -m benchmarks Rewind
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.fold import ENTITY, MODULE, PROJECT, processor_seconds, write_slices
from benchmarks.report import Row
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from lakewright.app import App
    from lakewright.spec.models.places import Address


BEFORE, LATER, UNDONE = 1, 4, 4
"""Slices before the older one that is undone, those after it, and newest ones undone one by one."""

NEWEST = ("undone", "by_hand")
OLDER = {"warm_older": "false", "older": "false", "folded": "true"}
"""Tables of which the newest slices are undone, and those of which an older one is, with their `fold`."""


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
            _ratio(spent["folded"], spent["folded_later"]),
            "<= 1.1",
        ),
        Row(
            f"the same with `fold: false`: each of those {LATER} applied by itself again",
            _ratio(spent["older"], spent["older_later"]),
            "<= 1.1",
        ),
        Row(
            "of that, beside the slices: the clone and the swap",
            f"{spent['beside']:.2f} s, {spent['beside'] / spent['older_later'] * LATER:.1f} slices",
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
    for name in NEWEST:
        assert process_slices(app, name).error is None
    # The first turn warms both ways up.
    undone, restored = (each[1:] for each in _by_turns(app, "undone", "by_hand"))

    # Processing is warm by now; an undo of an older slice is warmed up by the first table.
    found = {"undo": median(undone), "restore": median(restored)}
    for name in OLDER:
        with _measuring_replay() as replayed:
            found[name], found[f"{name}_later"] = _older(app, folder, name)
        found["beside"] = found["older"] - replayed[0] if name == "older" else found.get("beside", 0.0)
    app.close()
    return found


@contextmanager
def _measuring_replay() -> Iterator[list[float]]:
    """Collect the seconds in which an undo applies slices again."""
    from lakewright.slices.rewind import execution

    module: Any = execution  # attributes of a module are not assigned otherwise
    spent: list[float] = []
    replay = module.replay_slices

    def measured(*given: Any, **named: Any) -> Any:
        found: list[Any] = []
        spent.append(_spent(lambda: found.append(replay(*given, **named))))
        return found[0]

    module.replay_slices = measured
    try:
        yield spent
    finally:
        module.replay_slices = replay


def _older(app: App, folder: Path, entity: str) -> tuple[float, float]:
    """Return the seconds of undoing the slice before the last ones, and of processing these."""
    from lakewright.usecases.process_slices import process_slices

    bronze = folder / "lake" / "bronze" / entity
    slices = sorted(path.name for path in bronze.iterdir())
    for name in slices:
        (bronze / name).rename(folder / name)
    spent = []
    for name in slices:
        (folder / name).rename(bronze / name)
        spent.append(_spent(lambda: process_slices(app, entity)))
    later = sum(spent[-LATER:])
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
    from lakewright.usecases.rewinds import undo_slice

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
    for name, fold in {**dict.fromkeys(NEWEST, "false"), **OLDER}.items():
        text += ENTITY.format(name=name, strategy="merge", fold=fold)
        write_slices(folder / "lake" / "bronze" / name, UNDONE + 1 if name in NEWEST else BEFORE + 1 + LATER)
    (folder / "model" / "entities.yml").write_text(text)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
