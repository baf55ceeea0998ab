"""Examples of the documents that need a cluster: run on the real one, in the order of a story.

Moments, durations and digests are another every time.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.support.cluster_client import ClusterClient
from tests.support.documented_examples import EXAMPLE, EXAMPLES, ON_A_CLUSTER, ROOT
from tests.support.tidegate_command import Tidegate
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import NotFound
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube

SHOP = Ref(Kind("", "v1", "Namespace"), "", "shop")
STORY = ("sync", "status", "delete")
SHOWN = {command: page for page, command in EXAMPLES if ON_A_CLUSTER in command}
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
USUAL_ADDRESS = "127.0.0.1:6443"
VARIES = (
    (re.compile(r" *\d+\.\d+s"), " 0.0s"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "digest"),
    (ADDRESS, USUAL_ADDRESS),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "moment"),
)


def place_in_story(command: str) -> int:
    return STORY.index(command.split()[1])


def steady(text: str) -> str:
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text


async def test_commands_on_a_cluster_print_the_documented_output(
    site: Site, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kubeconfig = site.kubeconfig()
    for command in sorted(SHOWN, key=place_in_story):
        page = SHOWN[command]

        ran = await Tidegate(tmp_path).run(
            *shlex.split(command)[1:], cwd=ROOT, KUBECONFIG=str(kubeconfig)
        )

        if pytestconfig.getoption("--golden"):
            text = page.read_text()
            start = text.index(f"$ {command}\n") + len(command) + 3
            shown = ADDRESS.sub(USUAL_ADDRESS, ran.stdout)
            page.write_text(text[:start] + shown + text[text.index("```", start) :])
        assert ran.code == 0, ran.stderr
        assert steady(ran.stdout) == steady(dict(EXAMPLE.findall(page.read_text()))[command])
    await forget_the_shop(kubeconfig)


async def forget_the_shop(kubeconfig: Path) -> None:
    """Delete the namespace, which stays by design, so that the example can run again."""
    async with real_world(kubeconfig=kubeconfig) as world:
        client = ClusterClient(Dispatcher(ResilientWorld(world)))
        await client.delete(SHOP)
        await client.eventually(
            lambda: client.get(SHOP), lambda result: isinstance(result, NotFound)
        )
