"""The directory and the ports of one control plane, and the paths in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Part = Literal["etcd", "apiserver", "controller-manager", "scheduler", "kwok"]
PARTS: tuple[Part, ...] = get_args(Part)

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    """One port for each part, and a second one for etcd, which insists on having peers."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    kwok: int


@dataclass(frozen=True, slots=True)
class Site:
    """The directory and the ports of one control plane."""

    state: Path
    ports: Ports

    @property
    def server(self) -> str:
        return f"https://{HOST}:{self.ports.apiserver}"

    @property
    def etcd(self) -> str:
        return f"http://{HOST}:{self.ports.etcd}"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def settings(self) -> Path:
        return self.state / "settings"

    @property
    def audit_log(self) -> Path:
        return self.state / "audit.log"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    def log(self, part: Part) -> Path:
        return self.logs / f"{part}.log"

    def kubeconfig(self, user: str) -> Path:
        return self.state / "kubeconfigs" / f"{user}.yaml"

    def health(self, part: Part) -> tuple[str, str]:
        """The server and the path that answer 200 when the part does its work."""
        ports = self.ports
        match part:
            case "etcd":
                return self.etcd, "/health"
            case "apiserver":
                return self.server, "/readyz"
            case "controller-manager":
                return f"https://{HOST}:{ports.controller_manager}", "/healthz"
            case "scheduler":
                return f"https://{HOST}:{ports.scheduler}", "/readyz"
            case "kwok":
                return f"http://{HOST}:{ports.kwok}", "/readyz"
