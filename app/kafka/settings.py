"""Topic settings between confluent-kafka's form and ours."""

from __future__ import annotations

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType

from app.core.topics import AlterConfigs, Setting


def setting(entry: ConfigEntry) -> Setting:
    """Return a described setting."""
    return Setting(
        value=entry.value,
        own=ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG,
        fixed=entry.is_read_only or entry.is_sensitive,
    )


def edits(change: AlterConfigs) -> ConfigResource:
    """Return the request that sets and removes single settings of a topic."""
    entries = [ConfigEntry(n, v, incremental_operation=AlterConfigOpType.SET) for n, v in change.set.items()]
    entries += [ConfigEntry(n, None, incremental_operation=AlterConfigOpType.DELETE) for n in change.remove]
    return ConfigResource(ResourceType.TOPIC, change.remote_topic, incremental_configs=entries)
