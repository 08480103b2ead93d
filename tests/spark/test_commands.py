"""Commands called in this process, on the session of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.commands import InProcess
from tests.people import write_people

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_project_is_run_queried_tested_and_destroyed_on_a_shared_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    people = InProcess(write_people(tmp_path / "a lake"), spark)

    assert people.json("job", "daily", "build")["status"] == "SUCCESS"
    assert people.json("sql", "SELECT count(*) AS n FROM people") == [{"n": 3}]
    assert people.json("test")["status"] == "SUCCESS"
    assert {item["verdict"] for item in people.json("manifest", "ls")} == {"processed"}
    assert people.json("job", "daily", "destroy", "--yes")["status"] == "SUCCESS"
    assert spark.range(3).count() == 3


LAYERS = """
relations:
  people:
    kind: values
    records: [{id: 7, city: Oslo}]
    columns: {id: long, city: string}
mappings:
  cities: {kind: sql, sql: "SELECT city FROM named"}
  named: {kind: relation, relation: people}
  quoted: {kind: sql, sql: "SELECT ${sql(who)} AS name"}
"""


def test_sql_reads_each_layer_by_its_name_and_refuses_an_ambiguous_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A8: a relation never hides an entity; DESCRIBE, SHOW TABLES and mappings work."""
    write_people(tmp_path / "lake")
    (tmp_path / "lake" / "model" / "layers.yml").write_text(LAYERS)
    offline, people = InProcess(tmp_path / "lake"), InProcess(tmp_path / "lake", spark)
    assert people.json("job", "daily", "build")["status"] == "SUCCESS"

    refused = offline.run("sql", "SELECT * FROM people")
    assert refused.code == 2, refused.all
    assert "the entity silver.people and the relation gold.people" in refused.err
    tables = [tuple(row.values()) for row in offline.json("sql", "SHOW TABLES")]
    assert tables == [
        ("silver", "people"),
        ("gold", "people"),
        ("mapping", "cities"),
        ("mapping", "named"),
        ("mapping", "quoted"),
    ]
    assert len(offline.json("sql", "show tables in mapping like 'c%';")) == 1

    both = "SELECT count(people.id) AS n FROM silver.people UNION ALL SELECT id FROM gold.people"
    assert people.json("sql", both) == [{"n": 3}, {"n": 7}]
    assert people.json("sql", "SELECT * FROM cities JOIN mapping.named USING (city)") == [
        {"city": "Oslo", "id": 7}
    ]
    who = "O'Hara, C:\\x"
    assert people.json("sql", "SELECT * FROM quoted", "-D", f"who={who}") == [{"name": who}]  # A9
    described = people.json("sql", "DESCRIBE silver.people")
    assert [(row["col_name"], row["data_type"]) for row in described][:2] == [
        ("id", "bigint"),
        ("name", "string"),
    ]
    assert "Spark accepts 3 mappings" in people.run("validate", "--spark", "-D", "who=x").out  # B3
    (people.folder / "model" / "new.yml").write_text(
        "relations: {later: {kind: delta, location: later}}\n"
        "mappings: {later: {kind: relation, relation: later}}"
    )
    unknown = people.run("validate", "--spark", "-D", "who=x")
    assert (unknown.code, "Spark accepts 3 mappings" in unknown.out) == (0, True), unknown.all
    assert "Spark can't check mapping 'later' yet: " in unknown.err
    (people.folder / "model" / "wrong.yml").write_text(
        'mappings: {wrong: {kind: sql, sql: "SELECT nothing"}}'
    )
    rejected = people.run("validate", "--spark", "-D", "who=x")
    assert (rejected.code, "mapping 'wrong': Spark rejects it" in rejected.err) == (2, True), rejected.all
    assert "Did you mean mapping.cities?" in people.run("sql", "SELECT * FROM citys").err
    assert people.run("sql", "DROP VIEW named").code == 2
    assert not [table for table in spark.catalog.listTables() if table.name in ("people", "cities")]
