"""Child processes that end with this process, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

#: Runs in the child: asks the kernel for a SIGKILL when the parent is gone (PR_SET_PDEATHSIG, kept over exec), then
#: becomes the command. Not a preexec_fn, which Python 3.12 and later warn about when threads run.
_BOUND = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""

#: The kernel takes the end of the thread that forked for the end of the parent, so this one, which lives as long as the
#: process, starts every child.
_STARTER = ThreadPoolExecutor(1, thread_name_prefix="kafka-starter")


def spawn(command: Sequence[str], log_path: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, its output appended to the log."""
    bound = [sys.executable, "-I", "-S", "-c", _BOUND, str(os.getpid())] if sys.platform == "linux" else []
    return _STARTER.submit(_spawn, [*bound, *command], log_path).result()


def _spawn(command: list[str], log_path: Path) -> subprocess.Popen[bytes]:
    with log_path.open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
