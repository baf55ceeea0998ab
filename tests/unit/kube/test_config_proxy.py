"""Which proxy leads to a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.kube.test_config import config, write
from tidegate.errors import ConfigError
from tidegate.kube.config import load_target

PROXY = "http://proxy.example:3128"


def proxy_of(folder: Path, server: str, environ: dict[str, str], url: str | None = None) -> str:
    path = write(folder, config(cluster={"server": server, "proxy-url": url}))
    proxy = load_target(kubeconfig=str(path), environ=environ).proxy
    return proxy.reveal() if proxy else ""


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://a.example", {}, ""),
        ("https://a.example", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://a.example", {"https_proxy": PROXY}, PROXY),
        ("https://a.example", {"HTTPS_PROXY": PROXY, "https_proxy": "http://b"}, PROXY),
        ("https://a.example", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("https://a.example", {"HTTP_PROXY": PROXY, "ALL_PROXY": PROXY}, ""),
        ("http://a.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
    ],
)
def test_the_environment_names_a_proxy(
    tmp_path: Path, server: str, environ: dict[str, str], expected: str
) -> None:
    assert proxy_of(tmp_path, server, environ) == expected


@pytest.mark.parametrize(
    ("server", "exempt", "is_direct"),
    [
        ("https://a.example", "*", True),
        ("https://a.example", "b.example, a.example", True),
        ("https://deep.a.example", "a.example", True),
        ("https://deep.a.example", ".a.example", True),
        ("https://deep.a.example", "*.a.example", True),
        ("https://a.example", ".a.example", False),
        ("https://a.example", "*.a.example", False),
        ("https://xa.example", "a.example", False),
        ("https://A.Example", "a.eXample", True),
        ("https://a.example", "a.example:443", True),
        ("https://a.example:6443", "a.example:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:1", False),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://a.example", " , ,", False),
        ("https://a.example", "10.0.0.0/99", False),
    ],
)
def test_no_proxy_is_read_like_go(
    tmp_path: Path,
    server: str,
    exempt: str,
    is_direct: bool,  # noqa: FBT001
) -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": exempt}

    assert proxy_of(tmp_path, server, environ) == ("" if is_direct else PROXY)


def test_the_kubeconfigs_proxy_wins_and_has_no_exceptions(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://other.example", "NO_PROXY": "*"}

    assert proxy_of(tmp_path, "https://a.example", environ, PROXY) == PROXY


def test_an_invalid_proxy_is_reported_with_the_name_of_the_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        proxy_of(tmp_path, "https://a.example", {"HTTPS_PROXY": "socks5://proxy.example"})

    assert caught.value.code == "config.proxy"
    assert str(caught.value.location) == "HTTPS_PROXY"
