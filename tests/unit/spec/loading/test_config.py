"""Configuration entries of a project."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.projects import KINDS, make_project

from lakewright.errors import Fault, SpecError
from lakewright.spec.expressions.scope import Entry
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions, read_config
from lakewright.spec.project import Project
from lakewright.spec.reading.files import find_project
from lakewright.spec.reading.sections import Sections


def sorted_out(entries: dict[str, str]) -> tuple[dict[str, str], list[Fault], list[Fault]]:
    sections = Sections()
    found = read_config({key: Entry(text) for key, text in entries.items()}, sections)
    return found, sections.faults, sections.warnings


def test_configuration_is_sorted_out() -> None:
    found, faults, warnings = sorted_out(
        {
            "spark.x": "1",
            "flowman.default.target.outputMode": "append",
            "lakewright.default.target.outputMode": "overwrite",
            "flowman.execution.target.forceDirty": "true",
            "flowman.nix": "x",
            "lakewright.nix": "x",
            "hive.x": "y",
        }
    )
    assert found == {
        "spark.x": "1",
        "lakewright.default.target.outputMode": "overwrite",
        "lakewright.execution.target.forceDirty": "true",
    }
    assert [fault.message for fault in faults] == ["unknown configuration 'lakewright.nix'"]
    assert ["flowman.nix" in warnings[0].message, "hive.x" in warnings[1].message] == [True, True]


EXECUTOR = "flowman.execution.executor"
OWN = "lakewright.execution.executor.parallelism"


@pytest.mark.parametrize(
    ("lines", "jobs", "warning"),
    [
        ([f"{EXECUTOR}.parallelism=8"], None, "without the class ParallelExecutor"),
        ([f"{EXECUTOR}.class=com.dimajix.flowman.execution.SimpleExecutor"], None, None),
        ([f"{EXECUTOR}.class=com.dimajix.flowman.execution.ParallelExecutor"], "4", None),
        ([f"{EXECUTOR}.class=x.ParallelExecutor", f"{EXECUTOR}.parallelism=8"], "8", None),
        ([f"{EXECUTOR}.class=x.ParallelExecutor", f"{OWN}=2"], "2", None),
        ([f"{EXECUTOR}.class=x.OtherExecutor"], None, "there is no executor 'x.OtherExecutor'"),
    ],
)
def test_flowmans_parallelism_counts_with_its_parallel_executor_only(
    tmp_path: Path, lines: list[str], jobs: str | None, warning: str | None
) -> None:
    """E2: `SimpleExecutor`, Flowman's default, runs one target at a time whatever the parallelism says."""
    project = make_project(tmp_path, f"config: {lines}")
    assert project.config.get(OWN) == jobs
    assert [fault.message for fault in project.warnings if warning is None or warning in fault.message] == [
        fault.message for fault in project.warnings
    ]
    assert bool(project.warnings) == (warning is not None)


OVERRIDES = "environment: [place=$name/mine]\nconfig: [spark.x=$place, spark.y=2]\n"


def test_a_users_own_settings_override_the_project_and_the_command_line_them(tmp_path: Path) -> None:
    """E3: `.flowman-env.yml` of the folder where a command is run."""
    here = tmp_path / "here"
    here.mkdir()
    make_project(tmp_path, "environment: [name=me, place=theirs]\nconfig: [spark.x=theirs, spark.z=3]")
    (here / ".flowman-env.yml").write_text(OVERRIDES)

    def load(folder: Path | None, **given: dict[str, str]) -> Project:
        return load_project(
            tmp_path,
            LoadOptions(kinds=KINDS, environ={}, overrides=folder, **given),  # type: ignore[arg-type]
        )

    project = load(here)
    assert project.scope.render("$place") == "me/mine"
    assert project.config == {"spark.x": "me/mine", "spark.y": "2", "spark.z": "3"}
    project = load(here, definitions={"place": "given"}, config={"spark.y": "given"})
    assert (project.scope.render("$place"), project.config["spark.y"]) == ("given", "given")
    assert load(tmp_path).config["spark.x"] == "theirs"

    (tmp_path / ".flowman-env.yml").write_text("hooks: []\n")
    assert load(here).warnings == ()
    (warning,) = load(None).warnings
    assert ".flowman-env.yml is not read" in warning.message
    with pytest.raises(SpecError, match="unknown section 'hooks'"):
        load(tmp_path)


def test_a_projects_file_may_end_with_yaml_or_be_named(tmp_path: Path) -> None:
    """E13: Flowman's own resources have `project.yaml`."""
    (tmp_path / "project.yaml").write_text("name: long\nmodules: [.]\n")
    (tmp_path / "other.yml").write_text("name: other\nversion: 2\nmodules: [model]\n")
    (tmp_path / "model").mkdir()

    def load(place: Path) -> Project:
        return load_project(place, LoadOptions(kinds=KINDS, environ={}))

    assert load(tmp_path / "other.yml").name == "other"
    assert load(tmp_path / "other.yml").scope.render("$project.filename") == f"{tmp_path}/other.yml"
    (tmp_path / "other.yml").unlink()
    assert load(tmp_path).name == load(find_project(tmp_path / "model")).name == "long"
    (tmp_path / "project.yml").write_text("name: short\nmodules: [model]\n")
    assert load(tmp_path).name == "short"
    assert [str(fault) for fault in load(tmp_path).warnings] == [
        "project.yaml: project.yaml is ignored: project.yml is the project's file (Remove one of them.)"
    ]


def test_a_namespace_is_left_out_in_words(tmp_path: Path) -> None:
    """E14: Flowman's settings for all projects, beside the project or where its installation keeps them."""
    make_project(tmp_path, "environment: [a=b]", project="")
    (tmp_path / "project.yml").write_text("name: tests\nmodules: [.]\n")
    conf = tmp_path / "conf"
    conf.mkdir()
    (tmp_path / "default-namespace.yml").write_text(
        "name: default\nplugins: [flowman-delta]\nhooks:\n  - {kind: web}\n"
        "metrics:\n  - kind: console\n  - kind: jdbc\n  - kind: prometheus\n  - kind: own\n"
    )
    (conf / "default-namespace.yml").write_text("metrics: {kind: console}\n")
    (conf / "namespace.yml").write_text("name: [\n")
    project = load_project(tmp_path, LoadOptions(kinds=KINDS, environ={"FLOWMAN_CONF_DIR": str(conf)}))
    shown = [(fault.message, str(fault.location), fault.remedy or "") for fault in project.warnings]
    about = "default-namespace.yml is not read"
    assert [(message.removeprefix(about), where) for message, where, _ in shown] == [
        (": its 'plugins' has no effect", "default-namespace.yml:2"),
        (": its 'hooks' has no effect", "default-namespace.yml:3"),
        (": the metric sink 'console' has no effect", "default-namespace.yml:6"),
        (": the metric sink 'jdbc' has no effect", "default-namespace.yml:7"),
        (": the metric sink 'prometheus' has no effect", "default-namespace.yml:8"),
        (": the metric sink 'own' has no effect", "default-namespace.yml:9"),
        (": the metric sink 'console' has no effect", "conf/default-namespace.yml:1"),
        ("namespace.yml is not read", "conf/namespace.yml:1"),
    ]
    used = ("spark.jars", "`hooks` of each job", "lakewright history show", "kind `jdbc`", "pushgateway")
    assert all(word in remedy for word, (_, _, remedy) in zip(used, shown, strict=False))


def test_whether_commands_leave_a_server_behind_is_one_of_two_words() -> None:
    assert sorted_out({"lakewright.serve": "auto"})[0] == {"lakewright.serve": "auto"}
    _, faults, _ = sorted_out({"lakewright.serve": "always"})
    assert [fault.message for fault in faults] == ["lakewright.serve is 'always'; it is never or auto"]
