"""Commands under a lock: rules of the manifest, "The bus" (shell)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lakewright.bus.command import Guard
from lakewright.bus.command_runs import CommandRun, Worked
from lakewright.bus.manifest import Manifest
from lakewright.errors import StoreUnavailable, UsageError
from lakewright.manifest.redaction import Redactor
from lakewright.manifest.store import Outcome, Write
from lakewright.manifest.verdict import Verdict
from lakewright.testing import MemoryStore

LANDING, SCANNER = "acme/landing", "acme/scanner"
NASTY = "a b\n'\"$(touch x)`é€\U0001f600*; --help"
REDACTOR = Redactor.of({"DB_PASSWORD": "hunter2!"})


@dataclass
class Stops:
    signal: int | None = None


@dataclass
class Bench:
    """A manifest, and commands that run on it."""

    manifest: Manifest
    folder: Path
    stops: Stops = field(default_factory=Stops)
    said: list[str] = field(default_factory=list)
    reported: list[Worked] = field(default_factory=list)

    def run(self, *command: str, jobs: int = 1, keeps_going: bool = False, **demand: Any) -> CommandRun:
        done = CommandRun(
            manifest=self.manifest,
            demand=self.manifest.demand(SCANNER, (), **demand),
            arguments=command,
            environ={**os.environ, "FOLDER": str(self.folder)},
            redactor=REDACTOR,
            stops=self.stops,
            forward=self.said.append,
            report=self.reported.append,
            jobs=jobs,
            keeps_going=keeps_going,
        )
        done.run()
        return done

    def sh(self, line: str, **options: Any) -> CommandRun:
        return self.run("sh", "-c", line, "sh", "{item}", **options)

    def last(self, item_id: str = "a") -> tuple[str, Any]:
        record = self.manifest.records(item_id)[-1]
        return record.state.value, record.content

    def later(self, file: str, act: Callable[[], object]) -> Thread:
        """Act once a command has made a file."""

        def wait() -> None:
            deadline = time.monotonic() + 20
            while not (self.folder / file).exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            act()

        thread = Thread(target=wait)
        thread.start()
        return thread


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Manifest(MemoryStore(), redactor=REDACTOR, lease=timedelta(seconds=60)) as manifest:
        yield Bench(manifest, tmp_path)


def is_running(pid: int) -> bool:
    """Return whether a process goes on; one that was killed may take a moment to end."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def pid_in(path: Path) -> int:
    return int(path.read_text())


def test_a_command_is_told_its_item_and_may_give_a_payload(bench: Bench) -> None:
    bench.manifest.add(NASTY, application=LANDING)
    code = (
        "import os, sys, json; e = os.environ\n"
        "found = {'argument': sys.argv[1], 'item': e['LAKEWRIGHT_ITEM'], 'record': e['LAKEWRIGHT_RECORD'],"
        " 'run': e['LAKEWRIGHT_RUN']}\n"
        "json.dump(found, open(e['LAKEWRIGHT_PAYLOAD'], 'w'))"
    )
    done = bench.run(sys.executable, "-c", code, "<{item}>")
    assert [each.status for each in done.worked] == ["processed"]
    processing, processed = bench.manifest.records(NASTY)[1:]
    assert processed.content == {
        "argument": f"<{NASTY}>",
        "item": NASTY,
        "record": processing.record_id,
        "run": processing.run_id,
    }
    assert list(bench.folder.iterdir()) == []


def test_a_failing_command_keeps_its_exit_code_and_the_end_of_its_stderr(bench: Bench) -> None:
    bench.manifest.add("a", "b", application=LANDING)
    done = bench.sh("echo early >&2; echo 'login hunter2! at postgres://me:pw@db' >&2; exit 3")
    assert [(each.item_id, each.status, each.exit_code) for each in done.worked] == [("a", "failed", 3)]
    state, content = bench.last()
    assert state == "FAILED"
    assert content["error"]["code"] == "command_failed"
    assert content["error"]["message"] == (
        "the command ended with exit code 3: login *** at postgres://***@db"
    )
    assert (content["exit_code"], content["stderr"]) == (3, "early\nlogin *** at postgres://***@db")
    assert "early" in "".join(bench.said)
    assert bench.sh("true").count("processed") == 1  # b was left


def test_keep_going_processes_the_others(bench: Bench) -> None:
    bench.manifest.add("a", "b", "c", application=LANDING)
    done = bench.sh('test "$1" != b', keeps_going=True)
    assert [each.status for each in bench.reported] == ["processed", "failed", "processed"]
    assert (done.count("processed"), done.count("failed")) == (2, 1)


def test_a_command_that_a_signal_ends_has_failed(bench: Bench) -> None:
    bench.manifest.add("a", application=LANDING)
    bench.sh("kill -9 $$")
    assert bench.last()[1]["error"]["message"] == "the command was ended by SIGKILL"


@pytest.mark.parametrize(
    ("write", "message"),
    [
        ("echo 'no json' >$LAKEWRIGHT_PAYLOAD", "isn't JSON"),
        ("echo '[1]' >$LAKEWRIGHT_PAYLOAD", "is list, not an object"),
        ("echo '{\"x\": NaN}' >$LAKEWRIGHT_PAYLOAD", "NaN isn't a JSON number"),
        ("printf '\\377' >$LAKEWRIGHT_PAYLOAD", "isn't JSON"),
        ("head -c 70000 /dev/zero | tr '\\0' 1 >$LAKEWRIGHT_PAYLOAD", "isn't JSON"),
        (
            "{ printf '{\"x\": \"'; head -c 70000 /dev/zero | tr '\\0' y; echo '\"}'; } >$LAKEWRIGHT_PAYLOAD",
            "at most",
        ),
        ("head -c 2000000 /dev/zero >$LAKEWRIGHT_PAYLOAD", "more than 1,000,000 bytes"),
        ("ln -s /dev/zero $LAKEWRIGHT_PAYLOAD", "can't be read"),
        ("mkfifo $LAKEWRIGHT_PAYLOAD", "no regular file"),
    ],
)
def test_a_payload_that_cannot_be_recorded_makes_the_item_failed(
    bench: Bench, write: str, message: str
) -> None:
    bench.manifest.add("a", application=LANDING)
    done = bench.sh(write)
    assert [each.status for each in done.worked] == ["failed"]
    assert message in bench.last()[1]["error"]["message"]


def test_an_empty_payload_file_is_no_payload(bench: Bench) -> None:
    bench.manifest.add("a", application=LANDING)
    assert bench.sh(": >$LAKEWRIGHT_PAYLOAD").count("processed") == 1
    assert bench.last() == ("PROCESSED", {})


def test_a_command_that_cannot_be_started_leaves_its_item_ready(bench: Bench) -> None:
    bench.manifest.add("a", application=LANDING)
    done = bench.run("/no/such/program")
    assert isinstance(done.error, UsageError)
    assert "can't be started" in done.error.message
    assert bench.manifest.item("a").verdicts()
    assert [item.item_id for item in bench.manifest.ready(SCANNER)] == ["a"]


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_error_while_a_command_runs_kills_it_and_leaves_its_item_ready(bench: Bench, jobs: int) -> None:
    """The item stayed locked until somebody released it."""
    bench.manifest.add("a", application=LANDING)

    class Closed(list[str]):
        def append(self, _: str) -> None:
            raise BrokenPipeError("nobody reads stderr")

    bench.said = Closed()
    done = bench.sh("echo hello >&2; sleep 60", jobs=jobs)
    assert isinstance(done.error, BrokenPipeError)
    assert done.worked == []
    assert bench.last()[1]["reason"] == "interrupted by an error: nobody reads stderr"
    assert [item.item_id for item in bench.manifest.ready(SCANNER)] == ["a"]


def test_a_gigabyte_on_stderr_needs_no_memory_and_hides_nothing(bench: Bench) -> None:
    """Here ten megabytes, which is far more than what is kept."""
    bench.manifest.add("a", application=LANDING)
    bench.sh("head -c 10000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; exit 1")
    assert sum(map(len, bench.said)) == 10_000_009
    stderr = bench.last()[1]["stderr"]
    assert stderr.endswith("the end")
    assert len(stderr) <= 2_000


def test_what_a_command_leaves_running_is_killed_with_its_lock(bench: Bench) -> None:
    bench.manifest.add("a", application=LANDING)
    begin = time.monotonic()
    done = bench.sh("sleep 60 & echo $! >$FOLDER/pid")
    assert time.monotonic() - begin < 20
    assert (done.worked[0].status, done.worked[0].note) == (
        "processed",
        "it left processes running, which were killed",
    )
    assert not is_running(pid_in(bench.folder / "pid"))


WORKER = """
import os, sys
from lakewright import Manifest
from lakewright.bus.command_runs import CommandRun
from lakewright.manifest.redaction import Redactor
class Stops:
    signal = None
with Manifest.open({"kind": "sqlite", "path": sys.argv[1]}) as manifest:
    manifest.add("a", application="acme/landing")
    CommandRun(manifest=manifest, demand=manifest.demand("acme/scanner", ()), arguments=tuple(sys.argv[2:]),
        environ=os.environ, redactor=Redactor(), stops=Stops(), forward=print, report=print).run()
"""


def test_a_killed_worker_takes_its_command_along(tmp_path: Path) -> None:
    """`kill -9` of the worker's whole process group, as a service manager does it."""
    line = "trap '' TERM HUP; sleep 60 & echo $! >$0.new; mv $0.new $0; wait"
    settings = [str(tmp_path / "manifest.db"), "sh", "-c", line, str(tmp_path / "pid")]
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, *settings], start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)  # the guard is told of a command right after its start
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
    assert "manifest run was killed, and so is its command" in worker.communicate(timeout=60)[1]
    assert not is_running(pid_in(tmp_path / "pid"))
    with Manifest.open({"kind": "sqlite", "path": settings[0]}) as manifest:
        assert manifest.item("a").verdict(manifest.demand(SCANNER, ()).application) is Verdict.LOCKED


def test_the_guard_leaves_alone_what_has_ended(tmp_path: Path) -> None:
    """Numbers of process groups are given again: only what runs when the run is killed may be killed."""
    kept = subprocess.Popen(["sleep", "60"], start_new_session=True)
    killed = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        with Guard() as guard:
            for group in (kept.pid, killed.pid):
                guard.started(group)
            guard.ended(kept.pid)
        assert killed.wait(timeout=60) == -signal.SIGKILL
        assert kept.poll() is None
    finally:
        for each in (kept, killed):
            each.kill()
            each.wait()


def test_without_a_shell_the_run_says_that_it_has_no_guard(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lakewright.bus.command.SHELL", "/no/such/sh")
    bench.manifest.add("a", "b", application=LANDING)
    assert bench.sh("true").count("processed") == 2
    assert [each.message for each in caplog.records if "if this run is killed" in each.message] == [
        "/no/such/sh can't be started (No such file or directory): if this run is killed, its command goes on"
    ]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_reaches_the_command_and_makes_the_item_ready_again(
    bench: Bench, number: signal.Signals
) -> None:
    bench.manifest.add("a", "b", application=LANDING)
    stopping = bench.later("begun", lambda: setattr(bench.stops, "signal", number))
    trap = f"trap 'touch $FOLDER/got; exit 5' {number.name[3:]}; touch $FOLDER/begun; sleep 60 & wait"
    done = bench.sh(trap)
    stopping.join()
    assert (bench.folder / "got").exists()
    assert [(each.item_id, each.status) for each in done.worked] == [("a", "released")]
    assert bench.last()[0] == "RESOLVED"
    assert bench.last()[1]["reason"] == f"interrupted by {number.name}"
    assert [item.item_id for item in bench.manifest.ready(SCANNER)] == ["a", "b"]


def test_a_command_that_ignores_the_signal_is_killed_after_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewright.bus.command.GRACE", 0.3)
    bench.manifest.add("a", application=LANDING)
    stopping = bench.later("begun", lambda: setattr(bench.stops, "signal", int(signal.SIGTERM)))
    done = bench.sh("trap '' TERM; touch $FOLDER/begun; while :; do sleep 0.1; done")
    stopping.join()
    assert done.worked[0].status == "released"


def test_a_command_whose_lock_is_lost_is_killed_with_all_that_it_started(bench: Bench) -> None:
    bench.manifest.add("a", "b", application=LANDING)
    bench.manifest.lease = timedelta(seconds=0.6)
    taking = bench.later("pid", lambda: bench.manifest.ledger.release("a", "it hangs", is_forced=True))
    done = bench.sh("trap '' TERM; sleep 60 & echo $! >$FOLDER/pid; wait; sleep 60", keeps_going=True)
    taking.join()
    assert [(each.item_id, each.status) for each in done.worked] == [("a", "lost")]
    assert "no one holds it now" in str(done.worked[0].note)
    assert bench.last()[0] == "RESOLVED"
    assert not is_running(pid_in(bench.folder / "pid"))


def test_a_store_that_is_gone_ends_the_command_when_the_lease_can_no_longer_be_renewed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.manifest.add("a", application=LANDING)
    bench.manifest.lease = timedelta(seconds=0.6)

    def gone(*_: object) -> Iterator[Outcome]:
        raise StoreUnavailable("gone")

    breaking = bench.later("begun", lambda: monkeypatch.setattr(MemoryStore, "write_many", gone))
    done = bench.sh("touch $FOLDER/begun; sleep 60")
    breaking.join()
    monkeypatch.undo()
    assert done.worked[0].status == "lost"
    assert "has not been renewed" in str(done.worked[0].note)
    assert bench.manifest.item("a").verdicts() != {}
    assert bench.last()[0] == "PROCESSING"


def test_an_end_that_cannot_be_recorded_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.manifest.add("a", "b", application=LANDING)
    whole = MemoryStore.write_many

    def gone_at_the_end(store: MemoryStore, writes: Any) -> Iterator[Outcome]:
        listed: list[Write] = list(writes)
        if any(draft.state == "PROCESSED" for write in listed for a in write.appends for draft in a.drafts):
            raise StoreUnavailable("gone")
        return whole(store, listed)

    monkeypatch.setattr(MemoryStore, "write_many", gone_at_the_end)
    done = bench.sh("true", keeps_going=True)
    assert [(each.item_id, each.status) for each in done.worked] == [("a", "unrecorded")]
    assert "exit code 0, which could not be recorded: gone" in str(done.worked[0].note)


def test_several_run_at_once_and_each_item_once(bench: Bench) -> None:
    names = [f"{number:02}" for number in range(30)]
    bench.manifest.add(*names, application=LANDING)
    done = bench.sh('echo "$1" >>$FOLDER/log; echo "{\\"n\\": \\"$1\\"}" >$LAKEWRIGHT_PAYLOAD', jobs=4)
    assert sorted(each.item_id for each in done.worked) == names
    assert sorted((bench.folder / "log").read_text().split()) == names
    assert {each.item_id: each.payload for each in bench.manifest.state(SCANNER)} == {
        name: {"n": name} for name in names
    }
    assert json.dumps([each.as_json() for each in done.worked])


def test_in_order_a_failure_holds_back_what_arrived_later(bench: Bench) -> None:
    bench.manifest.add("a", "b", "c", application=LANDING)
    bench.sh('test "$1" != b', keeps_going=True, is_in_order=True)
    assert bench.manifest.item("c").state == "NEW"
    done = bench.sh("true", is_in_order=True)
    assert done.worked == []
    assert "b failed" in str(done.obstacle)
    assert bench.manifest.item("b").verdict(bench.manifest.demand(SCANNER, ()).application) is Verdict.FAILED
