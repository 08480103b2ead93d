"""How records come to be written: who writes them, with which ids, and with what kept out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.manifest.payload import KEPT_WHOLE, payload
from lakewright.manifest.record import Application, Author, Draft, State
from lakewright.manifest.redact import Redactor

__all__ = ["Scribe"]


@dataclass(frozen=True, slots=True)
class Scribe:
    """Drafts records for one author.

    Attributes:
        ids: Gives an id that no record has yet.
        redactor: Takes secrets out of what is written.
    """

    author: Author
    ids: Callable[[], str]
    redactor: Redactor = field(default_factory=Redactor)

    def draft(
        self,
        item_id: str,
        state: State,
        application: Application,
        *,
        content: Mapping[str, Any],
        run_id: str | None = None,
        previous: str | None = None,
        record_id: str | None = None,
    ) -> Draft:
        """Return the draft of a record, its content without secrets and of bounded size."""
        return Draft(
            record_id=record_id or self.ids(),
            item_id=item_id,
            state=state,
            application=application,
            author=self.author,
            run_id=run_id,
            previous_record_id=previous,
            payload=payload(state, {name: self._redacted(name, value) for name, value in content.items()}),
        )

    def _redacted(self, name: str, value: Any) -> Any:
        """What later runs read stays as it is: a short password may well be a part of a slice's name."""
        return value if name in KEPT_WHOLE else self.redactor.value(value)
