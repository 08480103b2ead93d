"""A slice during which a cluster loses an executor is read again, and is not to blame; no JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.sessions import no_session

from lakewright.errors import ExecutorLost
from lakewright.lake.lake import Lake
from lakewright.manifest.claim import Claim
from lakewright.slices.attempt import ATTEMPTS, SliceProcessor
from lakewright.slices.result import ProcessResult, is_slice_at_fault
from lakewright.spark.conf import SessionSettings
from lakewright.spec.models.lake import LakeSettings
from lakewright.spec.models.places import Address
from lakewright.stores.heartbeat import Heartbeat

DONE = ProcessResult()
BEATING = cast("Any", SimpleNamespace(check=lambda _: None))


class Losing(SliceProcessor):
    """Loses an executor in the first attempts."""

    def __init__(self, folder: Path, losses: int) -> None:
        self.losses, self.attempts, self.warned = losses, 0, list[str]()
        lake = Lake(LakeSettings(root_folder=str(folder)), SessionSettings(folder), sessions=no_session)
        self.context = cast("Any", SimpleNamespace(lake=lake, warn=self.warned.append))
        self.places = cast("Any", SimpleNamespace(silver=Address(location=str(folder / "silver/t"))))
        self.entity = cast("Any", SimpleNamespace(name="orders"))
        self.app_id = "lakewright/shop/orders"

    def _apply(
        self, claims: Sequence[Claim], check_leases: Callable[[], None], heartbeat: Heartbeat
    ) -> ProcessResult:
        del claims, check_leases, heartbeat
        self.attempts += 1
        if self.attempts <= self.losses:
            raise ExecutorLost("an executor was lost while the slice d1.csv of orders was processed")
        return DONE


ITEM = SimpleNamespace(item_id="s3://b/d1.csv", new=None)
CLAIM = cast("Claim", SimpleNamespace(token=1, item_id=ITEM.item_id, item=ITEM, lease=None))


def test_the_slice_is_read_again(tmp_path: Path) -> None:
    losing = Losing(tmp_path, ATTEMPTS - 1)
    assert losing._commit([CLAIM], BEATING) is DONE
    assert losing.attempts == ATTEMPTS
    assert losing.warned[0].startswith("d1.csv: an executor was lost")


def test_a_slice_whose_executors_are_lost_each_time_is_not_at_fault(tmp_path: Path) -> None:
    losing = Losing(tmp_path, ATTEMPTS)
    with pytest.raises(ExecutorLost) as told:
        losing._commit([CLAIM], BEATING)
    assert losing.attempts == ATTEMPTS
    assert not is_slice_at_fault(losing.context.lake, cast("Any", None), told.value)
