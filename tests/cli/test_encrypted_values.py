"""Variables and values in a Secret that no key decrypts: previews still work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.releases import ChartRepository, config_map
from tests.support.repositories import (
    Repository,
    deployment,
    git_repository,
    job,
    kustomization,
    namespace,
    setting,
)
from tests.support.served_cluster import served_cluster
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import Json, JsonObject

SEALED = "ENC[AES256_GCM,data:Zm9vYmFy,iv:AAAAAAAAAAAAAAAAAAAAAA==,tag:BBBBBBBBBBBB,type:str]"
VARIABLES: JsonObject = {"substituteFrom": [{"kind": "Secret", "name": "words"}]}
DECRYPTS: JsonObject = {"provider": "sops", "secretRef": {"name": "sops-age"}}


def sealed(name: str, place: str, *keys: str) -> JsonObject:
    """A Secret that SOPS has encrypted for another key."""
    age: Json = [{"recipient": "age1somebody", "enc": "-----BEGIN AGE ENCRYPTED FILE-----\n"}]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": place},
        "stringData": dict.fromkeys(keys, SEALED),
        "sops": {"age": age, "mac": SEALED, "lastmodified": "2026-01-01T00:00:00Z"},
    }


@pytest.fixture
def shop(tmp_path: Path) -> Repository:
    """A parent with a sealed Secret; a child whose text has a variable from there."""
    made = Repository(tmp_path / "shop")
    made.put(
        "clusters/one/units.yaml",
        git_repository(),
        kustomization("platform", "./platform", into="", decryption=DECRYPTS),
    )
    made.put(
        "platform/all.yaml",
        namespace("shop"),
        sealed("words", "flux-system", "DOMAIN"),
        kustomization("web", "./web", postBuild=VARIABLES),
    )
    made.put("web/all.yaml", setting("address", to="https://web.${DOMAIN}"), deployment("web"))
    return made


def test_a_unit_with_encrypted_variables_is_linted_and_simulated(
    wording: RecordedWording, shop: Repository
) -> None:
    linted = tidegate("lint", shop.root, "--offline", "-o", "json")
    played = tidegate("simulate", shop.root, "--offline")

    by_name = {
        finding["code"]: finding["severity"] for finding in json.loads(linted.stdout)["findings"]
    }
    assert by_name["render.sops.data"] == "note"
    assert "render.data" not in by_name
    assert linted.returncode == 0, linted.stdout
    assert "Kustomization/flux-system/web: rest" in played.stdout
    wording(line for line in played.stdout.splitlines() if "flux: " in line)


def test_an_error_in_a_unit_with_encrypted_variables_is_found(shop: Repository) -> None:
    asks: Json = [{"name": "word", "valueFrom": {"secretKeyRef": {"name": "none", "key": "a"}}}]
    broken = deployment("web")
    broken["spec"]["template"]["spec"]["containers"][0]["env"] = asks  # type: ignore[index,call-overload]
    shop.put("web/all.yaml", broken)

    played = tidegate("simulate", shop.root, "--offline")

    assert played.returncode == 4, played.stdout
    assert "Secret shop/none" in played.stdout


async def test_placeholders_are_not_rolled_out(tmp_path: Path, shop: Repository) -> None:
    async with served_cluster(tmp_path) as cluster:
        ran = await cluster.roll_out("sync", shop.root, "--yes")

    assert ran.code == 3
    assert any(
        "note[render.sops.data]" in line
        and "`Kustomization/flux-system/web`" in line
        and "Secret `words`" in line
        for line in ran.stderr.splitlines()
    )


def test_a_sealed_secret_of_another_unit_is_known_by_its_names(shop: Repository) -> None:
    shop.put(
        "platform/all.yaml", namespace("shop"), kustomization("web", "./web", postBuild=VARIABLES)
    )
    shop.put("words/all.yaml", sealed("words", "flux-system", "DOMAIN"))

    linted = tidegate("lint", shop.root, "--offline", "-o", "json")

    codes = [finding["code"] for finding in json.loads(linted.stdout)["findings"]]
    assert "render.sops.data" in codes
    assert "render.data" not in codes


def test_a_variable_that_the_sealed_secret_does_not_have_is_missed(shop: Repository) -> None:
    shop.put("web/all.yaml", setting("address", to="https://web.${ZONE}"))

    linted = tidegate("lint", shop.root, "--offline")

    assert linted.returncode == 3
    assert any(
        "error[render.substitute.missing]" in line and "`ZONE`" in line
        for line in linted.stdout.splitlines()
    )


def test_a_release_with_encrypted_values_is_rendered_without_them(tmp_path: Path) -> None:
    made = ChartRepository(tmp_path / "shop")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    whole: Json = {"kind": "Secret", "name": "words"}
    item: Json = {"kind": "Secret", "name": "words", "valuesKey": "to", "targetPath": "to"}
    made.release(valuesFrom=[whole, item])
    Repository(made.root).put("words/all.yaml", sealed("words", "shop", "values.yaml", "to"))

    linted = tidegate("lint", made.root, "--offline", "-o", "json")

    by_name = {
        finding["code"]: finding["severity"] for finding in json.loads(linted.stdout)["findings"]
    }
    assert by_name["render.sops.data"] == "note"
    assert "error" not in by_name.values()


def test_a_unit_next_to_the_source_of_its_variables_is_in_order(shop: Repository) -> None:
    linted = tidegate("lint", shop.root, "--offline", "-o", "json")

    assert "ORD003" not in [finding["code"] for finding in json.loads(linted.stdout)["findings"]]


def test_lint_does_not_mention_a_rollout(shop: Repository) -> None:
    linted = tidegate("lint", shop.root, "--offline", "-o", "json")

    assert "units.unpruned" not in [
        finding["code"] for finding in json.loads(linted.stdout)["findings"]
    ]


def test_the_fix_for_a_migration_in_parallel_with_its_app_uses_flux_features(
    wording: RecordedWording, shop: Repository
) -> None:
    migration = job("migrate")
    migration["spec"]["template"]["spec"]["containers"][0] = {  # type: ignore[index,call-overload]
        "name": "main",
        "image": "main:1",
        "args": ["migrate"],
    }
    shop.put("web/all.yaml", migration, deployment("web"))

    linted = tidegate("lint", shop.root, "--offline", "-o", "json")

    messages = [
        finding for finding in json.loads(linted.stdout)["findings"] if finding["code"] == "ORD020"
    ]
    wording(item["fix"] for item in messages)
