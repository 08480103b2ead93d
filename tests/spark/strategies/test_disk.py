"""Disks that are full or fail in the middle of a slice: a clear error, nothing half done, and on afterwards.

Headings are those of `processing-strategies.md` and `processing-manifest.md`; F is the faults' number.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.disks import full_but_for, mounted
from tests.spark.strategies.bench import SmallLake, entity, hours

from lakewright.errors import StorageUnavailable
from lakewright.spec.models.entity import Entity

SLICES = [
    [{"id": n, "v": "a"} for n in range(40)],
    [{"id": n, "v": "b" if n < 9 else "a"} for n in range(2, 44)],
]
RENAMES = "rename,renameat,renameat2,link,linkat"


def jvm_of(lake: SmallLake) -> int:
    jvm: Any = lake.spark._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


@contextmanager
def files_end_at(lake: SmallLake, size: int) -> Iterator[None]:
    """Let the JVM write no file beyond a size."""
    pid = jvm_of(lake)
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def renames_fail(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each rename by the JVM fail from right before its commit on, as on a broken disk."""
    if not shutil.which("strace"):
        pytest.skip("only strace lets a call of the system fail")
    command = ["strace", "-f", "-qq", "-p", str(jvm_of(lake)), "-e", f"trace={RENAMES}"]
    command += ["-e", f"inject={RENAMES}:error=EIO", "-o", str(lake.root / "strace.log")]
    tracers = []

    def begin(name: str) -> None:
        if name == "before_commit":
            tracers.append(subprocess.Popen(command))
            _wait_for_tracer(jvm_of(lake), tracers[0])

    with monkeypatch.context() as patch:
        patch.setattr("lakewright.strategies.slice_load.reach_failpoint", begin)
        try:
            yield
        finally:
            for tracer in tracers:
                tracer.terminate()
                tracer.wait()


def _wait_for_tracer(pid: int, tracer: subprocess.Popen[bytes]) -> None:
    """Wait until all threads of a process are traced."""
    for _ in range(200):
        if tracer.poll() is not None:
            pytest.skip("this machine lets nobody trace a process")
        statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
        if all(f"TracerPid:\t{tracer.pid}" in text for text in statuses):
            return
        time.sleep(0.05)
    raise AssertionError("the process isn't traced")


def refused(
    lake: SmallLake, things: Entity, told: str, name: str, harm: AbstractContextManager[None]
) -> bool:
    """Process a slice while its table's disk is harmed; return whether it failed, as it should then.

    Where the harm spared it the slice is done; where it failed, nothing has happened.
    """
    before = lake.rows(things) if lake.version_or_none(things) is not None else None
    version = lake.version_or_none(things)
    with harm:
        error = lake.process(things, name, processing_time=hours(int(name[1:])).isoformat()).error
    for file in lake.folder(things).glob("_delta_log/*.json"):
        assert all(json.loads(line) for line in file.read_text().splitlines()), file
    if error is None:
        return False
    assert isinstance(error, StorageUnavailable), error
    assert told in error.message
    assert "run again" in (error.remedy or "")
    assert lake.version_or_none(things) == version
    assert before is None or lake.rows(things) == before
    assert [item for item in lake.items() if item.failed is not None] == [], "no slice is at fault (B2)"
    return True


def expected(lake: SmallLake) -> list[tuple[Any, ...]]:
    """The rows of a table to whose disk nothing happens."""
    calm = entity("historic", name="calm")
    for number, rows in enumerate(SLICES, start=1):
        lake.load(calm, f"s{number}", rows, processing_time=hours(number).isoformat())
    return lake.rows(calm, *columns(lake, calm))


def columns(lake: SmallLake, things: Entity) -> list[str]:
    return [name for name in lake.table(things).columns if not name.startswith("PK_")]


@pytest.mark.nightly
def test_a_disk_that_is_full_at_any_write_leaves_the_table_whole(lake: SmallLake) -> None:
    """F6; "Error Handling", "State" (Failed, Resolved): the run after it, with room, makes it good."""
    things = entity("historic")
    wanted = expected(lake)
    silver = lake.folder(things).parent
    with mounted(silver):
        for name, rows in zip(("s1", "s2"), SLICES, strict=True):
            lake.put(things, name, rows)
            failures = 0
            for pages in (0, 1, 4):
                harm = full_but_for(silver, pages)
                if not refused(lake, things, "No space left on device", name, harm):
                    break
                failures += 1
            else:
                done = lake.process(things, name, processing_time=hours(int(name[1:])).isoformat())
                assert done.error is None
            assert failures >= 2
        assert lake.rows(things, *columns(lake, things)) == wanted
        assert lake.version(things) == 1


@pytest.mark.nightly
def test_a_limit_of_files_sizes_leaves_the_table_whole(lake: SmallLake) -> None:
    """F6, where nobody may mount: writes fail as on a full disk, at the data's first byte or later."""
    things = entity("historic")
    wanted = expected(lake)
    lake.load(things, "s1", SLICES[0], processing_time=hours(1).isoformat())
    lake.put(things, "s2", SLICES[1])
    for size in (0, 64, 2000):
        assert refused(lake, things, "File too large", "s2", files_end_at(lake, size))
    assert lake.process(things, "s2", processing_time=hours(2).isoformat()).error is None
    assert lake.rows(things, *columns(lake, things)) == wanted
    assert lake.version(things) == 1


@pytest.mark.nightly  # the renames of all that run in the JVM fail, and in `make test` others share it
def test_a_commit_that_can_not_take_its_name_is_whole_or_none(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F7: a rename in the log fails. Hadoop then copies; where that fails too, so has the item."""
    things = entity("historic")
    for version, name in enumerate(("s1", "s2")):
        lake.put(things, name, [{"id": n, "v": name} for n in range(3 * version, 3 * version + 3)])
        if refused(lake, things, "Input/output error", name, renames_fail(lake, monkeypatch)):
            assert lake.process(things, name, processing_time=hours(version + 1).isoformat()).error is None
        assert "EIO" in (lake.root / "strace.log").read_text()
        assert lake.version(things) == version
    assert lake.rows(things, "id", "v") == [(n, "s1" if n < 3 else "s2") for n in range(6)]
