"""The HTTP API of `lakewright serve`, without Airflow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from lakewright_airflow.documents import error_text, verdict_of

FORMS = {
    "/commands/": "lakewright/command/1",
    "/item": "lakewright/manifest-show/1",
    "/runs": "lakewright/command/1",
    "/apply": "lakewright/command/1",
}
"""The form of each document that is read here, by the beginning of its path."""


class ServerUnavailable(Exception):
    """No server answers; a later try may succeed."""


class ServerRefused(Exception):
    """The server refuses the request; the same request will be refused again.

    Attributes:
        status: The status of the answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Server:
    """A server: its address, and the token of `.lakewright/serve.token`."""

    url: str
    token: str = field(repr=False)

    def get(self, path: str, **query: str) -> Any:
        """Return what a path answers.

        Raises:
            ServerUnavailable: No server answers, or one that can't now.
            ServerRefused: The request is wrong or not allowed, or the server has another version.
        """
        return self._answer("GET", path, params=query)

    def post(self, path: str, **body: Any) -> Any:
        """Return what a path answers to a body; errors are those of `get`."""
        return self._answer("POST", path, json=body)

    def verdict(self, entity: str, slice_name: str) -> str:
        """Return what the manifest says of a slice.

        Raises:
            ServerRefused: There is no such entity.
        """
        try:
            return verdict_of(self.get("/item", id=f"{entity}/{slice_name}"), entity)
        except ServerRefused as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            self.get(f"/definitions/entities/{entity}")
            return "unknown"

    def _answer(self, method: str, path: str, **given: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            # Only attempts to connect are repeated: nothing is begun twice.
            with httpx.Client(transport=httpx.HTTPTransport(retries=3), timeout=60) as client:
                response = client.request(method, f"{self.url}/api/v1{path}", headers=headers, **given)
        except httpx.TransportError as error:
            raise ServerUnavailable(
                f"no server answers at {self.url}: {error}. Do: start `lakewright serve --allow-actions`, "
                "and check host and port of the connection"
            ) from error
        document = _json(response)
        if response.is_success:
            return _of_form(document, path)
        if not isinstance(document, dict) or "message" not in document:
            raise ServerUnavailable(f"{self.url} answers {response.status_code}: is it `lakewright serve`?")
        if response.status_code in (429, 503):
            raise ServerUnavailable(error_text(document))
        raise ServerRefused(response.status_code, error_text(document))


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _of_form(document: Any, path: str) -> Any:
    wanted = next((form for start, form in FORMS.items() if path.startswith(start)), None)
    found = document.get("schema") if isinstance(document, dict) else None
    if wanted is not None and found != wanted:
        raise ServerRefused(
            200, f"the server answers {found}, not {wanted}. Do: install the same version here and there"
        )
    return document
