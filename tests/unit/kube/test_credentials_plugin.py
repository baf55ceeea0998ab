"""Exec plugins: real programs, their input, what is made of their answers, how often they run."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support import exec_plugin
from tests.support.recorded_wording import RecordedWording
from tests.unit.kube.test_credentials import HERE, target
from tidegate.errors import ConfigError, WaitTimeoutError
from tidegate.external.process import Limits
from tidegate.kube.access.context import ExecPlugin, InteractiveMode
from tidegate.kube.credentials import Auth, AuthSource, make_auth_source
from tidegate.kube.transport import no_response_from_error
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue
from tidegate.model.times import SECOND, Ms
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import LossReason

V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cr3t-s3cr3t"
TOKEN: dict[str, Json] = {"token": "t{count}"}


class Clock:
    """A clock that only moves when the test moves it."""

    def __init__(self) -> None:
        self.now = Ms(1_700_000_000_000)

    def __call__(self) -> Ms:
        return self.now


def answer(status: Json, version: str = V1) -> str:
    body = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return msgspec.json.encode(body).decode()


def plugin(folder: Path, printed: str, *more: str, cluster: bytes | None = None) -> ExecPlugin:
    program = str(Path(exec_plugin.__file__))
    return ExecPlugin(
        command=sys.executable,
        args=("-I", program, "--log", str(folder / "log"), "--answer", printed, *more),
        environment=(),
        path="",
        api_version=V1,
        interactive_mode=InteractiveMode.NEVER,
        install_hint="",
        cluster_info=cluster,
        location=HERE,
    )


def credentials(request: ExecPlugin, clock: Clock | None = None) -> AuthSource:
    return make_auth_source(target(request), now=clock or Clock(), has_terminal=lambda: False)


def runs(folder: Path) -> list[dict[str, Json]]:
    lines = (folder / "log").read_text().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", f"Bearer {token}"),)


async def refused(request: ExecPlugin) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        await credentials(request).current()
    seen: BaseException | None = caught.value
    while seen is not None:
        assert SECRET not in str(seen)
        seen = seen.__cause__
    return caught.value


async def test_a_plugins_token_is_sent_and_kept(tmp_path: Path) -> None:
    source = credentials(plugin(tmp_path, answer(TOKEN)))

    auths = [await source.current() for _ in range(3)]

    assert auths[0].headers() == bearer("t1")
    assert auths[1] is auths[0] is auths[2]
    assert len(runs(tmp_path)) == 1


async def test_concurrent_callers_share_one_run(tmp_path: Path) -> None:
    source = credentials(plugin(tmp_path, answer(TOKEN)))

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(source.current(), name=f"ask {n}") for n in range(20)]

    assert {task.result().headers() for task in asking} == {bearer("t1")}
    assert len(runs(tmp_path)) == 1


async def test_concurrent_callers_share_one_failure(tmp_path: Path) -> None:
    source = credentials(plugin(tmp_path, "", "--exit", "3"))

    async def ask() -> str:
        with pytest.raises(ConfigError) as caught:
            await source.current()
        return caught.value.code

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(ask(), name=f"ask {n}") for n in range(20)]

    assert {task.result() for task in asking} == {"config.exec.failed"}
    assert len(runs(tmp_path)) == 1


async def test_after_a_failure_the_next_caller_tries_again(tmp_path: Path) -> None:
    source = credentials(plugin(tmp_path, "", "--exit", "3"))

    for _ in range(2):
        with pytest.raises(ConfigError):
            await source.current()

    assert len(runs(tmp_path)) == 2


async def test_a_cancelled_wait_does_not_cancel_the_others(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    source = credentials(plugin(tmp_path, answer(TOKEN), "--gate", str(gate)))

    async with asyncio.TaskGroup() as tasks:
        hasty = tasks.create_task(source.current(), name="hasty")
        patient = tasks.create_task(source.current(), name="patient")
        shut = await asyncio.to_thread(gate.open, "w")  # opens when a plugin has been added
        hasty.cancel()
        await asyncio.wait([hasty])
        shut.close()
        (await asyncio.to_thread(gate.open, "w")).close()

    assert hasty.cancelled()
    assert patient.result().headers() == bearer("t2")


async def test_a_plugin_runs_again_shortly_before_its_token_expires(tmp_path: Path) -> None:
    clock = Clock()
    status = TOKEN | {"expirationTimestamp": "2023-11-14T22:18:20Z"}  # 300 s from the clock's now
    source = credentials(plugin(tmp_path, answer(status)), clock)
    await source.current()

    clock.now = Ms(clock.now + 289 * SECOND)
    early = await source.current()
    clock.now = Ms(clock.now + SECOND)
    renewed = await source.current()

    assert (early.headers(), renewed.headers()) == (bearer("t1"), bearer("t2"))


async def test_a_token_that_is_about_to_expire_is_still_used(tmp_path: Path) -> None:
    status = TOKEN | {"expirationTimestamp": "2023-11-14T22:13:25Z"}  # 5 s from the clock's now
    source = credentials(plugin(tmp_path, answer(status)))

    for _ in range(3):
        await source.current()

    assert len(runs(tmp_path)) == 1


async def test_a_token_that_has_expired_is_used_once_as_kubectl_does(tmp_path: Path) -> None:
    source = credentials(
        plugin(tmp_path, answer(TOKEN | {"expirationTimestamp": "2001-01-01T00:00:00Z"}))
    )

    first, second = await source.current(), await source.current()

    assert (first.headers(), second.headers()) == (bearer("t1"), bearer("t2"))


async def test_after_a_rejection_the_plugin_runs_once_for_all_callers(tmp_path: Path) -> None:
    source = credentials(plugin(tmp_path, answer(TOKEN)))
    used = await source.current()

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(source.refresh(used), name=f"ask {n}") for n in range(5)]
    renewed = await source.refresh(used)

    assert {auth.headers() for auth in [renewed, *(task.result() for task in asking)]} == {
        bearer("t2")
    }
    assert len(runs(tmp_path)) == 2


async def test_a_plugin_that_gives_the_same_again_has_nothing_newer(tmp_path: Path) -> None:
    source = credentials(plugin(tmp_path, answer({"token": "same"})))
    used = await source.current()

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(source.refresh(used), name=f"ask {n}") for n in range(5)]

    assert all(task.result() is used for task in asking)
    assert len(runs(tmp_path)) == 2


async def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    status: Json = {"clientCertificateData": "certificate", "clientKeyData": SECRET}

    auth: Auth = await credentials(plugin(tmp_path, answer(status))).current()

    assert auth.headers() == ()
    assert auth.certificate is not None
    assert auth.certificate.certificate == b"certificate"
    assert auth.certificate.key.reveal() == SECRET
    assert SECRET not in repr(auth)


async def test_a_plugin_learns_whether_it_may_prompt(tmp_path: Path) -> None:
    await credentials(plugin(tmp_path, answer(TOKEN))).current()

    assert runs(tmp_path) == [
        {"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}}
    ]


async def test_a_plugin_gets_the_cluster_if_it_requests_it(tmp_path: Path) -> None:
    cluster = b'{"server":"https://a.example","config":{"audience":"x"}}'

    await credentials(plugin(tmp_path, answer(TOKEN), cluster=cluster)).current()

    assert runs(tmp_path)[0]["spec"] == {
        "interactive": False,
        "cluster": {"server": "https://a.example", "config": {"audience": "x"}},
    }


async def test_a_plugin_gets_the_environment_it_was_given(tmp_path: Path) -> None:
    script = 'printf \'{"apiVersion":"%s","status":{"token":"%s"}}\' "$VERSION" "$TOKEN"'
    request = replace(
        plugin(tmp_path, ""),
        command="sh",
        args=("-c", script),
        path=os.environ["PATH"],
        environment=(("VERSION", V1), ("TOKEN", "from-env")),
    )

    auth = await credentials(request).current()

    assert auth.headers() == bearer("from-env")


async def test_yaml_is_taken_as_kubectl_takes_it(tmp_path: Path) -> None:
    text = f"apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: yaml\n"

    auth = await credentials(plugin(tmp_path, text)).current()

    assert auth.headers() == bearer("yaml")


async def test_a_missing_plugin_is_reported_with_its_install_hint(tmp_path: Path) -> None:
    request = replace(
        plugin(tmp_path, ""), command="no-such-plugin", install_hint="brew install\n\x1b[1mit"
    )

    error = await refused(request)

    assert (error.code, error.location) == ("config.exec.missing", HERE)
    assert "`no-such-plugin`" in error.problem
    assert error.hint == "brew install [1mit"


async def test_a_plugin_that_fails_is_reported_with_its_last_line(tmp_path: Path) -> None:
    request = plugin(tmp_path, answer({"token": SECRET}), "--exit", "3", "--say", "log in first")

    error = await refused(request)

    assert (error.code, error.location) == ("config.exec.failed", HERE)
    assert error.problem.endswith(" 3: log in first")


@pytest.mark.parametrize(
    "printed",
    [
        pytest.param("", id="empty"),
        pytest.param(SECRET, id="text"),
        pytest.param(f'{{"token": "{SECRET}"', id="half"),
        pytest.param(f"token: [{SECRET}\n b: c", id="yaml"),
        pytest.param(
            answer({"token": SECRET}, "client.authentication.k8s.io/v1beta1"), id="version"
        ),
        pytest.param(answer({"token": SECRET}).replace("ExecCredential", "Secret"), id="kind"),
        pytest.param(answer(None), id="no status"),
        pytest.param(answer({}), id="empty status"),
        pytest.param(answer({"clientKeyData": SECRET}), id="key alone"),
        pytest.param(answer({"token": [SECRET]}), id="list"),
        pytest.param(answer({"token": SECRET, "expirationTimestamp": "soon"}), id="no time"),
        pytest.param(
            answer({"token": SECRET, "expirationTimestamp": "2030-01-01T00:00:00"}), id="no zone"
        ),
        pytest.param(answer({"token": f"{SECRET}\n"}), id="line break"),
    ],
)
async def test_an_invalid_answer_is_reported_and_not_shown(
    tmp_path: Path, printed: str, wording: RecordedWording
) -> None:
    error = await refused(plugin(tmp_path, printed))

    assert (error.code, error.location) == ("config.exec.answer", HERE)
    wording(error.problem.replace(sys.executable, "PYTHON"))


async def test_a_plugin_that_must_ask_needs_a_terminal(tmp_path: Path) -> None:
    request = replace(plugin(tmp_path, answer(TOKEN)), interactive_mode=InteractiveMode.ALWAYS)

    error = await refused(request)

    assert error.code == "config.exec.terminal"


async def test_a_plugin_with_a_terminal_may_prompt(tmp_path: Path) -> None:
    request = replace(
        plugin(tmp_path, answer(TOKEN)), interactive_mode=InteractiveMode.IF_AVAILABLE
    )

    await make_auth_source(target(request), has_terminal=lambda: True).current()

    assert runs(tmp_path)[0]["spec"] == {"interactive": True}


async def test_a_plugin_that_hangs_is_ended_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidegate.kube.access.plugin.NON_INTERACTIVE_LIMITS", Limits(time=Ms(200), output=1_000)
    )
    hanging = replace(plugin(tmp_path, ""), args=("-c", "import time; time.sleep(1000)"))

    with pytest.raises(WaitTimeoutError) as raised:
        await credentials(hanging).current()

    assert (raised.value.code, raised.value.exit_code) == ("config.exec.timeout", 8)
    assert no_response_from_error(raised.value).reason is LossReason.CREDENTIALS_TIMEOUT
    result = error_from_outcome(no_response_from_error(raised.value), "connecting", location=HERE)
    assert (result.code, result.exit_code) == ("cluster.login-timeout", 8)


async def test_values_for_a_plugin_are_not_printed(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit('no: ' + os.environ['A'])"
    talking = replace(
        plugin(tmp_path, ""),
        args=("-c", script),
        environment=(("A", SECRET),),
        secrets=(SecretValue(SECRET),),
    )

    error = await refused(talking)

    assert SECRET not in str(error)
    assert "no: ***" in error.problem
