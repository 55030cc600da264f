"""Pause, resume and restart: written to the target once, followed by every worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from app.config import FlowConfig, Settings
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin
from app.kafka.follow import Follower, Publisher
from app.runtime import own_topics
from tables.controls import Control, controls_of, controls_topic, stored_controls

Action = Literal["pause", "resume", "restart"]
Obey = Callable[[Mapping[str, Control]], None]


def follower(admin: Admin, settings: Settings, obey: Obey) -> Follower:
    """Return what follows the wishes for the flows into a target; `obey` gets each as it comes.

    No Faust GlobalTable: with one, a wish that came while Faust rebalanced was now and then followed by some workers
    and missed by others.
    """

    def learn(key: bytes, value: bytes | None) -> None:
        obey(controls_of([(key, value)]))

    return Follower(admin, settings.clusters[admin.alias], settings.runtime, controls_topic(admin.alias), learn)


def changed(control: Control, action: Action) -> Control:
    """Return the wish after an action, newer than the one before."""
    at = max(time.time(), control.at + 0.001)
    if action == "restart":
        return replace(control, at=at, restart=uuid.uuid4().hex)
    return replace(control, at=at, paused=action == "pause")


async def order(flow: FlowConfig, settings: Settings, action: Action) -> Control:
    """Write the wish to the flow's target; return it when it is durable. Raises `ReplicatorError`."""
    await own_topics.ensure(flow.target, settings, own_topics.of_target(flow.target, settings))
    now = (await stored_controls(flow.target, settings)).get(flow.name, Control())
    wanted = changed(now, action)
    publisher = Publisher(settings.clusters[flow.target], settings.runtime)
    try:
        await publisher.publish(controls_topic(flow.target), [(flow.name.encode(), wanted.value())])
    except Exception as error:  # of the client, whose errors are at home in app.kafka
        raise ClusterUnavailable(alias=flow.target, detail=str(error) or type(error).__name__) from error
    finally:
        await publisher.close()
    return wanted
