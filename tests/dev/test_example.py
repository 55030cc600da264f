"""The configuration that people begin with."""

from __future__ import annotations

from pathlib import Path

from app.config.load import load_settings

EXAMPLE = Path(__file__).parents[2] / "replicator.example.yaml"


def test_the_example_is_accepted():
    (flow,) = load_settings(EXAMPLE, {}).flows
    assert flow.name == "us-east__eu-west"


def test_what_the_example_only_hints_at_is_accepted_too(tmp_path):
    whole = tmp_path / "replicator.yaml"
    text = EXAMPLE.read_text(encoding="utf-8").replace("    # ", "    ")
    assert "\n    security:\n" in text
    whole.write_text(text, encoding="utf-8")
    security = load_settings(whole, {"EU_WEST_PASSWORD": "x"}).clusters["eu-west"].security
    assert security.username == "replicator"
