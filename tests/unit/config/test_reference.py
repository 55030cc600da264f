"""The page of the docs is what the models say, and its example works."""

from pathlib import Path

import yaml

from app.config import RuntimeConfig
from app.config.reference import EXAMPLE, reference

from .conftest import Load

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "python -m app.config.reference > docs/configuration.md"


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) > len(RuntimeConfig.model_fields)
    assert not [row for row in rows if row.split(" | ")[-1].strip(" |") == ""]


def test_the_example_at_the_top_of_the_page_can_be_used(load: Load) -> None:
    written = PAGE.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    settings = load(written)
    assert written == EXAMPLE
    assert [flow.name for flow in settings.flows] == ["us-east__eu-west"]
    assert settings.clusters["us-east"].region == "us-east-1"
    assert settings.clusters["eu-west"].zones == ("eu", "gdpr")
    assert settings.policies[0].residency.allow_zones == {"gdpr"}
    assert settings.runtime.heartbeat_interval == 1


def test_the_example_says_what_is_the_default_anyway(load: Load) -> None:
    shorter = yaml.safe_load(EXAMPLE)
    shorter["flows"] = [{"from": "us-east", "to": "eu-west"}]
    assert load(yaml.safe_dump(shorter)).flows == load(EXAMPLE).flows
