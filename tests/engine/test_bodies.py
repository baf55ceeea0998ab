"""Bodies as servers tell them."""

from __future__ import annotations

import msgspec

from tests.support.builders import make_deployment
from tidegate.model.k8s.objects import Kind, object_body, parse_live_object


def test_an_item_of_a_list_is_read_as_what_it_is() -> None:
    whole = make_deployment()
    item = {name: value for name, value in whole.items() if name not in ("apiVersion", "kind")}

    live = parse_live_object(msgspec.json.encode(item), Kind("apps", "v1", "Deployment"))

    assert object_body(live) == whole
