"""Entities whose patterns choose files of one folder: each has its own slices."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakewright.app import App
from lakewright.manifest.verdict import Verdict
from lakewright.slices.application import application_of
from lakewright.slices.discovery import discovered, list_slices, slice_name

PATTERNS = {
    "endings": ("*.csv", "*.json"),
    "names": ("a_*.csv", "b_*.json"),
    "one ending and a name": ("*.csv", "b_*.json"),
    "a folder inside": ("*.csv", "inside/*.csv"),
    "a file": ("a_1.csv", "*.json"),
}


@pytest.mark.parametrize("case", PATTERNS)
def test_each_entity_has_its_own_items(case: str, tmp_path: Path) -> None:
    for name in ("a_1.csv", "b_1.json", "inside/a_1.csv"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("")
    one, other = PATTERNS[case]
    (tmp_path / "project.yml").write_text(
        f"name: x\nentities: {{one: {{from: 'in/{one}', key: id}}, other: {{from: 'in/{other}', key: id}}}}\n"
    )
    app = App.open(tmp_path, environ={})
    app.make_store()
    chains = {name: app.chain(entity) for name, entity in app.project.entities.items()}
    present = {name: list_slices(chain.folder, app.lake) for name, chain in chains.items()}
    for name, chain in chains.items():
        application = application_of(app.project.name, chain.entity)
        app.ledger.discover(discovered(present[name], application, name))
    for name, chain in chains.items():
        found = [slice_name(item) for item in chain.items(Verdict.READY)]
        assert found == [slice_.name for slice_ in present[name]]
        assert len(found) == 1
    app.close()
