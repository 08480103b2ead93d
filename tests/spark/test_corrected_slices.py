"""A slice with bad rows that was corrected: the commands that `status` names bring its rows in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.commands import InProcess
from tests.silver import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTITY = """
  {name}:
    id: {id}
    connection: shop
    processtype: {strategy}
    columns: [{{name: id, fieldroles: [businesskey]}}, {{name: n, datatype: int}}]
    settings: {{on_bad_rows: quarantine}}
"""
TIME = ', processingTime: "${slice.date}"'
DAYS = ("2024-05-01", "2024-05-02", "2024-05-03")
ROWS: dict[str, list[dict[str, object]]] = {
    DAYS[0]: [{"id": 1, "n": 1}, {"id": 2, "n": 1}],
    DAYS[1]: [{"id": 1, "n": 2}],
    DAYS[2]: [{"id": 1, "n": 3}],
}
BAD: dict[str, object] = {"id": 2, "n": "many"}
GOOD: dict[str, object] = {"id": 2, "n": 2000}


Kind: TypeAlias = "tuple[str, bool, str]"
"""A strategy, whether a time is declared, and the day of the slice with bad rows."""

ALL = list(product(("merge", "historic"), (True, False), DAYS[1:]))


def aside(shop: InProcess) -> list[str]:
    """Return the entities that have bad rows in quarantine."""
    found = shop.json("status")["findings"]
    return sorted(each["subject"]["name"] for each in found if each["code"] == "bad_rows")


@pytest.mark.nightly  # a correction is taken in test_apply.py, with times in test_undone_and_corrected.py
@pytest.mark.parametrize("several", [ALL])
def test_status_names_commands_that_bring_in_the_rows_of_a_corrected_slice(
    spark: SparkSession, tmp_path: Path, several: Sequence[Kind]
) -> None:
    """With declared times, a rebuild refused the slice as changed, and a run refused its time."""
    kinds = {f"{kind[0]}_{'timed' if kind[1] else 'plain'}_{kind[2][-1]}": kind for kind in several}
    shop = InProcess(tmp_path, spark)
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\nlake: {root_folder: lake}\n")
    entities = [
        ENTITY.format(name=name, id=n, strategy=kind[0]) for n, (name, kind) in enumerate(kinds.items(), 1)
    ]
    targets = [
        f"  {name}: {{kind: entity, entity: {name}{TIME if kind[1] else ''}}}" for name, kind in kinds.items()
    ]
    (tmp_path / "m.yml").write_text(
        'connections: {shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}", '
        "bronze_format: json}}}\n"
        f"entities:{''.join(entities)}\ntargets:\n" + "\n".join(targets) + "\n"
        f"jobs: {{daily: {{targets: [{', '.join(kinds)}]}}}}\n"
    )

    def put(name: str, day: str, *more: dict[str, object]) -> None:
        folder = tmp_path / "lake/bronze" / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = "".join(json.dumps(row) + "\n" for row in (*ROWS[day], *more))
        (folder / f"{day}.json").write_text(rows)

    for name, (_, _, bad) in kinds.items():
        for day in DAYS:
            put(name, day, *([BAD] if day == bad else []))
    shop.json("job", "daily", "build")
    assert aside(shop) == sorted(kinds)

    for name, (_, _, bad) in kinds.items():
        put(name, bad, GOOD)
    for name, (_, _, bad) in kinds.items():
        assert shop.run("decide", f"{name}/{bad}.json", "take").code == 0
    done = shop.run("apply")
    assert done.code == 0, done.all

    assert aside(shop) == []
    for name, (strategy, is_timed, bad) in kinds.items():
        rows = rows_of(tmp_path / "lake/silver" / name)
        current = sorted((row["id"], row["n"]) for row in rows if row.get("dlf_IsCurrent", True))
        assert current == [(1, 3), (2, 2000)], name
        if strategy == "historic" and is_timed:
            assert sorted((row["id"], row["n"], str(row["dlf_ValidFrom"])[:10]) for row in rows) == [
                *((1, number, day) for number, day in enumerate(DAYS, 1)),
                (2, 1, DAYS[0]),
                (2, 2000, bad),
            ], name
