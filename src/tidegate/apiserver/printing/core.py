"""Services, settings, storage, nodes and events."""

from __future__ import annotations

from tidegate.apiserver.printing.cells import (
    AGE,
    CREATED,
    NAME,
    NONE,
    Body,
    Printer,
    containers,
    field,
    labels,
    shortened,
    since,
)
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, number, part, text

MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
ROLE = "node-role.kubernetes.io/"
OLD_ROLE = "kubernetes.io/role"


def _service_type(body: Body) -> str:
    return text(body, "spec", "type", default="ClusterIP")


def _cluster_ip(body: Body, _now: Ms) -> Json:
    addresses = listed(body, "spec", "clusterIPs")
    return addresses[0] if addresses else text(body, "spec", "clusterIP", default=NONE)


def balanced(body: Body) -> list[str]:
    """The addresses of a load balancer."""
    found = mappings(body, "status", "loadBalancer", "ingress")
    return [text(one, "ip") or text(one, "hostname") for one in found]


def _external_ip(body: Body, _now: Ms) -> Json:
    own = [str(one) for one in listed(body, "spec", "externalIPs")]
    match _service_type(body):
        case "ExternalName":
            return text(body, "spec", "externalName")
        case "LoadBalancer":
            return ",".join((*balanced(body), *own)) or "<pending>"
        case _:
            return ",".join(own) or NONE


def _ports(body: Body, _now: Ms) -> Json:
    found = []
    for one in mappings(body, "spec", "ports"):
        protocol = text(one, "protocol", default="TCP")
        node = f":{one['nodePort']}" if one.get("nodePort") else ""
        found.append(f"{one.get('port')}{node}/{protocol}")
    return ",".join(found) or NONE


def _endpoints(body: Body, _now: Ms) -> Json:
    found = []
    for subset in mappings(body, "subsets"):
        addresses = [text(one, "ip") for one in mappings(subset, "addresses")]
        ports = [number(one, "port") for one in mappings(subset, "ports")]
        if not ports:
            found += addresses
        found += [f"{address}:{port}" for port in ports for address in addresses]
    return shortened(found, empty=NONE)


def _kept(body: Body, _now: Ms) -> Json:
    return len(mapping(body, "data")) + len(mapping(body, "binaryData"))


def _modes(found: list[Json]) -> str:
    return ",".join(short for mode, short in MODES.items() if mode in found)


def _claim_status(body: Body, _now: Ms) -> Json:
    leaving = part(body, "metadata", "deletionTimestamp")
    return "Terminating" if leaving else text(body, "status", "phase")


def _claim_capacity(body: Body, _now: Ms) -> Json:
    bound = text(body, "spec", "volumeName")
    return text(body, "status", "capacity", "storage", default="0") if bound else ""


def _claim_modes(body: Body, _now: Ms) -> Json:
    return _modes(listed(body, "status", "accessModes")) if text(body, "spec", "volumeName") else ""


def _volume_claim(body: Body, _now: Ms) -> Json:
    claim = mapping(body, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else ""


def _node_status(body: Body, _now: Ms) -> Json:
    ready = [one for one in mappings(body, "status", "conditions") if text(one, "type") == "Ready"]
    told = "Unknown"
    if ready:
        told = "Ready" if text(ready[0], "status") == "True" else "NotReady"
    return told + (",SchedulingDisabled" if part(body, "spec", "unschedulable") is True else "")


def _roles(body: Body, _now: Ms) -> Json:
    known = mapping(body, "metadata", "labels")
    roles = {key.removeprefix(ROLE) for key in known if key.startswith(ROLE)}
    roles |= {str(known[OLD_ROLE])} if known.get(OLD_ROLE) else set()
    return ",".join(sorted(filter(None, roles))) or NONE


def _address(form: str) -> Printer:
    def cell(body: Body, _now: Ms) -> Json:
        found = mappings(body, "status", "addresses")
        return next((text(one, "address") for one in found if text(one, "type") == form), NONE)

    return Printer("Internal-IP" if form == "InternalIP" else "External-IP", cell, wide=True)


def _system(title: str, key: str) -> Printer:
    return Printer(title, field("status", "nodeInfo", key, default="<unknown>"), wide=True)


def _kernel(body: Body, _now: Ms) -> Json:
    system = mapping(body, "status", "nodeInfo")
    kernel, build = text(system, "kernelVersion"), text(system, "architecture")
    return f"{kernel} ({build})" if kernel and build else kernel or "<unknown>"


def _either(body: Body, key: str) -> Json:
    """A field of an event; in its newer group it has another name."""
    return body.get(key) or body.get(f"deprecated{key[0].upper()}{key[1:]}")


def _first_seen(body: Body, now: Ms) -> Json:
    return since(_either(body, "firstTimestamp") or body.get("eventTime"), now)


def _last_seen(body: Body, now: Ms) -> Json:
    observed = part(body, "series", "lastObservedTime") or _either(body, "lastTimestamp")
    return since(observed, now) if observed else _first_seen(body, now)


def _part_of(body: Body, _now: Ms) -> Json:
    about = mapping(body, "involvedObject") or mapping(body, "regarding")
    return text(about, "fieldPath")


def _about(body: Body, _now: Ms) -> Json:
    about = mapping(body, "involvedObject") or mapping(body, "regarding")
    return f"{text(about, 'kind').lower()}/{text(about, 'name')}"


def _reporter(body: Body, _now: Ms) -> Json:
    source = mapping(body, "source") or mapping(body, "deprecatedSource")
    who = text(source, "component") or text(body, "reportingComponent")
    who = who or text(body, "reportingController")
    where = text(source, "host") or text(body, "reportingInstance")
    return ", ".join(filter(None, (who, where)))


def _often(body: Body, _now: Ms) -> Json:
    return number(body, "series", "count") or _either(body, "count") or 1


def _said(body: Body, _now: Ms) -> Json:
    return (text(body, "message") or text(body, "note")).strip()


def _quota(body: Body, *, limits: bool) -> Json:
    hard, used = mapping(body, "status", "hard"), mapping(body, "status", "used")
    return ", ".join(
        f"{key}: {used.get(key, 0)}/{value}"
        for key, value in sorted(hard.items())
        if key.startswith("limits") is limits
    )


def _default_storage(body: Body, _now: Ms) -> Json:
    name, notes = text(body, "metadata", "name"), mapping(body, "metadata", "annotations")
    keys = (f"storageclass.{beta}kubernetes.io/is-default-class" for beta in ("", "beta."))
    return f"{name} (default)" if any(notes.get(key) == "true" for key in keys) else name


ATTRIBUTES = Printer(
    "VolumeAttributesClass", field("spec", "volumeAttributesClassName", default="<unset>")
)
VOLUME_MODE = Printer("VolumeMode", field("spec", "volumeMode", default="Filesystem"), wide=True)
EVENT = (
    Printer("Last Seen", _last_seen),
    Printer("Type", field("type")),
    Printer("Reason", field("reason")),
    Printer("Object", _about),
    Printer("Subobject", _part_of, wide=True),
    Printer("Source", _reporter, wide=True),
    Printer("Message", _said),
    Printer("First Seen", _first_seen, wide=True),
    Printer("Count", _often, wide=True),
    Printer("Name", NAME.cell, wide=True, format="name"),
)
CORE = {
    ("", "Service"): (
        NAME,
        Printer("Type", lambda body, _: _service_type(body)),
        Printer("Cluster-IP", _cluster_ip),
        Printer("External-IP", _external_ip),
        Printer("Port(s)", _ports),
        AGE,
        Printer("Selector", lambda body, _: labels(part(body, "spec", "selector")), wide=True),
    ),
    ("", "Endpoints"): (NAME, Printer("Endpoints", _endpoints), AGE),
    ("", "ConfigMap"): (NAME, Printer("Data", _kept), AGE),
    ("", "Secret"): (
        NAME,
        Printer("Type", field("type", default="Opaque")),
        Printer("Data", _kept),
        AGE,
    ),
    ("", "ServiceAccount"): (NAME, AGE),
    ("", "Namespace"): (NAME, Printer("Status", field("status", "phase")), AGE),
    ("", "LimitRange"): CREATED,
    ("", "ResourceQuota"): (
        NAME,
        Printer("Request", lambda body, _: _quota(body, limits=False)),
        Printer("Limit", lambda body, _: _quota(body, limits=True)),
        AGE,
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        Printer("Status", _claim_status),
        Printer("Volume", field("spec", "volumeName")),
        Printer("Capacity", _claim_capacity),
        Printer("Access Modes", _claim_modes),
        Printer("StorageClass", field("spec", "storageClassName")),
        ATTRIBUTES,
        AGE,
        VOLUME_MODE,
    ),
    ("", "PersistentVolume"): (
        NAME,
        Printer("Capacity", field("spec", "capacity", "storage")),
        Printer("Access Modes", lambda body, _: _modes(listed(body, "spec", "accessModes"))),
        Printer("Reclaim Policy", field("spec", "persistentVolumeReclaimPolicy", default="Retain")),
        Printer("Status", _claim_status),
        Printer("Claim", _volume_claim),
        Printer("StorageClass", field("spec", "storageClassName")),
        ATTRIBUTES,
        Printer("Reason", field("status", "reason")),
        AGE,
        VOLUME_MODE,
    ),
    ("", "Node"): (
        NAME,
        Printer("Status", _node_status),
        Printer("Roles", _roles),
        AGE,
        Printer("Version", field("status", "nodeInfo", "kubeletVersion")),
        _address("InternalIP"),
        _address("ExternalIP"),
        _system("OS-Image", "osImage"),
        Printer("Kernel-Version", _kernel, wide=True),
        _system("Container-Runtime", "containerRuntimeVersion"),
    ),
    ("", "Event"): EVENT,
    ("events.k8s.io", "Event"): EVENT,
    ("", "PodTemplate"): (
        NAME,
        *(one._replace(wide=False) for one in containers("template")),
        Printer("Pod Labels", lambda body, _: labels(part(body, "template", "metadata", "labels"))),
    ),
    ("storage.k8s.io", "StorageClass"): (
        NAME._replace(cell=_default_storage),
        Printer("Provisioner", field("provisioner")),
        Printer("ReclaimPolicy", field("reclaimPolicy", default="Delete")),
        Printer("VolumeBindingMode", field("volumeBindingMode", default="Immediate")),
        Printer("AllowVolumeExpansion", field("allowVolumeExpansion", default=False)),
        AGE,
    ),
}
