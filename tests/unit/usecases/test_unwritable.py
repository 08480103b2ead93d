"""A manifest on this machine that can be read but not written: plan, status and doctor say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.documents import checked

MODEL = """
targets: {nothing: {kind: blackhole, mapping: rows}}
mappings: {rows: {kind: values, records: [[1]], columns: {n: int}}}
jobs: {daily: {targets: nothing}}
"""


def shop(folder: Path, kind: str) -> InProcess:
    settings = {"sqlite": "{path: m/manifest.db}", "delta": "{kind: delta, location: m/manifest.db}"}[kind]
    (folder / "project.yml").write_text(
        f"name: shop\nmodules: [model.yml]\nlake: {{root_folder: lake}}\nmanifest: {settings}\n"
    )
    (folder / "model.yml").write_text(MODEL)
    (folder / "m").mkdir()
    return InProcess(folder)


def lock(monkeypatch: pytest.MonkeyPatch, *read_only: Path) -> None:
    """Let the operating system say of places that this user may not write them, as a user that is root."""
    real = os.access

    def access(place: Path, mode: int, **_: object) -> bool:
        return not (mode & os.W_OK and Path(place) in read_only) and real(place, mode)

    monkeypatch.setattr(os, "access", access)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("sqlite", ""),
        ("sqlite", ".."),
        ("delta", ""),
        ("delta", "_delta_log"),
    ],
)
def test_plan_status_and_doctor_say_that_a_run_would_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, part: str
) -> None:
    made = shop(tmp_path, kind)
    manifest = tmp_path / "m" / "manifest.db"
    assert made.run("manifest", "add", "x", "--as", "acme/landing").code == 0
    plan, status = ("plan", "daily", "build"), ("status",)
    for command in (plan, status):
        assert "may not write" not in made.run(*command).out
    before = manifest.stat().st_mtime_ns

    lock(monkeypatch, Path(os.path.normpath(manifest / part)))
    for command in (plan, status, ("doctor",)):
        done = made.run(*command)
        said = " ".join(done.all.split())
        assert f"{manifest} can be read, but this user may not write to it: a run would fail" in said
        assert "Give the user who runs Lakewright the right to write" in said
    assert "may not write" in checked(made.json(*plan))["warning"]["message"]
    assert "may not write" in checked(made.json(*status))["unwritable"]["message"]
    assert manifest.stat().st_mtime_ns == before


@pytest.mark.parametrize("kind", ["sqlite", "delta"])
def test_a_manifest_that_can_not_be_created_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    made = shop(tmp_path, kind)
    assert made.json("plan", "daily", "build")["warning"] is None
    lock(monkeypatch, tmp_path / "m")
    told = made.json("plan", "daily", "build")["warning"]
    assert f"does not exist, and this user may not create it in {tmp_path}/m" in told["message"]
    assert list((tmp_path / "m").iterdir()) == []
