"""Inputs of a Flux unit from other objects: values, variables, decryption keys.

Of a Secret that no key decrypts only the names of its entries are known. A preview has
placeholders for its values, and reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.units.rendering import DataReference, FluxDetails
from tidegate.model.units.unit import Unit
from tidegate.render.helm import ValuesReference
from tidegate.render.kustomize.override import add_common_metadata
from tidegate.render.prescan import SearchPattern
from tidegate.render.sops import Keys
from tidegate.render.sops.objects import PLACEHOLDER
from tidegate.render.substitute import Variables, VariableSource, collect_variables, substitute
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.decryption import (
    alter_text,
    find_changed_fields,
    find_secret_fields,
    secret_texts,
)
from tidegate.workspace.rendering.result import RenderResult, UnknownVariables
from tidegate.workspace.rendering.sources import Data, FindData, decrypted_data

KUSTOMIZATION = "Kustomization"
UNSET_VARIABLE = "render.substitute.missing"
HOOK_ANNOTATION = "helm.sh/hook"


class FluxInputs:
    """Inputs of a Flux unit from other objects, and the changes of Flux after the build."""

    def __init__(
        self, unit: Unit, details: FluxDetails, find_data: FindData, *, requires_data: bool
    ) -> None:
        self.unit = unit
        self._requires_data = requires_data
        self._details = details
        self._find_data = find_data
        self._live_data: dict[tuple[str, str], Data] = {}
        self._undecrypted: dict[tuple[str, str], RenderError] = {}
        self._unknown_variables: dict[tuple[str, str], UnknownVariables] = {}
        self._unset: list[RenderError] = []
        self.secrets: set[str] = set()
        self.has_secrets = False

    async def load_live_data(self, settings: RenderSettings) -> None:
        """Read data that the repository lacks from the cluster, where Flux reads it."""
        get_cluster_data, substitution, namespace = (
            settings.get_cluster_data,
            self._details.substitution,
            self.unit.id.namespace,
        )
        if get_cluster_data is None:
            return
        for reference in (
            *self._details.value_references,
            *(substitution.references if substitution is not None else ()),
        ):
            if decrypted_data(self._find_data(reference.kind, namespace, reference.name)) is None:
                entries, _ = await get_cluster_data(reference.kind, namespace, reference.name)
                self._live_data |= (
                    {} if entries is None else {(reference.kind, reference.name): entries}
                )

    def values(self) -> list[ValuesReference]:
        """Return the values in other objects, in order. Raises RenderError for a missing one."""
        references = []
        for reference in self._details.value_references:
            entries = self._entries(reference)
            if entries is None:
                continue
            if reference.key not in entries:
                if reference.optional:
                    continue
                raise self._missing_data_error(reference, f"has no key `{reference.key}`")
            content = entries[reference.key].decode("utf-8", "replace")
            if content == PLACEHOLDER and not reference.target_path:
                continue  # a placeholder is not valid values YAML
            name = f"{reference.kind} {self.unit.id.namespace}/{reference.name} ({reference.key})"
            references.append(
                ValuesReference(content, name, reference.target_path, reference.literal)
            )
        return references

    async def keys(self, settings: RenderSettings) -> Keys:
        """Return the keys in the Secret of the repository or the cluster; else the user's.

        A Kustomization without `decryption` has none, and nothing is decrypted.
        """
        name, namespace = self._details.key_secret, self.unit.id.namespace
        if not self._details.decrypts and self.unit.id.kind == KUSTOMIZATION:
            return Keys(is_disabled=True)
        if not name:
            return settings.keys
        entries, reason = (
            decrypted_data(self._find_data("Secret", namespace, name)),
            "not found in the repository",
        )
        is_from_file = entries is not None
        if entries is None and settings.get_cluster_data is not None:
            entries, cluster_reason = await settings.get_cluster_data("Secret", namespace, name)
            reason += f", {cluster_reason}"
        if entries is not None:
            location = Location(f"Secret `{namespace}/{name}`")
            return Keys.from_secret(entries, location=location, is_from_file=is_from_file)
        searched = (f"Secret `{namespace}/{name}`: {reason}", *settings.keys.searched)
        return replace(settings.keys, searched=searched)

    def post_process(self, result: RenderResult) -> RenderResult:
        """Substitute variables, and add the common labels and annotations."""
        documents = result.documents
        substitution, details = self._details.substitution, self._details
        transformed: list[tuple[FieldPath, ...]] = [() for _ in documents]
        if substitution is not None:
            originals, always = documents, substitution.always
            documents = tuple(self._substitute(item, always=always) for item in originals)
            transformed = [
                self._transformed_fields(original, document, always=always)
                for original, document in zip(originals, documents, strict=True)
            ]
        if details.labels or details.annotations:
            labelled = add_common_metadata(
                documents, labels=details.labels, annotations=details.annotations
            )
            documents = tuple(
                old if details.skips_hooks and is_helm_hook(old) else new
                for old, new in zip(documents, labelled, strict=True)
            )
        secret_fields = tuple(
            tuple(dict.fromkeys((*fields, *more, *find_secret_fields(document.body, self.secrets))))
            for document, fields, more in zip(
                documents, result.secret_fields, transformed, strict=True
            )
        )
        undecrypted = (*result.undecrypted, *self._undecrypted.values())
        return replace(
            result,
            documents=documents,
            secret_fields=secret_fields,
            undecrypted=undecrypted,
            unknown_variables=(*result.unknown_variables, *self._unknown_variables.values()),
            refusals=(*result.refusals, *self._unset_errors()),
        )

    def _substitute(self, document: Document, *, always: bool) -> Document:
        """Return an object with its variables replaced. In a preview, an unset one is unknown."""
        variables = self._variables
        try:
            return substitute(document, variables, even_without_variables=always)
        except RenderError as error:
            if self._requires_data or error.code != UNSET_VARIABLE:
                raise
            self._unset.append(error)
        incomplete = msgspec.structs.replace(variables, is_complete=False)
        return substitute(document, incomplete, even_without_variables=always)

    def _transformed_fields(
        self, original: Document, document: Document, *, always: bool
    ) -> tuple[FieldPath, ...]:
        """Return the fields whose text depends on a Secret: they change with its values.

        A variable may be transformed (`${PASSWORD,,}`), so its value alone does not find them.
        """
        if self._altered_variables is None or document is original:
            return ()
        try:
            altered = substitute(
                original, self._altered_variables, strict=False, even_without_variables=always
            )
        except RenderError:
            return ()
        return tuple(find_changed_fields(document.body, altered.body))

    def _unset_errors(self) -> Iterator[RenderError]:
        """Yield the error about all unset variables of the unit."""
        if not self._unset:
            return
        first, *others = dict.fromkeys(error.problem for error in self._unset)
        more = f", and {len(others)} more" if others else ""
        location, hint = self._unset[0].location, self._unset[0].hint
        yield RenderError(UNSET_VARIABLE, f"{first}{more}", location=location, hint=hint)

    def may_add(self, pattern: SearchPattern) -> bool:
        """Return whether a matching text could be added after the build."""
        encoded = msgspec.json.encode((self._details.post_renderers, self._variables.values))
        return bool(pattern.search(encoded))

    @cached_property
    def _variables(self) -> Variables:
        substitution = self._details.substitution
        if substitution is None:
            return Variables()
        return collect_variables(
            self._sources, inline=substitution.inline, location=self.unit.location
        )

    @cached_property
    def _altered_variables(self) -> Variables | None:
        """The variables with other values for those of Secrets; None if there are none."""
        substitution = self._details.substitution
        if substitution is None or all(item.kind != "Secret" for item in self._sources):
            return None
        altered = [
            msgspec.structs.replace(
                source,
                values={name: alter_text(text) for name, text in source.values.items()},
            )
            if source.kind == "Secret" and source.values is not None
            else source
            for source in self._sources
        ]
        return collect_variables(altered, inline=substitution.inline, location=self.unit.location)

    @cached_property
    def _sources(self) -> list[VariableSource]:
        substitution = self._details.substitution
        references = substitution.references if substitution is not None else ()
        return [self._source(reference, index) for index, reference in enumerate(references)]

    def _source(self, reference: DataReference, index: int) -> VariableSource:
        """Return a source of variables. The values of one that is not in Git are unknown."""
        kind, name, key = reference.kind, reference.name, (reference.kind, reference.name)
        field = f"spec.postBuild.substituteFrom[{index}]"
        try:
            entries = self._entries(reference, field)
        except MissingDataError as error:
            if self._requires_data:
                raise
            self._unknown_variables[key] = UnknownVariables(
                kind, self.unit.id.namespace, name, error
            )
            return VariableSource(kind=kind, name=name, values=None, is_unknown=True)
        values = _decode_entries(entries or {})
        unknown_names = frozenset(name for name, text in values.items() if PLACEHOLDER in text)
        known = {name: text for name, text in values.items() if name not in unknown_names}
        return VariableSource(
            kind=kind,
            name=name,
            values=None if entries is None else known,
            optional=reference.optional,
            unknown_names=unknown_names,
        )

    def _entries(self, reference: DataReference, field: str = "") -> Data | None:
        """Return the entries of an object; None for an optional one that is unknown."""
        key, repository_data = (
            (reference.kind, reference.name),
            self._find_data(reference.kind, self.unit.id.namespace, reference.name),
        )
        entries = (
            self._live_data.get(key) if decrypted_data(repository_data) is None else repository_data
        )
        if entries is None and repository_data is not None:
            entries, self._undecrypted[key] = (
                repository_data,
                self._undecrypted_error(reference, field),
            )
        if entries is None and not reference.optional:
            raise self._missing_data_error(reference, "is not in the repository", field)
        if entries is not None and reference.kind == "Secret":
            self.has_secrets = True
            self.secrets |= {*secret_texts(entries)}
        return entries

    def _undecrypted_error(self, reference: DataReference, field: str) -> RenderError:
        problem = (
            f"cannot decrypt {reference.kind} `{reference.name}`: no key matches; placeholders"
            " replace its values"
        )
        hint = "set the key in `SOPS_AGE_KEY` or `SOPS_AGE_KEY_FILE`"
        location = self.unit.location and self.unit.location.with_field(field)
        return RenderError("render.sops.data", problem, location=location, hint=hint)

    def _missing_data_error(
        self, reference: DataReference, reason: str, field: str = ""
    ) -> MissingDataError:
        unit_problem = f"needs {reference.kind} `{reference.name}`, which {reason}"
        problem = f"`{self.unit.id}` {unit_problem}"
        hint = f"add {reference.kind} `{reference.name}` to the repository; rendering needs it"
        location = self.unit.location and self.unit.location.with_field(field)
        error = (
            MissingDataError("render.secret", problem, location=location, hint=hint)
            if reference.kind == "Secret" and not self._has(reference)
            else MissingDataError("render.data", problem, location=location, hint=hint)
        )
        error.unit_problem = unit_problem
        return error

    def _has(self, reference: DataReference) -> bool:
        """Return whether the object is in the repository, though something in it is missing."""
        namespace = self.unit.id.namespace
        return self._find_data(reference.kind, namespace, reference.name) is not None


class MissingDataError(RenderError):
    """A ConfigMap or Secret that a unit needs, and that is unknown."""


def _decode_entries(entries: Data) -> dict[str, str]:
    return {name: value.decode("utf-8", "replace") for name, value in entries.items()}


def is_helm_hook(document: Document) -> bool:
    """Return whether an object is a hook of a chart."""
    return bool(get_text(document.body, "metadata", "annotations", HOOK_ANNOTATION))
