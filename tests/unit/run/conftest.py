"""Runs of fake targets need no engine, so that nothing of it is imported for them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewright.run.job.import_engine", lambda: None)
