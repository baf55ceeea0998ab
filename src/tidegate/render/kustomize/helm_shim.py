"""Script that kustomize runs as helm, copied into the build directory.

Its file name is helm's command: `template` calls `HelmShimServer` over the socket beside it,
`version` prints the Helm version of the workers.
"""

import os
import socket
import sys

VERSION = "v4.2.3"
SOCKET = "helm.sock"
CHUNK = 65536


def main(command: str, arguments: list[str]) -> int:
    """Run one helm command; return the exit code."""
    if command == "version":
        os.write(1, VERSION.encode() + b"\n")
        return 0
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(SOCKET)
        connection.sendall(b"\0".join(os.fsencode(text) for text in (command, *arguments)))
        connection.shutdown(socket.SHUT_WR)
        reply = b"".join(iter(lambda: connection.recv(CHUNK), b""))
    status, text = reply[:1], reply[1:]
    stream = sys.stdout.buffer if status == b"+" else sys.stderr.buffer
    stream.write(text)
    stream.flush()
    return 0 if status == b"+" else 1


if __name__ == "__main__":
    sys.exit(main(os.path.basename(sys.argv[0]), sys.argv[1:]))  # noqa: PTH119  (pathlib is slow)
