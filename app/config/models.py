"""The models of `replicator.yaml`. A `Field` is the only place where a default, a bound and a description stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from app.config.base import Count, Model, Names, Rate, Switch
from app.config.runtime import RuntimeConfig
from app.config.sync import Start, SyncConfig
from app.config.web import WebConfig
from app.core.naming import Naming, RenameMap, RenameTemplate, collides
from app.core.naming import problems as illegal
from app.core.residency import Policy
from app.core.selection import Selector, never_a_topic, never_selected

_NAMINGS = "naming is default, identity, {map: {topic: name}} or {template: text with {topic}}"
_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
_PASSWORD_LOGIN = ("username", "password")
_TOKEN_LOGIN = ("token_url", "client_id", "client_secret")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


class SecurityConfig(Model):
    """How clients connect to a cluster."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field("PLAINTEXT", description="Kafka's name")
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "PLAIN", description="SASL mechanism"
    )
    username: str | None = Field(None, description="SASL user")
    password: SecretStr | None = Field(None, description="SASL password; `${NAME}` and `${file:/path}` are resolved")
    token_url: str | None = Field(
        None,
        description="OAUTHBEARER: where tokens are fetched (client credentials grant); https, or http to 127.0.0.1",
    )
    client_id: str | None = Field(None, description="OAUTHBEARER: who asks for tokens")
    client_secret: SecretStr | None = Field(None, description="OAUTHBEARER: the secret of client_id")
    scope: str | None = Field(None, description="OAUTHBEARER: what the token is to be good for")
    ca_location: str | None = Field(None, description="file with the certificate authorities, PEM")
    certificate_location: str | None = Field(None, description="file with the client's certificate, PEM")
    key_location: str | None = Field(None, description="file with the client's key, PEM")
    key_password: SecretStr | None = Field(None, description="password of the key file")

    @model_validator(mode="after")
    def _complete(self) -> SecurityConfig:
        if "SASL" in self.protocol and not all(map(self._has, self._login)):
            how = " with mechanism OAUTHBEARER" if self.mechanism == "OAUTHBEARER" else ""
            *most, last = self._login
            raise ValueError(f"protocol {self.protocol}{how} needs {', '.join(most)} and {last}")
        self._refuse_unused()
        if self.key_location is not None and self.certificate_location is None:
            raise ValueError("key_location needs certificate_location")
        return self

    @field_validator("token_url")
    @classmethod
    def _protected(cls, value: str | None) -> str | None:
        """The secret goes to this address."""
        parts = urlsplit(value or "https://none")
        local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and local)):
            raise ValueError("an https address is needed (http only to this machine), since the secret is sent to it")
        if parts.username or parts.password:
            raise ValueError("who asks is named by client_id and client_secret, not within the address")
        return value

    @property
    def _login(self) -> tuple[str, ...]:
        """The settings that the mechanism needs."""
        return _TOKEN_LOGIN if self.mechanism == "OAUTHBEARER" else _PASSWORD_LOGIN

    def _has(self, name: str) -> bool:
        """Brokers refuse an empty password, so one is a reference that led to nothing."""
        value = getattr(self, name)
        return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)

    def _refuse_unused(self) -> None:
        """Who gives a password or a certificate means to be authenticated; the protocol alone decides whether."""
        tokens = (*_TOKEN_LOGIN, "scope")
        if "SASL" not in self.protocol:
            self._refuse(f"protocol {self.protocol}", "mechanism", *_PASSWORD_LOGIN, *tokens)
        else:
            unused = _PASSWORD_LOGIN if self.mechanism == "OAUTHBEARER" else tokens
            self._refuse(f"mechanism {self.mechanism}", *unused)
        if not self.protocol.endswith("SSL"):
            # The server of tokens may have a certificate of the same authority.
            ca = () if self.mechanism == "OAUTHBEARER" else ("ca_location",)
            self._refuse(f"protocol {self.protocol}", *ca, "certificate_location", "key_location", "key_password")

    def _refuse(self, what: str, *unused: str) -> None:
        if given := [name for name in unused if name in self.model_fields_set and getattr(self, name) is not None]:
            raise ValueError(f"{what} makes no use of {', '.join(given)}")


class ClusterConfig(Model):
    """A Kafka cluster; its alias is the key it stands under."""

    bootstrap: str = Field(description="`host:port`, several separated by commas")
    region: str | None = Field(None, description="for people; shown in the status")
    zones: Names = Field((), description="what residency policies speak of")
    security: SecurityConfig = Field(SecurityConfig(), description="how to connect")

    @field_validator("bootstrap")
    @classmethod
    def _addresses(cls, value: str) -> str:
        addresses = [address.strip() for address in value.split(",")]
        for address in addresses:
            found = _ADDRESS.fullmatch(address)
            if found is None or not 0 < int(found[2]) < 65536:
                raise ValueError(f"{_without_login(address)!r} is not host:port")
        return ",".join(addresses)


def _without_login(address: str) -> str:
    """What stands before an `@` may be a password."""
    return f"...@{address.rpartition('@')[2]}" if "@" in address else address


class NameFilter(Model):
    """A selection: exclude wins, an empty include matches nothing, `*` is a glob, `re:` starts a regular expression."""

    include: Names = Field(("*",), description="what is taken")
    exclude: Names = Field((), description="what is left although it is included")

    @model_validator(mode="after")
    def _valid(self) -> NameFilter:
        Selector(include=self.include, exclude=self.exclude)
        return self


class TopicFilter(NameFilter):
    """A selection of topics. An entry that can match none, such as MM2's `^orders$`, would exclude nothing unseen."""

    @field_validator("include", "exclude")
    @classmethod
    def _possible(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        return _possible_topics(entries)


def _possible_topics(entries: tuple[str, ...]) -> tuple[str, ...]:
    if hints := [hint for entry in entries if (hint := never_a_topic(entry))]:
        raise ValueError("; ".join(hints))
    return entries


class Limits(Model):
    """How much of the network and of the clusters a flow may take."""

    bytes_per_second: Rate = Field(
        None,
        description="what all workers together carry of the flow at most: bytes of record batches as the source keeps "
        "them, compressed; without it there is no limit",
    )


class FlowConfig(Model):
    """Replication from one cluster to another."""

    source: str = Field(alias="from", description="alias of the source cluster")
    target: str = Field(alias="to", description="alias of the target cluster")
    topics: TopicFilter = Field(TopicFilter(), description="topics of the source")
    groups: NameFilter = Field(NameFilter(), description="consumer groups whose offsets are translated")
    naming: Literal["default", "identity"] | Mapping[str, Any] = Field(
        "default",
        description="names on the target: `default` (`<source>.<topic>`), `identity`, `{map: {orders: orders-eu}}` or "
        "`{template: '{topic}.{source}'}`",
    )
    separator: str = Field(".", description="between source alias and topic")
    delivery: Literal["at-least-once", "exactly-once"] = Field("at-least-once", description="promise of the flow")
    tasks: Count = Field(8, le=1024, description="parts in which workers share the flow")
    heartbeats: Switch = Field(True, description="whether the leader writes heartbeats for this flow")
    sync: SyncConfig = Field(SyncConfig(), description="what is kept in step besides records")
    start: Start = Field(
        "earliest",
        description="where the topics begin that are there when the flow runs first; later ones are copied in full",
    )
    on_loss: Literal["report", "stop"] = Field(
        "report",
        description="when a source lost records that were not copied: go on behind them, or hold the partition",
    )
    limits: Limits = Field(Limits(), description="how fast the flow may go")
    on_rejected: Literal["hold", "dead-letter"] = Field(
        "hold",
        description="when the target refuses a record (too large, its timestamp, no key): hold the partition until the "
        "topic takes it, or set the record aside in `krabka-replicator-dead-letter.<flow>` and go on",
    )

    @property
    def name(self) -> str:
        """The flow's name in topics, groups and transactional ids."""
        return f"{self.source}__{self.target}"

    def core_naming(self, aliases: frozenset[str]) -> Naming:
        """Return the naming rules. Raises ValueError when they cannot be used."""
        renames: RenameMap | RenameTemplate | None = None
        if not isinstance(self.naming, str):
            renames = _renames(self.naming)
        return Naming(
            source=self.source,
            target=self.target,
            aliases=aliases,
            style="identity" if self.naming == "identity" else "default",
            separator=self.separator,
            renames=renames,
        )

    @field_validator("naming", mode="before")
    @classmethod
    def _known_naming(cls, value: object) -> object:
        if value not in ("default", "identity") and not isinstance(value, Mapping):
            raise ValueError(_NAMINGS)
        if isinstance(value, Mapping):
            _renames(value)
        return value

    @model_validator(mode="after")
    def _valid(self) -> FlowConfig:
        if self.source == self.target:
            raise ValueError(f"from and to are both {self.source!r}; a flow needs two clusters")
        self.core_naming(frozenset())
        return self


def _renames(naming: Mapping[str, Any]) -> RenameMap | RenameTemplate:
    match dict(naming):
        case {"template": str(text), **rest} if not rest:
            return RenameTemplate(text=text)
        case {"map": dict(names), **rest} if not rest and all(isinstance(name, str) for name in names.values()):
            _refuse_names(names.values())
            return RenameMap(names=names)
    raise ValueError(_NAMINGS)


def _refuse_names(names: Collection[str]) -> None:
    found = [reason for name in names if (reason := illegal(name))]
    found += [f"{name!r} cannot be a target: {reason}" for name in names if (reason := never_selected(name))]
    found += [
        f"naming.map gives {name!r} to more than one topic"
        if name == other
        else f"Kafka takes {name!r} and {other!r} for one name"
        for name, other in collides(names)
    ]
    if found:
        raise ValueError("; ".join(found))


class Residency(Model):
    """Where data may be."""

    allow_zones: frozenset[str] = Field(frozenset(), description="the target must be in one of these, if any are named")
    deny_zones: frozenset[str] = Field(
        frozenset(), description="the target must be in none of these; beats allow_zones"
    )


class PolicyConfig(Model):
    """A rule about where topics may be copied to."""

    name: str = Field(min_length=1, description="named in every refusal")
    topics: Names = Field(min_length=1, description="source topics, as in an include list")
    residency: Residency = Field(description="zones")

    def core_policy(self) -> Policy:
        """Return the rule. Raises ValueError when a topic pattern cannot be used."""
        zones = self.residency
        return Policy(name=self.name, topics=self.topics, allow_zones=zones.allow_zones, deny_zones=zones.deny_zones)

    @field_validator("topics")
    @classmethod
    def _possible(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        return _possible_topics(entries)

    @model_validator(mode="after")
    def _valid(self) -> PolicyConfig:
        self.core_policy()
        return self


class Settings(Model):
    """The whole configuration."""

    clusters: Mapping[str, ClusterConfig] = Field(description="clusters by alias")
    flows: tuple[FlowConfig, ...] = Field(description="what is replicated")
    policies: tuple[PolicyConfig, ...] = Field((), description="residency")
    runtime: RuntimeConfig = Field(RuntimeConfig(), description="timings and limits")
    web: WebConfig = Field(WebConfig(), description="the pages of a worker")
    only_targets: tuple[str, ...] = Field((), exclude=True, description="from KRABKA_REPLICATOR_CLUSTERS")
    group_instance_id: str | None = Field(None, exclude=True, description="from KRABKA_REPLICATOR_GROUP_INSTANCE_ID")

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets that this worker serves, in the order of the flows."""
        targets = dict.fromkeys(flow.target for flow in self.flows)
        return tuple(target for target in targets if not self.only_targets or target in self.only_targets)

    def flows_to(self, target: str) -> tuple[FlowConfig, ...]:
        """Return the flows into a cluster."""
        return tuple(flow for flow in self.flows if flow.target == target)

    @field_validator("clusters")
    @classmethod
    def _aliases(cls, clusters: Mapping[str, ClusterConfig]) -> Mapping[str, ClusterConfig]:
        for alias in clusters:
            if not _ALIAS.fullmatch(alias) or "__" in alias:
                raise ValueError(
                    f"alias {alias!r}: letters, digits, '.', '_' and '-', and no '__' (it parts flow names)"
                )
        return clusters
