"""The numbers that place a partition; they are stored, so they may never change."""

from app.core.tasks import POSITION_SLOTS, slot_of, slots_of_task, task_of

CHECKED = "123456789"  # its CRC-32 is the algorithm's published check value, 0xCBF43926: 6 modulo 8, 6 modulo 32


def test_the_task_is_the_checksum_of_the_topic_plus_the_partition() -> None:
    assert [task_of(CHECKED, partition, 8) for partition in range(4)] == [6, 7, 0, 1]
    assert task_of(CHECKED, 0, 1) == 0
    assert task_of(CHECKED, 0, 1 << 32) == 0xCBF43926


def test_names_are_taken_as_utf_8() -> None:
    assert task_of("größe", 0, 1000) == 153


def test_slots_do_not_depend_on_the_number_of_tasks() -> None:
    assert POSITION_SLOTS == 32
    assert [slot_of(CHECKED, CHECKED, partition) for partition in (0, 1, 32)] == [12, 13, 12]


def test_the_owner_of_a_task_reads_only_the_slots_it_may_need() -> None:
    assert slots_of_task(CHECKED, 0, 8) == {6, 14, 22, 30}
    assert slots_of_task(CHECKED, 1, 12) == {3, 7, 11, 15, 19, 23, 27, 31}
    assert slots_of_task(CHECKED, 0, 1) == slots_of_task(CHECKED, 2, 5) == set(range(32))
    assert slots_of_task(CHECKED, 0, 64) == slots_of_task(CHECKED, 32, 64) == {6}
