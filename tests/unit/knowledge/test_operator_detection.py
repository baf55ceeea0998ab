"""Which workloads look like the operator of a kind that has no row."""

from __future__ import annotations

import pytest

from tests.support.operator_stage import an_operator
from tidegate.knowledge.catalog import looks_like_operator
from tidegate.model.k8s.objects import Kind


@pytest.mark.parametrize(
    ("name", "image", "group", "kind"),
    [
        ("widgets", "registry.example/any:1", "widgets.example.com", "Widget"),
        ("x", "registry.example/acme/widgets-thing:1", "widgets.example.com", "Widget"),
        ("widget-operator", "registry.example/any:1", "example.com", "Widget"),
        ("acme-controller", "registry.example/any:1", "acme.io", "Anvil"),
    ],
)
def test_a_workload_that_names_a_group_is_recognized_as_its_operator(
    name: str, image: str, group: str, kind: str
) -> None:
    assert looks_like_operator(an_operator(name, image), Kind(group, "v1", kind))


@pytest.mark.parametrize(
    ("name", "image", "group", "kind"),
    [
        ("web", "registry.example/shop/web:1", "widgets.example.com", "Widget"),
        ("acme-web", "registry.example/acme/web:1", "acme.io", "Anvil"),
        ("apps-controller", "registry.example/any:1", "apps.acme.io", "Anvil"),
        ("k8s-controller", "registry.example/any:1", "k8s.io", "Anvil"),
        ("widget", "registry.example/widget:1", "example.com", "Widget"),
    ],
)
def test_a_workload_that_only_shares_a_word_is_not_an_operator(
    name: str, image: str, group: str, kind: str
) -> None:
    assert not looks_like_operator(an_operator(name, image), Kind(group, "v1", kind))
