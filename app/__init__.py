"""krabka-replicator: a cross-cluster Kafka replicator as a Faust application.

`faust -A app worker` finds the application here. It is built when it is first asked for, so that importing
`app.core` loads neither Faust nor a configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Faust puts the working folder on the path only while it imports this module.
import agents
import tables

if TYPE_CHECKING:
    from app.service import app as app

__all__ = ["agents", "app", "main", "tables"]


def __getattr__(name: str) -> Any:
    if name == "app":
        from app.service import app

        return app
    raise AttributeError(name)


def main() -> None:
    """Run the command line, as `faust -A app` does."""
    from app.service import app

    app.main()
