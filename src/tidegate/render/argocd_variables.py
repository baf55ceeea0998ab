"""Expansion of Argo CD's build environment variables, such as `$ARGOCD_APP_NAME`.

Value files, parameters, images, labels and Jsonnet may contain them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.model.text.lazy_regex import lazy_regex

# `${name}`, `$name`, a special shell parameter, `${}`, and an opening brace that is not closed.
_REFERENCE = lazy_regex(r"\$(?:\{([^}]*)\}|(\w+)|([*#$@!?-])|\{)", re.ASCII)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with variables replaced. Unknown ones become empty; `$$` becomes `$`.

    Like `Envsubst` in `pkg/apis/application/v1alpha1/types.go` of Argo CD 3.5.6.
    """

    def replacement(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3] or ""
        if name[:1].isdigit() and match[2]:
            # As in a shell, `$10` is the first argument, followed by a 0.
            return variables.get(name[0], "") + name[1:]
        return "$" if name == "$" else variables.get(name, "")

    return _REFERENCE.sub(replacement, text)
