"""Real Kafka brokers on this machine, from Python packages alone: no Java, Maven or Docker needs to be installed.

By hand: `python -m dev.kafka up|down|status`. In code: `Broker`, `start_all`.
"""

from dev.kafka.broker import Broker, BrokerFailed, start_all
from dev.kafka.jars import JarsMissing, class_path, java
from dev.kafka.ports import PortBusy, free_port, require_free

__all__ = [
    "Broker",
    "BrokerFailed",
    "JarsMissing",
    "PortBusy",
    "class_path",
    "free_port",
    "java",
    "require_free",
    "start_all",
]
