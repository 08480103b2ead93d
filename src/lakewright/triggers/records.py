"""The states of triggers in the manifest: documents that change in place, each with the lease that wrote it.

A server that takes a trigger over writes its states anew, so that the one before it, should it still live,
can't write them any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from lakewright.errors import SequenceConflict
from lakewright.manifest.lease import MOST_RACES
from lakewright.manifest.store import Document, Put, Store, Write
from lakewright.triggers.state import TriggerState

TRIGGER = "trigger"
"""The kind of the documents that hold the states of triggers."""


@dataclass(frozen=True, slots=True, order=True)
class Lane:
    """What has a state of its own: a trigger, or one of the entities that it processes.

    Attributes:
        entity: The entity to process; empty for a trigger of a job.
    """

    trigger: str
    entity: str = ""

    def __str__(self) -> str:
        return f"{self.trigger} ({self.entity})" if self.entity else self.trigger


@dataclass(frozen=True, slots=True)
class SavedState:
    """A state as the manifest holds it.

    Attributes:
        owner: The token of the lease under which it was written.
        version: The version of its document; 0 if there is none.
    """

    state: TriggerState = field(default_factory=TriggerState)
    owner: str = ""
    version: int = 0


def lease_key(project: str, trigger: str) -> str:
    """Return the key of the lease that the server has which runs a trigger."""
    return f"trigger {project}/{trigger}"


@dataclass(frozen=True, slots=True)
class TriggerRecords:
    """The states of a project's triggers in a store."""

    store: Store
    project: str

    def all(self) -> Mapping[Lane, SavedState]:
        """Return every state of the project, also of triggers that are no longer declared."""
        found = self.store.documents(TRIGGER, prefix=f"{self.project}\n")
        return {self._lane(document): _saved(document) for document in found}

    def save(self, lane: Lane, state: TriggerState, before: SavedState, owner: str) -> SavedState:
        """Save a state if nobody has written it since `before`, and return it as saved.

        Raises:
            SequenceConflict: Another server, or an operator, has written it meanwhile.
        """
        value = {"state": state.as_json(), "owner": owner}
        put = Put(TRIGGER, self._key(lane), value, before.version)
        return _saved(self.store.write(Write(puts=(put,))).documents[0])

    def change(
        self, lane: Lane, how: Callable[[TriggerState], TriggerState], owner: str | None = None
    ) -> bool:
        """Change a state, whoever has written it; with `owner`, return False if another one has.

        Raises:
            SequenceConflict: Too many processes change the state at once.
        """
        for _ in range(MOST_RACES):
            document = self.store.document(TRIGGER, self._key(lane))
            before = SavedState() if document is None else _saved(document)
            if owner is not None and before.owner != owner:
                return False
            with suppress(SequenceConflict):
                self.save(lane, how(before.state), before, before.owner)
                return True
        raise SequenceConflict(f"too many processes change the state of the trigger {lane} at once")

    def _key(self, lane: Lane) -> str:
        return f"{self.project}\n{lane.trigger}\n{lane.entity}"

    def _lane(self, document: Document) -> Lane:
        _, trigger, entity = document.key.split("\n")
        return Lane(trigger, entity)


def _saved(document: Document) -> SavedState:
    state = TriggerState.from_json(document.value["state"])
    return SavedState(state, document.value["owner"], document.version)
