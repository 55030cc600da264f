"""What a target may have against the records of a partition, and what an operator can do about it."""

from __future__ import annotations

from dataclasses import dataclass

from aiokafka.errors import (
    InvalidTimestampError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
)

from app.errors import Cause


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why records are refused, what an operator can change, and what it is about."""

    reason: str
    remedy: str
    kind: Cause = "topic"


_TOO_LARGE = Refusal("a record is too large", "raise max.message.bytes of that topic", "record")

_REFUSALS: dict[type[BaseException], Refusal] = {
    MessageSizeTooLargeError: _TOO_LARGE,
    RecordListTooLargeError: _TOO_LARGE,
    InvalidTimestampError: Refusal(
        "a record's timestamp is out of range",
        "widen message.timestamp.before.max.ms or message.timestamp.after.max.ms of that topic",
        "record",
    ),
    TopicAuthorizationFailedError: Refusal("not authorised", "grant WRITE on that topic"),
    InvalidTopicError: Refusal("the topic takes no records of others", "choose another name for the copy"),
    PolicyViolationError: Refusal("a policy of the cluster forbids it", "ask who set the policy"),
    # aiokafka does not know INVALID_RECORD (87), which is what a compacted topic answers to a record without a key.
    UnknownError: Refusal(
        "invalid record",
        "a topic with cleanup.policy=compact takes no record without a key; the broker's log says more",
        "no-key",
    ),
}


def refusal(error: BaseException | None) -> Refusal | None:
    """Return why, when an error is about the records of one partition; None for all other errors."""
    return None if error is None else _REFUSALS.get(type(error))
