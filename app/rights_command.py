"""`faust -A app rights`: what has to be granted to the users of the clusters, as commands for Kafka's own tool."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace

import click
import faust
from faust.cli import AppCommand, argument, option

from app.commands import chosen, configured
from app.config import ClusterConfig, FlowConfig, Settings
from app.core.needed_rights import Right, Wants, needed_rights
from app.runtime.rules import flow_rules

#: Kafka's tool wants `Read` where its protocol says READ.
_WORDS = {"READ": "Read", "WRITE": "Write", "CREATE": "Create", "ALTER": "Alter", "DELETE": "Delete"} | {
    "DESCRIBE": "Describe",
    "DESCRIBE_CONFIGS": "DescribeConfigs",
    "ALTER_CONFIGS": "AlterConfigs",
}


def register(app: faust.App, settings: Settings | None) -> None:
    """Add the command to the application."""

    @app.command(
        argument("flow", required=False),
        option("--principal", help="Who is to get the rights, such as User:replicator, on every cluster."),
        option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    )
    async def rights(self: AppCommand, flow: str | None, principal: str | None, as_json: bool) -> None:
        """Show what the replicator's users have to be allowed, and no more, as commands of kafka-acls.

        No cluster is asked. Without --principal it is the user that the cluster's security section names.
        """
        found = configured(app, settings)
        wanted = merged(right for one in chosen(found, flow) for right in rights_of(one, found))
        if as_json or self.json:
            click.echo(json.dumps({"rights": [asdict(right) for right in wanted]}, indent=2))
        else:
            for line in commands(wanted, found, principal):
                click.echo(line)


def rights_of(flow: FlowConfig, settings: Settings) -> list[Right]:
    """Return what a flow needs."""
    wants = Wants(
        naming=flow_rules(flow, settings).naming,
        topics=flow.topics.include,
        groups=flow.groups.include,
        exactly_once=flow.delivery == "exactly-once",
        topic_configs=flow.sync.topic_configs,
        acls=flow.sync.acls,
        group_offsets=flow.sync.group_offsets,
        deletions=flow.sync.deletions,
    )
    return needed_rights(wants)


def merged(rights: Iterable[Right]) -> list[Right]:
    """Return each resource once, with all that is needed of it, cluster by cluster."""
    found: dict[tuple[str, str, str, str], Right] = {}
    for right in rights:
        key = (right.cluster, right.resource, right.pattern, right.name)
        before = found.get(key, right)
        found[key] = replace(
            right,
            operations=tuple(dict.fromkeys((*before.operations, *right.operations))),
            why="; ".join(dict.fromkeys((*before.why.split("; "), *right.why.split("; ")))),
        )
    return sorted(found.values(), key=lambda right: right.cluster)


def commands(rights: Iterable[Right], settings: Settings, principal: str | None) -> Iterator[str]:
    """Yield a command of kafka-acls for each right, behind a line that says what it is for."""
    for right in rights:
        cluster = settings.clusters[right.cluster]
        names = ["--cluster"] if right.resource == "cluster" else [f"--{right.resource}", right.name]
        if right.pattern == "PREFIXED":
            names += ["--resource-pattern-type", "prefixed"]
        operations = [word for operation in right.operations for word in ("--operation", _WORDS[operation])]
        words = ["kafka-acls.sh", "--bootstrap-server", cluster.bootstrap, "--add"]
        words += ["--allow-principal", principal or _principal(cluster), *operations, *names]
        yield f"# {right.cluster}: {right.why}"
        yield shlex.join(words)


def _principal(cluster: ClusterConfig) -> str:
    """Return the user as Kafka calls it unless the brokers map names; `USER` where the login does not tell."""
    security = cluster.security
    return f"User:{security.username or security.client_id or 'USER'}"
