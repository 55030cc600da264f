"""Requests about consumer groups that aiokafka does not have yet, as its protocol classes: many groups in one request.

Names and order of the fields are Kafka's.
"""

from __future__ import annotations

from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

_TEXT = CompactString("utf-8")


class ListGroupsResponse_v4(Response):  # type: ignore[misc]
    """Version 4, Kafka 2.6."""

    API_KEY = 16
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        (
            "groups",
            CompactArray(("group", _TEXT), ("protocol_type", _TEXT), ("state", _TEXT), ("tags", TaggedFields)),
        ),
        ("tags", TaggedFields),
    )


class ListGroupsRequest_v4(RequestStruct):  # type: ignore[misc]
    """Version 4, Kafka 2.6."""

    FLEXIBLE_VERSION = True
    API_KEY = 16
    API_VERSION = 4
    RESPONSE_TYPE = ListGroupsResponse_v4
    SCHEMA = Schema(("states_filter", CompactArray(_TEXT)), ("tags", TaggedFields))


class ListGroups(Request[ListGroupsRequest_v4]):  # type: ignore[misc]
    """The groups that a broker coordinates, with their states."""

    API_KEY = 16

    def build(self, request_struct_class: type[Any]) -> Any:
        """Return the request of a version."""
        return request_struct_class([], {})


class FindCoordinatorResponse_v4(Response):  # type: ignore[misc]
    """Version 4, Kafka 3.0."""

    API_KEY = 10
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "coordinators",
            CompactArray(
                ("key", _TEXT),
                ("node_id", Int32),
                ("host", _TEXT),
                ("port", Int32),
                ("error_code", Int16),
                ("error_message", _TEXT),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class FindCoordinatorRequest_v4(RequestStruct):  # type: ignore[misc]
    """Version 4, Kafka 3.0."""

    FLEXIBLE_VERSION = True
    API_KEY = 10
    API_VERSION = 4
    RESPONSE_TYPE = FindCoordinatorResponse_v4
    SCHEMA = Schema(("key_type", Int8), ("coordinator_keys", CompactArray(_TEXT)), ("tags", TaggedFields))


class FindCoordinators(Request[FindCoordinatorRequest_v4]):  # type: ignore[misc]
    """Who coordinates these groups."""

    API_KEY = 10

    def __init__(self, groups: list[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: type[Any]) -> Any:
        """Return the request of a version."""
        return request_struct_class(0, self._groups, {})


class OffsetFetchResponse_v8(Response):  # type: ignore[misc]
    """Version 8, Kafka 3.0."""

    API_KEY = 9
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            CompactArray(
                ("group", _TEXT),
                (
                    "topics",
                    CompactArray(
                        ("topic", _TEXT),
                        (
                            "partitions",
                            CompactArray(
                                ("partition", Int32),
                                ("offset", Int64),
                                ("leader_epoch", Int32),
                                ("metadata", _TEXT),
                                ("error_code", Int16),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("tags", TaggedFields),
                    ),
                ),
                ("error_code", Int16),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class OffsetFetchRequest_v8(RequestStruct):  # type: ignore[misc]
    """Version 8, Kafka 3.0."""

    FLEXIBLE_VERSION = True
    API_KEY = 9
    API_VERSION = 8
    RESPONSE_TYPE = OffsetFetchResponse_v8
    SCHEMA = Schema(
        (
            "groups",
            CompactArray(
                ("group", _TEXT),
                (
                    "topics",
                    CompactArray(("topic", _TEXT), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


class FetchOffsets(Request[OffsetFetchRequest_v8]):  # type: ignore[misc]
    """Everything that these groups committed."""

    API_KEY = 9

    def __init__(self, groups: list[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: type[Any]) -> Any:
        """Return the request of a version."""
        return request_struct_class([(group, None, {}) for group in self._groups], False, {})
