"""The kind `dynamodb`: a table of Amazon DynamoDB."""

from __future__ import annotations

from datetime import datetime

from lakewright.manifest.store import Store
from lakewright.stores.backend import Backend

DEFAULT_TABLE = "lakewright-manifest"


class DynamoDbBackend(Backend):
    """A DynamoDB table; boto3 supplies region, endpoint and credentials where settings leave them out."""

    options = frozenset({"table", "region", "endpoint_url"})

    @property
    def table(self) -> str:
        """The name of the table."""
        return str(self.settings.get("table", DEFAULT_TABLE))

    def open(self) -> Store:
        from lakewright.stores.dynamodb.store import DynamoDbStore

        return DynamoDbStore.open(self.table, **self._place())

    def open_existing(self) -> Store | datetime:
        from lakewright.stores.dynamodb.store import DynamoDbStore

        return DynamoDbStore.open_existing(self.table, **self._place())

    def _place(self) -> dict[str, str | None]:
        return {name: self.settings.get(name) for name in ("region", "endpoint_url")}
