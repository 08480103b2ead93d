"""Slices that wait although a run would refuse them as late: what `unskip` and `status` say to type."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.commands import InProcess
from tests.documents import checked
from tests.unit.usecases.slice_times.test_requeued_times import BY_DAY, BY_SLICE, processed

from lakewright import Project
from lakewright.manifest.journal import Run
from lakewright.slices.application import application_of
from lakewright.slices.chain import counter_of

LATE = "orders/2024-05-01.csv"
REQUEUE = f"lakewright manifest requeue {LATE} --late"
SKIP = f"lakewright manifest skip {LATE}"
REBUILD = "lakewright rebuild orders --include 2024-05-01.csv"


def unskipped(folder: Path, strategy: str, target: str, slice_: str = LATE) -> tuple[InProcess, str]:
    """A project with a slice whose skip was undone after later ones were processed, and what was warned."""
    shop = processed(folder, strategy, target)
    shop.json("manifest", "skip", slice_)
    done = shop.run("manifest", "unskip", slice_)
    assert done.code == 0, done.all
    return shop, " ".join(done.err.split())


@pytest.mark.parametrize("target", [BY_SLICE, BY_DAY])
def test_unskip_and_status_say_what_to_type_about_a_slice_that_is_late_by_now(
    tmp_path: Path, target: str
) -> None:
    shop, told = unskipped(tmp_path, "historic", target)
    remedy = f"`{REBUILD}` puts it in its place, `{SKIP}` leaves it out"
    assert (
        f"{LATE}: the slice is older than 2024-05-03.csv, which is already processed, so the next run" in told
    )
    assert f"refuses it: {remedy}" in told
    assert "--late" not in told

    page = " ".join(shop.run("status").out.split())
    assert (
        "orders: 1 slice waits for a rebuild that puts it in its place a run would refuse it: the slice"
        in page
    )
    assert f"do: {remedy}" in page
    assert "lakewright job daily" not in page
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert (waiting["do"], waiting["refused"]) == (
        [REBUILD],
        "the slice is older than 2024-05-03.csv, which is already processed",
    )

    assert shop.shell(REQUEUE).code == 0
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert waiting["do"] == [REBUILD]


def test_slices_that_are_not_late_keep_their_command_beside_one_that_is(tmp_path: Path) -> None:
    shop, _ = unskipped(tmp_path, "merge", BY_DAY)
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    shop.json("manifest", "discover")
    waiting = {row["slice"]: row for row in checked(shop.json("status"))["waiting"]}
    assert waiting["2024-05-01.csv"]["do"] == [REBUILD]
    assert waiting["2024-05-04.csv"]["do"] == ["lakewright job daily build day=2024-05-04"]
    page = shop.run("status").out
    assert "orders: 1 slice waits for a rebuild that puts it in its place" in page
    assert "orders: 1 slice waits for a run that takes 2024-05-04.csv" in page


def test_the_newest_slice_is_unskipped_without_a_warning(tmp_path: Path) -> None:
    shop, told = unskipped(tmp_path, "merge", BY_DAY, "orders/2024-05-03.csv")
    assert told == ""
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert (waiting["do"], waiting["refused"]) == (["lakewright job daily build day=2024-05-03"], None)


def test_a_late_slice_that_the_entity_takes_is_not_told(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", BY_DAY)
    model = (tmp_path / "m.yml").read_text()
    (tmp_path / "m.yml").write_text(
        model.replace("    columns:", "    settings: {late_slices: apply}\n    columns:")
    )
    shop.json("manifest", "skip", LATE)
    done = shop.run("manifest", "unskip", LATE)
    assert (done.code, done.err) == (0, ""), done.all
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert waiting["do"] == ["lakewright job daily build day=2024-05-01"]


def test_skip_says_that_the_rows_of_a_processed_slice_stay_and_a_rebuild_leaves_them_out(
    tmp_path: Path,
) -> None:
    shop = processed(tmp_path, "merge", BY_DAY)
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    done = shop.run("manifest", "skip", LATE, "orders/2024-05-04.csv")
    assert " ".join(done.err.split()) == (
        f"warning: {LATE}: the slice was processed already, and its rows stay in the table until "
        "`lakewright rebuild orders` builds it again without them"
    )


def test_slices_that_no_run_has_seen_have_the_commands_of_those_that_wait(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", BY_DAY)
    for day in ("2024-04-30", "2024-05-04", "2024-05-05"):
        (tmp_path / f"lake/bronze/orders/{day}.csv").write_text("id\n1\n")
    rebuild, job = (
        "lakewright rebuild orders --include 2024-04-30.csv",
        "lakewright job daily build day=2024-05-04,2024-05-05",
    )
    (arrived,) = checked(shop.json("status"))["arrived"]
    assert (arrived["late"], arrived["do"]) == (
        ["2024-04-30.csv"],
        [rebuild, job],
    )
    page = " ".join(shop.run("status").out.split())
    why = "the slice is older than 2024-05-03.csv, which is already processed"
    assert f"a run would refuse 2024-04-30.csv: {why}" in page
    assert f"do: `{rebuild}` puts it in its place" in page
    assert "2024-04-30.csv --late` makes its older rows the current ones" in page
    assert f"do: `{job}`" in page


def test_new_slices_that_any_run_takes_have_no_command(tmp_path: Path) -> None:
    shop = processed(tmp_path, "merge", "description: all of them")
    (tmp_path / "lake/bronze/orders/2024-05-04.csv").write_text("id\n1\n")
    (arrived,) = checked(shop.json("status"))["arrived"]
    assert (arrived["slices"], arrived["do"]) == (["2024-05-04.csv"], [])


def test_a_late_slice_of_full_is_to_be_left_out_as_it_would_replace_newer_rows(tmp_path: Path) -> None:
    """What `status` named first replaced the newest snapshot by an older one, and nothing said so."""
    shop, told = unskipped(tmp_path, "full", BY_DAY)
    remedy = f"`{SKIP}` leaves it out, `{REQUEUE}` replaces newer rows by its own"
    assert f"refuses it: {remedy}" in told
    assert f"do: {remedy}" in " ".join(shop.run("status").out.split())
    requeued = " ".join(shop.shell(REQUEUE).err.split())
    assert "with full, a late slice replaces the rows of later ones" in requeued
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-01").out.split())
    assert "2024-05-01.csv is late: with full, a late slice replaces the rows of later ones" in planned


@pytest.mark.parametrize("action", ["skip", "requeue", "accept"])
def test_what_a_rebuild_would_undo_is_refused_while_it_goes_on(tmp_path: Path, action: str) -> None:
    """A skip of a processed slice was taken back by the end of the rebuild, and nothing said so."""
    shop = processed(tmp_path, "merge", BY_DAY)
    with Project.load(tmp_path) as project:
        app, entity = project.app, project.app.project.entity("orders")
        key = counter_of(entity.places(app.project.lake).silver)
        lease = app.leases().acquire("write orders")
        application = application_of("shop", entity)
        app.ledger.announce_rewind(key, "rebuild of orders", lease, "r1", application)

        refused = shop.run("manifest", action, "orders/2024-05-03.csv", "--reason", "x")

        assert refused.code != 0
        assert "the rebuild of orders by" in refused.err
        assert "is not finished" in refused.err
        app.leases().release(lease)
    assert shop.run("manifest", "skip", "orders/2024-05-03.csv", "--reason", "x").code == 0


SEQUENCE = "settings: {sequence_by: id}\n    columns:"
PARTITIONED = "columns: [{name: id, fieldroles: [partition]}]"


@pytest.mark.parametrize(
    ("strategy", "target", "replaced", "remedy"),
    [
        (
            "merge",
            BY_SLICE,
            {},
            f"`{REBUILD}` puts it in its place, `{SKIP}` leaves it out, `{REQUEUE}` makes its older rows the "
            "current ones",
        ),
        (
            "full",
            BY_SLICE,
            {"columns: [{name: id, fieldroles: [businesskey]}]": PARTITIONED},
            f"`{REBUILD}` puts it in its place, `{SKIP}` leaves it out, `{REQUEUE}` replaces newer rows by "
            "its own",
        ),
        ("full", BY_SLICE, {}, f"`{SKIP}` leaves it out, `{REQUEUE}` replaces newer rows by its own"),
        (
            "merge",
            BY_SLICE,
            {"columns:": SEQUENCE},
            f"`{REQUEUE}` applies it, `{SKIP}` leaves it out",
        ),
        (
            "merge",
            "description: the clock's",
            {},
            f"`{REQUEUE}` applies it and makes its rows the current ones, `{SKIP}` leaves it out",
        ),
    ],
)
def test_what_is_named_first_for_a_late_slice_keeps_newer_rows(
    tmp_path: Path, strategy: str, target: str, replaced: dict[str, str], remedy: str
) -> None:
    """`requeue --late` came first, and made older values the current ones."""
    shop = processed(tmp_path, strategy, target)
    model = (tmp_path / "m.yml").read_text()
    for old, new in replaced.items():
        assert old in model
        model = model.replace(old, new)
    (tmp_path / "m.yml").write_text(model)
    shop.json("manifest", "skip", LATE)
    told = " ".join(shop.run("manifest", "unskip", LATE).err.split())
    assert f"refuses it: {remedy}" in told
    assert f"do: {remedy}" in " ".join(shop.run("status").out.split())
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-01").out.split())
    is_planned = PARTITIONED not in replaced.values()  # the table is not partitioned
    assert (f"2024-05-01.csv is late: the run refuses it; {remedy}" in planned) == is_planned
    (waiting,) = checked(shop.json("status"))["waiting"]
    assert waiting["do"] == [remedy.split("`")[1]]
    requeued = " ".join(shop.shell(REQUEUE).err.split())
    is_placed = REBUILD in remedy
    assert (f"`{REBUILD}` instead puts it in its place" in requeued) == is_placed
    assert ("current ones" in requeued) == ("current ones" in remedy)


def test_a_late_slice_that_a_run_leaves_is_told_as_late_and_no_job_is_named_for_it(tmp_path: Path) -> None:
    """It was said to be late afterwards, and a job was named that refused it."""
    shop = processed(tmp_path, "merge", BY_DAY)
    for name in ("2024-05-02b.csv", "2024-05-04.csv", "2024-05-05.csv"):
        (tmp_path / "lake/bronze/orders" / name).write_text("id\n1\n")
    planned = " ".join(shop.run("plan", "daily", "build", "day=2024-05-04").out.split())
    assert "2024-05-02b.csv is late: a run refuses it; `lakewright" in planned
    assert "leaves 1 slice to other runs: 2024-05-05.csv;" in planned
    assert "afterwards" not in planned


def test_a_slice_that_a_failed_rebuild_was_to_place_is_named_once(tmp_path: Path) -> None:
    """Both sections named the rebuild, which the second time is refused: the slice does not wait any more."""
    shop, _ = unskipped(tmp_path, "historic", BY_SLICE)
    with Project.load(tmp_path) as project:
        app = project.app
        facts = {"from": None, "from-time": None, "include": ["2024-05-01.csv"], "check": False}
        at = datetime.now(UTC) - timedelta(minutes=1)
        run = Run("killed", "shop", "rebuild orders", "REBUILD", {}, at, app.holder, facts=facts)
        app.journal.finish_run(app.journal.start_run(run), "FAILED", finished=at)
    page = " ".join(shop.run("status").out.split())
    assert 'orders: 1 slice waits for the rebuild under "Runs that failed"' in page
    assert page.count(REBUILD) == 1
    told = checked(shop.json("status"))
    assert (told["last_runs"][0]["do"], [each["do"] for each in told["waiting"]]) == (REBUILD, [[]])
    assert shop.shell(SKIP).code == 0
    assert shop.run("status").out.startswith("Nothing is running, waiting or failed.")
