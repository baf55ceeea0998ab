"""The variables of a build in Argo CD, and how they are put into texts.

Value files, parameters, images, labels and Jsonnet may name them: `$ARGOCD_APP_NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

# `${name}`, `$name`, one of the signs a shell knows, `${}` and an opening brace that is not closed.
_REFERENCE = re.compile(r"\$(?:\{([^}]*)\}|(\w+)|([*#$@!?-])|\{)", re.ASCII)


class ArgoBuild(msgspec.Struct, frozen=True, kw_only=True):
    """The Application and the revision that is built."""

    name: str
    namespace: str = ""
    project: str = "default"
    revision: str = ""
    repository: str = ""
    path: str = ""
    target_revision: str = ""

    def variables(self) -> dict[str, str]:
        return {
            "ARGOCD_APP_NAME": self.name,
            "ARGOCD_APP_NAMESPACE": self.namespace,
            "ARGOCD_APP_PROJECT_NAME": self.project,
            "ARGOCD_APP_REVISION": self.revision,
            "ARGOCD_APP_REVISION_SHORT": self.revision[:7],
            "ARGOCD_APP_REVISION_SHORT_8": self.revision[:8],
            "ARGOCD_APP_SOURCE_REPO_URL": self.repository,
            "ARGOCD_APP_SOURCE_PATH": self.path,
            "ARGOCD_APP_SOURCE_TARGET_REVISION": self.target_revision,
        }


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with variables in place. One that is not known is nothing; `$$` is a `$`."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3] or ""
        if name[:1].isdigit() and found[2]:
            # As in a shell, `$10` is the first argument with a 0 behind it.
            return variables.get(name[0], "") + name[1:]
        return "$" if name == "$" else variables.get(name, "")

    return _REFERENCE.sub(value, text)
