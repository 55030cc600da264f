"""The tree of errors, and their sentences."""

import inspect
import re

import pytest

from app import errors
from app.errors import (
    ClusterUnavailable,
    ConfigurationError,
    Problem,
    ReplicatorError,
    SameCluster,
    SourceCutOff,
    TargetGone,
    TaskFailed,
    TaskFenced,
    TopicNotCreated,
    WorkersDisagree,
)

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, ReplicatorError)]


def printed_parents() -> dict[str, str]:
    """Return child and parent as the tree in the module's docstring shows them."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^ {4}([│├└─ ]*)(\w+Error|\w+)(?: |$)", errors.__doc__ or "", re.MULTILINE):
        path = [*path[: len(indent) // 4], name]
        if len(path) > 1:
            parents[name] = path[-2]
    return parents


def test_the_printed_tree_is_the_real_one() -> None:
    assert printed_parents() == {cls.__name__: cls.__base__.__name__ for cls in CLASSES if cls is not ReplicatorError}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            ConfigurationError("f.yaml", (Problem("flows[0].to", "unknown"), Problem("", "empty"))),
            "the configuration f.yaml cannot be used:\n  flows[0].to: unknown\n  empty",
        ),
        (
            SameCluster(alias_a="a", alias_b="b", cluster_id="c1"),
            "clusters a and b are one cluster (id c1); correct the bootstrap of one of them, or remove it",
        ),
        (
            WorkersDisagree(flow="a__b", tasks=8, running=4),
            "a__b: this worker is configured with 8 tasks, but workers that run already use 4; stop those first, this "
            "one starts by itself then",
        ),
        (ClusterUnavailable(alias="a", detail="refused"), "cluster a is not available: refused"),
        (
            TopicNotCreated(topic="t", reason="denied"),
            "topic t cannot be created: denied; create it by hand or grant the right to",
        ),
        (
            TaskFenced(flow="a__b", task=3),
            "a__b: task 3 is fenced: another worker owns it, or its transaction took too long",
        ),
        (TaskFailed(flow="a__b", task=3, reason="full"), "a__b: task 3 cannot write to the target: full"),
        (
            SourceCutOff(flow="a__b", task=3, topic="t", partition=1),
            "a__b: t-1: the source lost records that were read, as after an unclean election of a leader or in a new "
            "topic; task 3 looks how far",
        ),
        (
            TargetGone(flow="a__b", task=3, topic="a.t"),
            "a__b: task 3 cannot write to the target: topic a.t was deleted there; it is made and filled again",
        ),
    ],
)
def test_sentences(error: ReplicatorError, sentence: str) -> None:
    assert str(error) == sentence
