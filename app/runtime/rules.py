"""From configuration to the pure rules of a flow."""

from __future__ import annotations

from app.config import FlowConfig, Settings
from app.core.flow_rules import FlowRules
from app.core.naming import Naming
from app.core.residency import Policy
from app.core.selection import Selector


def flow_rules(config: FlowConfig, settings: Settings) -> FlowRules:
    """Return what decides about the topics of a flow."""
    return FlowRules(
        naming=Naming(
            source=config.source,
            target=config.target,
            aliases=frozenset(settings.clusters),
            style=config.naming_style,
            separator=config.separator,
        ),
        selector=Selector(include=config.topics.include, exclude=config.topics.exclude),
        policies=tuple(
            Policy(
                name=policy.name,
                topics=policy.topics,
                allow_zones=policy.residency.allow_zones,
                deny_zones=policy.residency.deny_zones,
            )
            for policy in settings.policies
        ),
        target_zones=frozenset(settings.clusters[config.target].zones),
    )
