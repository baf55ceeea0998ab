"""Encrypted with the real `sops`, decrypted by us: the same bytes, or the right error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.sops_program import AgeKey, decrypt_by_program, encrypt, encrypt_by_rule
from tidegate.errors import Location, RenderError
from tidegate.render.sops import (
    Format,
    Keys,
    MacStatus,
    decrypt_file,
    format_of,
    is_encrypted,
    require_intact_mac,
)

YAML = r"""# about the whole
apiVersion: v1
kind: Secret
metadata:
  name: db # at the end of a line
  created: 2020-01-01
  on: yes
stringData:
  # about the password
  password: "hunter2"
  script: |
    one
      two

    three
  leading: "  x\ny"
  trailing: "x \ny"
  first-break: "\nx"
  breaks: "x\n\n"
  tab: "a\tb"
  tab-in-block: "a\tb\nc"
  whole: 12
  part: 1234567.5
  huge: 1e30
  tiny: 0.00001
  truth: true
  empty: ""
  nothing: null
  word: "yes"
  octal: "0777"
  date: "2020-01-01"
  moment: 2020-01-01
  sixty: "1:30"
  star: "*x: y"
  quote: "it's: q"
  spaces: " x "
  emoji: "😀"
  controls: "\x01\r\e"
  "key: with": "- dash"
  list:
  - a
  # inside a list
  - |
    b
    c
  - "  d\ne"
  - {x: "1", y: [2, [3, "f\ng"]]}
  empty-mapping: {}
  empty-list: []
---
# a second document
a: b
# at its end
"""
JSON = """{"a":1,"b":{"c":[true,null,1.5,"<x>&"]},"e":{},"l":[],"s":"",
"big":12345678901234567890,"u":"\\u2028é\\u0001\\b","x_unencrypted":{"n":9007199254740993}}"""
DOTENV = '# about A\nA=1\nB=two words\nC="x\\ny"\nEMPTY=\nWITH=a=b#c\n'
INI = """; first
top = 1
[one]
# about a
a = hello
longer_key = "  blanks  "
b = `x # y`
[two]
x=
"""
BINARY = b"any\x00\xff\xfe bytes"

FILES: dict[str, str | bytes] = {
    "secret.enc.yaml": YAML,
    "secret.json": JSON,
    "secret.env": DOTENV,
    "secret.ini": INI,
    "secret.bin": BINARY,
    ".dockerconfigjson": '{"auths":{}}',
}


@pytest.fixture(scope="module")
def key() -> AgeKey:
    return AgeKey.generate()


@pytest.mark.parametrize("name", FILES)
async def test_a_decrypted_file_is_written_like_by_sops(
    name: str, key: AgeKey, tmp_path: Path
) -> None:
    types = ("--input-type", "json", "--output-type", "json") if "docker" in name else ()
    encrypted = encrypt(tmp_path / name, FILES[name], key, *types)

    file = await decrypt_file(encrypted, key.keys, location=Location(name))

    plain_name = "plain.json" if "docker" in name else name
    assert file.content == decrypt_by_program(tmp_path / plain_name, encrypted, key)
    assert file.mac_status is MacStatus.INTACT
    assert is_encrypted(encrypted, format_of(name))
    assert not is_encrypted(file.content, format_of(name))


PLAIN = """kind: Secret
metadata:
  name: db
  # open
  port: 5432
stringData:
  user: ann
  # secret
  password: hunter2
  list:
  # secret
  - x
  - z
"""
OPTIONS = (
    ("--encrypted-regex", "^(data|stringData)$"),
    ("--unencrypted-regex", "^(metadata|kind)$"),
    ("--encrypted-suffix", "Data"),
    ("--unencrypted-suffix", "name"),
)
RULES = (
    ("encrypted_comment_regex: secret",),
    ("unencrypted_comment_regex: open",),
    ("encrypted_regex: Data", "mac_only_encrypted: true"),
    ("encrypted_comment_regex: secret", "mac_only_encrypted: true"),
    ('encrypted_regex: "^[[:lower:]]+D[[:alpha:]]+$"',),
)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
async def test_the_options_of_sops_choose_what_is_encrypted(
    options: tuple[str, ...], key: AgeKey, tmp_path: Path
) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", PLAIN, key, *options)

    file = await decrypt_file(encrypted, key.keys, location=Location("a.yaml"))

    assert file.content == decrypt_by_program(tmp_path / "b.yaml", encrypted, key)
    assert file.mac_status is MacStatus.INTACT


@pytest.mark.parametrize("rules", RULES, ids=" ".join)
async def test_rules_of_a_configuration_file_are_kept(
    rules: tuple[str, ...], key: AgeKey, tmp_path: Path
) -> None:
    encrypted = encrypt_by_rule(tmp_path / "a.yaml", PLAIN, key, *rules)

    file = await decrypt_file(encrypted, key.keys, location=Location("a.yaml"))

    assert file.content == decrypt_by_program(tmp_path / "b.yaml", encrypted, key)
    assert file.mac_status is MacStatus.INTACT


async def test_an_edited_plain_part_is_decrypted_but_breaks_the_mac(
    key: AgeKey, tmp_path: Path, wording: RecordedWording
) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", PLAIN, key, "--encrypted-regex", "^stringData$")

    file = await decrypt_file(
        encrypted.replace(b"name: db", b"name: dc"), key.keys, location=Location("a.yaml")
    )

    assert b"name: dc" in file.content
    assert file.mac_status is MacStatus.BROKEN
    with pytest.raises(RenderError) as caught:
        require_intact_mac(file.mac_status, Location("a.yaml"))
    assert caught.value.code == "render.sops.mac"
    wording(caught.value.problem)


async def test_an_edited_plain_part_is_accepted_if_the_mac_does_not_cover_it(
    key: AgeKey, tmp_path: Path
) -> None:
    rules = ("encrypted_regex: ^stringData$", "mac_only_encrypted: true")
    encrypted = encrypt_by_rule(tmp_path / "a.yaml", PLAIN, key, *rules)

    file = await decrypt_file(
        encrypted.replace(b"name: db", b"name: dc"), key.keys, location=Location("a.yaml")
    )

    assert file.mac_status is MacStatus.INTACT
    require_intact_mac(file.mac_status, Location("a.yaml"))


async def test_a_removed_value_breaks_the_mac(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.env", "A=1\nB=2\n", key)
    without = b"\n".join(line for line in encrypted.split(b"\n") if not line.startswith(b"B="))

    file = await decrypt_file(without, key.keys, location=Location("a.env"))

    assert file.content == b"A=1\n"
    assert file.mac_status is MacStatus.BROKEN


async def test_a_damaged_mac_is_broken(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)
    head, mark, tail = encrypted.partition(b"mac: ENC[AES256_GCM,data:")
    other = b"B" if tail.startswith(b"A") else b"A"

    file = await decrypt_file(head + mark + other + tail[1:], key.keys, location=Location("a.yaml"))

    assert file.mac_status is MacStatus.BROKEN


async def test_a_missing_mac_is_reported(
    key: AgeKey, tmp_path: Path, wording: RecordedWording
) -> None:
    encrypted = encrypt(tmp_path / "a.env", "A=1\n", key)
    lines = [b"sops_mac=" if b"sops_mac" in line else line for line in encrypted.split(b"\n")]

    file = await decrypt_file(b"\n".join(lines), key.keys, location=Location("a.env"))

    assert file.mac_status is MacStatus.ABSENT
    with pytest.raises(RenderError) as caught:
        require_intact_mac(file.mac_status, Location("a.env"))
    assert caught.value.code == "render.sops.mac"
    wording(caught.value.problem)


async def test_a_damaged_value_is_refused_with_its_field(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a:\n  b: [x, secret]\n", key)
    first = encrypted.index(b"data:") + len(b"data:")
    other = b"B" if encrypted[first:].startswith(b"A") else b"A"
    damaged = encrypted[:first] + other + encrypted[first + 1 :]

    with pytest.raises(RenderError) as caught:
        await decrypt_file(damaged, key.keys, location=Location("a.yaml"))

    assert caught.value.code == "render.sops.value"
    assert str(caught.value.location) == "a.yaml (a.b[0])"


async def test_a_moved_value_is_refused(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "user: ann\npassword: hunter2\n", key)

    with pytest.raises(RenderError) as caught:
        await decrypt_file(
            encrypted.replace(b"user:", b"name:"), key.keys, location=Location("a.yaml")
        )

    assert caught.value.code == "render.sops.value"


async def test_a_plain_value_in_place_of_an_encrypted_one_is_refused(
    key: AgeKey, tmp_path: Path
) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)

    with pytest.raises(RenderError) as caught:
        await decrypt_file(b"new: hello\n" + encrypted, key.keys, location=Location("a.yaml"))

    assert caught.value.code == "render.sops.plain"
    assert "hello" not in str(caught.value)


async def test_a_wrong_key_names_the_file_and_its_recipients(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)

    with pytest.raises(RenderError) as caught:
        await decrypt_file(encrypted, AgeKey.generate().keys, location=Location("shop/a.yaml"))

    assert caught.value.code == "render.sops.wrong-key"
    assert key.recipient in caught.value.problem
    assert str(caught.value.location) == "shop/a.yaml"


async def test_a_missing_key_is_reported_with_recipients_and_a_hint(
    key: AgeKey, tmp_path: Path
) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)

    with pytest.raises(RenderError) as caught:
        await decrypt_file(encrypted, Keys(), location=Location("a.yaml"))

    assert caught.value.code == "render.sops.key"
    assert key.recipient in caught.value.problem
    assert "SOPS_AGE_KEY" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "source", "code"),
    [
        ("a.yaml", b"a: b\n", "render.sops.metadata"),
        ("a.yaml", b"a: [\n", "render.sops.format"),
        ("a.env", b"no equals sign\n", "render.sops.format"),
        ("a.ini", b"no equals sign\n", "render.sops.format"),
        ("a.yaml", b"a: b\nsops: {age: 5}\n", "render.sops.metadata"),
        ("a.yaml", b"a: b\nsops: {mac: x}\n", "render.sops.metadata"),
        (
            "a.yaml",
            b"a: b\nsops: {age: [{recipient: x}], encrypted_regex: a, encrypted_suffix: b}\n",
            "render.sops.metadata",
        ),
        ("a.yaml", b"#" * (5 * 1024 * 1024 + 1), "render.sops.size"),
    ],
)
async def test_a_file_that_sops_would_refuse_is_refused(
    name: str, source: bytes, code: str, key: AgeKey
) -> None:
    with pytest.raises(RenderError) as caught:
        await decrypt_file(source, key.keys, location=Location(name))

    assert caught.value.code == code


async def test_a_bad_regular_expression_is_refused(
    key: AgeKey, tmp_path: Path, wording: RecordedWording
) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key, "--encrypted-regex", "^a$")

    with pytest.raises(RenderError) as caught:
        await decrypt_file(encrypted.replace(b"^a$", b"'('"), key.keys, location=Location("a.yaml"))

    assert caught.value.code == "render.sops.metadata"
    wording(caught.value.problem)


async def test_json_can_be_written_from_any_format(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: [1, x]\n", key)

    file = await decrypt_file(
        encrypted, key.keys, location=Location("a.yaml"), output_format=Format.JSON
    )

    assert file.content == b'{\n\t"a": [\n\t\t1,\n\t\t"x"\n\t]\n}\n'


async def test_flat_files_can_be_written_as_dotenv(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.json", '{"A": "x\\ny", "B": true}', key)

    file = await decrypt_file(
        encrypted, key.keys, location=Location("a.json"), output_format=Format.DOTENV
    )

    assert file.content == b"A=x\\ny\nB=true\n"


async def test_a_list_cannot_be_written_as_dotenv(key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: [1, x]\n", key)

    with pytest.raises(RenderError, match="DOTENV") as caught:
        await decrypt_file(
            encrypted, key.keys, location=Location("a.yaml"), output_format=Format.DOTENV
        )

    assert caught.value.code == "render.sops.format"
