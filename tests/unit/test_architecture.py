"""Who may import what, and where the separator is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for folder in ("app", "agents", "tables") for path in (ROOT / folder).rglob("*.py"))
CORE = [path for path in MODULES if path.is_relative_to(ROOT / "app" / "core")]
KAFKA = [path for path in MODULES if path.is_relative_to(ROOT / "app" / "kafka")]
IMPURE = {"asyncio", "concurrent", "multiprocessing", "os", "random", "secrets", "socket", "threading", "time"}


def imports(path: Path) -> Iterator[str]:
    """Yield the dotted names a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def packages(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_modules_are_found() -> None:
    assert len(CORE) > 8
    assert KAFKA


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_is_pure(path: Path) -> None:
    foreign = packages(path) - sys.stdlib_module_names - {"app"}
    assert not foreign, "the core imports only the standard library"
    assert not packages(path) & IMPURE, "the core knows no loop, clock, chance, process or network"
    ours = {dotted for dotted in imports(path) if dotted.partition(".")[0] == "app"}
    assert all(dotted.startswith("app.core") for dotted in ours), "the core imports no other part of the application"
    calls = {node.func.id for node in ast.walk(ast.parse(path.read_text())) if _is_named_call(node)}
    assert not calls & {"open", "print", "input", "exec", "eval"}, "the core does no input or output"


def _is_named_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


@pytest.mark.parametrize("path", [path for path in MODULES if path not in KAFKA], ids=name)
def test_kafka_s_clients_are_imported_in_one_package_only(path: Path) -> None:
    assert not packages(path) & {"aiokafka", "confluent_kafka"}


@pytest.mark.parametrize("path", KAFKA, ids=name)
def test_that_package_knows_nothing_of_faust(path: Path) -> None:
    assert not packages(path) & {"faust", "mode"}
    assert not packages(path) & {"agents", "tables"}


@pytest.mark.parametrize("path", [path for path in MODULES if path.name != "naming.py"], ids=name)
def test_names_are_joined_and_split_at_the_separator_in_one_module_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        operands: list[ast.AST] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.FormattedValue) and node.conversion != ord("r"):  # `!r` shows it to a reader
            operands = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            operands = [node.func.value, *node.args]
        assert not any(map(_is_separator, operands)), (
            f"line {getattr(node, 'lineno', '?')}: app/core/naming.py does that"
        )


def _is_separator(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in {"separator", "sep"}


def test_no_module_is_hidden_from_faust_s_discovery_by_its_name() -> None:
    assert not [name(path) for path in MODULES if "test_" in path.name]


def test_importing_the_core_loads_no_client_and_no_framework() -> None:
    modules = ", ".join("app.core." + path.stem for path in CORE if path.stem != "__init__")
    heavy = "{'faust', 'mode', 'aiokafka', 'confluent_kafka', 'pydantic', 'asyncio'}"
    code = f"import sys, {modules}; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split() == []
