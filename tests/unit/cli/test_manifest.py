"""The operator's command post, over a store in memory."""

from __future__ import annotations

import getpass
import json
import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.documents import checked
from tests.unit.cli.surroundings import Answered, FakeApp, call_with

from lakewright.errors import SliceError
from lakewright.manifest.claim import COUNTER, Claim
from lakewright.manifest.lease import Holder
from lakewright.manifest.ledger import DiscoveredSlice
from lakewright.manifest.payload import failure
from lakewright.manifest.record import Application
from lakewright.manifest.store import Query
from lakewright.manifest.verdict import Verdict
from lakewright.slices.chain import counter_of
from lakewright.upkeep.fsck import fsck
from lakewright.usecases.items import Rows

ORDERS = Application.named("lakewright/shop/orders", "orders")
HOLDER = Holder("elsewhere", 7, "then", "run-1", "ada")
ITEM = "file:///lake/bronze/orders/"


def slices(app: FakeApp, *names: str) -> None:
    app.ledger.discover(DiscoveredSlice(ITEM + name, ORDERS, "orders", name, {"size": 1}) for name in names)


def claim(app: FakeApp, name: str, folder: str = ITEM) -> Claim:
    minute = timedelta(seconds=60)
    return app.ledger.acquire(folder + name, ORDERS, HOLDER, duration=minute, token_counter="orders")


def a_lake(bronze: str = "/nowhere") -> FakeApp:
    """Slices a (processed), b (failed), c (locked), d (ready) and e (skipped)."""
    app = FakeApp(bronze=Path(bronze))
    slices(app, *"abcde")
    metrics = {"slice": "a", "strategy": "merge", "records_in_slice": 5, "inserted": 5}
    app.ledger.processed(
        claim(app, "a"), {"metrics": metrics, "watermarks": {"day": {"type": "long", "value": 3}}}
    )
    app.ledger.failed(claim(app, "b"), failure(ValueError("column x is gone\nmore")))
    claim(app, "c")
    app.ledger.skip(ITEM + "e", "sent twice")
    return app


def document(app: FakeApp, *arguments: str) -> Any:
    answered = call_with(app, *arguments, "-o", "json")
    assert answered.code == 0, answered.err
    return checked(json.loads(answered.out))


def verdicts(app: FakeApp, *options: str) -> dict[str, str]:
    return {row["slice"]: row["verdict"] for row in document(app, "manifest", "ls", *options)}


ALL = {"a": "processed", "b": "failed", "c": "locked", "d": "ready", "e": "skipped"}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), "abcde"),
        (("--state", "failed"), "b"),
        (("--state", "LOCKED", "--state", "Ready"), "cd"),
        (("--state", "processing"), "c"),
        (("--state", "NEW"), "d"),
        (("--state", "ready", "--state", "processing"), "cd"),
        (("--entity", "orders"), "abcde"),
        (("--application", "lakewright/shop/orders:orders", "--state", "processed"), "a"),
        (("--stale",), ""),
        (("--limit", "2"), "ab"),
    ],
)
def test_a_list_takes_verdicts_and_states_in_any_case(options: tuple[str, ...], found: str) -> None:
    assert verdicts(a_lake(), *options) == {name: ALL[name] for name in found}


def test_an_unknown_word_is_wrong_usage_that_lists_the_known_ones() -> None:
    answered = call_with(a_lake(), "manifest", "ls", "--state", "lost")
    assert answered.code == 2
    assert "Verdicts: ready" in answered.err


def test_what_is_unknown_has_no_record_to_list() -> None:
    answered = call_with(a_lake(), "manifest", "ls", "--state", "Unknown")
    assert (answered.code, "manifest discover" in answered.err) == (2, True)


def test_a_row_has_the_keys_that_are_documented() -> None:
    """Rules of the command line, `manifest ls -o json`."""
    rows = {row["slice"]: row for row in document(a_lake(), "manifest", "ls")}
    assert rows["c"] == {
        "item_id": ITEM + "c",
        "application": "lakewright/shop/orders:orders",
        "verdict": "locked",
        "state": "PROCESSING",
        "run_id": "run-1",
        "trigger": None,
        "since": "2022-03-01T03:00:00.000000Z",
        "holder": "ada@elsewhere (process 7, run run-1)",
        "stale": False,
        "sequence": 2,
        "slice": "c",
        "entity": "orders",
        "revision": 1,
        "waits_for": None,
        "error": None,
    }
    assert rows["b"]["error"] == "column x is gone"


def test_an_item_is_shown_with_all_its_records() -> None:
    shown = document(a_lake(), "manifest", "show", ITEM + "b")
    assert shown["verdicts"] == {"lakewright/shop/orders:orders": "failed"}
    assert [record["state"] for record in shown["records"]] == ["NEW", "PROCESSING", "FAILED"]
    page = call_with(a_lake(), "manifest", "show", ITEM + "b").out
    assert "error: column x is gone" in page
    assert page.splitlines()[-1] == f"do: `lakewright manifest resolve {ITEM}b`"


def test_an_unknown_item_is_wrong_usage() -> None:
    answered = call_with(a_lake(), "manifest", "show", "file:///nothing")
    assert answered.code == 2
    assert "manifest ls" in answered.err


def test_counts_are_by_application_and_verdict() -> None:
    assert document(a_lake(), "manifest", "stats") == {
        "lakewright/shop/orders:orders": dict.fromkeys(
            ("failed", "locked", "processed", "ready", "skipped"), 1
        )
    }


@pytest.mark.parametrize(
    ("verb", "name", "options", "becomes"),
    [
        ("resolve", "b", (), "ready"),
        ("release", "c", ("--force",), "ready"),
        ("skip", "d", (), "skipped"),
        ("skip", "d", ("--for", "lakewright/shop/orders"), "skipped"),
        ("unskip", "e", (), "ready"),
    ],
)
def test_verbs_are_records_with_author_and_reason(
    verb: str, name: str, options: tuple[str, ...], becomes: str
) -> None:
    app = a_lake()
    done = document(app, "manifest", verb, ITEM + name, "--author", "ada", "--reason", "because", *options)
    assert {row["verdict"] for row in done} == {becomes}
    last = app.store.records(ITEM + name)[-1]
    assert (last.author.agent.name, last.content["reason"]) == ("ada", "because")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("resolve",), "no item is named"),
        (("resolve", ITEM + "b", "--all"), "items are both named and selected"),
        (("resolve", "orders/nope"), "the manifest has no item orders/nope"),
        (("resolve", "orders"), "name a slice of it as `orders/SLICE`, or give `--entity orders` for all"),
        (("skip", "--state", "fialed"), "neither a verdict nor a state"),
    ],
)
def test_items_are_either_named_or_selected_b2(arguments: tuple[str, ...], told: str) -> None:
    app = a_lake()
    before = list(app.store.history())
    answered = call_with(app, "manifest", *arguments)
    assert (answered.code, list(app.store.history())) == (2, before)
    assert told in answered.err


def test_a_slice_that_is_named_without_its_entity_is_told_its_name(tmp_path: Path) -> None:
    app = FakeApp(bronze=tmp_path)
    (tmp_path / "s1.csv").write_text("1")
    document(app, "manifest", "discover")
    told = call_with(app, "manifest", "skip", "s1.csv")
    assert "Name it with its entity: `orders/s1.csv`." in told.err


@pytest.mark.parametrize("verb", [("undo",), ("process",), ("history", "diff")])
def test_a_slice_is_named_in_both_ways(verb: tuple[str, ...]) -> None:
    """`undo orders/s1.csv` is the same as `undo orders s1.csv`, as `manifest` prints the name."""
    one, two = (call_with(FakeApp(), *verb, *typed) for typed in (("orders", "s1.csv"), ("orders/s1.csv",)))
    assert (two.code, two.err) == (one.code, one.err)
    assert "orders/s1.csv" not in two.err


@pytest.fixture
def shelf(tmp_path: Path) -> FakeApp:
    """Slices 1 to 12 of orders in bronze, of which 2 and 10 have failed."""
    app = FakeApp(bronze=tmp_path / "bronze")
    app.bronze.mkdir()
    for number in range(1, 13):
        (app.bronze / f"{number}.csv").write_text("id")
    call_with(app, "manifest", "discover")
    for name in ("10.csv", "2.csv"):
        app.ledger.failed(claim(app, name, f"{app.bronze.as_uri()}/"), failure(ValueError("bad")))
    return app


def test_items_are_named_by_entity_and_slice_b2(shelf: FakeApp) -> None:
    done = document(shelf, "manifest", "resolve", "orders/10.csv", str(shelf.bronze / "2.csv"))
    assert [(row["slice"], row["verdict"]) for row in done] == [("10.csv", "ready"), ("2.csv", "ready")]
    assert document(shelf, "manifest", "show", "orders/2.csv")["item_id"].endswith("/bronze/2.csv")


def test_selected_items_are_shown_first_and_changed_with_yes_b2(shelf: FakeApp) -> None:
    before = list(shelf.store.history())
    page = call_with(shelf, "manifest", "resolve", "--entity", "orders").out
    assert page.splitlines() == [
        "failed orders 2.csv",
        "failed orders 10.csv",
        "would resolve 2 items; nothing was changed: add --yes to do it",
    ]
    assert list(shelf.store.history()) == before

    done = document(shelf, "manifest", "resolve", "--all", "--yes", "--reason", "model mended")

    assert [(row["slice"], row["verdict"]) for row in done] == [("2.csv", "ready"), ("10.csv", "ready")]
    assert verdicts(shelf, "--state", "failed") == {}
    assert call_with(shelf, "manifest", "resolve", "--all", "--yes").out == "no item is selected\n"


def test_several_items_are_skipped_unskipped_and_requeued_b2(shelf: FakeApp) -> None:
    document(shelf, "manifest", "skip", "--entity", "orders", "--yes")
    assert sorted(verdicts(shelf, "--state", "failed")) == ["10.csv", "2.csv"]
    assert len(verdicts(shelf, "--state", "skipped")) == 10
    document(shelf, "manifest", "unskip", "--all", "--yes")
    document(shelf, "manifest", "requeue", "--state", "failed", "--yes")
    assert set(verdicts(shelf).values()) == {"ready"}


def test_an_item_is_not_requeued_if_another_one_must_not_be_b2(shelf: FakeApp) -> None:
    call_with(shelf, "manifest", "resolve", "--all", "--yes")
    for name in ("1.csv", "2.csv", "3.csv"):
        shelf.ledger.processed(claim(shelf, name, f"{shelf.bronze.as_uri()}/"), {})
    before = list(shelf.store.history())

    refused = call_with(shelf, "manifest", "requeue", "orders/3.csv", "orders/1.csv")

    assert (refused.code, list(shelf.store.history())) == (2, before)
    assert "later slices of orders are processed, 1 in all" in refused.err
    (shelf.bronze / "3.csv").write_text("id\n1")
    document(shelf, "manifest", "requeue", "orders/1.csv", "--cascade")
    assert verdicts(shelf, "--state", "processed") == {}
    assert document(shelf, "manifest", "discover")["changed"] == [], (
        "cascaded items have their present content"
    )
    shown = document(shelf, "manifest", "show", "orders/3.csv")
    assert shown["records"][-1]["state"] == "NEW"


def of_each(app: FakeApp, name: str) -> dict[str, str]:
    shown = document(app, "manifest", "show", ITEM + name)
    return dict(shown["verdicts"])


OWN, ALL_INSTANCES = "lakewright/shop/orders:orders", "lakewright/shop/orders"


def test_a_skip_for_all_instances_shows_on_the_one_that_is_there() -> None:
    app = a_lake("/lake/bronze/orders")
    document(app, "manifest", "skip", ITEM + "d", "--for", ALL_INSTANCES)
    assert of_each(app, "d") == {OWN: "skipped"}
    assert document(app, "manifest", "stats")[OWN] == {"failed": 1, "locked": 1, "processed": 1, "skipped": 2}
    document(app, "manifest", "unskip", ITEM + "d")  # the only skip that there is
    assert of_each(app, "d") == {OWN: "ready"}


def test_of_several_skips_one_must_be_named_to_undo_it() -> None:
    app = a_lake("/lake/bronze/orders")
    for application in (ALL_INSTANCES, "snowplow/loader"):
        app.ledger.skip(ITEM + "d", "not mine", application=Application.named(application))
    told = call_with(app, "manifest", "unskip", ITEM + "d")
    assert (told.code, f"Give --for {ALL_INSTANCES} or snowplow/loader." in told.err) == (2, True)


def test_who_was_never_more_than_skipped_does_not_wait_once_that_is_taken_back() -> None:
    app = a_lake()
    other = Application.named("snowplow/loader")
    app.ledger.skip(ITEM + "d", "not mine", application=other)
    assert of_each(app, "d") == {OWN: "ready", "snowplow/loader": "skipped"}
    assert verdicts(app, "--application", "snowplow/loader") == {"d": "skipped"}
    document(app, "manifest", "unskip", ITEM + "d", "--for", "snowplow/loader")
    assert of_each(app, "d") == {OWN: "ready"}
    assert list(fsck(app.store)) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("skip", ITEM + "d", "--for", "lakewright/shop/orders:other"),
        ("unskip", ITEM + "e", "--for", "nope"),
        ("ls", "--application", "nope"),
        ("watch", "--application", "nope"),
    ],
)
def test_an_unknown_application_is_refused_and_the_known_ones_are_named(arguments: tuple[str, ...]) -> None:
    app = a_lake()
    before = list(app.store.history())
    answered = call_with(app, "manifest", *arguments)
    assert (answered.code, OWN in answered.err) == (2, True)
    assert list(app.store.history()) == before


def test_an_item_may_be_skipped_for_an_application_that_is_yet_to_come() -> None:
    app = a_lake()
    answered = call_with(app, "manifest", "skip", ITEM + "d", "--for", "shop/orders")
    assert answered.code == 0
    assert f"shop/orders has no record in the manifest yet; known: {OWN}" in answered.err
    item = app.ledger.item(ITEM + "d")
    assert [str(mark.application) for mark in item.skipped] == ["shop/orders"]


def refused(*arguments: str) -> Answered:
    return call_with(a_lake(), "manifest", *arguments)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("release", ITEM + "c"), 4),
        (("resolve", ITEM + "c"), 4),
        (("skip", ITEM + "b"), 4),
        (("resolve", ITEM + "a"), 2),
        (("release", ITEM + "a"), 2),
        (("unskip", ITEM + "a"), 2),
    ],
)
def test_a_verb_that_does_not_fit_is_refused(arguments: tuple[str, ...], code: int) -> None:
    assert refused(*arguments).code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("resolve", ITEM + "b", "--author", ""),
        ("fsck", "--repair", "--author", " "),
        ("requeue", ITEM + "a", "--late", "--cascade"),
    ],
)
def test_what_nobody_can_mean_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    app = a_lake()
    before = list(app.store.history())
    answered = call_with(app, "manifest", *arguments)
    assert (answered.code, arguments[-1].strip() in answered.err) == (2, True)
    assert list(app.store.history()) == before


def test_who_has_no_name_goes_by_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    app = a_lake()
    document(app, "manifest", "skip", ITEM + "d")
    assert app.store.records(ITEM + "d")[-1].author.agent.name == str(os.getuid())


def test_how_a_failed_item_is_skipped_is_said() -> None:
    app = a_lake()
    answered = call_with(app, "manifest", "skip", ITEM + "b")
    assert f"do: First `lakewright manifest resolve {ITEM}b`, then skip it." in answered.err
    document(app, "manifest", "resolve", ITEM + "b")
    assert document(app, "manifest", "skip", ITEM + "b")[0]["verdict"] == "skipped"


def test_what_is_exported_comes_in_elsewhere(tmp_path: Path) -> None:
    app, other = a_lake(), FakeApp()
    file = tmp_path / "records.ndjson"
    assert document(app, "manifest", "export", str(file))["lines"] == 13
    assert document(other, "manifest", "import", str(file)) == {
        "records": 11,
        "documents": 2,
        "present": 0,
        "refused": False,
        "errors": [],
    }
    assert verdicts(other) == verdicts(app)
    assert document(other, "manifest", "import", str(file))["present"] == 13
    assert len(document(app, "manifest", "export")) == 13
    assert len(call_with(app, "manifest", "export").out.splitlines()) == 13


def test_a_faulty_line_is_named_and_fails_the_import(tmp_path: Path) -> None:
    file = tmp_path / "records.ndjson"
    file.write_text('{"itemId": "x"}\n')
    answered = call_with(FakeApp(), "manifest", "import", str(file))
    assert answered.code == 1
    assert f"{file}:1" in answered.out
    assert call_with(FakeApp(), "manifest", "import", str(tmp_path / "none")).code == 2


def test_bytes_that_are_no_text_are_a_faulty_line_and_others_come_in_if_wanted(tmp_path: Path) -> None:
    file = tmp_path / "records.ndjson"
    assert call_with(a_lake(), "manifest", "export", str(file)).code == 0
    good = file.read_bytes()
    file.write_bytes(b'\xff\x00\n{"itemId": "\xe9"}\n' + good)
    app = FakeApp()
    refused = call_with(app, "manifest", "import", str(file))
    assert refused.code == 1
    assert "Nothing was imported: 2 errors." in refused.out
    assert document(app, "manifest", "ls") == []
    answered = call_with(app, "manifest", "import", str(file), "--keep-going")
    assert (answered.code, answered.err) == (1, "")
    assert f"{file}:1" in answered.out
    assert f"{file}:2" in answered.out
    assert "11 records and 2 documents imported" in answered.out


@pytest.mark.parametrize("verb", ["export", "import"])
def test_a_file_that_can_not_be_used_is_wrong_usage(tmp_path: Path, verb: str) -> None:
    answered = call_with(a_lake(), "manifest", verb, str(tmp_path / "none" / "x"))
    assert (answered.code, "No such file" in answered.err, "do: Name a file" in answered.err) == (
        2,
        True,
        True,
    )


def test_what_is_ready_waits_for_the_first_that_holds_it_back() -> None:
    rows = {row["slice"]: row["waits_for"] for row in document(a_lake(), "manifest", "ls")}
    assert rows == {"a": None, "b": None, "c": None, "d": ITEM + "b", "e": None}


class TestDiscovery:
    """Rules of the manifest, `discover` and `requeue`."""

    def lake(self, folder: Path) -> FakeApp:
        for name in ("s1.csv", "s2.csv", "s10.csv"):
            (folder / name).write_text(name)
        return FakeApp(bronze=folder)

    def names(self, entries: list[dict[str, str]]) -> list[str]:
        return [entry["slice"] for entry in entries]

    def test_it_records_what_is_new_once(self, tmp_path: Path) -> None:
        app = self.lake(tmp_path)
        found = document(app, "manifest", "discover")
        assert self.names(found["new"]) == ["s1.csv", "s2.csv", "s10.csv"]
        assert document(app, "manifest", "discover", "--entity", "orders")["new"] == []

    def test_a_changed_slice_is_accepted_and_stays_processed_a2(self, tmp_path: Path) -> None:
        app = self.done(tmp_path)
        (tmp_path / "s2.csv").write_text("the same with other line ends")
        shown = call_with(app, "manifest", "accept", "--entity", "orders").out
        assert shown.splitlines() == [
            "processed orders s2.csv",
            "would accept 1 item; nothing was changed: add --yes to do it",
        ]
        (row,) = document(app, "manifest", "accept", "orders/s2.csv", "--reason", "only its time")
        assert (row["verdict"], row["state"], row["revision"]) == ("processed", "RESOLVED", 1)
        assert document(app, "manifest", "discover")["changed"] == []
        item = app.ledger.item((tmp_path / "s2.csv").as_uri())
        assert (len(item.processed), item.processing, list(item.tokens.values())) == (1, None, [2])
        begun, ended = document(app, "manifest", "show", "orders/s2.csv")["records"][-2:]
        assert [begun["state"], ended["state"]] == ["PROCESSING", "RESOLVED"]
        assert ended["payload"]["data"]["reason"] == "only its time"
        # What changes again is told again.
        (tmp_path / "s2.csv").write_text("other rows")
        assert self.names(document(app, "manifest", "discover")["changed"]) == ["s2.csv"]

    def test_several_changed_slices_are_accepted_at_once_a2(self, tmp_path: Path) -> None:
        app = self.done(tmp_path)
        for name in ("s1.csv", "s10.csv"):
            (tmp_path / name).write_text("touched by a copy")
        done = document(app, "manifest", "accept", "--all", "--yes")
        assert [(row["slice"], row["verdict"]) for row in done] == [
            ("s1.csv", "processed"),
            ("s10.csv", "processed"),
        ]
        assert call_with(app, "manifest", "accept", "--all", "--yes").out == "no item is selected\n"

    def test_only_what_has_changed_and_is_free_can_be_accepted_a2(self, tmp_path: Path) -> None:
        app = self.done(tmp_path)
        before = list(app.store.history())
        unchanged = call_with(app, "manifest", "accept", "orders/s1.csv")
        assert (unchanged.code, "has not changed since it was recorded" in unchanged.err) == (2, True)
        (tmp_path / "s1.csv").unlink()
        gone = call_with(app, "manifest", "accept", "orders/s1.csv")
        assert (gone.code, "is not in bronze" in gone.err) == (2, True)
        assert list(app.store.history()) == before
        (tmp_path / "s3.csv").write_text("new")
        document(app, "manifest", "discover")
        path = (tmp_path / "s3.csv").as_uri()
        held = app.ledger.acquire(path, ORDERS, HOLDER, duration=timedelta(seconds=9), token_counter=None)
        (tmp_path / "s3.csv").write_text("newer")
        assert call_with(app, "manifest", "accept", path).code == 4
        app.ledger.failed(held, failure(ValueError("torn")))
        refused = call_with(app, "manifest", "accept", path)
        assert (refused.code, "then accept it" in refused.err) == (4, True)

    def test_it_tells_what_changed_and_what_is_gone(self, tmp_path: Path) -> None:
        app = self.lake(tmp_path)
        document(app, "manifest", "discover")
        (tmp_path / "s2.csv").write_text("other content")
        (tmp_path / "s1.csv").unlink()
        found = document(app, "manifest", "discover")
        assert (self.names(found["changed"]), self.names(found["missing"])) == (["s2.csv"], ["s1.csv"])
        assert "changed 1" in call_with(app, "manifest", "discover").out

    def test_a_slice_of_another_place_is_named_by_its_id(self, tmp_path: Path) -> None:
        (tmp_path / "old").mkdir()
        app = self.lake(tmp_path / "old")
        document(app, "manifest", "discover")
        (tmp_path / "new").mkdir()
        self.lake(tmp_path / "new")
        app.project.lake = str(tmp_path / "new")
        found = document(app, "manifest", "discover")
        assert {each["is_elsewhere"] for each in found["missing"]} == {True}
        assert (tmp_path / "old" / "s1.csv").as_uri() in call_with(app, "manifest", "discover").out

    def done(self, folder: Path) -> FakeApp:
        app = self.lake(folder)
        document(app, "manifest", "discover")
        for name in ("s1.csv", "s2.csv", "s10.csv"):
            held = app.ledger.acquire(
                (folder / name).as_uri(),
                ORDERS,
                HOLDER,
                duration=timedelta(seconds=9),
                token_counter="orders",
            )
            app.ledger.processed(held, {})
        return app

    def test_an_item_is_named_by_its_path_too(self, tmp_path: Path) -> None:
        assert document(self.done(tmp_path), "manifest", "show", str(tmp_path / "s1.csv"))["records"]

    def test_requeueing_before_processed_slices_is_refused_and_they_are_named(self, tmp_path: Path) -> None:
        answered = call_with(self.done(tmp_path), "manifest", "requeue", str(tmp_path / "s2.csv"))
        assert answered.code == 2
        assert "s10.csv" in answered.err
        assert "s1.csv" not in answered.err

    @pytest.mark.parametrize(
        ("options", "again"), [(("--cascade",), {"s2.csv", "s10.csv"}), (("--late",), {"s2.csv"})]
    )
    def test_cascade_takes_them_along_and_late_leaves_them(
        self, tmp_path: Path, options: tuple[str, ...], again: set[str]
    ) -> None:
        app = self.done(tmp_path)
        document(app, "manifest", "requeue", str(tmp_path / "s2.csv"), *options)
        assert {name for name, verdict in verdicts(app).items() if verdict == "ready"} == again

    def test_the_last_slice_needs_neither(self, tmp_path: Path) -> None:
        app = self.done(tmp_path)
        (tmp_path / "s10.csv").write_text("corrected")
        document(app, "manifest", "requeue", str(tmp_path / "s10.csv"), "--reason", "corrected")
        assert document(app, "manifest", "discover")["changed"] == []

    def test_resolving_adopts_the_slice_as_it_now_is(self, tmp_path: Path) -> None:
        app = self.lake(tmp_path)
        document(app, "manifest", "discover")
        held = app.ledger.acquire(
            (tmp_path / "s1.csv").as_uri(),
            ORDERS,
            HOLDER,
            duration=timedelta(seconds=9),
            token_counter="orders",
        )
        app.ledger.failed(held, failure(ValueError("torn")))
        (tmp_path / "s1.csv").write_text("whole again")
        document(app, "manifest", "resolve", str(tmp_path / "s1.csv"))
        assert document(app, "manifest", "discover")["changed"] == []


def test_doctor_tells_what_holds_an_entity_back_and_what_to_type() -> None:
    answered = call_with(a_lake(), "doctor", "orders", "-o", "json")
    assert answered.code == 1
    checks = checked(json.loads(answered.out))["checks"]
    assert [check["name"] for check in checks] == ["entity", "bronze", "slice", "manifest", "silver"]
    assert checks[2]["remedy"] == f"Fix the cause, then `lakewright manifest resolve {ITEM}b`."


def test_doctor_has_the_remedy_of_a_slice_that_must_be_delivered_again() -> None:
    app = FakeApp(bronze=Path("/lake/bronze/orders"))
    slices(app, "a")
    app.ledger.failed(claim(app, "a"), failure(SliceError("torn", remedy="Deliver it again.")))
    remedy = "Deliver it again. Then `lakewright manifest resolve orders/a`."
    answered = call_with(app, "doctor", "orders", "-o", "json")
    (found,) = [check for check in checked(json.loads(answered.out))["checks"] if check["name"] == "slice"]
    assert found["remedy"] == remedy


class TestWatermarks:
    def test_they_are_listed_set_and_forgotten(self) -> None:
        app = a_lake()
        assert document(app, "watermark", "ls") == [
            {
                "entity": "orders",
                "column": "day",
                "value": 3,
                "item_id": ITEM + "a",
                "author": None,
                "at": None,
                "reason": None,
            }
        ]
        document(app, "watermark", "set", "orders", "day", "1", "--author", "ada", "--reason", "sent late")
        (row,) = document(app, "watermark", "ls")
        assert (row["value"], row["author"], row["reason"], bool(row["at"])) == (1, "ada", "sent late", True)
        assert "sent late" in call_with(app, "watermark", "ls").out
        document(app, "watermark", "reset", "orders", "day", "--author", "bob", "--reason", "anew: token=abc")
        assert document(app, "watermark", "ls") == []

    def test_what_operators_did_to_them_is_listed_with_who_and_why(self) -> None:
        app = a_lake()
        assert document(app, "watermark", "history") == []
        document(app, "watermark", "set", "orders", "day", "1", "--author", "ada")
        document(app, "watermark", "reset", "orders", "day", "--author", "bob", "--reason", "token=abc")
        told = document(app, "watermark", "history", "orders")
        columns = ("entity", "column", "value", "before", "author", "reason")
        assert [tuple(row[name] for name in columns) for row in told] == [
            ("orders", "day", None, 1, "bob", "token=***"),
            ("orders", "day", 1, 3, "ada", "none given"),
        ]
        printed = call_with(app, "watermark", "history").out
        assert printed.index("bob") < printed.index("ada")

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (("set", "orders", "seen on", "1"), "so its type is not known"),
            (
                ("set", "orders", "day", "noon"),
                "'noon' isn't a watermark of type long do: Write a whole number",
            ),
            (("set", "orders", "seen on", "noon", "--type", "date"), "Write it as 2022-01-31."),
            (("set", "orders", "seen on", "noon", "--type", "timestamp"), "Write it as 2022-01-31T12:00:00Z"),
            (
                ("set", "orders", "new", "1", "--type", "long"),
                "no watermark 'new' do: It declares day, seen on.",
            ),
            (
                ("set", "orders", "day", "5", "--type", "date"),
                "'day' of orders is a long, not a date do: Omit",
            ),
            (("set", "orders", "Day", "1"), "no watermark 'Day' do: It declares that one as 'day'"),
            (("set", "orders", "seen", "1"), "no watermark 'seen' do: It declares that one as 'seen on'"),
            (("reset", "orders", "new"), "It has: day."),
        ],
    )
    def test_what_can_not_be_meant_is_wrong_usage(self, arguments: tuple[str, ...], why: str) -> None:
        app = a_lake()
        answered = call_with(app, "watermark", *arguments)
        assert answered.code == 2
        assert why in " ".join(answered.err.split())
        assert document(app, "watermark", "history") == []


MOVED = "file:///moved/bronze/orders/"


def test_the_manifest_follows_a_lake_that_was_moved() -> None:
    app = a_lake()
    app.ledger.discover([DiscoveredSlice(MOVED + "a", ORDERS, "orders", "a", {"size": 2})])

    said = document(app, "manifest", "move", "/lake/bronze/orders/", "file:///moved/bronze/orders")

    assert said == {"items": [MOVED + name for name in "abcde"], "errors": []}
    now = {item.item_id.removeprefix(MOVED): item for item in app.store.select(Query(prefix=MOVED))}
    assert {name: item.verdict(ORDERS).value for name, item in now.items()} == ALL
    assert list(fsck(app.store)) == []
    # The numbers of commits come along: a table that holds one is recognised.
    assert now["a"].tokens == app.ledger.item(ITEM + "a").tokens
    assert verdicts(app, "--application", str(ORDERS)).keys() == ALL.keys()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {},
            "run the job again, which takes it over, or `lakewright manifest release orders/c`",
        ),
        (
            {"takeover": "operator"},
            "`lakewright manifest release orders/c`, then run the job again",
        ),
    ],
)
def test_a_stale_lock_is_said_to_be_taken_over_only_if_runs_do_so(
    settings: dict[str, str], told: str
) -> None:
    app = a_lake("/lake/bronze/orders")
    app.project.manifest = settings
    item = app.ledger.item(ITEM + "c")
    (lock,) = [replace(lock, stale_reason="it has ended") for lock in [app.ledger.lock(item)] if lock]
    (row,) = Rows(app).of(item)  # type: ignore[arg-type]
    assert replace(row, lock=lock).advice == told


class TestAfterAMove:
    """Of the lake's old place nothing is missing: its records were continued."""

    def moved(self, folder: Path) -> FakeApp:
        """Return a lake of s1.csv and s2.csv, both processed, after it was copied and the manifest moved."""
        (folder / "old").mkdir()
        for name in ("s1.csv", "s2.csv"):
            (folder / "old" / name).write_text("1")
        shutil.copytree(folder / "old", folder / "new")
        app = FakeApp(bronze=folder / "old")
        document(app, "manifest", "discover")
        for name in ("s1.csv", "s2.csv"):
            app.ledger.processed(claim(app, name, f"{(folder / 'old').as_uri()}/"), {})
        app.project.lake = str(folder / "new")
        document(app, "manifest", "move", str(folder / "old"), str(folder / "new"))
        return app

    def test_the_numbers_of_commits_continue(self, tmp_path: Path) -> None:
        app = self.moved(tmp_path)
        counter = counter_of(app.project.entities["orders"].places(app.project.lake).silver)
        found = app.store.document(COUNTER, counter)
        assert found is not None
        assert found.value == {"last": 2}

    def test_a_cascade_takes_the_items_of_the_new_place_only(self, tmp_path: Path) -> None:
        app = self.moved(tmp_path)
        document(app, "manifest", "requeue", "orders/s1.csv", "--cascade", "--reason", "r")
        ready = app.store.select(Query(verdicts=frozenset({Verdict.READY})))
        here = (tmp_path / "new").as_uri()
        assert [item.item_id for item in ready] == [f"{here}/s1.csv", f"{here}/s2.csv"]


def test_what_has_a_history_in_the_other_place_is_left_alone() -> None:
    app = a_lake()
    app.ledger.discover([DiscoveredSlice(MOVED + "d", ORDERS, "orders", "d", {"size": 2})])
    app.ledger.processed(claim(app, "d", MOVED), {"metrics": {}})

    answered = call_with(app, "manifest", "move", ITEM, MOVED, "-o", "json")

    assert answered.code == 1
    assert checked(json.loads(answered.out))["items"] == [MOVED + name for name in "abce"]
    assert app.ledger.item(MOVED + "d").verdict(ORDERS).value == "processed"


@pytest.mark.parametrize(("old", "new"), [("/nowhere", MOVED), (ITEM, ITEM)])
def test_a_move_of_nothing_or_to_nowhere_is_refused(old: str, new: str) -> None:
    assert call_with(a_lake(), "manifest", "move", old, new).code == 2
