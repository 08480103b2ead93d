"""Frames that landing refuses. No Spark is started."""

from __future__ import annotations

from typing import Any

import pytest

from lakewright.errors import UsageError
from lakewright.spec.models.entity import Entity
from lakewright.usecases.land_slice import check_key


def entity(**fields: Any) -> Entity:
    key = {"name": "order", "expression": "upper(id)", "fieldroles": ["businesskey", "calculated"]}
    columns = [{"name": "id", "newname": "number", "fieldroles": ["businesskey"]}, key, {"name": "price"}]
    return Entity.model_validate(
        {"id": "1", "name": "orders", "connection": "c", "processtype": "merge", "columns": columns, **fields}
    )


def test_a_frame_without_a_column_of_the_business_key_is_refused() -> None:
    check_key(entity(), ["ID", "price"])
    with pytest.raises(UsageError, match="lacks the column 'id' of the business key of orders") as refused:
        check_key(entity(), ["idd", "price"])
    assert refused.value.remedy == "did you mean 'idd'?"


def test_a_key_that_may_come_from_elsewhere_is_left_to_the_run() -> None:
    check_key(entity(settings={"null_keys": "allow"}), ["price"])
