"""Traffic such as real topics see: keys, headers, tombstones, several partitions and codecs, at a modest rate."""

from __future__ import annotations

import json
import random
import threading
import time
from dataclasses import dataclass

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dev.kafka.producing import ONE_AT_A_TIME

RECORDS_PER_SECOND = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic of the demonstration."""

    name: str
    partitions: int
    codec: str
    compacted: bool = False


TOPICS = (
    Topic(name="orders", partitions=3, codec="none"),
    Topic(name="customers", partitions=4, codec="zstd"),
    Topic(name="clicks", partitions=6, codec="lz4"),
    Topic(name="profiles", partitions=2, codec="gzip", compacted=True),
)


def create_topics(bootstrap: str) -> None:
    """Create the demonstration's topics."""
    wishes = [
        NewTopic(topic.name, topic.partitions, 1, config={"cleanup.policy": "compact"} if topic.compacted else {})
        for topic in TOPICS
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(wishes).values():
        future.result(20)


class Traffic(threading.Thread):
    """Writes records until stopped; `produced` counts what the source acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="traffic", daemon=True)
        self.produced = 0
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._random = random.Random(7)
        self._producers = {
            topic.codec: Producer(
                {
                    "bootstrap.servers": bootstrap,
                    **ONE_AT_A_TIME,
                    "linger.ms": 20,
                    "compression.type": topic.codec,
                    "log_level": 0,
                }
            )
            for topic in TOPICS
        }

    def run(self) -> None:
        """Produce in steps of a tenth of a second."""
        number = 0
        while not self._stopping.wait(0.1):
            for _ in range(RECORDS_PER_SECOND // 10):
                self._produce(number)
                number += 1
            for producer in self._producers.values():
                producer.poll(0)
        for producer in self._producers.values():
            producer.flush(20)

    def _produce(self, number: int) -> None:
        topic = self._random.choice(TOPICS)
        key = f"{topic.name}-{self._random.randrange(500)}"
        tombstone = topic.compacted and self._random.random() < 0.1
        body = {"number": number, "at": time.time(), "note": "x" * self._random.randrange(200)}
        self._producers[topic.codec].produce(
            topic.name,
            key=key,
            value=None if tombstone else json.dumps(body),
            headers=[("trace", b"%d" % number), ("kind", topic.name.encode())],
            on_delivery=self._delivered,
        )

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            self.produced += 1
        else:
            self.errors.append(str(error))

    def stop(self) -> None:
        """Stop after what is under way is acknowledged."""
        self._stopping.set()
        self.join(30)
