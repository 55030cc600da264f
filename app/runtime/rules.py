"""From configuration to the pure rules of a flow."""

from __future__ import annotations

from app.config import FlowConfig, Settings
from app.core.flow_rules import FlowRules
from app.core.network import circle
from app.core.selection import Selector


def flow_rules(config: FlowConfig, settings: Settings) -> FlowRules:
    """Return what decides about the topics of a flow."""
    aliases = frozenset(settings.clusters)
    links = [(flow.source, flow.target) for flow in settings.flows]
    return FlowRules(
        naming=config.core_naming(aliases),
        selector=Selector(include=config.topics.include, exclude=config.topics.exclude),
        policies=tuple(policy.core_policy() for policy in settings.policies),
        target_in_front=any(
            flow.source == config.target and flow.core_naming(aliases).names_origin("") for flow in settings.flows
        ),
        leads_back=bool(circle((config.source, config.target), links)),
        origins_hidden=any(flow.naming != "default" for flow in settings.flows_to(config.source)),
        target_zones=frozenset(settings.clusters[config.target].zones),
    )
