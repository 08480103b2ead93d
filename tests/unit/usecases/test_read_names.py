"""Names whose values a reader gives: those that the project knows, and slips of them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.errors import UsageError
from lakewright.usecases.read_frames import _workspace

MODEL = """
environment: [region=north]
mappings:
  items: {kind: values, columns: {n: int}, records: [[1]]}
  large: {kind: filter, input: items, condition: "n >= ${least} AND n < ${most + 1}"}
jobs:
  daily: {parameters: [{name: day, type: date}], environment: [least=10], targets: []}
"""


@pytest.fixture
def app(tmp_path: Path) -> App:
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m.yml]\n")
    (tmp_path / "m.yml").write_text(MODEL)
    return App.open(tmp_path, environ={})


@pytest.mark.parametrize("name", ["least", "day", "region", "most"])
def test_a_name_that_a_declaration_has_or_uses_is_taken(
    app: App, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert _workspace(app, {name: 5}).scope.value(name) == 5
    assert not caplog.records


def test_a_slip_is_refused_and_what_nothing_shows_is_warned_of(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """`read(leest=10)` gave the rows of the declared value."""
    with pytest.raises(UsageError, match="no declaration of the project uses the name 'leest'") as refused:
        _workspace(app, {"leest": 10})
    assert refused.value.remedy == "did you mean 'least'?"
    with caplog.at_level(logging.WARNING):
        _workspace(app, {"zzz": 10})
    assert "uses the name 'zzz'; its value may have no effect" in caplog.text
