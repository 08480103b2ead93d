"""Loading a project: what is read, and that every fault comes at once with its place and a remedy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest
from tests.unit.spec.kinds import (
    KINDS,
    SOON,
    FileRelation,
    InlineSchema,
    RelationTarget,
    SqlMapping,
    faults,
    load,
    write,
)

from lakewright.errors import SpecError
from lakewright.spec.expressions.values import ValueType
from lakewright.spec.loading.loader import load_project
from lakewright.spec.loading.settings import LoadOptions

WEATHER = {
    "project.yml": """
        name: weather
        version: "1.0"
        description: "
            Some weather,
            on two lines."
        modules:
          - config
          - model.yaml
        manifest:
          kind: sqlite
          path: ${project.basedir}/state/${stage}.db
        """,
    "config/environment.yml": """
        environment:
          - basedir=file:///tmp/weather
          - srcdir=$System.getenv('SRC', 's3a://data')
          - stage=dev
          - empty=
          - url=jdbc:x?a=b
        config:
          - spark.sql.shuffle.partitions=4
          - flowman.default.target.buildPolicy=smart
          - flowman.hive.analyzeTable=true
        profiles:
          prod:
            enabled: false
            environment:
              - stage=prod
            config: spark.sql.shuffle.partitions=400
            manifest: {kind: postgres}
          local:
            enabled: true
            environment: {empty: local}
        """,
    "config/notes.txt": "not read",
    "model.yaml": """
        relations:
          raw:
            kind: file
            location: "$srcdir/$year/"
            pattern: "${year}"
            header: "NO"
            limit: "$limit"
            options: [sep=;, quote=]
            columns: only
            schema:
              fields: {name: raw_data}
        mappings:
          values:
            kind: values
            records:
              - [$year, 0100, NO, 2013-01-01, 1.0, null, ""]
          sql:
            kind: sql
            inputs: values
            sql: SELECT '$' FROM values WHERE x RLIKE '^a$'
        targets:
          raw:
            kind: relation
            relation: raw
            mapping: sql
            before:
        jobs:
          main:
            parameters:
              - name: year
                type: Integer
                default: 2013
                granularity: 1
            environment:
              - limit=10
            targets: raw
        """,
}


def test_a_project_is_read_as_flowman_writes_it(tmp_path: Path) -> None:
    project = load(tmp_path, WEATHER, environ={"SRC": "/data"})
    assert (project.name, project.version, project.description) == (
        "weather",
        "1.0",
        " Some weather, on two lines.",
    )
    assert project.basedir == tmp_path
    assert dict(project.environment) == {
        "basedir": "file:///tmp/weather",
        "srcdir": "$System.getenv('SRC', 's3a://data')",
        "stage": "dev",
        "empty": "local",
        "url": "jdbc:x?a=b",
    }
    assert project.config == {
        "spark.sql.shuffle.partitions": "4",
        "lakewright.default.target.buildPolicy": "smart",
    }
    assert [warning.message for warning in project.warnings] == [
        "the configuration 'flowman.hive.analyzeTable' has no effect"
    ]
    assert str(project.warnings[0].location) == "config/environment.yml:11"
    assert project.manifest == {"kind": "sqlite", "path": f"{tmp_path}/state/dev.db"}


def test_a_definition_is_resolved_with_the_names_of_an_instance(tmp_path: Path) -> None:
    project = load(tmp_path, WEATHER)
    job = project.job("main")
    scope = project.scope.instance(job.environment, {"year": 2014})
    relation = cast("FileRelation", project.relations["raw"].resolve(scope))
    assert (relation.name, relation.kind, relation.location) == ("raw", "file", "s3a://data/2014/")
    assert (relation.pattern, relation.header, relation.limit) == ("${year}", False, 10)
    assert (relation.options, relation.columns) == ({"sep": ";", "quote": ""}, ("only",))
    assert isinstance(relation.schema_, InlineSchema)
    assert relation.schema_.kind == "inline"
    assert [field.name for field in relation.schema_.fields] == ["raw_data"]
    records = project.mappings["values"].resolve(scope).model_dump()["records"]
    assert records == (["2014", "0100", "NO", "2013-01-01", "1.0", None, ""],)
    assert (
        cast("SqlMapping", project.mappings["sql"].resolve(scope)).sql
        == "SELECT '$' FROM values WHERE x RLIKE '^a$'"
    )
    assert cast("RelationTarget", project.targets["raw"].resolve(scope)).before == ()
    assert job.parameters[0].default_value(scope) == 2013
    assert job.parameters[0].type is ValueType.INTEGER
    assert job.target_names(scope) == ("raw",)


def test_profiles_and_the_command_line_win_in_their_order(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        WEATHER,
        profiles=["prod"],
        definitions={"srcdir": "/typed/$stage"},
        config={"spark.sql.shuffle.partitions": "1"},
    )
    assert project.scope.render("$stage $srcdir $empty") == "prod /typed/prod local"
    assert project.config["spark.sql.shuffle.partitions"] == "1"
    assert project.manifest["kind"] == "postgres"
    assert project.scope.render("${project.name} ${project.version} ${project.filename}") == (
        f"weather 1.0 {tmp_path}/project.yml"
    )


def test_a_value_that_nothing_in_the_files_names_is_a_warning(tmp_path: Path) -> None:
    given = {"srcdri": "/x", "year": "2014", "zone": "x", "empty": "", "outdir": "/y"}
    files = {**WEATHER, "config/more.yml": "environment: [outdir=/z]\n"}
    warnings = [str(each) for each in load(tmp_path, files, definitions=given).warnings]
    assert [each for each in warnings if each.startswith("-D")] == [
        "-D srcdri=…: no environment, parameter or expression in the project's files has this name "
        "(did you mean 'srcdir'?)",
        "-D zone=…: no environment, parameter or expression in the project's files has this name "
        "(Declare it in an environment if only a file of SQL uses it.)",
    ]


def test_an_error_of_a_definition_in_use_names_file_and_line(tmp_path: Path) -> None:
    project = load(tmp_path, WEATHER)
    with pytest.raises(SpecError) as caught:
        project.relations["raw"].resolve(project.scope)
    assert [str(fault)[:58] for fault in caught.value.faults] == [
        "model.yaml:5: relation 'raw': unknown name 'year' (Declare",
        "model.yaml:8: relation 'raw': unknown name 'limit' (Declar",
    ]
    with pytest.raises(
        SpecError, match=r"model.yaml:8: relation 'raw': limit: must be a whole number, not 'many'"
    ):
        project.relations["raw"].resolve(project.scope.child({"year": 1, "limit": "many"}))


def test_all_faults_come_at_once_each_with_its_place_and_remedy(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        {
            "project.yml": "name: x\nmodules: [a.yml, b.yml, nope]\nmodule: c\n"
            "lake: {timzone: x, timezone: Mars}\nenvironment: {a: b}\n",
            "a.yml": """
                relations:
                  one: {kind: fle}
                  two:
                    kind: file
                    locaton: x
                    header: falsy
                  three:
                    location: x
                  four: {kind: kafka}
                mappngs: {}
                config:
                  - lakewright.default.target.buildPolcy=SMART
                  - nonsense
                """,
            "b.yml": """
                relations:
                  two: {kind: file, location: y}
                targets:
                  t:
                    kind: relation
                    relation: too
                    mapping: nix
                  u: {kind: relation, relation: one}
                  v:
                jobs:
                  main:
                    targets: [t, uu, $later]
                    executions:
                      - {phase: bild, cycle: sometimes, targets: "["}
                """,
        },
    )
    assert sorted(found) == sorted(
        [
            "project.yml:2: module 'nope' does not exist (Create it, or remove it from `modules`.)",
            "project.yml:3: project: unknown key 'module' (did you mean 'modules'?)",
            "project.yml:4: lake: unknown key 'timzone' (did you mean 'timezone'?)",
            next(fault for fault in found if "Mars" in fault),
            "a.yml:3: relation 'one': unknown kind 'fle' of relation (did you mean 'file'?)",
            "a.yml:4: relation 'two': 'location' is missing",
            "a.yml:6: relation 'two': unknown key 'locaton' (did you mean 'location'?)",
            "a.yml:7: relation 'two': header: must be true or false, not 'falsy'",
            "a.yml:8: relation 'three': 'kind' is missing (Give it a kind: entity, file.)",
            "a.yml:10: relation 'four': kind 'kafka' of relation is not supported"
            " (Streams aren't read; use files.)",
            "a.yml:11: unknown section 'mappngs' (did you mean 'mappings'?)",
            "a.yml:13: unknown configuration 'lakewright.default.target.buildPolcy'"
            " (did you mean 'lakewright.default.target.buildPolicy'?)",
            "a.yml:14: an entry of config is not key=value (Write it as - key=value.)",
            "b.yml:3: relation 'two' is declared twice, first at a.yml:4 (Rename or remove one of them.)",
            "b.yml:7: target 't': there is no relation 'too' (did you mean 'two'?)",
            "b.yml:8: target 't': there is no mapping 'nix' (Declare it in a module, below `mappings`.)",
            "b.yml:10: target 'v': 'kind' is missing (Give it a kind: relation, validate.)",
            "b.yml:13: job 'main': there is no target 'uu' (did you mean 'u'?)",
            next(fault for fault in found if "BILD" in fault),
            next(fault for fault in found if "sometimes" in fault or "cycle" in fault),
            next(fault for fault in found if "regular expression" in fault),
        ]
    )


def test_a_folder_without_project_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no project.yml in .*--project"):
        load_project(tmp_path, LoadOptions(kinds=KINDS, environ={}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'name' is missing"),
        ("name: 'a/b'\nmodules: [m]\n", "name: "),
        ("- a\n", "'name' is missing"),
        ("name: [\n", "not YAML"),
        ("name: x\nname: y\nmodules: [.]\n", "twice"),
        ("name: x\nmodules: [project.yml]\n", "has none of the extensions"),
    ],
)
def test_a_wrong_project_file_is_a_fault_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    found = faults(tmp_path, {"project.yml": text})
    assert all(fault.startswith("project.yml:") for fault in found)
    assert any(why in fault for fault in found)


def test_files_that_are_no_text_or_too_large_or_hostile_are_faults(tmp_path: Path) -> None:
    write(tmp_path, {"project.yml": "name: x\nmodules: [m]\n", "m/deep.yml": "[" * 10_000, "m/ok.yml": ""})
    (tmp_path / "m/bytes.yml").write_bytes(b"a: \xff\xfe")
    with (tmp_path / "m/huge.yml").open("wb") as huge:
        huge.truncate(50_000_000)
    (tmp_path / "m/bom.yml").write_bytes("\ufeffrelations: {}\n".encode())
    (tmp_path / "m/.hidden.yml").write_text("[")
    started = time.process_time()
    with pytest.raises(SpecError) as caught:
        load_project(tmp_path, LoadOptions(kinds=KINDS, environ={}))
    assert time.process_time() - started < SOON
    assert sorted(str(fault)[:40] for fault in caught.value.faults) == [
        "m/bytes.yml: the file is not text in UTF",
        "m/deep.yml:1: values are nested more tha",
        "m/huge.yml: the file has 50000000 bytes,",
    ]


def test_modules_may_be_the_project_folder_and_overlap(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        {
            "project.yml": "name: x\nmodules: [., a.yml]\n",
            "a.yml": "mappings: {m: {kind: values}}\n",
            "documentation.yml": "collectors: {kind: checks}",
        },
    )
    assert list(project.mappings) == ["m"]
    assert project.documentation == {"collectors": {"kind": "checks"}}


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ("relations: [a]\n", "m.yml:1: 'relations' is not a map of names"),
        ("relations: {a: b}\n", "m.yml:1: 'a' in relations is not a map"),
        ("environment: {a: [1]}\n", "not key=value"),
        ("environment: [a=1, a=2]\n", "environment entry 'a' is declared twice"),
        ("environment: [{a: 1}]\n", "not key=value"),
        ("config: [spark.x=$nope]\n", "m.yml:1: unknown name 'nope'"),
        ("manifest: {path: $nope}\n", "m.yml:1: unknown name 'nope'"),
        ("manifest: [a]\n", "'manifest' is not a map"),
        ("profiles: {p: {relations: {}}}\n", "unknown key 'relations' of profile 'p'"),
        ("- a\n", "a module must be a map of sections"),
        ("jobs: {j: {parallelism: $x}}\n", "an expression stands where a number"),
        ("jobs: {j: {parameters: [{name: a}, {name: a}]}}\n", "parameter 'a' is declared twice"),
        (
            "jobs: {j: {parameters: [{name: a, type: date, granularity: PT1H}]}}\n",
            "not a whole number of days",
        ),
        ("jobs: {j: {parameters: [{name: a, type: date, granularity: -P1D}]}}\n", "is negative"),
        ("jobs: {j: {parameters: [{name: a, granularity: 1}]}}\n", "values of type string have no step"),
        ("jobs: {j: {parameters: [{name: a, type: integer, default: x}]}}\n", "not a whole number"),
        ("jobs: {j: {parameters: [{name: _a}]}}\n", "parameters[0].name"),
        ("jobs: {j: {extends: k}}\n", "there is no job 'k'"),
        ("jobs: {j: {extends: k}, k: {extends: j}}\n", "extend each other in a cycle: j -> k -> j"),
        (
            "jobs: {" + ", ".join(f"j{n}: {{extends: j{n + 1}}}" for n in range(3000)) + ", j3000: {}}\n",
            "more than 100 jobs",
        ),
        (
            "mappings: {m0: {kind: sql, sql: x}, "
            + ", ".join(f"m{n + 1}: {{kind: sql, sql: x, inputs: m{n}}}" for n in range(300))
            + "}\n",
            "mapping 'm200' is the end of a chain",
        ),
        (
            'relations: {"a\\e[31m": {kind: empty}}\n',
            "'a\\x1b[31m' contains characters that cannot be printed",
        ),
        ('targets: {"a\\nERROR b": }\n', "'a\\nERROR b' contains characters that cannot be printed"),
        ('jobs: {"a\\u202Eb": {}}\n', "contains characters that cannot be printed"),
        ("tests: {t: {targets: x}}\n", "test 't': there is no target 'x'"),
        (
            "tests: {t: {overrideMappings: {m: {kind: nix}}}}\n",
            "overrideMappings.m: unknown kind 'nix' of mapping",
        ),
        (
            "targets: {t: {kind: validate, assertions: {a: {kind: sql}}}}\n",
            "assertions.a: 'query' is missing",
        ),
        ("targets: {t: {kind: validate, assertions: {a: x}}}\n", "must be a map with a `kind`"),
        ("relations: {r: {kind: file, location: x, name: y}}\n", "unknown key 'name'"),
    ],
)
def test_what_is_wrong_in_a_module_is_a_fault_with_its_place(tmp_path: Path, sections: str, why: str) -> None:
    found = faults(tmp_path, sections)
    assert any(why in fault for fault in found), found
    assert all(fault.startswith("m.yml:1: ") for fault in found)


def test_an_unknown_profile_is_a_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, "profiles: {prod: {}}\n", profiles=["prd"]) == [
        "project.yml: there is no profile 'prd' (did you mean 'prod'?)"
    ]


def test_names_with_expressions_are_looked_up_when_they_are_used(tmp_path: Path) -> None:
    project = load(tmp_path, "targets: {t: {kind: relation, relation: $which, enabled: $flag}}\n")
    target = cast(
        "RelationTarget", project.targets["t"].resolve(project.scope.child({"which": "r", "flag": True}))
    )
    assert (target.relation, target.enabled) == ("r", True)


def test_a_job_takes_over_what_it_extends(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
        targets:
          a: {kind: validate}
          b: {kind: validate}
          c: {kind: validate}
        jobs:
          base:
            parameters:
              - {name: moment, type: timestamp}
              - {name: length, type: duration}
            environment:
              - end=${Timestamp.add(${moment}, ${length})}
              - mode=base
            targets: [b, a]
            executions: {phase: create, cycle: first}
          daily:
            extends: base
            parameters: {name: moment, type: timestamp, default: 2022-11-01}
            environment: [length=P1D, mode=daily]
            targets: [c, a]
            executions: [{phase: Build, targets: ".*_daily"}]
        """,
    )
    daily = project.job("daily")
    assert [parameter.name for parameter in daily.parameters] == ["moment"]
    assert daily.targets == ("b", "a", "c")
    assert [(entry.phase, entry.cycle, entry.targets) for entry in daily.executions] == [
        ("CREATE", "first", (".*",)),
        ("BUILD", "always", (".*_daily",)),
    ]
    moment = daily.parameters[0].default_value(project.scope)
    scope = project.scope.instance(daily.environment, {"moment": moment})
    assert scope.render("$mode $end") == "daily 2022-11-02T00:00:00.0"
    with pytest.raises(SpecError, match="did you mean 'daily'"):
        project.job("dialy")


def test_templates_are_used_with_their_parameters(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
        environment: [value=outer]
        templates:
          key_value:
            kind: mapping
            parameters:
              - {name: key}
              - {name: value, type: int, default: 12}
            template:
              kind: values
              records:
                - ["$key", $value, $value.toString().length()]
        mappings:
          one: {kind: template/key_value, key: "a$value"}
          two: {kind: template/key_value, key: b, value: 0013}
        """,
    )
    records = {
        name: project.mappings[name].resolve(project.scope).model_dump()["records"] for name in ("one", "two")
    }
    assert records == {"one": (["aouter", "12", "2"],), "two": (["b", "13", "2"],)}
    assert project.mappings["one"].kind == "values"


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("kind: template/key_valu", "did you mean 'key_value'?"),
        ("kind: template/key_value", "'key' is missing, a parameter of the template"),
        ("kind: template/key_value, key: a, keey: b", "did you mean 'key'?"),
        ("kind: template/key_value, key: [a]", "must be a single value"),
        ("kind: template/of_target", "is for a target, not for a mapping"),
        ("kind: template/bad", "unknown kind 'nix' of mapping"),
        ("kind: template/of_nothing", "template 'of_nothing': 'kind' is missing"),
    ],
)
def test_a_wrong_use_of_a_template_is_a_fault(tmp_path: Path, use: str, why: str) -> None:
    found = faults(
        tmp_path,
        f"""
        templates:
          key_value: {{kind: mapping, parameters: {{name: key}}, template: {{kind: values}}}}
          of_target: {{kind: target, template: {{kind: validate}}}}
          bad: {{kind: mapping, template: {{kind: nix}}}}
          {"of_nothing: {template: {kind: values}}" if "nothing" in use else ""}
        mappings:
          one: {{{use}}}
        """,
    )
    assert any(why in fault for fault in found), found


def test_an_argument_of_a_template_that_is_no_value_of_its_type_is_an_error_in_use(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        "templates: {t: {kind: mapping, parameters: {name: n, type: int}, template: {kind: values}}}\n"
        "mappings:\n  m:\n    kind: template/t\n    n: x\n",
    )
    with pytest.raises(
        SpecError, match=r"m.yml:5: mapping 'm': parameter 'n' of the template: 'x' is not a whole"
    ):
        project.mappings["m"].resolve(project.scope)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{kind: mapping, template: {kind: fliter, input: src}}", "unknown kind 'fliter' of mapping"),
        (
            "{kind: mapping, parameters: {name: x}, template: {kind: sql, sqll: $x}}",
            "unknown key 'sqll'",
        ),
        ("{kind: mapping, template: {kind: template/fine}}", "a template can't use a template as a whole"),
    ],
)
def test_a_template_that_nothing_uses_is_checked_too(tmp_path: Path, template: str, why: str) -> None:
    fine = "{kind: relation, parameters: {name: n}, template: {kind: file, location: $n, options: {sep: $n}}}"
    found = faults(tmp_path, f"templates: {{fine: {fine}, wrong: {template}}}")
    assert any(each.startswith(f"m.yml:1: template 'wrong': {why}") for each in found), found
    assert not any("template 'fine'" in each for each in found)


NESTED = """
    templates:
      columns: {kind: schema, parameters: {name: column}, template: {kind: inline, fields: {name: $column}}}
      circle: {kind: schema, template: {kind: inline, fields: {kind: template/circle}}}
    relations:
      r:
        kind: file
        location: x
        schema: {kind: template/columns, column: "c_$year"}
    """


def test_templates_may_be_used_inside_of_definitions(tmp_path: Path) -> None:
    project = load(tmp_path, NESTED)
    relation = cast("FileRelation", project.relations["r"].resolve(project.scope.child({"year": 2013})))
    assert [field.name for field in cast("InlineSchema", relation.schema_).fields] == ["c_2013"]


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("template/column, column: a", "did you mean 'columns'?"),
        ("template/columns", "'column' is missing, a parameter of the template"),
        ("template/circle", "templates use each other more than 5 deep"),
    ],
)
def test_a_wrong_use_of_a_template_inside_of_a_definition_is_a_fault(
    tmp_path: Path, use: str, why: str
) -> None:
    found = faults(tmp_path, NESTED.replace('template/columns, column: "c_$year"', use))
    assert len(found) == 1
    assert found[0].startswith("m.yml:9: relation 'r': ")
    assert why in found[0]


SHARED = """
environment: [bucket=here]
profiles: {production: {lake: {root_folder: /lake}}}
mappings: {m: {kind: values, records: ["$month-$country"]}}
relations: {r: {kind: file, location: r}}
targets: {t: {kind: relation, mapping: m, relation: r}}
jobs:
  monthly:
    parameters: [{name: month, type: date, granularity: P1M}, {name: country, default: NL}]
    targets: [t]
lake: {root_folder: "/lakes/${bucket}"}
"""


def importing(folder: Path, imports: str, module: str = "") -> Path:
    write(folder / "shared", {"project.yml": "name: shared\nmodules: m.yml\n", "m.yml": SHARED})
    write(
        folder / "own", {"project.yml": f"name: own\nmodules: m.yml\nimports: {imports}\n", "m.yml": module}
    )
    return folder / "own"


def test_definitions_of_an_imported_project_can_be_named(tmp_path: Path) -> None:
    own = importing(
        tmp_path,
        "{project: shared, job: monthly, arguments: [month=$stage]}",
        "environment: [stage=2024-05-17]\nmappings: {a: {kind: sql, sql: x, inputs: [shared/m]}}\n",
    )
    shared = load_project(own, LoadOptions(kinds=KINDS, environ={})).imports["shared"]
    # As the job's own runs have it: typed, rounded down, and with defaults.
    assert shared.mappings["m"].resolve(shared.scope).model_dump()["records"] == ("2024-05-01-NL",)
    assert shared.scope.render("${month.year}") == "2024"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("", "import 'shared': job 'monthly': parameter month: is missing and has no default"),
        ("month=May", "job 'monthly': parameter month: 'May' is not a date"),
        ("'month=1;2'", "job 'monthly': parameter month: '1;2' is not a date"),
        ("month=2024-05-01, dey=1", "job 'monthly': unknown parameter 'dey'"),
        ("'month:start=2024-05-01', 'month:end=2024-06-01'", "the arguments are those of 2 instances"),
    ],
)
def test_an_import_takes_one_value_of_each_parameter(tmp_path: Path, arguments: str, why: str) -> None:
    module = "mappings: {a: {kind: sql, sql: x, inputs: [shared/m]}}"
    own = importing(tmp_path, f"[{{project: shared, job: monthly, arguments: [{arguments}]}}]", module)
    with pytest.raises(SpecError) as caught:
        load_project(own, LoadOptions(kinds=KINDS, environ={}))
    # What is unknown because the import failed is no fault of its own.
    (fault,) = caught.value.faults
    assert why in fault.message
    assert str(fault.location) == "project.yml:3"


def test_arguments_of_an_import_without_a_job_override_the_environment(tmp_path: Path) -> None:
    own = importing(tmp_path, "{project: shared, arguments: [bucket=there]}")
    shared = load_project(own, LoadOptions(kinds=KINDS, environ={})).imports["shared"]
    assert (shared.scope.render("$bucket"), shared.lake.root_folder) == ("there", "/lakes/there")
    own = importing(tmp_path, "{project: shared, arguments: [buckt=there]}")
    with pytest.raises(SpecError, match=r"its environment has no 'buckt'.*did you mean 'bucket'"):
        load_project(own, LoadOptions(kinds=KINDS, environ={}))


def test_an_active_profile_is_active_in_imports_that_have_it(tmp_path: Path) -> None:
    own = importing(tmp_path, "{project: shared}", "profiles: {production: {}, other: {}}")
    for profiles, root in (((), "/lakes/here"), (("other", "production"), "/lake")):
        project = load_project(own, LoadOptions(kinds=KINDS, environ={}, profiles=profiles))
        assert project.imports["shared"].lake.root_folder == root


@pytest.mark.parametrize(
    ("imports", "why"),
    [
        ("[{project: shared}, {project: shared, location: ../b}]", "import 'shared': it is imported already"),
        ("[{project: crm, location: ../shared}]", "is named 'shared'"),
    ],
)
def test_an_import_is_that_of_one_project_by_its_name(tmp_path: Path, imports: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        load_project(importing(tmp_path, imports), LoadOptions(kinds=KINDS, environ={}))


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("jobs: {j: {targets: [shared/t]}}", "job 'j': target 'shared/t' belongs to another project"),
        ("jobs: {j: {extends: shared/monthly}}", "job 'j': job 'shared/monthly' belongs to another project"),
        (
            "mappings: {a: {kind: values, records: []}}\n"
            "targets: {t: {kind: relation, mapping: a, relation: shared/r}}",
            "target 't': relation 'shared/r' belongs to another project",
        ),
        (
            "mappings: {a: {kind: sql, sql: x, inputs: [shared/n]}}",
            "mapping 'a': there is no mapping 'shared/n'",
        ),
    ],
)
def test_what_an_import_does_not_offer_is_a_fault(tmp_path: Path, module: str, why: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_project(importing(tmp_path, "{project: shared}", module), LoadOptions(kinds=KINDS, environ={}))
    assert [why in fault.message for fault in caught.value.faults] == [True]


def test_a_name_of_an_import_that_is_meant_is_given_as_it_must_be_written(tmp_path: Path) -> None:
    module = "mappings: {a: {kind: sql, sql: x, inputs: [shared/mm]}}"
    with pytest.raises(SpecError) as caught:
        load_project(importing(tmp_path, "{project: shared}", module), LoadOptions(kinds=KINDS, environ={}))
    assert [fault.remedy for fault in caught.value.faults] == ["did you mean 'shared/m'?"]


def test_storage_of_an_import_that_is_not_used_is_told(tmp_path: Path) -> None:
    own = importing(tmp_path, "{project: shared}")
    s3 = "storage: {s3: {endpoint_url: 'http://127.0.0.1:9'}}\n"
    (tmp_path / "shared" / "m.yml").write_text(SHARED + s3)
    (warning,) = load_project(own, LoadOptions(kinds=KINDS, environ={})).warnings
    assert "import 'shared': its `storage` is not used" in warning.message
    (own / "m.yml").write_text(s3)
    assert load_project(own, LoadOptions(kinds=KINDS, environ={})).warnings == ()


def test_the_place_of_a_fault_in_an_imported_project_names_its_folder(tmp_path: Path) -> None:
    top = "name: own\nmodules: m.yml\nimports: [{project: shared}, {project: inner, location: parts/inner}]\n"
    wrong = {"project.yml": "name: x\nmodules: m.yml\nnosuch: 1\n", "m.yml": ""}
    write(tmp_path / "shared", wrong)
    write(tmp_path / "own" / "parts" / "inner", wrong)
    found = faults(tmp_path / "own", {"project.yml": top, "m.yml": ""})
    assert [each.partition(" (")[0] for each in found] == [
        "../shared/project.yml:3: import 'shared': project: unknown key 'nosuch'",
        "parts/inner/project.yml:3: import 'inner': project: unknown key 'nosuch'",
    ]


def test_projects_that_import_each_other_are_a_fault(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        write(
            tmp_path / name,
            {"project.yml": f"name: {name}\nmodules: m.yml\nimports: {{project: {other}}}\n", "m.yml": ""},
        )
    with pytest.raises(SpecError, match="in a cycle") as caught:
        load_project(tmp_path / "a", LoadOptions(kinds=KINDS, environ={}))
    assert str(caught.value).count("Remove one of the imports.") == 1


def test_a_thousand_targets_load_within_a_second(tmp_path: Path) -> None:
    relations = "".join(
        f"  r{i}:\n    kind: file\n    location: $base/r{i}\n    schema:\n      kind: inline\n"
        f"      fields:\n        - name: a\n          type: string\n"
        for i in range(1000)
    )
    targets = "".join(
        f"  t{i}:\n    kind: relation\n    relation: r{i}\n    mapping: m\n" for i in range(1000)
    )
    started = time.process_time()
    project = load(
        tmp_path,
        f"mappings: {{m: {{kind: values}}}}\nrelations:\n{relations}targets:\n{targets}",
        definitions={"base": "/x"},
    )
    assert time.process_time() - started < SOON
    assert len(project.targets) == 1000


def test_a_profile_brings_its_own_connections(tmp_path: Path) -> None:
    sections = """
        connections: {db: {kind: jdbc, url: dev}}
        profiles:
          prod:
            description: The real one.
            connections: {db: {kind: jdbc, url: prod}, web: {}}
        """
    project = load(tmp_path, sections, profiles=["prod"])
    assert project.connections["db"].resolve(project.scope).model_dump()["url"] == "prod"
    assert project.connections["web"].kind == "source"
    assert load(tmp_path, sections).connections["db"].raw["url"] == "dev"


def test_a_file_that_an_expression_reads_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    sections = """
        environment:
          - file=$File.read(${project.basedir}/secret)
          - login=$File.read($String.concat($project.basedir.toString(), '/secret')).trim()
          - none=$File.read('/no/such/file')
        """
    project = load(tmp_path, sections.replace("          - file=$File.read(${project.basedir}/secret)\n", ""))
    assert project.scope.render("<$login$none>") == "<hush>"
    assert "hush" in project.secrets


def test_too_large_a_file_is_not_read_by_an_expression(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 2_000_000)
    project = load(tmp_path, f"environment: [\"large=$File.read('{tmp_path}/large')\"]\n")
    with pytest.raises(SpecError, match="has more than 1000000 bytes"):
        project.scope.render("$large")


def test_modules_may_lie_outside_of_the_project(tmp_path: Path) -> None:
    write(tmp_path / "shared", {"m.yml": "mappings: {m: {kind: nix}}\n"})
    found = faults(tmp_path / "own", {"project.yml": "name: x\nmodules: ../shared/m.yml\n"})
    assert found[0].startswith("../shared/m.yml:1: mapping 'm'")


def test_a_template_of_an_unknown_category_is_a_fault(tmp_path: Path) -> None:
    found = faults(tmp_path, "templates: {t: {kind: maping, template: {}}}\n")
    assert found == [
        "m.yml:1: template 't': there are no definitions of kind 'maping' (did you mean 'mapping'?)"
    ]


def test_entities_may_be_a_list_in_yaml_too(tmp_path: Path) -> None:
    project = load(
        tmp_path,
        """
        lake: {root_folder: /lake}
        connections:
          - name: c
        entities:
          - {id: 1, name: a, connection: c, processtype: full}
        """,
    )
    assert project.entities["a"].connection == "c"


def test_a_root_folder_that_is_a_file_is_a_fault_with_its_place(tmp_path: Path) -> None:
    """B8: it is found before a run meets it as a raw OSError."""
    (tmp_path / "lake").write_text("")
    (tmp_path / "project.yml").write_text("name: p\nmodules: [m]\nlake: {root_folder: lake}\n")
    (tmp_path / "m").mkdir()
    with pytest.raises(SpecError, match=r"project\.yml:3: lake: root_folder is a file: ") as caught:
        load_project(tmp_path, LoadOptions(kinds=KINDS, environ={}))
    assert len(caught.value.faults) == 1


def test_a_profile_takes_the_project_from_this_machine_to_a_cluster(tmp_path: Path) -> None:
    sections = """
        cluster: {timeout: 30s}
        profiles:
          prod:
            cluster: {master: "$System.getenv('MASTER')", shared: true}
        """
    here = load(tmp_path, sections).cluster
    assert (here.master, here.shared, here.seconds) == ("", False, 30)
    there = load(tmp_path, sections, profiles=["prod"], environ={"MASTER": "spark://a:7077,b:7077"}).cluster
    assert (there.master, there.shared, there.seconds) == ("spark://a:7077,b:7077", True, 30)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{remote: 'sc://host:15002'}", "unknown key 'remote'"),
        ("{master: spark://host}", "'spark://host' is no master of Spark"),
        ("{master: yarn, shard: true}", "unknown key 'shard'"),
        ("{timeout: soon}", "'soon' is not a length of time"),
        ("{timeout: 0s}", "'0s' leaves no time to start an executor"),
    ],
)
def test_what_is_no_cluster_is_refused_in_words(tmp_path: Path, section: str, told: str) -> None:
    found = faults(tmp_path, f"cluster: {section}\n")
    assert len(found) == 1
    assert told in found[0]
    assert ":1: " in found[0]


def test_a_second_master_in_the_configuration_wins_with_a_warning(tmp_path: Path) -> None:
    sections = "cluster: {master: yarn}\nconfig: [spark.master=local]\n"
    assert [each.message for each in load(tmp_path, sections).warnings] == [
        "cluster: master yarn has no effect: the configuration has spark.master=local"
    ]
