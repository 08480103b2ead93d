"""What Spark does for slices and gold, done in plain Python where a session stands in for one of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.plain import gold, slices


@contextmanager
def standing_in() -> Iterator[None]:
    """Have sessions that stand in for Spark's do their work inside the block; those of Spark do theirs."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("attempt", "slice_replay"):
            patch.setattr(f"lakewright.slices.{module}.commit_slices", slices.commit_slices)
        patch.setattr("lakewright.usecases.rewinding.compare_beside", slices.compare_beside)
        patch.setattr("lakewright.slices.validation.read_slice", slices.read_slice)
        patch.setattr("lakewright.slices.validation.fit_slice", slices.fit_slice)
        patch.setattr("lakewright.targets.writing.RowTarget.outgoing", gold.outgoing)
        patch.setattr("lakewright.relations.delta.DeltaRelation._write", gold.write)
        yield
