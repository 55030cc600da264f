"""What the models and the rules between them refuse, in the words that an operator reads."""

import pytest
from pydantic import ValidationError

from app.config import FlowConfig

from .conftest import Load, Refused

FLOW = "to: eu-west"
NAMINGS = "naming is default, identity, {map: {topic: name}} or {template: text with {topic}}"


def test_all_problems_at_once(refused: Refused, base: str) -> None:
    text = base.replace(FLOW, 'to: eu-wets, tasks: 0, topics: {include: "*"}').replace('"127.0.0.1:29092"', '"${NO}"')
    environ = {"KRABKA_REPLICATOR_FOO": "1", "KRABKA_REPLICATOR_CLUSTERS": "zz"}
    assert refused(text + "polices: []\nruntime: {heartbeat_interval: 5, supervisor_intervall: 1s}\n", environ) == [
        "KRABKA_REPLICATOR_CLUSTERS: no flow goes to 'zz', known are eu-wets",
        "KRABKA_REPLICATOR_FOO: unknown variable, did you mean 'KRABKA_REPLICATOR_CONFIG'?",
        "clusters.eu-west.bootstrap: environment variable NO is not set",
        "flows[0].tasks: it has to be a whole number from 1 to 2147483647",
        "flows[0].to: unknown cluster 'eu-wets', did you mean 'eu-west'?",
        "flows[0].topics.include: write a list: ['*']",
        "runtime.heartbeat_interval: 5 is not a duration such as 500ms, 5s or 2m",
        "runtime: unknown key 'supervisor_intervall', did you mean 'supervisor_interval'?",
        "unknown key 'polices', did you mean 'policies'?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("zones:", "zoness:", "clusters.us-east: unknown key 'zoness', did you mean 'zones'?"),
        (FLOW, FLOW + ", task: 1", "flows[0]: unknown key 'task', did you mean 'tasks'?"),
        (FLOW, FLOW + ", topics: {exlude: [a]}", "flows[0].topics: unknown key 'exlude', did you mean 'exclude'?"),
        ("flows:", "only_targets: [a]\nflows:",
         "unknown key 'only_targets', known are clusters, flows, policies, runtime, web"),
        ("zones:", "security: {passwort: x}, zones:",
         "clusters.us-east.security: unknown key 'passwort', did you mean 'password'?"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_answered_with_the_nearest(
    refused: Refused, base: str, old: str, new: str, problem: str
) -> None:
    assert refused(base.replace(old, new)) == [problem]


def test_the_models_own_names_are_no_keys_of_the_file(refused: Refused, base: str) -> None:
    (problem,) = refused(base.replace("from:", "source:"))
    assert problem.startswith("flows[0]: unknown key 'source', known are ")
    assert ", from, " in problem


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("flows: [{from: a, to: b}]\n", ["clusters: is missing"]),
        ("clusters:\nflows: [{from: a, to: b}]\n", ["clusters: is missing"]),
        ("clusters: [a]\nflows: [{from: a, to: b}]\n", ["clusters: a mapping is expected, `name: value`"]),
        ("clusters: {a: 'x:1'}\nflows: {}\n", [
            "clusters.a: a mapping is expected, `name: value`",
            "flows: a list is expected, `[a, b]`",
        ]),
        ("clusters: {a: {}}\nflows: [a]\n", [
            "clusters.a.bootstrap: is missing",
            "flows[0]: a mapping is expected, `name: value`",
        ]),
    ],
)  # fmt: skip
def test_the_shape(refused: Refused, text: str, problems: list[str]) -> None:
    assert refused(text) == problems


@pytest.mark.parametrize(
    ("flows", "problem"),
    [
        ("", "flows: is missing"),
        ("flows:\n", "flows: is missing"),
        ("flows: []\n", "flows: nothing is replicated; add a flow: {from: ..., to: ...}"),
    ],
)
def test_without_flows(refused: Refused, base: str, flows: str, problem: str) -> None:
    assert refused(base.partition("flows:")[0] + flows) == [problem]


def test_unknown_aliases(refused: Refused, base: str) -> None:
    assert refused(base.replace("from: us-east", "from: us-esat").replace(FLOW, "to: mars")) == [
        "flows[0].from: unknown cluster 'us-esat', did you mean 'us-east'?",
        "flows[0].to: unknown cluster 'mars', known are eu-west, us-east",
    ]


def test_two_flows_with_one_name(refused: Refused, base: str) -> None:
    again = base + "  - {from: eu-west, to: us-east}\n  - {from: us-east, to: eu-west}\n"
    assert refused(again) == ["flows[2]: is the flow us-east__eu-west again, see flows[0]"]


def test_flows_in_a_circle_must_be_able_to_read_each_other_s_names(refused: Refused, base: str) -> None:
    back = base + "  - {from: eu-west, to: us-east, separator: '-'}\n"
    why = "flows[1] and flows[0] lead in a circle; names would grow without end"
    assert refused(back) == [f"flows[1].separator: {why} with different separators"]
    template = "naming: {template: 'x.{topic}'}"
    twice = base.replace(FLOW, f"{FLOW}, {template}") + f"  - {{from: eu-west, to: us-east, {template}}}\n"
    assert refused(twice) == [f"flows[1].naming: {why} with two templates; name the topics in a map"]


def test_a_flow_to_itself(refused: Refused, base: str) -> None:
    problem = "flows[0]: from and to are both 'us-east'; a flow needs two clusters"
    assert refused(base.replace(FLOW, "to: us-east")) == [problem]


@pytest.mark.parametrize(
    ("naming", "problem"),
    [
        ("{map: {a: x, b: x}}", "naming.map gives 'x' to more than one topic"),
        ("{map: {a: x.y, b: x_y}}", "Kafka takes 'x.y' and 'x_y' for one name"),
        ("{map: {a: ''}}", "the name '' is empty or holds characters other than letters, digits, '.', '_' and '-'"),
        ("{map: {a: __x}}",
         "'__x' cannot be a target: topics that begin with '__' are internal to Kafka and its tools"),
        ("{template: x}", "template 'x' lacks {topic}: all topics would get one name"),
        ("identical", NAMINGS),
        ("[a]", NAMINGS),
        ("{map: {a: 1}}", NAMINGS),
        ("{map: {}, template: '{topic}'}", NAMINGS),
    ],
)  # fmt: skip
def test_naming(refused: Refused, base: str, naming: str, problem: str) -> None:
    text = base.replace("  - {from: us-east, to: eu-west}", f"  - from: us-east\n    to: eu-west\n    naming: {naming}")
    assert refused(text) == [f"flows[0].naming: {problem}"]


def test_patterns_that_cannot_be_meant(refused: Refused, base: str) -> None:
    """MM2's lists are regular expressions: taken for globs, an exclude list would exclude nothing."""
    text = base.replace(FLOW, FLOW + ', topics: {include: ["a|b"], exclude: ["^orders$"]}')
    text += 'policies: [{name: p, topics: ["eu(.*)"], residency: {deny_zones: [us]}}]\n'
    hint = "which no topic name has; a regular expression is written"
    assert refused(text) == [
        f"flows[0].topics.exclude: '^orders$' holds '^', {hint} 're:^orders$'",
        f"flows[0].topics.include: 'a|b' holds '|', {hint} 're:a|b'",
        f"policies[0].topics: 'eu(.*)' holds '(', {hint} 're:eu(.*)'",
    ]


def test_a_group_may_have_any_name(load: Load, base: str) -> None:
    settings = load(base.replace(FLOW, FLOW + ', groups: {include: ["a|b"]}'))
    assert settings.flows[0].groups.include == ("a|b",)


def test_a_regular_expression_that_is_none(refused: Refused, base: str) -> None:
    text = base.replace(FLOW, FLOW + ', topics: {include: ["re:(a"]}, groups: {exclude: ["re:[b"]}')
    text += 'policies: [{name: p, topics: ["re:(c"], residency: {deny_zones: [us]}}]\n'
    problems = refused(text)
    assert [problem.partition(" is not a regular expression: ")[0] for problem in problems] == [
        "flows[0].groups: entry 're:[b'",
        "flows[0].topics: entry 're:(a'",
        "policies[0]: entry 're:(c'",
    ]


@pytest.mark.parametrize(
    ("address", "shown"),
    [("host", "host"), ("a:1,,b:2", ""), ("a:70000", "a:70000"), ("a:0", "a:0"), ("u:hunter22@h:1", "...@h:1")],
)
def test_addresses(refused: Refused, base: str, address: str, shown: str) -> None:
    problem = f"clusters.us-east.bootstrap: {shown!r} is not host:port"
    assert refused(base.replace("127.0.0.1:19092", address)) == [problem]


def test_several_addresses(load: Load, base: str) -> None:
    settings = load(base.replace("127.0.0.1:19092", "a:1, [::1]:2"))
    assert settings.clusters["us-east"].bootstrap == "a:1,[::1]:2"


@pytest.mark.parametrize(
    ("alias", "problem"),
    [
        ("us__x", "clusters: alias 'us__x': letters, digits, '.', '_' and '-', and no '__' (it parts flow names)"),
        ("eu-west.x",
         "flows[0].separator: aliases 'eu-west' and 'eu-west.x' look alike in a topic's name, separator '.'"),
    ],
)  # fmt: skip
def test_aliases(refused: Refused, base: str, alias: str, problem: str) -> None:
    assert refused(base.replace("us-east", alias)) == [problem]


@pytest.mark.parametrize(("word", "value"), [("true", True), ('"TRUE "', True), ("false", False), ('" False"', False)])
def test_switches(load: Load, base: str, word: str, value: bool) -> None:
    assert load(base.replace(FLOW, f"{FLOW}, heartbeats: {word}")).flows[0].heartbeats is value


@pytest.mark.parametrize("word", ['"yes"', "1", '"on"', "[true]"])
def test_what_is_no_switch(refused: Refused, base: str, word: str) -> None:
    problem = "flows[0].heartbeats: it has to be true or false"
    assert refused(base.replace(FLOW, f"{FLOW}, heartbeats: {word}")) == [problem]


def test_delivery(refused: Refused, base: str) -> None:
    problem = "flows[0].delivery: it has to be 'at-least-once' or 'exactly-once'"
    assert refused(base.replace(FLOW, f"{FLOW}, delivery: exactly_once")) == [problem]


@pytest.mark.parametrize(
    ("policies", "problems"),
    [
        (
            "{name: p, topics: [a], residency: {deny_zones: [su], allow_zones: [us, moon]}}",
            [
                "policies[0].residency.allow_zones: no cluster is in zone 'moon', zones are those of "
                "clusters.<alias>.zones",
                "policies[0].residency.deny_zones: no cluster is in zone 'su', zones are those of "
                "clusters.<alias>.zones",
            ],
        ),
        (
            "{name: p, topics: [a], residency: {deny_zones: [uss]}}",
            ["policies[0].residency.deny_zones: no cluster is in zone 'uss', did you mean 'us'?"],
        ),
        (
            "{name: p, topics: [a], residency: {}}",
            ["policies[0].residency: it names no zone, so it would keep nothing back"],
        ),
        (
            "{name: p, topics: [a], residency: {deny_zones: [us]}}, "
            "{name: p, topics: [b], residency: {deny_zones: [us]}}",
            ["policies[1].name: 'p' is also the name of policies[0]"],
        ),
    ],
)
def test_policies_that_would_keep_back_nothing(refused: Refused, base: str, policies: str, problems: list[str]) -> None:
    assert refused(base + f"policies: [{policies}]\n") == problems


def test_zones_are_lists(refused: Refused, base: str) -> None:
    text = base + "policies: [{name: p, topics: [a], residency: {deny_zones: eu}}]\n"
    assert refused(text) == ["policies[0].residency.deny_zones: a list is expected, `[a, b]`"]


def test_frozen(load: Load, base: str) -> None:
    settings = load(base)
    with pytest.raises(ValidationError, match="frozen"):
        settings.flows = ()
    with pytest.raises(ValidationError, match="frozen"):
        settings.runtime.heartbeat_interval = 2.0
    with pytest.raises(ValidationError, match="frozen"):
        settings.clusters["us-east"].bootstrap = "a:1"


def test_the_models_check_themselves_without_a_file() -> None:
    with pytest.raises(ValidationError, match="a flow needs two clusters"):
        FlowConfig(source="a", target="a")
