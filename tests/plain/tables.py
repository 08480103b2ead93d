"""Delta tables in plain Python: files of Parquet, and a log with the actions that Spark's Delta writes."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable
from tests.plain.session import PlainSession
from tests.silver import rows_of

from lakewright.lake.commit import METADATA

# It brings no types.
pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

Action = dict[str, Any]
Row = dict[str, Any]

KINDS: Mapping[str, Any] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""Types of Arrow by the names that Delta has for them."""

PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "invariants", "appendOnly"],
}
"""The protocol of a table with deletion vectors; these tables have none in their files."""

_APP, _NUMBER = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"


class _Clock:
    """Gives each commit a time of its own, in milliseconds, as commits of Spark have that take longer."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), 0

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 2, time.time_ns() // 1_000_000)
            time.sleep(max(0.0, self._last / 1000 - time.time()))
            return self._last


_now = _Clock()


@dataclass
class TableLog:
    """What the log of a table says at one version."""

    version: int = -1
    files: dict[str, Action] = field(default_factory=dict)
    meta: Action = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, action: Action) -> None:
        """Take up one action."""
        if "add" in action:
            self.files[action["add"]["path"]] = action["add"]
        elif "remove" in action:
            self.files.pop(action["remove"]["path"], None)
        elif "txn" in action:
            self.numbers[action["txn"]["appId"]] = action["txn"]["version"]
        self.meta = action.get("metaData", self.meta)
        self.protocol = action.get("protocol", self.protocol)

    @property
    def fields(self) -> list[Action]:
        """The columns as Delta has them."""
        found: list[Action] = json.loads(self.meta["schemaString"])["fields"]
        return found


@dataclass(frozen=True)
class PlainTable:
    """A table in a folder."""

    folder: Path

    @property
    def exists(self) -> bool:
        return any((self.folder / "_delta_log").glob("*.json"))

    def log(self, version: int | None = None) -> TableLog:
        """Return what the log says at a version; by default at the last one."""
        found = TableLog()
        for file in sorted((self.folder / "_delta_log").glob("*.json")):
            if version is not None and int(file.stem) > version:
                break
            found.version = int(file.stem)
            for line in file.read_text().splitlines():
                found.add(json.loads(line))
        return found

    def rows(self, version: int | None = None) -> list[Row]:
        """Return the rows of a version; by default of the last one."""
        return rows_of(self.folder, version)

    def insert(self, session: PlainSession, rows: Sequence[Row], fields: list[Action], **more: Any) -> int:
        """Commit rows beside those that are there; make the table if there is none."""
        meta = [] if self.exists else _made(fields, **more)
        partitions = (self.log().meta if self.exists else meta[1]["metaData"])["partitionColumns"]
        name = "WRITE" if self.exists or not more.get("properties") else "CREATE TABLE AS SELECT"
        adds = self._written(rows, fields, partitions)
        return self.commit(session, name, {"mode": "Append"}, [*meta, *adds])

    def replace(
        self,
        session: PlainSession,
        rows: Sequence[Row],
        fields: list[Action],
        operation: str = "WRITE",
        partition: Mapping[str, str] | None = None,
    ) -> int:
        """Commit rows in place of those that are there, or of those of one partition."""
        log, part = self.log(), dict(partition or {})
        gone = [each for each in log.files.values() if part.items() <= each["partitionValues"].items()]
        parameters: dict[str, Any] = {}
        if operation == "WRITE":
            parameters = {"mode": "Overwrite", "partitionBy": json.dumps(log.meta["partitionColumns"])}
            if part:
                parameters["predicate"] = json.dumps([f"({n} = '{v}')" for n, v in part.items()])
        meta = [] if fields == log.fields or part else [{"metaData": {**log.meta, **_schema(fields)}}]
        adds = self._written(rows, fields, log.meta["partitionColumns"])
        return self.commit(session, operation, parameters, [*meta, *map(_removed, gone), *adds])

    def commit(
        self, session: PlainSession, operation: str, parameters: Mapping[str, Any], actions: Iterable[Action]
    ) -> int:
        """Make a commit that carries what the session's commits carry; return its version.

        As with Delta, none is made if an application's number is not greater than its last one.
        """
        log = self.log()
        app, number = session.conf.get(_APP, None), int(session.conf.get(_NUMBER, "0"))
        if app is not None and log.numbers.get(app, -1) >= number:
            return log.version
        info = {
            "timestamp": _now(),
            "operation": operation,
            "operationParameters": dict(parameters),
            "readVersion": log.version,
            "engineInfo": "plain",
            "txnId": str(uuid4()),
        }
        if (text := session.conf.get(METADATA, None)) is not None:
            info["userMetadata"] = text
        txn = [{"txn": {"appId": app, "version": number, "lastUpdated": info["timestamp"]}}] if app else []
        lines = map(json.dumps, [{"commitInfo": info}, *txn, *actions])
        self.make_log_folder()
        place = self.folder / "_delta_log" / f"{log.version + 1:020}.json"
        whole = place.with_name(f".{uuid4()}")  # others never read a part of a commit
        whole.write_text("\n".join(lines))
        os.link(whole, place)
        whole.unlink()
        return log.version + 1

    def clone(self, session: PlainSession, source: PlainTable, version: int) -> None:
        """Make this a table with the files of a version of another one."""
        log = source.log(version)
        self.make_log_folder()
        for path in log.files:
            shutil.copy(source.folder / path, self.folder / path)
        meta = {"metaData": {**log.meta, "id": str(uuid4())}}
        adds = [{"add": each} for each in log.files.values()]
        self.commit(session, "CLONE", {"sourceVersion": version}, [{"protocol": log.protocol}, meta, *adds])

    def restore(self, session: PlainSession, version: int) -> None:
        """Put back the files of an earlier version."""
        now, then = self.log(), self.log(version)
        gone = [_removed(each) for path, each in now.files.items() if path not in then.files]
        back = [{"add": each} for path, each in then.files.items() if path not in now.files]
        meta = [] if now.meta == then.meta else [{"metaData": then.meta}]
        self.commit(session, "RESTORE", {"version": str(version), "timestamp": None}, [*meta, *gone, *back])

    def swap(self, session: PlainSession, source: PlainTable, properties: Mapping[str, str]) -> None:
        """Replace the table by another one's rows, columns and partitions; make it if there is none."""
        log, own = source.log(), self.log()
        made = _made(log.fields, properties=properties, partitions=log.meta["partitionColumns"])
        adds = self._written(source.rows(), log.fields, log.meta["partitionColumns"])
        gone = map(_removed, own.files.values())
        self.commit(session, "CREATE OR REPLACE TABLE AS SELECT", {}, [*made, *gone, *adds])

    def make_log_folder(self) -> None:
        """Make the folder of the log; as with Delta, it is there before files of rows are."""
        (self.folder / "_delta_log").mkdir(parents=True, exist_ok=True)

    def _written(
        self, rows: Sequence[Row], fields: list[Action], partitions: Sequence[str]
    ) -> Iterator[Action]:
        """Write rows, a file for each partition; yield the actions that add them."""
        self.make_log_folder()
        kept = [each for each in fields if each["name"] not in partitions]
        schema = pa.schema([(each["name"], KINDS[each["type"]]) for each in kept])
        parts: dict[tuple[str, ...], list[Row]] = {} if partitions or not rows else {(): []}
        for row in rows:
            parts.setdefault(tuple(row[name] for name in partitions), []).append(row)
        for values, own in parts.items():
            path = f"part-{uuid4()}.parquet"
            pq.write_table(pa.Table.from_pylist(own, schema=schema), self.folder / path)
            yield {
                "add": {
                    "path": path,
                    "partitionValues": dict(zip(partitions, values, strict=True)),
                    "size": (self.folder / path).stat().st_size,
                    "modificationTime": time.time_ns() // 1_000_000,
                    "dataChange": True,
                    "stats": _statistics(own, kept),
                }
            }


def _statistics(rows: Sequence[Row], fields: list[Action]) -> str:
    """Return the statistics of a file as Delta has them; times are those of UTC."""
    values = {each["name"]: [row[each["name"]] for row in rows] for each in fields}
    known = {name: [each for each in own if each is not None] for name, own in values.items()}
    ordered = [each["name"] for each in fields if each["type"] != "boolean" and known[each["name"]]]
    found = {
        "numRecords": len(rows),
        "minValues": {name: min(known[name]) for name in ordered},
        "maxValues": {name: max(known[name]) for name in ordered},
        "nullCount": {name: len(own) - len(known[name]) for name, own in values.items()},
    }
    return json.dumps(found, default=_as_text)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    return str(value)


def _schema(fields: list[Action]) -> Action:
    return {"schemaString": json.dumps({"type": "struct", "fields": fields})}


def _made(
    fields: list[Action], properties: Mapping[str, str] | None = None, partitions: Sequence[str] = ()
) -> list[Action]:
    """Return the actions that make a table."""
    meta = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        **_schema(fields),
        "partitionColumns": list(partitions),
        "configuration": dict(properties or {}),
        "createdTime": time.time_ns() // 1_000_000,
    }
    plain = {"minReaderVersion": 1, "minWriterVersion": 2}
    return [{"protocol": PROTOCOL if properties else plain}, {"metaData": meta}]


def _removed(add: Action) -> Action:
    kept = {name: add[name] for name in ("path", "partitionValues", "size")}
    return {"remove": {**kept, "deletionTimestamp": _now(), "dataChange": True, "extendedFileMetadata": True}}


def column(name: str, kind: str) -> Action:
    """Return a column as Delta has it."""
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def foreign_delete(folder: Path, condition: str) -> None:
    """Delete rows as another program does."""
    DeltaTable(folder).delete(condition)
