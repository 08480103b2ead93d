"""Hooks: whom a job tells of its progress. They never break a run, and hardly delay it."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.bench import Bench, FakeTarget

from lakewright.connections.jdbc import JdbcConnection
from lakewright.errors import (
    CommitConflict,
    CommitTooLate,
    DeleteBrakeError,
    Fault,
    ItemFailed,
    ItemLocked,
    LakewrightError,
    SliceError,
    SpecError,
    StorageUnavailable,
    StoreBusy,
    StoreUnavailable,
    TargetError,
)
from lakewright.manifest.journal import Journal
from lakewright.manifest.redaction import Redactor
from lakewright.plan.outcome import Outcome
from lakewright.plan.phase import Phase
from lakewright.plan.status import Status
from lakewright.run.hooks.call import HttpCall, ProcessCall
from lakewright.run.hooks.notifier import _alerts
from lakewright.run.result import TargetResult

TARGETS = {"a": {"writes": "/a/$day"}, "b": {"reads": "/a/$day", "writes": "/b/$day"}}


@dataclass
class Heard:
    """What a server on this machine was asked for."""

    url: str = ""
    requests: list[tuple[str, str, Mapping[str, str], str]] = field(default_factory=list)
    status: int = 200
    location: str = ""

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.requests]


@pytest.fixture
def server() -> Iterator[Heard]:
    heard = Heard()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            heard.requests.append((self.command, self.path, dict(self.headers), body))
            is_moved = bool(heard.location) and self.path != "/there"
            self.send_response(302 if is_moved else heard.status)
            if is_moved:
                self.send_header("Location", heard.location)
            self.end_headers()

        do_POST = do_GET  # noqa: N815 - the server asks for this name

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        heard.url = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield heard
        listening.shutdown()
        thread.join()


def bench_of(folder: Path, *hooks: Mapping[str, Any], **job: Any) -> Bench:
    return Bench(folder, TARGETS, {"hooks": list(hooks), **job})


def test_a_web_hook_calls_the_url_of_each_event(tmp_path: Path, server: Heard) -> None:
    moments = ("Start", "Finish", "Success", "Skip", "Failure")
    keys = {
        f"{of}{moment}": f"{server.url}/{of}{moment}/$phase/$name/$status"
        for of in ("job", "target")
        for moment in moments
    }
    bench = bench_of(tmp_path, {"kind": "web", **keys})
    bench.world.versions["/b/2022-01-01"] = 1
    bench.world.broken.add("b")

    bench.run(Phase.BUILD)

    assert server.paths == [
        "/jobStart/BUILD/daily/RUNNING",
        "/targetStart/BUILD/a/RUNNING",
        "/targetFinish/BUILD/a/SUCCESS",
        "/targetSuccess/BUILD/a/SUCCESS",
        "/targetStart/BUILD/b/RUNNING",
        "/targetFinish/BUILD/b/FAILED",
        "/targetFailure/BUILD/b/FAILED",
        "/jobFinish/BUILD/daily/FAILED",
        "/jobFailure/BUILD/daily/FAILED",
    ]


def test_what_has_nothing_to_do_is_skipped_without_having_begun(tmp_path: Path, server: Heard) -> None:
    url = f"{server.url}/$category/$phase/$name/$status"
    bench = bench_of(
        tmp_path, {"kind": "web", "jobStart": url, "jobSkip": url, "targetStart": url, "targetSkip": url}
    )
    bench.world.versions |= {"/a/2022-01-01": 1, "/b/2022-01-01": 1}

    bench.run(Phase.BUILD)

    assert server.paths == [
        "/target/BUILD/a/SKIPPED",
        "/target/BUILD/b/SKIPPED",
        "/job/BUILD/daily/SKIPPED",
    ]


def test_a_run_begins_and_ends_with_its_instances_phases_and_targets_inside(
    tmp_path: Path, server: Heard
) -> None:
    bench = bench_of(tmp_path, {"kind": "rest", "url": f"{server.url}/$category/$day/$phase/$target/$status"})

    bench.run(Phase.VERIFY, "day=2022-01-01", targets=("a",))

    assert server.paths == [
        "/run/2022-01-01///RUNNING",
        "/lifecycle/2022-01-01///RUNNING",
        "/job/2022-01-01/BUILD//RUNNING",
        "/target/2022-01-01/BUILD/a/RUNNING",
        "/target/2022-01-01/BUILD/a/SUCCESS",
        "/job/2022-01-01/BUILD//SUCCESS",
        "/job/2022-01-01/VERIFY//RUNNING",
        "/target/2022-01-01/VERIFY/a/RUNNING",
        "/target/2022-01-01/VERIFY/a/SUCCESS",
        "/job/2022-01-01/VERIFY//SUCCESS",
        "/lifecycle/2022-01-01///SUCCESS",
        "/run/2022-01-01///SUCCESS",
    ]


def test_a_run_that_breaks_off_is_told_of_too(tmp_path: Path, server: Heard) -> None:
    bench = bench_of(
        tmp_path, {"kind": "rest", "url": f"{server.url}/$status/$error", "when": {"category": "run"}}
    )

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the disk is full")

    bench.store.write = refuse_after(1, bench.store.write, refuse)  # type: ignore[method-assign]  # fails later on

    with pytest.raises(StoreUnavailable):
        bench.run(Phase.BUILD)

    assert server.paths == ["/RUNNING/", "/FAILED/store_unavailable"]


def refuse_after(count: int, write: Any, refuse: Any) -> Any:
    left = iter(range(count))
    return lambda *given: write(*given) if next(left, None) is not None else refuse()


def test_side_by_side_each_phase_and_instance_ends_after_all_that_is_in_it(
    tmp_path: Path, server: Heard
) -> None:
    hook = {
        "kind": "rest",
        "url": f"{server.url}/$category/$day/$phase/$status",
        "when": {"category": "job|lifecycle"},
    }
    bench = bench_of(tmp_path, hook)

    bench.run(Phase.VERIFY, "day:start=2022-01-01", "day:end=2022-01-03", jobs=3)

    for day in ("2022-01-01", "2022-01-02", "2022-01-03"):
        assert [path.replace(f"/{day}", "") for path in server.paths if day in path] == [
            "/lifecycle//RUNNING",
            "/job/BUILD/RUNNING",
            "/job/BUILD/SUCCESS",
            "/job/VERIFY/RUNNING",
            "/job/VERIFY/SUCCESS",
            "/lifecycle//SUCCESS",
        ]


@pytest.mark.parametrize(
    ("when", "count"),
    [
        ({"category": "target", "status": ["SUCCESS", "FAILED"]}, 2),
        ({"category": "target", "target": "a"}, 2),
        ({"category": "targ"}, 0),
        ({"status": "RUN.*", "category": "target", "day": "2022-.*"}, 2),
        ({"day": "2021-.*"}, 0),
        ({"unheard": ".*"}, 0),
        ({"phase": ".*", "category": "run"}, 0),
        ({}, 10),
    ],
)
def test_conditions_are_patterns_of_whole_values(
    tmp_path: Path, server: Heard, when: dict[str, Any], count: int
) -> None:
    bench = bench_of(tmp_path, {"kind": "rest", "url": f"{server.url}/", "when": when})

    bench.run(Phase.BUILD)

    assert len(server.requests) == count


def test_a_request_with_a_body_carries_the_event_or_a_text(tmp_path: Path, server: Heard) -> None:
    whole = {
        "kind": "rest",
        "url": f"{server.url}/whole",
        "method": "post",
        "when": {"category": "target", "status": "FAILED"},
        "headers": {"Authorization": "Bearer $job"},
    }
    text = {**whole, "url": f"{server.url}/text", "body": '{"text": "$project $target: $error"}'}
    bench = bench_of(tmp_path, whole, text)
    bench.world.broken.add("a")

    bench.run(Phase.BUILD)

    (method, _, headers, body), (_, _, _, short) = server.requests
    assert (method, headers["Authorization"], headers["Content-Type"]) == (
        "POST",
        "Bearer daily",
        "application/json",
    )
    event = json.loads(body)
    assert {
        key: event[key] for key in ("category", "kind", "name", "phase", "status", "project", "job", "run_id")
    } == {
        "category": "target",
        "kind": "fake",
        "name": "a",
        "phase": "BUILD",
        "status": "FAILED",
        "project": "fake",
        "job": "daily",
        "run_id": "run-1",
    }
    assert event["parameters"] == {"day": "2022-01-01"}
    assert event["error"]["message"] == "a is broken"
    assert json.loads(short) == {"text": "fake a: target"}


def test_the_names_of_the_project_win_over_the_events(tmp_path: Path, server: Heard) -> None:
    hook = {
        "kind": "rest",
        "url": f"{server.url}/$name/${{project.name}}/$version",
        "when": {"category": "run"},
    }
    bench = bench_of(tmp_path, hook, environment=["name=mine"])

    bench.run(Phase.BUILD)

    assert set(server.paths) == {"/mine/fake/1"}


def test_a_command_gets_the_event_in_its_environment_and_input(tmp_path: Path) -> None:
    names = ("CATEGORY", "TARGET", "PHASE", "STATUS", "PARAMETERS")
    script = f"""
import json, os, sys
event = json.load(sys.stdin)
told = [sys.argv[1], event["status"], *(os.environ["LAKEWRIGHT_" + name] for name in {names})]
open("told", "a").write(" ".join(told) + "\\n")
"""
    command = [sys.executable, "-c", script, "$day of $name"]
    bench = bench_of(tmp_path, {"kind": "command", "command": command, "when": {"target": "a"}})

    bench.run(Phase.BUILD)

    assert (tmp_path / "told").read_text().splitlines() == [
        '2022-01-01 of a RUNNING target a BUILD RUNNING {"day": "2022-01-01"}',
        '2022-01-01 of a SUCCESS target a BUILD SUCCESS {"day": "2022-01-01"}',
    ]


def test_a_line_is_split_before_its_expressions_are_evaluated(tmp_path: Path) -> None:
    hook = {
        "kind": "command",
        "command": "touch 'made by $name' --",
        "when": {"category": "run", "status": "SUCCESS"},
    }
    bench = bench_of(tmp_path, hook, environment=["name=x; touch harm"])

    bench.run(Phase.BUILD)

    assert (tmp_path / "made by x; touch harm").exists()
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "hook",
    [
        {"kind": "rest", "url": "http://127.0.0.1:9/x?token=hunter22"},
        {"kind": "rest", "url": "file:///etc/passwd"},
        {"kind": "rest", "url": "http://$nowhere/"},
        {"kind": "command", "command": "no-such-program-anywhere hunter22"},
        {"kind": "command", "command": ["sh", "-c", "echo hunter22 >&2; exit 3"]},
    ],
)
def test_a_hook_that_fails_is_a_warning_and_is_left_alone_after_three_times(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hook: dict[str, Any]
) -> None:
    bench = bench_of(tmp_path, hook)

    result = bench.run(Phase.BUILD)

    assert result.status is Status.SUCCESS
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    assert len(caplog.records) == 4
    assert "disabled for the rest of the run" in caplog.records[-1].getMessage()
    if "nowhere" in str(hook):
        assert "unknown name 'nowhere'" in caplog.text
    if "exit 3" not in str(hook):
        assert "hunter22" not in caplog.text


def test_a_server_that_says_no_is_a_warning(
    tmp_path: Path, server: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    server.status = 500
    bench = bench_of(tmp_path, {"kind": "rest", "url": server.url, "when": {"category": "run"}})

    bench.run(Phase.BUILD)

    assert "HTTP Error 500" in caplog.text


def test_a_command_that_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    line = "sleep 60 & echo $! > pid; wait"
    call = ProcessCall(("sh", "-c", line), {"PATH": "/bin:/usr/bin"}, tmp_path, "{}")

    with pytest.raises(TimeoutError, match="killed after"):
        call.make(1.0)

    state = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    for _ in range(100):
        if not _is_alive(state):
            return
        time.sleep(0.1)  # the kernel ends it in its own time
    pytest.fail("the child lives on")


def _is_alive(state: Path) -> bool:
    try:
        return ") Z " not in state.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("https://me:hunter22@host/a/b?token=x", "GET https://host/a/b"),
        ("http://me:hunter22@127.0.0.1:8765/lake", "GET http://127.0.0.1:8765/lake"),
        ("http://me:hunt@er22@[::1]:80/lake#hunter22", "GET http://[::1]:80/lake"),
        ("http://me:hunt/er22@host/lake", "GET"),
        ("http://[::1/lake", "GET"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, label: str) -> None:
    assert HttpCall(url).label == label


@pytest.mark.parametrize(
    ("credentials", "headers", "sent"),
    [
        ("", {}, None),
        ("me:hun%2Fter22@", {}, "Basic bWU6aHVuL3RlcjIy"),
        ("me@", {}, "Basic bWU6"),
        ("me:hunter22@", {"authorization": "Bearer x"}, "Bearer x"),
    ],
)
def test_a_name_and_password_in_the_url_are_sent_as_basic_authentication(
    server: Heard, credentials: str, headers: dict[str, str], sent: str | None
) -> None:
    url = server.url.replace("//", f"//{credentials}")

    HttpCall(f"{url}/lake?token=x", headers=headers).make(10)

    ((_, path, heard, _),) = server.requests
    assert (path, heard.get("Authorization")) == ("/lake?token=x", sent)
    assert heard["Host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize(("method", "host"), [("POST", "127.0.0.1"), ("GET", "localhost")])
def test_a_redirect_is_told_if_it_leads_elsewhere_or_would_lose_the_body(
    server: Heard, method: str, host: str
) -> None:
    """The headers went to the other host, and a POST became a GET without its body; both counted as done."""
    server.location = f"{server.url.replace('127.0.0.1', host)}/there?token=x"
    with pytest.raises(OSError, match=r"redirected to http://\S+/there, which is not followed: set its URL"):
        HttpCall(f"{server.url}/here", method, {"Authorization": "Bearer x"}).make(10)
    assert server.paths == ["/here"]


def test_a_get_is_redirected_within_its_host(server: Heard) -> None:
    server.location = "/there"
    HttpCall(f"{server.url}/here", headers={"Authorization": "Bearer x"}).make(10)
    assert [(path, heard["Authorization"]) for _, path, heard, _ in server.requests] == [
        ("/here", "Bearer x"),
        ("/there", "Bearer x"),
    ]


def test_an_url_that_can_not_be_read_is_told_without_its_password() -> None:
    with pytest.raises(OSError, match="no readable host and port") as caught:
        HttpCall("http://me:hunt/er22@host/lake").make(1)
    assert "hunt" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "alert"),
    [
        (lambda: DeleteBrakeError("too many deletes"), "delete_brake"),
        (lambda: ItemFailed("slice 1 has failed"), "slice_failed"),
        (lambda: ItemLocked("run 0 holds it", details={"is_stale": True}), "stale_lock"),
        (lambda: ItemLocked("run 0 holds it", details={"is_stale": False}), None),
        (lambda: StorageUnavailable("the disk is full"), "storage_failed"),
        (lambda: StoreBusy("the manifest does not answer"), "storage_failed"),
        (lambda: TargetError("anything else"), None),
    ],
)
def test_an_operator_is_alerted_of_what_waits_for_one(
    tmp_path: Path, server: Heard, error: Any, alert: str | None
) -> None:
    bench = bench_of(
        tmp_path, {"kind": "rest", "url": f"{server.url}/$target/$alert", "when": {"category": "alert"}}
    )

    def act(target: FakeTarget, context: Any, phase: Phase) -> None:
        raise error()

    bench.world.act = act

    bench.run(Phase.BUILD, targets=("a",))

    assert server.paths == ([f"/a/{alert}"] if alert else [])


@pytest.mark.parametrize(
    ("error", "alerts"),
    [
        (StorageUnavailable("the disk is full"), ["storage_failed"]),
        (CommitConflict("another writer was first"), []),
        (CommitTooLate("the log is gone"), ["slice_failed"]),
        (SliceError("a column is missing"), ["slice_failed"]),
    ],
)
def test_a_slice_that_is_not_at_fault_is_not_alerted_of(error: LakewrightError, alerts: list[str]) -> None:
    """Where the storage failed, hooks were told `slice_failed`, and no slice waited for anybody."""
    result = TargetResult("a", "entity", Phase.BUILD, Status.FAILED, error=error.as_fault())
    assert list(_alerts(result)) == alerts


def test_a_failed_run_is_told_with_the_error_of_the_first_target_that_failed(
    tmp_path: Path, server: Heard
) -> None:
    categories = {"category": "job|lifecycle|run", "status": "FAILED"}
    bench = bench_of(
        tmp_path, {"kind": "rest", "url": f"{server.url}/$category", "method": "POST", "when": categories}
    )

    def act(target: FakeTarget, context: Any, phase: Phase) -> None:
        raise TargetError("the query fails")

    bench.world.act = act
    bench.run(Phase.BUILD, targets=("a",))
    told = [json.loads(body)["error"]["message"] for *_, body in server.requests]
    assert told == ["a in BUILD: the query fails"] * 3


def test_a_stale_lock_that_was_taken_over_is_an_alert_though_all_went_well(
    tmp_path: Path, server: Heard
) -> None:
    hook = {"kind": "rest", "url": f"{server.url}/$target/$status/$alert", "when": {"category": "alert"}}
    bench = bench_of(tmp_path, hook)
    bench.world.act = lambda target, context, phase: Outcome(metrics={"stale_locks": [{"item_id": "x"}]})

    bench.run(Phase.BUILD, targets=("a",))

    assert server.paths == ["/a/SUCCESS/stale_lock"]


def test_secrets_are_told_to_nobody(tmp_path: Path, server: Heard) -> None:
    hook = {"kind": "rest", "url": server.url, "method": "POST", "when": {"category": "target"}}
    bench = bench_of(tmp_path, hook, parameters=[{"name": "day", "type": "date"}, {"name": "api_key"}])
    bench.journal = Journal(bench.store, redactor=Redactor(frozenset({"hunter22"})))

    def act(target: FakeTarget, context: Any, phase: Phase) -> None:
        raise TargetError("login with hunter22 was refused")

    bench.world.act = act

    bench.run(Phase.BUILD, "day=2022-01-01", "api_key=hunter22")

    assert server.requests
    assert "hunter22" not in str(server.requests)


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ({"kind": "wev", "jobStart": "x"}, "unknown kind 'wev' of hook"),
        ({"kind": "jdbc", "jobStart": "x"}, "'connection' is missing"),
        ({"kind": "jdbc", "connection": "nobody"}, "there is no connection 'nobody'"),
        ({"kind": "web", "jobStrat": "x"}, "unknown key 'jobStrat'"),
        ({"kind": "rest"}, "url"),
        ({"kind": "rest", "url": "x", "when": {"status": "(SUCCESS"}}, "not a regular expression"),
        ({"kind": "rest", "url": "x", "method": "DELETE"}, "method"),
        ({"kind": "command", "command": "echo 'x"}, "cannot be parsed as a command"),
        ({"kind": "command", "command": []}, "command"),
        ({"url": "x"}, "is missing"),
    ],
)
def test_a_wrong_hook_is_refused_when_the_project_is_loaded(
    tmp_path: Path, hook: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError) as refused:
        bench_of(tmp_path, hook)

    (fault,) = refused.value.faults
    assert isinstance(fault, Fault)
    assert message in fault.message
    assert str(fault.location).startswith("model.yml:")


def test_a_child_job_has_its_parents_hooks_too(tmp_path: Path, server: Heard) -> None:
    hook = {"kind": "rest", "url": f"{server.url}/$job", "when": {"category": "run", "status": "RUNNING"}}
    bench = bench_of(tmp_path, hook)
    model = json.loads((tmp_path / "model.yml").read_text())
    model["jobs"]["base"] = model["jobs"].pop("daily")
    model["jobs"]["daily"] = {"extends": "base", "hooks": {**hook, "url": f"{server.url}/own"}}
    bench.load(model)

    bench.run(Phase.BUILD)

    assert server.paths == ["/daily", "/own"]


def test_a_report_tells_what_a_run_did(tmp_path: Path) -> None:
    """E14: `simpleReport` and `report`, whose board chooses and names metrics."""
    board = {"metrics": [{"name": "rows", "selector": {"name": "target_records"}, "labels": {"of": "$name"}}]}
    hooks: list[dict[str, Any]] = [
        {"kind": "simpleReport", "location": "out/${job}.txt"},
        {"kind": "report", "location": "out/chosen.txt", "mode": "append", "metrics": board},
    ]
    bench = bench_of(tmp_path, *hooks)
    for _ in range(2):
        bench.run(Phase.BUILD)
    simple = (tmp_path / "out" / "daily.txt").read_text().splitlines()
    chosen = (tmp_path / "out" / "chosen.txt").read_text().splitlines()
    assert "fake daily" in simple[0]
    assert any("SKIPPED BUILD target" in line for line in simple[1:])
    assert any("SUCCESS BUILD target" in line and "rows{of=" in line and "}=1" in line for line in chosen)
    assert sum("fake daily" in line for line in chosen) == 2
    assert sum("fake daily" in line for line in simple) == 1


def test_a_statement_is_run_for_each_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E14: the `jdbc` hook, with a connection of the project and with one of its own."""
    ran: list[tuple[str, str]] = []

    class Open:
        def __init__(self, url: str) -> None:
            self.url = url
            self.database = self

        def run(self, statements: list[str]) -> None:
            ran.extend((self.url, sql) for sql in statements)

    def opened(connection: JdbcConnection, *_: object) -> Open:
        return Open(connection.url)

    monkeypatch.setattr(JdbcConnection, "open", opened)
    own = {"kind": "jdbc", "url": "jdbc:h2:$job"}
    hooks: list[dict[str, Any]] = [
        {"kind": "jdbc", "connection": own, "jobSuccess": "INSERT ('$job', '$phase', '$status')"}
    ]
    bench_of(tmp_path, *hooks).run(Phase.BUILD)
    assert ran == [("jdbc:h2:daily", "INSERT ('daily', 'BUILD', 'SUCCESS')")]
