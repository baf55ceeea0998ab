"""Signatures of S3 requests (AWS Signature Version 4)."""

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
    """An access key ID and its secret."""

    key_id: str
    """The access key ID."""
    secret: SecretValue
    """The secret access key."""


class Signature(NamedTuple):
    """The value of the `Authorization` header, and the headers that it covers."""

    authorization: str
    """The value of the `Authorization` header."""
    headers: tuple[tuple[str, str], ...]
    """The signed headers."""


def sign(url: str, key: AccessKey, region: str, now: datetime) -> Signature:
    """Sign a GET request of an address, at a time in UTC."""
    parts = urlsplit(url)
    timestamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": timestamp}
    names = ";".join(headers)
    canonical_request = "\n".join(
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
    scope = f"{timestamp[:8]}/{region}/{SERVICE}/aws4_request"
    string_to_sign = "\n".join(
        (ALGORITHM, timestamp, scope, hashlib.sha256(canonical_request.encode()).hexdigest())
    )
    signing_key = f"AWS4{key.secret.reveal()}".encode()
    for part in scope.split("/"):
        signing_key = _hmac_sha256(signing_key, part)
    signature = _hmac_sha256(signing_key, string_to_sign).hex()
    authorization = (
        f"{ALGORITHM} Credential={key.key_id}/{scope},SignedHeaders={names},Signature={signature}"
    )
    return Signature(
        authorization, tuple((name, value) for name, value in headers.items() if name != "host")
    )


def write_query(pairs: list[tuple[str, str]]) -> str:
    """Return the query in the order and encoding that signatures require."""
    escaped = (
        (quote(name, safe=UNRESERVED), quote(value, safe=UNRESERVED)) for name, value in pairs
    )
    return "&".join(f"{name}={value}" for name, value in sorted(escaped))


def _hmac_sha256(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
