"""What a Flux unit takes from the objects around it: values, variables, keys.

Data of a Secret that no key opens is known by name alone. What may be previewed is rendered with
placeholders then, and told as locked.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.errors import Place, RenderError
from tidegate.flows.rendering.outcome import Rendered
from tidegate.flows.rendering.trees import Data, FindData, opened
from tidegate.flows.rendering.unsealing import fields_with, secrets_of
from tidegate.flows.rendering.workshop import Setting
from tidegate.model.reading import text
from tidegate.model.rendering import DataReference, FluxDetails
from tidegate.model.unit import Unit
from tidegate.render.glimpse import Marks
from tidegate.render.helm import Reference
from tidegate.render.kustomize.override import add_common_metadata
from tidegate.render.sops import Keys
from tidegate.render.sops.objects import PLACEHOLDER
from tidegate.render.substitute import Source, Variables, collect, substitute

KUSTOMIZATION = "Kustomization"
HOOK = "helm.sh/hook"


class Around:
    """What a Flux unit takes from the objects around it, and does to its own behind the build."""

    def __init__(self, unit: Unit, details: FluxDetails, find_data: FindData) -> None:
        self.unit = unit
        self._details = details
        self._find = find_data
        self._living: dict[tuple[str, str], Data] = {}
        self._locked: dict[tuple[str, str], RenderError] = {}
        self.secrets: set[str] = set()
        self.has_secrets = False

    async def ask(self, setting: Setting) -> None:
        """Have the cluster tell what the repository has not: there Flux reads it."""
        ask, asked, home = setting.ask_data, self._details.substitution, self.unit.id.namespace
        if ask is None:
            return
        for one in (*self._details.values, *(asked.references if asked is not None else ())):
            if opened(self._find(one.kind, home, one.name)) is None:
                entries, _ = await ask(one.kind, home, one.name)
                self._living |= {} if entries is None else {(one.kind, one.name): entries}

    def values(self) -> list[Reference]:
        """The values that other objects hold, in their order."""
        found = []
        for one in self._details.values:
            entries = self._entries(one)
            if entries is None:
                continue
            if one.key not in entries:
                if one.optional:
                    continue
                raise self._unknown(one, f"has no entry `{one.key}`")
            said = entries[one.key].decode("utf-8", "replace")
            if said == PLACEHOLDER and not one.target_path:
                continue  # whatever stands in it, it is no such text
            name = f"{one.kind} {self.unit.id.namespace}/{one.name} ({one.key})"
            found.append(Reference(said, name, one.target_path, one.literal))
        return found

    async def keys(self, setting: Setting) -> Keys:
        """Those of the Secret that is named, of the repository or the cluster; else the user's own.

        Who does not ask for decryption has none, and nothing is opened.
        """
        name, home = self._details.keys, self.unit.id.namespace
        if not self._details.decrypts and self.unit.id.kind == KUSTOMIZATION:
            return Keys(sealed=True)
        if not name:
            return setting.keys
        entries, why = opened(self._find("Secret", home, name)), "not in the repository"
        if entries is None and setting.ask_data is not None:
            entries, more = await setting.ask_data("Secret", home, name)
            why += f", {more}"
        if entries is not None:
            return Keys.from_secret(entries, where=Place(f"Secret `{home}/{name}`"))
        looked = (f"Secret `{home}/{name}`: {why}", *setting.keys.looked)
        return replace(setting.keys, looked=looked)

    def finish(self, rendered: Rendered) -> Rendered:
        """Variables put in, and what goes onto every object."""
        documents = rendered.documents
        asked, details = self._details.substitution, self._details
        if asked is not None:
            variables = self._variables
            documents = tuple(substitute(one, variables, always=asked.always) for one in documents)
        if details.labels or details.annotations:
            marked = add_common_metadata(
                documents, labels=details.labels, annotations=details.annotations
            )
            documents = tuple(
                old if details.spares_hooks and is_hook(old) else new
                for old, new in zip(documents, marked, strict=True)
            )
        hidden = tuple(
            (*known, *fields_with(document.body, self.secrets))
            for document, known in zip(documents, rendered.hidden, strict=True)
        )
        locked = (*rendered.locked, *self._locked.values())
        return replace(rendered, documents=documents, hidden=hidden, locked=locked)

    def may_add(self, marks: Marks) -> bool:
        """Whether such a text could come in behind the build."""
        text = msgspec.json.encode((self._details.post_renders, self._variables.values))
        return bool(marks.search(text))

    @cached_property
    def _variables(self) -> Variables:
        asked = self._details.substitution
        if asked is None:
            return Variables()
        sources = [self._source(one, at) for at, one in enumerate(asked.references)]
        return collect(sources, inline=asked.inline, where=self.unit.where)

    def _source(self, one: DataReference, at: int) -> Source:
        entries = self._entries(one, f"spec.postBuild.substituteFrom[{at}]")
        values = None if entries is None else _texts(entries)
        return Source(kind=one.kind, name=one.name, values=values, optional=one.optional)

    def _entries(self, one: DataReference, field: str = "") -> Data | None:
        """None where it is not known and need not be there."""
        spot, found = (one.kind, one.name), self._find(one.kind, self.unit.id.namespace, one.name)
        entries = self._living.get(spot) if opened(found) is None else found
        if entries is None and found is not None:
            entries, self._locked[spot] = found, self._sealed(one, field)
        if entries is None and not one.optional:
            raise self._unknown(one, "is not in the repository", field)
        if entries is not None and one.kind == "Secret":
            self.has_secrets = True
            self.secrets |= {*secrets_of(entries)}
        return entries

    def _sealed(self, one: DataReference, field: str) -> RenderError:
        problem = f"no key opens {one.kind} `{one.name}`: placeholders stand for what it holds"
        hint = "give the key in `SOPS_AGE_KEY` or `SOPS_AGE_KEY_FILE`"
        where = self.unit.where and self.unit.where.at(field)
        return RenderError("render.sops.data", problem, where=where, hint=hint)

    def _unknown(self, one: DataReference, what: str, field: str = "") -> RenderError:
        problem = f"`{self.unit.id}` needs {one.kind} `{one.name}`, which {what}"
        hint = "what it renders to is not known before; give the object in the repository"
        where = self.unit.where and self.unit.where.at(field)
        return RenderError("render.data", problem, where=where, hint=hint)


def _texts(entries: Data) -> dict[str, str]:
    return {name: part.decode("utf-8", "replace") for name, part in entries.items()}


def is_hook(document: Document) -> bool:
    """Whether it is a hook of a chart."""
    return bool(text(document.body, "metadata", "annotations", HOOK))
