"""What a user may not do in a cluster: one clear error, and nothing is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plane.audit import read_audit
from tests.e2e.conftest import Site
from tests.e2e.output import lines_with, numbers_in
from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.recorded_wording import RecordedWording
from tests.support.rollout_audit import WRITES
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.tidegate_runs import config_map, write_unit
from tests.support.worlds import real_world
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Outcome
from tidegate.world.resilient import ResilientWorld

pytestmark = pytest.mark.kube

RBAC = "rbac.authorization.k8s.io"
READ = ["get", "list", "watch"]
WRITE = [*READ, "create", "delete", "patch", "update"]
REVIEWS = "selfsubjectaccessreviews"
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {argocd.argoproj.io/sync-wave: "1"}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""


def a_rule(group: str, *resources: str, verbs: list[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}


@dataclass(frozen=True, slots=True)
class Guest:
    """A user with few permissions; a unit with a ConfigMap and, a wave later, a Service."""

    site: Site
    client: ClusterClient
    unit: Path
    kubeconfig: Path

    @property
    def name(self) -> str:
        return f"guest-of-{self.client.namespace}"

    async def may(self, *rules: JsonObject, binding: str = "ClusterRoleBinding") -> None:
        """Grant rights; it takes a server a moment to know them."""
        group: JsonObject = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": self.name}}
        role: JsonObject = {**group, "kind": "ClusterRole", "rules": [*rules]}
        bound: JsonObject = {
            **group,
            "kind": binding,
            "subjects": [{"kind": "User", "name": self.name, "apiGroup": RBAC}],
            "roleRef": {"kind": "ClusterRole", "name": self.name, "apiGroup": RBAC},
        }
        require_live(await self.client.apply(role))
        require_live(await self.client.apply(bound))
        async with real_world(kubeconfig=self.kubeconfig) as world:
            guest = ClusterClient(
                Dispatcher(ResilientWorld(world)), namespace=self.client.namespace
            )
            question = a_question(rules[-1], guest.namespace)
            await guest.eventually(lambda: guest.create(question), is_allowed)

    async def tries(self, verb: str, *args: str) -> CommandResult:
        place = ("--kubeconfig", self.kubeconfig, "--namespace", self.client.namespace)
        return await Tidegate(self.unit.parent).run(verb, self.unit, *place, *args)

    def wrote(self) -> list[str]:
        """The resources of all that the guest wrote or tried to."""
        return [
            entry.object_ref.resource
            for entry in read_audit(self.site.plane.audit_log)
            if entry.user.username == self.name
            and entry.verb in WRITES
            and "dryRun=All" not in entry.request_uri
            and entry.object_ref.resource != REVIEWS
        ]


def a_question(rule: JsonObject, namespace: str) -> JsonObject:
    """May I do the last thing of a rule?"""
    groups, resources, verbs = rule["apiGroups"], rule["resources"], rule["verbs"]
    assert isinstance(groups, list)
    assert isinstance(resources, list)
    assert isinstance(verbs, list)
    requested_access: dict[str, Json] = {
        "group": groups[-1],
        "resource": resources[-1],
        "verb": verbs[-1],
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {**requested_access, "namespace": namespace}},
    }


def is_allowed(outcome: Outcome) -> bool:
    status = require_body(outcome)["status"]
    return isinstance(status, dict) and status.get("allowed") is True


@pytest.fixture
async def guest(site: Site, tmp_path: Path) -> AsyncIterator[Guest]:
    unit = write_unit(tmp_path / "home" / "unit", settings=config_map(), web=SERVICE)
    async with site.client(site.kubeconfig()) as client:
        certificate, key = site.plane.client_certificate(f"guest-of-{client.namespace}")
        login: JsonObject = {"client-certificate": str(certificate), "client-key": str(key)}
        yield Guest(site, client, unit, site.kubeconfig(user=login))


async def test_a_missing_write_permission_is_reported_before_the_first_write(
    guest: Guest, wording: RecordedWording
) -> None:
    await guest.may(
        a_rule("", "configmaps", "secrets", "namespaces", verbs=WRITE),
        a_rule("coordination.k8s.io", "leases", verbs=WRITE),
        a_rule("", "services", verbs=READ),
    )

    ran = await guest.tries("sync", "--yes")

    assert ran.code == 5, ran.stdout + ran.stderr
    place = guest.client.namespace
    (line,) = lines_with(ran.stderr, "error[preflight.forbidden]", f"Service {place}/web")
    assert all(part in line for part in ("create", "patch", "`services`", f"`{place}`"))
    wording(text.replace(place, "NAMESPACE") for text in lines_with(ran.stdout, "✗"))
    wording(line.replace(place, "NAMESPACE"))
    assert guest.wrote() == []


async def test_a_missing_delete_permission_is_reported_before_the_first_write(
    guest: Guest, wording: RecordedWording
) -> None:
    await guest.may(
        a_rule("", "configmaps", "secrets", "namespaces", verbs=WRITE),
        a_rule("coordination.k8s.io", "leases", verbs=WRITE),
        a_rule("", "services", verbs=[*READ, "create", "patch"]),
    )
    created = await guest.tries("sync", "--yes")
    before = guest.wrote()
    (guest.unit / "web.yaml").unlink()
    (guest.unit / "settings.yaml").write_text(config_map().replace("blue", "green"))

    ran = await guest.tries("sync", "--yes", "--prune")

    assert created.code == 0, created.stdout + created.stderr
    assert ran.code == 5, ran.stdout + ran.stderr
    place = guest.client.namespace
    (line,) = lines_with(ran.stderr, "error[preflight.forbidden]", f"Service {place}/web")
    assert all(part in line for part in ("delete", "`services`", f"`{place}`"))
    wording(text.replace(place, "NAMESPACE") for text in lines_with(ran.stdout, "✗"))
    wording(line.replace(place, "NAMESPACE"))
    assert guest.wrote() == before


@pytest.mark.parametrize("verb", ["plan", "status", "sync --yes"])
async def test_an_unreadable_object_is_an_error_and_not_missing(
    guest: Guest, verb: str, wording: RecordedWording
) -> None:
    await guest.may(
        a_rule("", "configmaps", "secrets", "namespaces", verbs=WRITE),
        a_rule("coordination.k8s.io", "leases", verbs=WRITE),
    )

    ran = await guest.tries(*verb.split())

    assert ran.code == 5, ran.stdout + ran.stderr
    head, place, hint = ran.stderr.splitlines()
    assert head.startswith("error[cluster.forbidden]: ")
    assert f'User "{guest.name}" cannot list resource "services"' in head
    unit = f"  at unit {guest.client.namespace}/unit"
    assert place == (unit if "sync" in verb else "  at Service")
    wording(hint)
    assert not [line for line in ran.lines if not line.startswith("target: ")]


async def test_a_missing_permission_for_the_journal_is_reported_before_the_first_write(
    guest: Guest,
) -> None:
    await guest.may(
        a_rule("coordination.k8s.io", "leases", verbs=READ),
        a_rule("", "configmaps", "secrets", "services", "namespaces", verbs=WRITE),
    )

    ran = await guest.tries("sync", "--yes")

    assert ran.code == 5, ran.stdout + ran.stderr
    assert ran.stderr.startswith("error[cluster.forbidden]: ")
    assert 'resource "leases"' in ran.stderr.splitlines()[0]
    assert f"  at unit {guest.client.namespace}/unit" in ran.stderr
    assert guest.wrote() == ["leases"]


async def test_a_user_of_one_namespace_sees_the_status_of_its_objects(guest: Guest) -> None:
    rule = a_rule("", "configmaps", "services", verbs=READ)
    await guest.may(rule, binding="RoleBinding")

    ran = await guest.tries("status")

    assert ran.code == 0, ran.stderr
    assert numbers_in(ran.lines[-1]) == [2, 2, 2]


async def test_a_unit_is_applied_with_an_impersonated_user(guest: Guest) -> None:
    """Its journal is written with our own: the guest may not touch Secrets."""
    await guest.may(a_rule("", "configmaps", "services", verbs=[*READ, "create", "patch"]))
    place = ("--kubeconfig", guest.site.kubeconfig(), "--namespace", guest.client.namespace)

    created = await Tidegate(guest.unit.parent).run(
        "sync", "--yes", guest.unit, *place, "--as", guest.name
    )
    (guest.unit / "web.yaml").unlink()
    refused = await Tidegate(guest.unit.parent).run(
        "sync", "--yes", guest.unit, *place, "--as", guest.name, "--prune"
    )

    entries = [
        entry
        for entry in read_audit(guest.site.plane.audit_log)
        if entry.verb in WRITES
        and entry.object_ref.namespace == guest.client.namespace
        and "dryRun" not in entry.request_uri
        and entry.object_ref.resource in {"configmaps", "services"}
        and entry.user_agent.startswith("tidegate")
    ]
    assert created.code == 0, created.stdout + created.stderr
    assert {entry.object_ref.resource for entry in entries} == {"configmaps", "services"}
    assert {entry.impersonated_user.username for entry in entries} == {guest.name}
    assert refused.code == 5, refused.stdout + refused.stderr
    assert lines_with(refused.stderr, "error[preflight.forbidden]", "delete", "`services`")
