"""How the variables of a build in Argo CD are put into texts.

Value files, parameters, images, labels and Jsonnet may name them: `$ARGOCD_APP_NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.model.text.lazy_regex import lazy_regex

# `${name}`, `$name`, one of the signs a shell knows, `${}` and an opening brace that is not closed.
_REFERENCE = lazy_regex(r"\$(?:\{([^}]*)\}|(\w+)|([*#$@!?-])|\{)", re.ASCII)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with variables in place. One that is not known is nothing; `$$` is a `$`."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3] or ""
        if name[:1].isdigit() and found[2]:
            # As in a shell, `$10` is the first argument with a 0 behind it.
            return variables.get(name[0], "") + name[1:]
        return "$" if name == "$" else variables.get(name, "")

    return _REFERENCE.sub(value, text)
