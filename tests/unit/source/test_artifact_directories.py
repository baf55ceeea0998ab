"""Which directory is meant by the name of an artifact."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import SourceError
from tidegate.model.operators.placeholders import (
    could_match,
    fill_placeholders,
    placeholder_names,
    placeholder_regex,
)
from tidegate.model.units.source import ArtifactDiscovery, SourceObject
from tidegate.source.artifact_directories import find_artifact_directory

REPO = SourceObject("GitRepository", "flux-system", "platform")
FILES = ("apps/Auth/envs/dev/a.yaml", "apps/pay/envs/prod/deep/b.yaml", "apps/pay/c.yaml", "d.yaml")


def looking(pattern: str, name: str) -> ArtifactDiscovery:
    return ArtifactDiscovery(source=REPO, pattern=pattern, name=name)


def test_a_directory_is_known_by_the_name_that_it_makes() -> None:
    both = looking("apps/{app}/envs/{env}", "{app}-{env}")

    assert find_artifact_directory(both, FILES, "auth-dev") == {"app": "Auth", "env": "dev"}
    assert find_artifact_directory(both, FILES, "pay-prod") == {"app": "pay", "env": "prod"}
    assert find_artifact_directory(both, FILES, "pay-dev") is None
    assert find_artifact_directory(looking("apps", "all"), FILES, "all") == {}, (
        "nothing is in braces"
    )
    assert find_artifact_directory(looking("{top}", "{top}"), FILES, "apps") == {"top": "apps"}
    assert find_artifact_directory(looking("{top}", "{top}"), FILES, "d.yaml") is None, (
        "it is a file"
    )
    assert find_artifact_directory(looking("a+s/{app}", "{app}"), FILES, "pay") is None


@pytest.mark.parametrize(
    "files",
    [
        ("apps/Pay/a.yaml", "apps/pay/b.yaml"),
        ("apps/-pay/a.yaml",),
        ("apps/pay_1/a.yaml",),
        (f"apps/{'a' * 64}/a.yaml",),
    ],
    ids=["same name", "dash", "underscore", "long"],
)
def test_one_invalid_directory_keeps_all_from_being_generated(
    files: tuple[str, ...], wording: RecordedWording
) -> None:
    with pytest.raises(SourceError) as raised:
        find_artifact_directory(
            looking("apps/{app}", "{app}"), (*files, "apps/fine/c.yaml"), "fine"
        )

    assert raised.value.code == "source.copy"
    wording(raised.value.problem)


def test_names_in_braces(wording: RecordedWording) -> None:
    assert placeholder_names("apps/{app}/{env_2}") == (["app", "env_2"], "")
    wording(placeholder_names(pattern)[1] for pattern in ("apps/{app}}", "apps/{app-1}"))
    assert fill_placeholders("a-{b}-{b}", {"b": "{c}"}) == "a-{c}-{c}"
    assert placeholder_regex("a.b/{c}").fullmatch("axb/c") is None
    assert could_match("{a}-{b}", "x-y-z")
    assert not could_match("{a}-{b}", "x")
