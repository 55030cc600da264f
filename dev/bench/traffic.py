"""`python -m dev.bench.traffic BOOTSTRAP TOPIC PARTITIONS RATE`: records that carry the time of their birth."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer

#: Seconds between two looks at what is due.
TICK = 0.001


#: One request per record is more than a single broker of two cores takes at high rates.
BUSY, BUSY_LINGER_MS = 1000, 5


def linger(rate: int) -> int:
    """Return the milliseconds that the producer collects records for."""
    return BUSY_LINGER_MS if rate >= BUSY else 0


def main(bootstrap: str, topic: str, partitions: int, rate: int) -> None:
    """Send until the process is killed."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": linger(rate), "acks": "all", "log_level": 0})
    begun, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - begun) * rate)
        for number in range(sent, due):
            producer.produce(topic, b"%d" % time.time_ns(), partition=number % partitions)
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(TICK)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
