"""Look back: tables at a time, what a slice changed, the life of a record."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.acceptance.lake import SmallLake
from tests.commands import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST, SECOND, THIRD = "2022-01-01", "2022-02-01", "2022-03-01"
AMOUNT, OTHER = Decimal("1234567890.12345600"), Decimal("1234567890.12345601")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallLake:
    """Two entities with three slices each, and the relations that read them."""
    lake = SmallLake.make(tmp_path_factory.mktemp("past") / "small", spark)
    model = lake.folder / "model" / "model.yml"
    model.write_text(
        model.read_text().replace(
            "mappings:",
            "  prices_then: {kind: entity, entity: prices, asOf: 2022-01-15}\n"
            "  listed: {kind: values, columns: {id: int}, records: [[1]]}\n"
            "  landed: {kind: file, format: parquet, location: '${project.basedir}/lake/bronze/customers'}\n"
            "mappings:",
            1,
        )
    )
    slices = {
        FIRST: [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}],
        SECOND: [{"id": 1, "v": "A"}, {"id": 2, "v": "b"}],
        THIRD: [{"id": 1, "v": "A"}, {"id": 2, "v": "B", "amount": OTHER}, {"id": 3, "v": "c"}],
    }
    for day, rows in slices.items():
        for entity in ("customers", "prices"):
            lake.slice(entity, day, [{"amount": AMOUNT, **row, "name": row["v"]} for row in rows])
    for entity in ("customers", "prices"):
        done = lake.run("process", entity, "--processing-time", "${slice.date}")
        assert done.code == 0, done.all
    return lake


class TestAsOf:
    def test_an_entity_with_history_is_read_as_it_was_valid(self, lake: SmallLake) -> None:
        query = "SELECT id, v FROM prices ORDER BY id"
        for at, values in (
            ("2022-01-31T23:59:59.999999", "ab"),
            ("2022-02-01", "Ab"),
        ):
            assert "".join(row["v"] for row in lake.json("sql", query, "--as-of", at)) == values, at
        assert lake.json("sql", query, "--as-of", "2021-12-31") == []

    def test_an_entity_without_history_is_read_in_the_version_of_that_time(self, lake: SmallLake) -> None:
        query = "SELECT count(*) AS n FROM silver.customers"
        assert lake.json("sql", query, "--as-of", datetime.now(UTC).isoformat()) == [{"n": 3}]
        done = lake.run("sql", query, "--as-of", "2022-06-01")
        assert done.code == 1
        assert "knows no version from 2022-06-01T00:00:00+00:00 or before; it begins at 20" in done.err

    def test_a_relation_says_the_time_itself(self, lake: SmallLake) -> None:
        rows = lake.json("sql", "SELECT v FROM prices_then ORDER BY id")
        assert [row["v"] for row in rows] == ["a", "b"]

    def test_what_keeps_no_past_is_named(self, lake: SmallLake) -> None:
        query = "SELECT count(DISTINCT a.id) AS n FROM landed a, listed b, prices"
        done = lake.run("sql", query, "--as-of", "2022-02-15")
        assert "the relation landed keeps no past: its rows are those of today" in done.all
        assert "listed" not in done.err
        assert "landed" not in lake.run("sql", query).err

    def test_a_text_that_is_no_time_is_refused(self, lake: SmallLake) -> None:
        done = lake.run("sql", "SELECT 1", "--as-of", "yesterday")
        assert done.code == 2
        assert "'yesterday'" in done.err


class TestSlice:
    @pytest.mark.parametrize("entity", ["customers", pytest.param("prices", marks=pytest.mark.nightly)])
    def test_what_it_changed_is_shown_by_record(self, lake: SmallLake, entity: str) -> None:
        found = lake.json("history", "diff", entity, f"{THIRD}.parquet")
        assert found["counts"] == {"inserted": 1, "updated": 1}
        assert found["run_id"]
        by_key = {row["key"]["id"]: row for row in found["rows"]}
        assert by_key[2]["before"] == {"v": "b", "name": "b", "amount": str(AMOUNT)}
        assert by_key[2]["after"] == {"v": "B", "name": "B", "amount": str(OTHER)}
        assert by_key[3]["after"]["v"] == "c"

    def test_the_first_slice_inserted_all(self, lake: SmallLake) -> None:
        found = lake.json("history", "diff", "prices", f"{FIRST}.parquet", "-n", "1")
        assert (found["counts"], len(found["rows"])) == ({"inserted": 2}, 1)

    def test_one_that_is_not_in_the_log_is_named_with_its_neighbour(self, lake: SmallLake) -> None:
        done = lake.run("history", "diff", "prices", "2022-02-0.parquet")
        assert done.code == 2
        assert "no commit of a slice '2022-02-0.parquet'" in done.err
        assert f"{SECOND}.parquet" in done.err


class TestQuery:
    QUERY = (
        "SELECT cast('0.00000001' AS decimal(18, 8)) AS small, "
        "named_struct('iban', 'NL1', 'amount', 1.10BD, 'none', null) AS account, "
        "array(named_struct('at', timestamp'2022-01-01 00:00:00.000001')) AS times, "
        "map(date'2022-01-01', named_struct('n', 9007199254740993, 'd', 0.5D)) AS days, "
        "named_struct('m', array(map(1.50BD, map(timestamp'2022-01-01 12:00:00', 1)))) AS maps"
    )

    def test_structs_are_objects_at_any_depth(self, lake: SmallLake) -> None:
        """A struct was a list without the names of its fields."""
        (found,) = lake.json("sql", self.QUERY)
        assert found["account"] == {"iban": "NL1", "amount": "1.10", "none": None}
        assert found["times"] == [{"at": "2022-01-01T00:00:00.000001Z"}]
        assert found["days"] == {"2022-01-01": {"n": 9007199254740993, "d": 0.5}}
        assert found["maps"] == {"m": [{"1.50": {"2022-01-01 12:00:00": 1}}]}

    def test_a_decimal_has_the_digits_of_its_type(self, lake: SmallLake) -> None:
        assert lake.json("sql", self.QUERY)[0]["small"] == "0.00000001"
        shown = lake.run("sql", self.QUERY).out
        assert "0.00000001 " in shown
        assert '{"iban": "NL1", "amount": 1.10, "none": null}' in shown


class TestRecord:
    def test_with_history_its_rows_tell_its_life(self, lake: SmallLake) -> None:
        life = lake.json("history", "row", "prices", "1")
        assert [(each["values"]["v"], each["since"][:10], each["until"]) for each in life["versions"]] == [
            ("a", FIRST, f"{SECOND}T00:00:00.000000Z"),
            ("A", SECOND, None),
        ]
        assert [each["slice"] for each in life["versions"]] == [f"{FIRST}.parquet", f"{SECOND}.parquet"]
        assert life["versions"][1]["values"]["amount"] == str(AMOUNT)
        assert all(each["run_id"] for each in life["versions"])
        assert lake.json("history", "row", "prices", "001")["versions"] == life["versions"]
        assert lake.json("history", "row", "prices", "7")["versions"] == []
        refused = lake.run("history", "row", "prices", "one")
        assert (refused.code, "'one' is no value of the business key id" in refused.err) == (2, True)

    def test_without_history_the_versions_of_the_table_tell_it(self, lake: SmallLake) -> None:
        life = lake.json("history", "row", "customers", "2")
        assert [(each["values"]["v"], each["slice"]) for each in life["versions"]] == [
            ("b", f"{FIRST}.parquet"),
            ("B", f"{THIRD}.parquet"),
        ]
        until = life["versions"][0]["until"]
        assert (until, until[-1]) == (life["versions"][1]["since"], "Z")
        assert life["versions"][1]["values"]["amount"] == str(OTHER)

    def test_a_delete_is_of_the_slice_that_lacks_the_record(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        """It was said to be of the slice that had brought the row, beside the run of the other one."""
        (tmp_path / "project.yml").write_text(
            "name: shops\nentities:\n"
            "  shops: {from: shops/*.csv, key: id, strategy: merge, deletes: snapshot}\n"
        )
        (tmp_path / "shops").mkdir()
        (tmp_path / "shops/2024-01-01.csv").write_text("id,v\n1,a\n2,b\n")
        shop = InProcess(tmp_path, spark)
        assert shop.run("apply").code == 0
        (tmp_path / "shops/2024-01-02.csv").write_text("id,v\n1,a\n")
        assert shop.run("apply").code == 0
        life = shop.json("history", "row", "shops", "2")["versions"]
        assert [(each["is_deleted"], each["slice"]) for each in life] == [
            (False, "2024-01-01.csv"),
            (True, "2024-01-02.csv"),
        ]

    def test_a_table_is_read_as_it_is_until_it_is_made_under_another_declaration(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        project, text = (
            tmp_path / "project.yml",
            "name: s\nentities:\n  s: {from: s/*.csv, key: id, strategy: ",
        )
        project.write_text(f"{text}merge}}\n")
        (tmp_path / "s").mkdir()
        (tmp_path / "s/2024-01-01.csv").write_text("id,v\n1,a\n2,b\n")
        shop = InProcess(tmp_path, spark)
        assert shop.run("apply").code == 0
        DeltaTable(tmp_path / "lake/silver/s").update({"v": "'x'"}, predicate="id = '2'")
        for strategy in ("merge", "historic"):
            project.write_text(f"{text}{strategy}}}\n")
            life = shop.json("history", "row", "s", "2")["versions"]
            assert [(each["values"]["v"], each["slice"], each["origin"]) for each in life] == [
                ("b", "2024-01-01.csv", "slice"),
                ("x", None, "foreign"),
            ]
            assert shop.json("sql", "SELECT v FROM s ORDER BY id") == [{"v": "a"}, {"v": "x"}]
        project.write_text(f"{text}merge, columns: {{id: {{rename: number}}}}}}\n")
        refused = [shop.run("history", *asked, "s", "2") for asked in (["row"], ["diff"])]
        assert [(done.code, "lacks number" in done.err) for done in refused] == [(2, True), (2, False)]

    def test_a_key_of_another_shape_is_refused_and_one_that_is_not_there_has_no_versions(
        self, lake: SmallLake
    ) -> None:
        done = lake.run("history", "row", "customers", "1", "2")
        assert done.code == 2
        assert "lakewright history row customers ID" in done.err
        assert lake.json("history", "row", "customers", "77")["versions"] == []

    def test_a_key_is_read_as_those_of_slices(self, tmp_path: Path, spark: SparkSession) -> None:
        (tmp_path / "project.yml").write_text(
            "name: bids\nlake: {timezone: Europe/Berlin}\nentities:\n  bids:\n    from: bids/*.csv\n"
            "    key: [at, price]\n    strategy: historic\n"
            "    columns: {at: timestamp, price: 'decimal(5,1)'}\n"
        )
        (tmp_path / "bids").mkdir()
        (tmp_path / "bids/2024-01-02.csv").write_text("at,price\n2024-01-01T12:00:00,1.5\n")
        shop = InProcess(tmp_path, spark)
        assert shop.run("apply").code == 0
        for at in ("2024-01-01T12:00:00", "2024-01-01T11:00:00Z"):
            assert len(shop.json("history", "row", "bids", at, "1.50")["versions"]) == 1, at
        assert shop.run("history", "row", "bids", "2024-01-01T12:00:00", "1.54").code == 2
