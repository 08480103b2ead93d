"""A document with every kind of content, for tests of the pages."""

from __future__ import annotations

from lakewright.checks.check import CheckResult, CheckStatus, Sample
from lakewright.documentation.document import (
    Column,
    Document,
    Ending,
    Item,
    LastRun,
    Ref,
    Source,
)

CANARY = "<script>window.hacked = 1</script>"
HOSTILE = f"""a "b" 'c' & d | e `f` [g](javascript:alert(1)) ${{x}} {CANARY}"""

RAW = Ref("relation", "raw")
READ = Ref("mapping", "read")
CLEAN = Ref("mapping", "clean")
PRICES = Ref("relation", "prices")
WRITE = Ref("target", "prices")
STRANGE = Ref("relation", HOSTILE)


def make_document(text: str = "plain") -> Document:
    """Return a document in which every text of the project contains `text`."""
    failed = CheckResult(
        kind="range",
        label=f"price is between 0 and 100 {text}",
        column="price",
        description=text,
        status=CheckStatus.FAILED,
        passed=1200,
        failed=2,
        sample=Sample(("price", text), (("-1", None), ("-2", text)), left_out=("ninth", "tenth")),
    )
    held = CheckResult("notNull", "id is not null", "id", status=CheckStatus.SUCCESS, passed=1202, failed=0)
    broken = CheckResult("sql", text, status=CheckStatus.ERROR, message=text)
    return Document(
        project=f"shop {text}",
        made="2022-03-01T03:00:00.000000Z",
        tool="Lakewright 1",
        version=text,
        description=text,
        job=text,
        parameters={"day": text},
        jobs=(("daily", text, ("day",), ("prices", text)),),
        items=(
            Item(
                RAW,
                "file",
                description=text,
                read_by=(READ,),
                columns=(Column("price", "double", description=text),),
            ),
            Item(
                READ,
                "relation",
                reads=(RAW,),
                read_by=(CLEAN,),
                columns=(
                    Column(
                        "price", "double", sources=(Source(RAW, "price"),), origins=(Source(RAW, "price"),)
                    ),
                ),
            ),
            Item(
                CLEAN,
                "sql",
                code=f"SELECT price FROM read -- {text}\n```",
                reads=(READ,),
                read_by=(WRITE,),
                columns=(
                    Column(
                        "price", "double", sources=(Source(READ, "price"),), origins=(Source(RAW, "price"),)
                    ),
                ),
            ),
            Item(
                WRITE,
                "relation",
                reads=(CLEAN,),
                read_by=(PRICES,),
                facts=(("phases", text),),
                endings=(
                    Ending("CREATE", "SKIPPED", ("clean",)),
                    Ending("BUILD", "FAILED", (text,), seconds=1.5, error=text),
                ),
            ),
            Item(
                PRICES,
                "delta",
                description=text,
                note=text,
                reads=(WRITE,),
                facts=(("stored in", f"/lake/{text}"),),
                columns=(
                    Column("id", "bigint", nullable=False, marks=("partition", text), checks=(held,)),
                    Column("price", "double", checks=(failed,), made=text),
                    Column(
                        f"sum {text}", text, sources=(Source(STRANGE, text),), origins=(Source(RAW, text),)
                    ),
                ),
                checks=(broken,),
            ),
            Item(STRANGE, text, read_by=(), description=text),
        ),
        last_run=LastRun("r1", text, "VERIFY", "FAILED", "2022-03-01T02:00:00Z", None, {"day": text}),
    )
