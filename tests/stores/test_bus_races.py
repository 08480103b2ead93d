"""Workers of `manifest run` side by side: each item once, none lost, payloads right (rules, "The bus")."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command import BIN

from lakewright import Manifest

PAYLOAD = 'echo "$LAKEWRIGHT_ITEM" >>"$LOG"; printf \'{"n": "%s"}\' "$LAKEWRIGHT_ITEM" >"$LAKEWRIGHT_PAYLOAD"'


def _project(folder: Path, settings: dict[str, Any], lease: str) -> None:
    (folder / "m").mkdir()
    (folder / "project.yml").write_text(
        f"name: shop\nmodules: [m]\nmanifest: {json.dumps({**settings, 'lease': lease})}\n"
    )


def _worker(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(BIN / "lakewright"), "manifest", "run", "--as", "acme/scanner", *arguments],
        cwd=folder,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def _race(folder: Path, settings: dict[str, Any], *, workers: int, items: int) -> None:
    _project(folder, settings, "60s")
    names = [f"item {number:05}" for number in range(items)]
    with Manifest.open(settings) as manifest:
        manifest.add(*names, application="acme/landing")
    environ = {**os.environ, "LOG": str(folder / "log")}
    running = [_worker(folder, "-j", "2", "--", "sh", "-c", PAYLOAD, env=environ) for _ in range(workers)]
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


@pytest.mark.nightly
def test_a_worker_that_was_stopped_beyond_its_lease_ends_its_command_and_records_nothing(
    tmp_path: Path, sqlite: dict[str, Any]
) -> None:
    _project(tmp_path, sqlite, "2s")
    with Manifest.open(sqlite) as manifest:
        manifest.add("a", application="acme/landing")
    begun = tmp_path / "begun"
    stopped = _worker(tmp_path, "--", "sh", "-c", f"echo $$ >{begun}.new; mv {begun}.new {begun}; sleep 600")
    try:
        _wait_for(begun.exists)
        stopped.send_signal(signal.SIGSTOP)
        _wait_for(lambda: _has_expired(sqlite))
        other = _worker(
            tmp_path, "--idempotent", "--", "sh", "-c", 'echo \'{"by": "other"}\' >"$LAKEWRIGHT_PAYLOAD"'
        )
        assert "PROCESSED=1" in "".join(other.communicate(timeout=120))
        command = Path(f"/proc/{begun.read_text().strip()}")
        assert command.exists()  # what a stopped worker has started goes on, until the worker goes on
    finally:
        stopped.send_signal(signal.SIGCONT)
    said = "".join(stopped.communicate(timeout=120))
    assert "LOST=1" in said
    assert stopped.returncode == 1
    _wait_for(lambda: not command.exists())
    with Manifest.open(sqlite) as manifest:
        assert [each.payload for each in manifest.state("acme/scanner")] == [{"by": "other"}]
        states = [record.state.value for record in manifest.records("a")]
    assert states == ["NEW", "PROCESSING", "RESOLVED", "PROCESSING", "PROCESSED"]


def _has_expired(settings: dict[str, Any]) -> bool:
    with Manifest.open(settings) as manifest:
        lock = manifest.ledger.lock(manifest.item("a"))
        return lock is not None and lock.is_stale


@pytest.mark.nightly
def test_a_gigabyte_of_output_takes_no_memory(tmp_path: Path, sqlite: dict[str, Any]) -> None:
    _project(tmp_path, sqlite, "60s")
    with Manifest.open(sqlite) as manifest:
        manifest.add("a", application="acme/landing")
    half = "head -c 500000000 /dev/zero | tr '\\0' x"
    line = f"{half}; {{ {half}; echo; echo the end; }} >&2; exit 3"
    worker = _worker(tmp_path, "--", "sh", "-c", line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while worker.poll() is None:
        most = max(most, _most_resident(worker.pid))
        time.sleep(0.05)
    assert worker.returncode == 1
    assert 0 < most < 300 * 1024  # KiB; a started `manifest run` has 80 MiB
    with Manifest.open(sqlite) as manifest:
        content = manifest.records("a")[-1].content
    assert (content["exit_code"], content["stderr"][-7:]) == (3, "the end")


def _most_resident(pid: int) -> int:
    """Return the most memory that a process has had since it was started, in KiB; 0 if it has ended.

    What `wait4` tells includes the memory of the process that it was forked from, which is that of all tests.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _wait_for(is_there: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < deadline
        time.sleep(0.05)
