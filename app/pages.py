"""What the Faust web server answers."""

from __future__ import annotations

import faust
from faust.web import Request, Response, View

from app.runtime.supervisor import Supervisor
from app.status import problems, status


def register(app: faust.App, supervisor: Supervisor) -> None:
    """Add the pages to the application."""

    @app.page("/status", name="status")
    async def status_page(view: View, request: Request) -> Response:
        """Answer the status document."""
        return view.json(status(supervisor))

    @app.page("/health", name="health")
    async def health_page(view: View, request: Request) -> Response:
        """Answer 200 when every flow runs, else 503 with the reasons."""
        reasons = problems(supervisor)
        return view.json({"healthy": not reasons, "reasons": reasons}, status=503 if reasons else 200)
