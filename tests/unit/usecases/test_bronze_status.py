"""What `status` tells of slices in bronze."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright import Project
from lakewright.slices.application import application_of
from lakewright.usecases.bronze_status import look_at_bronze

HEADS = """
  heads:
    id: 2
    connection: shop
    processtype: merge
    settings: {bronze_path: orders}
    columns: [{name: id, fieldroles: [businesskey]}]
targets:
"""


def test_a_changed_slice_of_two_entities_is_requeued_once(tmp_path: Path) -> None:
    """The second command requeued it for the first entity once more, whose named run then failed."""
    processed(tmp_path, "historic", BY_SLICE)
    model = tmp_path / "m.yml"
    model.write_text(model.read_text().replace("\ntargets:\n", HEADS, 1))
    slice_ = tmp_path / "lake/bronze/orders/2024-05-02.csv"
    with Project.load(tmp_path) as shop:
        app = shop.app
        heads = application_of("shop", app.project.entity("heads"))
        claim = app.ledger.acquire(
            slice_.as_uri(), heads, app.holder, duration=timedelta(seconds=60), token_counter="heads"
        )
        app.ledger.processed(claim, {})
        slice_.write_text("id\n1\n2\n")
        first, second = look_at_bronze(app, {}).changed
    assert "`lakewright manifest requeue orders/2024-05-02.csv --late`, then `lakewright rebuild" in str(
        first.remedy
    )
    assert second.message == "1 slice of heads changed since it was processed: 2024-05-02.csv"
    assert second.remedy == (
        "What is named for orders requeues or accepts it for heads, too, as they read one folder: type that "
        "first. `lakewright status` then names what to type for heads."
    )
