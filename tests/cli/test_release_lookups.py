"""A HelmRelease whose chart looks into the cluster: it sees what is there, and stays as it is."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.releases import (
    CONFIG_MAP,
    ONLY_WHERE_ABSENT,
    SECRET,
    ChartRepository,
    config_map,
    records,
    revision_statuses,
)
from tests.support.repositories import namespace
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import JsonObject

PASSWORD = """\
{{- $old := lookup "v1" "Secret" .Release.Namespace "password" }}
apiVersion: v1
kind: Secret
metadata:
  name: password
data:
  word: {{ if $old }}{{ $old.data.word }}{{ else }}{{ randAlphaNum 16 | b64enc }}{{ end }}
"""
SEEN = """'{{ (lookup "v1" "ConfigMap" "shop" "other").data.to }}'"""


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = ChartRepository(tmp_path / "repository")
    made.put("templates/web.yaml", config_map("web", to="'{{ .Values.to }}'"))
    made.release(values={"to": "one"})
    return made


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    other: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "other", "namespace": "shop"},
        "data": {"to": "the truth"},
    }
    hidden: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": "shop"},
        "data": {"word": base64.b64encode(b"hunter2-hunter2").decode()},
    }
    user_home = tmp_path / "home"
    user_home.mkdir()
    return PersistentSandbox.make(
        user_home, monkeypatch, namespace("shop"), other, hidden, served=False
    )


def word(sandbox: PersistentSandbox, name: str) -> str:
    return get_text(sandbox.all(SECRET, "shop")[name], "data", "word")


def test_a_template_sees_what_is_in_the_cluster(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/seen.yaml", config_map("seen", to=SEEN))

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    assert get_mapping(sandbox.all(CONFIG_MAP, "shop")["seen"], "data") == {"to": "the truth"}


@pytest.mark.parametrize("template", [PASSWORD, ONLY_WHERE_ABSENT])
def test_an_object_generated_because_it_was_absent_is_kept(
    sandbox: PersistentSandbox, shop: ChartRepository, template: str
) -> None:
    name = "password" if template is PASSWORD else "once"
    shop.put("templates/word.yaml", template)
    assert sandbox.sync(shop.root).code == 0
    first, before = word(sandbox, name), sandbox.all(SECRET, "shop")

    again = sandbox.sync(shop.root)

    assert again.code == 0, again.stderr
    assert sandbox.all(SECRET, "shop") == before
    assert word(sandbox, name) == first
    assert revision_statuses(sandbox) == [(1, "deployed")]


def test_drift_is_minded_by_the_record(sandbox: PersistentSandbox, shop: ChartRepository) -> None:
    shop.put("templates/word.yaml", ONLY_WHERE_ABSENT)
    shop.release(driftDetection={"mode": "enabled"})
    sandbox.sync(shop.root)
    first = word(sandbox, "once")
    sandbox.sync(shop.root)
    assert word(sandbox, "once") == first
    sandbox.delete(SECRET, "shop", "once")

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    assert word(sandbox, "once") == first
    assert revision_statuses(sandbox) == [(1, "deployed")]


@pytest.mark.parametrize("turns", [8, 14, 20])
def test_a_killed_run_continues_with_its_recorded_lookups(
    sandbox: PersistentSandbox, shop: ChartRepository, turns: int
) -> None:
    shop.put("templates/word.yaml", ONLY_WHERE_ABSENT)
    sandbox.killed(shop.root, turns=turns)

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    assert revision_statuses(sandbox) == [(1, "deployed")]
    assert f"word: {word(sandbox, 'once')}" in records(sandbox)[0].manifest


def test_an_upgrade_sees_what_the_install_has_made(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    """What is made only where it is absent goes, as Helm has it go."""
    shop.put("templates/word.yaml", PASSWORD)
    shop.put("templates/once.yaml", ONLY_WHERE_ABSENT)
    sandbox.sync(shop.root)
    first = word(sandbox, "password")
    shop.release(values={"to": "two"})

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    assert word(sandbox, "password") == first
    assert "once" not in sandbox.all(SECRET, "shop")
    assert revision_statuses(sandbox) == [(1, "superseded"), (2, "deployed")]


def test_a_list_is_found_and_numbers_stay_whole(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    count = """'{{ len (lookup "v1" "ConfigMap" "shop" "").items }}'"""
    missing = """'{{ lookup "apps/v1" "Deployment" "shop" "none" | len }}'"""
    made = """'{{ kindOf (lookup "v1" "Namespace" "" "shop").metadata.creationTimestamp }}'"""
    values = {"count": count, "missing": missing, "made": made}
    shop.put("templates/seen.yaml", config_map("seen", **values))

    ran = sandbox.sync(shop.root)

    assert ran.code == 0, ran.stderr
    seen = get_mapping(sandbox.all(CONFIG_MAP, "shop")["seen"], "data")
    assert seen["count"] != "0"
    assert (seen["missing"], seen["made"]) == ("0", "string")


def test_looked_up_secret_values_are_not_printed(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    text = """'{{ (lookup "v1" "Secret" "shop" "token").data.word | b64dec }}'"""
    shop.put("templates/seen.yaml", config_map("seen", to=text))
    shop.put("templates/NOTES.txt", '{{ lookup "v1" "Secret" "shop" "token" }}')

    ran = []
    for _ in range(2):
        ran.append(sandbox.reach("plan", shop.root, "-o", "json"))
        ran.append(sandbox.reach("flux", "diff", "helmrelease", "web", "-C", shop.root))
        ran.append(sandbox.sync(shop.root, "-o", "json"))

    assert get_mapping(sandbox.all(CONFIG_MAP, "shop")["seen"], "data") == {"to": "hunter2-hunter2"}
    assert [item.code for item in ran] == [0] * 6
    raw = "".join(item.stdout + item.stderr for item in ran)
    assert "seen" in raw
    assert "hunter2" not in raw
    assert "aHVudGVyMi" not in raw


def test_an_error_of_a_template_does_not_show_it_either(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    text = """((lookup "v1" "Secret" "shop" "token").data.word | b64dec)"""
    shop.put("templates/seen.yaml", f"""{{{{ fail (printf "no: %s" {text}) }}}}""")

    ran = sandbox.sync(shop.root)

    assert ran.code != 0
    assert "no: " in ran.stdout + ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr


def test_a_name_that_is_random_is_refused(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    random = """'{{ len (lookup "v1" "Secret" "shop" (randAlphaNum 9 | lower)) }}'"""
    shop.put("templates/seen.yaml", config_map("seen", to=random))

    ran = sandbox.sync(shop.root)

    assert ran.code != 0
    assert "render.helm.lookup" in ran.stderr


def test_without_a_cluster_lookups_find_nothing_and_a_note_says_so(
    sandbox: PersistentSandbox, shop: ChartRepository
) -> None:
    shop.put("templates/_aside.tpl", '{{/* lookup "v1" */}}{{ define "a.lookup" }}{{ end }}\n')
    shop.put("templates/word.yaml", PASSWORD)

    ran = sandbox.run("lint", shop.root)

    assert "render.lookup" in ran.stderr + ran.stdout
    assert "chart/templates/word.yaml:1" in ran.stderr + ran.stdout
    assert "_aside" not in ran.stderr + ran.stdout
