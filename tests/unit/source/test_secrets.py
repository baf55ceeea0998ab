"""Credentials out of a Secret."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from tests.support.git_server import GitServer, Repository
from tests.support.source_access import an_access
from tests.support.web_server import listening
from tidegate.errors import SourceError
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.source import Credentials, GitSource
from tidegate.source import credentials_from_secret
from tidegate.source.git.fetch import fetch_git

# Notes how it was called and what it was given, and does what the other side would do.
SSH = """#!/bin/sh
printf '%s\\n' "$@" > "{log}"
for word; do
  test "$before" = -i && cp -p "$word" "{log}.identity"
  case "$word" in UserKnownHostsFile=*) cp "${{word#*=}}" "{log}.known";; esac
  before="$word"
done
eval "$word"
"""


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            {"username": b"ann", "password": b"sesame"},
            Credentials(username="ann", password=SecretValue("sesame")),
        ),
        ({"bearerToken": b"t"}, Credentials(token=SecretValue("t"))),
        (
            {"ca.crt": b"A", "tls.crt": b"C", "tls.key": b"K"},
            Credentials(ca_certificate="A", certificate="C", key=SecretValue("K")),
        ),
        (
            {"caFile": b"A", "certFile": b"C", "keyFile": b"K"},
            Credentials(ca_certificate="A", certificate="C", key=SecretValue("K")),
        ),
        (
            {"tlsClientCertData": b"C", "tlsClientCertKey": b"K", "url": b"ignored"},
            Credentials(certificate="C", key=SecretValue("K")),
        ),
        (
            {"identity": b"I", "identity.pub": b"P", "known_hosts": b"H"},
            Credentials(identity=SecretValue("I"), known_hosts="H"),
        ),
        ({"sshPrivateKey": b"I", "type": b"git"}, Credentials(identity=SecretValue("I"))),
    ],
)
def test_entries_are_known_by_their_usual_names(
    entries: dict[str, bytes], expected: Credentials
) -> None:
    keys = credentials_from_secret(entries, "https://host", name="Secret a/b")

    assert keys.find("https://host") == expected
    assert keys.find("https://other") == Credentials()


def test_a_docker_configuration_contains_its_hosts() -> None:
    pair = base64.b64encode(b"ann:sesame").decode()
    entries = {".dockerconfigjson": json.dumps({"auths": {"far": {"auth": pair}}}).encode()}

    keys = credentials_from_secret(entries, "https://host", name="Secret a/b")

    assert keys.find("https://far") == Credentials(username="ann", password=SecretValue("sesame"))
    assert keys.find("https://host") == Credentials()


@pytest.mark.parametrize("entries", [{}, {"age.agekey": b"x"}, {"username": b"\xff"}])
def test_a_secret_that_opens_nothing_is_reported(entries: dict[str, bytes]) -> None:
    with pytest.raises(SourceError) as caught:
        credentials_from_secret(entries, "https://host", name="Secret a/b")

    assert caught.value.code == "source.login"
    assert "Secret a/b" in str(caught.value.location)


async def test_a_secret_opens_a_repository_over_http(tmp_path: Path) -> None:
    repo = await Repository.create(tmp_path / "served" / "shop")
    await repo.commit(a_yaml="one")
    server = GitServer(tmp_path / "served", password="open sesame")
    entries = {"username": b"git", "password": b"open sesame"}
    async with listening(server.app()) as origin:
        keys = credentials_from_secret(entries, origin, name="Secret a/b")

        git = await fetch_git(GitSource(f"{origin}/shop/.git"), an_access(tmp_path, keyring=keys))

    assert git.files == ("a.yaml",)


async def test_a_secret_opens_a_repository_over_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = await Repository.create(tmp_path / "shop")
    await repo.commit(a_yaml="one")
    program, log = tmp_path / "bin" / "ssh", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(SSH.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    entries = {"identity": b"the key", "known_hosts": b"example.com ssh-ed25519 AAAA"}
    keys = credentials_from_secret(entries, "ssh://example.com", name="Secret a/b")

    source = GitSource(f"ssh://git@example.com{repo.path}")
    git = await fetch_git(source, an_access(tmp_path, keyring=keys))

    args = log.read_text().splitlines()
    identity, known = tmp_path / "log.identity", tmp_path / "log.known"
    gone = tmp_path / args[args.index("-i") + 1]
    assert git.files == ("a.yaml",)
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"} <= {*args}
    assert (identity.read_text(), identity.stat().st_mode & 0o777) == ("the key\n", 0o600)
    assert known.read_text() == "example.com ssh-ed25519 AAAA\n"
    assert not gone.exists(), "the key is deleted"
