"""Which value a name has: precedence, lateness, circles, secrets."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest

from lakewright.errors import Location, SpecError
from lakewright.spec.expressions.functions import EvaluationContext
from lakewright.spec.expressions.scope import Entry, Scope


def entries(**texts: str) -> dict[str, object]:
    return {name: Entry(text, Location("m.yml", 3)) for name, text in texts.items()}


def test_arguments_win_over_definitions_over_the_job_over_the_project() -> None:
    project = Scope(
        entries(a="project", b="project", c="project", d="project"), definitions=entries(a="-D", b="-D")
    )
    instance = project.instance({"a": "job", "b": "job", "c": "job"}, {"a": "argument"})
    assert instance.render("$a $b $c $d") == "argument -D job project"
    assert project.render("$a $b $c $d") == "-D -D project project"


def test_names_of_a_place_of_its_own_win_over_all() -> None:
    scope = Scope(entries(x="project")).instance({}, {"x": "argument"}).child({"x": "partition"})
    assert scope.render("$x") == "partition"


def test_an_entry_is_evaluated_with_the_names_in_force_where_it_is_used() -> None:
    project = Scope(entries(path="$root/$year", root="/data"))
    assert project.instance({"root": "/test"}, {"year": 2013}).render("$path") == "/test/2013"
    with pytest.raises(SpecError, match="unknown name 'year'"):
        project.render("$path")


def test_an_entry_nobody_uses_may_be_wrong() -> None:
    assert Scope(entries(bad="$nope", good="x")).render("$good") == "x"


def test_an_error_inside_an_entry_names_the_entry_and_its_place() -> None:
    with pytest.raises(SpecError) as caught:
        Scope(entries(path="$rot/x", root="/data")).render("$path")
    assert str(caught.value) == "m.yml:3: environment entry 'path': unknown name 'rot' (did you mean 'root'?)"


def test_an_entry_that_names_itself_means_the_one_it_hides() -> None:
    scope = Scope(entries(path="/data"), definitions=entries(path="$path/x")).instance({"path": "$path/job"})
    assert scope.render("$path") == "/data/job/x"


@pytest.mark.parametrize(
    "circle", [{"a": "$a"}, {"a": "$b", "b": "$a"}, {"a": "$b", "b": "${c}", "c": "x $a"}]
)
def test_entries_in_a_circle_are_an_error(circle: dict[str, str]) -> None:
    scope = Scope(entries(**circle))
    with pytest.raises(SpecError, match=r"in a cycle|unknown name"):
        scope.render("$a")
    with pytest.raises(SpecError):
        scope.render("$a")


def test_entries_that_grow_by_each_other_are_bounded() -> None:
    lines = {f"a{level}": f"$a{level - 1}" * 10 for level in range(1, 40)}
    started = time.process_time()
    with pytest.raises(SpecError, match="has more than"):
        Scope(entries(a0="x" * 10, **lines)).render("$a39")
    assert time.process_time() - started < 1


def test_entries_and_calls_nested_too_deep_are_an_error() -> None:
    call = "$String.concat('x', " * 8
    lines = {f"a{level}": f"{call}$a{level - 1}{')' * 8}" for level in range(1, 49)}
    with pytest.raises(SpecError, match="too deep"):
        Scope(entries(a0="x", **lines)).render("$a48")


def test_a_given_value_is_never_evaluated() -> None:
    assert Scope().child({"x": "$y ${z}"}).render("<$x>") == "<$y ${z}>"
    assert Scope().instance({}, {"x": "$y"}).render("$x") == "$y"


def test_secrets_are_what_secret_names_and_files_hold_and_passwords_of_urls() -> None:
    context = EvaluationContext(
        environ={"DB_PASSWORD": "hush-1", "REGION": "eu", "AWS_SECRET_ACCESS_KEY": "hush-2"},
        read_file=lambda path: "hush-3\n",
    )
    scope = Scope(
        entries(
            region="$System.getenv('REGION')",
            login="$System.getenv('DB_PASSWORD')",
            api_token="hush-4",
            from_file="$File.read('/run/x')",
            url="postgresql://me:hush-5@db/lake",
            broken_secret="$nope",
            primary_key="id",
        ),
        context=context,
    )
    scope.render("$System.getenv('AWS_SECRET_ACCESS_KEY')")
    assert scope.instance({"job_password": "hush-6"}).secrets == {
        *(f"hush-{number}" for number in range(1, 7)),
        "hush-3\n",
    }


def test_what_expressions_and_arguments_bring_is_secret_from_then_on() -> None:
    met = (scope := Scope(entries(db_password="hush-1", region="eu"))).seen_secrets
    assert met == set()
    instance = scope.instance({"api_token": "$seed-2"}, {"seed": "hush", "login_key": "hush-3", "day": 1})
    assert met == {"hush-3"}
    instance.render("$region $db_password $day")
    instance.child({"secret": "hush-4"}).render("$api_token ${secret}")
    assert met == {"hush-1", "hush-2", "hush-3", "hush-4"}


def test_threads_may_ask_one_scope_at_once() -> None:
    lines = {f"a{level}": f"$a{level - 1}." for level in range(1, 40)}
    scope = Scope(entries(a0="x", **lines))
    rendered: list[str] = []
    threads = [threading.Thread(target=lambda: rendered.append(scope.render("$a39"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rendered == ["x" + "." * 39] * 8


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("name = ${sql(name)}", r"name = 'O''Hara\\x'"),
        ("${sql($name.substring(0, 2))}", "'O'''"),
        ("${ sql( day ) } ${sql(n)} ${sql(yes)}", "DATE '2022-11-01' 3 true"),
        ("${String.concat(sql(day), ' x')}", "DATE '2022-11-01' x"),
        ("${sql(at)} ${sql(local)}", "TIMESTAMP '2022-11-01 06:00:00Z' TIMESTAMP_NTZ '2022-11-01 06:00:00'"),
        ("${sql('a ''b''')} ${sql(null)}", "'a ''b''' NULL"),
        ("${sql}", "own"),
    ],
)
def test_a_value_is_quoted_for_sql(text: str, rendered: str) -> None:
    """A9: a quote in a parameter can't break or extend a query."""
    at = datetime(2022, 11, 1, 6)
    values = {"name": "O'Hara\\x", "day": at.date(), "n": 3, "yes": True, "local": at, "sql": "own"}
    assert Scope(values | {"at": at.replace(tzinfo=UTC)}).render(text) == rendered


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${sql()}", "sql takes 1 argument, not 0"),
        ("${sql(a, a)}", "sql takes 1 argument, not 2"),
        ("${sql(LocalDate)}", "a value is expected, not the helper LocalDate"),
        ("${sql(b)}", "unknown name 'b'"),
        ("$sql(a)", r"unknown name 'sql' \(Write \$\{sql\(name\)\}, with braces"),
    ],
)
def test_a_wrong_call_of_sql_is_an_error(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Scope({"a": 1}).render(text)
