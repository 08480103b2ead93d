"""`validate` looks at the partitions, columns and options that definitions name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.app import App
from lakewright.errors import SpecError
from lakewright.usecases.validate_project import Validation, validate_project

RELATIONS = """
relations:
  days:
    kind: file
    format: csv
    location: days
    partitions: [{name: day, type: date}, {name: shop, type: int}]
    schema: {fields: [{name: id, type: int}, {name: price, type: double}]}
  gold:
    kind: delta
    location: gold
    partitions: [{name: day, type: date}]
    schema: {fields: [{name: id, type: int}]}
mappings:
  ids: {kind: values, columns: {id: int, price: double}, records: [[1, 2.5]]}
"""


def validation(folder: Path, sections: str) -> Validation:
    project = make_project(folder, RELATIONS + sections)
    return validate_project(App(project, {"XDG_STATE_HOME": str(folder / "state")}))


def test_partition_columns_that_a_relation_lacks_are_errors(tmp_path: Path) -> None:
    found = validation(
        tmp_path,
        """
  one: {kind: relation, relation: days, partitions: {dya: 2024-05-01}}
  two: {kind: relation, relation: days, partitions: {day: {start: 2024-05-01, end: soon}}}
  free: {kind: relation, relation: days, partitions: {day: $day}}
targets:
  gold: {kind: relation, mapping: ids, relation: gold, partition: {dai: $day}}
  days: {kind: relation, mapping: ids, relation: days, partition: {shop: 1}}
  empty: {kind: truncate, relation: gold, partitions: {day: [2024-05-01, x]}}
  copy:
    kind: copy
    source: {kind: relation, relation: days, partition: {day: 2024-05-01}}
    target: {kind: relation, relation: days, partition: {store: 1}}
jobs: {daily: {parameters: [{name: day}], targets: [gold, days, empty, copy]}}
""",
    )
    assert [str(fault) for fault in found.errors] == [
        "module.yml:21: target 'gold': relation 'gold': 'dai' is not a partition column (did you "
        "mean 'day'?)",
        "module.yml:22: target 'days': relation 'days': rows cannot be written without a value for partition "
        "column day (Add a value for it to the target's `partition`.)",
        "module.yml:23: target 'empty': relation 'gold': partition column day: 'x' is not a date such as "
        "2022-11-01",
        "module.yml:27: target 'copy': relation 'days': 'store' is not a partition column (there "
        "are: day, shop)",
        "module.yml:17: mapping 'one': relation 'days': 'dya' is not a partition column (did you "
        "mean 'day'?)",
        "module.yml:18: mapping 'two': relation 'days': partition column day: 'soon' is not a date such as "
        "2022-11-01 (Write {start: …, end: …} with values of the column's type.)",
    ]


def test_the_value_of_a_partition_names_one_folder_in_a_pattern(tmp_path: Path) -> None:
    patterned = "{kind: file, location: files, pattern: 'x_${p}', partitions: [{name: p, type: string}]}"
    found = validation(
        tmp_path,
        f"""
  one: {{kind: relation, relation: {patterned}, partitions: {{p: [a, a/b]}}}}
targets:
  files: {{kind: relation, mapping: ids, relation: {patterned}, partition: {{p: a/b}}}}
  emptied: {{kind: truncate, relation: {patterned}, partitions: {{p: "*"}}}}
jobs: {{daily: {{targets: [files, emptied]}}}}
""",
    )
    told = "the file relation: partition column p: the value"
    folder = "has a `/`, which makes another folder in the pattern 'x_${p}'"
    assert [fault.message for fault in found.errors] == [
        f"target 'files': {told} 'a/b' {folder}",
        f"target 'emptied': {told} '*' has a `*`, which stands for other names in the pattern 'x_${{p}}'",
        f"mapping 'one': {told} 'a/b' {folder}",
    ]
    assert [fault.location.line for fault in found.errors if fault.location] == [19, 20, 17]
    remedy = "Give another value, or replace the character in the pattern: ${p.replace('/', '_')}."
    assert found.errors[0].remedy == remedy


def test_a_partition_can_not_have_a_value_that_stands_for_null(tmp_path: Path) -> None:
    codes = "{kind: delta, location: codes, partitions: [{name: code, type: string}]}"
    found = validation(
        tmp_path,
        f"""
  one: {{kind: relation, relation: {codes}, partitions: {{code: [a, ""]}}}}
targets:
  codes: {{kind: relation, mapping: ids, relation: {codes}, partition: {{code: ""}}}}
  marked: {{kind: truncate, relation: {codes}, partitions: {{code: __HIVE_DEFAULT_PARTITION__}}}}
jobs: {{daily: {{targets: [codes, marked]}}}}
""",
    )
    told = "the delta relation: partition column code: the value is"
    null = "which stands for null in folders and in Delta tables (Give another value.)"
    assert [str(fault) for fault in found.errors] == [
        f"module.yml:19: target 'codes': {told} an empty text, {null}",
        f"module.yml:20: target 'marked': {told} the text __HIVE_DEFAULT_PARTITION__, {null}",
        f"module.yml:17: mapping 'one': {told} an empty text, {null}",
    ]


def test_columns_that_no_declaration_has_are_warnings(tmp_path: Path) -> None:
    found = validation(
        tmp_path,
        """
  more: {kind: values, columns: {id: int, name: string}}
  union: {kind: union, inputs: [ids, more], columns: {id: int, name: string, prize: double}}
targets:
  shown: {kind: console, input: {mapping: ids}, columns: [id, prize]}
  local: {kind: local, mapping: ids, filename: out.csv, columns: [idd]}
  merged:
    kind: merge
    mapping: ids
    relation: {kind: delta, location: merged, mergeKey: idd, schema: {fields: [{name: id, type: int}]}}
    mergeKey: [no]
    clauses: [{action: insert}]
  gold: {kind: relation, mapping: ids, relation: gold}
jobs: {daily: {targets: [shown, local, merged, gold]}}
""",
    )
    assert found.errors == ()
    assert [str(fault) for fault in found.warnings] == [
        "module.yml:20: target 'shown': its mapping 'ids' declares no column 'prize' (did you mean 'price'?)",
        "module.yml:21: target 'local': its mapping 'ids' declares no column 'idd' (did you mean 'id'?)",
        "module.yml:26: target 'merged': its mapping 'ids' declares no column 'no' (there are: id, price)",
        "module.yml:28: target 'gold': relation 'gold' is partitioned by day, of which neither `partition` "
        "nor its mapping 'ids' has a value (Add day to one of them.)",
        "module.yml:18: mapping 'union': all its inputs together declare no column 'prize' "
        "(did you mean 'price'?)",
    ]


def test_options_that_spark_ignores_are_warnings(tmp_path: Path) -> None:
    found = validation(
        tmp_path,
        """
targets:
  out:
    kind: copy
    source: {kind: mapping, mapping: ids}
    target: {kind: file, format: csv, location: out, options: {header: true, delimeter: ";"}}
  read:
    kind: relation
    mapping: ids
    relation: {kind: file, format: json, location: j, options: {multline: true}}
  plain: {kind: file, mapping: ids, format: csv, location: p, options: {heder: true}}
jobs: {daily: {targets: [out, read, plain]}}
""",
    )
    assert [str(fault) for fault in found.warnings] == [
        f"module.yml:{line}: target {target!r}: Lakewright knows no option {name!r} of Spark for {kind} "
        f"files, which ignores what it does not know (did you mean {meant!r}?)"
        for line, target, name, kind, meant in (
            (21, "out", "delimeter", "csv", "delimiter"),
            (25, "read", "multline", "json", "multiLine"),
            (26, "plain", "heder", "csv", "header"),
        )
    ]


def test_documented_columns_that_no_declaration_has_are_warnings(tmp_path: Path) -> None:
    found = validation(
        tmp_path,
        """
  doc:
    kind: filter
    input: ids
    condition: id > 1
    documentation: {columns: [{name: ID}, {name: prise, description: misspelt}, {name: price}]}
targets:
  gold:
    kind: relation
    mapping: ids
    relation: gold
    partition: {day: 2024-05-01}
    documentation: {columns: [{name: day}, {name: idd}], checks: [{kind: primaryKey, columns: [id, dai]}]}
jobs: {daily: {targets: [gold]}}
""",
    )
    told = [str(each) for each in found.warnings if "documentation" in each.message]
    assert sorted(told) == [
        "module.yml:21: mapping 'doc': its documentation names a column 'prise', which it lacks "
        "(did you mean 'price'?)",
        "module.yml:28: target 'gold': its documentation names a column 'dai', which it lacks "
        "(did you mean 'day'?)",
        "module.yml:28: target 'gold': its documentation names a column 'idd', which it lacks "
        "(did you mean 'id'?)",
    ]


def test_an_update_of_a_delta_table_without_a_key_is_an_error(tmp_path: Path) -> None:
    """The run failed, once it had computed the rows."""
    found = validation(
        tmp_path,
        """
targets:
  gold: {kind: relation, mapping: ids, relation: gold, partition: {day: 2024-05-01}, mode: UPDATE}
  keyed:
    kind: relation
    mapping: ids
    relation: {kind: delta, location: keyed, mergeKey: id}
    mode: UPDATE
  merged:
    kind: merge
    mapping: ids
    relation: gold
    mergeKey: id
    clauses: [{action: update}]
    partition: {day: 2024-05-01}
  keyless:
    {kind: merge, mapping: ids, relation: gold, clauses: [{action: update}], partition: {day: 2024-05-01}}
jobs: {daily: {targets: [gold, keyed, merged, keyless]}}
""",
    )
    assert [str(fault) for fault in found.errors] == [
        f"module.yml:{line}: target {name!r}: relation 'gold' has no key to update rows by (Add a `mergeKey` "
        "to it, or a `primaryKey` to its schema.)"
        for line, name in ((18, "gold"), (32, "keyless"))
    ]


def test_a_setting_of_a_connection_is_wrong_where_the_connection_declares_it(tmp_path: Path) -> None:
    declared = """
connections:
  shop:
    settings: {bronze_path: "${entity}", silver_path: "${entity}", bronze_format: cvs, late_slicez: apply}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
  more: {id: 3, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
  own:
    id: 2
    connection: shop
    processtype: full
    settings:
      bronze_format: paquet
"""
    with pytest.raises(SpecError) as refused:
        validation(tmp_path, declared)
    first, second = refused.value.faults
    assert str(first).startswith(
        "module.yml:19: entity 'orders' and 1 other: settings.bronze_format: must be"
    )
    assert str(second).startswith("module.yml:28: entity 'own': settings.bronze_format: must be")
    (warning,) = refused.value.warnings
    assert str(warning).startswith("module.yml:19: connection 'shop': nothing uses the setting 'late_slicez'")


def test_executions_that_match_no_target_are_warned_of(tmp_path: Path) -> None:
    """The phase was skipped, and only the plan said so."""
    declared = """
targets: {gold: {kind: relation, mapping: ids, relation: gold, partition: {day: 2024-05-01}}}
jobs:
  base: {executions: [{phase: verify, targets: [gold, goldn]}]}
  daily: {extends: base, targets: [gold], executions: [{phase: build, targets: glod}]}
"""
    found = make_project(tmp_path, RELATIONS + declared)
    assert [str(fault) for fault in found.warnings] == [
        "module.yml:19: job 'base': no target of the job matches 'goldn' (did you mean 'gold'?)",
        "module.yml:20: job 'daily': no target of the job matches 'glod' (did you mean 'gold'?)",
    ]


def test_what_is_wrong_beside_a_parameter_is_an_error(tmp_path: Path) -> None:
    """A parameter in another field of the target hid it: the run told it."""
    found = validation(
        tmp_path,
        """
connections: {shop: {settings: {bronze_path: "${entity}", silver_path: "${entity}"}}}
entities:
  orders: {id: 1, connection: shop, processtype: merge, columns: [{name: id, fieldroles: [businesskey]}]}
targets:
  orders: {kind: entity, entity: orders, slices: "${day}*", processingTime: "${slice.dat}"}
  other: {kind: entity, entity: orders, slices: "${day}*", processingTime: "${day}"}
jobs: {daily: {parameters: [{name: day}], targets: [orders, other]}}
""",
    )
    assert [fault.message for fault in found.errors] == [
        "target 'orders': processingTime: a slice has no 'dat' in expressions; it has date, name and time in "
        "job 'daily'"
    ]


def test_columns_that_the_clauses_of_a_merge_name_are_looked_up(tmp_path: Path) -> None:
    found = validation(
        tmp_path,
        """
targets:
  sums:
    kind: merge
    mapping: ids
    relation:
      kind: delta
      location: sums
      mergeKey: id
      schema: {fields: [{name: id, type: int}, {name: total, type: double}]}
    clauses:
      - {action: delete, condition: source.prise < 0}
      - {action: update, condition: target.totl <> source.price, columns: {total: source.price}}
      - {action: insert, columns: {id: id, totals: price * 2, total: pricee}}
  free:
    kind: merge
    mapping: ids
    relation: {kind: delta, location: free, mergeKey: id}
    clauses: [{action: update, condition: target.anything > source.id, columns: {more: "1"}}]
jobs: {daily: {targets: [sums, free]}}
""",
    )
    assert [str(fault) for fault in found.warnings] == [
        "module.yml:27: target 'sums': no table of the query declares the column 'source.prise' (did you "
        "mean 'price'?)",
        "module.yml:28: target 'sums': no table of the query declares the column 'target.totl' (did you "
        "mean 'total'?)",
        "module.yml:29: target 'sums': no table of the query declares the column 'pricee' (did you "
        "mean 'price'?)",
        "module.yml:29: target 'sums': its relation declares no column 'totals' (did you mean 'total'?)",
    ]
    assert found.errors == ()
