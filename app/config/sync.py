"""What a flow keeps in step besides records, and where it begins."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from app.config.base import Model, Names, Switch
from app.core.topics import CONFIG_EXCLUDE, ConfigRules


class SyncConfig(Model):
    """What the target's topics take over from the source's, at each `runtime.topic_refresh_interval`."""

    topic_configs: Switch = Field(
        True, description="whether settings are kept in step; topics are created with the source's in any case"
    )
    config_exclude: Names = Field(
        CONFIG_EXCLUDE, description="settings never touched, as in an exclude list; a list given here replaces this one"
    )
    use_defaults_from: Literal["target", "source"] = Field(
        "target", description="whose defaults apply to what is not set for a source topic"
    )
    acls: Switch = Field(
        False,
        description="whether rights to read, and prohibitions, are carried; only rules that were added are removed",
    )
    group_offsets: Switch = Field(
        False, description="whether groups without members on the target get the translated offsets, only forwards"
    )
    deletions: Switch = Field(False, description="whether a copy is deleted when its source topic is")

    def core_rules(self) -> ConfigRules:
        """Return the rules about settings. Raises ValueError when an entry cannot be used."""
        return ConfigRules(exclude=self.config_exclude, defaults=self.use_defaults_from)

    @model_validator(mode="after")
    def _valid(self) -> SyncConfig:
        self.core_rules()
        return self


def _start(value: object) -> object:
    """YAML makes times of texts that look like one; a time without a zone is UTC."""
    if isinstance(value, str) and value not in ("earliest", "latest"):
        try:
            value = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise ValueError("it has to be earliest, latest or a time such as 2026-01-31T00:00:00Z") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return value


#: `earliest`, `latest`, or a time.
Start = Annotated[Literal["earliest", "latest"] | datetime, BeforeValidator(_start)]
