"""Flags of the Flux controllers, read from their Deployments in the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.documents import Document
from tidegate.documents.document import format_path
from tidegate.model.config import ControllerSetting
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text, object_kind
from tidegate.model.k8s.objects import Json

CONTROLLERS = ("kustomize-controller", "helm-controller", "source-controller")
FEATURE_GATES = "feature-gates"
BOOLEAN_FLAGS = ("no-cross-namespace-refs", "no-remote-bases")
"""Flags that need no value."""
FLAGS = (
    *("concurrent", "custom-apply-stage-kinds", "default-service-account", FEATURE_GATES),
    *("requeue-dependency", *BOOLEAN_FLAGS),
)
"""Flags that affect order, timing or permissions."""
PART_OF, COMPONENT = "app.kubernetes.io/part-of", "app.kubernetes.io/component"
CONTAINERS_PATH = ("spec", "template", "spec", "containers")


def read_settings(documents: Iterable[Document]) -> tuple[ControllerSetting, ...]:
    """Read the flags of the controllers, in document order; the last value counts."""
    return tuple(setting for document in documents for setting in _deployment_settings(document))


def _deployment_settings(document: Document) -> Iterator[ControllerSetting]:
    body = document.body
    kind = object_kind(body)
    if (kind.group, kind.name) != ("apps", "Deployment"):
        return
    labels = get_mapping(body, "metadata", "labels")
    is_flux = get_text(labels, PART_OF) == "flux"
    names = (get_text(labels, COMPONENT), get_text(body, "metadata", "name")) if is_flux else ()
    for index, container in enumerate(get_list(body, *CONTAINERS_PATH)):
        container_names = (get_text(container, "name"), _image_name(get_text(container, "image")))
        controller = next((name for name in (*container_names, *names) if name in CONTROLLERS), "")
        for argument_index, flag, value in (
            _flag_values(get_list(container, "args")) if controller else ()
        ):
            field = format_path((*CONTAINERS_PATH, index, "args", argument_index))
            yield ControllerSetting(
                f"{controller}.{flag}", value, document.location.with_field(field)
            )


def _image_name(image: str) -> str:
    """Return the image name: `helm-controller` of `ghcr.io/fluxcd/helm-controller:v1.6.3`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _flag_values(arguments: list[Json]) -> Iterator[tuple[int, str, str]]:
    """Yield flags with values, `--concurrent=8` or `--concurrent 8`, and each feature gate."""
    for index, argument in enumerate(arguments):
        if not isinstance(argument, str) or not argument.startswith("--"):
            continue
        flag, separator, value = argument.removeprefix("--").partition("=")
        if flag not in FLAGS:
            continue
        if not separator:
            value = "true" if flag in BOOLEAN_FLAGS else _argument_at(arguments, index + 1)
        if flag != FEATURE_GATES:
            yield index, flag, value
            continue
        for gate in filter(None, value.split(",")):
            name, _, state = gate.partition("=")
            yield index, f"{FEATURE_GATES}.{name.strip()}", state.strip() or "true"


def _argument_at(arguments: list[Json], index: int) -> str:
    argument = arguments[index] if index < len(arguments) else None
    return argument if isinstance(argument, str) else ""
