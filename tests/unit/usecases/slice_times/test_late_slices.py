"""Slices that are late, or that a rebuild applies meanwhile: what is refused, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, processed

from lakewright import Project
from lakewright.slices.application import application_of
from lakewright.slices.chain import counter_of

LATE = "orders/2024-05-01.csv"


def test_a_skip_of_a_processed_slice_names_the_plan(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", BY_DAY)
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    done = shop.run("manifest", "skip", LATE, "orders/2024-05-04.csv")
    assert " ".join(done.err.split()) == (
        "warning: it was processed before; `lakewright plan` shows what is due"
    )


def test_an_unskip_of_a_slice_before_processed_ones_names_the_plan(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", BY_DAY)
    late = tmp_path / "lake/bronze/orders/2024-04-30.csv"
    late.write_text("id\n1\n")
    assert shop.run("manifest", "skip", "orders/2024-04-30.csv").err == ""
    done = shop.run("manifest", "unskip", "orders/2024-04-30.csv")
    assert "later slices are processed; `lakewright plan` shows what is due" in " ".join(done.err.split())
    (step,) = [each for each in shop.json("plan")["steps"] if each["choices"]]
    assert [each["decision"] for each in step["choices"]] == ["place", "end", "skip"]


@pytest.mark.parametrize("action", ["skip", "requeue", "accept"])
def test_what_a_rebuild_would_undo_is_refused_while_it_goes_on(tmp_path: Path, action: str) -> None:
    """A skip of a processed slice was taken back by the end of the rebuild, and nothing said so."""
    shop = processed(tmp_path, "merge", BY_DAY)
    with Project.load(tmp_path) as project:
        app, entity = project.app, project.app.project.entity("orders")
        key = counter_of(entity.places(app.project.lake).silver)
        lease = app.leases().acquire("write orders")
        application = application_of("shop", entity)
        app.ledger.announce_rewind(key, "rebuild of orders", lease, "r1", application)

        refused = shop.run("manifest", action, "orders/2024-05-03.csv", "--reason", "x")

        assert refused.code != 0
        assert "the rebuild of orders by" in refused.err
        assert "is not finished" in refused.err
        app.leases().release(lease)
    assert shop.run("manifest", "skip", "orders/2024-05-03.csv", "--reason", "x").code == 0


def test_a_late_slice_that_a_run_leaves_is_told_as_late_and_no_job_is_named_for_it(tmp_path: Path) -> None:
    """It was said to be late afterwards, and a job was named that refused it."""
    shop = processed(tmp_path, "merge", BY_DAY)
    for name in ("2024-05-02b.csv", "2024-05-04.csv", "2024-05-05.csv"):
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-04").out.split())
    assert (
        "2024-05-02b.csv is late: a run refuses it. Choose `place`, `end` or `skip`: `lakewright" in planned
    )
    assert "leaves 1 slice to other runs: 2024-05-05.csv; `lakewright apply` takes it" in planned
    assert "afterwards" not in planned
