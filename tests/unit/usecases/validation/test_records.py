"""`validate` finds values of declared records that do not fit their columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import make_project

from lakewright.app import App
from lakewright.errors import SpecError
from lakewright.schema.types import Scalar
from lakewright.spec.models.fields import Field
from lakewright.spec.models.records import fits, without_others
from lakewright.spec.models.type_text import parse_sql_type
from lakewright.usecases.validate_project import validate_project

MODEL = """
relations:
  rates:
    kind: values
    columns: {code: varchar(3), rate: "decimal(5,2)"}
    records:
      - {code: EUR, rate: 1.5}
      - {code: EURO, raet: 1}
mappings:
  people:
    kind: values
    columns: {id: int, born: date, tags: "array<tinyint>"}
    records:
      - [1, 1990-01-01, [1, 2]]
      - [1.5, 1990-01-01]
      - [2, "1990-01-01 12:30:00"]
      - [3, 1990-01-01, [128]]
      - [$n, $day]
      - [4, 1990-01-01, [], 5]
targets:
  compared:
    kind: compare
    actual: {kind: mapping, mapping: people}
    expected: {kind: values, columns: {id: int}, records: [[1], [x]]}
jobs:
  daily: {parameters: [{name: day, type: timestamp}, {name: n}]}
"""


def test_values_that_do_not_fit_are_told_with_their_place(tmp_path: Path) -> None:
    app = App(make_project(tmp_path, MODEL), {"XDG_STATE_HOME": str(tmp_path / "state")})
    lost = "Correct the value, or declare a type that holds all of its digits."
    assert [str(fault) for fault in validate_project(app).errors] == [
        "module.yml:24: target 'compared': record 2: column id: x is not of type int "
        "(Correct the value, or the type of the column.)",
        f"module.yml:15: mapping 'people': record 2: column id: 1.5 is not of type int ({lost})",
        "module.yml:16: mapping 'people': record 3: column born: 1990-01-01 12:30:00 is not of type date "
        "(Leave out the time, or declare the column as timestamp.)",
        f"module.yml:17: mapping 'people': record 4: column tags: 128 is not of type tinyint ({lost})",
        "module.yml:19: mapping 'people': record 6: 4 values for 3 columns "
        "(Remove what is too much, or name the columns of the values: {column: value}.)",
        "module.yml:8: relation 'rates': record 2: there is no column 'raet' for its value "
        "(did you mean 'rate'?)",
    ]


def test_a_mock_drops_values_without_a_column_but_no_misspelt_ones() -> None:
    fields = [Field(name="id", type=Scalar("int")), Field(name="price", type=Scalar("double"))]
    kept, dropped = without_others(fields, [[1, 2.5, "x"], {"ID": 2, "other": 3}])
    assert kept == [[1, 2.5], {"ID": 2}]
    assert dropped == (
        "values after the first 2, its columns, are left out",
        "there is no column 'other', so its values are left out",
    )
    with pytest.raises(SpecError, match=r"record 1: there is no column 'prize' \(did you mean 'price'"):
        without_others(fields, [{"id": 1, "prize": 2.5}])


@pytest.mark.parametrize(
    ("kind", "fitting", "others"),
    [
        ("int", "1 -1 +1 1.0 1. 2147483647", "1.5 .5 2147483648 1e3 one"),
        ("bigint", "9223372036854775807 -9223372036854775808", "9223372036854775808 NaN"),
        ("decimal(5,2)", "1 999.99 1.50 1.500 1e2 -0.01 0.000", "1000 1.505 1e3 NaN x"),
        ("decimal(38,38)", f"0.{'1' * 38} .1", f"1 0.{'1' * 39}"),
        ("double", "1 1.5 1e300 NaN -Infinity inf 1d", "one 1,5"),
        ("boolean", "true F yes 0", "maybe 2"),
        (
            "date",
            "2024-02-29 2024-2-1 2024 2024-02-01T00:00:00Z",
            "2023-02-29 2024-13-01 2024-02-01T00:01 24:00 x",
        ),
        ("timestamp", "2024-02-29 2024-02-29T12:30:00+02:00", "12:30 tomorrow 2024-02-30T12:00"),
        ("char(2)", "a ab", "abc"),
        ("binary", "x", ""),
    ],
)
def test_what_fits_a_type(kind: str, fitting: str, others: str) -> None:
    declared = parse_sql_type(kind)
    assert [text for text in fitting.split() if not fits(text, declared)] == []
    assert [text for text in others.split() if fits(text, declared)] == []
