"""What the code never does, whatever project files hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import lakewright

SOURCES = sorted(Path(lakewright.__file__).parent.rglob("*.py"))
BUILTINS = frozenset({"eval", "exec", "compile", "__import__"})
MODULES = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle"})


def found(tree: ast.AST) -> Iterator[str]:
    """Calls that run text as code, imports of what makes objects of bytes, and shells."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
                yield node.func.id
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in (
                "yaml.load",
                "os.system",
                "os.popen",
            ):
                yield ast.unparse(node.func)
            if any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in node.keywords):
                yield "shell"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module or ""


def test_no_text_is_run_as_code_and_no_object_is_made_of_bytes() -> None:
    assert len(SOURCES) > 100
    assert {str(path): names for path in SOURCES if (names := list(found(ast.parse(path.read_text()))))} == {}


def test_the_search_finds_what_it_looks_for() -> None:
    text = "import pickle\nfrom marshal import loads\neval('1')\nyaml.load(x)\nrun(x, shell=True)\n"
    assert sorted(found(ast.parse(text))) == ["eval", "marshal", "pickle", "shell", "yaml.load"]
