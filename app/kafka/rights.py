"""Access rules on topics, and the memory of those that we added."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from app.config import ClusterConfig, RuntimeConfig
from app.core.rights import Acl, remembered
from app.errors import ClusterUnavailable
from app.kafka.admin import Admin
from app.kafka.positions import read_to_end

#: Compacted: a key for each rule that a flow added, a tombstone when it was removed.
ACLS_TOPIC = "krabka-replicator-acls"


async def topic_acls(admin: Admin) -> frozenset[Acl] | None:
    """Return all rules on topics; None when the cluster has no authorizer. Raises ClusterUnavailable."""
    everything = AclBindingFilter(
        ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    try:
        found = await asyncio.wrap_future(admin.client.describe_acls(everything))
    except KafkaException as error:
        if error.args[0].code() == KafkaError.SECURITY_DISABLED:
            return None
        raise ClusterUnavailable(alias=admin.alias, detail=error.args[0].str()) from error
    return frozenset(map(_acl, found))


async def add_acls(admin: Admin, acls: Iterable[Acl]) -> None:
    """Add rules. Raises ClusterUnavailable with the first refusal."""
    for future in admin.client.create_acls([_binding(acl) for acl in acls]).values():
        await _done(admin, future)


async def remove_acls(admin: Admin, acls: Iterable[Acl]) -> None:
    """Remove exactly these rules. Raises ClusterUnavailable with the first refusal."""
    for future in admin.client.delete_acls([_filter(acl) for acl in acls]).values():
        await _done(admin, future)


async def _done(admin: Admin, future: Any) -> None:
    try:
        await asyncio.wrap_future(future)
    except KafkaException as error:
        raise ClusterUnavailable(alias=admin.alias, detail=error.args[0].str()) from error


async def added_by(flow: str, admin: Admin, cluster: ClusterConfig, runtime: RuntimeConfig) -> frozenset[Acl]:
    """Return the rules that a flow added and has not removed. Raises ClusterUnavailable."""
    if ACLS_TOPIC not in await admin.describe([ACLS_TOPIC]):
        return frozenset()
    records = await read_to_end(admin, cluster, runtime, ACLS_TOPIC, [0], decided=True)
    alive = {key: value for key, value in records if key is not None}
    return remembered(flow, [json.loads(key) for key, value in alive.items() if value is not None])


def _acl(binding: AclBinding) -> Acl:
    return Acl(
        name=binding.name,
        pattern=binding.resource_pattern_type.name,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation.name,
        permission=binding.permission_type.name,
    )


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(*_fields(acl))


def _filter(acl: Acl) -> AclBindingFilter:
    return AclBindingFilter(*_fields(acl))


def _fields(acl: Acl) -> tuple[Any, ...]:
    return (
        ResourceType.TOPIC,
        acl.name,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )
