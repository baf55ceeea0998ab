"""Access reviews are not served: the sandbox has no permissions."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.objects import Kind, Ref
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources, NotServed
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Discover, Verb, Write

REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")


async def test_a_review_is_not_served_and_not_stored() -> None:
    world = Sandbox()
    body = {
        "apiVersion": REVIEW.api_version,
        "kind": REVIEW.name,
        "metadata": {"name": "a"},
        "spec": {"resourceAttributes": {"verb": "patch", "resource": "pods"}},
    }
    question = Write(verb=Verb.CREATE, ref=Ref(REVIEW, "", "a"), body=msgspec.json.encode(body))

    catalogue, answer = await send_requests(Dispatcher(world), Discover(), question)

    assert isinstance(catalogue, ApiResources)
    assert REVIEW not in {served.kind for served in catalogue.kinds}
    assert isinstance(answer, NotServed)
