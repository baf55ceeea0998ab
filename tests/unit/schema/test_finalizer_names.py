"""Finalizers without a slash: refused on built-in kinds, accepted on other kinds."""

from __future__ import annotations

import pytest

from tidegate.model.k8s.objects import Kind
from tidegate.schema.validation.names import find_name_problems


@pytest.mark.parametrize(
    ("kind", "is_accepted"),
    [
        ("v1 ConfigMap", False),
        ("apps/v1 Deployment", False),
        ("argoproj.io/v1alpha1 Application", True),
        ("snapshot.storage.k8s.io/v1 VolumeSnapshot", True),
        ("apiextensions.k8s.io/v1 CustomResourceDefinition", True),
        ("apiregistration.k8s.io/v1 APIService", True),
    ],
)
def test_a_finalizer_without_a_slash_is_refused_on_built_in_kinds_only(
    kind: str, *, is_accepted: bool
) -> None:
    api_version, _, name = kind.rpartition(" ")
    bare = "resources-finalizer.argocd.argoproj.io"

    problems = list(
        find_name_problems(Kind.of(api_version, name), {"name": "web", "finalizers": [bare]})
    )

    assert (problems == []) is is_accepted
