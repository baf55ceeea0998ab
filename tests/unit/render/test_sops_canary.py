"""Decrypted values must not be in logs, errors, reprs or files: each file contains a canary."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pytest

from tests.support.sops_program import FOLDER, PROGRAM, AgeKey, encrypt
from tidegate.documents import Document, read_documents
from tidegate.errors import Location, TidegateError
from tidegate.render.scratch import MEMORY, PREFIX, remove_leftovers, scratch_directory
from tidegate.render.sops import Keys, decrypt, decrypt_file
from tidegate.render.substitute import Variables, substitute

CANARY = "canary-5f1d"
FILES = {
    "a.yaml": f"kind: Secret\nstringData:\n  a: {CANARY}\n  n: 5\n",
    "a.json": f'{{"a": "{CANARY}", "n": 5}}',
    "a.env": f"A={CANARY}\nN=5\n",
    "a.ini": f"[s]\na = {CANARY}\nn = 5\n",
    "a.bin": CANARY,
}
PGP = Keys.from_secret({"sops.asc": (FOLDER / "pgp-key.asc").read_bytes()}, program=PROGRAM)


@pytest.fixture(scope="module")
def key() -> AgeKey:
    return AgeKey.generate()


def leftovers() -> set[Path]:
    """Scratch directories of this process."""
    roots = (MEMORY, Path(tempfile.gettempdir()))
    return {path for root in roots for path in root.glob(f"{PREFIX}{os.getpid()}-*")}


@pytest.mark.parametrize("name", FILES)
async def test_a_decrypted_file_is_not_printed_or_logged(
    name: str,
    key: AgeKey,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    caplog.set_level(logging.DEBUG)
    encrypted = encrypt(tmp_path / name, FILES[name], key)

    file = await decrypt_file(encrypted, key.keys, location=Location(name))

    shown = "".join([repr(file), str(file), caplog.text, *capfd.readouterr()])
    assert CANARY.encode() in file.content
    assert CANARY not in shown
    assert list(temporary.iterdir()) == []


async def test_decrypted_objects_are_not_in_a_repr(key: AgeKey, tmp_path: Path) -> None:
    documents = read_documents(encrypt(tmp_path / "a.yaml", FILES["a.yaml"], key), "a.yaml")

    decrypted = await decrypt(documents, key.keys)

    assert decrypted.documents[0].body["stringData"] == {"a": CANARY, "n": 5}
    assert CANARY not in repr(decrypted)


@pytest.mark.parametrize("name", FILES)
async def test_no_error_contains_decrypted_values(name: str, key: AgeKey, tmp_path: Path) -> None:
    encrypted = encrypt(tmp_path / name, FILES[name], key)
    start = encrypted.rindex(b"data:", 0, encrypted.rindex(b"type:")) + len(b"data:")
    damaged = encrypted[:start] + b"AAAA" + encrypted[start + 4 :]
    message = ""

    for source, keys in ((encrypted, Keys()), (damaged, key.keys), (encrypted[:-9], key.keys)):
        try:
            await decrypt_file(source, keys, location=Location(name))
        except TidegateError as error:
            message += "".join(traceback.format_exception(error))

    assert "render.sops.key" in message
    assert CANARY not in message


async def test_the_program_leaves_no_files() -> None:
    source = (FOLDER / "pgp-secret.yaml").read_bytes()

    file = await decrypt_file(source, PGP, location=Location("pgp.yaml"))

    assert b"hunter2" in file.content
    assert leftovers() == set()


def test_an_error_of_a_substitution_does_not_contain_the_value() -> None:
    document = Document({"kind": "Secret", "stringData": {"a": "${secret}"}}, Location("a.yaml"))

    with pytest.raises(TidegateError) as caught:
        substitute(document, Variables({"secret": f"*{CANARY}: ["}))

    assert caught.value.code == "render.substitute.result"
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_scratch_directory_is_private_and_removed() -> None:
    with scratch_directory() as path:
        (path / "deep").mkdir()
        (path / "deep" / "file").write_text(CANARY)
        mode = path.stat().st_mode & 0o777

    assert mode == 0o700
    assert not path.exists()
    assert sys.platform != "linux" or path.parent == MEMORY


def test_a_scratch_directory_is_removed_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), scratch_directory():
        _ = 1 // 0

    assert leftovers() == set()


KILLED = """
import sys
from tidegate.render.scratch import scratch_directory
with scratch_directory() as path:
    (path / "file").write_text("canary")
    print(path, flush=True)
    sys.stdin.read()
"""


def test_leftovers_of_a_killed_process_are_removed_by_the_next_and_nothing_else_is() -> None:
    with (
        scratch_directory() as ours,
        subprocess.Popen(
            [sys.executable, "-c", KILLED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        ) as other,
    ):
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        remove_leftovers(theirs.parent)
        in_use = theirs.exists()
        other.kill()
        other.wait()
        left = theirs.exists()
        remove_leftovers(theirs.parent)

        assert (in_use, left, theirs.exists()) == (True, True, False)
        assert ours.exists()


@pytest.mark.parametrize("module", ["pyrage", "cryptography.exceptions"])
async def test_a_missing_extra_is_reported(
    module: str, key: AgeKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(TidegateError, match=f"`{module.partition('.')[0]}`") as caught:
        await decrypt_file(encrypted, key.keys, location=Location("a.yaml"))

    assert caught.value.code == "render.sops.extra"
    assert "tidegate[sops]" in caught.value.hint
