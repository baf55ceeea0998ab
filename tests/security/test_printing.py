"""Names, messages and paths of strangers: whatever is in them, they stay text on their line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.support.in_process_command import run_in_process
from tests.support.tidegate_runs import tidegate
from tidegate.documents import read_documents
from tidegate.documents.dump import to_yaml
from tidegate.errors import TidegateError, escape_line, redact_urls, sanitize_document

COMMANDS = ("::", "##[", "##vso[", "##teamcity[")
EVIL = "web\x1b[2J\x9b31m\r\n::add-mask::\u202eabc\n##vso[task.setvariable]x"
QUOTED = json.dumps(EVIL)
OBJECTS = {
    "name": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {QUOTED}}}\n",
    "kind": f"apiVersion: v1\nkind: {QUOTED}\nmetadata: {{name: web}}\n",
    "version": f"apiVersion: {QUOTED}\nkind: ConfigMap\nmetadata: {{name: web}}\n",
    "namespace": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {QUOTED}}}\n",
    "key": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{{QUOTED}: a}}\n",
    "wave": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: "
    f"{{argocd.argoproj.io/sync-wave: {QUOTED}}}}}\n",
    "block": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n"
    "    ::add-mask::web\n    ##[group]x\n",
    "message": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nstatus: {phase: Failed, message: "
    f"{QUOTED}, reason: {QUOTED}}}\n",
    "application": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: "
    f"{QUOTED}, namespace: argocd}}\nspec: {{project: {QUOTED}, source: {{repoURL: {QUOTED}, "
    f"path: {QUOTED}}}, destination: {{server: {QUOTED}}}}}\n",
    "flux": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "
    f"{QUOTED}, namespace: {QUOTED}}}\nspec: {{path: {QUOTED}, dependsOn: [{{name: {QUOTED}}}], "
    f"sourceRef: {{kind: {QUOTED}, name: {QUOTED}}}}}\n",
}
VERBS: tuple[tuple[str, ...], ...] = (
    ("render",),
    ("render", "-o", "json"),
    ("render", "-o", "names"),
    ("render", "--origins"),
    ("plan",),
    ("plan", "-o", "json"),
    ("units",),
    ("units", "-o", "json"),
    ("simulate",),
    ("sync", "--sandbox"),
    ("sync", "--sandbox", "-o", "json"),
    ("sandbox", "run"),
)


def obeyed(text: str) -> list[str]:
    """The lines that a terminal or a CI server would obey."""
    lines = text.split("\n")
    return [
        line
        for line in lines
        if line.lstrip().startswith("::")
        or any(command in line for command in COMMANDS[1:])
        or not line.isprintable()
    ]


@pytest.mark.parametrize("what", OBJECTS)
def test_control_characters_of_files_are_escaped(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[31mb"
    folder.mkdir()
    (folder / "web.yaml").write_text(OBJECTS[what])

    for verb in VERBS:
        ran = run_in_process(tmp_path, {"HOME": str(tmp_path)}, (*verb, folder.name))

        assert obeyed(ran.stdout) == [], verb
        assert obeyed(ran.stderr) == [], verb
        assert "Traceback" not in ran.stderr


def test_all_output_goes_through_one_function() -> None:
    """`SafeStream` and `ProgressLine` write rows, whose text is escaped where it is made."""
    cli = Path(__file__).parents[2] / "src" / "tidegate" / "cli"
    ways = [
        path.name
        for path in sorted(cli.rglob("*.py"))
        if re.search(r"\b(click\.echo|print)\(", path.read_text())
    ]

    assert ways == ["output.py"]


def test_control_characters_of_arguments_are_escaped() -> None:
    for words in (
        ("render", EVIL),
        (EVIL,),
        ("render", "--revision", EVIL, EVIL),
        ("config", EVIL),
    ):
        ran = tidegate(*words)

        assert ran.returncode in {2, 3}
        assert obeyed(ran.stdout + ran.stderr) == []


@given(some.text())
def test_a_sanitized_text_is_one_line_without_control_characters(text: str) -> None:
    assert obeyed(escape_line(text)) == []
    assert "\n" not in escape_line(text)
    if text.isprintable() and not any(command in text for command in ("::", "##")):
        assert escape_line(text) == text


@given(some.text())
def test_an_error_has_the_lines_that_it_has(text: str) -> None:
    error = str(TidegateError("a.b", text, hint=text or "x"))

    assert len(error.split("\n")) == 2
    assert obeyed(error) == []


JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.text() | some.just(EVIL),
    lambda inner: some.lists(inner) | some.dictionaries(some.text() | some.just("::a"), inner),
)


@given(some.dictionaries(some.text() | some.just(EVIL), JSON))
def test_sanitized_json_has_the_same_meaning(body: dict[str, object]) -> None:
    text = sanitize_document(json.dumps(body, ensure_ascii=False))

    assert json.loads(text) == body
    assert [line for line in obeyed(text) if line.isprintable()] == []


TEXTS = some.text(some.characters(codec="utf-8")) | some.sampled_from(
    [EVIL, "a\n::b", "  ::x\ny\n", "##[a]\n", "\u202ea\nb"]
)


@given(some.dictionaries(TEXTS, TEXTS, min_size=1))
def test_sanitized_yaml_has_the_same_meaning(body: dict[str, str]) -> None:
    text = sanitize_document(to_yaml({"kind": "A", "data": {**body}}))

    (document,) = read_documents(text, "a.yaml")
    assert document.body["data"] == body
    assert not any(line.lstrip().startswith("::") for line in text.split("\n"))
    assert not any(command in text for command in COMMANDS[1:])


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://TOKEN@host/a", "https://host/a"),
        ("https://me:TOKEN@host:8443/a", "https://host:8443/a"),
        ("https://me:a/TOKEN@host/a", "https://host/a"),
        ("https://me:a@TOKEN@host/a", "https://host/a"),
        ("ssh://TOKEN@host/a", "ssh://host/a"),
        ("oci://TOKEN@host/a and https://TOKEN@b", "oci://host/a and https://b"),
        ("https://host/a?access_token=TOKEN&ref=b", "https://host/a?access_token=***&ref=b"),
        ("https://host/a@b", "https://host/a@b"),
        ("https://host:8443/a@b", "https://host:8443/a@b"),
    ],
)
def test_an_address_shows_neither_user_nor_token(address: str, shown: str) -> None:
    assert redact_urls(address) == shown
