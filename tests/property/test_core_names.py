"""What holds for every name: selection, naming, and the loop guard over whole networks of flows."""

import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.flow_rules import FlowRules, Selected, select
from app.core.naming import Naming, RenameTemplate, collides, problems
from app.core.network import circle
from app.core.provenance import origin_header, returns_home
from app.core.selection import Pattern, Selector

LEGAL = string.ascii_letters + string.digits + "._-"
topics = st.text(LEGAL, min_size=1, max_size=12)
aliases = st.text(string.ascii_lowercase + "-", min_size=1, max_size=4)
separators = st.sampled_from([".", "_", "..", "-x-"])
globs = st.text("ab.*", min_size=1, max_size=6)


def brute_force_glob(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(brute_force_glob(pattern[1:], name[taken:]) for taken in range(len(name) + 1))
    return name[:1] == pattern[0] and brute_force_glob(pattern[1:], name[1:])


@given(globs, st.text("ab.", max_size=6))
def test_a_glob_matches_what_the_definition_says(pattern: str, name: str) -> None:
    assert Pattern(pattern).matches(name) == brute_force_glob(pattern, name)


@given(st.text(min_size=1).filter(lambda text: text.strip() and "*" not in text and not text.startswith("re:")))
def test_a_name_without_a_star_matches_itself_only(name: str) -> None:
    assert Pattern(name).matches(name)
    assert not Pattern(name).matches(name + "x")
    assert not Pattern(name).matches("x" + name)


@given(st.lists(globs), st.lists(globs), st.text("ab.", max_size=6))
def test_exclude_wins_and_reasons_agree(include: list[str], exclude: list[str], name: str) -> None:
    selector = Selector(include=tuple(include), exclude=tuple(exclude))
    included = any(Pattern(entry).matches(name) for entry in include)
    excluded = any(Pattern(entry).matches(name) for entry in exclude)
    assert selector.matches(name) == (included and not excluded)
    assert (selector.why_excluded(name) is not None) == excluded


@given(aliases, aliases, separators, st.sampled_from(["default", "identity"]), topics)
def test_what_the_default_adds_is_read_back(source: str, target: str, separator: str, style: str, topic: str) -> None:
    naming = Naming(source=source, target=target, separator=separator, style=style)  # type: ignore[arg-type]
    downstream = Naming(source=target, target="next", aliases=frozenset({source}), separator=separator)
    remote = naming.remote_topic(topic)
    if naming.names_origin(topic):
        assert downstream.names(remote)[:2] == (remote, topic)
        assert downstream.origins(remote) == (source, *downstream.origins(topic))
    else:
        assert remote == topic


@given(st.frozensets(aliases, min_size=1, max_size=4), separators, topics)
def test_origins_and_original_make_up_the_name(known: frozenset[str], separator: str, topic: str) -> None:
    naming = Naming(source="s", target="t", aliases=known, separator=separator)
    chain = naming.origins(topic)
    assert set(chain) <= known | {"s", "t"}
    assert separator.join((*chain, naming.original(topic))) == topic
    assert len(naming.names(topic)) == len(chain) + 1
    assert naming.names(topic)[0] == topic


@given(st.frozensets(aliases, min_size=2, max_size=3), topics)
def test_a_name_without_a_known_alias_at_its_head_is_no_reason(known: frozenset[str], topic: str) -> None:
    source, target, *_ = sorted(known)
    naming = Naming(source=source, target=target, aliases=known)
    if not any(topic.startswith(alias + ".") for alias in known):
        assert naming.origins(topic) == ()
        assert naming.cycle(topic) is None


@given(st.text(max_size=12) | st.text(LEGAL, min_size=240, max_size=260))
def test_problems_are_kafka_s_rule(name: str) -> None:
    legal = re.fullmatch("[a-zA-Z0-9._-]{1,249}", name) is not None and name not in (".", "..")
    assert (problems(name) is None) == legal


@given(st.lists(st.text("a._", min_size=1, max_size=3), max_size=8))
def test_collisions_are_what_is_equal_without_telling_dots_from_underscores(names: list[str]) -> None:
    pairs = collides(names)
    assert all(one.replace(".", "_") == other.replace(".", "_") for one, other in pairs)
    assert len(names) - len(pairs) == len({name.replace(".", "_") for name in names})


CLUSTERS = ("A", "B", "C", "D")
edges = st.frozensets(st.sampled_from([(a, b) for a in CLUSTERS for b in CLUSTERS if a != b]), min_size=1)


@settings(max_examples=40)
@given(edges, st.sampled_from(["orders", "a.b", "A", "A.", "heartbeats", "D.orders"]))
def test_no_network_of_default_flows_grows_without_end_or_brings_a_topic_home(
    network: frozenset[tuple[str, str]], topic: str
) -> None:
    known = frozenset(CLUSTERS)
    flows = {
        (source, target): FlowRules(
            naming=Naming(source=source, target=target, aliases=known), selector=Selector(include=("*",))
        )
        for source, target in network
    }
    held: dict[str, dict[str, tuple[str, ...]]] = {cluster: {topic: (cluster,)} for cluster in CLUSTERS}
    grown = True
    while grown:
        grown = False
        for (source, target), rules in flows.items():
            for name, way in list(held[source].items()):
                decision = select(name, rules)
                if not isinstance(decision, Selected) or decision.remote_topic in held[target]:
                    continue
                assert target not in way, f"{name} returns to {target}"
                held[target][decision.remote_topic] = (*way, target)
                grown = True
    assert all(len(names) <= 1 + 3 + 6 + 6 for names in held.values()), "at most one name per way without repetition"


@settings(max_examples=60)
@given(edges, st.sampled_from(CLUSTERS), st.data())
def test_no_network_of_identity_flows_brings_a_record_home(
    network: frozenset[tuple[str, str]], birth: str, data: st.DataObject
) -> None:
    copies: list[tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]] = [((birth,), ())]
    for way, headers in copies:
        for source, target in data.draw(st.permutations(sorted(network))):
            if source == way[-1] and not returns_home(headers, source, target):
                assert target not in way
                copies.append(((*way, target), (*headers, origin_header(source))))
        assert len(copies) < 100, "a record circles"


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from([(a, b) for a in CLUSTERS for b in CLUSTERS if a != b]),
        st.sampled_from(["default", "identity", "default", "identity", "x.{topic}"]),
        min_size=1,
    ).filter(lambda network: sum("{" in style for style in network.values()) <= 1),
    st.sampled_from(["orders", "A.orders", "x.orders", "heartbeats"]),
)
def test_names_grow_to_an_end_in_every_network(network: dict[tuple[str, str], str], topic: str) -> None:
    known = frozenset(CLUSTERS)
    flows = {}
    for (source, target), style in network.items():
        naming = Naming(
            source=source,
            target=target,
            aliases=known,
            style="identity" if style == "identity" else "default",
            renames=RenameTemplate(text=style) if "{" in style else None,
        )
        flows[source, target] = FlowRules(
            naming=naming,
            selector=Selector(include=("*",)),
            target_in_front=any(a == target and s == "default" for (a, _), s in network.items()),
            leads_back=bool(circle((source, target), network)),
        )
    held = {cluster: {topic} for cluster in CLUSTERS}
    for _ in range(30):
        sizes = {cluster: len(names) for cluster, names in held.items()}
        for (source, target), rules in flows.items():
            decisions = [select(name, rules) for name in held[source]]
            held[target] |= {decision.remote_topic for decision in decisions if isinstance(decision, Selected)}
            assert max(map(len, held[target])) < 40, "names grow without end"
        if sizes == {cluster: len(names) for cluster, names in held.items()}:
            return
    raise AssertionError({cluster: sorted(names)[:5] for cluster, names in held.items()})
