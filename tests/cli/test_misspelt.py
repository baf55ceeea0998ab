"""Words that nobody reads are told, with their place and what may be meant, in every verb."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.inside import Said, typed
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
WORDS = {
    "hook": (
        "argocd.argoproj.io/hook: Presync",
        "`Presync` of ConfigMap `web` is no hook: it is neither applied nor run",
        "did you mean `PreSync`?",
    ),
    "one of two hooks": (
        "argocd.argoproj.io/hook: PreSync,Postsync",
        "`Postsync` of ConfigMap `web` is no hook",
        "did you mean `PostSync`?",
    ),
    "policy": (
        "argocd.argoproj.io/hook-delete-policy: HookSuceeded",
        "`HookSuceeded` of ConfigMap `web` is no hook-delete-policy",
        "did you mean `HookSucceeded`?",
    ),
    "hook of Helm's": (
        "helm.sh/hook: pre-instal",
        "`pre-instal` of ConfigMap `web` is no hook of Helm's: it is neither applied nor run",
        "did you mean `pre-install`?",
    ),
    "option": (
        "argocd.argoproj.io/sync-options: Prun=false",
        "`Prun=false` of ConfigMap `web` does not count",
        "did you mean `Prune`?",
    ),
    "annotation": (
        'argocd.argoproj.io/sync-wav: "3"',
        "ConfigMap `web` has an annotation `argocd.argoproj.io/sync-wav`, which has no effect",
        "did you mean `argocd.argoproj.io/sync-wave`?",
    ),
}
FINE = (
    "argocd.argoproj.io/compare-options: IgnoreExtraneous",
    "argocd.argoproj.io/tracking-id: web",
    "argocd.argoproj.io/sync-options: Force=true,Prune=false",
    "argocd.argoproj.io/hook: Skip",
    "helm.sh/hook: test",
    "example.org/hook: whatever",
)


def run(folder: Path, *words: str) -> Said:
    return typed(folder, os.environ, words)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(("note", "message", "hint"), WORDS.values(), ids=WORDS)
def test_a_misspelt_word_is_told_with_what_may_be_meant(
    note: str, sentence: str, hint: str, verb: tuple[str, ...], tmp_path: Path
) -> None:
    write_unit(tmp_path / "unit", web=NOTES.format(note=note))

    ran = run(tmp_path, *verb, "unit")

    result = ran.stdout + ran.stderr
    assert sentence in result
    assert hint in result
    assert "web.yaml:6:5" in result


@pytest.mark.parametrize("note", FINE)
def test_what_somebody_reads_is_not_told(note: str, tmp_path: Path) -> None:
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
    assert "error[documents.duplicate]: the key `data.a` is written twice" in ran.stderr
    assert "  at unit/web.yaml:6:3 (data.a)" in ran.stderr


def test_a_key_that_is_written_twice_is_said_where_it_is_rendered(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  a: b\n  a: c\n"
    write_unit(tmp_path / "unit", web=text)

    ran = run(tmp_path, "render", "unit")

    assert (ran.code, "a: c" in ran.stdout) == (0, True)
    assert ran.stderr.count("warning[documents.duplicate]: the key `data.a` is written twice") == 1
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
    assert "error[render.kustomize.outside]: `../../base` leads out of the tree" in bound.stderr
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
