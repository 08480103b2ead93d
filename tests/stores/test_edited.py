"""Records edited by hand, behind the rules' back: `processing-manifest.md`, "State" (modified manually).

An item whose records contradict each other is invalid and never processed, and others go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from tests.records import COUNTRIES, ITEM, REGIONS, claim, draft, found, ledger_of

from lakewright.errors import IllegalTransition, ManifestCorrupt, StoreUnavailable
from lakewright.manifest.ledger import Ledger
from lakewright.manifest.store import Append, Query, Write
from lakewright.manifest.verdict import Verdict
from lakewright.stores.sql.store import SqlStore
from lakewright.upkeep.fsck import fsck
from lakewright.upkeep.transfer import export_manifest

OTHER = found("2022-02-01.csv").item_id

Edit = Callable[[str], None]


@pytest.fixture
def ledger(sql_settings: dict[str, Any], opened: Callable[[dict[str, Any]], SqlStore]) -> Ledger:
    """A ledger with one processed item and one new one."""
    ledger = ledger_of(opened(sql_settings))
    ledger.discover([found(), found("2022-02-01.csv")])
    ledger.processed(claim(ledger), {})
    return ledger


@pytest.fixture
def edit(ledger: Ledger) -> Edit:
    """Does something to the tables that no store would do."""

    def run(statement: str) -> None:
        assert isinstance(ledger.store, SqlStore)
        with ledger.store._database.engine.begin() as connection:
            connection.execute(text(statement))

    return run


COLUMNS = (
    "application, application_version, instance_id, author, author_version, manifest_version, run_id, "
    "previous_record_id, timestamp, payload"
)

EDITS = {
    "a state": f"UPDATE lakewright_records SET state = 'FAILED' WHERE item_id = '{ITEM}' AND sequence = 1",
    "a state that there is not": "UPDATE lakewright_records SET state = 'DONE' WHERE sequence = 3",
    "a previous record": "UPDATE lakewright_records SET previous_record_id = 'x' WHERE sequence = 3",
    "a run": "UPDATE lakewright_records SET run_id = 'another' WHERE sequence = 3",
    "a time": "UPDATE lakewright_records SET timestamp = 'noon' WHERE sequence = 3",
    "a payload": "UPDATE lakewright_records SET payload = '[' WHERE sequence = 3",
    "a payload of another shape": "UPDATE lakewright_records SET payload = '[1]' WHERE sequence = 3",
    "a sequence": "UPDATE lakewright_records SET sequence = 7 WHERE sequence = 3",
    "a removed record": "DELETE FROM lakewright_records WHERE sequence = 2",
    "an added record": (
        f"INSERT INTO lakewright_records (item_id, sequence, record_id, state, {COLUMNS}) "
        f"SELECT item_id, 4, 'added', 'FAILED', {COLUMNS} FROM lakewright_records WHERE sequence = 3"
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_item_is_found_and_invalid_once_it_is_folded_again(
    ledger: Ledger, edit: Edit, what: str
) -> None:
    edit(EDITS[what])
    damages = list(fsck(ledger.store))
    assert {damage.item_id for damage in damages if damage.record_id} == {ITEM}
    ledger.store.rebuild()
    assert ledger.item(ITEM).verdict(REGIONS) is Verdict.INVALID
    assert ledger.store.counts() == {(REGIONS, Verdict.INVALID): 1, (REGIONS, Verdict.READY): 1}
    invalid = ledger.store.select(Query(verdicts=frozenset({Verdict.INVALID})))
    assert [item.item_id for item in invalid] == [ITEM]
    with pytest.raises(ManifestCorrupt, match="are invalid"):
        claim(ledger)
    assert claim(ledger, OTHER).item_id == OTHER
    damages = list(fsck(ledger.store))
    assert [damage.item_id for damage in damages] == [ITEM]
    assert damages[0].record_id is not None


@pytest.mark.parametrize("what", EDITS)
def test_an_operator_skips_or_requeues_an_edited_item(ledger: Ledger, edit: Edit, what: str) -> None:
    edit(EDITS[what])
    ledger.store.rebuild()
    assert ledger.item(ITEM).holds_back(REGIONS)
    assert not ledger.skip(ITEM, "looked into it").holds_back(REGIONS)
    mended = ledger.requeue(ITEM, "to be done again")
    assert mended.verdict(REGIONS) is Verdict.READY
    ledger.store.rebuild()
    assert ledger.item(ITEM) == mended
    assert claim(ledger).token == 2


def test_a_record_is_not_written_over_one_that_somebody_added(ledger: Ledger, edit: Edit) -> None:
    edit(EDITS["an added record"])
    write = Write((Append(ITEM, (draft("more", "PROCESSING", application=COUNTRIES),), 3),))
    with pytest.raises(IllegalTransition, match="nothing was written"):
        ledger.store.write(write)


def test_items_that_were_added_or_removed_are_found(ledger: Ledger, edit: Edit) -> None:
    edit(EDITS["an added record"].replace("SELECT item_id, 4", "SELECT 'file:///forged', 1"))
    edit(f"DELETE FROM lakewright_records WHERE item_id = '{ITEM}'")
    problems = {(damage.item_id, damage.problem) for damage in fsck(ledger.store)}
    assert ("file:///forged", "it has records, but isn't listed") in problems
    assert (ITEM, "it is listed, but has no records") in problems
    ledger.store.rebuild()
    assert ledger.item("file:///forged").verdict(REGIONS) is Verdict.INVALID
    assert ledger.item(ITEM).verdict(REGIONS) is Verdict.UNKNOWN
    assert ledger.discover([found()]).new != ()


def test_an_unreadable_record_is_left_out_of_an_export_and_said_when_shown(
    ledger: Ledger, edit: Edit
) -> None:
    edit(EDITS["a state that there is not"])
    assert sum("recordId" in line for line in export_manifest(ledger.store)) == 3
    with pytest.raises(ManifestCorrupt, match="'DONE' is not a valid State"):
        ledger.store.records(ITEM)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lakewright_items SET fold = replace(fold, 'PROCESSED', 'NEW')",
        "DELETE FROM lakewright_items",
        "UPDATE lakewright_items SET standing = NULL",
        "UPDATE lakewright_standings SET number = number + 5",
        "UPDATE lakewright_items SET fold = '{}'",
        "UPDATE lakewright_items SET fold = 'x'",
    ],
)
def test_answers_edited_by_hand_are_made_anew_from_the_records(
    ledger: Ledger, edit: Edit, statement: str
) -> None:
    before = [ledger.item(ITEM), ledger.item(OTHER)], ledger.store.counts()
    edit(statement)
    if "SET fold = '" in statement:
        with pytest.raises(ManifestCorrupt, match=r"can't be read") as caught:
            list(fsck(ledger.store))
        assert "fsck --repair" in str(caught.value.remedy)
    else:
        assert list(fsck(ledger.store)) != []
    ledger.store.rebuild()
    assert list(fsck(ledger.store)) == []
    assert ([ledger.item(ITEM), ledger.item(OTHER)], ledger.store.counts()) == before
    ready = ledger.store.select(Query(verdicts=frozenset({Verdict.READY})))
    assert [item.item_id for item in ready] == [OTHER]


def test_tables_that_are_gone_are_told(ledger: Ledger, edit: Edit) -> None:
    edit("DROP TABLE lakewright_standings")
    with pytest.raises((ManifestCorrupt, StoreUnavailable), match="lakewright_standings"):
        claim(ledger, OTHER)
    assert len(ledger.store.records(OTHER)) == 1
