"""Which topics a cluster may hold."""

import pytest

from app.core.residency import Policy, blocked

GDPR = Policy(name="gdpr", topics=("customers*",), allow_zones=frozenset({"gdpr"}), deny_zones=frozenset({"test"}))


@pytest.mark.parametrize(
    ("zones", "reason"),
    [
        ({"eu", "gdpr"}, None),
        ({"us"}, "policy 'gdpr' allows only gdpr, the target is in us"),
        (set(), "policy 'gdpr' allows only gdpr, the target is in no zone"),
        ({"gdpr", "test"}, "policy 'gdpr' denies the zone test"),
    ],
)
def test_deny_beats_allow(zones: set[str], reason: str | None) -> None:
    assert blocked("customers-eu", frozenset(zones), [GDPR]) == reason


def test_other_topics_go_anywhere() -> None:
    assert blocked("orders", frozenset(), [GDPR]) is None
    assert blocked("customers", frozenset({"us"}), []) is None


def test_a_policy_follows_its_topics_over_hops() -> None:
    us = frozenset({"us"})
    assert blocked("us-east.customers-eu", us, [GDPR]) is None
    assert blocked("us-east.customers-eu", us, [GDPR], earlier=["customers-eu"]) is not None
    by_copy = Policy(name="copies", topics=("us-east.*",), deny_zones=us)
    assert blocked("us-east.customers-eu", us, [by_copy], earlier=["customers-eu"]) is not None


def test_a_policy_without_allowed_zones_only_denies() -> None:
    policy = Policy(name="no-test", topics=("re:.*",), deny_zones=frozenset({"test"}))
    assert blocked("t", frozenset(), [policy]) is None
    assert blocked("t", frozenset({"test", "eu"}), [policy]) is not None


def test_every_policy_has_to_agree() -> None:
    other = Policy(name="other", topics=("*",), deny_zones=frozenset({"eu"}))
    assert blocked("customers", frozenset({"eu", "gdpr"}), [GDPR, other]) == "policy 'other' denies the zone eu"


def test_a_bad_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="re:\\("):
        Policy(name="p", topics=("re:(",))
