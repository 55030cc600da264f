"""Bytes that MM2 and its clients read, and our own."""

import pytest

from app.core.formats import Checkpoint, Heartbeat, OffsetSync, Position, parse_position_key, position_key

GOLDEN = [
    (
        Heartbeat(source="us-east", target="eu-west", timestamp=100),
        "000775732d65617374000765752d77657374",
        "00000000000000000064",
    ),
    (
        Checkpoint(group="analytics", topic="orders", partition=7, upstream=1000, downstream=742, metadata=""),
        "0009616e616c797469637300066f726465727300000007",
        "000000000000000003e800000000000002e60000",
    ),
    (
        OffsetSync(topic="orders", partition=7, upstream=1000, downstream=742),
        "00066f726465727300000007",
        "00000000000003e800000000000002e6",
    ),
]
Golden = Heartbeat | Checkpoint | OffsetSync


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_golden_bytes(record: Golden, key: str, value: str) -> None:
    assert record.key().hex() == key
    assert record.value().hex() == value
    assert type(record).decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@pytest.mark.parametrize("record", [record for record, _, _ in GOLDEN])
def test_malformed_bytes_are_refused(record: Golden) -> None:
    key, value = record.key(), record.value()
    for bad_key in (None, b"", key[:-1], key + b"\0", b"\xff" * len(key), b"\0\1\xff" + key):
        with pytest.raises(ValueError):
            type(record).decode(bad_key, value)
    for bad_value in (None, b"", value[:-1], value + b"\0"):
        with pytest.raises(ValueError):
            type(record).decode(key, bad_value)


@pytest.mark.parametrize("record", [record for record, _, _ in GOLDEN[:2]])
def test_later_versions_are_refused(record: Golden) -> None:
    with pytest.raises(ValueError, match="version 1 is unknown"):
        type(record).decode(record.key(), b"\0\1" + record.value()[2:])


def test_a_string_too_long_for_kafka_is_refused() -> None:
    with pytest.raises(ValueError, match="32768 bytes"):
        Checkpoint(group="g" * 32768, topic="t", partition=0, upstream=0, downstream=0).key()


def test_the_key_of_a_position_keeps_names_apart() -> None:
    assert position_key("a__b", "größe-1", 2) == '["a__b","größe-1",2]'.encode()
    assert position_key("f", "a-1", 2) != position_key("f", "a", 12)
    assert parse_position_key(b'["a__b", "a-1", 2]') == ("a__b", "a-1", 2)


@pytest.mark.parametrize("key", [b"", b"a-1-2", b"{}", b'["f","t"]', b'["f","t","0"]', b'["f","t",true]', b"\xff"])
def test_other_keys_are_refused(key: bytes) -> None:
    with pytest.raises(ValueError):
        parse_position_key(key)


def test_a_position_is_a_json_object() -> None:
    position = Position(offset=12, tasks=8, topic_id="JkhlTpCpRGOxAfrHy9nG4w", target_id="b", leader_epoch=3)
    assert (
        position.value()
        == b'{"offset":12,"tasks":8,"topic_id":"JkhlTpCpRGOxAfrHy9nG4w","target_id":"b","leader_epoch":3}'
    )
    assert Position.decode(position.value()) == position
    assert Position.decode(b'{"offset":0,"tasks":1,"topic_id":null,"later":1}') == Position(offset=0, tasks=1)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"7",
        b'{"offset":1}',
        b'{"offset":-1,"tasks":1,"topic_id":null}',
        b'{"offset":true,"tasks":1,"topic_id":null}',
        b'{"offset":1,"tasks":1,"topic_id":7}',
        b'{"offset":1,"tasks":1,"topic_id":null,"target_id":7}',
        b'{"offset":1,"tasks":1,"topic_id":null,"leader_epoch":"3"}',
    ],
)
def test_other_values_are_refused(value: bytes) -> None:
    with pytest.raises(ValueError):
        Position.decode(value)
