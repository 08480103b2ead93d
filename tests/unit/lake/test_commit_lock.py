"""The lock around commits to a local table, between processes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import pytest

from lakewright.errors import LeaseHeld, StorageUnavailable
from lakewright.lake.commit_lock import commit_lock, lock_file
from lakewright.spec.models.places import Address

HOLD = """
import sys
from lakewright.lake.commit_lock import commit_lock
from lakewright.spec.models.places import Address
with commit_lock(Address(location=sys.argv[1]), "the other process"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_waits_and_then_names_the_holder(tmp_path: Path) -> None:
    """Who is second writes nothing and says who holds it."""
    table = Address(location=str(tmp_path / "silver" / "t"))
    command = [sys.executable, "-c", HOLD, str(table.location)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"

        began = time.monotonic()
        with (
            pytest.raises(LeaseHeld, match="the other process"),
            commit_lock(table, "me", patience=0.2),
        ):
            pytest.fail("it is held")
        assert 0.2 <= time.monotonic() - began < 20

        other.kill()
    with commit_lock(table, "me"):
        assert lock_file(tmp_path / "silver" / "t").read_text() == "me"
    assert not list((tmp_path / "silver").iterdir()), "nothing stays beside the table"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "silver").write_text("no folder")
    where = re.escape(str(tmp_path / "silver"))
    with (
        pytest.raises(StorageUnavailable, match=where),
        commit_lock(Address(location=f"{tmp_path}/silver/t"), "me"),
    ):
        pytest.fail("it can't be held")


def test_workers_of_one_process_wait_for_each_other_as_long_as_a_commit_takes_e12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a loaded machine, a commit of a neighbour took longer than another process would wait."""
    monkeypatch.setattr("lakewright.lake.commit_lock.PATIENCE", 0.05)
    table = Address(location=str(tmp_path / "t"))
    begun, ended = Event(), Event()

    def work() -> None:
        with commit_lock(table, "me"):
            begun.set()
            ended.wait(20)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(work)
        assert begun.wait(20)
        Timer(0.5, ended.set).start()
        with commit_lock(table, "me"):
            assert ended.is_set()
        first.result(20)
    begun.clear()
    ended.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(work)
        assert begun.wait(20)
        for name, patience in (("another", None), ("me", 0)):
            with (
                pytest.raises(LeaseHeld, match="me is committing"),
                commit_lock(table, name, patience=patience),
            ):
                pytest.fail("it is held")
        ended.set()
        first.result(20)


def test_a_catalogs_table_needs_no_lock(tmp_path: Path) -> None:
    with commit_lock(Address(name="db.t"), "me"):
        assert not list(tmp_path.iterdir())


def test_the_lock_is_not_inside_the_tables_folder(tmp_path: Path) -> None:
    with commit_lock(Address(location=str(tmp_path / "t")), "me"):
        assert not (tmp_path / "t").exists()


COUNT = """
import sys
from pathlib import Path
from lakewright.lake import commit_lock
from lakewright.spec.models.places import Address
commit_lock.PAUSE = 0
counter = Path(sys.argv[2])
for _ in range(250):
    with commit_lock.commit_lock(Address(location=sys.argv[1]), "one of four", patience=1e9):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_no_commit_of_a_thousand_is_lost_between_four_processes(tmp_path: Path) -> None:
    (counter := tmp_path / "version").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "silver" / "t"), str(counter)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    assert counter.read_text() == "1000"
    assert not list((tmp_path / "silver").iterdir())
