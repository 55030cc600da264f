"""Ports on 127.0.0.1."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

#: Away from the ports that services are known by.
RANGE = (20000, 32000)
#: Processes that look at the same time, such as parallel tests, look in different parts of it.
PARTS = 12
TRIES = 100
OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")

#: Not the module's own generator: tests seed that one, and would meet the same ports again and again.
_CHANCE = random.SystemRandom()
_given: set[int] = set()


class PortBusy(Exception):
    """Somebody else listens on a port that was asked for."""

    def __init__(self, port: int, purpose: str) -> None:
        super().__init__(port, purpose)
        self.port, self.purpose = port, purpose

    def __str__(self) -> str:
        return f"port {self.port} for {self.purpose} is in use; stop what listens there or choose another port"


def free_port() -> int:
    """Return a port that nobody listens on now, a new one with every call.

    It lies below the ports that the system gives to outgoing connections. Among those, a client that tries a stopped
    broker over and over is connected to itself one day (seen after 10 000 tries), and holds the port against its
    restart.
    """
    size = max(1, (RANGE[1] - RANGE[0]) // PARTS)
    start = RANGE[0] + size * (os.getpid() % min(PARTS, RANGE[1] - RANGE[0]))
    for _ in range(TRIES if RANGE[1] <= _first_outgoing() else 0):
        port = _CHANCE.randrange(start, start + size)
        if port not in _given and _is_free(port):
            break
    else:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
    _given.add(port)
    return port


def require_free(port: int, purpose: str) -> None:
    """Raise `PortBusy` when the port is taken."""
    if not _is_free(port):
        raise PortBusy(port, purpose)


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _first_outgoing() -> int:
    """Return where the ports of outgoing connections begin."""
    try:
        return int(OUTGOING.read_text(encoding="ascii").split()[0])
    except FileNotFoundError:
        return 49152  # not Linux; what IANA recommends and the others keep to
