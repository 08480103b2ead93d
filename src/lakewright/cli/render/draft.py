"""A project that was drafted from files: its entities, what was left out, and the open questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.cli.page import Block, Span, line, table_of
from lakewright.errors.phrase import Command
from lakewright.profiling.project_text import slices_reason
from lakewright.profiling.reason import Code, question_text
from lakewright.spec.words import counted
from lakewright.usecases.draft_from_dbt import Question

if TYPE_CHECKING:
    from lakewright.profiling.profile import EntityProfile, Profile
    from lakewright.usecases.draft_from_dbt import DbtDraft
    from lakewright.usecases.draft_project import Draft


_MOST_SKIPPED = 10


def draft_page(draft: Draft, folder: Path) -> Iterator[Block]:
    """Yield what was written, and what to do next."""
    profile = draft.profile
    files = sum(each.group.files for each in profile.entities)
    yield line(
        f"{folder / draft.file.name} written: {counted(len(profile.entities), 'entity')} "
        f"of {counted(files, 'file')}"
    )
    yield table_of(list(map(_cells, profile.entities)), "")
    yield from _skipped(profile)
    if profile.questions:
        yield line(
            Span("Open questions", "bold"),
            below=(
                line(Span(f"{number}. ", "dim"), f"{each.entity}: {question_text(each.reason)}")
                for number, each in enumerate(profile.questions, 1)
            ),
        )
    if profile.further:
        yield line(Span(f"… and {counted(profile.further, 'question')} more", "dim"))
    yield line("Look at the comments in it, then:  ", Span(Command("plan", "--project", str(folder)), "bold"))


_OF_DBT = {
    Question.FILES: "where do exports of {about} arrive? Name the place in `from`",
    Question.KEY: "which columns identify a record? dbt computes {about}",
    Question.CHECKED: "dbt compared only {about}: which columns belong in `hash_exclude`?",
    Question.UNREAD: "expressions give the values of {about}: what are they?",
    Question.TABLE: "in which schema is the table {about}?",
}


def dbt_page(draft: DbtDraft, folder: Path) -> Iterator[Block]:
    """Yield what was written for the snapshots of a dbt project, and what only a person knows."""
    yield line(f"{folder / draft.file.name} written: {counted(len(draft.snapshots), 'entity')}")
    asked = [
        line(f"{each.name}: {_OF_DBT[code].format(about=about or 'its source')}")
        for each in draft.snapshots
        for code, about in each.questions
    ]
    yield line(Span("Open questions", "bold"), below=asked)
    yield line("Look at the comments in it, then:  ", Span(Command("plan", "--project", str(folder)), "bold"))


def _cells(profile: EntityProfile) -> dict[str, object]:
    return {
        "entity": profile.name,
        "key": ", ".join(profile.key.columns) or "none",
        "strategy": profile.strategy,
        "deletes": profile.deletes or "none",
        "format": next(table.kind for found in profile.tables for table in found),
        "slices": slices_reason(profile).text,
    }


def _skipped(profile: Profile) -> Iterator[Block]:
    """Yield what is left out; of hidden files only the number, since every reader leaves them out."""
    hidden = Counter(each.reason.code for each in profile.skipped)[Code.HIDDEN]
    shown = [each for each in profile.skipped if each.reason.code is not Code.HIDDEN]
    rows = [line(f"{each.name}: {each.reason.text}") for each in shown[:_MOST_SKIPPED]]
    if len(shown) > _MOST_SKIPPED:
        rows.append(line(Span(f"and {len(shown) - _MOST_SKIPPED:,} more", "dim")))
    if hidden:
        rows.append(line(f"{counted(hidden, 'hidden file')}"))
    if rows:
        yield line(Span("Left out", "bold"), below=rows)
