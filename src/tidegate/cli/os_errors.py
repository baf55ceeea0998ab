"""Operating system errors (no space, files, memory or access) as Tidegate errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from tidegate.errors import FileError, Location, SystemResourceError, TidegateError

SPACE_HINT = "free disk space, or set TMPDIR and XDG_CACHE_HOME to another directory"
ERRNO_HINTS = {
    errno.EMFILE: "raise the limit of open files (`ulimit -n`)",
    errno.ENFILE: "",
    errno.ENOMEM: "",
    errno.EAGAIN: "raise the limit of processes (`ulimit -u`)",
    errno.ENOSPC: SPACE_HINT,
    errno.EDQUOT: SPACE_HINT,
    errno.EFBIG: SPACE_HINT,
    errno.EROFS: SPACE_HINT,
    errno.EIO: "",
}
"""Hint by error number."""
PATH_ERRORS = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP)
"""Error numbers of a path in a file or on the command line that cannot be used."""
NO_TEMP_DIRECTORY, NO_THREAD = "No usable temporary directory", "can't start new thread"
"""Messages of Python errors that have no error number."""


def resource_errors(error: BaseException) -> list[TidegateError]:
    """Return the errors if all are resource or access errors, or Tidegate errors.

    Returns an empty list if there is any other error.
    """
    converted = [_convert_error(leaf) for leaf in _leaf_errors(error)]
    known_errors = [item for item in converted if item is not None]
    return (
        list({str(item): item for item in known_errors}.values())
        if len(known_errors) == len(converted)
        else []
    )


def _leaf_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for nested in error.exceptions:
            yield from _leaf_errors(nested)
    else:
        yield error


def _convert_error(error: BaseException) -> TidegateError | None:
    match error:
        case TidegateError():
            return error
        case MemoryError():
            return SystemResourceError("system.exhausted", "out of memory")
        case OSError(errno=number) if number in ERRNO_HINTS:
            file_text = f": {error.filename}" if error.filename else ""
            hint = ERRNO_HINTS[number]
            return SystemResourceError(
                "system.exhausted", f"{os.strerror(number)}{file_text}", hint=hint
            )
        case OSError(errno=number, filename=name) if name and number in PATH_ERRORS:
            problem = f"cannot use the path: {os.strerror(number)}"
            return FileError("file.unreadable", problem, location=Location(str(name)))
        case OSError() if NO_TEMP_DIRECTORY in str(error):
            problem = "no writable directory for temporary files"
            return SystemResourceError("system.exhausted", problem, hint=SPACE_HINT)
        case RuntimeError() if NO_THREAD in str(error):
            hint = ERRNO_HINTS[errno.EAGAIN]
            return SystemResourceError("system.exhausted", "cannot start a thread", hint=hint)
        case _:
            return None
