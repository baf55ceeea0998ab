"""From a unit to its objects: decryption and substitution, as Flux does them."""
