"""Columns of networking, RBAC, admission and other administrative kinds.

Like `printIngress`, `printRoleBinding` and `printValidatingWebhook` in
`pkg/printers/internalversion/printers.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from tidegate.apiserver.printers.cells import (
    AGE,
    CREATED_COLUMNS,
    NAME,
    NONE,
    Cell,
    TableColumn,
    count_cell,
    field_cell,
    format_selector,
    shorten,
)
from tidegate.apiserver.printers.core import load_balancer_addresses
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import Ms

RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"


def _hosts(body: JsonObject, _now: Ms) -> Json:
    hosts = [get_text(rule, "host") for rule in get_mappings(body, "spec", "rules")]
    return shorten([host for host in hosts if host], empty="*")


def _ingress_address(body: JsonObject, _now: Ms) -> Json:
    return ",".join(load_balancer_addresses(body))


def _ingress_ports(body: JsonObject, _now: Ms) -> Json:
    return "80, 443" if get_list(body, "spec", "tls") else "80"


def _parameters(body: JsonObject, _now: Ms) -> Json:
    parameters = get_mapping(body, "spec", "parameters")
    if not parameters:
        return NONE
    kind = _kind_name(get_text(parameters, "kind"), get_text(parameters, "apiGroup"))
    return f"{kind}/{get_text(parameters, 'name')}"


def _kind_name(kind: str, group: str) -> str:
    return f"{kind}.{group}".rstrip(".")


def _role(body: JsonObject, _now: Ms) -> Json:
    return f"{get_text(body, 'roleRef', 'kind')}/{get_text(body, 'roleRef', 'name')}"


def _subjects_cell(kind: str) -> Cell:
    def cell(body: JsonObject, _now: Ms) -> Json:
        return ", ".join(
            "/".join(filter(None, (get_text(subject, "namespace"), get_text(subject, "name"))))
            for subject in get_mappings(body, "subjects")
            if get_text(subject, "kind") == kind
        )

    return cell


def _slice_ports(body: JsonObject, _now: Ms) -> Json:
    ports = get_mappings(body, "ports")
    return shorten([str(port.get("port") or port.get("name") or "*") for port in ports])


def _slice_addresses(body: JsonObject, _now: Ms) -> Json:
    address_lists = (
        get_list(endpoint, "addresses") for endpoint in get_mappings(body, "endpoints")
    )
    return shorten([str(address) for addresses in address_lists for address in addresses])


def _service(body: JsonObject, _now: Ms) -> Json:
    service = get_mapping(body, "spec", "service")
    return f"{get_text(service, 'namespace')}/{get_text(service, 'name')}" if service else "Local"


def _available(body: JsonObject, _now: Ms) -> Json:
    for condition in get_mappings(body, "status", "conditions"):
        if get_text(condition, "type") == "Available":
            is_true = get_text(condition, "status") == "True"
            return (
                "True"
                if is_true
                else f"{get_text(condition, 'status')} ({get_text(condition, 'reason')})"
            )
    return "Unknown"


def _controller(body: JsonObject, _now: Ms) -> Json:
    for owner in get_mappings(body, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            group = get_text(owner, "apiVersion").rpartition("/")[0]
            return f"{_kind_name(get_text(owner, 'kind').lower(), group)}/{get_text(owner, 'name')}"
    return NONE


def _param_kind(body: JsonObject, _now: Ms) -> Json:
    param_kind = get_mapping(body, "spec", "paramKind")
    return (
        f"{get_text(param_kind, 'apiVersion')}/{get_text(param_kind, 'kind')}"
        if param_kind
        else "<unset>"
    )


def _param_ref(body: JsonObject, _now: Ms) -> Json:
    param_ref = get_mapping(body, "spec", "paramRef")
    if not param_ref:
        return "<unset>"
    namespace, name = get_text(param_ref, "namespace", default="*"), get_text(param_ref, "name")
    return f"{namespace}/{name}" if name else f"{namespace}/*"


BINDING_COLUMNS = (
    NAME,
    TableColumn("Role", _role),
    AGE,
    TableColumn("Users", _subjects_cell("User"), is_wide=True),
    TableColumn("Groups", _subjects_cell("Group"), is_wide=True),
    TableColumn("ServiceAccounts", _subjects_cell("ServiceAccount"), is_wide=True),
)
WEBHOOK_COLUMNS = (NAME, TableColumn("Webhooks", count_cell("webhooks"), "integer"), AGE)
POLICY_BINDING_COLUMNS = (
    NAME,
    TableColumn("PolicyName", field_cell("spec", "policyName")),
    TableColumn("ParamRef", _param_ref),
    AGE,
)
OTHER_COLUMNS = {
    ("networking.k8s.io", "Ingress"): (
        NAME,
        TableColumn("Class", field_cell("spec", "ingressClassName", default=NONE)),
        TableColumn("Hosts", _hosts),
        TableColumn("Address", _ingress_address),
        TableColumn("Ports", _ingress_ports),
        AGE,
    ),
    ("networking.k8s.io", "IngressClass"): (
        NAME,
        TableColumn("Controller", field_cell("spec", "controller")),
        TableColumn("Parameters", _parameters),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        NAME,
        TableColumn(
            "Pod-Selector", lambda body, _: format_selector(get_value(body, "spec", "podSelector"))
        ),
        AGE,
    ),
    ("discovery.k8s.io", "EndpointSlice"): (
        NAME,
        TableColumn("AddressType", field_cell("addressType")),
        TableColumn("Ports", _slice_ports),
        TableColumn("Endpoints", _slice_addresses),
        AGE,
    ),
    (RBAC, "Role"): CREATED_COLUMNS,
    (RBAC, "ClusterRole"): CREATED_COLUMNS,
    (RBAC, "RoleBinding"): BINDING_COLUMNS,
    (RBAC, "ClusterRoleBinding"): BINDING_COLUMNS,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): CREATED_COLUMNS,
    (ADMISSION, "MutatingWebhookConfiguration"): WEBHOOK_COLUMNS,
    (ADMISSION, "ValidatingWebhookConfiguration"): WEBHOOK_COLUMNS,
    (ADMISSION, "ValidatingAdmissionPolicy"): (
        NAME,
        TableColumn("Validations", count_cell("spec", "validations"), "integer"),
        TableColumn("ParamKind", _param_kind),
        AGE,
    ),
    (ADMISSION, "MutatingAdmissionPolicy"): (
        NAME,
        TableColumn("Mutations", count_cell("spec", "mutations"), "integer"),
        TableColumn("ParamKind", _param_kind),
        AGE,
    ),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): POLICY_BINDING_COLUMNS,
    (ADMISSION, "MutatingAdmissionPolicyBinding"): POLICY_BINDING_COLUMNS,
    ("apiregistration.k8s.io", "APIService"): (
        NAME,
        TableColumn("Service", _service),
        TableColumn("Available", _available),
        AGE,
    ),
    ("apps", "ControllerRevision"): (
        NAME,
        TableColumn("Controller", _controller),
        TableColumn("Revision", field_cell("revision", default=0)),
        AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        TableColumn("Value", field_cell("value", default=0), "integer"),
        TableColumn("Global-Default", field_cell("globalDefault", default=False), "boolean"),
        AGE,
        TableColumn(
            "PreemptionPolicy", field_cell("preemptionPolicy", default="PreemptLowerPriority")
        ),
    ),
    ("coordination.k8s.io", "Lease"): (
        NAME,
        TableColumn("Holder", field_cell("spec", "holderIdentity")),
        AGE,
    ),
    ("node.k8s.io", "RuntimeClass"): (NAME, TableColumn("Handler", field_cell("handler")), AGE),
}
