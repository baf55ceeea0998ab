"""The command line of each part. Flags that are not obvious say why they are there."""

from __future__ import annotations

from plane.binaries.build import Binaries
from plane.parts.site import HOST, Part, Site

# The defaults (20 and 30) throttle everything.
_QPS = ("--kube-api-qps=5000", "--kube-api-burst=10000")
_EIGHT_GIB = 8 << 30


def command(part: Part, *, site: Site, binaries: Binaries) -> list[str]:
    """Program and arguments. Every one of them names the state directory at least once."""
    plane = str(binaries.plane)
    match part:
        case "etcd":
            return [plane, part, *_etcd(site)]
        case "apiserver":
            return [plane, part, *_apiserver(site)]
        case "controller-manager":
            return [plane, part, *_controllers(site)]
        case "scheduler":
            return [plane, part, *_scheduler(site)]
        case "kwok":
            return [str(binaries.kwok), *_kwok(site)]


def _etcd(site: Site) -> list[str]:
    peer = f"http://{HOST}:{site.ports.etcd_peer}"
    return [
        "--name=plane",
        f"--data-dir={site.state / 'etcd'}",
        f"--listen-client-urls={site.etcd}",
        f"--advertise-client-urls={site.etcd}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=plane={peer}",
        # The data is in memory and is deleted at the end.
        "--unsafe-no-fsync",
        f"--quota-backend-bytes={_EIGHT_GIB}",
        "--snapshot-count=100000",
        "--log-level=warn",
    ]


def _apiserver(site: Site) -> list[str]:
    return [
        f"--etcd-servers={site.etcd}",
        f"--bind-address={HOST}",
        f"--secure-port={site.ports.apiserver}",
        # There is no route to find an address by.
        f"--advertise-address={HOST}",
        "--endpoint-reconciler-type=none",
        *_serving_certificate(site),
        f"--client-ca-file={site.pki / 'ca.crt'}",
        f"--token-auth-file={site.pki / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={site.pki / 'service-account.pub'}",
        f"--service-account-signing-key-file={site.pki / 'service-account.key'}",
        # A /24 is full after 254 services.
        "--service-cluster-ip-range=10.96.0.0/12",
        "--service-node-port-range=30000-60000",
        "--allow-privileged=true",
        "--event-ttl=5m",
        *_kubelet_client(site),
        f"--audit-policy-file={site.settings / 'audit.yaml'}",
        f"--audit-log-path={site.audit_log}",
        "--audit-log-maxsize=4096",
    ]


def _kubelet_client(site: Site) -> list[str]:
    """For tests that play kubelet on a node of their own: logs come from there.

    No authority is given for the kubelet's certificate, so any will do.
    """
    return [
        f"--kubelet-client-certificate={site.pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={site.pki / 'kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _controllers(site: Site) -> list[str]:
    return [
        f"--kubeconfig={site.kubeconfig('kube-controller-manager')}",
        f"--bind-address={HOST}",
        f"--secure-port={site.ports.controller_manager}",
        *_serving_certificate(site),
        "--leader-elect=false",
        f"--service-account-private-key-file={site.pki / 'service-account.key'}",
        f"--root-ca-file={site.pki / 'ca.crt'}",
        *_QPS,
        "--concurrent-deployment-syncs=10",
        "--concurrent-replicaset-syncs=10",
        "--concurrent-statefulset-syncs=10",
        "--concurrent-job-syncs=10",
        # Binds volume claims of the storage class `standard`.
        "--enable-hostpath-provisioner=true",
    ]


def _scheduler(site: Site) -> list[str]:
    return [
        f"--config={site.settings / 'scheduler.yaml'}",
        f"--bind-address={HOST}",
        f"--secure-port={site.ports.scheduler}",
        *_serving_certificate(site),
    ]


def _kwok(site: Site) -> list[str]:
    return [
        f"--kubeconfig={site.kubeconfig('kwok')}",
        f"--config={site.settings / 'kwok.yaml'}",
        f"--server-address={HOST}:{site.ports.kwok}",
    ]


def _serving_certificate(site: Site) -> list[str]:
    return [
        f"--tls-cert-file={site.pki / 'server.crt'}",
        f"--tls-private-key-file={site.pki / 'server.key'}",
    ]
