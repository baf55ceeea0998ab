"""Credentials that stand in a file, and those that change: what is sent, and when it is renewed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.errors import ConfigError, Location
from tidegate.kube.access.context import (
    Anonymous,
    BasicAuth,
    BearerToken,
    KubeTarget,
    Login,
    TokenFile,
)
from tidegate.kube.credentials import impersonation_headers, make_auth_source
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.units.identity import ImpersonatedUser

HERE = Location("config", 7)


def target(login: Login, identity: ImpersonatedUser | None = None) -> KubeTarget:
    return KubeTarget(
        name="here",
        server="https://a.example",
        namespace="default",
        user="jane",
        login=login,
        identity=identity,
        location=HERE,
    )


def write_token(path: Path, token: str) -> None:
    """Renew a token as kubelet does: a new file takes the place of the old."""
    fresh = path.with_suffix(".new")
    fresh.write_text(token)
    fresh.replace(path)


async def test_without_credentials_nothing_is_sent() -> None:
    auth = await make_auth_source(target(Anonymous())).current()

    assert auth.headers() == ()


async def test_a_token_is_sent_as_bearer_and_never_printed() -> None:
    auth = await make_auth_source(target(BearerToken(SecretValue("s3cr3t")))).current()

    assert auth.headers() == (("Authorization", "Bearer s3cr3t"),)
    assert "s3cr3t" not in repr(auth)


async def test_a_name_and_a_password_are_sent_as_basic() -> None:
    auth = await make_auth_source(target(BasicAuth("jürgen", SecretValue("a:b")))).current()

    assert auth.headers() == (("Authorization", "Basic asO8cmdlbjphOmI="),)


async def test_a_static_token_is_never_refreshed() -> None:
    credentials = make_auth_source(target(BearerToken(SecretValue("t"))))
    used = await credentials.current()

    assert await credentials.refresh(used) is used


async def test_a_token_file_is_read_without_the_space_around_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  t1\n\n")

    auth = await make_auth_source(target(TokenFile(path, HERE))).current()

    assert auth.headers() == (("Authorization", "Bearer t1"),)


async def test_a_renewed_token_file_is_used_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_token(path, "t1")
    credentials = make_auth_source(target(TokenFile(path, HERE)))
    before = await credentials.current()

    write_token(path, "t2")

    assert await credentials.current() is not before
    assert (await credentials.current()).headers() == (("Authorization", "Bearer t2"),)


async def test_an_unchanged_token_file_gives_the_very_same(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_token(path, "t1")
    credentials = make_auth_source(target(TokenFile(path, HERE)))
    used = await credentials.current()

    assert await credentials.current() is used
    assert await credentials.refresh(used) is used


async def test_a_rejected_token_is_read_again_even_if_the_file_seems_unchanged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "token"
    write_token(path, "t1")
    seen = path.stat()
    credentials = make_auth_source(target(TokenFile(path, HERE)))
    used = await credentials.current()
    path.write_text("t2")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    renewed = await credentials.refresh(used)

    assert renewed.headers() == (("Authorization", "Bearer t2"),)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("\n")])
async def test_the_last_token_serves_while_the_file_cannot_be_read(
    tmp_path: Path, damage: object
) -> None:
    path = tmp_path / "token"
    write_token(path, "t1")
    credentials = make_auth_source(target(TokenFile(path, HERE)))
    before = await credentials.current()
    assert callable(damage)

    damage(path)

    assert await credentials.current() is before


async def test_the_spare_token_serves_until_the_file_is_there(tmp_path: Path) -> None:
    path = tmp_path / "token"
    credentials = make_auth_source(target(TokenFile(path, HERE, SecretValue("spare"))))
    before = await credentials.current()

    write_token(path, "t1")

    assert before.headers() == (("Authorization", "Bearer spare"),)
    assert (await credentials.current()).headers() == (("Authorization", "Bearer t1"),)


@pytest.mark.parametrize(
    ("content", "code"), [(None, "config.file"), (" \n", "config.token"), ("a\nb", "config.token")]
)
async def test_a_token_file_that_never_was_good_is_an_error(
    tmp_path: Path, content: str | None, code: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConfigError) as caught:
        await make_auth_source(target(TokenFile(path, HERE))).current()

    assert (caught.value.code, caught.value.location) == (code, HERE)


def test_impersonation_names_everything_that_the_kubeconfig_names() -> None:
    identity = ImpersonatedUser(
        user="jane",
        uid="7",
        groups=("g1", "g 2"),
        extra=(("scopes", "a"), ("scopes", "b"), ("acme.com/Ü %", "c")),
    )

    assert impersonation_headers(identity) == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g 2"),
        ("Impersonate-Extra-scopes", "a"),
        ("Impersonate-Extra-scopes", "b"),
        ("Impersonate-Extra-acme.com%2F%C3%9C%20%25", "c"),
    )


async def test_the_kubeconfigs_impersonation_is_always_sent() -> None:
    auth = await make_auth_source(
        target(BearerToken(SecretValue("t")), ImpersonatedUser(user="jane"))
    ).current()

    assert auth.headers() == (("Authorization", "Bearer t"), ("Impersonate-User", "jane"))


async def test_a_call_may_impersonate_another_user_instead() -> None:
    auth = await make_auth_source(
        target(BearerToken(SecretValue("t")), ImpersonatedUser(user="jane"))
    ).current()

    headers = auth.headers(ImpersonatedUser(user="bot"))

    assert headers == (("Authorization", "Bearer t"), ("Impersonate-User", "bot"))
