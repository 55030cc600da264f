"""References to secrets, and that no secret, nor a part of one, is ever shown."""

import traceback
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.config import SecurityConfig
from app.errors import ConfigurationError

from .conftest import Load, Refused

SECRET = 'S3cr=t;"q\\x hunter22'  # noqa: S105 - it is what must not be found
PARTS = [SECRET[start : start + 6] for start in range(len(SECRET) - 5)]
#: A login with tokens.
TOKENS = "mechanism: OAUTHBEARER, token_url: 'https://login.example/token', client_id: c, client_secret: hunter22"


@pytest.fixture
def secured(base: str) -> str:
    """A configuration whose `SECURITY` is to be replaced."""
    return base.replace('"127.0.0.1:29092"', '"127.0.0.1:29092", security: SECURITY')


def shows(text: str) -> bool:
    return any(part in text or repr(part)[1:-1] in text for part in PARTS)


def test_the_watcher_sees_a_secret() -> None:
    assert shows(f"password {SECRET}")
    assert shows(repr(SECRET))
    assert not shows("password **********")


def test_references(load: Load, secured: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n")
    security = f'{{protocol: SASL_SSL, username: "u-${{NAME}}", password: "${{file:{tmp_path / "key"}}}"}}'
    found = load(secured.replace("SECURITY", security), {"NAME": "x"}).clusters["eu-west"].security
    assert found.username == "u-x"
    assert found.password == SecretStr(SECRET)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("$ConnectionString", "$ConnectionString"),
        ("$${NAME}", "${NAME}"),
        ("a$$b$", "a$$b$"),
        ("${NAME}${NAME}", "vv"),
        ("Endpoint=sb://x/;Key=a+b/==", "Endpoint=sb://x/;Key=a+b/=="),
        (' a"b\\c;ä ', ' a"b\\c;ä '),
    ],
)
def test_bytes_are_kept(load: Load, secured: str, written: str, meant: str) -> None:
    quoted = written.replace("'", "''")
    text = secured.replace("SECURITY", f"{{protocol: SASL_SSL, username: u, password: '{quoted}'}}")
    assert load(text, {"NAME": "v"}).clusters["eu-west"].security.password == SecretStr(meant)


def test_a_resolved_value_is_not_resolved_again(load: Load, secured: str) -> None:
    text = secured.replace("SECURITY", "{protocol: SASL_SSL, username: u, password: '${A}'}")
    password = load(text, {"A": "${B}", "B": "no"}).clusters["eu-west"].security.password
    assert password == SecretStr("${B}")


def test_what_cannot_be_resolved_is_refused_by_name(refused: Refused, secured: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"\xff")
    security = (
        f'{{protocol: SASL_SSL, username: "${{U}}", password: "${{file:/nowhere/x}}", ca_location: "${{file:{bad}}}"}}'
    )
    assert refused(secured.replace("SECURITY", security)) == [
        f"clusters.eu-west.security.ca_location: file {bad} cannot be read: it is not UTF-8",
        "clusters.eu-west.security.password: file /nowhere/x cannot be read: No such file or directory",
        "clusters.eu-west.security.username: environment variable U is not set",
    ]


@pytest.mark.parametrize("reference", ["${", "${}", "${NAME"])
def test_a_reference_that_is_none(refused: Refused, secured: str, reference: str) -> None:
    text = secured.replace("SECURITY", f"{{protocol: SASL_SSL, username: u, password: 'hunter22{reference}'}}")
    said = "a reference is written ${NAME} or ${file:/path}, a plain '${' '$${'"
    assert refused(text, {"NAME": "x"}) == [f"clusters.eu-west.security.password: {said}"]


def test_references_stand_in_lists_and_only_below_clusters(load: Load, refused: Refused, base: str) -> None:
    environ = {"Z": "a", "T": "eu-west"}
    assert load(base.replace("[us]", '["${Z}"]'), environ).clusters["us-east"].zones == ("a",)
    assert refused(base.replace("to: eu-west", 'to: "${T}"'), environ) == [
        "flows[0].to: unknown cluster '${T}', known are eu-west, us-east"
    ]


def test_secrets_are_never_shown(load: Load, secured: str) -> None:
    text = secured.replace("SECURITY", '{protocol: SASL_SSL, username: u, password: "${P}", key_password: "${P}",'
                           " certificate_location: c, key_location: k}")  # fmt: skip
    settings = load(text, {"P": SECRET})
    assert settings.clusters["eu-west"].security.password == SecretStr(SECRET)
    for shown in (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())):
        assert not shows(shown)


@pytest.mark.parametrize(
    "security",
    [
        '"${P}"',
        "[x, '${P}']",
        "{protocol: '${P}'}",
        "{protocol: SASL_SSL, mechanism: '${P}', username: u, password: '${P}'}",
        "{protocol: SASL_SSL, username: u, password: ['${P}']}",
        "{protocol: SASL_SSL, username: u, password: {x: '${P}'}}",
        "{protocol: SASL_SSL, username: ['${P}'], password: '${P}', tasks: '${P}'}",
        "{protocol: PLAINTEXT, password: '${P}'}",
    ],
)
@pytest.mark.parametrize("where", ["bootstrap: '${P}'", "bootstrap: 'a:1,${P}'", "bootstrap: 'a:1', zones: '${P}'"])
def test_errors_show_no_secret(load: Load, base: str, security: str, where: str) -> None:
    text = base.replace('bootstrap: "127.0.0.1:29092"', f"{where}, security: {security}")
    with pytest.raises(ConfigurationError) as caught:
        load(text, {"P": SECRET})
    assert not shows(str(caught.value))
    assert not shows(repr(caught.value))
    assert not shows("".join(traceback.format_exception(caught.value)))


@pytest.mark.parametrize("password", ["[hunter22]", "22222222", "{hunter22: hunter22}", "true"])
def test_a_password_of_the_wrong_type(refused: Refused, secured: str, password: str) -> None:
    text = secured.replace("SECURITY", f"{{protocol: SASL_SSL, username: u, password: {password}}}")
    assert refused(text) == ["clusters.eu-west.security.password: a text is expected; put it in quotes"]


@pytest.mark.parametrize("given", ["", ", username: u", ", password: hunter22", ", username: u, password: ''"])
def test_a_login_is_complete(refused: Refused, secured: str, given: str) -> None:
    problem = "clusters.eu-west.security: protocol SASL_SSL needs username and password"
    assert refused(secured.replace("SECURITY", f"{{protocol: SASL_SSL{given}}}")) == [problem]


@pytest.mark.parametrize(
    ("security", "problem"),
    [
        ("{username: u, password: x}", "protocol PLAINTEXT makes no use of username, password"),
        ("{protocol: SSL, username: u}", "protocol SSL makes no use of username"),
        ("{ca_location: c}", "protocol PLAINTEXT makes no use of ca_location"),
        ("{protocol: SASL_PLAINTEXT, username: u, password: x, ca_location: c}",
         "protocol SASL_PLAINTEXT makes no use of ca_location"),
        ("{protocol: SSL, key_location: k}", "key_location needs certificate_location"),
        ("{protocol: SASL_SSL, username: u, password: x, scope: s}", "mechanism PLAIN makes no use of scope"),
        ("{protocol: SASL_SSL, mechanism: OAUTHBEARER, username: u}",
         "protocol SASL_SSL with mechanism OAUTHBEARER needs token_url, client_id and client_secret"),
        (f"{{protocol: SASL_SSL, {TOKENS}, username: u}}", "mechanism OAUTHBEARER makes no use of username"),
        (f"{{protocol: SSL, {TOKENS}}}",
         "protocol SSL makes no use of mechanism, token_url, client_id, client_secret"),
        (f"{{protocol: SASL_PLAINTEXT, {TOKENS}, ca_location: c, key_location: k}}",
         "protocol SASL_PLAINTEXT makes no use of key_location"),
    ],
)  # fmt: skip
def test_security_that_secures_nothing(refused: Refused, secured: str, security: str, problem: str) -> None:
    assert refused(secured.replace("SECURITY", security)) == [f"clusters.eu-west.security: {problem}"]


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://login.example/token", "an https address is needed"),
        ("ftp://127.0.0.1/token", "an https address is needed"),
        ("login.example/token", "an https address is needed"),
        ("https://me:hunter22@login.example/token", "not within the address"),
    ],
)
def test_a_secret_is_sent_to_no_open_address(refused: Refused, secured: str, url: str, what: str) -> None:
    security = f"{{protocol: SASL_SSL, {TOKENS}}}".replace("https://login.example/token", url)
    (problem,) = refused(secured.replace("SECURITY", security))
    assert problem.startswith("clusters.eu-west.security.token_url: ")
    assert what in problem
    assert not shows(problem)


def test_a_model_made_by_code_hides_its_input_too() -> None:
    with pytest.raises(ValueError, match="valid string") as caught:
        SecurityConfig.model_validate({"password": [SECRET]})
    assert not shows(str(caught.value))
