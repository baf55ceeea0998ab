"""The answers as a file: one line for each question, which is named by its digest."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from tests.conformance.oracles.kstatus.bodies import Question

FILE = Path(__file__).parents[3] / "data" / "health" / "kstatus.jsonl"
_DIGEST_BYTES = 4


class Answer(msgspec.Struct, frozen=True):
    """What kstatus says; its reason is empty where it gives none."""

    status: str
    reason: str
    message: str


def digest_of(question: Question) -> int:
    """In digits, for among letters a spell checker finds words."""
    return int.from_bytes(sha256(msgspec.json.encode(question)).digest()[:_DIGEST_BYTES])


def write_answers(questions: list[Question], answers: list[Answer]) -> None:
    rows = [
        msgspec.json.encode((digest_of(request), result.status, result.reason, result.message))
        for request, result in zip(questions, answers, strict=True)
    ]
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_bytes(b"\n".join([*rows, b""]))


def read_answers() -> list[tuple[int, Answer]]:
    """Digest and answer, in the order of the questions."""
    decode = msgspec.json.Decoder(tuple[int, str, str, str]).decode
    rows = map(decode, FILE.read_bytes().splitlines())
    return [(digest, Answer(status, reason, message)) for digest, status, reason, message in rows]
