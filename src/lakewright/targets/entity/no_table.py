"""Why an entity has no silver table yet, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakewright.errors import LakewrightError, VerificationError
from lakewright.errors.phrase import Command, Phrase
from lakewright.slices.application import applications_before
from lakewright.slices.discover import slice_name
from lakewright.slices.pending import find_pending, holding_error
from lakewright.spec.words import counted

if TYPE_CHECKING:
    from lakewright.slices.pending import Pending
    from lakewright.targets.entity.work import EntityWork

__all__ = ["no_table_error"]


def no_table_error(work: EntityWork) -> VerificationError:
    """Return the error that says why no slice has created the table, and what to do; nothing is recorded."""
    cause, remedy = _cause(work)
    return VerificationError(f"{work.label}: there is no table at {work.silver}: {cause}", remedy=remedy)


def _cause(work: EntityWork) -> tuple[str, str | None]:
    try:
        pending, _ = find_pending(work.processing, work.entity, is_recorded=False)
    except LakewrightError as error:
        return error.message, error.remedy
    held = holding_error(work.processing, work.entity, pending)
    if held is not None and not pending.ready:
        return held.message, held.remedy
    if pending.waits_for is not None and not pending.ready:
        return pending.waits_for, _waiting_remedy(work)
    if pending.ready:
        names = f"{counted(len(pending.ready), 'slice')}, from {slice_name(pending.ready[0])} on,"
        verb = "is" if len(pending.ready) == 1 else "are"
        return f"{names} {verb} ready, but not processed", "Run the job up to BUILD, which creates the table."
    return _without_slices(work, pending)


def _waiting_remedy(work: EntityWork) -> str:
    """Return what to do about slices that wait for other applications."""
    others = applications_before(work.entity)
    listed = Phrase.joined(" and ", (Command("manifest", "ls", "--for", str(each)) for each in others))
    return Phrase(
        f"Let {' and '.join(map(str, others))} process these slices, then run the job again. ",
        listed,
        f" {('shows' if len(others) == 1 else 'show')} what is left to do there. If nothing is "
        f"to be waited for, correct `after:` of {work.entity.called}.",
    )


def _without_slices(work: EntityWork, pending: Pending) -> tuple[str, str | None]:
    deviations = pending.deviations
    if deviations is not None and (fault := deviations.fault) is not None:
        return fault.message, fault.remedy
    if pending.others:
        first = slice_name(pending.others[0])
        return (
            f"the target takes only some slices ({work.selection}), and none of these is in bronze",
            f"Run the job for those that are there, such as {first}, or correct the target.",
        )
    if deviations is not None and deviations.skipped:
        return (
            f"no slice has been processed: {counted(deviations.skipped, 'slice')} skipped",
            Phrase(
                Command("manifest", "ls", "--state", "skipped"),
                " lists them, and ",
                Command("manifest", "unskip"),
                " makes one ready.",
            ),
        )
    idle = None if deviations is None else deviations.idle_reason(work.selection.takes)
    return idle or "no slice has been processed", "The first slice creates it: land one, then run BUILD."
