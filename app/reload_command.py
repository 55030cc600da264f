"""`faust -A app reload`: asks workers, by their web pages, to take up their configuration."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable

import click

from app.config import Settings
from app.runtime.changes import Changes

#: Seconds a worker has: a flow that is built anew first commits what it has written.
TIMEOUT = 60.0


def run_reload(settings: Settings, urls: Iterable[str]) -> None:
    """Ask each worker and print what it answers; exit with 1 when one refused or did not answer."""
    if settings.web.token is None:
        click.echo("web.token is not configured, so workers take no order: send each a SIGHUP instead", err=True)
        raise SystemExit(1)
    answers = [_ask(url.rstrip("/"), settings.web.token.get_secret_value()) for url in urls]
    if not all(answers):
        raise SystemExit(1)


def _ask(url: str, token: str) -> bool:
    request = urllib.request.Request(  # noqa: S310 - the operator names the worker
        f"{url}/reload", method="POST", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            found = Changes(**{name: tuple(flows) for name, flows in json.load(answer).items()})
    except urllib.error.HTTPError as error:
        with error:
            click.echo(f"{url}: refused: {_reason(error)}", err=True)
        return False
    except (OSError, ValueError) as error:
        click.echo(f"{url}: no answer: {error}", err=True)
        return False
    click.echo(f"{url}: {found}")
    return True


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return str(error)
