"""How whoever fills a source must produce, so that what is missing on a target is the replicator's fault."""

from __future__ import annotations

#: A repeat or a gap of the producer would look like one of the replicator's. With several requests in flight even an
#: idempotent producer loses its first records to a topic that was just created: the first request may come before the
#: broker leads the partition, and the second is taken whatever its sequence number (KAFKA-15591).
ONE_AT_A_TIME = {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
