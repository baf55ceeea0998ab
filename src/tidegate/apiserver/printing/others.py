"""Networks, rights, webhooks, and what else a cluster is run with."""

from __future__ import annotations

from tidegate.apiserver.printing.cells import (
    AGE,
    CREATED,
    NAME,
    NONE,
    Body,
    Cell,
    Printer,
    count,
    field,
    selector,
    shortened,
)
from tidegate.apiserver.printing.core import balanced
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, part, text

RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"


def _hosts(body: Body, _now: Ms) -> Json:
    found = [text(one, "host") for one in mappings(body, "spec", "rules")]
    return shortened([one for one in found if one], empty="*")


def _lb(body: Body, _now: Ms) -> Json:
    return ",".join(balanced(body))


def _tls(body: Body, _now: Ms) -> Json:
    return "80, 443" if listed(body, "spec", "tls") else "80"


def _parameters(body: Body, _now: Ms) -> Json:
    found = mapping(body, "spec", "parameters")
    if not found:
        return NONE
    return f"{_title(text(found, 'kind'), text(found, 'apiGroup'))}/{text(found, 'name')}"


def _title(kind: str, group: str) -> str:
    return f"{kind}.{group}".rstrip(".")


def _role(body: Body, _now: Ms) -> Json:
    return f"{text(body, 'roleRef', 'kind')}/{text(body, 'roleRef', 'name')}"


def _subjects(kind: str) -> Cell:
    def cell(body: Body, _now: Ms) -> Json:
        return ", ".join(
            "/".join(filter(None, (text(one, "namespace"), text(one, "name"))))
            for one in mappings(body, "subjects")
            if text(one, "kind") == kind
        )

    return cell


def _slice_ports(body: Body, _now: Ms) -> Json:
    found = mappings(body, "ports")
    return shortened([str(one.get("port") or one.get("name") or "*") for one in found])


def _slice_addresses(body: Body, _now: Ms) -> Json:
    found = (listed(one, "addresses") for one in mappings(body, "endpoints"))
    return shortened([str(address) for addresses in found for address in addresses])


def _service(body: Body, _now: Ms) -> Json:
    service = mapping(body, "spec", "service")
    return f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"


def _available(body: Body, _now: Ms) -> Json:
    for one in mappings(body, "status", "conditions"):
        if text(one, "type") == "Available":
            is_true = text(one, "status") == "True"
            return "True" if is_true else f"{text(one, 'status')} ({text(one, 'reason')})"
    return "Unknown"


def _controller(body: Body, _now: Ms) -> Json:
    for one in mappings(body, "metadata", "ownerReferences"):
        if one.get("controller") is True:
            group = text(one, "apiVersion").rpartition("/")[0]
            return f"{_title(text(one, 'kind').lower(), group)}/{text(one, 'name')}"
    return NONE


def _param_kind(body: Body, _now: Ms) -> Json:
    found = mapping(body, "spec", "paramKind")
    return f"{text(found, 'apiVersion')}/{text(found, 'kind')}" if found else "<unset>"


def _param_ref(body: Body, _now: Ms) -> Json:
    found = mapping(body, "spec", "paramRef")
    if not found:
        return "<unset>"
    namespace, name = text(found, "namespace", default="*"), text(found, "name")
    return f"{namespace}/{name}" if name else f"{namespace}/*"


BINDING = (
    NAME,
    Printer("Role", _role),
    AGE,
    Printer("Users", _subjects("User"), wide=True),
    Printer("Groups", _subjects("Group"), wide=True),
    Printer("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
WEBHOOKS = (NAME, Printer("Webhooks", count("webhooks"), "integer"), AGE)
POLICY_BINDING = (
    NAME,
    Printer("PolicyName", field("spec", "policyName")),
    Printer("ParamRef", _param_ref),
    AGE,
)
OTHERS = {
    ("networking.k8s.io", "Ingress"): (
        NAME,
        Printer("Class", field("spec", "ingressClassName", default=NONE)),
        Printer("Hosts", _hosts),
        Printer("Address", _lb),
        Printer("Ports", _tls),
        AGE,
    ),
    ("networking.k8s.io", "IngressClass"): (
        NAME,
        Printer("Controller", field("spec", "controller")),
        Printer("Parameters", _parameters),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        NAME,
        Printer("Pod-Selector", lambda body, _: selector(part(body, "spec", "podSelector"))),
        AGE,
    ),
    ("discovery.k8s.io", "EndpointSlice"): (
        NAME,
        Printer("AddressType", field("addressType")),
        Printer("Ports", _slice_ports),
        Printer("Endpoints", _slice_addresses),
        AGE,
    ),
    (RBAC, "Role"): CREATED,
    (RBAC, "ClusterRole"): CREATED,
    (RBAC, "RoleBinding"): BINDING,
    (RBAC, "ClusterRoleBinding"): BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): CREATED,
    (ADMISSION, "MutatingWebhookConfiguration"): WEBHOOKS,
    (ADMISSION, "ValidatingWebhookConfiguration"): WEBHOOKS,
    (ADMISSION, "ValidatingAdmissionPolicy"): (
        NAME,
        Printer("Validations", count("spec", "validations"), "integer"),
        Printer("ParamKind", _param_kind),
        AGE,
    ),
    (ADMISSION, "MutatingAdmissionPolicy"): (
        NAME,
        Printer("Mutations", count("spec", "mutations"), "integer"),
        Printer("ParamKind", _param_kind),
        AGE,
    ),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): POLICY_BINDING,
    (ADMISSION, "MutatingAdmissionPolicyBinding"): POLICY_BINDING,
    ("apiregistration.k8s.io", "APIService"): (
        NAME,
        Printer("Service", _service),
        Printer("Available", _available),
        AGE,
    ),
    ("apps", "ControllerRevision"): (
        NAME,
        Printer("Controller", _controller),
        Printer("Revision", field("revision", default=0)),
        AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        Printer("Value", field("value", default=0), "integer"),
        Printer("Global-Default", field("globalDefault", default=False), "boolean"),
        AGE,
        Printer("PreemptionPolicy", field("preemptionPolicy", default="PreemptLowerPriority")),
    ),
    ("coordination.k8s.io", "Lease"): (
        NAME,
        Printer("Holder", field("spec", "holderIdentity")),
        AGE,
    ),
    ("node.k8s.io", "RuntimeClass"): (NAME, Printer("Handler", field("handler")), AGE),
}
