"""A lake in which nothing is due, made without Spark: entities, gold by day, their logs and the manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from deltalake import DeltaTable

from lakewright.app import App
from lakewright.lake.commit import EMPTIED, OF_BUILD
from lakewright.lake.history import mark_of
from lakewright.manifest.store import Write
from lakewright.plan.phase import Phase
from lakewright.run.builds import BuildState, RecordedBuild, recording
from lakewright.run.planning import node_of
from lakewright.schema.canonical import HASH_VERSION
from lakewright.slices.application import application_of
from lakewright.slices.chain import counter_of
from lakewright.slices.discovery import discovered, list_bronze
from lakewright.spec.models.slice_folder import SliceFolder
from lakewright.strategies.table_properties import HASH_VERSION_PROPERTY, KEY_PROPERTY, STRATEGY_PROPERTY
from lakewright.targets.definition import definition_of
from lakewright.targets.target import Target
from lakewright.usecases.declared_nodes import offline_lake, sample_workspace
from lakewright.usecases.due.observe import settle

if TYPE_CHECKING:
    from lakewright.spec.models.entity import Entity


FIRST = date(2022, 1, 1)
TIME = 1640995200000
PARTITIONS = "[{name: day, type: string}]"
PAGE = 500

Content: TypeAlias = dict[str, Any]


def write_clean_lake(
    folder: Path, *, entities: int, targets: int, slices: int, builds: int, is_settled: bool = True
) -> Path:
    """Return the folder of a project in which nothing is due.

    Args:
        folder: The folder to make.
        entities: The number of entities.
        targets: The number of targets, each of which reads the table of an entity.
        slices: The number of processed slices of each entity.
        builds: The number of built instances of each target.
        is_settled: Whether the targets are settled, as after a run.
    """
    folder.mkdir(parents=True)
    _write_model(folder, entities, targets)
    for number in range(entities):
        bronze = folder / "lake" / "bronze" / f"e{number}"
        bronze.mkdir(parents=True)
        for day in days(slices):
            (bronze / f"{day}.csv").write_text("id,n\n1,1\n")
    app = App.open(folder, environ={})
    app.make_store()
    for entity in app.project.entities.values():
        _process(app, entity)
    for number in range(targets):
        _build(app, f"g{number}", builds)
    if is_settled:
        settle(app)
    app.close()
    return folder


def days(number: int) -> list[date]:
    """Return this many days."""
    return [FIRST + timedelta(each) for each in range(number)]


def _write_model(folder: Path, entities: int, targets: int) -> None:
    files = "{settings: {bronze_path: '${entity}', silver_path: '${entity}'}}"
    lines = [f"connections: {{files: {files}}}", "entities:"]
    for n in range(entities):
        lines += [f"  e{n}:", f"    id: {n + 1}", "    connection: files", "    processtype: merge"]
        lines += ["    columns: [{name: id, fieldroles: [businesskey]}, {name: n}]"]
        lines += ["    settings: {format: csv}"]
    lines += ["mappings:"]
    for n in range(targets):
        lines += [f"  s{n}: {{kind: relation, relation: {{kind: entity, entity: e{n % entities}}}}}"]
        lines += [f"  m{n}: {{kind: sql, sql: \"select id, '$day' as day from s{n}\"}}"]
    lines += ["targets:"]
    lines += [f"  e{n}: {{kind: entity, entity: e{n}, slices: '$day*'}}" for n in range(entities)]
    for n in range(targets):
        lines += [f"  g{n}:", "    kind: relation", f"    mapping: m{n}", "    partition: {day: $day}"]
        lines += [f"    relation: {{kind: delta, location: lake/gold/g{n}, partitions: {PARTITIONS}}}"]
    names = ", ".join([*(f"e{n}" for n in range(entities)), *(f"g{n}" for n in range(targets))])
    lines += ["jobs:", f"  daily: {{parameters: [{{name: day, type: date}}], targets: [{names}]}}"]
    (folder / "project.yml").write_text(
        "name: bench\nmodules: [model.yml]\nlake: {root_folder: '${project.basedir}/lake'}\n"
    )
    (folder / "model.yml").write_text("\n".join(lines) + "\n")


def _process(app: App, entity: Entity) -> None:
    """Make the table of an entity with a commit for each slice, and record them as processed."""
    chain = app.chain(entity)
    application, counter = application_of(app.project.name, entity), counter_of(chain.silver)
    found = list(
        discovered(list_bronze(SliceFolder(chain.bronze), app.lake).slices, application, entity.called)
    )
    app.ledger.discover(iter(found))
    contents = list[Content]()
    for number, each in enumerate(found, 1):
        claim = app.ledger.acquire(
            each.item_id, application, app.holder, duration=timedelta(hours=1), token_counter=counter
        )
        at, fingerprint = f"{FIRST}T00:00:00+00:00", dict(each.fingerprint)
        app.ledger.processed(claim, {"fingerprint": fingerprint, "processing_time": at})
        told = {"app": str(application), "number": number, "item": each.item_id, "revision": 1}
        contents.append({**told, "fingerprint": fingerprint, "processingTime": at, "strategy": "merge"})
    properties = {STRATEGY_PROPERTY: "merge", HASH_VERSION_PROPERTY: HASH_VERSION}
    properties[KEY_PROPERTY] = json.dumps({"id": "string"})
    _write_table(Path(str(chain.silver.location)), contents, properties)


def _build(app: App, name: str, number: int) -> None:
    """Record builds of a target, and make its table with a commit for each."""
    job, builds, contents = app.project.jobs["daily"], list[RecordedBuild](), list[Content]()
    workspace = sample_workspace(app.project, job, offline_lake(app.project), [f"day={FIRST}"])
    target = Target.named(workspace, name)
    node, defined = node_of(target, workspace, Phase.BUILD), definition_of(target, workspace)
    (read,), (written,) = node.requires, node.provides
    mark = mark_of(app.lake, read)
    for version, day in enumerate(map(str, days(number)), 1):
        place = replace(written, partition=(("day", day),))
        build = RecordedBuild(
            app.project.name,
            job.name,
            name,
            {"day": day},
            defined.digest if defined else "",
            BuildState.DONE,
            (place,),
            {read: mark},
            {place: f"{name}@{version}"},
            order=f"{version:08}",
        )
        builds.append(build)
        contents.append({"app": "lakewright/bench", EMPTIED: {"day": day}, OF_BUILD: build.value})
    for start in range(0, len(builds), PAGE):
        app.store.write(Write(puts=recording(builds[start : start + PAGE])))
    _write_table(Path(written.name), contents, {}, ("day",))


def _write_table(
    folder: Path, contents: Sequence[Content], properties: Content, columns: tuple[str, ...] = ()
) -> None:
    """Write a table with a commit for each content and a checkpoint, without Spark."""
    (folder / "_delta_log").mkdir(parents=True)
    fields: list[Content] = [
        {"name": n, "type": "string", "nullable": True, "metadata": {}} for n in ("id", "n", "day")
    ]
    meta = {
        "id": folder.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(columns),
        "configuration": properties,
        "createdTime": TIME,
    }
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    _write_commit(folder, 0, "CREATE TABLE", {}, protocol, {"metaData": meta})
    for number, content in enumerate(contents, 1):
        values = {name: content[EMPTIED][name] for name in columns}
        file = {"path": f"part-{number}.parquet", "dataChange": True}
        add = {**file, "partitionValues": values, "size": 4, "modificationTime": TIME}
        before = {"path": f"part-{number - 1}.parquet", "dataChange": True, "deletionTimestamp": TIME}
        is_merged = not columns
        rest: list[Content] = [{"remove": before}] if is_merged and number > 1 else []
        if is_merged:
            rest.append({"txn": {"appId": content["app"], "version": number}})
        operation = "MERGE" if is_merged else "WRITE"
        _write_commit(folder, number, operation, content, {"add": add}, *rest)
    (folder / f"part-{len(contents)}.parquet").write_bytes(b"PAR1")
    DeltaTable(folder).create_checkpoint()


def _write_commit(folder: Path, version: int, operation: str, content: Content, *actions: Content) -> None:
    parameters = {"mode": "Overwrite", "predicate": '["(day)"]'} if operation == "WRITE" else {}
    info = {
        "timestamp": TIME + 1000 * version,
        "operation": operation,
        "operationParameters": parameters,
        "userMetadata": json.dumps(content),
    }
    log = folder / "_delta_log" / f"{version:020}.json"
    log.write_text("\n".join(map(json.dumps, [{"commitInfo": info}, *actions])))
