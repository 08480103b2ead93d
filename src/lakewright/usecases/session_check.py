"""Find out whether Spark work can succeed, before anything is claimed."""

from __future__ import annotations

from lakewright.app import App
from lakewright.lake.cluster import check_cluster_settings
from lakewright.lake.object_storage import check_conditional_writes
from lakewright.lake.paths import is_s3
from lakewright.run.session_settings import state_folder

__all__ = ["check_session"]


def check_session(app: App) -> None:
    """Raise an error if Spark work can't succeed.

    Raises:
        SparkUnavailable: The session that is running already lacks Delta Lake, or is of Spark Connect.
        SpecError: The object store of the lake would lose commits, or a cluster does not see the lake.
    """
    check_cluster_settings(app.lake, has_entities=bool(app.project.entities))
    app.sessions.check()
    root = app.project.lake.root_folder
    if is_s3(root):
        check_conditional_writes(app.lake.storage, root, state_folder(app.project, app.environ))
