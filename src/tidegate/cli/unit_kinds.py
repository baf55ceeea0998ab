"""Nouns of the command line for the kinds of units and sources, and their aliases."""

from __future__ import annotations

SOURCE_KINDS = {
    "git": "GitRepository",
    "oci": "OCIRepository",
    "helm": "HelmRepository",
    "chart": "HelmChart",
    "bucket": "Bucket",
}
KINDS_BY_NOUN = {
    "application": ("Application",),
    "helmrelease": ("HelmRelease",),
    "kustomization": ("Kustomization",),
    "source": tuple(SOURCE_KINDS.values()),
}
UNIT_KINDS_BY_NOUN = {noun: kinds for noun, kinds in KINDS_BY_NOUN.items() if noun != "source"}
UNIT_KINDS = tuple(kind for kinds in UNIT_KINDS_BY_NOUN.values() for kind in kinds)
"""Kinds of unit resources."""
NOUN_ALIASES = {
    "app": "application",
    "apps": "application",
    "applications": "application",
    "hr": "helmrelease",
    "helmreleases": "helmrelease",
    "ks": "kustomization",
    "kustomizations": "kustomization",
    "sources": "source",
    "gitrepo": "source",
    "gitrepository": "source",
}
