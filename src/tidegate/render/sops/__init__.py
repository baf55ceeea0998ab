"""SOPS: encrypted objects and files, opened in memory.

    keys = Keys.from_environment(os.environ)
    decrypted = await decrypt(documents, keys, offline=True)
    file = await decrypt_file(source, keys, where=Place("values.enc.yaml"))
    refuse_broken(file.seal, where)

age keys are used in our own process; for PGP, cloud services and Vault the `sops` program is asked.
"""

from tidegate.render.sops.formats import Format, format_of, is_encrypted
from tidegate.render.sops.keys import Keys
from tidegate.render.sops.objects import (
    DecryptedDocuments,
    decrypt,
    decrypt_file,
    find_encrypted,
    replace_undecryptable,
    replace_with_placeholders,
    require_intact_mac,
)
from tidegate.render.sops.tree import MacStatus

__all__ = [
    "DecryptedDocuments",
    "Format",
    "Keys",
    "MacStatus",
    "decrypt",
    "decrypt_file",
    "find_encrypted",
    "format_of",
    "is_encrypted",
    "replace_undecryptable",
    "replace_with_placeholders",
    "require_intact_mac",
]
