"""Workers of `manifest run` side by side: each item once, none lost, payloads right (rules, "The bus")."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command import BIN

from lakewright import Manifest

PAYLOAD = 'echo "$LAKEWRIGHT_ITEM" >>"$LOG"; printf \'{"n": "%s"}\' "$LAKEWRIGHT_ITEM" >"$LAKEWRIGHT_PAYLOAD"'


def _race(folder: Path, settings: dict[str, Any], *, workers: int, items: int) -> None:
    (folder / "m").mkdir()
    (folder / "project.yml").write_text(
        f"name: shop\nmodules: [m]\nmanifest: {json.dumps({**settings, 'lease': '60s'})}\n"
    )
    names = [f"item {number:05}" for number in range(items)]
    with Manifest.open(settings) as manifest:
        manifest.add(*names, application="acme/landing")
    command = [str(BIN / "lakewright"), "manifest", "run", "--as", "acme/scanner", "-j", "2", "--"]
    running = [
        subprocess.Popen(
            [*command, "sh", "-c", PAYLOAD],
            cwd=folder,
            env={**os.environ, "LOG": str(folder / "log")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(workers)
    ]
    ended = [(*worker.communicate(timeout=3_000), worker.returncode) for worker in running]
    assert [code for _, _, code in ended] == [0] * workers, ended
    assert sorted((folder / "log").read_text().splitlines()) == names
    with Manifest.open(settings) as manifest:
        state = {each.item_id: each.payload for each in manifest.state("acme/scanner")}
        assert state == {name: {"n": name} for name in names}
        states = [[record.state.value for record in manifest.records(name)] for name in names]
    assert states == [["NEW", "PROCESSING", "PROCESSED"]] * items


def test_workers_process_each_item_once(tmp_path: Path, sqlite: dict[str, Any]) -> None:
    _race(tmp_path, sqlite, workers=3, items=40)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_eight_workers_process_two_thousand_items_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    _race(tmp_path, request.getfixturevalue(kind), workers=8, items=2_000)
