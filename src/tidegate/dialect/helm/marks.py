"""How objects say which Helm release they are of: what Helm writes onto them, and what it asks for
before it takes over what is there already.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.model.ledger import ReleaseTerms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping

Body = dict[str, Json]
MANAGED_BY = "app.kubernetes.io/managed-by"
HELM = "Helm"
RELEASE = "meta.helm.sh/release-name"
NAMESPACE = "meta.helm.sh/release-namespace"


def release_marks(terms: ReleaseTerms) -> tuple[dict[str, str], dict[str, str]]:
    """The annotations and the labels of an object of a release."""
    return {RELEASE: terms.name, NAMESPACE: terms.namespace}, {MANAGED_BY: HELM}


def unfit_marks(body: Body, terms: ReleaseTerms) -> list[str]:
    """What is not there for Helm to know an object as one of this release, in its own words."""
    notes, labels = release_marks(terms)
    return [
        *_unfit(mapping(body, "metadata", "labels"), labels, "label"),
        *_unfit(mapping(body, "metadata", "annotations"), notes, "annotation"),
    ]


def is_released(body: Body, terms: ReleaseTerms | None) -> bool:
    """Whether an object says that it is of this release."""
    return terms is not None and not unfit_marks(body, terms)


def _unfit(there: Mapping[str, Json], wanted: Mapping[str, str], what: str) -> list[str]:
    told = []
    for key, value in wanted.items():
        if key not in there:
            told.append(f'missing key "{key}": must be set to "{value}"')
        elif there[key] != value:
            is_so = f'current value is "{there[key]}"'
            told.append(f'key "{key}" must equal "{value}": {is_so}')
    return [f"{what} validation error: {one}" for one in told]
