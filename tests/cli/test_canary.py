"""A canary in each encrypted file is looked for wherever a run of the command could leave it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.canary_search import contents, seen
from tests.support.sops_program import AgeKey, encrypt
from tests.support.tidegate_command import CommandResult, Tidegate

OBJECT = "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n{field}:\n  a: {text}\n"
OVERLAY = """resources: [open.yaml, secret.yaml]
secretGenerator:
- name: generated
  files: [settings.yaml, settings.json, token]
  envs: [shop.env]
patches:
- path: patch.yaml
"""
SEALED_FIELDS = ("--encrypted-regex", "^(data|stringData)$")
CONTENTS = {
    "settings.yaml": "password: {canary}\n",
    "settings.json": '{{"password": "{canary}"}}\n',
    "token": "{canary}",
    "shop.env": "PASSWORD={canary}\n",
}


@dataclass
class CanaryRepository:
    """A repository with encrypted files, and all that a run may write to."""

    root: Path
    key: AgeKey = field(default_factory=AgeKey.generate)
    canaries: dict[str, str] = field(default_factory=dict)
    visible: str = field(default_factory=lambda: f"visible-{secrets.token_hex(12)}")

    def __post_init__(self) -> None:
        for folder in (self.user_home, self.temporary, self.cache):
            folder.mkdir(parents=True)

    @property
    def user_home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        return self.root / "temporary"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    def canary(self, path: str) -> str:
        return self.canaries.setdefault(path, f"canary-{secrets.token_hex(12)}")

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def encrypt_file(self, path: str, text: str, *options: str) -> None:
        """Write a file with a canary in it, encrypted."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = text.format(canary=self.canary(path))
        target.write_bytes(encrypt(target, text, self.key, *options))

    def encrypt_object(self, path: str, kind: str, name: str) -> None:
        field = "stringData" if kind == "Secret" else "data"
        text = OBJECT.format(kind=kind, name=name, field=field, text="{canary}")
        self.encrypt_file(path, text, *SEALED_FIELDS)

    def put_open(self, path: str) -> None:
        """A file whose content may be visible: it shows that the search finds contents."""
        text = OBJECT.format(kind="ConfigMap", name="open", field="data", text=self.visible)
        self.put(path, text)

    async def render(self, *arguments: str) -> CommandResult:
        return await Tidegate(self.user_home).run(
            *("render", *arguments),
            cwd=self.root,
            SOPS_AGE_KEY=self.key.identity,
            TMPDIR=str(self.temporary),
            XDG_CACHE_HOME=str(self.cache),
        )

    def leaks(self, *runs: CommandResult) -> list[str]:
        """Where each canary is seen."""
        texts = [(f"run {number}", f"{run.stdout}{run.stderr}") for number, run in enumerate(runs)]
        return seen(self.canaries.values(), texts, (self.user_home, self.temporary, self.cache))


@pytest.fixture
def place(tmp_path: Path) -> CanaryRepository:
    place = CanaryRepository(tmp_path)
    place.put("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 0.1.0\n")
    place.put_open("chart/templates/open.yaml")
    place.encrypt_object("chart/templates/secret.yaml", "Secret", "secret")
    place.encrypt_object("chart/templates/config.yaml", "ConfigMap", "config")
    place.put("overlay/kustomization.yaml", OVERLAY)
    place.put_open("overlay/open.yaml")
    place.encrypt_object("overlay/secret.yaml", "Secret", "secret")
    place.encrypt_object("overlay/patch.yaml", "ConfigMap", "open")
    for name, text in CONTENTS.items():
        place.encrypt_file(f"overlay/{name}", text)
    place.put_open("plain/open.yaml")
    place.encrypt_object("plain/secret.yaml", "Secret", "secret")
    place.encrypt_object("plain/deep/config.yaml", "ConfigMap", "config")
    return place


async def test_no_run_leaks_a_secret_value(place: CanaryRepository) -> None:
    runs = [
        await place.render("chart", "overlay", "plain", "-o", form, "--offline")
        for form in ("yaml", "json", "yaml")
    ]

    assert [(run.code, run.stderr) for run in runs] == [(0, "")] * 3
    assert place.visible in runs[0].stdout, "public content is visible"
    assert any(place.visible.encode() in text for _, text in contents(place.cache)), "and kept"
    assert len(place.canaries) == 10
    assert place.leaks(*runs) == []


async def test_files_were_opened_where_there_is_a_key(place: CanaryRepository) -> None:
    opened = await place.render("overlay", "plain", "--offline", "-o", "names")
    place.key = AgeKey.generate()
    locked = await place.render("overlay", "plain", "--offline", "-o", "names")

    assert opened.stdout != locked.stdout, "generated names have a digest of the content"
    assert "warning[render.sops.wrong-key]" in locked.stderr
    assert place.leaks(opened, locked) == []


@pytest.mark.parametrize(
    ("path", "text", "options"),
    [
        ("overlay/patch.yaml", "kind: ConfigMap\na: {canary}\n", ("--encrypted-regex", "^a$")),
        ("overlay/shop.env", "settings.yaml={canary}\n", ()),
        ("overlay/secret.yaml", "kind: Secret\na: {canary}\n", ("--encrypted-regex", "^a$")),
    ],
)
async def test_an_error_about_an_opened_file_does_not_quote_it(
    path: str, text: str, options: tuple[str, ...], place: CanaryRepository
) -> None:
    place.encrypt_file(path, text, *options)

    ran = await place.render("overlay", "--offline")

    assert ran.code == 3
    assert "error[render." in ran.stderr
    assert place.leaks(ran) == []
