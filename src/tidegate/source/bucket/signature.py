"""Sign requests for objects as S3 wants them signed (version 4)."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from tidegate.model.k8s.secret import SecretValue

ALGORITHM, SERVICE = "AWS4-HMAC-SHA256", "s3"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
UNRESERVED = "-_.~"


class AccessKey(msgspec.Struct, frozen=True):
    """A key's name, and the secret that goes with it."""

    name: str
    secret: SecretValue


class Signature(NamedTuple):
    """The value of `Authorization`, and the headers that it covers."""

    authorization: str
    headers: tuple[tuple[str, str], ...]


def sign(url: str, key: AccessKey, region: str, now: datetime) -> Signature:
    """For a GET of this address, at this moment in UTC."""
    parts = urlsplit(url)
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": moment}
    names = ";".join(headers)
    asked = "\n".join(
        (
            "GET",
            quote(unquote(parts.path) or "/", safe=f"/{UNRESERVED}"),
            write_query(parse_qsl(parts.query, keep_blank_values=True)),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            names,
            EMPTY_SHA256,
        )
    )
    scope = f"{moment[:8]}/{region}/{SERVICE}/aws4_request"
    told = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(asked.encode()).hexdigest()))
    seal = f"AWS4{key.secret.reveal()}".encode()
    for word in scope.split("/"):
        seal = _seal(seal, word)
    signature = _seal(seal, told).hex()
    value = f"{ALGORITHM} Credential={key.name}/{scope},SignedHeaders={names},Signature={signature}"
    return Signature(value, tuple((name, one) for name, one in headers.items() if name != "host"))


def write_query(pairs: list[tuple[str, str]]) -> str:
    """In the one order and form that a signature covers."""
    escaped = ((quote(name, safe=UNRESERVED), quote(one, safe=UNRESERVED)) for name, one in pairs)
    return "&".join(f"{name}={one}" for name, one in sorted(escaped))


def _seal(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
