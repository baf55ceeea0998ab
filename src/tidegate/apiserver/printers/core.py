"""Columns of Services, configuration, storage, Nodes and Events.

Like `printService`, `printSecret`, `printPersistentVolumeClaim`, `printNode` and `printEvent` in
`pkg/printers/internalversion/printers.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from tidegate.apiserver.printers.cells import (
    AGE,
    CREATED_COLUMNS,
    NAME,
    NONE,
    TableColumn,
    container_columns,
    field_cell,
    format_age,
    format_labels,
    shorten,
)
from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import Ms

ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
LEGACY_ROLE_LABEL = "kubernetes.io/role"


def _service_type(body: JsonObject) -> str:
    return get_text(body, "spec", "type", default="ClusterIP")


def _cluster_ip(body: JsonObject, _now: Ms) -> Json:
    addresses = get_list(body, "spec", "clusterIPs")
    return addresses[0] if addresses else get_text(body, "spec", "clusterIP", default=NONE)


def load_balancer_addresses(body: JsonObject) -> list[str]:
    """Return the addresses of a load balancer."""
    ingresses = get_mappings(body, "status", "loadBalancer", "ingress")
    return [get_text(ingress, "ip") or get_text(ingress, "hostname") for ingress in ingresses]


def _external_ip(body: JsonObject, _now: Ms) -> Json:
    external_ips = [str(address) for address in get_list(body, "spec", "externalIPs")]
    match _service_type(body):
        case "ExternalName":
            return get_text(body, "spec", "externalName")
        case "LoadBalancer":
            return ",".join((*load_balancer_addresses(body), *external_ips)) or "<pending>"
        case _:
            return ",".join(external_ips) or NONE


def _ports(body: JsonObject, _now: Ms) -> Json:
    ports = []
    for port in get_mappings(body, "spec", "ports"):
        protocol = get_text(port, "protocol", default="TCP")
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{protocol}")
    return ",".join(ports) or NONE


def _endpoints(body: JsonObject, _now: Ms) -> Json:
    endpoints = []
    for subset in get_mappings(body, "subsets"):
        addresses = [get_text(address, "ip") for address in get_mappings(subset, "addresses")]
        ports = [get_int(port, "port") for port in get_mappings(subset, "ports")]
        if not ports:
            endpoints += addresses
        endpoints += [f"{address}:{port}" for port in ports for address in addresses]
    return shorten(endpoints, empty=NONE)


def _data_count(body: JsonObject, _now: Ms) -> Json:
    return len(get_mapping(body, "data")) + len(get_mapping(body, "binaryData"))


def _format_modes(modes: list[Json]) -> str:
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in modes)


def _claim_status(body: JsonObject, _now: Ms) -> Json:
    deleted_at = get_value(body, "metadata", "deletionTimestamp")
    return "Terminating" if deleted_at else get_text(body, "status", "phase")


def _claim_capacity(body: JsonObject, _now: Ms) -> Json:
    volume = get_text(body, "spec", "volumeName")
    return get_text(body, "status", "capacity", "storage", default="0") if volume else ""


def _claim_modes(body: JsonObject, _now: Ms) -> Json:
    return (
        _format_modes(get_list(body, "status", "accessModes"))
        if get_text(body, "spec", "volumeName")
        else ""
    )


def _volume_claim(body: JsonObject, _now: Ms) -> Json:
    claim = get_mapping(body, "spec", "claimRef")
    return f"{get_text(claim, 'namespace')}/{get_text(claim, 'name')}" if claim else ""


def _node_status(body: JsonObject, _now: Ms) -> Json:
    ready = [
        condition
        for condition in get_mappings(body, "status", "conditions")
        if get_text(condition, "type") == "Ready"
    ]
    status = "Unknown"
    if ready:
        status = "Ready" if get_text(ready[0], "status") == "True" else "NotReady"
    return status + (
        ",SchedulingDisabled" if get_value(body, "spec", "unschedulable") is True else ""
    )


def _roles(body: JsonObject, _now: Ms) -> Json:
    node_labels = get_mapping(body, "metadata", "labels")
    roles = {
        key.removeprefix(ROLE_LABEL_PREFIX)
        for key in node_labels
        if key.startswith(ROLE_LABEL_PREFIX)
    }
    roles |= {str(node_labels[LEGACY_ROLE_LABEL])} if node_labels.get(LEGACY_ROLE_LABEL) else set()
    return ",".join(sorted(filter(None, roles))) or NONE


def _address_column(address_type: str) -> TableColumn:
    def cell(body: JsonObject, _now: Ms) -> Json:
        addresses = get_mappings(body, "status", "addresses")
        return next(
            (
                get_text(address, "address")
                for address in addresses
                if get_text(address, "type") == address_type
            ),
            NONE,
        )

    return TableColumn(
        "Internal-IP" if address_type == "InternalIP" else "External-IP", cell, is_wide=True
    )


def _node_info_column(title: str, key: str) -> TableColumn:
    return TableColumn(
        title, field_cell("status", "nodeInfo", key, default="<unknown>"), is_wide=True
    )


def _kernel(body: JsonObject, _now: Ms) -> Json:
    system = get_mapping(body, "status", "nodeInfo")
    kernel, build = get_text(system, "kernelVersion"), get_text(system, "architecture")
    return f"{kernel} ({build})" if kernel and build else kernel or "<unknown>"


def _event_field(body: JsonObject, key: str) -> Json:
    """Return a field of an Event; `events.k8s.io` calls it `deprecated…`."""
    return body.get(key) or body.get(f"deprecated{key[0].upper()}{key[1:]}")


def _first_seen(body: JsonObject, now: Ms) -> Json:
    return format_age(_event_field(body, "firstTimestamp") or body.get("eventTime"), now)


def _last_seen(body: JsonObject, now: Ms) -> Json:
    observed = get_value(body, "series", "lastObservedTime") or _event_field(body, "lastTimestamp")
    return format_age(observed, now) if observed else _first_seen(body, now)


def _subobject(body: JsonObject, _now: Ms) -> Json:
    involved = get_mapping(body, "involvedObject") or get_mapping(body, "regarding")
    return get_text(involved, "fieldPath")


def _involved_object(body: JsonObject, _now: Ms) -> Json:
    involved = get_mapping(body, "involvedObject") or get_mapping(body, "regarding")
    return f"{get_text(involved, 'kind').lower()}/{get_text(involved, 'name')}"


def _event_source(body: JsonObject, _now: Ms) -> Json:
    source = get_mapping(body, "source") or get_mapping(body, "deprecatedSource")
    component = get_text(source, "component") or get_text(body, "reportingComponent")
    component = component or get_text(body, "reportingController")
    instance = get_text(source, "host") or get_text(body, "reportingInstance")
    return ", ".join(filter(None, (component, instance)))


def _event_count(body: JsonObject, _now: Ms) -> Json:
    return get_int(body, "series", "count") or _event_field(body, "count") or 1


def _event_message(body: JsonObject, _now: Ms) -> Json:
    return (get_text(body, "message") or get_text(body, "note")).strip()


def _quota(body: JsonObject, *, limits: bool) -> Json:
    hard, used = get_mapping(body, "status", "hard"), get_mapping(body, "status", "used")
    return ", ".join(
        f"{key}: {used.get(key, 0)}/{value}"
        for key, value in sorted(hard.items())
        if key.startswith("limits") is limits
    )


def _storage_class_name(body: JsonObject, _now: Ms) -> Json:
    name, object_annotations = (
        get_text(body, "metadata", "name"),
        get_mapping(body, "metadata", "annotations"),
    )
    keys = (f"storageclass.{beta}kubernetes.io/is-default-class" for beta in ("", "beta."))
    return (
        f"{name} (default)" if any(object_annotations.get(key) == "true" for key in keys) else name
    )


ATTRIBUTES_CLASS = TableColumn(
    "VolumeAttributesClass", field_cell("spec", "volumeAttributesClassName", default="<unset>")
)
VOLUME_MODE = TableColumn(
    "VolumeMode", field_cell("spec", "volumeMode", default="Filesystem"), is_wide=True
)
EVENT_COLUMNS = (
    TableColumn("Last Seen", _last_seen),
    TableColumn("Type", field_cell("type")),
    TableColumn("Reason", field_cell("reason")),
    TableColumn("Object", _involved_object),
    TableColumn("Subobject", _subobject, is_wide=True),
    TableColumn("Source", _event_source, is_wide=True),
    TableColumn("Message", _event_message),
    TableColumn("First Seen", _first_seen, is_wide=True),
    TableColumn("Count", _event_count, is_wide=True),
    TableColumn("Name", NAME.cell, is_wide=True, format="name"),
)
CORE_COLUMNS = {
    ("", "Service"): (
        NAME,
        TableColumn("Type", lambda body, _: _service_type(body)),
        TableColumn("Cluster-IP", _cluster_ip),
        TableColumn("External-IP", _external_ip),
        TableColumn("Port(s)", _ports),
        AGE,
        TableColumn(
            "Selector",
            lambda body, _: format_labels(get_value(body, "spec", "selector")),
            is_wide=True,
        ),
    ),
    ("", "Endpoints"): (NAME, TableColumn("Endpoints", _endpoints), AGE),
    ("", "ConfigMap"): (NAME, TableColumn("Data", _data_count), AGE),
    ("", "Secret"): (
        NAME,
        TableColumn("Type", field_cell("type", default="Opaque")),
        TableColumn("Data", _data_count),
        AGE,
    ),
    ("", "ServiceAccount"): (NAME, AGE),
    ("", "Namespace"): (NAME, TableColumn("Status", field_cell("status", "phase")), AGE),
    ("", "LimitRange"): CREATED_COLUMNS,
    ("", "ResourceQuota"): (
        NAME,
        TableColumn("Request", lambda body, _: _quota(body, limits=False)),
        TableColumn("Limit", lambda body, _: _quota(body, limits=True)),
        AGE,
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        TableColumn("Status", _claim_status),
        TableColumn("Volume", field_cell("spec", "volumeName")),
        TableColumn("Capacity", _claim_capacity),
        TableColumn("Access Modes", _claim_modes),
        TableColumn("StorageClass", field_cell("spec", "storageClassName")),
        ATTRIBUTES_CLASS,
        AGE,
        VOLUME_MODE,
    ),
    ("", "PersistentVolume"): (
        NAME,
        TableColumn("Capacity", field_cell("spec", "capacity", "storage")),
        TableColumn(
            "Access Modes", lambda body, _: _format_modes(get_list(body, "spec", "accessModes"))
        ),
        TableColumn(
            "Reclaim Policy", field_cell("spec", "persistentVolumeReclaimPolicy", default="Retain")
        ),
        TableColumn("Status", _claim_status),
        TableColumn("Claim", _volume_claim),
        TableColumn("StorageClass", field_cell("spec", "storageClassName")),
        ATTRIBUTES_CLASS,
        TableColumn("Reason", field_cell("status", "reason")),
        AGE,
        VOLUME_MODE,
    ),
    ("", "Node"): (
        NAME,
        TableColumn("Status", _node_status),
        TableColumn("Roles", _roles),
        AGE,
        TableColumn("Version", field_cell("status", "nodeInfo", "kubeletVersion")),
        _address_column("InternalIP"),
        _address_column("ExternalIP"),
        _node_info_column("OS-Image", "osImage"),
        TableColumn("Kernel-Version", _kernel, is_wide=True),
        _node_info_column("Container-Runtime", "containerRuntimeVersion"),
    ),
    ("", "Event"): EVENT_COLUMNS,
    ("events.k8s.io", "Event"): EVENT_COLUMNS,
    ("", "PodTemplate"): (
        NAME,
        *(
            container_column._replace(is_wide=False)
            for container_column in container_columns("template")
        ),
        TableColumn(
            "Pod Labels",
            lambda body, _: format_labels(get_value(body, "template", "metadata", "labels")),
        ),
    ),
    ("storage.k8s.io", "StorageClass"): (
        NAME._replace(cell=_storage_class_name),
        TableColumn("Provisioner", field_cell("provisioner")),
        TableColumn("ReclaimPolicy", field_cell("reclaimPolicy", default="Delete")),
        TableColumn("VolumeBindingMode", field_cell("volumeBindingMode", default="Immediate")),
        TableColumn("AllowVolumeExpansion", field_cell("allowVolumeExpansion", default=False)),
        AGE,
    ),
}
