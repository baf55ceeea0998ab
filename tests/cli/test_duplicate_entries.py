"""Lists with two entries of the same key, which only client-side apply accepts, are rolled out."""

from __future__ import annotations

from pathlib import Path

from tests.support.repositories import Repository, application, deployment, namespace
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_mappings
from tidegate.model.k8s.objects import Json


def repeating() -> dict[str, Json]:
    """A Deployment with two variables of one name, and two names for one port."""
    made = deployment("web")
    (container,) = get_mappings(made, "spec", "template", "spec", "containers")
    container["env"] = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    container["ports"] = [
        {"containerPort": 8080, "name": "http"},
        {"containerPort": 8080, "name": "metrics"},
    ]
    return made


def test_entries_with_the_same_key_are_written_as_they_are_and_reported(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.put("apps/web.yaml", application("web", "web"))
    repository.put("web/all.yaml", namespace("shop"), repeating())

    ran = tidegate("sync", repository.root, "--sandbox")

    assert ran.returncode == 0, ran.stderr
    assert any(
        "warning[units.duplicate-entries]" in line
        and "Deployment shop/web" in line
        and "spec.template.spec.containers[0].env: A" in line
        and "spec.template.spec.containers[0].ports: 8080/TCP" in line
        for line in ran.stderr.splitlines()
    )
    assert "web/all.yaml:" in ran.stderr
    assert any(
        "wave 0" in line and "Namespace shop, Deployment shop/web" in line
        for line in ran.stdout.splitlines()
    )
