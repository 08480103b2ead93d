from __future__ import annotations

import pytest

from lakewright.errors import DataLossError, MigrationError, SpecError
from lakewright.relations.migration import (
    Migration,
    MigrationPolicy,
    MigrationStrategy,
    Shape,
    configured,
    find_steps,
)
from lakewright.schema.fits import fits
from lakewright.spec.models.fields import Field, parse_type

RELAXED, STRICT = MigrationPolicy.RELAXED, MigrationPolicy.STRICT


def shape(*columns: Field, by: str = "") -> Shape:
    return Shape(columns, tuple(by.split()))


def field(text: str, *, nullable: bool = True, comment: str | None = None, was: str | None = None) -> Field:
    name, _, kind = text.partition(" ")
    return Field(name=name, type=parse_type(kind), nullable=nullable, description=comment, renamed_from=was)


LONG, INT = field("a bigint"), field("a int")


@pytest.mark.parametrize(
    ("present", "declared", "relaxed", "strict"),
    [
        (LONG, LONG, [], []),
        (LONG, INT, [], ["change column a from bigint to int"]),
        (INT, LONG, ["change column a from int to bigint"], ["change column a from int to bigint"]),
        (field("a string"), field("a varchar(3)"), [], []),
        (
            field("a string"),
            INT,
            ["change column a from string to int"],
            ["change column a from string to int"],
        ),
        (LONG, field("a bigint", comment="x"), [], ["change the comment of column a"]),
        (LONG, field("a bigint", nullable=False), [], ["forbid nulls in column a"]),
        (field("a bigint", nullable=False), LONG, ["allow nulls in column a"], ["allow nulls in column a"]),
        (LONG, field("A bigint"), [], []),
        (LONG, field("b bigint"), ["add column b bigint"], ["drop column a", "add column b bigint"]),
        (LONG, field("b bigint", was="a"), ["rename column a to b"], ["rename column a to b"]),
        (
            LONG,
            field("b decimal(20,0)", was="A"),
            ["rename column a to b", "change column b from bigint to decimal(20,0)"],
            ["rename column a to b", "change column b from bigint to decimal(20,0)"],
        ),
    ],
)
def test_the_policy_says_which_differences_count(
    present: Field, declared: Field, relaxed: list[str], strict: list[str]
) -> None:
    for policy, expected in ((RELAXED, relaxed), (STRICT, strict)):
        steps = find_steps(shape(present), shape(declared), policy)
        assert [step.description for step in steps] == expected


def test_a_name_that_is_there_is_not_renamed_to() -> None:
    present = shape(field("a int"), field("b int"))
    declared = shape(field("b int", was="a"))
    assert find_steps(present, declared, RELAXED) == ()


def test_other_partition_columns_always_count() -> None:
    (step,) = find_steps(shape(LONG), shape(LONG, by="a"), RELAXED)
    assert step.description == "partition by a instead of nothing"
    assert step.sql is None
    assert find_steps(shape(LONG, by="A"), shape(LONG, by="a"), STRICT) == ()


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        ("tinyint", "bigint", True),
        ("bigint", "int", False),
        ("int", "decimal(10,0)", True),
        ("int", "decimal(10,1)", False),
        ("decimal(10,2)", "decimal(12,3)", True),
        ("decimal(10,2)", "decimal(10,3)", False),
        ("bigint", "double", False),
        ("int", "double", True),
        ("float", "double", True),
        ("date", "timestamp", False),
        ("date", "timestamp_ntz", True),
        ("int", "string", False),
        ("array<int>", "array<bigint>", True),
        ("map<string,int>", "map<string,smallint>", False),
        ("struct<a:int>", "struct<a:bigint,b:int>", True),
        ("struct<a:int,b:int>", "struct<a:int>", False),
        ("struct<a:int>", "int", False),
    ],
)
def test_a_type_fits_where_every_value_has_its_place(narrow: str, wide: str, expected: bool) -> None:
    assert fits(parse_type(narrow), parse_type(wide)) is expected


ADDED = find_steps(shape(LONG), shape(LONG, field("b int")), RELAXED)
DROPPED = find_steps(shape(LONG, field("b int")), shape(LONG), STRICT)
IMPOSSIBLE = find_steps(shape(field("a string")), shape(INT), RELAXED)


@pytest.mark.parametrize(
    ("steps", "strategy", "is_filled", "outcome"),
    [
        (ADDED, "NEVER", True, ["add column b int"]),
        (ADDED, "FAIL", True, MigrationError),
        (ADDED, "ALTER", True, ["add column b int"]),
        (ADDED, "ALTER_REPLACE", True, ["add column b int"]),
        (ADDED, "REPLACE", True, DataLossError),
        (ADDED, "REPLACE", False, ["replace the table with an empty one", "add column b int"]),
        (DROPPED, "ALTER", True, DataLossError),
        (DROPPED, "ALTER", False, ["drop column b"]),
        (IMPOSSIBLE, "NEVER", True, ["change column a from string to int"]),
        (IMPOSSIBLE, "ALTER", False, MigrationError),
        (IMPOSSIBLE, "ALTER_REPLACE", True, DataLossError),
        (IMPOSSIBLE, "ALTER_REPLACE", None, DataLossError),
        ((), "FAIL", True, []),
        ((), "REPLACE", True, []),
    ],
)
def test_the_strategy_says_what_is_done(
    steps: tuple[object, ...], strategy: str, is_filled: bool | None, outcome: object
) -> None:
    migration = Migration(steps, MigrationStrategy(strategy))  # type: ignore[arg-type]  # steps of the table above
    if isinstance(outcome, list):
        migration.check("relation x", is_filled=is_filled, allow_data_loss=False)
        assert [change.description for change in migration.changes(is_filled=is_filled)] == outcome
    else:
        with pytest.raises((MigrationError, DataLossError)) as caught:
            migration.check("relation x", is_filled=is_filled, allow_data_loss=False)
        assert caught.type is outcome


def test_what_is_lost_is_said_before_and_needs_leave() -> None:
    migration = Migration(DROPPED, MigrationStrategy.ALTER)
    assert [change.loses for change in migration.changes(is_filled=True)] == ["column b"]
    migration.check("relation x", is_filled=True, allow_data_loss=True)
    with pytest.raises(DataLossError, match="would lose column b"):
        migration.check("relation x", is_filled=True, allow_data_loss=False)


def test_defaults_come_from_the_configuration() -> None:
    key = "lakewright.default.relation.migrationPolicy"
    assert configured({}, "migrationPolicy", RELAXED) is RELAXED
    assert configured({key: "strict"}, "migrationPolicy", RELAXED) is STRICT
    with pytest.raises(SpecError, match=r"is unknown .*RELAXED, STRICT"):
        configured({key: "lax"}, "migrationPolicy", RELAXED)


@pytest.mark.parametrize(
    ("present", "declared", "strategy", "told"),
    [
        (shape(LONG, by="a"), shape(LONG), MigrationStrategy.ALTER, "partition by nothing instead of a"),
        (
            shape(field("s struct<x: int>")),
            shape(field("s struct<x: bigint>")),
            MigrationStrategy.ALTER,
            "change column s from struct<`x`: int> to struct<`x`: bigint>",
        ),
        (shape(INT), shape(LONG), MigrationStrategy.FAIL, "change column a from int to bigint"),
        (shape(INT), shape(LONG), MigrationStrategy.ALTER, None),
        (shape(LONG, by="a"), shape(LONG), MigrationStrategy.ALTER_REPLACE, None),
        (shape(LONG, by="a"), shape(LONG), MigrationStrategy.NEVER, None),
    ],
)
def test_what_is_refused_is_told_before(
    present: Shape, declared: Shape, strategy: MigrationStrategy, told: str | None
) -> None:
    refusal = Migration(find_steps(present, declared, STRICT), strategy).refusal("relation 'x'")
    cannot = f"relation 'x': migration strategy {strategy} cannot bring it to its declaration: {told}"
    assert (refusal and refusal.message) == (told and cannot)
