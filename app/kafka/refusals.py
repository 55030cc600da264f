"""What a target may have against the records of a partition, and what an operator can do about it."""

from __future__ import annotations

from aiokafka.errors import (
    InvalidTimestampError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
)

_TOO_LARGE = ("a record is too large", "raise max.message.bytes of that topic")

_REFUSALS: dict[type[BaseException], tuple[str, str]] = {
    MessageSizeTooLargeError: _TOO_LARGE,
    RecordListTooLargeError: _TOO_LARGE,
    InvalidTimestampError: (
        "a record's timestamp is out of range",
        "widen message.timestamp.before.max.ms or message.timestamp.after.max.ms of that topic",
    ),
    TopicAuthorizationFailedError: ("not authorised", "grant WRITE on that topic"),
    InvalidTopicError: ("the topic takes no records of others", "choose another name for the copy"),
    PolicyViolationError: ("a policy of the cluster forbids it", "ask who set the policy"),
    # aiokafka does not know INVALID_RECORD (87), which is what a compacted topic answers to a record without a key.
    UnknownError: (
        "invalid record",
        "a topic with cleanup.policy=compact takes no record without a key; the broker's log says more",
    ),
}


def refusal(error: BaseException) -> tuple[str, str] | None:
    """Return reason and remedy when an error is about the records of one partition; None for all other errors."""
    return _REFUSALS.get(type(error))
