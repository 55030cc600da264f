"""A short form of `make chaos`: workers are killed and frozen and brokers restarted under load, then all is counted."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest

from dev.chaos.run import Run

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_nothing_is_lost_whatever_dies(tmp_path: Path, delivery):
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    said: list[str] = []
    with Run(
        folder=tmp_path, seed=seed, delivery=delivery, records=60_000, seconds=30, say=said.append, session=6
    ) as run:
        for _ in range(3):
            run.start_worker()
        producing = threading.Thread(target=run.produce, daemon=True)
        producing.start()
        run.disturb(time.monotonic() + 30, kills=2)
        producing.join(60)
        assert run.produced == run.records
        verdict = run.count()
    assert not verdict.failed(delivery), f"CHAOS_SEED={seed} {delivery}: {verdict}\n" + "\n".join(said)
