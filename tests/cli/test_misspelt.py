"""Misspelt words are reported with their location and what may be meant, in every verb."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.tidegate_runs import write_unit

VERBS = [
    *(("plan",), ("simulate",), ("sync", "--sandbox"), ("lint",)),
    *(("render",), ("units",), ("waves",), ("graph",), ("delete", "--sandbox")),
]
NOTES = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  annotations:
    {note}
"""
MISSPELT = {
    "hook": ("argocd.argoproj.io/hook: Presync", "argo.hook", "`Presync`", "`PreSync`"),
    "one of two hooks": (
        "argocd.argoproj.io/hook: PreSync,Postsync",
        "argo.hook",
        "`Postsync`",
        "`PostSync`",
    ),
    "policy": (
        "argocd.argoproj.io/hook-delete-policy: HookSuceeded",
        "argo.hook",
        "`HookSuceeded`",
        "`HookSucceeded`",
    ),
    "Helm hook": ("helm.sh/hook: pre-instal", "argo.hook", "`pre-instal`", "`pre-install`"),
    "option": (
        "argocd.argoproj.io/sync-options: Prun=false",
        "argo.option",
        "`Prun=false`",
        "`Prune`",
    ),
    "annotation": (
        'argocd.argoproj.io/sync-wav: "3"',
        "argo.annotation",
        "`argocd.argoproj.io/sync-wav`",
        "`argocd.argoproj.io/sync-wave`",
    ),
}
RULES = {"argo.option": "ORD055"}
"""Codes that are rules of `lint`, under their own names."""
FINE = (
    "argocd.argoproj.io/compare-options: IgnoreExtraneous",
    "argocd.argoproj.io/tracking-id: web",
    "argocd.argoproj.io/sync-options: Force=true,Prune=false",
    "argocd.argoproj.io/hook: Skip",
    "helm.sh/hook: test",
    "example.org/hook: whatever",
)


def run(folder: Path, *args: str) -> CommandOutput:
    return run_in_process(folder, os.environ, args)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(("note", "code", "misspelt", "meant"), MISSPELT.values(), ids=MISSPELT)
def test_a_misspelt_word_is_reported_with_a_suggestion(
    note: str, code: str, misspelt: str, meant: str, verb: tuple[str, ...], tmp_path: Path
) -> None:
    write_unit(tmp_path / "unit", web=NOTES.format(note=note))

    ran = run(tmp_path, *verb, "unit")

    result = ran.stdout + ran.stderr
    expected = RULES.get(code, code) if verb == ("lint",) else code
    assert any(
        f"[{expected}]" in line and misspelt in line and "ConfigMap `web`" in line
        for line in result.splitlines()
    )
    assert meant in result
    assert "web.yaml:6:5" in result


@pytest.mark.parametrize("note", FINE)
def test_a_known_annotation_is_not_reported(note: str, tmp_path: Path) -> None:
    write_unit(tmp_path / "unit", web=NOTES.format(note=note))

    ran = run(tmp_path, "plan", "unit")

    assert "[argo." not in ran.stderr
    assert ran.code == 0


@pytest.mark.parametrize("verb", VERBS[:3], ids=lambda verb: verb[0])
def test_a_key_that_is_written_twice_is_refused(verb: tuple[str, ...], tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  a: b\n  a: c\n"
    write_unit(tmp_path / "unit", web=text)

    ran = run(tmp_path, *verb, "unit")

    assert ran.code == 3
    assert any(
        "error[documents.duplicate]" in line and "`data.a`" in line
        for line in ran.stderr.splitlines()
    )
    assert "  at unit/web.yaml:6:3 (data.a)" in ran.stderr


def test_a_key_that_is_written_twice_is_a_warning_of_render(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  a: b\n  a: c\n"
    write_unit(tmp_path / "unit", web=text)

    ran = run(tmp_path, "render", "unit")

    assert (ran.code, "a: c" in ran.stdout) == (0, True)
    assert ran.stderr.count("warning[documents.duplicate]") == 1
    assert any(
        "warning[documents.duplicate]" in line and "`data.a`" in line
        for line in ran.stderr.splitlines()
    )
    assert "  at unit/web.yaml:6:3 (data.a)" in ran.stderr


def test_an_overlay_reaches_its_base_outside_of_git_as_far_as_root_lets_it(tmp_path: Path) -> None:
    write_unit(
        tmp_path / "base",
        kustomization="resources: [web.yaml]\n",
        web=NOTES.replace("    {note}", "    a: b"),
    )
    overlay = write_unit(
        tmp_path / "apps" / "prod", kustomization="resources: [../../base]\nnamePrefix: prod-\n"
    )

    free = run(tmp_path, "plan", str(overlay))
    bound = run(tmp_path, "plan", str(overlay), "--load-root", "apps")
    astray = run(tmp_path, "plan", str(overlay), "--load-root", "base")

    assert free.code == 0, free.stderr
    assert "create    ConfigMap default/prod-web" in free.stdout
    assert (bound.code, astray.code) == (3, 2)
    assert any(
        "error[render.kustomize.outside]" in line and "`../../base`" in line
        for line in bound.stderr.splitlines()
    )
    assert "error[usage.root]" in astray.stderr


def test_values_of_a_chart_are_taken_as_helm_takes_them(tmp_path: Path) -> None:
    templates = tmp_path / "web" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 0.1.0}\n")
    values = "".join(f"  {item}: {{{{ .Values.{item} | toJson | quote }}}}\n" for item in "abc")
    (templates / "web.yaml").write_text(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata:\n{values}"
    )
    (tmp_path / "c.txt").write_text("one, two")

    given = ("--set", "a=1", "--set-string", "b=1", "--set-file", "c=c.txt")
    ran = run(tmp_path, "render", "web", *given)
    missing = run(tmp_path, "render", "web", "--set-file", "c=nowhere")

    assert ran.code == 0, ran.stderr
    for line in ('a: "1"', 'b: "\\"1\\""', 'c: "\\"one, two\\""'):
        assert f"  {line}\n" in ran.stdout
    assert missing.code == 2
