"""A watch's bytes, cut anywhere, as facts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.kube.http_responses import LineSplitter, read_event
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.world.messages import Bookmark, Expired, WatchEnded, WatchEvent, WatchEventType
from tidegate.world.requests import RequestId

CONFIG_MAP = Kind("", "v1", "ConfigMap")
TICKET = RequestId(1)


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_are_complete_for_any_chunks(lines: list[bytes], draw: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = draw.draw(st.lists(st.integers(0, len(stream))).map(sorted))
    splitter = LineSplitter()

    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    matches = [line for chunk in chunks for line in splitter.split(chunk)]

    assert matches == lines


def test_a_change_carries_the_object_as_bytes() -> None:
    body = b'{"metadata":{"name":"web","namespace":"shop","resourceVersion":"7","uid":"u1"}}'

    message = read_event(b'{"type":"MODIFIED","object":' + body + b"}", TICKET, CONFIG_MAP)

    assert isinstance(message, WatchEvent)
    assert message.type is WatchEventType.MODIFIED
    assert message.live.ref == Ref(CONFIG_MAP, "shop", "web")
    assert message.live.body == body


def test_a_bookmark_is_a_version_and_nothing_else() -> None:
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}'

    assert read_event(line, TICKET, CONFIG_MAP) == Bookmark(TICKET, "12")


def test_an_error_in_the_stream_ends_it_with_its_reason() -> None:
    line = (
        b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired",'
        b'"message":"too old resource version"}}'
    )

    assert read_event(line, TICKET, CONFIG_MAP) == WatchEnded(
        TICKET, Expired("too old resource version")
    )
