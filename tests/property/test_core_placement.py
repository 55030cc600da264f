"""Tasks, slots and record formats, for every input."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.formats import Checkpoint, Heartbeat, OffsetSync, Position, parse_position_key, position_key
from app.core.tasks import POSITION_SLOTS, slot_of, slots_of_task, task_of

names = st.text(max_size=20)
partitions = st.integers(0, 2**31 - 1)
offsets = st.integers(-(2**63), 2**63 - 1)
junk = st.binary(max_size=40) | st.none()


@given(names, names, partitions, st.integers(1, 200))
def test_a_position_is_always_in_a_slot_that_its_task_s_owner_reads(
    flow: str, topic: str, partition: int, tasks: int
) -> None:
    task = task_of(topic, partition, tasks)
    assert 0 <= task < tasks
    assert 0 <= slot_of(flow, topic, partition) < POSITION_SLOTS
    assert slot_of(flow, topic, partition) in slots_of_task(flow, task, tasks)


@given(names, names, st.integers(1, 100))
def test_no_slot_is_read_in_vain_and_together_all_are(flow: str, topic: str, tasks: int) -> None:
    needed: dict[int, set[int]] = {task: set() for task in range(tasks)}
    for partition in range(tasks * POSITION_SLOTS):
        needed[task_of(topic, partition, tasks)].add(slot_of(flow, topic, partition))
    assert needed == {task: slots_of_task(flow, task, tasks) for task in range(tasks)}


@given(names, partitions, st.integers(1, 64))
def test_a_topic_s_partitions_are_dealt_evenly(topic: str, first: int, tasks: int) -> None:
    assert {task_of(topic, first + step, tasks) for step in range(tasks)} == set(range(tasks))


@given(names, names, partitions, offsets, offsets)
def test_mm2_records_survive_the_way_through_bytes(one: str, two: str, number: int, up: int, down: int) -> None:
    for record in (
        Heartbeat(source=one, target=two, timestamp=up),
        Checkpoint(group=one, topic=two, partition=number, upstream=up, downstream=down, metadata=one),
        OffsetSync(topic=one, partition=number, upstream=up, downstream=down),
    ):
        assert type(record).decode(record.key(), record.value()) == record


@given(st.sampled_from([Heartbeat, Checkpoint, OffsetSync]), junk, junk)
def test_any_bytes_are_read_whole_or_refused(
    kind: type[Heartbeat | Checkpoint | OffsetSync], key: bytes | None, value: bytes | None
) -> None:
    try:
        record = kind.decode(key, value)
    except ValueError:
        return
    assert (record.key(), record.value()) == (key, value)


@given(names, names, partitions)
def test_position_keys_tell_everything_apart(flow: str, topic: str, partition: int) -> None:
    assert parse_position_key(position_key(flow, topic, partition)) == (flow, topic, partition)


@given(st.integers(0, 2**63 - 1), st.integers(1, 1000), names | st.none())
def test_positions_survive_the_way_through_bytes(offset: int, tasks: int, topic_id: str | None) -> None:
    position = Position(offset=offset, tasks=tasks, topic_id=topic_id)
    assert Position.decode(position.value()) == position


@given(st.binary(max_size=30))
def test_any_other_key_or_value_of_a_position_is_refused(data: bytes) -> None:
    for read in (parse_position_key, Position.decode):
        try:
            read(data)
        except ValueError:
            continue
        raise AssertionError(f"{data!r} was accepted")
