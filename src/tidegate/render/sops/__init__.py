"""SOPS: encrypted objects and files, decrypted in memory.

keys = Keys.from_environment(os.environ)
    decrypted = await decrypt(documents, keys, offline=True)
    file = await decrypt_file(source, keys, location=Location("values.enc.yaml"))
    require_intact_mac(file.mac_status, location)

age keys are used in this process; for PGP, cloud services and Vault, the `sops` program runs.
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
