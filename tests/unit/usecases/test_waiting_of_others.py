"""A fact is reported once. No Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.documents import checked
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, processed


def test_a_bronze_folder_that_is_gone_is_told_once(tmp_path: Path) -> None:
    """The look at bronze told it, and so did the warning of the last run."""
    shop = processed(tmp_path, "merge", BY_DAY)
    shutil.rmtree(tmp_path / "lake/bronze/orders")
    assert "is gone; slices from it are recorded" in shop.run("job", "daily", "build", "day=2024-05-09").all
    (step,) = checked(shop.json("status"))["steps"]
    assert (step["status"], step["reason"]["code"]) == ("blocked", "broken")
    assert step["reason"]["params"]["error"] == "bronze_unreadable"
