"""Trees that are parts of others, or made of several: what a unit finds in them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.conformance.flux.test_sources import controller
from tests.support.flux_repository import UNIT, Layers
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import URL, setting
from tidegate.model.k8s.objects import Json, JsonObject

LIBRARY = "https://git.example.com/shop/library.git"


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    made = Layers(tmp_path / "platform")
    made.put("apps/web/a.yaml", setting("a"))
    made.put("apps/shop/b.yaml", setting("b"))
    library = Layers(tmp_path / "library")
    library.put("base/c.yaml", setting("c"))
    library.put("base/deep/d.yaml", setting("d"))
    library.put("other/e.yaml", setting("e"))
    return made


def a_repository(name: str, url: str = URL, **spec: Json) -> JsonObject:
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": {"interval": "10m", "url": url, "ref": {"branch": "main"}, **spec},
    }


def a_generator(*copies: Json, **artifact: Json) -> JsonObject:
    return {
        "apiVersion": "source.extensions.fluxcd.io/v1beta1",
        "kind": "ArtifactGenerator",
        "metadata": {"name": "parts", "namespace": "flux-system"},
        "spec": {
            "sources": [
                {"alias": "repo", "kind": "GitRepository", "name": "platform"},
                {"alias": "lib", "kind": "GitRepository", "name": "library"},
            ],
            "artifacts": [{"name": "made", "copy": list(copies), **artifact}],
        },
    }


def reference(kind: str, name: str) -> Json:
    return {"kind": kind, "name": name}


def mapped(layers: Layers) -> tuple[str, str]:
    return "--repo-map", f"{LIBRARY}={layers.root.parent / 'library'}"


def test_a_sparse_checkout_has_only_its_directories(layers: Layers) -> None:
    layers.more = [a_repository("thin", sparseCheckout=["./apps/web"])]
    layers.unit("apps", sourceRef=reference("GitRepository", "thin"))

    assert set(layers.rendered("apps")) == {"a"}

    layers.unit("apps", sourceRef=reference("GitRepository", "thin"), path="./apps/shop")
    gone = layers.run("plan")
    layers.more = [a_repository("thin", sparseCheckout=["nowhere"])]
    missing = layers.run("plan")

    assert (gone.returncode, missing.returncode) == (3, 3)
    assert lines_with(gone.stderr, "error[source.path]", f"`{UNIT}apps`")
    assert lines_with(missing.stderr, "error[source.copy]", f"`{UNIT}apps`", "`nowhere`")
    assert "clusters/main/all.yaml:" in missing.stderr


def test_included_repositories_are_copied_into_one_tree(layers: Layers) -> None:
    layers.more = [
        a_repository("library", LIBRARY),
        a_repository(
            "whole",
            include=[
                {"repository": {"name": "library"}, "fromPath": "./base", "toPath": "apps/lib"},
                {"repository": {"name": "library"}},
            ],
            ignore="deep/",
        ),
    ]
    layers.unit("apps", sourceRef=reference("GitRepository", "whole"))

    assert set(layers.rendered("apps", *mapped(layers))) == {"a", "b", "c"}

    layers.unit("own", path="./apps/web")
    layers.unit("apps", sourceRef=reference("GitRepository", "whole"), path="./library")
    assert set(layers.rendered("apps", *mapped(layers))) == {"c", "e"}


def test_an_invalid_include_is_reported_with_its_location(
    layers: Layers, wording: RecordedWording
) -> None:
    cases: list[tuple[str, JsonObject]] = [
        ("nobody", {}),
        ("whole-1", {}),
        ("library", {"toPath": "apps"}),
        ("library", {"fromPath": "gone"}),
    ]
    layers.more = [a_repository("library", LIBRARY)]
    for number, (name, more) in enumerate(cases):
        include: Json = {"repository": {"name": name}, **more}
        layers.more.append(a_repository(f"whole-{number}", include=[include]))
        layers.unit(
            f"apps-{number}", sourceRef=reference("GitRepository", f"whole-{number}"), path="apps"
        )

    ran = layers.run("plan", *mapped(layers))

    assert ran.returncode == 3
    errors = [part for part in ran.stderr.split("error[")[1:] if "all.yaml:" in part]
    for number, error in enumerate(errors):
        assert f"`{UNIT}apps-{number}`" in error
    assert len(errors) == len(cases)
    wording(lines_with(ran.stderr, "error["))


@case(6)
def test_an_artifact_of_an_artifact_generator_is_built(layers: Layers) -> None:
    copies: list[Json] = [
        {"from": "@repo/apps/**", "to": "@artifact/all/", "exclude": ["shop/**"]},
        {"from": "@lib/base", "to": "@artifact/all", "exclude": ["deep"]},
        {"from": "@lib/other/e.yaml", "to": "@artifact/all/last.yaml"},
    ]
    layers.more = [a_repository("library", LIBRARY), a_generator(*copies)]
    layers.unit("apps", sourceRef=reference("ExternalArtifact", "made"), path="./all")

    assert set(layers.rendered("apps", *mapped(layers))) == {"a", "c", "e"}
    ran = layers.run("sync", "--sandbox", *mapped(layers))
    assert ran.returncode == 0, ran.stderr
    assert lines_with(ran.stderr, "note[flux.access]", f"`{UNIT}apps`", "`ExternalArtifact`")
    layers.more.append(controller("--feature-gates=ExternalArtifact=true"))
    layers.unit("own", path="./apps/web", targetNamespace="elsewhere")
    gated = layers.run("plan", *mapped(layers))
    assert gated.returncode == 0, gated.stderr
    assert "flux.access" not in gated.stderr


def test_the_merge_strategy_merges_files_of_an_artifact(layers: Layers) -> None:
    layers.write("base/kustomization.yaml", "resources: [a.yaml]\nnamePrefix: one-\n")
    layers.write("over/kustomization.yaml", "namePrefix: two-\n")
    layers.put("base/a.yaml", setting("a"))
    copies: list[Json] = [
        {"from": "@repo/base/*", "to": "@artifact/"},
        {"from": "@repo/over/kustomization.yaml", "to": "@artifact/base/", "strategy": "Merge"},
    ]
    layers.more = [a_repository("library", LIBRARY), a_generator(*copies)]
    layers.unit("apps", sourceRef=reference("ExternalArtifact", "made"), path="./base")

    assert set(layers.rendered("apps", *mapped(layers))) == {"two-a"}


BAD_COPIES: dict[str, JsonObject] = {
    "alias": {"from": "@none/x", "to": "@artifact/"},
    "target": {"from": "@repo/apps", "to": "all"},
    "fits": {"from": "@repo/apps/*.json", "to": "@artifact/"},
    "spared": {"from": "@repo/apps/*", "to": "@artifact/", "exclude": ["*"]},
    "gone": {"from": "@repo/gone", "to": "@artifact/"},
    "out": {"from": "@repo/apps", "to": "@artifact/../x"},
    "nobody": {"from": "@lib/x", "to": "@artifact/"},
    "archive": {"from": "@repo/apps/web/a.yaml", "to": "@artifact/", "strategy": "Extract"},
    "folder": {"from": "@repo/apps", "to": "@artifact/", "strategy": "Extract"},
    "broken": {"from": "@repo/broken.tgz", "to": "@artifact/", "strategy": "Extract"},
}


def test_an_artifact_that_cannot_be_built_is_reported_with_its_unit(
    layers: Layers, wording: RecordedWording
) -> None:
    artifacts: Json = [{"name": name, "copy": [copy]} for name, copy in BAD_COPIES.items()]
    generator = a_generator()
    spec = generator["spec"]
    assert isinstance(spec, dict)
    spec["artifacts"] = artifacts
    layers.more = [generator]
    layers.write("broken.tgz", "no archive")
    for name in BAD_COPIES:
        layers.unit(name, sourceRef=reference("ExternalArtifact", name), path="./all")

    ran = layers.run("plan")

    assert ran.returncode == 3
    for name in BAD_COPIES:
        assert len(lines_with(ran.stderr, "error[", f"`{UNIT}{name}`")) == 1
    assert ran.stderr.count("clusters/main/all.yaml:") >= len(BAD_COPIES)
    wording(lines_with(ran.stderr, "error["))


def an_archive(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_archives_are_unpacked_into_an_artifact(layers: Layers) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n".format
    layers.write("packed/deep/note.txt", "no archive is passed over")
    an_archive(layers.root / "packed/one.tgz", {"shop/one.yaml": text("one")})
    an_archive(layers.root / "packed/deep/Two.TAR.GZ", {"./shop/two.yaml": text("two")})
    an_archive(layers.root / "packed/deep/left.tgz", {"shop/left.yaml": text("left")})
    copies: list[Json] = [
        {"from": "@repo/packed/one.tgz", "to": "@artifact/all", "strategy": "Extract"},
        {
            "from": "@repo/packed/**/*",
            "to": "@artifact/all/",
            "strategy": "Extract",
            "exclude": ["left.*"],
        },
    ]
    layers.more = [a_repository("library", LIBRARY), a_generator(*copies)]
    layers.unit("apps", sourceRef=reference("ExternalArtifact", "made"), path="./all/shop")
    layers.unit("own", path="./apps/web")

    assert set(layers.rendered("apps", *mapped(layers))) == {"one", "two"}


def discovering(pattern: str, name: str, *copies: Json) -> JsonObject:
    generator = a_generator(*copies, name=name)
    spec = generator["spec"]
    assert isinstance(spec, dict)
    spec["pathPattern"] = pattern
    return generator


def test_each_directory_that_matches_a_pattern_is_an_artifact(
    layers: Layers, wording: RecordedWording
) -> None:
    for app, place in (("Auth", "dev"), ("Auth", "prod"), ("pay", "dev")):
        layers.put(f"teams/{app}/envs/{place}/a.yaml", setting(f"{app.lower()}-{place}"))
        layers.put(f"teams/{app}/base/b.yaml", setting(f"{app.lower()}-base"))
    copies: list[Json] = [
        {"from": "@repo/teams/{app}/base/**", "to": "@artifact/base/"},
        {"from": "@repo/teams/{app}/envs/{env}/**", "to": "@artifact/envs/{env}/"},
    ]
    generator = discovering("@repo/teams/{app}/envs/{env}", "{app}-{env}", *copies)
    layers.more = [a_repository("library", LIBRARY), generator]
    for name in ("auth-dev", "auth-prod", "pay-dev", "pay-prod"):
        layers.unit(name, sourceRef=reference("ExternalArtifact", name), path="./")

    assert set(layers.rendered("auth-prod")) == {"auth-base", "auth-prod"}
    assert set(layers.rendered("pay-dev")) == {"pay-base", "pay-dev"}
    lost = layers.run("plan")
    assert lost.returncode == 3
    (line,) = lines_with(lost.stderr, "error[source.")
    assert f"`{UNIT}pay-prod`" in line
    wording(line)


def test_a_pattern_without_matches_is_reported_with_its_location(
    layers: Layers, wording: RecordedWording
) -> None:
    for folder in ("teams/Auth", "teams/auth", "own"):
        layers.put(f"{folder}/a.yaml", setting("a"))
    copy: Json = {"from": "@repo/teams/**", "to": "@artifact/"}
    layers.more = [
        a_repository("library", LIBRARY),
        discovering("@repo/teams/{app}", "{app}", copy),
    ]
    layers.unit("made", sourceRef=reference("ExternalArtifact", "auth"), path="./")
    layers.unit("own")

    ran = layers.run("plan")

    assert ran.returncode == 3
    (line,) = lines_with(ran.stderr, "error[source.copy]")
    assert all(name in line for name in (f"`{UNIT}made`", "`teams/Auth`", "`teams/auth`"))
    wording(line)
    assert "clusters/main/all.yaml:" in ran.stderr


@case(26)
def test_remote_bases_can_be_forbidden(layers: Layers) -> None:
    library = Layers(layers.root.parent / "library")
    library.write("base/kustomization.yaml", "resources: [c.yaml]\n")
    base = f"{LIBRARY}//base?ref=main"
    layers.write("apps/kustomization.yaml", f"resources: [{base}]\n")
    layers.unit("apps")
    layers.put("own/a.yaml", setting("own"))
    layers.unit("own")

    opened = layers.run("plan", *mapped(layers))
    layers.more = [controller("--no-remote-bases")]
    closed = layers.run("sync", "--sandbox", *mapped(layers))

    assert opened.returncode == 0, opened.stderr
    assert "flux.access" not in opened.stderr
    assert closed.returncode == 3
    assert lines_with(closed.stderr, "error[flux.access]", f"`{UNIT}apps`", f"`{base}`")
    assert "no-remote-bases" in closed.stderr
