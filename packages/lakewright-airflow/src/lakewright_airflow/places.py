"""Where tasks run: a project on this machine, or a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from lakewright.errors import SpecError, UsageError
from lakewright_airflow.documents import JobFailed
from lakewright_airflow.server import Server, ServerRefused, ServerUnavailable

PORT = 8377


def check_place(project: str | None, server: str | None) -> None:
    """Raise an error unless either a project or a server is given."""
    if (project is None) == (server is None):
        raise ValueError(
            "a Lakewright task needs one place to run. Do: give either project=, the folder of a project on "
            "the worker, or server=, the id of a connection to `lakewright serve`"
        )


def server_of(connection_id: str) -> Server:
    """Return the server of a connection."""
    return server_of_connection(BaseHook.get_connection(connection_id))


def server_of_connection(connection: Connection) -> Server:
    """Return the server of a connection: its host, port, scheme (`schema`) and token.

    The token is the connection's password, or in the file `token_file` of its extra.
    """
    token = connection.password
    if not token and (file := connection.extra_dejson.get("token_file")):
        try:
            token = Path(file).read_text("utf-8").strip()
        except OSError as error:
            raise ServerUnavailable(f"{file}: {error.strerror}. Do: start `lakewright serve`") from error
    if not connection.host or not token:
        raise AirflowFailException(
            f"the connection {connection.conn_id} has no host or no token. Do: give it a host, and as extra "
            '{"token_file": "PROJECT/.lakewright/serve.token"}, or the token as password'
        )
    url = f"{connection.schema or 'http'}://{connection.host}:{connection.port or PORT}"
    return Server(url, token)


@contextmanager
def failing_tasks() -> Iterator[None]:
    """Raise errors as those of Airflow: what is wrong in the request or the project is not tried again."""
    try:
        yield
    except (ServerRefused, SpecError, UsageError) as error:
        remedy = getattr(error, "remedy", None)
        raise AirflowFailException(f"{error}. Do: {remedy}" if remedy else str(error)) from error
    except (ServerUnavailable, JobFailed) as error:
        raise AirflowException(str(error)) from error
