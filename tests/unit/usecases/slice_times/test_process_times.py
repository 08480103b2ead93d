"""`process` takes the processing time that all jobs declare, or says that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.usecases.slice_times.test_requeued_times import MODEL

from lakewright import Project
from lakewright.usecases.process_slices import process_times

OTHER = "jobs:\n  other: {targets: [other]}\ntargets:\n  other: {kind: entity, entity: orders}\n"


BY_SLICE = 'processingTime: "${slice.date}"'
DECLARED = "the processing times are those that the job daily declares: ${slice.date}"
NOW = "the processing time is that of now: the job daily declares"
OTHERS = f"{NOW} '${{slice.date}}', and not all jobs that process orders declare the same"
PARAMETER = f"{NOW} '${{day}}', which depends on its parameters"


@pytest.mark.parametrize(
    ("target", "other", "found"),
    [
        (BY_SLICE, "", ("${slice.date}", DECLARED)),
        ("description: none", "", (None, None)),
        ('processingTime: "${day}"', "", (None, PARAMETER)),
        (BY_SLICE, OTHER, (None, OTHERS)),
    ],
)
def test_the_declared_time_is_taken_if_no_job_has_another_one(
    tmp_path: Path, target: str, other: str, found: tuple[str | None, str | None]
) -> None:
    """Finding 12: a trigger gave slices the time of now, and a job their own, and nobody said so."""
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml, o.yml]\nlake: {root_folder: lake}\n")
    (tmp_path / "m.yml").write_text(MODEL.format(strategy="historic", target=target))
    (tmp_path / "o.yml").write_text(other)
    with Project.load(tmp_path) as shop:
        app, entity = shop.app, shop.app.project.entity("orders")
        times = process_times(app, entity, None)
        assert process_times(app, entity, "2024-05-01").text == "2024-05-01"
    text, note = found
    assert (times.text, times.note, times.is_now) == (text, note, note is not None and text is None)
