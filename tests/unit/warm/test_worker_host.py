"""Requests run in workers as if the caller had run them: its streams, environment, signals, exit codes.

One host serves all tests of this file.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

import lakewright_client as client
from lakewright.serve.server_files import ServerFiles
from lakewright.warm.requests import ENCODINGS, Gauges, Requests, _Warm
from lakewright.warm.session import WarmSession
from lakewright.warm.worker_host import CODE, LIMIT, WorkerHost, _Worker

NOBODY = 65534

pytestmark = pytest.mark.usefixtures("interruptible")

ROOT = Path(__file__).parents[3]
RUNNER = "tests.unit.warm.fake_commands:run"
PATHS = os.pathsep.join([str(ROOT / "src"), str(ROOT)])


@dataclass(frozen=True)
class Host:
    service: WarmSession
    files: ServerFiles
    code: Path

    @property
    def requests(self) -> Requests:
        return Requests(self.files.socket, {"PYTHONPATH": PATHS}, self.files.basedir)


def service_of(files: ServerFiles, code: Sequence[Path] = CODE) -> WarmSession:
    """Return the warm session of a server that does not start Spark by itself."""
    requests = Requests(files.socket, {}, files.basedir)
    return WarmSession(requests, RUNNER, Gauges(), is_lazy=True, code=code)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    files = ServerFiles(tmp_path_factory.mktemp("served"))
    (files.basedir / "project.yml").write_text("name: served\n")
    files.folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)
        code = tmp_path_factory.mktemp("code")
        service = service_of(files, [code])
        service.start()
        yield Host(service, files, code)
        service.stop()


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def told(self) -> Any:
        return json.loads(self.out)


def run(host: Host, *arguments: str, folder: Path | None = None, stdin: bytes = b"", **environ: str) -> Ended:
    """Return how a request ended that the server itself begins."""
    streams = [os.pipe() for _ in range(3)]
    with os.fdopen(streams[0][1], "wb") as given:
        given.write(stdin)
    message = client.ask(
        list(arguments),
        {name.encode(): value.encode() for name, value in {"PYTHONPATH": PATHS, **environ}.items()},
        bytes(folder or host.files.basedir),
        umask=client.current_umask(),
        encodings=ENCODINGS,
    )
    numbers = (streams[0][0], streams[1][1], streams[2][1])
    begun = _Warm(client.begin(str(host.files.socket), message, numbers))
    code = begun.wait()
    for number in numbers:
        os.close(number)
    with os.fdopen(streams[1][0]) as out, os.fdopen(streams[2][0]) as err:
        return Ended(1 if code is None else code, out.read(), err.read())


def process(host: Host, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    """Start a client in a process of its own, as the command `lakewright` does."""
    code = (
        # As some shells do for what runs in the background; the command answers to Ctrl-C nevertheless.
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import sys, lakewright_client as client; client._is_warm = lambda _: True\n"
        "try: sys.exit(client.run(sys.argv[1:]))\n"
        "except client.Refused as refused: sys.exit(f'refused: {refused}')"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=host.files.basedir,
        env={**os.environ, "PYTHONPATH": PATHS, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def test_a_request_has_the_callers_environment_folder_and_streams_and_no_others(
    host: Host, tmp_path: Path
) -> None:
    done = run(host, "tell", folder=tmp_path, stdin="naïve".encode(), SECRET="of the first")
    assert (done.code, done.err) == (0, "né\n")
    told = done.told
    assert told["folder"] == str(tmp_path)
    assert told["stdin"] == "naïve"
    assert (told["secret"], told["is_tty"]) == ("of the first", False)
    assert set(told["variables"]) <= {"PYTHONPATH", "SECRET", "LAKEWRIGHT_REQUEST", "LC_CTYPE"}
    second = run(host, "tell").told
    assert second["secret"] is None
    assert second["seen"] == ["told"]
    assert second["pid"] != told["pid"]


def test_a_worker_that_is_killed_at_its_gate_does_not_end_the_host() -> None:
    host = WorkerHost(Mock(), 0, Mock(), Mock())
    theirs, ours = socket.socketpair()
    worker = _Worker(Mock(), ours)
    host._selector.register(ours, select.POLLIN)
    worker.let_begin()
    theirs.close()  # with a byte that nobody has read: the next look is a reset, not an end
    host._hear(worker)
    assert ours not in host._selector.get_map()
    worker.let_begin()
    for opened in (ours, host._ask, host._asked, host._signalled, host._signalling, host._selector):
        opened.close()


def test_a_client_process_passes_its_umask_and_its_own_streams(host: Host) -> None:
    before = os.umask(0o027)
    try:
        begun = process(host, "tell")
    finally:
        os.umask(before)
    out, err = begun.communicate(timeout=60)
    assert begun.returncode == 0, err
    assert json.loads(out)["umask"] == 0o027
    assert err == "né\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 102), (signal.SIGTERM, 115)])
def test_a_signal_to_the_client_reaches_the_command(host: Host, number: signal.Signals, code: int) -> None:
    begun = process(host, "stop")
    assert begun.stdout is not None
    assert begun.stdout.readline() == "ready\n"
    # The command may begin a moment before its client is set to forward signals.
    assert eventually(lambda: _catches(begun.pid, number))
    begun.send_signal(number)
    assert begun.wait(60) == code
    begun.communicate()


def _catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal, as Linux tells it."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_what_a_request_leaves_behind_follows_its_answer_and_outlives_its_caller(
    host: Host, tmp_path: Path
) -> None:
    """Rules of the server, "Warm session": nothing that the answer does not need holds it up."""
    file = tmp_path / "file"
    file.touch()
    begun = process(host, "leave", str(file))
    out, err = begun.communicate(timeout=60)  # until nobody has its streams any more
    assert (begun.returncode, out, err) == (3, "answered\n", "")
    assert host.service.is_busy  # so that a server that was started on demand does not stop
    file.unlink()
    assert eventually(Path(f"{file}.ended").exists)
    assert eventually(lambda: not host.service.is_busy)


def test_a_client_that_is_killed_interrupts_its_request(host: Host, tmp_path: Path) -> None:
    begun = process(host, "touch", str(tmp_path / "file"), "60")
    assert eventually((tmp_path / "file.begun").exists)
    workers = _children(host)
    begun.kill()
    begun.communicate()
    assert eventually(lambda: not _children(host) & workers)
    assert not (tmp_path / "file.ended").exists()


def test_a_command_that_is_killed_or_raises_ends_with_the_code_of_a_process(host: Host) -> None:
    assert run(host, "die").code == 128 + signal.SIGKILL
    failed = run(host, "fail")
    assert failed.code == 1
    assert "ValueError: as asked" in failed.err


def test_a_request_of_the_server_can_be_interrupted(host: Host) -> None:
    begun = host.requests.begin(["stop"])
    assert begun.wait(0.5) is None
    begun.interrupt(signal.SIGTERM)
    assert begun.wait(60) == 115
    assert begun.wait() == 115


def test_fifty_requests_at_once_all_end(host: Host) -> None:
    ended: list[int] = []

    def one() -> None:
        ended.append(run(host, "tell").code)

    threads = [threading.Thread(target=one) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert ended == [0] * 50


def test_requests_that_wait_for_their_turn_are_counted(host: Host) -> None:
    gauges = host.service.gauges
    begun = [host.requests.begin(["sleep", "2"]) for _ in range(LIMIT + 2)]
    assert eventually(lambda: (gauges.running, gauges.waiting) == (LIMIT + 2, 2))
    assert [each.wait(60) for each in begun] == [0] * len(begun)
    assert eventually(lambda: (gauges.running, gauges.waiting) == (0, 0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"PYTHONPATH": f"{PATHS}{os.pathsep}/elsewhere"}, "the environment differs in PYTHONPATH"),
        ({"PYTHONWARNINGS": "ignore"}, "other flags"),
    ],
)
def test_a_caller_with_another_python_is_refused_with_the_reason(
    host: Host, change: dict[str, str], why: str
) -> None:
    begun = process(host, "tell", **change)
    out, err = begun.communicate(timeout=60)
    assert out == ""
    assert f"refused: {err}".count("refused") >= 1
    assert why in err


def test_another_version_of_the_code_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "__file__", "/elsewhere/lakewright_client.py")
    message = client.ask(["tell"], {}, b"/", umask=0, encodings=["", "", ""])
    with pytest.raises(client.Refused, match="this command is in /elsewhere"):
        client.begin(str(host.files.socket), message, (0, 1, 2))


def test_a_caller_that_gives_up_before_it_says_go_starts_nothing(host: Host, tmp_path: Path) -> None:
    message = client.ask(
        ["touch", str(tmp_path / "file"), "0"],
        {b"PYTHONPATH": PATHS.encode()},
        os.fsencode(tmp_path),
        umask=0,
        encodings=["utf-8:strict"] * 3,
    )
    with socket.socket(socket.AF_UNIX) as impatient:
        impatient.connect(str(host.files.socket))
        socket.send_fds(impatient, [b"r"], [0, 1, 2])
        impatient.sendall(message)
        assert impatient.recv(1) == client.ACCEPTED
    assert run(host, "tell").code == 0
    assert not list(tmp_path.iterdir())


def test_a_server_of_another_user_is_not_believed(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(client.Refused, match="another user"):
        client.begin(str(host.files.socket), b"", (0, 1, 2))


def test_the_socket_is_the_users_alone(host: Host) -> None:
    assert host.files.socket.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_can_neither_send_requests_nor_read_the_servers_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    # Not below `tmp_path`, whose folder keeps other users out.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        files = ServerFiles(Path(place))
        files.folder.mkdir(mode=0o755)
        service = service_of(files, [Path(place)])
        service.start()
        try:
            files.write(files.token, "secret")
            files.write_state({"pid": os.getpid()})
            told = as_another_user(lambda: files_that_open(files))
        finally:
            service.stop()
    refused = "no server answers: [Errno 13] Permission denied"
    assert told == {"files": [], "listed": True, "socket": refused}


def files_that_open(files: ServerFiles) -> dict[str, Any]:
    """Return what of a server's files this process can use."""
    opened = []
    for path in (files.token, files.state):
        with suppress(PermissionError):
            opened.append(path.read_text())
    try:
        client.begin(str(files.socket), b"", (0, 1, 2))
        refused = ""
    except client.Refused as error:
        refused = str(error)
    return {"files": opened, "listed": files.token.exists(), "socket": refused}


def as_another_user(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a process of the user `nobody`."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        told = answer.read()
    os.waitpid(pid, 0)
    return json.loads(told)


def test_a_socket_that_nobody_answers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "serve.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(client.Refused, match="no server answers"):
        client.begin(str(path), b"", (0, 1, 2))


def test_a_socket_with_a_long_path_is_reached(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path / ("long" * 30))
    files.folder.mkdir(parents=True)
    with service_of(files)._listening() as listener:
        begun = client._connected(str(files.socket))
        assert select.select([listener], [], [], 10)[0]
        begun.close()


def test_a_request_whose_worker_ended_without_a_code_counts_as_killed() -> None:
    """It counted as failed, so that its trigger waited for an operator."""
    ours, theirs = socket.socketpair()
    theirs.close()
    assert _Warm(ours).wait() == 137


def test_a_host_that_is_killed_is_replaced(host: Host) -> None:
    (killed,) = _hosts()
    os.kill(killed, signal.SIGKILL)
    # The request waits in the socket until the next host takes it.
    assert run(host, "tell").code == 0
    assert eventually(lambda: killed not in _hosts())


def test_commands_run_without_the_server_if_its_host_cannot_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They waited for a host without end."""

    class Ended:
        def next_line(self) -> bytes:
            return b""

        def end(self, patience: float) -> None:
            pass

    def refuse(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("lakewright.warm.session._Host", refuse)
    files = ServerFiles(tmp_path)
    files.folder.mkdir()
    service = service_of(files)
    service._listener = service._listening()

    service._keep(service._listener, Ended())  # type: ignore[arg-type]  # a host that has ended

    with pytest.raises(client.Refused):
        client.begin(str(files.socket), b"", (0, 1, 2))


def test_a_host_whose_code_has_changed_is_replaced_and_what_runs_goes_on(host: Host, tmp_path: Path) -> None:
    before = _hosts()
    begun = process(host, "touch", str(tmp_path / "file"), "3")
    assert eventually((tmp_path / "file.begun").exists)
    (host.code / "new.py").touch()
    assert eventually(lambda: run(host, "tell").code == 0 and bool(_hosts() - before))
    assert begun.wait(60) == 0
    begun.communicate()
    assert (tmp_path / "file.ended").exists()


def test_nothing_outlives_a_server_without_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    others = set(psutil.Process().children())
    files = ServerFiles(tmp_path)
    files.folder.mkdir()
    service = service_of(files, [tmp_path])
    service.start()
    assert run(Host(service, files, tmp_path), "connect").code == 0

    def processes() -> set[psutil.Process]:
        # Not what others have started meanwhile, such as a browser of another test.
        own = set(psutil.Process().children()) - others
        return own | {each for host in own for each in host.children(recursive=True)}

    # The host of workers, and the one for Spark.
    assert eventually(lambda: len(processes()) == 2)
    begun = processes()
    service.stop()
    _, alive = psutil.wait_procs(begun, 30)
    assert not alive


def _hosts() -> set[int]:
    """Return the hosts that this process has started."""
    found = set()
    for each in psutil.Process().children():
        with suppress(psutil.Error):
            if "lakewright.warm.worker_host" in each.cmdline():
                found.add(each.pid)
    return found


def _children(host: Host) -> set[int]:
    return {each.pid for number in _hosts() for each in psutil.Process(number).children()}
