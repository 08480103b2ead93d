"""Entities: `processing-strategies.md` with Datalake Foundation's names, and the cases of hostile paths."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.spec.kinds import faults, load

from lakewright.errors import SpecError
from lakewright.spec.models.adoption import Adoption
from lakewright.spec.models.entity import Entity, Strategy
from lakewright.spec.models.lake import LakeSettings, TableOutput
from lakewright.spec.models.places import Address, place_within
from lakewright.spec.models.watermark import Watermark

FOUNDATION: dict[str, Any] = {
    "environment": {
        "name": "DEBUG",
        "timezone": "Europe/Amsterdam",
        "root_folder": "/DatalakeData",
        "raw_path": "/${connection}/${entity}",
        "bronze_path": "/${connection}/${entity}",
        "silver_path": "/${connection}/${destination}",
        "secure_container_suffix": "-secure",
        "systemfield_prefix": "dlf_",
    },
    "connections": [
        {
            "name": "Shop",
            "enabled": True,
            "settings": {"server": "localhost", "delete_missing": False, "port": 1433},
        }
    ],
    "entities": [
        {
            "id": 1,
            "name": "person",
            "group": "AVW",
            "destination": "dim_person",
            "enabled": True,
            "secure": True,
            "connection": "Shop",
            "processtype": "delta",
            "watermark": [
                {
                    "column_name": "SeqNr",
                    "operation": "or",
                    "operation_group": 0,
                    "expression": "'${last_value}'",
                }
            ],
            "columns": [
                {
                    "name": "",
                    "newname": "Administration",
                    "datatype": "integer",
                    "fieldroles": ["calculated", "businesskey", "partition"],
                    "expression": "950",
                },
                {"name": "ID", "newname": "", "fieldroles": ["businesskey"]},
                {"name": "Total Due", "datatype": "decimal(18,2)"},
            ],
            "settings": {
                "delete_missing": True,
                "schema": "Person",
                "frequency": {"interval": "weekly", "value": ["Mon", "Sat"]},
            },
            "transformations": [
                ["*", "upper(name) as Name"],
                {"column": "x", "expression": "1 + 1"},
                "a as b",
            ],
        },
        {"id": 2, "name": "stock", "connection": "Shop", "processtype": "FULL"},
    ],
}


def foundation(**changes: Any) -> dict[str, str]:
    return {"m.json": json.dumps(FOUNDATION | changes, indent=1)}


def entity(**fields: Any) -> Entity:
    base = {"id": "1", "name": "regions", "connection": "web", "processtype": "full"}
    return Entity.model_validate(base | fields)


def test_a_file_of_datalake_foundation_loads_as_it_is(tmp_path: Path) -> None:
    project = load(tmp_path, foundation())
    assert list(project.entities) == ["person", "stock"]
    person = project.entities["person"]
    assert (person.id, person.name, person.destination, person.group) == ("1", "person", "dim_person", "AVW")
    assert person.strategy is Strategy.MERGE
    assert person.business_keys == ("Administration", "ID")
    assert person.partition_columns == ("Administration",)
    assert [column.source for column in person.calculated] == ["Administration"]
    assert [column.silver for column in person.columns] == ["Administration", "ID", "TotalDue"]
    assert person.columns[2].type is not None
    assert person.columns[2].type.ddl == "decimal(18,2)"
    assert person.watermarks[0].column_name == "SeqNr"
    free = person.settings.model_extra or {}
    assert (person.settings.delete_missing, free["server"]) == (True, "localhost")
    assert free["frequency"] == {"interval": "weekly", "value": ["Mon", "Sat"]}
    assert [(step.select, step.column) for step in person.transformations] == [
        (("*", "upper(name) as Name"), None),
        ((), "x"),
        (("a as b",), None),
    ]
    places = person.places(project.lake)
    assert places.bronze == "/DatalakeData/bronze-secure/Shop/person"
    assert places.silver == Address(location="/DatalakeData/silver-secure/Shop/dim_person")
    assert project.entities["stock"].destination == "stock"
    assert project.lake.zone.key == "Europe/Amsterdam"


def test_files_of_datalake_foundation_are_merged_from_a_folder(tmp_path: Path) -> None:
    parts = {f"m/{section}.json": json.dumps({section: content}) for section, content in FOUNDATION.items()}
    project = load(tmp_path, {"project.yml": "name: x\nmodules: m\nlake: {root_folder: /own}\n", **parts})
    assert len(project.entities) == 2
    assert (project.lake.root_folder, project.lake.timezone) == ("/own", "Europe/Amsterdam")


def test_entities_are_found_by_name_and_id(tmp_path: Path) -> None:
    project = load(tmp_path, foundation())
    assert project.entity("stock") is project.entity(2) is project.entity("2")
    with pytest.raises(SpecError, match="did you mean 'stock'"):
        project.entity("stok")


def test_one_source_may_fill_two_destinations(tmp_path: Path) -> None:
    twice = [
        {"id": i, "name": "a", "destination": f"d{i}", "connection": "Shop", "processtype": "full"}
        for i in (1, 2)
    ]
    project = load(tmp_path, foundation(entities=twice))
    assert {key: found.destination for key, found in project.entities.items()} == {"1": "d1", "2": "d2"}
    assert project.entity(2).destination == "d2"
    with pytest.raises(SpecError, match=r"several entities are named 'a' \(Use an id: 1, 2"):
        project.entity("a")


def test_yaml_entities_have_the_same_fields_and_the_projects_names(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
        environment: [area=eu]
        lake: {root_folder: lake, silver_path: "$area/${destination}"}
        connections:
          web: {settings: {bronze_path: "${settings_folder}/${entity}/${today}", folder: in}}
        entities:
          regions:
            id: 7
            connection: web
            processtype: historic
            columns: {name: code, newname: region code, fieldroles: businesskey}
            settings: {table_properties: [delta.enableChangeDataFeed=true], last_seen: on_change}
        """,
    )
    regions = project.entities["regions"]
    assert (regions.name, regions.business_keys, regions.settings.last_seen) == (
        "regions",
        ("code",),
        "on_change",
    )
    assert regions.settings.table_properties == {"delta.enableChangeDataFeed": "true"}
    places = regions.places(project.lake)
    assert places.bronze == f"{tmp_path}/lake/bronze/in/regions/20221115"
    assert places.silver.location == f"{tmp_path}/lake/silver/eu/regions"


def test_entities_of_a_disabled_connection_are_disabled(tmp_path: Path) -> None:
    project = load(tmp_path, foundation(connections=[{"name": "Shop", "enabled": False}]))
    assert not project.entities["stock"].enabled


@pytest.mark.parametrize(
    ("change", "line", "why"),
    [
        ({"environment": {"rootfolder": "/x"}}, 3, "unknown key 'rootfolder' (did you mean 'root_folder'?)"),
        ({"environment": {"root_folder": "/x", "timezone": "Amsterdam"}}, 4, "unknown time zone 'Amsterdam'"),
        ({"entitys": []}, None, "unknown section 'entitys' (did you mean 'entities'?)"),
        ({"connections": []}, None, "there is no connection 'Shop'"),
        ({"connections": [{"enabled": True}]}, None, "an entry of connections has no name"),
    ],
)
def test_what_is_wrong_with_a_foundation_file_is_a_fault(
    tmp_path: Path, change: dict[str, Any], line: int | None, why: str
) -> None:
    found = [fault for fault in faults(tmp_path, foundation(**change)) if why in fault]
    assert found
    assert found[0].startswith(f"m.json:{line}:" if line else "m.json:")


KEY: dict[str, Any] = {"name": "id", "fieldroles": ["businesskey"]}
OPTIONAL = {"columns": [KEY, {"name": "seen at", "newname": "SeenAt", "optional": True}]}

WRONG = [
    ({"processtype": "upsert"}, "processtype: must be 'full', 'merge', 'historic' or 'delta', not 'upsert'"),
    ({"processtype": "merge", "columns": []}, "the strategy merge needs a column with the role businesskey"),
    ({"processtype": "historic", "columns": []}, "the strategy historic needs a column"),
    ({"processtype": "merge", "watermark": []}, "delete_missing needs a watermark, or delete_scope: full"),
    ({"id": None}, "'id' is missing"),
    ({"connection": None}, "'connection' is missing"),
    ({"prcesstype": "full"}, "unknown key 'prcesstype' (did you mean 'processtype'?)"),
    ({"columns": [{"name": "a", "datatype": "strin"}]}, "there is no type 'strin'"),
    (
        {"columns": [{"name": "a", "fieldroles": ["primary"]}]},
        "fieldroles[0]: must be 'businesskey'",
    ),
    (
        {"columns": [{"name": "a", "fieldroles": ["calculated"]}]},
        "the calculated column 'a' needs an expression",
    ),
    ({"columns": [{"datatype": "string"}]}, "a column needs a name"),
    (
        {"columns": [{"name": "a", "fieldroles": ["businesskey"], "optional": True}]},
        "the column 'a' of the business key can't be optional",
    ),
    (
        {"columns": [{"name": "a", "expression": "b + 1", "optional": True}]},
        "the calculated column 'a' can't be optional",
    ),
    *(
        (
            {**OPTIONAL, "settings": {"sequence_by": name}},
            "the column 'seen at' (newname 'SeenAt') of sequence_by",
        )
        for name in ("Seen At", "seenat")
    ),
    (
        {**OPTIONAL, "watermark": [{"column_name": "seen at", "expression": "${last_value}"}]},
        "the watermark column 'seen at' (newname 'SeenAt') can't be optional",
    ),
    (
        {"destination": "dim_a", "columns": [KEY, {"name": "a", "newname": "PK_dim_a", "optional": True}]},
        "the primary key 'a' (newname 'PK_dim_a') can't be optional",
    ),
    ({"columns": [{"newname": "b"}]}, "has neither a name in the source nor an expression"),
    ({"columns": [{"name": "a", "nme": "b"}]}, "unknown key 'nme' (did you mean 'name'?)"),
    ({"columns": [{"name": "a b"}, {"name": "ab"}]}, "the columns 'a b' and 'ab' become one column 'ab'"),
    (
        {"columns": [{"name": "Id"}, {"name": "x", "newname": "ID"}]},
        "the columns 'Id' and 'x' (newname 'ID') become one column",
    ),
    ({"columns": [{"name": "--"}]}, "has no character that a table allows"),
    (
        {"processtype": "full", "columns": [{"name": "dlf_ValidTo"}]},
        "'dlf_ValidTo' has the name of a system column",
    ),
    (
        {"processtype": "full", "columns": [{"name": "a", "newname": "DLF_SourceHash"}]},
        "has the name of a system column",
    ),
    ({"processtype": "full", "columns": [{"name": "_change_type"}]}, "has the name of a system column"),
    ({"transformations": [{"column": "a"}]}, "has both column and expression"),
    ({"transformations": [[]]}, "has both column and expression"),
    ({"watermark": [{"column_name": "a"}]}, "watermark[0]: 'expression' is missing"),
    (
        {"watermark": [{"column_name": "a", "expression": "${last_value}", "operation": "xor"}]},
        "'and' or 'or'",
    ),
    (
        {
            "settings": {"delete_missing": True},
            "watermark": [{"column_name": "a", "expression": "${last_value}"}] * 2,
        },
        "the watermark column 'a' is declared twice",
    ),
    ({"settings": {"max_delete_ratio": 2}}, "max_delete_ratio"),
    ({"settings": {"delete_floor": -1}}, "delete_floor"),
    ({"settings": {"duplicates": "latest"}}, "duplicates: latest needs sequence_by"),
    (
        {"settings": {"sequence_by": "at"}, "processtype": "full", "columns": []},
        "sequence_by needs a column with the role businesskey",
    ),
    ({"settings": {"sequence_by": "at", "hash_exclude": ["AT"]}}, "at must not be in hash_exclude"),
    ({"settings": {"late_slices": "maybe"}}, "'hold', 'place', 'end' or 'skip'"),
    ({"settings": {"bronze_format": "xls"}}, "bronze_format"),
    ({"settings": {"silver_path": "../../etc"}}, "leaves the root folder"),
    ({"settings": {"silver_path": "${entity}/../../../etc"}}, "leaves the root folder"),
    ({"settings": {"bronze_path": "/etc"}}, "leaves the root folder"),
    ({"settings": {"bronze_path": "//etc/${entity}"}}, "leaves the root folder"),
    ({"settings": {"silver_path": "s3a://other/x"}}, "leaves the root folder"),
    ({"settings": {"silver_path": "file:/etc"}}, "leaves the root folder"),
    ({"settings": {"silver_path": "a\\..\\..\\b"}}, "leaves the root folder"),
    ({"settings": {"silver_path": "$System.getenv('NO', '../../x')"}}, "leaves the root folder"),
    ({"destination": "../../../x"}, "leaves the root folder"),
    ({"settings": {"silver_table": "a.b.c.d"}}, "is not a valid table name"),
    ({"settings": {"silver_table": "a..b"}}, "is not a valid table name"),
    ({"settings": {"bronze_path": "${entity"}}, "'}' is missing"),
    (
        {"settings": {"silver_path": "${settings_foo}"}},
        "silver_path uses settings_foo, but there is no such setting with a text or number "
        "(Add the setting 'foo' to the entity or its connection.)",
    ),
    (
        {"settings": {"silver_table": "s.${job_s_own}_${settings_severs}"}},
        "silver_table uses settings_severs, but there is no such setting with a text or number "
        "(did you mean 'server'?)",
    ),
    ({"settings": {"raw_path": "${settings_foo}", "foo": ["a"]}}, "raw_path uses settings_foo"),
]


@pytest.mark.parametrize(("change", "why"), WRONG)
def test_what_is_wrong_with_an_entity_is_a_fault(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    wrong = FOUNDATION["entities"][0] | change
    wrong = {key: value for key, value in wrong.items() if value is not None}
    found = faults(tmp_path, foundation(entities=[wrong]))
    assert any(why in fault for fault in found), found
    assert all(fault.startswith("m.json:") for fault in found)


def test_ids_are_distinct_and_names_too(tmp_path: Path) -> None:
    stock = FOUNDATION["entities"][1]
    found = faults(tmp_path, foundation(entities=[stock, stock, {**stock, "name": "other"}]))
    assert [fault.split(": ", 1)[1] for fault in found] == [
        "entity 'stock' is declared twice, first at m.json:24 (Rename or remove one of them.)",
        "entity 'other': the id '2' is already that of entity 'stock' at m.json:25 "
        "(Give each entity its own id.)",
    ]


def test_a_setting_that_nothing_uses_is_a_warning_b10(tmp_path: Path) -> None:
    own = {"delete_mising": True, "rawpath": "x", "table": "y", "area": "z", "raw_paths": "r"}
    path = "${settings_area}/${settings_raw_paths}"
    stock = FOUNDATION["entities"][1] | {"settings": {**own, "silver_path": path}}
    project = load(tmp_path, foundation(entities=[stock]))
    assert [str(warning).split(": ", 1)[1] for warning in project.warnings] == [
        "entity 'stock': nothing uses the setting 'delete_mising' (did you mean 'delete_missing'?)",
        "entity 'stock': nothing uses the setting 'rawpath' (did you mean 'raw_path'?)",
        "entity 'stock': nothing uses the setting 'table' (Remove it; a path may read it as "
        "${settings_table}.)",
    ]


def test_settings_that_do_nothing_or_name_a_misspelt_column_are_warnings_b10(tmp_path: Path) -> None:
    columns = [
        {"name": "id", "fieldroles": ["businesskey"]},
        {"name": "changed_at"},
        {"name": "cr", "newname": "created_at"},
        {"name": "gone", "datatype": "boolean", "newname": "dlf_deletd"},
        {"name": "is_deleted", "datatype": "boolean"},
    ]
    own = {
        "max_delete_ratio": 0.1,
        "sequence_by": "change_at",
        # A column that is not declared may be like another one.
        "hash_exclude": ["creatd_at", "updated_at", "CHANGED_AT", "changed_at_2"],
    }
    stock = {**FOUNDATION["entities"][1], "processtype": "merge", "columns": columns, "settings": own}
    project = load(tmp_path, foundation(entities=[stock]))
    assert sorted(str(warning).split(": ", 1)[1] for warning in project.warnings) == [
        "entity 'stock': hash_exclude names the column 'creatd_at', which is not declared (did you mean "
        "'created_at'?)",
        "entity 'stock': max_delete_ratio has no effect, as delete_missing is not set (Set delete_missing: "
        "true if records that a slice lacks are deleted, or remove it.)",
        "entity 'stock': sequence_by names the column 'change_at', which is not declared (did you mean "
        "'changed_at'?)",
        "entity 'stock': the column 'dlf_deletd' is no flag of deletes (did you mean 'dlf_deleted'?)",
    ]
    stock["columns"] = columns[:3]
    stock["settings"] = {"max_delete_ratio": 0.1, "delete_missing": True, "delete_scope": "full"}
    assert load(tmp_path, foundation(entities=[stock])).warnings == ()


def test_a_setting_of_many_is_told_once_where_it_stands_b10(tmp_path: Path) -> None:
    connections = [{"name": "Shop", "settings": {"null_key": "allow", "server": "x"}}]
    settings = {"bronze_table": "b.t", "table_property": {"a": "b"}, "frequency": 1}
    both = [
        {**FOUNDATION["entities"][1], "settings": settings},
        {**FOUNDATION["entities"][0], "settings": {"frequency": 2}},
    ]
    both[1]["processtype"], both[1]["colums"] = "full", []
    with pytest.raises(SpecError, match="unknown key 'colums'"):
        load(tmp_path, foundation(connections=connections, entities=both))
    both[1].pop("colums")
    project = load(tmp_path, foundation(connections=connections, entities=both))
    assert [warning.message for warning in project.warnings] == [
        "entity 'stock': bronze_table has no effect",
        "entity 'stock' and 1 other: nothing uses the setting 'frequency'",
        "connection 'Shop': nothing uses the setting 'null_key'",
        "entity 'stock': nothing uses the setting 'table_property'",
    ]


SAME_TABLE = [
    ({"destination": "stock"}, "/DatalakeData/silver/Shop/stock is also that of entity 'stock' at m.json:24"),
    ({"settings": {"silver_path": "Shop/stock/${entity}"}}, "lie one inside of the other"),
    ({"settings": {"silver_path": "Shop//./stock"}}, "is also that of entity 'stock'"),
]


@pytest.mark.parametrize(("change", "why"), SAME_TABLE)
def test_two_entities_with_one_table_are_a_fault(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    stock = FOUNDATION["entities"][1]
    other = {**stock, "id": 3, "name": "other", **change}
    found = faults(tmp_path, foundation(entities=[stock, other]))
    assert len(found) == 1
    assert why in found[0]
    assert "Give each entity its own destination" in found[0]
    project = load(tmp_path, foundation(entities=[stock, {**other, "enabled": False}]))
    assert not project.entities["other"].enabled


BROKEN = [
    ({"colums": []}, ["unknown key 'colums'"]),
    ({"processtype": "upsert"}, ["processtype: must be"]),
    ({"settings": {"null_keys": "perhaps"}}, ["null_keys: must be"]),
    ({"settings": {"null_keys": "perhaps", "silver_path": "elsewhere"}}, None),
    ({"enabled": "perhaps"}, None),
    ({"settings": ["silver_path"]}, None),
]


@pytest.mark.parametrize(("change", "why"), BROKEN)
def test_what_two_entities_share_is_told_beside_their_other_faults(
    tmp_path: Path, change: dict[str, Any], why: list[str] | None
) -> None:
    stock = FOUNDATION["entities"][1]
    found = faults(
        tmp_path,
        foundation(
            entities=[{**stock, **change}, {**stock, "id": 3, "name": "other", "destination": "stock"}]
        ),
    )
    both = [fault for fault in found if "silver table /DatalakeData/silver/Shop/stock is also" in fault]
    assert len(both) == (why is not None)
    assert len(found) == 1 + len(both)
    assert all(any(each in fault for fault in found) for each in why or ())


def test_only_templates_in_force_ask_for_settings(tmp_path: Path) -> None:
    lake = {**FOUNDATION["environment"], "silver_path": "${settings_area}/${entity}"}
    entities = [
        {**FOUNDATION["entities"][1], "id": place, "name": name, "destination": name, "settings": settings}
        for place, (name, settings) in enumerate(
            [("a", {"area": "x"}), ("b", {"silver_table": "b"}), ("c", {}), ("d", {"silver_path": "${day}"})]
        )
    ]
    found = faults(tmp_path, foundation(environment=lake, entities=entities))
    assert [fault.split(": ", 1)[1] for fault in found] == [
        "entity 'c': silver_path uses settings_area, but there is no such setting with a text or number"
        " (Add the setting 'area' to the entity or its connection.)"
    ]
    project = load(tmp_path, foundation(environment=lake, entities=[entities[3]]))
    with pytest.raises(SpecError, match="silver_path of entity 'd': unknown name 'day'"):
        project.entities["d"].places(project.lake)


ADOPTIONS = [
    ("full", True, "adopt is for merge and historic"),
    ("historic", True, "adopt needs valid_from"),
    ("historic", {"valid_to": "x"}, "adopt needs valid_from"),
    ("merge", {"valid_from": "x"}, "adopt: valid_from is for the strategy historic"),
    ("merge", "dbt_snapsot", "'dbt_snapshot' or 'datalake_foundation'"),
    ("merge", {"deletes": "perhaps"}, "'flag' or 'row'"),
    ("merge", {"sentinl": "9999-12-31"}, "unknown key 'sentinl' (did you mean 'sentinel'?)"),
]


@pytest.mark.parametrize(("strategy", "adopt", "why"), ADOPTIONS)
def test_an_adoption_that_can_not_be_meant_is_a_fault(
    tmp_path: Path, strategy: str, adopt: Any, why: str
) -> None:
    stock = {
        **FOUNDATION["entities"][1],
        "processtype": strategy,
        "columns": [{"name": "id", "fieldroles": ["businesskey"]}],
        "settings": {"adopt": adopt},
    }
    assert any(why in fault for fault in faults(tmp_path, foundation(entities=[stock])))


def test_columns_of_a_known_make_count_where_they_are() -> None:
    snapshot = Adoption.model_validate({"like": "dbt_snapshot", "valid_to": "until"})
    names = ["id", "dbt_valid_from", "DBT_UPDATED_AT", "dbt_valid_to", "until"]
    assert snapshot.roles(names, prefix="dlf_", with_times=True) == {
        "valid_from": "dbt_valid_from",
        "valid_to": "until",
        "last_seen": "dbt_updated_at",
    }
    assert (snapshot.are_deletes_rows, snapshot.dropped, snapshot.sentinels) == (True, ("dbt_scd_id",), ())
    foundation_s = Adoption.model_validate({"like": "datalake_foundation"})
    assert foundation_s.roles(["sys_deleted", "sys_ValidTo"], prefix="sys_", with_times=False) == {
        "deleted": "sys_deleted"
    }
    assert (foundation_s.are_deletes_rows, foundation_s.sentinels) == (False, ("2999-12-31",))


def test_two_entities_with_one_table_of_the_catalog_are_a_fault(tmp_path: Path) -> None:
    stock = FOUNDATION["entities"][1]
    tables = [
        {**stock, "id": n, "name": f"e{n}", "settings": {"silver_table": name}}
        for n, name in enumerate(("shop.stock", "SHOP.Stock"))
    ]
    assert "is also that of entity 'e0'" in faults(tmp_path, foundation(entities=tables))[0]


def test_an_unknown_key_hides_no_missing_connection(tmp_path: Path) -> None:
    stock = {**FOUNDATION["entities"][1], "connection": "Shp", "prcesstype": "x"}
    found = faults(tmp_path, foundation(entities=[stock]))
    assert any("unknown key 'prcesstype'" in fault for fault in found)
    assert any("there is no connection 'Shp' (did you mean 'Shop'?)" in fault for fault in found)


def test_slices_in_the_catalog_are_warned_of(tmp_path: Path) -> None:
    environment = {**FOUNDATION["environment"], "bronze_output": "catalog"}
    warnings = load(tmp_path, foundation(environment=environment)).warnings
    (warning,) = (each for each in warnings if "the setting" not in each.message)
    assert warning.message == "lake: bronze_output: catalog has no effect"
    assert str(warning.location).startswith("m.json:")


def test_a_link_out_of_the_root_folder_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "lake" / "silver").mkdir(parents=True)
    (tmp_path / "lake" / "silver" / "Shop").symlink_to(tmp_path)
    environment = {"root_folder": str(tmp_path / "lake")}
    found = faults(tmp_path, foundation(environment=environment))
    assert any("leaves the root folder through a symbolic link" in fault for fault in found)


def test_a_json_file_without_entities_is_ignored_with_a_warning(tmp_path: Path) -> None:
    project = load(tmp_path, {"m.json": '{"type": "object"}', "n.json": "[1]"})
    assert [warning.message.split(":")[0] for warning in project.warnings] == [
        "m.json is ignored",
        "n.json is ignored",
    ]


CATALOG = LakeSettings(root_folder="/lake", output_method=TableOutput.CATALOG)
PATHS = LakeSettings(root_folder="s3a://lake/")


@pytest.mark.parametrize(
    ("lake", "settings", "silver", "bronze_table"),
    [
        (PATHS, {}, "s3a://lake/silver/web/regions", None),
        (CATALOG, {}, "silver_web.regions", None),
        (CATALOG, {"silver_path": "x/${entity}"}, "/lake/silver/x/regions", None),
        (PATHS, {"silver_table": "silver__${connection}.${entity}"}, "silver__web.regions", None),
        (CATALOG, {"silver_table": "main.db.t", "bronze_table": "b.t"}, "main.db.t", "b.t"),
        (CATALOG, {"output_method": "paths"}, "/lake/silver/web/regions", None),
        (LakeSettings(root_folder="/l", silver_output=TableOutput.CATALOG), {}, "silver_web.regions", None),
        (
            LakeSettings(root_folder="/l", bronze_output=TableOutput.CATALOG),
            {},
            "/l/silver/web/regions",
            "bronze_web.regions",
        ),
    ],
)
def test_the_table_is_found_by_path_or_in_the_catalog(
    lake: LakeSettings, settings: dict[str, str], silver: str, bronze_table: str | None
) -> None:
    places = entity(settings=settings).places(lake)
    assert str(places.silver) == silver
    assert places.bronze_table == bronze_table


@pytest.mark.parametrize(
    ("root", "parts", "place"),
    [
        ("/lake", ("bronze", "a/b"), "/lake/bronze/a/b"),
        ("/lake/", ("bronze", "a//b/./c/"), "/lake/bronze/a/b/c"),
        ("file:///lake", ("x",), "/lake/x"),
        ("file:/lake/", ("x",), "/lake/x"),
        ("abfss://c@a.dfs.core.windows.net/lake", ("x",), "abfss://c@a.dfs.core.windows.net/lake/x"),
        ("/", ("x",), "/x"),
        ("/lake", ("a b%20#é", "x"), "/lake/a b%20#é/x"),
    ],
)
def test_places_are_joined_to_the_root(root: str, parts: tuple[str, ...], place: str) -> None:
    assert place_within(root, *parts) == place


@pytest.mark.parametrize("part", ["..", "a/../b", "/a", "C:/x", "hdfs:x", "a\\b", "a\nb", "a\x00"])
def test_a_part_that_leads_elsewhere_is_refused(part: str) -> None:
    with pytest.raises(SpecError, match="leaves the root folder"):
        place_within("/lake", part)


def test_a_table_is_quoted_in_sql() -> None:
    assert Address(location="/a`b").sql == "delta.`/a``b`"
    assert Address(name="a`b.c d").sql == "`a``b`.`c d`"


@pytest.mark.parametrize(
    ("expression", "last_value", "lower_end"),
    [
        ("'${last_value}'", 42, 42),
        ("${last_value}", "x'; DROP", "x'; DROP"),
        ("${watermark}", date(2022, 1, 1), date(2022, 1, 1)),
        ("${LocalDate.addDays(${last_value}, -3)}", date(2022, 1, 3), date(2021, 12, 31)),
        ("LocalDate.parse('${last_value}').minusDays(7).toString()", "2022-01-08", "2022-01-01"),
        ("${LocalDate.parse(last_value).minusDays(7)}", "2022-01-08", date(2022, 1, 1)),
        (
            "$last_value.minusHours(1)",
            datetime(2022, 1, 1, tzinfo=UTC),
            datetime(2021, 12, 31, 23, tzinfo=UTC),
        ),
    ],
)
def test_a_watermark_expression_gives_a_typed_value(expression: str, last_value: Any, lower_end: Any) -> None:
    mark = Watermark(column_name="m", expression=expression)
    assert mark.lower_end(last_value) == lower_end


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "",
            "'EMEA'",
            "42",
            "true",
            "${nix}",
            "${last_value} - 1",
            "${last_value} OR 1=1",
            "x${last_value}",
        ),
        *("${b19_epoch_day}", "${System.getenv('X')}", "${File.read('/etc/passwd')}", "${LocalDate}"),
        *("${last_value}${last_value}", "${last_value.__class__}", "(SELECT max(x) FROM t)", "${settings_x}"),
        "reflect('java.lang.System', 'exit')",
    ],
)
def test_any_other_watermark_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValidationError, match="last_value"):
        Watermark(column_name="m", expression=expression)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("${LocalDate.addDays(${last_value})}", "LocalDate.addDays takes 2 arguments, not 1"),
        ("LocalDate.addDay(last_value, 1)", "no LocalDate.addDay in expressions .did you mean 'addDays'"),
        (
            "String.concat('a', '${LocalDate.parse(last_value).minusDays()}')",
            "minusDays takes 1 argument, not 0",
        ),
        ("${last_value.minusDay(1)}", "there is no minusDay in expressions"),
    ],
)
def test_a_call_that_no_last_value_can_suit_is_refused(expression: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Watermark(column_name="m", expression=expression)


def test_a_watermark_that_can_not_be_computed_is_an_error() -> None:
    mark = Watermark(column_name="m", expression="${LocalDate.addDays(${last_value}, 1)}")
    with pytest.raises(SpecError, match="is not a date"):
        mark.lower_end("soon")
