"""The platforms of the examples are written as their pages say: values, probes, hooks, steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.platforms import PLATFORMS, lay_out, type_among
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject

HOOK, WAVE = "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave"
POD = ("spec", "template", "spec")
WAVES = {
    "sealed-secrets": "-5",
    "fineract-dev-database-init": "-1",
    "fineract-dev-keycloak": "0",
    "fineract-dev-oauth2-proxy": "1",
    "fineract-dev-redis": "2",
    "fineract-dev-write": "3",
    "fineract-dev-read": "3",
    "fineract-dev-batch": "3",
    "fineract-dev-community-app": "4",
}
PHASES = [
    "010",
    "020",
    "099",
    "100",
    "110",
    "120",
    "130",
    "140",
    "150",
    "155",
    "199",
    "210",
    "220",
    "230",
    "240",
    "250",
    "260",
    "299",
    "310",
    "320",
    "330",
    "340",
    "350",
    "355",
    "399",
    "410",
    "420",
    "430",
    "440",
    "450",
    "455",
    "499",
    "510",
    "520",
    "530",
    "540",
    "550",
    "599",
    "610",
    "620",
    "630",
    "640",
    "650",
    "699",
]
CHECKED = {
    "infrastructure": ["cert-manager"],
    "databases": ["postgresql", "redis"],
    "apps": ["authentik"],
}


@pytest.fixture(scope="module")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("platforms"), *PLATFORMS)


def objects_of(platforms: Path, name: str) -> dict[str, JsonObject]:
    """What a platform renders to, by kind and name."""
    ran = type_among(platforms, "render", name, "-o", "json")
    assert ran.code == 0, ran.stderr
    bodies: list[JsonObject] = [json.loads(line) for line in ran.lines]
    return {
        f"{get_text(body, 'kind')} {get_text(body, 'metadata', 'name')}": body for body in bodies
    }


def notes_of(body: JsonObject) -> JsonObject:
    return get_mapping(body, "metadata", "annotations")


def test_nine_applications_have_their_waves_and_automated_sync(platforms: Path) -> None:
    objects = objects_of(platforms, "fineract")

    applications = {
        key: item for key, item in objects.items() if get_text(item, "kind") == "Application"
    }
    assert {
        get_text(application, "metadata", "name"): notes_of(application)[WAVE]
        for application in applications.values()
    } == (WAVES)
    policies = [
        get_value(application, "spec", "syncPolicy", "automated")
        for application in applications.values()
    ]
    assert policies == [{"prune": True, "selfHeal": True}] * len(WAVES)


def test_databases_and_schema_are_hooks_and_the_realm_follows_keycloak(platforms: Path) -> None:
    objects = objects_of(platforms, "fineract")

    hooks = {
        get_text(item, "metadata", "name"): (notes[HOOK], notes[WAVE])
        for item in objects.values()
        if HOOK in (notes := notes_of(item)) and get_text(item, "kind") == "Job"
    }
    assert hooks == {
        "create-databases": ("PreSync", "5"),
        "fineract-schema-migration": ("PreSync", "6"),
        "apply-keycloak-config": ("PostSync", "1"),
    }
    migration = objects["Job fineract-schema-migration"]
    assert get_value(migration, "spec", "backoffLimit") == 4
    (clears,) = get_mappings(migration, *POD, "initContainers")
    assert "UPDATE DATABASECHANGELOGLOCK" in str(get_list(clears, "args"))


def test_pods_wait_for_what_they_need_and_have_forty_minutes_to_start(platforms: Path) -> None:
    objects = objects_of(platforms, "fineract")

    waits = {
        get_text(item, "metadata", "name"): [get_text(wait, "name") for wait in waiting]
        for item in objects.values()
        if get_text(item, "kind") == "Deployment"
        and (waiting := get_mappings(item, *POD, "initContainers"))
    }
    modes = ("fineract-write", "fineract-read", "fineract-batch")
    assert waits == {
        "keycloak": ["wait-for-keycloak-db"],
        "oauth2-proxy": ["wait-for-fineract-realm"],
        **{mode: ["wait-for-schema-migration"] for mode in modes},
    }
    for mode in modes:
        (program,) = get_mappings(objects[f"Deployment {mode}"], *POD, "containers")
        probe = get_mapping(program, "startupProbe")
        times = ("initialDelaySeconds", "periodSeconds", "failureThreshold")
        assert [probe[key] for key in times] == [60, 30, 80]


def test_the_realm_has_its_clients_and_fineract_knows_the_issuer(platforms: Path) -> None:
    objects = objects_of(platforms, "fineract")

    realm: Json = json.loads(get_text(objects["ConfigMap fineract-realm"], "data", "fineract.json"))
    clients = get_mappings(realm, "clients")
    assert [get_text(client, "clientId") for client in clients] == [
        "fineract-oauth2-proxy",
        "community-app",
    ]
    assert all(get_mappings(client, "protocolMappers") for client in clients)
    assert get_mapping(realm, "roles", "client", "community-app") is not None
    settings = get_mapping(objects["ConfigMap fineract-write"], "data")
    signs = "SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT"
    assert str(settings[f"{signs}_ISSUER_URI"]).endswith("/realms/fineract")
    assert str(settings[f"{signs}_JWK_SET_URI"]).endswith("/protocol/openid-connect/certs")


def test_the_rule_for_applications_is_in_the_values_of_argo_cd(platforms: Path) -> None:
    objects = objects_of(platforms, "homelab")

    rules = get_mapping(objects["ConfigMap argocd-cm"], "data")
    rule = str(rules["resource.customizations.health.argoproj.io_Application"])
    assert "hs.status = obj.status.health.status" in rule


def test_sets_take_listed_paths_or_whatever_is_in_a_directory(platforms: Path) -> None:
    objects = objects_of(platforms, "homelab")

    def paths_of(name: str) -> list[str]:
        (generator,) = get_mappings(objects[f"ApplicationSet {name}"], "spec", "generators")
        taken = [
            directory
            for directory in get_mappings(generator, "git", "directories")
            if "exclude" not in directory
        ]
        return [get_text(item, "path") for item in taken]

    assert "infrastructure/controllers/cert-manager" in paths_of("infrastructure")
    assert (paths_of("monitoring"), paths_of("my-apps")) == (["monitoring/*"], ["my-apps/*/*"])


def test_one_appset_has_a_step_for_each_phase_with_a_limit(platforms: Path) -> None:
    objects = objects_of(platforms, "ladder")

    steps = get_mappings(
        objects["ApplicationSet ameide"], "spec", "strategy", "rollingSync", "steps"
    )
    taken = [get_list(get_mappings(step, "matchExpressions")[0], "values") for step in steps]
    assert taken == [[phase] for phase in PHASES]
    most = {phase: item.get("maxUpdate") for phase, item in zip(PHASES, steps, strict=True)}
    assert {most[phase] for phase in PHASES if phase.endswith(("10", "20"))} == {1}
    assert most["650"] is None


def test_layers_depend_on_each_other_decrypt_and_reconcile_every_ten_minutes(
    platforms: Path,
) -> None:
    objects = objects_of(platforms, "layers")

    before = ""
    for name, releases in CHECKED.items():
        spec = get_mapping(objects[f"Kustomization {name}"], "spec")
        assert spec["interval"] == "10m0s"
        assert spec["decryption"] == {"provider": "sops", "secretRef": {"name": "sops-age"}}
        assert [
            get_text(health_check, "name") for health_check in get_mappings(spec, "healthChecks")
        ] == releases
        assert [get_text(item, "name") for item in get_mappings(spec, "dependsOn")] == [
            before
        ] * bool(before)
        before = name
