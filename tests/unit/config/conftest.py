"""A configuration file to write and load, and the one that most tests change a little."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from app.config import Settings, load_settings
from app.errors import ConfigurationError

BASE = """\
clusters:
  us-east: {bootstrap: "127.0.0.1:19092", zones: [us]}
  eu-west: {bootstrap: "127.0.0.1:29092"}
flows:
  - {from: us-east, to: eu-west}
"""

Load = Callable[..., Settings]
Refused = Callable[..., list[str]]


@pytest.fixture
def base() -> str:
    return BASE


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str | bytes, environ: Mapping[str, str] | None = None) -> Settings:
        path = tmp_path / "replicator.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_settings(path, environ or {})

    return load


@pytest.fixture
def refused(load: Load) -> Refused:
    """Load what has to be refused, and return the problems in a fixed order."""

    def refused(text: str | bytes, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            load(text, environ)
        return sorted(map(str, caught.value.problems))

    return refused
