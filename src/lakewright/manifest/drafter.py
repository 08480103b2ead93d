"""Drafting records: their author, their ids, and payloads without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakewright.manifest.payload import KEPT_WHOLE, foreign_payload, payload
from lakewright.manifest.record import Application, Author, Draft, State
from lakewright.manifest.redaction import Redactor


@dataclass(frozen=True, slots=True)
class RecordDrafter:
    """Drafts records for one author.

    Attributes:
        ids: Returns an id that no record has yet.
        redactor: Removes secrets from payloads.
        trigger: What started the run whose records are drafted, without a person at its command line.
    """

    author: Author
    ids: Callable[[], str]
    redactor: Redactor = field(default_factory=Redactor)
    trigger: str | None = None

    def draft(
        self,
        item_id: str,
        state: State,
        application: Application,
        *,
        content: Mapping[str, Any] | None,
        run_id: str | None = None,
        previous: str | None = None,
        record_id: str | None = None,
        is_foreign: bool = False,
    ) -> Draft:
        """Return the draft of a record; secrets are removed from its content.

        A record of a run names the trigger that started the run, if one did. The size of the content is
        bounded, unless it is another program's: that one is kept as it is, or refused.

        Raises:
            UsageError: Another program's payload is not JSON, or too large.
        """
        content = content or {}
        if run_id is not None and self.trigger is not None and not is_foreign:
            content = {**content, "trigger": self.trigger}
        return Draft(
            record_id=record_id or self.ids(),
            item_id=item_id,
            state=state,
            application=application,
            author=self.author,
            run_id=run_id,
            previous_record_id=previous,
            payload=foreign_payload(content, self.redactor)
            if is_foreign
            else payload(state, {name: self._redacted(name, value) for name, value in content.items()}),
        )

    def _redacted(self, name: str, value: Any) -> Any:
        """Return a value without secrets; values that later runs read are kept unchanged.

        A short password may occur by chance in the name of a slice.
        """
        return value if name in KEPT_WHOLE else self.redactor.value(value)
