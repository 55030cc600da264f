"""A producer that goes on while a test does something to the workers."""

from __future__ import annotations

import threading
import time

from confluent_kafka import Producer

from dev.kafka.producing import ONE_AT_A_TIME


class Steady:
    """Writes numbers at a steady rate, dealt to the partitions in turn, until the block ends; `count` were written."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rate: int) -> None:
        self.count = 0
        self._failed: list[object] = []
        self._topic = topic
        self._partitions = partitions
        self._rate = rate
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **ONE_AT_A_TIME})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert self._producer.flush(30) == 0
        assert not self._failed, self._failed[:3]

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stop.wait(0.02):
            while self.count < (time.monotonic() - begun) * self._rate:
                partition = self.count % self._partitions
                self._producer.produce(self._topic, b"%d" % self.count, partition=partition, on_delivery=self._told)
                self.count += 1
            self._producer.poll(0)

    def _told(self, error: object, _: object) -> None:
        if error is not None:
            self._failed.append(error)
