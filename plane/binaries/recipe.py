"""Inputs of the binaries, and the key of the directory that contains them.

The key depends on everything that changes the binaries: versions, Go code, build flags, the
machine. So any change causes a new build, and two equal checkouts share one build.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

KWOK_MODULE = "sigs.k8s.io/kwok"
KWOK_VERSION = "v0.8.0"
TAGS = "selinux,notest,grpcnotrace"
BUILD_ENVIRONMENT = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
SOURCES = Path(__file__).parent.parent / "go"
SOURCE_NAMES = ("go.mod", "go.sum", "main.go")
KWOK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_DIGEST_LENGTH = 12
# Unstamped, the server calls itself v0.0.0 and charts with a `kubeVersion` refuse it.
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what the binaries will be."""

    sources: Path
    kubernetes: str
    etcd: str
    go: str
    kwok: str
    system: str

    @property
    def plane_arguments(self) -> tuple[str, ...]:
        """Arguments of `go` that build the four parts."""
        flags = f"-s -w {_version_stamp(self.kubernetes)}"
        return ("build", "-trimpath", "-tags", TAGS, "-ldflags", flags)

    @property
    def kwok_arguments(self) -> tuple[str, ...]:
        """Arguments of `go` that build kwok.

        In a module graph of its own: in ours it would raise grpc and otel under the API server.
        """
        package = f"{KWOK_MODULE}/cmd/kwok@{self.kwok}"
        return ("install", "-trimpath", "-ldflags", "-s -w", package)

    @property
    def key(self) -> str:
        """The name of the directory that holds what this recipe makes."""
        digest = hashlib.sha256()
        for piece in self._pieces():
            digest.update(len(piece).to_bytes(8, "big"))
            digest.update(piece)
        short = digest.hexdigest()[:_DIGEST_LENGTH]
        return f"kubernetes-{self.kubernetes}-kwok-{self.kwok}-{self.system}-{short}"

    def _pieces(self) -> list[bytes]:
        words = [*self.plane_arguments, *self.kwok_arguments, *KWOK_STAGES, self.system]
        words += [f"{name}={value}" for name, value in sorted(BUILD_ENVIRONMENT.items())]
        files = [(self.sources / name).read_bytes() for name in SOURCE_NAMES]
        return [word.encode() for word in words] + files


def read_recipe(
    sources: Path = SOURCES, *, kwok: str = KWOK_VERSION, system: str | None = None
) -> Recipe:
    """The recipe of this tree; for this machine by default."""
    text = (sources / "go.mod").read_text()
    return Recipe(
        sources=sources,
        kubernetes=_required(text, r"k8s\.io/kubernetes"),
        etcd=_required(text, r"go\.etcd\.io/etcd/server/v3"),
        go=_required(text, "go"),
        kwok=kwok,
        system=system or this_system(),
    )


def this_system() -> str:
    """Operating system and architecture, as Go spells them."""
    machine = platform.machine()
    return f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"


def _required(go_mod: str, name: str) -> str:
    result = re.search(rf"^\s*{name} (\S+)$", go_mod, re.MULTILINE)
    if result is None:
        raise ValueError(f"go.mod names no version of {name}")
    return result[1]


def _version_stamp(kubernetes: str) -> str:
    major, minor, _ = kubernetes.removeprefix("v").split(".", 2)
    values = {
        "gitVersion": kubernetes,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    return " ".join(
        f"-X {package}.{name}={value}" for package in _STAMPED for name, value in values.items()
    )
