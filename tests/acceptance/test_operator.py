"""The command post as an operator uses it, without Spark: `processing-manifest.md`, "Use cases"."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.acceptance.command import BIN
from tests.acceptance.lake import SmallLake

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    made = SmallLake.make(tmp_path / "lake")
    for name in ("1", "2"):
        made.slice("customers", name, [{"id": 1, "name": name}])
    return made


def with_manifest(lake: SmallLake, settings: str) -> None:
    project = lake.folder / "project.yml"
    project.write_text(project.read_text() + f"manifest: {settings}\n")


def test_records_are_followed_until_ctrl_c(lake: SmallLake) -> None:
    command = [str(BIN / "lakewright"), "manifest", "watch", "-o", "json", "--every", "0.2"]
    with subprocess.Popen(
        [*command, "--state", "skipped"], cwd=lake.folder, stdout=-1, stderr=-1, text=True
    ) as watch:
        assert watch.stdout is not None
        assert watch.stderr is not None
        assert watch.stderr.readline().startswith("Watching")
        (first, _second) = lake.json("manifest", "discover")["new"]
        reason = "sent \x1b[31mtwice"
        lake.json("manifest", "skip", first["item_id"], "--reason", reason, "--author", "ada")
        told = json.loads(watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        rest, said = watch.communicate(timeout=30)
    assert (told["itemId"], told["state"]) == (first["item_id"], "SKIPPED")
    assert (told["author"]["agent"]["name"], told["payload"]["data"]["reason"]) == ("ada", reason)
    assert (watch.returncode, rest, said) == (0, "", "")


def test_what_was_written_into_a_reason_forges_no_line(lake: SmallLake) -> None:
    (first, _second) = lake.json("manifest", "discover")["new"]
    lake.json("manifest", "skip", first["item_id"], "--reason", "x\nFAILED forged \x1b[2J")
    shown = lake.run("manifest", "show", first["item_id"])
    assert "\x1b" not in shown.out
    assert not any(text.startswith("FAILED") for text in shown.out.splitlines())
    assert "x\\nFAILED forged \\x1b[2J" in shown.out


@pytest.mark.parametrize("command", [("job", "daily", "build"), ("status",), ("manifest", "ls")])
def test_a_store_that_is_down_starts_nothing(lake: SmallLake, command: tuple[str, ...]) -> None:
    with_manifest(lake, '{kind: postgres, url: "postgresql://ann:hunter22-secret@127.0.0.1:1/lake"}')
    before = lake.state()
    begun = time.monotonic()
    refused = lake.run(*command)
    assert refused.code not in (0, 130)
    assert "127.0.0.1" in refused.err
    assert "hunter22" not in refused.all
    assert "Traceback" not in refused.all
    assert time.monotonic() - begun < 30
    assert lake.state() == before


def test_a_full_disk_is_told_and_loses_nothing(lake: SmallLake) -> None:
    lake.json("manifest", "discover")
    manifest = lake.folder / ".lakewright" / "manifest.db"
    room = manifest.stat().st_size
    for number in range(3, 100):
        lake.slice("customers", str(number), [{"id": 1, "name": "x"}])
    done = subprocess.run(
        [str(BIN / "lakewright"), "manifest", "discover"],
        cwd=lake.folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: limited(room),
    )
    assert done.returncode not in (0, None), done.stdout
    assert "Traceback" not in done.stderr
    assert "disk" in done.stderr
    assert lake.run("manifest", "fsck").code == 0
    assert len(lake.json("manifest", "ls")) >= 2
    lake.json("manifest", "discover")
    assert len(lake.json("manifest", "ls")) == 99


def limited(size: int) -> None:
    """Let this process write no file beyond a size, and hear of it by an error instead of a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_manifest_that_can_not_be_written_is_told(lake: SmallLake) -> None:
    (lake.folder / ".lakewright").write_text("a file in the way")
    refused = lake.run("manifest", "discover")
    assert refused.code not in (0, 130)
    assert "manifest" in refused.err
    assert "Traceback" not in refused.all


def test_looking_makes_no_manifest(lake: SmallLake) -> None:
    before = sorted(lake.folder.rglob("*"))
    for command in ("status", "history", "manifest ls", "manifest stats", "manifest fsck", "watermark ls"):
        assert lake.run(*command.split()).code == 0
    assert lake.json("plan", "daily", "build")["status"] == "WOULD_RUN"
    assert sorted(lake.folder.rglob("*")) == before
    assert "the first run creates it" in lake.run("doctor").out
    lake.json("manifest", "discover")
    assert (lake.folder / ".lakewright" / "manifest.db").is_file()
