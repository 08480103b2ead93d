"""Expressions: what the project files' rules promise of `$name` and `${name.method(...)}`."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.spec.kinds import NOW, SOON

from lakewright.errors import SpecError
from lakewright.spec.expressions.expression import has_expression, parse_expression, parse_template
from lakewright.spec.expressions.functions import EvaluationContext, Namespace
from lakewright.spec.expressions.scope import Scope
from lakewright.spec.expressions.values import Duration

ENVIRON = {"PATH": "/bin", "HOME": "/home/me", "DB_PASSWORD": "hush-hush", "EMPTY": ""}
FILES = {
    "/run/secret": "s3cr3t\n",
    "/run/secrets.json": '{"list": [{"key": "user", "value": "me"}], "n": 1.5}',
}
VALUES: dict[str, object] = {
    "name": "weather",
    "day": date(2022, 11, 1),
    "moment": datetime(2017, 6, 19, 1, 2, 3),
    "instant": datetime(2017, 6, 19, tzinfo=UTC),
    "count": 3,
    "ratio": 2.0,
    "flag": True,
    "nothing": None,
    "period": Duration(months=1),
    "text_day": "2022-11-01",
    "days": "2",
    "project": Namespace(
        "project", properties={"basedir": PurePosixPath("/work/lake"), "name": "p", "version": ""}
    ),
}


def read_file(path: str) -> str:
    if path not in FILES:
        raise FileNotFoundError(f"no file {path}")
    return FILES[path]


SCOPE = Scope(VALUES, context=EvaluationContext(environ=ENVIRON, clock=lambda: NOW, read_file=read_file))

RENDERED = [
    # plain text and dollar signs
    ("", ""),
    ("no expression", "no expression"),
    ("costs 5 $, $5 or $$", "costs 5 $, $5 or $$"),
    ("^[a-z]+$", "^[a-z]+$"),
    ("$.secret ${} ${1} $-", "$.secret ${} ${1} $-"),
    ("\\$name", "$name"),
    ("\\\\$name", "\\weather"),
    ("\\\\\\$name", "\\$name"),
    ("a\\b \\d{3}$", "a\\b \\d{3}$"),
    ("$$name", "$weather"),
    ("# comment #1", "# comment #1"),
    # names
    ("$name", "weather"),
    ("${name}", "weather"),
    ("${ name }", "weather"),
    ("a-$name-b", "a-weather-b"),
    ("${name}s/$name/", "weathers/weather/"),
    ("$name.", "weather."),
    ("$day-$count", "2022-11-01-3"),
    ("$project.basedir/x", "/work/lake/x"),
    ("${project.basedir}", "/work/lake"),
    ("${project.version}", ""),
    # values
    ("$day", "2022-11-01"),
    ("$moment", "2017-06-19T01:02:03"),
    ("$instant", "2017-06-19T00:00:00.0"),
    ("$ratio $flag $nothing| $period", "2.0 true | P1M"),
    # properties and methods
    ("$day.plusDays(30)", "2022-12-01"),
    ("$day.minusMonths(1).plusYears(2)", "2024-10-01"),
    ("$day.plus('P1M').minus($period)", "2022-11-01"),
    ("${day.format('yyyy/MM/dd')}/*.log", "2022/11/01/*.log"),
    ('${day.format("yyyy")}', "2022"),
    ("$day.year/$day.monthValue/$day.dayOfMonth", "2022/11/1"),
    ("$day.getYear()/$day.getDayOfWeek()/$day.month", "2022/TUESDAY/NOVEMBER"),
    ("$instant.toEpochSeconds()", "1497830400"),
    ("$instant.plusHours(25).minusMinutes(1)", "2017-06-20T00:59:00.0"),
    ("$moment.toLocalDate().withDayOfMonth(1)", "2017-06-01"),
    ("$day.isBefore('2022-11-02') $day.isAfter($day)", "true false"),
    ("$day.toEpochDay() $day.atStartOfDay()", "19297 2022-11-01T00:00"),
    ("$name.toUpperCase().substring(1, 3) $name.length()", "EA 7"),
    ("$name.replace('w', 'W').concat('!')", "Weather!"),
    ("$project.basedir.parent $project.basedir.getFilename()", "/work lake"),
    ("$project.basedir.withName('other')", "/work/other"),
    ("$period.multipliedBy(3) $period.negated()", "P3M P-1M"),
    # helpers of dates
    ("$LocalDate.parse('2017-10-10')", "2017-10-10"),
    ("${LocalDate.addDays($text_day, -3)}", "2022-10-29"),
    ("${LocalDate.addDays(text_day, $days)}", "2022-11-03"),
    ("${LocalDate.addMonths('2022-01-31', 1)}", "2022-02-28"),
    ("${LocalDate.format($text_day, 'yyyyMMdd')}", "20221101"),
    ("${LocalDate.format($instant, 'dd.MM.yy')}", "19.06.17"),
    ("$LocalDate.today() $LocalDate.now()", "2022-11-15 2022-11-15"),
    ("$LocalDateTime.parse('2017-10-10T10:00:00')", "2017-10-10T10:00"),
    ("$LocalDateTime.parse('2017-10-10')", "2017-10-10T00:00"),
    ("$LocalDateTime.ofEpochSeconds(0) $LocalDateTime.now()", "1970-01-01T00:00 2022-11-15T06:30"),
    ("$LocalDateTime.add('2022-11-01T00:00', 'PT90M')", "2022-11-01T01:30"),
    ("$LocalDateTime.addHours('2022-11-01T00:00', 5)", "2022-11-01T05:00"),
    ("$Timestamp.parse('2017-10-10T10:00:00+01')", "2017-10-10T09:00:00.0"),
    ("$Timestamp.parse('2017-10-10T10:00:00+0100')", "2017-10-10T09:00:00.0"),
    ("$Timestamp.parse('2017-10-10T10:00:00.25Z')", "2017-10-10T10:00:00.25"),
    ("$Timestamp.parse('2017-10-10T10:11:23').toEpochSeconds()", "1507630283"),
    ("$Timestamp.toEpochSeconds('1970-01-02T00:00')", "86400"),
    ("${Timestamp.add(${text_day}, ${days}D)}".replace("${days}D", "'P2D'"), "2022-11-03T00:00:00.0"),
    ("$Timestamp.subtract($instant, $Duration.ofHours(1))", "2017-06-18T23:00:00.0"),
    ("$Timestamp.format($instant, 'yyyy-MM-dd HH:mm X')", "2017-06-19 00:00 Z"),
    ("$Timestamp.now()", "2022-11-15T06:30:00.0"),
    ("$Duration.parse('P1D') $Duration.ofDays(2) $Duration.ofHours('7')", "PT24H PT48H PT7H"),
    ("$Duration.between('2022-11-01T00:00', '2022-11-01T01:30')", "PT1H30M"),
    ("$Duration.ofMillis(1500) $Duration.ofSeconds(0)", "PT1.5S PT0S"),
    ("$Period.ofWeeks(7) $Period.parse('P1Y2M3D') $Period.ofMonths(14)", "P49D P1Y2M3D P1Y2M"),
    # other helpers
    (
        "$Integer.parse('3') $Float.parse('3') $Boolean.valueOf('TRUE') $Boolean.parse('1')",
        "3 3.0 true false",
    ),
    ("$System.getenv('PATH') $System.getenv('NO')|", "/bin |"),
    ("$System.getenv('EMPTY', 'x')|", "|"),
    ("$System.getenv('NO', 'default')/sub", "default/sub"),
    ("$System.getenv('NO' ,$System.getenv('PATH'))", "/bin"),
    ("$System.getenv('NO', $String.concat('lala/', $System.getenv('PATH')))", "lala//bin"),
    ("$System.getenv('NO', '$name') $System.getenv('NO', \"$name!\")", "$name weather!"),
    ("$System.getenv('NO', 'it''s')", "it's"),
    ("$System.getenv('NO', 400)", "400"),
    ("$System.getProperty('user.home')/.ssh $System.getProperty('x', 'y')", "/home/me/.ssh y"),
    ("$String.concat('a', $count, true, 1.5)", "a3true1.5"),
    ("$URL.encode('a b&c/ä') $URL.decode('a+b%26%C3%A4')", "a+b%26c%2F%C3%A4 a b&ä"),
    ("$String.urlEncode('*') $String.escapePathName('a b:c')", "* a b%3Ac"),
    ("$String.partitionEncode($instant) $String.partitionEncode('*')", "2017-06-19 00%3A00%3A00 *"),
    ("$File.read('/run/secret')", "s3cr3t\n"),
    ("$JSON.path($File.read('/run/secrets.json'), '$.list[?(@.key==\"user\")].value')", "me"),
    ("$JSON.path($File.read('/run/secrets.json'), '$.n')", "1.5"),
]


@pytest.mark.parametrize(("text", "rendered"), RENDERED)
def test_a_text_is_rendered(text: str, rendered: str) -> None:
    assert SCOPE.render(text) == rendered


REFUSED = [
    ("$nam", "did you mean 'name'?"),
    ("$nix", "unknown name 'nix'"),
    ("${name", "'}' is missing"),
    ("${name x}", "'}' is expected"),
    ("${name.}", "expected after '.'"),
    ("$day.plusDays(", "is missing"),
    ("$day.plusDays(1", "')' is missing"),
    ("$day.plusDays(1 2)", "',' or ')'"),
    ("$day.plusDays(,)", "a value is expected"),
    ("$day.plusDays('1)", "the closing ' is missing"),
    ("$day.plusDays(1 + 1)", "',' or ')'"),
    ("$day.plusDays()", "plusDays of a date takes 1 argument, not 0"),
    ("$day.plusDays(1, 2)", "plusDays of a date takes 1 argument, not 2"),
    ("$name.substring()", "substring of a text takes 1 to 2 arguments, not 0"),
    ("$LocalDate.addDays($day)", "LocalDate.addDays takes 2 arguments, not 1"),
    ("$day.plusDay(1)", "did you mean 'plusDays'?"),
    ("$day.plusDays(x)", "unknown name 'x'"),
    ("$day.plusDays('x')", "is not a whole number"),
    ("$day.plusDays(99999999)", "plusDays of a date"),
    ("$day.plusMonths(999999)", "outside the years"),
    ("$day.plus('PT1H')", "not a whole number of days"),
    ("$day.format('HH')", "needs a time"),
    ("$day.format('w')", "is not supported"),
    ("$day.format('''')".replace("''''", "'''x'"), "lacks a closing quote"),
    ("$name.csv", "Write ${name}.csv"),
    ("$name.__class__", "starts with '_'"),
    ("$__builtins__", "starts with '_'"),
    ("${_x}", "starts with '_'"),
    ("$name.getClass()", "there is no getClass"),
    ("$day.replace(1)", "there is no replace"),
    ("$System.exit(1)", "there is no System.exit"),
    ("$System.properties", "no property"),
    ("$LocalDate.parse('2022-13-01')", "is not a date"),
    ("$LocalDate.parse('01.02.2022')", "is not a date"),
    ("$Timestamp.parse('soon')", "is not a timestamp"),
    ("$Duration.parse('P1M')", "use Period"),
    ("$Period.parse('PT1H')", "use Duration"),
    ("$Duration.parse('1 day')", "is not a duration"),
    ("$File.read('/nope')", "File.read: no file /nope"),
    ("$JSON.path('{', '$.a')", "JSON.path"),
    ("$JSON.path('{}', '$..a')", "is not supported"),
    ("$JSON.path('{}', '$.a')", "does not lead to a single value"),
    ("$Integer.parse('1e400')", "is not a whole number"),
    ("$Integer.parse('" + "9" * 5000 + "')", "is not a whole number"),
    ("#if($flag)x#end", "directive"),
    ("#set($x = 1)$x", "directive"),
    ("#{foreach}($x in $y)#end", "directive"),
    ("$day" + ".plusDays(1)" * 30, "nested more than"),
    ("$name" + ".concat($name" * 30 + ")" * 30, "nested more than"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_not_offered_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(SpecError) as caught:
        SCOPE.render(text)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$day", date(2022, 11, 1)),
        ("${day.plusDays(1)}", date(2022, 11, 2)),
        ("$count", 3),
        ("$day ", "2022-11-01 "),
        ("plain", "plain"),
        ("", ""),
        ("$LocalDateTime.parse('2022-11-01T00:00')", datetime(2022, 11, 1)),
        ("$day.isBefore('2023-01-01')", True),
    ],
)
def test_a_text_that_is_one_expression_has_a_typed_value(text: str, value: Any) -> None:
    assert SCOPE.evaluate(text) == value


def test_the_present_time_is_an_error_where_there_is_no_clock() -> None:
    with pytest.raises(SpecError, match="current time"):
        Scope().render("$LocalDate.today()")


def test_many_expressions_in_a_long_text_are_all_rendered() -> None:
    assert SCOPE.render("$day.plusDays(1) " * 5000).count("2022-11-02") == 5000


@pytest.mark.parametrize(
    "text", ["$" * 200_000, "\\" * 200_000 + "$", "$name" * 100_000, "${" * 100_000, "$a(" * 50_000]
)
def test_a_hostile_text_ends_soon(text: str) -> None:
    started = time.process_time()
    with suppress(SpecError):
        SCOPE.render(text)
    assert time.process_time() - started < SOON


@given(st.text(alphabet="$\\{}().'\"_ #,;ab1-ä", max_size=60))
def test_any_text_renders_or_is_a_spec_error(text: str) -> None:
    scope = Scope({"a": "x", "b": date(2022, 1, 1)})
    try:
        rendered = scope.render(text)
    except SpecError:
        return
    if not has_expression(text) and "\\$" not in text:
        assert rendered == text


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("'${last_value}'", "last_value"),
        ('"${last_value}"', "$last_value"),
        (" ${last_value} ", "${ last_value }"),
        ("LocalDate.parse('${last_value}').minusDays(3)", "${LocalDate.parse($last_value).minusDays(3)}"),
        ("${LocalDate.parse(last_value).minusDays(3)}", "LocalDate.parse(${last_value}).minusDays(3)"),
    ],
)
def test_quotes_and_braces_around_a_whole_expression_mean_nothing(text: str, same_as: str) -> None:
    assert parse_expression(text) == parse_expression(same_as)


@pytest.mark.parametrize("text", ["", "${a} x", "a b", "x - 1", "${a}${b}", "${a}'"])
def test_a_whole_expression_is_exactly_one(text: str) -> None:
    with pytest.raises(SpecError):
        parse_expression(text)


def test_a_template_says_whether_it_is_one_expression() -> None:
    assert parse_template("$a").single is not None
    assert parse_template("$a ").single is None
    assert parse_template("a").single is None
