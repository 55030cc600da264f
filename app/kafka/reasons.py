"""What a client's error means, in words that name what to grant or to mend."""

from __future__ import annotations

import asyncio
import ssl

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedSaslMechanismError,
    for_code,
)

_RIGHTS = "`faust -A app rights` lists what to grant"
_LOGIN = "mechanism, user and secret of the cluster's security section"

_MEANINGS: dict[type[BaseException], str] = {
    TopicAuthorizationFailedError: f"not authorised for the topic; {_RIGHTS}",
    GroupAuthorizationFailedError: f"not authorised for the group; {_RIGHTS}",
    ClusterAuthorizationFailedError: f"not authorised for the cluster; {_RIGHTS}",
    TransactionalIdAuthorizationFailed: f"not authorised for the transactional id; {_RIGHTS}",
    SaslAuthenticationFailed: f"the login is refused; look at {_LOGIN}",
    UnsupportedSaslMechanismError: f"the listener does not take this login; look at {_LOGIN}",
    IllegalSaslStateError: f"the listener expects another login, or none; look at {_LOGIN}",
    asyncio.TimeoutError: "no answer in time",
}


def told(error: BaseException) -> str:
    """Return an error as an operator can use it: never empty, with what to do where that is known.

    What the broker said stays in it: names of topics and groups, reasons of refusals.
    """
    said = str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}; see ca_location, and the name in bootstrap"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails ({error.reason}); is this a TLS listener, and does it ask for a client's certificate?"
    meaning = _MEANINGS.get(type(error))
    if meaning is None:
        return said or type(error).__name__
    return f"{said}: {meaning}" if said and not isinstance(error, asyncio.TimeoutError) else meaning


def told_code(code: int) -> str:
    """Return what a code in a broker's answer means."""
    kind: type[KafkaError] = for_code(code)
    return _MEANINGS.get(kind, kind.__name__)
