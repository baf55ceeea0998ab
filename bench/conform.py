"""`lint`, compared with kubeconform on the same documents, which checks each object by itself.

kubeconform is built from its Go module, and reads schemas of a real API server. It checks types and
knows no order; it is here for scale.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from bench.lint import seconds_for, write_repository
from plane.cluster import ControlPlane
from plane.schemas import read_openapi
from tidegate.model.k8s.objects import Json

VERSION = "v0.7.0"
MODULE = f"github.com/yannh/kubeconform/cmd/kubeconform@{VERSION}"
UNITS = 1_000
"""Each has ten objects."""
KINDS = "x-kubernetes-group-version-kind"


def find_program() -> Path:
    """The program, built once and kept where the other tools are."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "tidegate" / "tools" / f"kubeconform-{VERSION}"
    if not (folder / "kubeconform").exists():
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(folder), "GOWORK": "off"}
        command = [str(shutil.which("go")), "install", MODULE]
        subprocess.run(command, check=True, cwd="/", env=environment)  # noqa: S603 - our own words
    return folder / "kubeconform"


def write_schemas(folder: Path) -> str:
    """A schema file for each kind of a real server, and their location for kubeconform."""
    with ControlPlane.start() as plane:
        documents = asyncio.run(read_openapi(plane.kubeconfig("tidegate")))
    for document in documents:
        components = document.get("components") if isinstance(document, dict) else None
        schemas = components.get("schemas") if isinstance(components, dict) else None
        for name, schema in schemas.items() if isinstance(schemas, dict) else ():
            kinds = schema.get(KINDS) if isinstance(schema, dict) else None
            for kind in kinds if isinstance(kinds, list) else ():
                _write_schema(folder, name, kind, components)
    return f"{folder}/{{{{.Group}}}}_{{{{.ResourceAPIVersion}}}}_{{{{.ResourceKind}}}}.json"


def _write_schema(folder: Path, name: str, kind: Json, components: Json) -> None:
    if isinstance(kind, dict):
        group = kind["group"] or kind["version"]  # as kubeconform calls the group without a name
        file = f"{group}_{kind['version']}_{str(kind['kind']).lower()}.json"
        whole = {"$ref": f"#/components/schemas/{name}", "components": components}
        (folder / file).write_bytes(msgspec.json.encode(whole))


def seconds_of(program: Path, location: str, folder: Path) -> float:
    """The time of one core that kubeconform takes for the objects of a repository."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "GOMAXPROCS": "1"}
    request = ["-n", "1", "-schema-location", location, "-summary", str(folder / "units")]
    ran = subprocess.run(  # noqa: S603 - our own words
        [str(program), *request], check=False, env=environment, capture_output=True, text=True
    )
    if f"{UNITS * 10} resources found" not in ran.stdout or "Errors: 0" not in ran.stdout:
        raise RuntimeError(ran.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as user_home:
        repository, schemas = Path(user_home) / "repository", Path(user_home) / "schemas"
        repository.mkdir()
        schemas.mkdir()
        write_repository(repository, UNITS)
        theirs = seconds_of(find_program(), write_schemas(schemas), repository)
    start = time.process_time()
    ours = asyncio.run(seconds_for(UNITS))
    whole = time.process_time() - start
    return {
        f"kubeconform, {UNITS * 10} objects, CPU s": theirs,
        "lint of the same, rendered already, CPU s": ours,
        "lint of the same with reading, CPU s": whole,
        "lint, rendered already : kubeconform": ours / theirs,
    }
