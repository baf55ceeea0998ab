"""What kustomize takes for helm. Copied into the directory of a build and run there as a script.

The name it is run by is helm's command: `template` asks `inflation` over the socket beside it,
`version` says which Helm our workers are.
"""

import os
import socket
import sys

VERSION = "v4.2.3"
SOCKET = "helm.sock"
CHUNK = 65536


def main(word: str, arguments: list[str]) -> int:
    if word == "version":
        os.write(1, VERSION.encode() + b"\n")
        return 0
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(SOCKET)
        line.sendall(b"\0".join(os.fsencode(text) for text in (word, *arguments)))
        line.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: line.recv(CHUNK), b""))
    sign, text = answer[:1], answer[1:]
    stream = sys.stdout.buffer if sign == b"+" else sys.stderr.buffer
    stream.write(text)
    stream.flush()
    return 0 if sign == b"+" else 1


if __name__ == "__main__":
    sys.exit(main(os.path.basename(sys.argv[0]), sys.argv[1:]))  # noqa: PTH119  (pathlib is slow)
