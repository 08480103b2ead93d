"""Each kind of mapping, by a small project and the rows that come out."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import functions as f
from tests.projects import make_workspace
from tests.sessions import same
from tests.spark.relations.relations import Row, by_text, rows_by_name, stored

from lakewright.errors import LakewrightError, SparkUnavailable, SpecError, TargetError
from lakewright.lake import cluster
from lakewright.lake.cluster import check_python, runs_python
from lakewright.lake.frames import empty_frame, frame_of_texts
from lakewright.lake.lake import Lake
from lakewright.relations.relation import OutputMode
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.usecases.validation.definitions import evaluate_project
from lakewright.usecases.validation.outputs import analyse_with_spark
from lakewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPINGS = """
relations:
  people_given:
    kind: values
    columns: {id: integer, name: string, team: string, born: date}
    records:
      - [1, Ann, red, 1990-01-01]
      - [2, Bob, blue, 1991-02-02]
      - {id: 3, name: Cleo, team: red}

mappings:
  people: {kind: relation, relation: people_given}
  embedded:
    kind: relation
    relation: {kind: values, columns: {x: integer}, records: [[1], [2]]}
    columns: {X: bigint, y: string}
    filter: x > 1
  teams:
    kind: values
    schema: {fields: [{name: team, type: string}, {name: size, type: "decimal(5,1)"}]}
    records: [[red, 2.50], [green, 1]]
  my-alias: {kind: alias, input: "people:main"}
  queried:
    kind: sql
    sql: |
      WITH people AS (SELECT * FROM `my-alias` WHERE id > 1)
      SELECT p.name, t.size FROM people p LEFT JOIN teams t ON p.team = t.team
  misspelt: {kind: sql, sql: "SELECT id,\\n nmae FROM people"}
  unparsed:
    kind: sql
    sql: SELECT i FROM people LATERAL VIEW explode(array(1)) AS i LEFT JOIN teams ON true
  selected: {kind: select, input: people, columns: {who: "upper(name)", n: "id + 1"}, filter: n < 4}
  projected:
    kind: project
    input: people
    columns: [name, {column: id, name: key, type: bigint, description: The key}]
  extended: {kind: extend, input: teams, columns: {b: "a * 2", a: "size + 1", team: "upper(team)"}}
  dropped: {kind: drop, input: people, columns: [born, team, nothing]}
  cast: {kind: cast, input: teams, columns: {SIZE: int, team: char(4)}}
  filtered: {kind: filter, input: people, condition: "team = 'red'"}
  joined: {kind: join, inputs: [people, teams], columns: team, mode: inner}
  joined_on:
    kind: join
    inputs: [people, teams]
    condition: people.team = teams.team AND size > 2
    mode: left
  apart: {kind: select, input: joined_on, columns: {id: id, left: people.team, right: teams.team}}
  united: {kind: union, inputs: [people, teams]}
  shape: {kind: sql, sql: "SELECT map('k', named_struct('x', 1, 'y', 2)) AS m"}
  other_shape: {kind: sql, sql: "SELECT map('k', named_struct('y', 4, 'x', 3L, 'z', 5)) AS m"}
  united_maps: {kind: union, inputs: [shape, other_shape]}
  united_fields: {kind: select, input: united_maps, columns: {x: "m['k'].x", y: "m['k'].y", z: "m['k'].z"}}
  united_columns: {kind: union, inputs: [people, teams], columns: {team: string}, distinct: true}
  counted:
    kind: aggregate
    input: people
    dimensions: [team, "year(born) AS year"]
    aggregations: {people: count(*)}
    filter: people > 0
  distinct: {kind: distinct, input: united_columns}
  deduplicated: {kind: deduplicate, input: people, columns: [team]}
  sorted: {kind: sort, input: people, columns: [{team: desc}, {name: asc}]}
  mocked: {kind: mock, mapping: people, records: [{name: Eve}]}
  kept: {kind: alias, input: people, cache: memory_only, broadcast: true}
  wrong: {kind: values, columns: {x: integer}, records: [[one]]}
  nested:
    kind: values
    columns: {s: "struct<plan: string, hi: struct<n: decimal(4,2)>>", a: array<int>, m: "map<string, int>"}
    records:
      - [[p, [1.50]], [1, 2], {x: 1}]
      - {s: {PLAN: p, hi: {n: "1.5"}}, a: "[1, 2]", m: '{"x": 1}'}
  no_struct: {kind: values, columns: {s: "struct<plan: string>"}, records: [[nonsense]]}
  no_field: {kind: values, columns: {s: "struct<plan: string>"}, records: [[{plna: p}]]}
  no_list: {kind: values, columns: {a: array<int>}, records: [[{b: 1}]]}
  self: {kind: mock}
"""

Expected: TypeAlias = dict[str, tuple[str, list[Row]]]

PEOPLE: list[Row] = [
    ("1", "Ann", "red", "1990-01-01"),
    ("2", "Bob", "blue", "1991-02-02"),
    ("3", "Cleo", "red", None),
]

EXPECTED: Expected = {
    "people": ("id name team born", PEOPLE),
    "embedded": ("X y", [("2", None)]),
    "teams": ("team size", [("red", "2.5"), ("green", "1.0")]),
    "my-alias": ("id name team born", PEOPLE),
    "queried": ("name size", [("Bob", None), ("Cleo", "2.5")]),
    "selected": ("who n", [("ANN", "2"), ("BOB", "3")]),
    "projected": ("name key", [("Ann", "1"), ("Bob", "2"), ("Cleo", "3")]),
    "extended": ("team size a b", [("RED", "2.5", "3.5", "7.0"), ("GREEN", "1.0", "2.0", "4.0")]),
    "dropped": ("id name", [("1", "Ann"), ("2", "Bob"), ("3", "Cleo")]),
    "cast": ("team size", [("red ", "2"), ("gree", "1")]),
    "filtered": ("id name team born", [PEOPLE[0], PEOPLE[2]]),
    "joined": ("team id name born size", [
        ("red", "1", "Ann", "1990-01-01", "2.5"),
        ("red", "3", "Cleo", None, "2.5"),
    ]),
    "apart": ("id left right", [("1", "red", "red"), ("2", "blue", None), ("3", "red", "red")]),
    "united": ("id name team born size", [
        *((*person, None) for person in PEOPLE),
        (None, None, "red", None, "2.5"),
        (None, None, "green", None, "1.0"),
    ]),
    "united_fields": ("x y z", [("1", "2", None), ("3", "4", "5")]),
    "united_columns": ("team", [("red",), ("blue",), ("green",)]),
    "counted": ("team year people", [("red", "1990", "1"), ("blue", "1991", "1"), ("red", None, "1")]),
    "distinct": ("team", [("red",), ("blue",), ("green",)]),
    "mocked": ("id name team born", [(None, "Eve", None, None)]),
    "kept": ("id name team born", PEOPLE),
}  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path, spark: SparkSession) -> Workspace:
    return make_workspace(tmp_path, MAPPINGS, sessions=same(spark))


NESTED = """
mappings:
  events:
    kind: values
    columns: {id: int, ts: int, state: string}
    records: [[1, 1, a], [1, 3, c], [1, 2, b], [2, 5, x], {id: 3, state: y}]
  updates: {kind: values, columns: {state: string, id: int}, records: [[B, 2], [n, 4]]}
  orders:
    kind: values
    columns: {orderId: int, customer: "struct<firstName: string, address: struct<city: string>>",
              items: "array<struct<sku: string, qty: int>>", tags: array<string>, day: date}
    records:
      - [7, {firstName: Ann, address: {city: Bonn}}, [{sku: s1, qty: 2}, {sku: s2, qty: 1}], [t], 2022-01-01]
  latest: {kind: latest, input: events, keyColumns: id, versionColumns: ts}
  earliest: {kind: earliest, input: events, keyColumns: id, versionColumns: [ts]}
  history:
    kind: historize
    input: events
    keyColumns: id
    timeColumn: ts
    columnInsertPosition: beginning
    filter: id < 3
  upserted: {kind: upsert, input: first, updates: updates, keyColumns: id, filter: state <> 'n'}
  first: {kind: filter, input: events, condition: ts > 2}
  stacked:
    kind: stack
    input: latest
    nameColumn: name
    valueColumn: value
    stackColumns: {state: S, TS: T}
    dropNulls: true
  flat: {kind: flatten, input: orders, naming: camelCase}
  exploded:
    kind: explode
    input: orders
    array: items
    outerColumns: {drop: "*", keep: day, rename: {city: customer.address.city}}
    innerColumns: {rename: {article: sku}}
  tags: {kind: explode, input: orders, array: tags, outerColumns: {drop: [customer, items, day]}}
  conformed: {kind: conform, input: orders, naming: snakeCase, types: {date: timestamp, int: bigint}}
  as_declared: {kind: schema, input: updates, columns: {ID: bigint, other: date}}
  kept:
    kind: schema
    input: updates
    columns: {id: string, other: date}
    columnMismatchPolicy: add_columns_or_ignore
    typeMismatchPolicy: ignore
  refused: {kind: schema, input: updates, columns: {id: int}, columnMismatchPolicy: error}
  refused_type:
    kind: schema
    input: updates
    columns: {state: int}
    typeMismatchPolicy: CAST_COMPATIBLE_OR_ERROR
  computed: {kind: python, file: functions.py, function: doubled, inputs: updates, arguments: {by: 3}}
  nothing: {kind: python, file: functions.py, function: nothing}
  unresolved: {kind: python, file: functions.py, function: unresolved, inputs: updates}
  collected: {kind: python, file: functions.py, function: collected, inputs: updates}
"""

FUNCTIONS = """
def doubled(frame, by):
    from pyspark.sql import SparkSession

    assert SparkSession.getActiveSession() is not None
    return frame.selectExpr(f"id * {by} AS id")

def nothing():
    return None

def unresolved(frame):
    return frame.select("stat")

def collected(frame):
    return frame.where(f"id = {len(frame.selectExpr('assert_true(id > 2)').collect())}")
"""

LATER: Expected = {
    "latest": ("id ts state", [("1", "3", "c"), ("2", "5", "x"), ("3", None, "y")]),
    "earliest": ("id ts state", [("1", "1", "a"), ("2", "5", "x"), ("3", None, "y")]),
    "history": (
        "valid_from valid_to id ts state",
        [
            ("1", "2", "1", "1", "a"),
            ("2", "3", "1", "2", "b"),
            ("3", None, "1", "3", "c"),
            ("5", None, "2", "5", "x"),
        ],
    ),
    "upserted": ("state id", [("c", "1"), ("B", "2")]),
    "stacked": (
        "id name value",
        [("1", "S", "c"), ("1", "T", "3"), ("2", "S", "x"), ("2", "T", "5"), ("3", "S", "y")],
    ),
    "exploded": (
        "day city qty article",
        [("2022-01-01", "Bonn", "2", "s1"), ("2022-01-01", "Bonn", "1", "s2")],
    ),
    "tags": ("orderId tags", [("7", "t")]),
    "as_declared": ("ID other", [("2", None), ("4", None)]),
    "kept": ("id other state", [("2", None, "B"), ("4", None, "n")]),
    "computed": ("id", [("6",), ("12",)]),
}


def rows(workspace: Workspace, mapping: str) -> list[Row]:
    frame = workspace.frame(mapping)
    return [tuple(row) for row in frame.select(*(frame[n].cast("string") for n in frame.columns)).collect()]


def check_frames(workspace: Workspace, expected: Expected) -> None:
    """Compare the columns of each mapping and its rows, in any order."""
    frames = {name: workspace.frame(name) for name in expected}
    assert {name: frame.columns for name, frame in frames.items()} == {
        name: columns.split() for name, (columns, _) in expected.items()
    }
    assert rows_by_name(frames) == {name: sorted(found, key=by_text) for name, (_, found) in expected.items()}


def test_each_kind_gives_its_rows(workspace: Workspace) -> None:
    check_frames(workspace, EXPECTED)
    assert [row[1] for row in rows(workspace, "sorted")] == ["Ann", "Cleo", "Bob"]
    assert {row[2] for row in rows(workspace, "deduplicated")} == {"red", "blue"}
    assert workspace.frame("projected").schema["key"].metadata == {"comment": "The key"}
    assert workspace.frame("kept").storageLevel.useMemory
    workspace.frame("kept").unpersist()


@pytest.mark.jvm  # the line of a function, which Spark Connect learns too late
def test_the_other_kinds_give_theirs(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    workspace = make_workspace(tmp_path, NESTED, sessions=same(spark))
    check_frames(workspace, LATER)
    assert workspace.frame("flat").columns == [
        "orderId",
        "customerFirstName",
        "customerAddressCity",
        "items",
        "tags",
        "day",
    ]
    assert [field.type.ddl for field in workspace.fields("conformed")] == [
        "bigint",
        "struct<`first_name`: string, `address`: struct<`city`: string>>",
        "array<struct<`sku`: string, `qty`: bigint>>",
        "array<string>",
        "timestamp",
    ]
    with pytest.raises(TargetError, match="has also state"):
        workspace.frame("refused")
    with pytest.raises(TargetError, match=r"column state .* has type string, not int"):
        workspace.frame("refused_type")
    with pytest.raises(SpecError, match="nothing gave NoneType"):
        workspace.frame("nothing")
    place = r".*functions.py, line {}\)"
    with pytest.raises(SpecError, match=f"'unresolved': unresolved .{place.format(12)} failed: .*`stat`"):
        workspace.frame("unresolved")
    ran = f"Spark failed while mapping 'collected' ran collected .{place.format(15)}: .*is not true"
    with pytest.raises(TargetError, match=ran):
        workspace.frame("collected")


def test_what_cannot_be_built_says_why(workspace: Workspace) -> None:
    with pytest.raises(SpecError, match=r"rejects it: .*`nmae`.*line 2, column 2 of the text") as told:
        workspace.frame("misspelt")
    assert told.value.location is not None
    with pytest.raises(SpecError, match=r"'unparsed': .* at or near 'LEFT' .line 1, column"):
        workspace.frame("unparsed")
    with pytest.raises(SpecError, match="there is no mapping 'peeple'"):
        workspace.frame("peeple")
    with pytest.raises(LakewrightError, match="mocks itself"):
        workspace.frame("self")
    for name, said in (
        ("wrong", "record 1: column x: one is not of type int"),
        ("no_struct", "record 1: column s: nonsense is not of type struct<`plan`: string>"),
        ("no_field", 'record 1: column s: {"plna": "p"} is not of type struct<`plan`: string>'),
        ("no_list", 'record 1: column a: {"b": "1"} is not of type array<int>'),
    ):
        with pytest.raises(SpecError) as refused:
            workspace.frame(name)
        assert refused.value.faults[0].message == f"mapping {name!r}: {said}"


ODD = """
relations:
  parquet: {kind: file, format: parquet, location: data/parquet}
  json: {kind: file, format: json, location: data/json}
  delta: {kind: delta, location: data/delta}
mappings:
  odd:
    kind: sql
    sql: |
      SELECT named_struct('unit price', 1, 'no.', 'a', 'b`c', array(named_struct('x y', 2))) AS s,
        map('k', named_struct('first name', 3)) AS m, 5 AS `a.b`, 6 AS c
  intervals: {kind: sql, sql: "SELECT interval '1' day AS d, interval '2-1' year to month AS m, 1 AS n"}
  conformed: {kind: conform, input: odd, types: {int: bigint}}
  declared: {kind: cast, input: intervals, columns: {n: string, d: interval day to second}}
  latest: {kind: latest, input: odd, keyColumns: "`a.b`", versionColumns: ["`c`"]}
  distinct: {kind: deduplicate, input: odd, columns: ["`a.b`", c]}
  dropped: {kind: drop, input: odd, columns: ["`a.b`", s, m]}
  order: {kind: sql, sql: "SELECT 1 AS id, 2 AS ID_, array(named_struct('ID', 3)) AS lines"}
  renamed: {kind: sql, sql: "SELECT 1 AS orderId, 2 AS order_id"}
  inner: {kind: sql, sql: "SELECT named_struct('orderId', 1, 'order_id', 2) AS s"}
  lines: {kind: explode, input: order, array: lines}
  numbered: {kind: explode, input: order, array: lines, innerColumns: {rename: {line: ID}}}
  snake: {kind: conform, input: renamed, naming: snakeCase}
  snake_inside: {kind: conform, input: inner, naming: snakeCase}
  product: {kind: join, inputs: [order, renamed]}
  crossed: {kind: join, inputs: [order, renamed], mode: cross}
"""


def test_names_and_types_of_any_form_are_read_and_written(tmp_path: Path, spark: SparkSession) -> None:
    """Spark's text of a type has no quotes around names, and intervals have units."""
    workspace = make_workspace(tmp_path, ODD, sessions=same(spark))
    struct = "struct<`unit price`: bigint, `no.`: string, `b``c`: array<struct<`x y`: bigint>>>"
    assert [field.type.ddl for field in workspace.fields("conformed")] == [
        struct,
        "map<string,struct<`first name`: bigint>>",
        "bigint",
        "bigint",
    ]
    assert [field.type.ddl for field in workspace.fields("declared")] == [
        "interval day to second",
        "interval year to month",
        "string",
    ]
    for name in ("conformed", "latest", "distinct"):
        assert [row["a.b"] for row in workspace.frame(name).collect()] == [5]
    assert workspace.frame("dropped").columns == ["c"]
    for relation, mapping in (("parquet", "odd"), ("json", "odd"), ("parquet", "intervals")):
        written = stored(workspace, relation)
        written.write(workspace, workspace.frame(mapping), partition={}, mode=OutputMode.OVERWRITE)
        assert written.read(workspace).count() == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lines", "two columns become 'ID' when exploded: one of the row, one of the element"),
        ("snake", "two columns become 'order_id' when renamed"),
        ("snake_inside", "two columns become 'order_id' in a struct when renamed"),
    ],
)
def test_two_columns_of_one_name_are_refused(
    tmp_path: Path, spark: SparkSession, name: str, said: str
) -> None:
    workspace = make_workspace(tmp_path, ODD, sessions=same(spark))
    with pytest.raises(SpecError) as refused:
        workspace.frame(name)
    assert refused.value.faults[0].message == f"mapping {name!r}: {said}"
    assert workspace.frame("numbered").columns == ["id", "ID_", "line"]


def test_a_join_without_a_condition_is_told_unless_it_is_declared(
    tmp_path: Path, spark: SparkSession
) -> None:
    workspace = make_workspace(tmp_path, ODD, sessions=same(spark))
    for name in ("product", "crossed"):
        workspace.frame(name)
    assert workspace.take_notes("crossed") == []
    assert workspace.take_notes("product") == [
        "mapping 'product': has neither columns nor a condition, so that each row joins every row of the "
        "other input; if that is meant, declare `mode: cross`"
    ]


NAMING = """
relations: {p: {kind: values, columns: {id: int}, records: [[1]]}}
mappings:
  prices:
    kind: values
    columns: {item: string, price: "decimal(10,2)", tags: "array<struct<a: int, b: int>>"}
    records: [[tea, "2.50", []]]
  cast: {kind: cast, input: prices, columns: {prize: double, ITEM: string}}
  drop: {kind: drop, input: prices, columns: [itm]}
  conform: {kind: conform, input: prices, types: {timestamp: string, int: bigint}}
  relation: {kind: relation, relation: p, columns: {id: int, nosuch: int}}
  explode:
    kind: explode
    input: prices
    array: tags
    outerColumns: {drop: pric}
    innerColumns: {keep: c, drop: "*"}
  stack:
    {kind: stack, input: prices, nameColumn: n, valueColumn: v, stackColumns: {item: i}, dropColumns: tgs}
  assemble:
    {kind: assemble, input: prices, columns: [{kind: append, drop: prce}, {kind: lift, columns: [x.y]}]}
  inner: {kind: unit, mappings: {prices: {kind: cast, input: drop, columns: {inside: int}}}}
  unit: {kind: alias, input: "inner:prices"}
  groups: {kind: groupedAggregate, input: prices, aggregations: {n: count(*)}, groups: {all: {}}}
"""
NOTES = {
    "cast": "its input has no column prize to cast; did you mean 'price'?",
    "drop": "its input has no column itm to drop; did you mean 'item'?",
    "conform": "its input has no column of the type timestamp to replace; there are: decimal, int, string",
    "relation": "relation 'p' has no column nosuch, so null is read; there are: id",
    "explode": "its input has no column pric; did you mean 'price'?",
    "stack": "its input has no column tgs to drop; did you mean 'tags'?",
    "assemble": "its input has no column prce, x.y; did you mean 'price'?",
}


def test_a_column_that_the_input_lacks_is_told_by_the_run(tmp_path: Path, spark: SparkSession) -> None:
    workspace = make_workspace(tmp_path, NAMING, sessions=same(spark))
    for name, note in NOTES.items():
        workspace.frame(name)
        told = workspace.take_notes(name)
        assert f"mapping {name!r}: {note}" in told
        assert (len(told), workspace.take_notes(name)) == (2 if name == "explode" else 1, [])
    workspace.frame("unit")
    assert [note.partition(";")[0] for note in workspace.take_notes("unit")] == [
        "mapping 'prices': its input has no column inside to cast"
    ]
    for name in ("sort", "latest", "deduplicate", "project"):
        keys = {"sort": "columns: [{x: asc}]", "latest": "keyColumns: x, versionColumns: x"}
        sections = f"{NAMING}  wrong: {{kind: {name}, input: prices, {keys.get(name, 'columns: x')}}}\n"
        with pytest.raises(SpecError, match="mapping 'wrong'"):
            make_workspace(tmp_path, sections, sessions=same(spark)).frame("wrong")


def test_spark_analyses_every_output_and_tells_what_can_never_work(
    tmp_path: Path, spark: SparkSession
) -> None:
    sections = f"""{NAMING}
  never: {{kind: schema, input: prices, columns: {{item: string}}, columnMismatchPolicy: ERROR}}
  misgrouped: {{kind: groupedAggregate, input: prices, aggregations: {{n: count(x)}}, groups: {{all: {{}}}}}}
  united: {{kind: union, inputs: [prices], columns: {{item: string, prize: double}}}}
  fine: {{kind: values, columns: {{n: "decimal(38,10)"}}}}
  whole: {{kind: values, columns: {{n: "decimal(38,0)"}}}}
  wide: {{kind: union, inputs: [fine, whole]}}
"""
    workspace = make_workspace(tmp_path, sections, sessions=same(spark))
    analysis = analyse_with_spark(
        workspace.project, workspace.lake, evaluate_project(workspace.project, workspace.lake)
    )
    errors = [fault.message for fault in analysis.errors]
    assert len(errors) == 3, errors
    assert errors[2] == (
        "mapping 'wide': column n is decimal(38,10) in one input and decimal(38,0) in another, and no "
        "decimal holds the digits of both: Spark would cut fractions"
    )
    assert errors[0] == "the input of mapping 'never' has also price, tags"
    assert "mapping 'misgrouped'" in errors[1]
    assert analysis.errors[0].location is not None
    told = [fault.message for fault in analysis.warnings]
    assert f"mapping 'cast': {NOTES['cast']}" in told
    assert "mapping 'united': no input has the column prize, which is null" in told
    assert not [fault for fault in analysis.warnings if "yet" in fault.message]


def test_a_struct_is_written_as_the_list_of_its_values_or_as_a_map(workspace: Workspace) -> None:
    """A list, or a text of another shape, became a struct of nulls."""
    row = (("p", (Decimal("1.50"),)), [1, 2], {"x": 1})
    assert [tuple(each) for each in workspace.frame("nested").collect()] == [row, row]


def test_a_frame_is_built_once_until_its_source_is_written(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "data.csv").write_text("id\n1\n")
    workspace = make_workspace(
        tmp_path,
        """
        relations:
          data: {kind: file, format: csv, location: data.csv, options: {header: true}}
        mappings:
          data: {kind: relation, relation: data}
          other: {kind: values, columns: {x: int}}
        """,
        sessions=same(spark),
    )
    first, other = workspace.frame("data"), workspace.frame("other")
    assert workspace.frame("data") is first
    workspace.invalidate(workspace.required("data"))
    assert workspace.frame("data") is not first
    assert workspace.frame("other") is other


class Twice:
    """A table function in Python."""

    def eval(self, number: int) -> Iterator[tuple[int]]:
        yield (number,)
        yield (number,)


@pytest.mark.jvm
def test_python_functions_in_a_frame_are_found_and_their_python_is_asked_for(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(3)
    rows = spark.sparkContext.parallelize([1, 2]).map(lambda number: (number,))
    twice: Any = f.udtf(Twice, returnType="id: long")
    running = {
        "a function": frame.select(f.udf(lambda number: number, "long")("id")),
        "a function of frames": frame.mapInPandas(lambda frames: frames, "id long"),
        "a table function": twice(f.lit(1)),
        "an RDD": (of_rows := spark.createDataFrame(rows, "id long").where("id > 1")),
        "an RDD in a subquery": frame.where(frame.id == of_rows.select(f.max("id")).scalar()),
        "a table function in a subquery of a subquery": frame.where(
            frame.where(frame.id == twice(f.lit(1)).select(f.max("id")).scalar()).exists()
        ),
    }
    monkeypatch.setattr(cluster, "is_cluster", lambda _: True)
    monkeypatch.setattr(cluster, "_passed", WeakKeyDictionary())
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python")
    lake = Lake(
        LakeSettings(root_folder="s3://b/lake"), SessionSettings(Path("unused")), sessions=same(spark)
    )
    check_python(lake, frame, "mapping 'm'")
    for what, computed in running.items():
        with pytest.raises(SparkUnavailable, match=f"{what} .* no Python at /no/such/python"):
            check_python(lake, computed, what)


@pytest.mark.jvm
def test_rows_of_a_project_reach_spark_without_python_and_as_they_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    texts = ["it's", 'a "b"', "back\\slash \\u0041", "line\nend", "\U0001f600 é", "", " ", None]
    names = ["odd `name`", "n"]
    rows = [(text, str(index)) for index, text in enumerate(texts)]
    frame = frame_of_texts(spark, names, rows)
    assert frame.columns == names
    assert [tuple(row) for row in frame.collect()] == rows
    assert not runs_python(frame)

    assert frame_of_texts(spark, ["n"], []).collect() == []
    empty = empty_frame(spark, [("id", "int"), ("tags", "array<string>")])
    assert empty.dtypes == [("id", "int"), ("tags", "array<string>")]
    assert empty.collect() == []
    assert not runs_python(empty)
