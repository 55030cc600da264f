"""Ports on 127.0.0.1."""

from __future__ import annotations

import socket


class PortBusy(Exception):
    """Somebody else listens on a port that was asked for."""

    def __init__(self, port: int, purpose: str) -> None:
        super().__init__(port, purpose)
        self.port, self.purpose = port, purpose

    def __str__(self) -> str:
        return f"port {self.port} for {self.purpose} is in use; stop what listens there or choose another port"


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def require_free(port: int, purpose: str) -> None:
    """Raise `PortBusy` when the port is taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            raise PortBusy(port, purpose) from None
