"""The version of a chart that lies in an OCI artifact: it tells the digest of that, as Flux has it.

    chart 1.2.0 in the artifact 1.2.0@sha256:0a1b2c3d4e5f67…   is   1.2.0+0a1b2c3d4e5f

So a tag that moves is another release, though the chart says the same version.
"""

from __future__ import annotations

import re

from tidegate.errors import Location, RenderError, sanitize

DIGITS = 12
_VERSION = re.compile(
    r"v?(?P<core>(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){0,2})"
    r"(?P<before>-[0-9A-Za-z.-]+)?(?P<build>\+[0-9A-Za-z.-]+)?"
)


def version_with_digest(version: str, artifact: str, where: Location) -> str:
    """The version with the beginning of the digest behind it.

    Raises RenderError where a tag is another version.
    """
    tag, _, digest = artifact.rpartition("@")
    named, own = _VERSION.fullmatch(tag.replace("_", "+")), _VERSION.fullmatch(version)
    if own is None:
        return version
    if named is not None and named[0].removeprefix("v") != own[0].removeprefix("v"):
        problem = (
            f"the tag of its artifact is `{sanitize(tag)}`, and the chart has the version"
            f" `{sanitize(version)}`"
        )
        hint = "push the chart with its own version as the tag, or use a tag that is no version"
        raise RenderError("render.helm.tag", problem, location=where, hint=hint)
    build = digest.rpartition(":")[2][:DIGITS]
    return f"{own['core']}{own['before'] or ''}+{build}"
