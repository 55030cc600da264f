"""What the Faust web server answers."""

from __future__ import annotations

import errno
import hmac
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import faust
from faust.web import Request, Response, View
from faust.web.drivers.aiohttp import Web

from agents.controls import Action, order
from app.config import Settings
from app.errors import ConfigurationError, ReplicatorError
from app.metrics import Metrics
from app.observer import Observer
from app.runtime.reload import Reloader
from app.runtime.supervisor import Supervisor
from app.status import problems, status

log = logging.getLogger(__name__)

FILES = Path(__file__).parent / "web"

#: The dashboard loads nothing from elsewhere, runs no inline script, and is in nobody's frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Pages(Web):  # type: ignore[misc]
    """Faust's web server without Faust's own page at `/`. One that cannot listen does not keep records waiting."""

    production_blueprints = ()

    async def start_server(self) -> None:
        """Listen, or say once why not: data is worth more than its picture."""
        try:
            await super().start_server()
        except OSError as error:
            where = f"{self.app.conf.web_bind}, port {self.app.conf.web_port}"
            reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror or error})"
            log.error(  # noqa: TRY400 - nothing of ours failed
                "%s %s: this worker replicates without its web server; start it with another --web-port", where, reason
            )


def register(app: faust.App, supervisor: Supervisor, observer: Observer, reloader: Reloader) -> None:
    """Add the pages to the application."""
    _documents(app, supervisor, observer, reloader)
    _dashboard(app)
    _controls(app, supervisor)
    _reload(app, supervisor, reloader)


def _documents(app: faust.App, supervisor: Supervisor, observer: Observer, reloader: Reloader) -> None:
    metrics = Metrics(supervisor)

    @app.page("/status", name="status")
    async def status_page(view: View, request: Request) -> Response:
        """Answer the status document."""
        return view.json(status(supervisor, observer.events.events, reloader), headers=HEADERS)

    @app.page("/history", name="history")
    async def history_page(view: View, request: Request) -> Response:
        """Answer the rates and the lag of the last minutes."""
        return view.json(observer.history(), headers=HEADERS)

    @app.page("/health", name="health")
    async def health_page(view: View, request: Request) -> Response:
        """Answer 200 when every flow runs, else 503 with the reasons."""
        reasons = problems(supervisor)
        return view.json({"healthy": not reasons, "reasons": reasons}, status=503 if reasons else 200)

    @app.page("/metrics", name="metrics")
    async def metrics_page(view: View, request: Request) -> Response:
        """Answer in Prometheus' text form."""
        return view.bytes(metrics.text(), content_type="text/plain", headers={"X-Content-Type-Options": "nosniff"})


def _dashboard(app: faust.App) -> None:
    page = (FILES / "index.html").read_text(encoding="utf-8")

    @app.page("/", name="dashboard")
    async def dashboard(view: View, request: Request) -> Response:
        """Answer the dashboard."""
        return view.html(page, headers=HEADERS)

    app.web.add_static("/web", FILES)


def _controls(app: faust.App, supervisor: Supervisor) -> None:
    class ControlPage(View):  # type: ignore[misc]
        """Pauses, resumes or restarts a flow, for whom shows the token."""

        async def post(self, request: Request, flow: str, action: str) -> Response:
            """Answer 202 when the wish is durable on the flow's target; the workers follow within seconds."""
            if (reason := refused(supervisor.settings, request.headers.get("Authorization", ""))) is not None:
                return self.json({"error": reason}, status=403)
            if flow not in supervisor.flows or action not in get_args(Action):
                return self.json({"error": "there is no such flow or action here"}, status=404)
            return await self._order(flow, action)

        async def _order(self, flow: str, action: Any) -> Response:
            try:
                control = await order(supervisor.flows[flow].config, supervisor.settings, action)
            except ReplicatorError as error:
                return self.json({"error": str(error)}, status=503)
            log.warning("flow %s: %s was asked for on the web page", flow, action)
            return self.json({"flow": flow, "paused": control.paused}, status=202)

    app.page("/flows/{flow}/{action}", name="control")(ControlPage)


def _reload(app: faust.App, supervisor: Supervisor, reloader: Reloader) -> None:
    class ReloadPage(View):  # type: ignore[misc]
        """Has this worker take up its configuration as it is on disk now, for whom shows the token."""

        async def post(self, request: Request) -> Response:
            """Answer 200 with what becomes of each flow, 409 when the configuration cannot be used."""
            if (reason := refused(supervisor.settings, request.headers.get("Authorization", ""))) is not None:
                return self.json({"error": reason}, status=403)
            try:
                found = await reloader.reload()
            except ConfigurationError as error:
                return self.json({"error": str(error)}, status=409)
            return self.json(asdict(found))

    app.page("/reload", name="reload")(ReloadPage)


def refused(settings: Settings, authorization: str) -> str | None:
    """Return why a request may change nothing, None when it may. The comparison takes the same time for every token."""
    token = settings.web.token
    if token is None:
        return "no token is configured (web.token), so nothing can be changed here"
    scheme, _, shown = authorization.partition(" ")
    right = hmac.compare_digest(shown.strip().encode(), token.get_secret_value().encode())
    if right and scheme.lower() == "bearer":
        return None
    return "a bearer token is needed: Authorization: Bearer <web.token>"
