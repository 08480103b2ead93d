"""A lake whose slices follow from a seed, and what the plain-Python model makes of them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from tests.acceptance.command import Lakewright
from tests.model.strategies import Model, Record, Row

CANARY = "canary-5up3r-s3cr3t"
"""A secret in the project's configuration and the environment; it must show nowhere."""

PREFIX = "dlf_"
ENTITIES = {"customers": "merge", "prices": "historic", "countries": "full"}
"""Names of the entities, with their strategies."""

LEASE = 4
"""Seconds."""

KEYS = 24

PROJECT = """
name: chaos
modules: [model]
lake: {{root_folder: "${{project.basedir}}/lake", systemfield_prefix: {prefix}}}
manifest: {manifest}
"""

ENTITY = """
  {name}:
    id: {number}
    connection: source
    processtype: {strategy}
    columns: [{{name: id, fieldroles: [businesskey]}}]
    watermark: [{{column_name: mark, operation: and, expression: "'${{last_value}}'"}}]
"""

MODEL = """
config: ["spark.hadoop.chaos.password={canary}"]
connections:
  source:
    settings: {{bronze_path: "${{destination}}", silver_path: "${{destination}}"}}
entities:
{entities}
targets:
  customers: {{kind: entity, entity: customers}}
  prices: {{kind: entity, entity: prices}}
  countries: {{kind: entity, entity: countries}}
jobs:
  daily: {{targets: [customers, prices, countries]}}
"""


@dataclass(frozen=True)
class Expected:
    """A table after some slices, and the metrics of each; a slice's number times ten is its time."""

    rows: tuple[tuple[Any, ...], ...]
    counts: tuple[Mapping[str, int], ...]
    marks: tuple[int, ...]


class ChaosLake(Lakewright):
    """A project of one entity a strategy, with a command to run it."""

    @classmethod
    def make(cls, folder: Path, manifest: Mapping[str, Any]) -> ChaosLake:
        """Return the project, written into a new folder, without any slice."""
        (folder / "model").mkdir(parents=True)
        settings = json.dumps({"lease": f"{LEASE}s", **manifest})
        (folder / "project.yml").write_text(PROJECT.format(prefix=PREFIX, manifest=settings))
        entities = "".join(
            ENTITY.format(name=name, number=number, strategy=strategy)
            for number, (name, strategy) in enumerate(ENTITIES.items(), 1)
        )
        (folder / "model" / "model.yml").write_text(MODEL.format(canary=CANARY, entities=entities))
        return cls(folder)

    def arrive(self, seed: int, number: int) -> None:
        """Put slice `number` of each entity into bronze; a seed always makes the same ones."""
        for name in ENTITIES:
            path = self.folder / "lake" / "bronze" / name / f"{number:03}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}")
            _frame(records_of(seed, name, number)).to_parquet(part, index=False)
            part.rename(path)

    def table(self, entity: str) -> Path:
        """Return the folder of an entity's silver table."""
        return self.folder / "lake" / "silver" / entity


def records_of(seed: int, entity: str, number: int) -> list[Record]:
    """Return the records of a slice."""
    chance = random.Random(f"{seed} {entity} {number}")
    keys = sorted(chance.sample(range(KEYS), chance.randint(1, KEYS)))
    deleted = [None, False, False, False, True] if ENTITIES[entity] != "full" else [None, False]
    return [
        _record(
            key,
            {"name": chance.choice([None, "", "a", "b"]), "size": chance.choice([None, 0.0, 1.5])},
            mark=10 * number + chance.randint(0, 20),
            deleted=chance.choice(deleted),
        )
        for key in keys
    ]


def _record(key: int, values: dict[str, Any], *, mark: int, deleted: bool | None) -> Record:
    return Record(key=(key,), values=values, stored=values, mark=mark, deleted=deleted)


def shown(row: Row) -> tuple[Any, ...]:
    """Return a row of the model as tables are compared with it."""
    record = row.record
    values = (record.stored["name"], record.stored["size"], record.mark)
    return (*record.key, *values, row.deleted, row.seen, row.valid_from, row.valid_to)


def expected(seed: int, entity: str, slices: int) -> Expected:
    """Return what an entity's table holds after its first slices."""
    model, counts, marks = Model(ENTITIES[entity]), [], []
    for number in range(1, slices + 1):
        records = records_of(seed, entity, number)
        counts.append(asdict(model.apply(records, 10 * number, str(number))))
        marks.append(max(record.mark for record in records if record.mark is not None))
    return Expected(tuple(map(shown, model.rows)), tuple(counts), tuple(marks))


def _frame(records: list[Record]) -> pd.DataFrame:
    columns = {
        "id": pd.array([record.key[0] for record in records], dtype="Int64"),
        "name": pd.array([record.values["name"] for record in records], dtype="string"),
        "size": pd.array([record.values["size"] for record in records], dtype="Float64"),
        "mark": pd.array([record.mark for record in records], dtype="Int32"),
        f"{PREFIX}deleted": pd.array([record.deleted for record in records], dtype="boolean"),
    }
    return pd.DataFrame(columns)
