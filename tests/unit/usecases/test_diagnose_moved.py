"""What `doctor ENTITY` says of an entity after its lake was copied and `manifest move`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.unit.usecases.slice_times.test_requeued_times import BY_SLICE, processed

from lakewright import Project
from lakewright.doctor import Diagnosis
from lakewright.usecases import diagnose as diagnose_entity


def test_each_slice_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are kept in the old place, and were counted there, too."""
    shop = processed(tmp_path, "merge", BY_SLICE)
    shutil.copytree(tmp_path / "lake", tmp_path / "moved")
    project = (tmp_path / "project.yml").read_text().replace("root_folder: lake", "root_folder: moved")
    (tmp_path / "project.yml").write_text(project)
    places = (str(tmp_path / root / "bronze/orders") for root in ("lake", "moved"))
    assert shop.run("manifest", "move", *places).code == 0
    monkeypatch.setattr(diagnose_entity, "examine", lambda *_: Diagnosis(None))
    with Project.load(tmp_path) as found:
        checks = diagnose_entity.diagnose_entity(found.app, "orders").checks
    assert [check.message for check in checks if check.name == "manifest"] == ["3 processed"]
