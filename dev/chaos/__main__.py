"""`make chaos`: kill, freeze and restart workers and brokers under load, then count every record.

Environment: CHAOS_SEED (replays a schedule), CHAOS_SECONDS (180), CHAOS_RECORDS (1000000), CHAOS_KILLS (20, at least),
CHAOS_DELIVERY (exactly-once), CHAOS_WORKERS (3, at most). Exit code 0 only if nothing was lost or is out of order,
every position is where the source ends and, exactly once, nothing is doubled.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from dev.chaos.run import Run
from dev.kafka import BrokerFailed, JarsMissing


def main() -> int:
    """Run it; return the exit code."""
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(1_000_000))
    seconds = float(os.environ.get("CHAOS_SECONDS", "180"))
    records = int(os.environ.get("CHAOS_RECORDS", "1000000"))
    delivery = os.environ.get("CHAOS_DELIVERY", "exactly-once")
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"chaos {time.monotonic() - begun:6.1f} s: {line}", flush=True)

    say(f"seed {seed}, {delivery}, {records} records in {seconds:g} s")
    folder = Path(tempfile.mkdtemp(prefix="krabka-chaos-"))
    try:
        workers = int(os.environ.get("CHAOS_WORKERS", "3"))
        with Run(
            folder=folder, seed=seed, delivery=delivery, records=records, seconds=seconds, say=say, most=workers
        ) as run:
            for _ in range(workers):
                run.start_worker()
            producing = threading.Thread(target=run.produce, daemon=True)
            producing.start()
            run.disturb(time.monotonic() + seconds, int(os.environ.get("CHAOS_KILLS", "20")))
            producing.join(SETTLE)
            say(f"all written ({run.produced} acknowledged); {run.kills} kills; waiting for the rest")
            verdict = run.count()
    except (BrokerFailed, JarsMissing) as error:
        say(str(error))
        return 1
    say(
        f"{verdict.records} on the target: {verdict.lost} lost, {verdict.doubled} doubled, "
        f"{verdict.disordered} partitions out of order, {verdict.misplaced} positions off the end"
    )
    failed = verdict.failed(delivery)
    if failed:
        say(f"FAILED: replay with CHAOS_SEED={seed}; logs are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


SETTLE = 200.0

if __name__ == "__main__":
    sys.exit(main())
