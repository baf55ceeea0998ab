"""What is wrong on the way to a cluster is one clear error, with a place and a hint."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plane.identity.certificates import Authority
from tests.e2e.conftest import Site, a_config_map
from tests.support.cluster_client import ClusterClient
from tests.support.kubelet import LogEndpoint
from tests.support.worlds import real_world
from tidegate.errors import Location, TidegateError
from tidegate.model.k8s.objects import Json
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import is_error
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube


async def error_of(kubeconfig: Path, context: str | None = None) -> TidegateError:
    """Output for a user who tries to connect."""
    with pytest.raises(TidegateError) as caught:
        async with real_world(kubeconfig=kubeconfig, context=context):
            pass
    error = caught.value
    assert error.location is not None
    assert error.location.name == str(kubeconfig)
    assert error.hint
    return error


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_an_unreachable_server(site: Site) -> None:
    error = await error_of(site.kubeconfig(url=f"https://127.0.0.1:{a_free_port()}"))

    assert error.code == "cluster.unreachable"
    assert "127.0.0.1" in error.problem


async def test_an_unknown_host_name(site: Site) -> None:
    error = await error_of(site.kubeconfig(url="https://no-such-host.invalid:6443"))

    assert error.code == "cluster.unknown-host"
    assert "no-such-host.invalid" in error.problem


async def test_a_certificate_of_an_unknown_authority(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = Authority(folder)

    error = await error_of(site.kubeconfig(cluster={"certificate-authority": str(other.ca)}))

    assert error.code == "cluster.untrusted"
    assert "certificate" in error.problem


async def test_a_certificate_for_another_host_name(site: Site) -> None:
    error = await error_of(site.kubeconfig(cluster={"tls-server-name": "other.example.org"}))

    assert error.code == "cluster.untrusted"
    assert "other.example.org" in error.problem


async def test_an_invalid_token(site: Site) -> None:
    error = await error_of(site.kubeconfig(user={"token": "nonsense"}))

    assert error.code == "cluster.unauthorized"
    assert "nonsense" not in str(error)


async def test_an_expired_client_certificate(site: Site) -> None:
    then = datetime.now(UTC) - timedelta(days=2)
    certificate, key = site.plane.client_certificate("alice", (), then - timedelta(days=1), then)
    user: dict[str, Json] = {"client-certificate": str(certificate), "client-key": str(key)}

    error = await error_of(site.kubeconfig(user=user))

    assert error.code == "cluster.credentials"
    assert f"{then:%Y-%m-%d}" in error.problem


async def test_a_missing_credential_plugin(site: Site) -> None:
    user: dict[str, Json] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "no-such-plugin",
            "interactiveMode": "Never",
            "installHint": "get it from your platform team",
        }
    }

    error = await error_of(site.kubeconfig(user=user))

    assert "no-such-plugin" in error.problem
    assert "get it from your platform team" in error.hint


async def test_an_unknown_context(site: Site) -> None:
    error = await error_of(site.kubeconfig(), context="prod")

    assert "prod" in error.problem
    assert "test" in error.hint


async def test_an_invalid_kubeconfig(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("apiVersion: v1\nclusters: [\n")

    error = await error_of(broken)

    assert error.location is not None
    assert error.location.line


async def test_an_address_that_is_not_an_api_server(site: Site) -> None:
    certificate, key = site.plane.authority.for_server("no-api-server", names=["127.0.0.1"])
    async with LogEndpoint(certificate, key).running() as endpoint:
        error = await error_of(site.kubeconfig(url=f"https://127.0.0.1:{endpoint.port}"))

    assert error.code == "cluster.foreign"


async def test_a_forbidden_request_names_the_verb_and_the_user(site: Site) -> None:
    kubeconfig = site.kubeconfig(user={"token": site.plane.token("guest")})
    async with real_world(kubeconfig=kubeconfig) as world:
        outcome = await ClusterClient(Dispatcher(ResilientWorld(world))).create(a_config_map())
    assert is_error(outcome)

    error = error_from_outcome(
        outcome, "creating ConfigMap default/web", location=Location("web.yaml", 1)
    )

    assert error.code == "cluster.forbidden"
    assert "guest" in error.problem
    assert str(error).splitlines()[1] == "  at web.yaml:1"
