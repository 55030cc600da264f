"""`make chaos`: kill, freeze and restart workers and brokers under load, then count every record.

Environment: CHAOS_SEED (replays a schedule), CHAOS_SECONDS (180), CHAOS_RECORDS (1000000), CHAOS_DELIVERY
(exactly-once), CHAOS_WORKERS (3). Exit code 0 only if nothing was lost, nothing out of order and, exactly once, nothing
doubled.
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
        with Run(folder=folder, seed=seed, delivery=delivery, records=records, seconds=seconds, say=say) as run:
            for _ in range(int(os.environ.get("CHAOS_WORKERS", "3"))):
                run.start_worker()
            producing = threading.Thread(target=run.produce, daemon=True)
            producing.start()
            run.disturb(time.monotonic() + seconds)
            producing.join(SETTLE)
            say(f"all written ({run.produced} acknowledged); {run.kills} kills; waiting for the rest")
            verdict = run.count()
    except (BrokerFailed, JarsMissing) as error:
        say(str(error))
        return 1
    doubled = verdict.doubled if delivery == "exactly-once" else 0
    say(
        f"{verdict.records} on the target: {verdict.lost} lost, {verdict.doubled} doubled, "
        f"{verdict.disordered} partitions out of order"
    )
    failed = bool(verdict.lost or doubled or verdict.disordered)
    if failed:
        say(f"FAILED: replay with CHAOS_SEED={seed}; logs are kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


SETTLE = 200.0

if __name__ == "__main__":
    sys.exit(main())
