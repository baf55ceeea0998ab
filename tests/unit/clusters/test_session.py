"""Hints of errors that occur when the clusters of a command are opened."""

from __future__ import annotations

from typing import Never

import pytest

from tidegate.clusters import session
from tidegate.clusters.sandboxes import CONTEXT
from tidegate.clusters.session import ClusterTargets, describe_targets
from tidegate.errors import ConfigError


@pytest.mark.parametrize(("context", "is_sandbox"), [(CONTEXT, True), ("prod", False)])
def test_a_missing_sandbox_context_is_explained_for_any_error_text(
    monkeypatch: pytest.MonkeyPatch, *, context: str, is_sandbox: bool
) -> None:
    def refuse(*_: object, **__: object) -> Never:
        error = ConfigError("config.context", "the kubeconfig is incomplete", hint="choose another")
        error.missing_context = context
        raise error

    monkeypatch.setattr(session, "find_target", refuse)

    with pytest.raises(ConfigError) as caught:
        describe_targets(ClusterTargets(context=context))

    assert ("`tidegate sandbox up`" in caught.value.hint) is is_sandbox
