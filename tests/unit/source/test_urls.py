"""Addresses of repositories: which are refused, and which are the same."""

from __future__ import annotations

import pytest

from tidegate.errors import SourceError
from tidegate.source.urls import is_same_repository, read_git_url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=touch x",
        "--upload-pack=touch x",
        "ext::sh -c touch% x",
        "fd::17",
        "https::https://host/x",
        "ssh://-oProxyCommand=touch/x",
        "ssh://-oProxy@host/x",
        "-x@host:path",
        "git@-oProxy:path",
        "git@host:-path",
        "https://host",
        "https://host/a b",
        "https://host/a\nb",
        "https://host:port/a",
        "https://host/a?x=1",
        "https:///a",
        "file://server/share",
        "/etc",
        "../up",
    ],
)
def test_an_unsafe_url_is_rejected(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_git_url(text)

    assert caught.value.code == "source.url"


@pytest.mark.parametrize("text", ["git://host/x", "ftp://host/x", "rsync://host/x"])
def test_other_protocols_are_refused(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_git_url(text)

    assert caught.value.code == "source.url.scheme"


def test_a_scheme_can_be_forbidden() -> None:
    with pytest.raises(SourceError) as caught:
        read_git_url("file:///srv/x", schemes=frozenset({"https"}))

    assert caught.value.code == "source.url.scheme"


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(SourceError) as caught:
        read_git_url("https://ann:hunter2@host/x")

    assert caught.value.code == "source.url.password"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("git@github.com:acme/shop.git", "https://github.com/acme/shop"),
        ("ssh://git@host:2222/acme/shop.git", "https://host/acme/shop/"),
        ("https://Host/Acme/Shop", "https://host:443/acme/shop.git"),
        ("https://ann@host/acme/shop", "https://host/acme/shop"),
        ("git@host:/acme/shop", "ssh://git@host/acme/shop"),
    ],
)
def test_forms_of_one_address_are_the_same_repository(url: str, other: str) -> None:
    assert is_same_repository(url, other)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("https://host/acme/shop", "https://host/acme/shop2"),
        ("https://host/acme/shop", "https://other/acme/shop"),
        ("https://host/shop", "https://host:8443/shop"),
        ("-x", "-x"),
    ],
)
def test_different_urls_are_different_repositories(url: str, other: str) -> None:
    assert not is_same_repository(url, other)
