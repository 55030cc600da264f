"""The web server's part of the configuration."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from app.config.base import Model, Switch

SHORTEST_TOKEN = 16


class WebConfig(Model):
    """The pages of a worker."""

    token: SecretStr | None = Field(
        None,
        description="who sends it as a bearer token may pause, resume and restart flows; without one nobody may. "
        "`${NAME}` and `${file:/path}` are resolved",
    )
    faust_pages: Switch = Field(False, description="whether Faust's own pages `/table` and `/router` are served")

    @field_validator("token")
    @classmethod
    def _long(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise ValueError(f"a token that cannot be guessed has at least {SHORTEST_TOKEN} characters")
        return token
