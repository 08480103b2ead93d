"""The link from a task to the operator's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class OperatorPageLink(BaseOperatorLink):
    """Opens the run, the command or the slice on the operator's page."""

    name = "Lakewright"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address that the task has found; empty without a server."""
        return getattr(operator, "page", "")
