"""How far a table goes back, and what is applied then. No Spark is started."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.slices.test_plan_undo import by_hand, place_of
from tests.unit.slices.test_recover_from_log import Place

from lakewright.slices.chain import AppliedSlice, each_once
from lakewright.slices.rewind.plan import (
    Arriving,
    RewindPlan,
    in_place,
    lasting_commits,
    moved_slices,
    plan_replay,
    starts_over,
    with_times,
)
from lakewright.spec.models.entity import Strategy

ITEMS = st.sampled_from("abcdef")
COMMITS = st.lists(st.lists(ITEMS, min_size=1, max_size=3, unique=True), max_size=6)


@given(
    COMMITS,
    st.permutations("abcdef"),
    st.frozensets(ITEMS),
    st.frozensets(ITEMS, max_size=2),
    st.integers(0, 6),
)
def test_what_stays_and_what_is_applied_then_are_the_slices_that_are_wanted(
    commits: list[list[str]], shuffled: list[str], left: frozenset[str], changed: frozenset[str], same: int
) -> None:
    """Whatever is left out, corrected, moved or new, wherever it was applied before."""
    held = [
        (
            SimpleNamespace(version=number),
            tuple(AppliedSlice(name, number, {"fingerprint": {"size": 1}}) for name in names),
        )
        for number, names in enumerate(commits)
    ]
    order = each_once(each for _, slices in held for each in slices)
    chain: Any = SimpleNamespace(held=tuple(held), order=order, reverted=frozenset(), unlogged=())
    known = {each.item_id: each for each in order}
    names = [each.item_id for each in order[:same]]
    names = [name for name in (*names, *(each for each in shuffled if each not in names)) if name not in left]
    wanted = [
        AppliedSlice(name, 0, {"fingerprint": {"size": 2}})
        if name in changed or name not in known
        else known[name]
        for name in names
    ]
    new = {each.item_id for each in wanted if not each.number and each is not known.get(each.item_id)}
    lasting = lasting_commits(chain, wanted)
    moved = {each.item_id for each in moved_slices(chain, wanted, lasting)} | new
    kept = each_once(each for _, slices in held[:lasting] for each in slices)
    stays = [each.item_id for each in kept if each.item_id not in moved]
    assert stays + [each.item_id for each in wanted if each.item_id in moved] == names
    # What goes has no rows of its own in what stays, unless the same content comes again.
    again = {each.item_id for each in wanted if each.item_id in moved} - new
    assert {each.item_id for each in kept} & moved <= again


def replay(place: Place, wanted: list[AppliedSlice], *, new: tuple[str, ...] = ()) -> RewindPlan:
    lasting = lasting_commits(place.chain, wanted)
    ids = [place.item(name).item_id for name in new]
    return plan_replay(place.bench, place.entity, wanted, lasting, new=ids, may_lose=lambda _: False)


def test_a_late_slice_goes_behind_those_after_it_alone(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s3", "s4")
    place.put("s2")
    place.look()
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    size = (place.bronze / "s2").stat().st_size
    late = Arriving(place.item("s2").item_id, {"size": size}, (at,))
    wanted = with_times(place.bench, in_place(place.chain.order, [late]), Strategy.HISTORIC)
    lasting = lasting_commits(place.chain, wanted)
    assert (lasting, starts_over(place.chain, wanted, lasting)) == (1, False)
    (place.bronze / "s1").unlink()  # it is not read again
    found = [each for each in place.chain.order if each.name != "s2"]
    assert (replay(place, found).base, replay(place, found).slices) == (2, ())
    assert replay(place, found).changes_table is False


def test_a_slice_that_was_applied_late_gets_a_later_time_once_those_before_it_are_others(
    tmp_path: Path,
) -> None:
    """The table had no version of the time of the slice before it: without another one it has some."""
    place = place_of(tmp_path, "s1", "s3", "s2")  # at days 1, 2 and 3
    order = [
        replace(each, content={**each.content, "strategy": "historic", "processingTime": f"2024-05-0{day}"})
        for each, day in zip(place.chain.order, (1, 5, 4), strict=True)
    ]
    found = {}
    for wanted in (order, order[1:]):
        lasting = lasting_commits(place.chain, wanted)
        plan = plan_replay(
            place.bench, place.entity, wanted, lasting, is_whole=True, may_lose=lambda _: False
        )
        found[tuple(plan.names)] = [each.at.isoformat() for each in plan.slices]
    assert found == {
        ("s1", "s3", "s2"): [f"2024-05-0{day}T00:00:00+00:00" for day in (1, 5, 4)],
        ("s3", "s2"): ["2024-05-05T00:00:00+00:00", "2024-05-05T00:00:00.000001+00:00"],
    }
    assert len(place.warnings) == 2, "the first one: that the manifest was lost"


def test_a_slice_that_arrives_is_later_than_all_before_it(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s3", "s2")
    at = datetime(2024, 5, 3, 12, tzinfo=UTC)
    order = [
        replace(each, content={**each.content, "processingTime": f"2024-05-0{day}T00:00:00+00:00"})
        for each, day in zip(place.chain.order, (1, 5, 2), strict=True)
    ]
    (*_, last) = with_times(place.bench, [*order, Arriving("file:///s4", {}, (at,))], Strategy.HISTORIC)
    assert last.at == datetime(2024, 5, 5, 0, 0, 1, tzinfo=UTC)


def test_a_table_whose_base_is_not_whole_starts_over(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1", "s2")
    wanted = list(place.chain.order[:1])
    assert not starts_over(place.chain, wanted, 1)
    Path(DeltaTable(place.silver, version=0).file_uris()[0].removeprefix("file://")).unlink()
    assert starts_over(place.chain, wanted, 1)


def test_the_restore_of_another_program_is_gone_behind(tmp_path: Path) -> None:
    """The version before it is not the one that it has put back."""
    place = place_of(tmp_path, "s1", "s2", "s3")
    DeltaTable(place.silver).restore(0)
    restored = DeltaTable(place.silver).version()
    chain = place.chain
    assert chain.reverted == {place.item("s2").item_id, place.item("s3").item_id}
    lasting = lasting_commits(chain, chain.order, lambda commit, _: commit.version == restored)
    plan = plan_replay(place.bench, place.entity, chain.order, lasting, may_lose=lambda _: True)
    assert (plan.base, plan.names) == (0, ["s2", "s3"])


def test_rows_of_others_before_the_base_are_kept_without_being_asked_for(tmp_path: Path) -> None:
    place = place_of(tmp_path, "s1")
    by_hand(place)
    place.put("s2")
    place.commit(2, "s2", strategy="merge", processingTime="2024-05-02T00:00:00+00:00")
    place.look()
    plan = replay(place, list(place.chain.order[:1]))
    assert (plan.base, plan.foreign) == (1, ())
