"""Health rules in Lua of `argocd-cm`: they gate waves, and children of Applications."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.argocd.stage import case
from tests.support.projects import written
from tests.support.repositories import Repository, application, named, namespace, setting
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import JsonObject

RULE = "resource.customizations.health.ConfigMap"
SCRIPT = """
hs = {status = "Healthy"}
if obj.data.to == "nowhere" then hs = {status = "Degraded", message = "it leads nowhere"} end
return hs
"""


@case(9)
def test_an_object_that_a_script_calls_degraded_fails_the_sync_until_it_is_fixed(
    tmp_path: Path,
) -> None:
    repository = Repository(tmp_path)
    rules: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": {RULE: SCRIPT}}
    repository.put("argocd/cm.yaml", {**rules, "metadata": named("argocd-cm", "argocd")})
    repository.put("apps/web.yaml", application("web", "web"))
    second = setting("cm-2", wave=2)
    repository.put("web/all.yaml", namespace("shop"), setting("cm-1", wave=1, to="nowhere"), second)

    failed = tidegate("simulate", repository.root, "-o", "json")
    repository.put("web/all.yaml", namespace("shop"), setting("cm-1", wave=1), second)
    fixed = tidegate("simulate", repository.root, "-o", "json")

    assert failed.returncode == 4
    assert "it leads nowhere" in failed.stdout
    assert written(failed) == {"shop", "cm-1"}
    assert fixed.returncode == 0, fixed.stderr
    assert written(fixed) == {"shop", "cm-1", "cm-2"}
