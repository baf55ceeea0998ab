"""Version of a chart in an OCI artifact, with the digest of the artifact, as Flux sets it.

chart 1.2.0 in the artifact 1.2.0@sha256:0a1b2c3d4e5f67…   is   1.2.0+0a1b2c3d4e5f

So a moved tag is another release, even if the chart has the same version.
"""

from __future__ import annotations

import re

from tidegate.errors import Location, RenderError, sanitize

DIGEST_LENGTH = 12
_VERSION = re.compile(
    r"v?(?P<core>(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){0,2})"
    r"(?P<before>-[0-9A-Za-z.-]+)?(?P<build>\+[0-9A-Za-z.-]+)?"
)


def version_with_digest(version: str, artifact: str, location: Location) -> str:
    """Return the version with the beginning of the digest as build metadata.

    Raises RenderError if the tag is another version.

    Like `mutateChartWithSourceRevision` in `internal/controller/helmrelease_controller.go` of
    helm-controller 1.6.4.
    """
    tag, _, digest = artifact.rpartition("@")
    tag_version, chart_version = (
        _VERSION.fullmatch(tag.replace("_", "+")),
        _VERSION.fullmatch(version),
    )
    if chart_version is None:
        return version
    if tag_version is not None and tag_version[0].removeprefix("v") != chart_version[
        0
    ].removeprefix("v"):
        problem = (
            f"the tag of the artifact is `{sanitize(tag)}`, but the chart has version"
            f" `{sanitize(version)}`"
        )
        hint = "push the chart with its version as the tag, or use a tag that is not a version"
        raise RenderError("render.helm.tag", problem, location=location, hint=hint)
    build = digest.rpartition(":")[2][:DIGEST_LENGTH]
    return f"{chart_version['core']}{chart_version['before'] or ''}+{build}"
