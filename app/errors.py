"""What can go wrong, by what an operator does about it.

    ReplicatorError
    ├── ConfigurationError       change the configuration; the worker does not start
    ├── FatalError               nothing gets better by waiting; the flow stays failed until something is changed
    │   ├── SameCluster          two aliases lead to one cluster
    │   ├── ResidencyViolation   a write that a policy forbids was stopped; a defect of ours, please report it
    │   └── WorkersDisagree      other workers run the flow with another number of tasks
    └── TransientError           tried again, with growing pauses
        ├── ClusterUnavailable   a cluster does not answer
        ├── TopicNotCreated      a topic of ours is refused by the target
        ├── TaskFenced           another worker owns the task now
        └── TaskFailed           the task is made anew from its last commit
            ├── SourceCutOff     as TaskFailed; the source's log was cut off and has grown again
            ├── TargetGone       as TaskFailed; a topic of copies was deleted, or created anew by somebody else
            └── RecordsRefused   as TaskFailed, but one partition, which the target refuses, is held

Errors carry fields; `str()` is one sentence that says what happened, where, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: What a refusal is about: single records, whichever they are; those that have no key; or the topic, so all of them.
Cause = Literal["record", "no-key", "topic"]


class ReplicatorError(Exception):
    """Everything that this application raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a configuration: `where` is a path such as `flows[0].to`."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class ConfigurationError(ReplicatorError):
    """The configuration cannot be used; `problems` names everything that is wrong with it."""

    def __init__(self, origin: str, problems: tuple[Problem, ...]) -> None:
        super().__init__(origin, problems)
        self.origin = origin
        self.problems = problems

    def __str__(self) -> str:
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"the configuration {self.origin} cannot be used:{lines}"


class FatalError(ReplicatorError):
    """Waiting does not help."""


class TransientError(ReplicatorError):
    """Waiting may help."""


class SameCluster(FatalError):
    """Two aliases lead to one cluster, so every record would be copied onto itself or twice."""

    def __init__(self, *, alias_a: str, alias_b: str, cluster_id: str) -> None:
        super().__init__(alias_a, alias_b, cluster_id)
        self.alias_a, self.alias_b, self.cluster_id = alias_a, alias_b, cluster_id

    def __str__(self) -> str:
        return (
            f"clusters {self.alias_a} and {self.alias_b} are one cluster (id {self.cluster_id}); "
            f"correct the bootstrap of one of them, or remove it"
        )


class ResidencyViolation(FatalError):
    """Selection let a topic through that a policy keeps from the target; the writer stopped it."""

    def __init__(self, *, flow: str, topic: str, reason: str) -> None:
        super().__init__(flow, topic, reason)
        self.flow, self.topic, self.reason = flow, topic, reason

    def __str__(self) -> str:
        return (
            f"{self.flow}: a record of {self.topic} was about to be written although {self.reason}; "
            f"nothing was written, the topic stands still, please report this"
        )


class WorkersDisagree(FatalError):
    """Workers that disagree about the number of tasks would carry a partition twice."""

    def __init__(self, *, flow: str, tasks: int, running: int | None = None) -> None:
        super().__init__(flow, tasks, running)
        self.flow, self.tasks, self.running = flow, tasks, running

    def __str__(self) -> str:
        return (
            f"{self.flow}: this worker is configured with {self.tasks} tasks, but workers that run already use "
            f"{self.running or 'another number'}; stop those first, this one starts by itself then"
        )


class ClusterUnavailable(TransientError):
    """A cluster does not answer, or not in time."""

    def __init__(self, *, alias: str, detail: str) -> None:
        super().__init__(alias, detail)
        self.alias, self.detail = alias, detail

    def __str__(self) -> str:
        return f"cluster {self.alias} is not available: {self.detail}"


class TopicNotCreated(TransientError):
    """A topic that the replicator keeps its own state in cannot be created."""

    def __init__(self, *, topic: str, reason: str) -> None:
        super().__init__(topic, reason)
        self.topic, self.reason = topic, reason

    def __str__(self) -> str:
        return f"topic {self.topic} cannot be created: {self.reason}; create it by hand or grant the right to"


class TaskFenced(TransientError):
    """Another worker has started the task, or its transaction expired; what was not committed is read again."""

    def __init__(self, *, flow: str, task: int) -> None:
        super().__init__(flow, task)
        self.flow, self.task = flow, task

    def __str__(self) -> str:
        return f"{self.flow}: task {self.task} is fenced: another worker owns it, or its transaction took too long"


class TaskFailed(TransientError):
    """A write or commit of a task failed; what was not committed is read again."""

    def __init__(self, *, flow: str, task: int, reason: str) -> None:
        super().__init__(flow, task, reason)
        self.flow, self.task, self.reason = flow, task, reason

    def __str__(self) -> str:
        return f"{self.flow}: task {self.task} cannot write to the target: {self.reason}"


class SourceCutOff(TaskFailed):
    """A partition's log was cut off before the place up to which it was read, and holds other records there now."""

    def __init__(self, *, flow: str, task: int, topic: str, partition: int) -> None:
        super().__init__(flow=flow, task=task, reason="the source's log was cut off")
        self.args = (flow, task, topic, partition)
        self.topic, self.partition = topic, partition

    def __str__(self) -> str:
        return (
            f"{self.flow}: {self.topic}-{self.partition}: the source lost records that were read, as after an unclean "
            f"election of a leader or in a new topic; task {self.task} looks how far"
        )


class TargetGone(TaskFailed):
    """A topic that held copies is not there any more, or is another one of the same name."""

    def __init__(self, *, flow: str, task: int, topic: str) -> None:
        super().__init__(flow=flow, task=task, reason=f"topic {topic} was deleted there; it is made and filled again")
        self.args = (flow, task, topic)
        self.topic = topic


class RecordsRefused(TaskFailed):
    """The target refuses records of one partition; `remedy` is what an operator can change. The others go on.

    `kind` tells whether single records are the cause, and which.
    """

    def __init__(
        self, *, flow: str, task: int, topic: str, partition: int, reason: str, remedy: str, kind: Cause = "topic"
    ) -> None:
        super().__init__(flow=flow, task=task, reason=reason)
        self.args = (flow, task, topic, partition, reason, remedy, kind)
        self.topic, self.partition, self.remedy, self.kind = topic, partition, remedy, kind

    def __str__(self) -> str:
        return f"the target refuses records for {self.topic}-{self.partition}: {self.reason}; {self.remedy}"
