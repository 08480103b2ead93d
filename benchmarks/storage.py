"""A slice on an object store beside the same slice on a disk, in one warm process, and its requests.

python -m benchmarks Storage
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.fold import ENTITY, MODULE, processor_seconds, write_slices
from benchmarks.report import Row
from benchmarks.stored_plans import compare_plans
from benchmarks.timing import time_command

if TYPE_CHECKING:
    from lakewright.app import App


WARM, MEASURED = 3, 5
"""Slices before the first one that is measured, and those measured, on each side."""

BUCKET = "lake"
SIDES = ("store", "disk")
KINDS = ("LIST", "HEAD", "GET", "PUT", "POST", "DELETE")
PARTS = {"the table's log": "_delta_log", "the table's rows": "silver", "the slice": "bronze", "the rest": ""}
"""What requests are for, by a part of the key or of the prefix; the first one that fits."""

SERVER = """
import json, sys
from collections import Counter
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

inner, counts = DomainDispatcherApplication(create_backend_app), Counter()
parts = json.loads(sys.argv[2])

def counting(environ, start_response):
    if environ["PATH_INFO"] == "/requests":
        start_response("200 OK", [("Content-Type", "application/json")])
        answer = json.dumps(counts).encode()
        counts.clear()
        return [answer]
    is_list = environ["REQUEST_METHOD"] == "GET" and "list-type=" in environ["QUERY_STRING"]
    place = environ["QUERY_STRING"] if is_list else environ["PATH_INFO"]
    part = next(name for name, text in parts.items() if text in place)
    counts[part + "/" + ("LIST" if is_list else environ["REQUEST_METHOD"])] += 1
    return inner(environ, start_response)

run_simple("127.0.0.1", int(sys.argv[1]), counting, threaded=False)
"""


def run(folder: Path, rounds: int) -> list[Row]:
    """Return the time and the requests of a slice and of a plan in a store, beside those on a disk."""
    plans = compare_plans(folder / "plans", rounds)
    with _store() as url:
        command = [sys.executable, "-m", "benchmarks.storage", str(folder), url]
        found = json.loads(time_command(command).output.splitlines()[-1])
    rows = [
        Row(f"a slice in a store : on a disk, {what}", _ratio(found[key]), wanted)
        for key, what, wanted in (("seconds", "by the clock", "<= 1.5"), ("processor", "processor time", ""))
    ]
    return [
        *rows,
        Row("requests of a slice, in the middle", _told(found["requests"])),
        *(Row(f"of these, for {part}", text) for part in PARTS if (text := _told(found["requests"], part))),
        Row("requests of a run without a slice", _told(found["clean"])),
        *plans,
    ]


def _told(counts: dict[str, float], wanted: str = "") -> str:
    """Return counts by the kind of the request, of one part or of all."""
    sums: Counter[str] = Counter()
    for name, count in counts.items():
        part, _, kind = name.rpartition("/")
        if wanted in ("", part):
            sums[kind] += round(count)
    return ", ".join(f"{sums[kind]} {kind}" for kind in KINDS if sums[kind])


def _ratio(spent: dict[str, float]) -> str:
    store, disk = spent["store"], spent["disk"]
    return f"{store:.2f} s : {disk:.2f} s, ratio {store / disk:.2f}"


@contextmanager
def _store() -> Iterator[str]:
    """Yield the URL of a store that counts its requests, in a process that is not measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", SERVER, str(port), json.dumps(PARTS)]
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        try:
            deadline = time.monotonic() + 120
            while server.poll() is None and time.monotonic() < deadline:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def measure(folder: Path, url: str) -> dict[str, Any]:
    """Return the middle of the seconds and the requests of each side's slices."""
    from lakewright.app import App
    from lakewright.usecases.process_slices import process_slices

    write_slices(folder / "slices", WARM + MEASURED)
    # The store's first: the JVM needs its jars.
    apps = {side: App.open(_project(folder / side, side, url)) for side in SIDES}
    bucket, _ = apps["store"].lake.storage.at(f"s3://{BUCKET}")
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    processor: dict[str, list[float]] = {side: [] for side in SIDES}
    requests: list[Counter[str]] = []
    for file in sorted((folder / "slices").iterdir()):
        for side in SIDES:
            _bring(file, side, folder, bucket)
            _requests(url)
            began, spent = time.monotonic(), processor_seconds()
            _process(apps[side], process_slices)
            processor[side].append(processor_seconds() - spent)
            seconds[side].append(time.monotonic() - began)
            if side == "store":
                requests.append(_requests(url))
    process_slices(apps["store"], "orders")
    clean = _requests(url)
    for app in apps.values():
        app.close()
    return {
        "seconds": {side: median(spent[WARM:]) for side, spent in seconds.items()},
        "processor": {side: median(spent[WARM:]) for side, spent in processor.items()},
        "requests": {name: median(each[name] for each in requests[WARM:]) for name in set().union(*requests)},
        "clean": clean,
    }


def _process(app: App, process_slices: Any) -> None:
    app.begin_run()
    result = process_slices(app, "orders")
    assert result.error is None, result.error
    assert len(result.slices) == 1


def _bring(file: Path, side: str, folder: Path, bucket: Any) -> None:
    if side == "store":
        bucket.put(f"lake/bronze/orders/{file.name}", file.read_bytes())
        return
    bronze = folder / side / "lake" / "bronze" / "orders"
    bronze.mkdir(parents=True, exist_ok=True)
    (bronze / file.name).write_bytes(file.read_bytes())


def _project(folder: Path, side: str, url: str) -> Path:
    folder.mkdir()
    keys = {"access_key": "benchmark", "secret_key": "not-a-secret"}
    sections: dict[str, Any] = {
        "name": side,
        "modules": ["entities.yml"],
        "lake": {"root_folder": f"s3://{BUCKET}/lake" if side == "store" else str(folder / "lake")},
    }
    if side == "store":
        s3 = {"endpoint_url": url, "credentials": "static", **keys}
        # The manifest of both is in a file: what is compared is the lake.
        sections |= {"storage": {"s3": s3, "single_driver": True}, "manifest": {"kind": "sqlite"}}
        put = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")
        urllib.request.urlopen(put).close()
    (folder / "project.yml").write_text(json.dumps(sections))
    (folder / "entities.yml").write_text(
        MODULE + ENTITY.format(name="orders", strategy="merge", fold="false")
    )
    return folder


def _requests(url: str) -> Counter[str]:
    """Return how many requests of each kind the store got since the last question."""
    with urllib.request.urlopen(f"{url}/requests") as answer:
        return Counter(json.loads(answer.read()))


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2])))
