"""What is created, grown and changed on the target, and what is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.topics import (
    CONFIG_EXCLUDE,
    AlterConfigs,
    ConfigRules,
    CreateTopic,
    DeleteTopic,
    GrowTopic,
    OwnTopic,
    Setting,
    TopicState,
    as_json,
    described,
    differences,
    plan_topic,
)

RULES = ConfigRules()


def own(value: str) -> Setting:
    return Setting(value=value, own=True)


def default(value: str) -> Setting:
    return Setting(value=value, own=False)


def topic(name: str = "orders", partitions: int = 3, **settings: Setting) -> TopicState:
    return TopicState(
        name=name, partitions=partitions, settings={key.replace("_", "."): value for key, value in settings.items()}
    )


def copy(partitions: int = 3, **settings: Setting) -> TopicState:
    return topic("us.orders", partitions, **settings)


def test_what_is_missing_is_created_with_the_settings_that_the_source_topic_has_of_its_own():
    source = topic(retention_ms=own("5000"), cleanup_policy=own("compact"), segment_bytes=default("1000000"))
    (step,) = plan_topic(source, "us.orders", None, RULES)
    assert step == CreateTopic(
        topic="orders",
        remote_topic="us.orders",
        partitions=3,
        config={"cleanup.policy": "compact", "retention.ms": "5000"},
    )
    assert described(step) == "create us.orders, 3 partitions, set cleanup.policy=compact, retention.ms=5000"


@pytest.mark.parametrize("name", CONFIG_EXCLUDE)
def test_excluded_settings_are_neither_carried_nor_removed(name):
    source = TopicState(name="orders", partitions=1, settings={name: own("1")})
    assert plan_topic(source, "us.orders", None, RULES)[0].config == {}
    by_hand = TopicState(name="us.orders", partitions=1, settings={name: own("2")})
    assert plan_topic(source, "us.orders", by_hand, RULES) == []
    assert plan_topic(topic(partitions=1), "us.orders", by_hand, RULES) == []


def test_the_two_limits_of_timestamps_are_excluded_under_the_topic_s_own_names():
    assert RULES.excluded("message.timestamp.before.max.ms")
    assert RULES.excluded("message.timestamp.after.max.ms")
    assert not RULES.excluded("max.message.bytes")


def test_a_larger_target_keeps_its_partitions_and_a_smaller_one_grows():
    assert plan_topic(topic(partitions=2), "us.orders", copy(5), RULES) == []
    (step,) = plan_topic(topic(partitions=4), "us.orders", copy(2), RULES)
    assert step == GrowTopic(topic="orders", remote_topic="us.orders", present=2, partitions=4)
    assert described(step) == "grow us.orders from 2 to 4 partitions"


def test_settings_follow_the_source_and_leave_with_it():
    source = topic(retention_ms=own("5000"), cleanup_policy=default("delete"))
    (step,) = plan_topic(source, "us.orders", copy(retention_ms=default("1"), cleanup_policy=own("compact")), RULES)
    assert step == AlterConfigs(
        topic="orders", remote_topic="us.orders", set={"retention.ms": "5000"}, remove=("cleanup.policy",)
    )
    assert described(step) == "change us.orders, set retention.ms=5000, remove cleanup.policy"
    assert plan_topic(source, "us.orders", copy(retention_ms=own("5000")), RULES) == []


def test_a_default_that_happens_to_equal_the_source_s_setting_is_pinned():
    (step,) = plan_topic(topic(retention_ms=own("7")), "us.orders", copy(retention_ms=default("7")), RULES)
    assert step.set == {"retention.ms": "7"}


def test_the_source_s_defaults_are_carried_when_the_flow_says_so():
    rules = ConfigRules(defaults="source")
    source = topic(retention_ms=default("7"), segment_ms=default("9"))
    assert plan_topic(source, "us.orders", None, rules)[0].config == {"retention.ms": "7", "segment.ms": "9"}
    (step,) = plan_topic(source, "us.orders", copy(retention_ms=default("7"), segment_ms=default("8")), rules)
    assert (step.set, step.remove) == ({"segment.ms": "9"}, ())


def test_read_only_and_secret_settings_are_left_alone():
    fixed = replace(own("1"), fixed=True)
    assert plan_topic(topic(odd=fixed), "us.orders", None, RULES)[0].config == {}
    assert plan_topic(topic(), "us.orders", copy(odd=fixed), RULES) == []


def test_settings_that_may_not_be_seen_are_not_taken_for_absent():
    hidden = TopicState(name="orders", partitions=3, settings=None)
    assert plan_topic(hidden, "us.orders", copy(retention_ms=own("5000")), RULES) == []
    assert plan_topic(topic(retention_ms=own("1")), "us.orders", replace(hidden, name="us.orders"), RULES) == []


def test_exclude_entries_are_patterns_and_a_bad_one_is_refused():
    rules = ConfigRules(exclude=("retention.*", "re:max\\..+"))
    assert rules.excluded("retention.ms")
    assert rules.excluded("max.message.bytes")
    assert not rules.excluded("min.insync.replicas")
    with pytest.raises(ValueError, match="regular expression"):
        ConfigRules(exclude=("re:(",))


def test_own_topics_with_other_values_are_named():
    wanted = [OwnTopic("offsets", 32, "compact")]
    assert differences(wanted, {}) == []
    assert differences([OwnTopic("tasks", 4, "delete", or_more=True)], {"tasks": topic("tasks", 8)}) == []
    assert differences([OwnTopic("tasks", 4, "delete", or_more=True)], {"tasks": topic("tasks", 2)}) == [
        "topic tasks has 2 partitions, 4 are expected"
    ]
    assert differences(wanted, {"offsets": topic("offsets", 32, cleanup_policy=own("compact"))}) == []
    assert differences(wanted, {"offsets": topic("offsets", 8, cleanup_policy=default("delete"))}) == [
        "topic offsets has 8 partitions, 32 are expected",
        "topic offsets has cleanup.policy=delete, compact is expected",
    ]


def test_a_step_is_shown_with_its_kind():
    step = DeleteTopic(topic="orders", remote_topic="us.orders")
    assert as_json(step) == {"step": "DeleteTopic", "topic": "orders", "remote_topic": "us.orders"}
    assert described(step) == "delete us.orders, its source topic orders is gone"
