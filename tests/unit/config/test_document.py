"""The file as YAML: what is refused before any model sees it, and that no value shows in the message."""

from pathlib import Path

import pytest

from app.config import load_settings
from app.errors import ConfigurationError

from .conftest import Load, Refused


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "- a\n", "text\n"])
def test_something_else_than_a_mapping(refused: Refused, text: str) -> None:
    assert refused(text) == ["a mapping with clusters and flows is expected"]


def test_a_missing_file_says_how_to_name_another(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(ConfigurationError) as caught:
        load_settings(None, {"KRABKA_REPLICATOR_CONFIG": str(path)})
    assert str(caught.value) == (
        f"the configuration {path} cannot be used:\n"
        "  there is no such file; write one, or name another by KRABKA_REPLICATOR_CONFIG"
    )


def test_without_a_name_the_working_folder_s_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    (tmp_path / "replicator.yaml").write_text(base)
    monkeypatch.chdir(tmp_path)
    assert load_settings(None, {"KRABKA_REPLICATOR_CONFIG": ""}).targets == ("eu-west",)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load_settings(tmp_path, {})


def test_bytes_that_are_no_text(refused: Refused) -> None:
    assert refused(b"\x00\xff") == ["cannot be read: it is not UTF-8"]


def test_a_key_given_twice(refused: Refused, base: str) -> None:
    assert refused(base.replace("eu-west: {", "us-east: {")) == ["line 3: 'us-east' is given twice"]
    assert refused(base.replace("{from:", "{to: x, from:")) == ["line 5: 'to' is given twice"]


def test_a_merge_key_is_no_key_given_twice(load: Load, base: str) -> None:
    merged = base.replace("us-east: {", "us-east: &one {").replace("eu-west: {", "eu-west: {<<: *one, ")
    assert load(merged).clusters["eu-west"].zones == ("us",)


@pytest.mark.parametrize("key", ["1", "no", "~", "[a]", "2024-01-01"])
def test_a_key_that_yaml_takes_for_something_else_than_text(refused: Refused, base: str, key: str) -> None:
    assert refused(f"{base}? {key}\n: 1\n") == ["line 6: a key has to be text; put it in quotes"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("*hunter22", "a value that begins with '*' needs quotes"),
        ("!hunter22 x", "a value that begins with '!' needs quotes"),
        ("!hunter22!x y", "a value that begins with '!' needs quotes"),
        ("&hunter22 a\nx: &hunter22 b", "a value that begins with '&' needs quotes"),
        ("!!python/object/apply:os.system [hunter22]", "a value that begins with '!' needs quotes"),
        ("%hunter22", "found character '%' that cannot start any token"),
        ("@hunter22", "found character '@' that cannot start any token"),
        ("hunter22: hunter22", "mapping values are not allowed here"),
        ('"hunter22\\q"', "found unknown escape character 'q'"),
        ('"hunter22', "found unexpected end of stream"),
        ("{hunter22, x: [}", "expected the node content, but found '}'"),
        ("hunter22\n---\nb: hunter22", "but found another document"),
        ("2024-13-45", "this looks like a date or a number and is none; put it in quotes"),
    ],
)
def test_a_yaml_error_shows_no_value(refused: Refused, value: str, said: str) -> None:
    (problem,) = refused(f"password: {value}\n")
    assert problem.startswith("line ")
    assert problem.endswith(said)
    assert "hunter" not in problem


def test_a_character_that_yaml_forbids(refused: Refused) -> None:
    assert refused("password: hunter22\x07\n") == ["this is not YAML"]


def test_nesting_without_end(refused: Refused, base: str) -> None:
    assert refused("a: " + "[" * 5000) == ["it is nested too deeply"]
    holds_itself = base.replace("us-east: {", "us-east: &me {region: *me, ")
    assert refused(holds_itself) == ["it holds itself, by an alias ('*')"]
