"""What a machine has nothing left of, or lets nobody read, in words: that is no bug of ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from tidegate.errors import FileError, MachineError, Place, TidegateError

ROOM = "make room, or name a place that has some by TMPDIR and XDG_CACHE_HOME"
SPENT = {
    errno.EMFILE: "`ulimit -n` says how many files may be open at once",
    errno.ENFILE: "",
    errno.ENOMEM: "",
    errno.EAGAIN: "`ulimit -u` says how many processes there may be",
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: ROOM,
    errno.EROFS: ROOM,
    errno.EIO: "",
}
"""By what the system says, what to do about it."""
NO_SCRATCH, NO_THREAD = "No usable temporary directory", "can't start new thread"
"""How Python says it, where the system says nothing by itself."""


def spent_errors(error: BaseException) -> list[TidegateError]:
    """What went wrong where all of it is something used up or denied, or an error of ours.

    None, where there is anything else among it.
    """
    found = [_told(one) for one in _leaves(error)]
    told = [one for one in found if one is not None]
    return list({str(one): one for one in told}.values()) if len(told) == len(found) else []


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _told(error: BaseException) -> TidegateError | None:
    match error:
        case TidegateError():
            return error
        case MemoryError():
            return MachineError("machine.spent", "there is no memory left")
        case OSError(errno=number) if number in SPENT:
            where = f": {error.filename}" if error.filename else ""
            hint = SPENT[number]
            return MachineError("machine.spent", f"{os.strerror(number)}{where}", hint=hint)
        case PermissionError(filename=name) if name:
            problem = f"it cannot be read: {error.strerror}"
            return FileError("file.unreadable", problem, where=Place(str(name)))
        case OSError() if NO_SCRATCH in str(error):
            problem = "there is no directory for temporary files that can be written"
            return MachineError("machine.spent", problem, hint=ROOM)
        case RuntimeError() if NO_THREAD in str(error):
            hint = SPENT[errno.EAGAIN]
            return MachineError("machine.spent", "no thread can be started", hint=hint)
        case _:
            return None
