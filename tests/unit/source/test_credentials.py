"""What opens a source, and for whom."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tidegate.errors import SourceError
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import Credentials
from tidegate.source.credentials import (
    NO_CREDENTIALS,
    CredentialChain,
    EnvironmentCredentials,
    OriginCredentials,
    authorization_header,
    credentials_from_environment,
    host_variable_suffix,
    read_docker_logins,
)


def test_a_token_is_found_by_its_host() -> None:
    keys = EnvironmentCredentials({"TIDEGATE_TOKEN_GIT_EXAMPLE_COM": "abc"})

    result = keys.find("https://git.example.com")

    assert result == Credentials(username="git", password=SecretValue("abc"))
    assert keys.find("https://example.com") == NO_CREDENTIALS
    assert keys.find("https://git-example.com") == NO_CREDENTIALS


def test_no_token_is_sent_without_tls() -> None:
    keys = EnvironmentCredentials({"TIDEGATE_TOKEN_HOST": "abc"})

    assert keys.find("http://host") == NO_CREDENTIALS


def test_similar_hosts_have_different_variables() -> None:
    hosts = ["a.b", "a-b", "a:1", "a.1", "ab"]

    assert len({host_variable_suffix(host) for host in hosts}) == len(hosts)


def test_a_docker_configuration_is_read_in_both_forms() -> None:
    pair = base64.b64encode(b"ann:sesame").decode()
    auths = {
        "https://index.docker.io/v1/": {"auth": pair},
        "example.com": {"username": "bob", "password": "x"},
    }

    keys = read_docker_logins(json.dumps({"auths": auths}).encode(), "config.json")

    hub = keys.find("https://registry-1.docker.io")
    assert hub == Credentials(username="ann", password=SecretValue("sesame"))
    assert keys.find("https://example.com").username == "bob"
    assert keys.find("https://other.com") == NO_CREDENTIALS


def test_a_login_that_a_helper_keeps_is_no_login() -> None:
    keys = read_docker_logins(b'{"auths": {"example.com": {}}}', "config.json")

    assert keys.find("https://example.com") == NO_CREDENTIALS


def test_a_user_has_variables_and_the_logins_of_docker_and_helm(tmp_path: Path) -> None:
    docker, helm = tmp_path / ".docker", tmp_path / ".config" / "helm" / "registry"
    for place, host in ((docker, "one.example.com"), (helm, "two.example.com")):
        place.mkdir(parents=True)
        login = {"auths": {host: {"username": "ann", "password": "x"}}}
        (place / "config.json").write_text(json.dumps(login))

    keys = credentials_from_environment({"HOME": str(tmp_path), "TIDEGATE_TOKEN_HOST": "abc"})

    hosts = ("one.example.com", "two.example.com", "three.example.com", "host")
    assert [keys.find(f"https://{host}").username for host in hosts] == ["ann", "ann", "", "git"]


def test_logins_that_cannot_be_read_are_reported_when_they_are_needed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")

    keys = credentials_from_environment(
        {"DOCKER_CONFIG": str(tmp_path), "TIDEGATE_TOKEN_HOST": "abc"}
    )

    assert keys.find("https://host").username == "git"
    with pytest.raises(SourceError) as caught:
        keys.find("https://other")
    assert caught.value.code == "source.login"


@pytest.mark.parametrize("text", [b"", b"[]", b'{"auths": {"x": {"auth": "!"}}}'])
def test_a_docker_configuration_that_cannot_be_read_is_reported_without_its_text(
    text: bytes,
) -> None:
    with pytest.raises(SourceError) as caught:
        read_docker_logins(text, "config.json")

    assert caught.value.code == "source.login"


def test_the_first_keyring_that_knows_the_address_counts() -> None:
    token = Credentials(token=SecretValue("t"))
    keys = CredentialChain(
        (OriginCredentials("https://a", NO_CREDENTIALS), OriginCredentials("https://b", token))
    )

    assert authorization_header(keys.find("https://b")) == "Bearer t"
    assert authorization_header(keys.find("https://a")) == ""


def test_nothing_secret_is_printed() -> None:
    keys = (
        EnvironmentCredentials({"TIDEGATE_TOKEN_HOST": "sesame"}),
        OriginCredentials("https://a", Credentials(password=SecretValue("sesame"))),
    )

    assert "sesame" not in repr(keys)
