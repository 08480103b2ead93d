"""The bus on the command line: `manifest add`, `run`, `acquire` and what ends it, `state`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command import BIN
from tests.commands import InProcess

from lakewright import Manifest


@pytest.fixture
def shop(tmp_path: Path) -> InProcess:
    """A project with a manifest and nothing else."""
    (tmp_path / "m").mkdir()
    (tmp_path / "project.yml").write_text("name: shop\nmodules: [m]\nmanifest: {path: state.db, lease: 2s}\n")
    return InProcess(tmp_path)


def succeed(shop: InProcess, *arguments: str) -> str:
    done = shop.run(*arguments)
    assert done.code == 0, done.all
    return done.out


def add(shop: InProcess, *items: str) -> None:
    succeed(shop, "manifest", "add", *items, "--as", "acme/landing")


def scan(shop: InProcess, *command: str) -> None:
    succeed(shop, "manifest", "run", "--as", "acme/scanner", "--", *(command or ("true",)))


def test_items_are_added_once_and_places_are_named_as_slices_are(shop: InProcess) -> None:
    (shop.folder / "a b.csv").write_text("x")
    listed = shop.json(
        "manifest", "add", "a b.csv", "orders", "--as", "acme/landing", "--payload", '{"n": 1}'
    )
    place = (shop.folder / "a b.csv").as_uri()
    assert listed == [{"item_id": place, "is_new": True}, {"item_id": "orders", "is_new": True}]
    assert succeed(shop, "manifest", "add", "orders", "x", "--as", "acme/landing").split("\n")[:2] == [
        "known orders",
        "NEW x",
    ]
    (shop.folder / "p.json").write_text('{"n": 2}')
    succeed(shop, "manifest", "add", "y", "--as", "acme/landing", "--payload", "@p.json")
    with Manifest.open(shop.folder) as manifest:
        contents = [(manifest.records(name)[0].payload or {})["data"] for name in (place, "orders", "x", "y")]
    assert contents == [{"n": 1}, {"n": 1}, {}, {"n": 2}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--as", "lakewright/shop/x"], "only Lakewright writes its records"),
        (["x", "--as", "a:"], "is not the name of an application"),
        (["x", "--as", "a", "--payload", "{"], "isn't JSON"),
        (["x", "--as", "a", "--payload", "@none"], "none can't be read"),
        (["", "--as", "a"], "the id of an item is empty"),
        (["x"], "Missing option '--as'"),
    ],
)
def test_what_cannot_be_added_is_refused(shop: InProcess, arguments: list[str], message: str) -> None:
    done = shop.run("manifest", "add", *arguments)
    assert (done.code, message in done.err) == (2, True), done.all


def test_run_says_what_it_did_and_what_is_left(shop: InProcess) -> None:
    add(shop, "a", "b")
    scan(shop)
    done = shop.run(
        "manifest", "run", "--as", "acme/loader", "--after", "acme/scanner", "--limit", "1", "--", "true"
    )
    assert (done.code, re.sub(r"\d+\.\d s", "… s", done.err).splitlines()) == (
        0,
        ["processed a (… s)", "left: 1 item ready"],
    )
    assert done.out.startswith("Done. PROCESSED=1 FAILED=0 RELEASED=0 LOST=0 in ")
    found = shop.run("manifest", "run", "--as", "acme/loader", "-o", "json", "--", "sh", "-c", "exit 7")
    assert found.code == 1
    document = json.loads(found.out)
    assert document["items"][0] | {"seconds": 0} == {
        "item_id": "b",
        "status": "failed",
        "exit_code": 7,
        "seconds": 0,
        "note": "the command ended with exit code 7",
    }
    assert document["left"] == {"ready": 0, "waiting": {}, "failed": 1}
    assert shop.run("manifest", "run", "--as", "acme/loader", "--", "true").code == 4


def test_an_application_that_nobody_knows_is_a_warning(shop: InProcess) -> None:
    add(shop, "a")
    scan(shop)
    done = shop.run("manifest", "run", "--as", "acme/loader", "--after", "acme/scaner", "--", "false")
    assert done.code == 0
    assert "warning: acme/scaner has no record in the manifest yet; known: acme/scanner; did you" in done.err
    assert "left: 1 item waiting for acme/scaner" in done.err


def test_a_list_says_who_waits_for_whom(shop: InProcess) -> None:
    add(shop, "a", "b", "c")
    succeed(shop, "manifest", "run", "--as", "acme/scanner", "--match", "a", "--", "true")
    assert shop.run("manifest", "run", "--as", "acme/scanner", "--match", "c", "--", "false").code == 1
    done = shop.run("manifest", "ls", "--for", "acme/loader", "--after", "acme/scanner", "-o", "json")
    assert [(row["item_id"], row["verdict"], row["waits_for"]) for row in json.loads(done.out)] == [
        ("a", "ready", None),
        ("b", "ready", "acme/scanner"),
        ("c", "failed", "acme/scanner"),
    ]
    assert "warning: acme/loader has no record in the manifest yet; known: acme/scanner" in done.err
    text = succeed(shop, "manifest", "ls", "--for", "acme/loader", "--after", "acme/scanner", "--limit", "2")
    assert "waits for acme/scanner" in text
    assert shop.run("manifest", "ls", "--after", "acme/scanner").code == 2
    assert shop.run("manifest", "ls", "--for", "acme/loader", "--state", "ready").code == 2


def test_one_item_that_is_not_ready_says_why(shop: InProcess) -> None:
    add(shop, "a", "b")
    run = ("manifest", "run", "--as", "acme/loader", "--item")
    done = shop.run(*run, "b", "--after", "acme/scanner", "--", "true")
    assert (done.code, "b waits for acme/scanner" in done.err) == (4, True)
    assert shop.run(*run, "b", "--", "true").code == 0
    assert shop.run(*run, "c", "--", "true").code == 2
    assert shop.run(*run, "b", "--match", "*", "--", "true").code == 2
    assert shop.run("manifest", "run", "--as", "x", "--in-order", "-j", "2", "--", "true").code == 2


def test_a_lock_is_held_across_processes(shop: InProcess) -> None:
    add(shop, "a b", "c")
    claim = succeed(shop, "manifest", "acquire", "a b", "--as", "acme/loader:north", "--lease", "10m")
    assert json.loads(claim)["lease_seconds"] == 600
    (shop.folder / "claim.json").write_text(claim)
    assert shop.run("manifest", "acquire", "a b", "--as", "acme/scanner").code == 4
    # The process that acquired it has ended, which doesn't make the lock stale.
    assert shop.run("manifest", "acquire", "a b", "--as", "acme/loader", "--idempotent").code == 4
    assert json.loads(succeed(shop, "manifest", "renew", "@claim.json"))["item_id"] == "a b"
    for _ in range(2):
        done = succeed(shop, "manifest", "processed", "@claim.json", "--payload", '{"rows": 3}')
        assert done == "processed a b for acme/loader:north\n"
    assert shop.json("manifest", "state", "--as", "acme/loader")[0]["payload"] == {"rows": 3}
    lost = shop.run("manifest", "renew", claim)
    assert (lost.code, "is lost: no one holds it now" in lost.err) == (1, True)
    second = succeed(shop, "manifest", "acquire", "c", "--as", "acme/loader")
    assert succeed(shop, "manifest", "failed", second, "--message", "disk full") == (
        "failed c for acme/loader\n"
    )
    assert "disk full" in shop.run("manifest", "acquire", "c", "--as", "x").err
    assert shop.run("manifest", "renew", "{}").code == 2


def test_state_is_one_line_for_each_item(shop: InProcess) -> None:
    add(shop, "a", "b")
    scan(shop, "sh", "-c", 'echo "{\\"ok\\": true}" >$LAKEWRIGHT_PAYLOAD')
    lines: list[Any] = [
        json.loads(text) for text in succeed(shop, "manifest", "state", "--as", "acme/scanner").splitlines()
    ]
    assert [(each["item_id"], each["payload"]) for each in lines] == [
        ("a", {"ok": True}),
        ("b", {"ok": True}),
    ]


def _process(shop: InProcess, *command: str) -> subprocess.Popen[str]:
    arguments = [str(BIN / "lakewright"), "manifest", "run", "--as", "acme/scanner", "--", *command]
    return subprocess.Popen(
        arguments, cwd=shop.folder, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _await(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_signals_of_a_real_process(shop: InProcess) -> None:
    """SIGTERM reaches the command and frees the item; a killed worker leaves a stale lock."""
    add(shop, "a")
    line = "touch begun; exec sleep 60"
    with _process(shop, "sh", "-c", line) as worker:
        _await(shop.folder / "begun")
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=60)
        assert worker.returncode == 128 + signal.SIGTERM, out + err
    assert "released a" in err
    assert "PROCESSED=0 FAILED=0 RELEASED=1" in out
    (shop.folder / "begun").unlink()
    with _process(shop, "sh", "-c", "echo $$ >begun; exec sleep 5") as killed:
        _await(shop.folder / "begun")
        killed.kill()
    assert shop.json("manifest", "ls", "--stale")[0]["item_id"] == "a"
    found = shop.json("status")
    assert [each["stale"] for each in found["locked"]] == [True]
    (told,) = found["findings"]
    assert (told["code"], told["subject"]["kind"], told["commands"]) == (
        "left_item",
        "application",
        [["manifest", "release", "a"]],
    )
    left = shop.run("manifest", "run", "--as", "acme/scanner", "--", "true")
    assert "left: 1 item locked" in left.err
    assert shop.run("manifest", "run", "--as", "acme/scanner", "--idempotent", "--", "true").code == 0
    assert sys.platform == "win32" or shop.json("manifest", "ls")[0]["verdict"] == "processed"


ORDERS = """
connections: {shop: {}}
entities:
  orders:
    id: 1
    after: acme/scanner
    connection: shop
    processtype: merge
    columns: [{name: id, fieldroles: [businesskey]}]
    settings: {format: csv}
targets: {orders: {kind: entity, entity: orders}}
jobs: {daily: {targets: [orders]}}
"""


def steps(shop: InProcess) -> dict[str, tuple[str, list[str]]]:
    """Return the code and the choices of each step of the plan, by the slice that it is about."""
    return {
        each["subject"]["part"]: (each["reason"]["code"], [choice["decision"] for choice in each["choices"]])
        for each in shop.json("plan")["steps"]
    }


def test_a_slice_that_an_application_before_the_entity_has_failed_asks_what_to_do(shop: InProcess) -> None:
    (shop.folder / "project.yml").write_text("name: shop\nmodules: [m]\nlake: {root_folder: lake}\n")
    (shop.folder / "m" / "orders.yml").write_text(ORDERS)
    bronze = shop.folder / "lake" / "bronze" / "shop" / "orders"
    bronze.mkdir(parents=True)
    (bronze / "a.csv").write_text("id\n1\n")
    assert steps(shop) == {"a.csv": ("locked", [])}

    add(shop, str(bronze / "a.csv"))
    assert shop.run("manifest", "run", "--as", "acme/scanner", "--", "false").code == 1
    assert steps(shop) == {"a.csv": ("failed_slice", ["retry", "skip"])}

    succeed(shop, "decide", "orders/a.csv", "retry")
    assert steps(shop) == {"a.csv": ("locked", [])}
    scan(shop)
    assert steps(shop) == {"": ("new_slices", [])}
