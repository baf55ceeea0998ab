"""The substitution language of Flux: `${name}` with its operators."""
