"""What a mapping has observed, as a result prints it."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.result import TargetResult
from lakewright.spark.engine import measured


def test_what_was_measured_is_json() -> None:
    found: dict[str, Any] = {
        "n": 3,
        "price": Decimal("2.50"),
        "share": math.nan,
        "day": date(2024, 5, 1),
        "at": datetime(2024, 5, 1, 8, tzinfo=UTC),
        "clock": time(8, 30),
        "raw": bytearray(b"ab"),
        "length": timedelta(hours=25),
        "many": [{"x": Decimal(1)}, None],
    }
    values = measured(SimpleNamespace(get=found))  # type: ignore[arg-type]
    result = TargetResult("t", "local", Phase.BUILD, Status.SUCCESS, metrics=values or {})
    assert json.loads(json.dumps(result.as_json()["metrics"], allow_nan=False)) == {
        "n": 3,
        "price": 2.5,
        "share": "nan",
        "day": "2024-05-01",
        "at": "2024-05-01T08:00:00+00:00",
        "clock": "08:30:00",
        "raw": "6162",
        "length": "1 day, 1:00:00",
        "many": [{"x": 1.0}, None],
    }
